"""The generated reference of profiles describes every key."""

from __future__ import annotations

from chainmark.cli.schema_reference import profiles_page

ROWS = [line.split(" | ") for line in profiles_page().splitlines() if line.startswith("| `")]


def test_every_key_has_a_description_that_ends_with_a_full_stop() -> None:
    keys = [row[0].strip("|` ") for row in ROWS]
    assert {"network.validators", "steps.duration_s", "mesh.strata", "stages.forged_s", "command.build"} <= set(keys)
    without = [row[0].strip("|` ") for row in ROWS if not row[-1].strip(" |").endswith((".", ")"))]
    assert without == []
