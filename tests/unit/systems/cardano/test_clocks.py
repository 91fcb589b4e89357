"""A host with a wrong clock is named, and not the hosts whose times contradict it."""

from __future__ import annotations

import polars as pl

from chainmark.systems.cardano.clocks import Contradiction, contradictions, suspects


def test_only_the_host_ahead_of_the_others_is_reported() -> None:
    items = [Contradiction("node-3", name, by_s) for name, by_s in (("node-1", 0.15), ("node-2", 0.18))]
    assert [str(suspect) for suspect in suspects(items)] == [
        "the clock of node-3 is 0.180 s or more ahead of 2 others'"
    ]


def test_only_the_host_behind_the_others_is_reported() -> None:
    items = [Contradiction(name, "node-3", 0.1) for name in ("node-0", "node-1", "node-2")]
    assert [str(suspect) for suspect in suspects(items)] == ["the clock of node-3 is 0.100 s or more behind 3 others'"]


def test_a_contradiction_of_two_hosts_reports_both() -> None:
    assert str(suspects([Contradiction("a", "b", 0.02)])[0]) == "the clocks of a and b differ by 0.020 s or more"


def test_every_contradiction_is_explained_by_a_reported_host() -> None:
    items = [Contradiction("a", "b", 1.0), Contradiction("a", "c", 1.0), Contradiction("d", "c", 0.5)]
    named = {suspect.name for suspect in suspects(items)}
    assert all({contradiction.forger, contradiction.observer} & named for contradiction in items)
    assert suspects([]) == []


def test_only_headers_before_their_block_count_and_the_worst_is_reported() -> None:
    timelines = pl.DataFrame(
        {
            "host": ["b", "b", "c", "a"],
            "block": ["x", "y", "x", "x"],
            "role": ["observer", "observer", "observer", "forger"],
            "noticed_ns": [900_000_000, 1_700_000_000, 1_100_000_000, None],
        }
    )
    forgers = pl.DataFrame({"host": ["a", "a"], "block": ["x", "y"], "forged_ns": [1_000_000_000, 2_000_000_000]})
    assert contradictions(timelines, forgers) == [Contradiction("a", "b", 0.3)]
