"""All output of chainmark is stored: a review shows every sentence that changes or disappears."""

from __future__ import annotations

import difflib

import pytest

from tests.golden.outputs import RETAINED, outputs

# The first of these tests runs all commands of one width.
pytestmark = pytest.mark.timeout(900)

MADE = outputs()
HINT = "`make golden` rewrites the kept files; look at their difference before it is committed"


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_output_matches_the_stored_one(name: str) -> None:
    path = RETAINED / name
    assert path.is_file(), f"{name} is not stored yet\n{HINT}"
    old, new = path.read_bytes().decode(), MADE[name]()
    if old != new:
        before, after = (text.splitlines(keepends=True) for text in (old, new))
        differences = "".join(difflib.unified_diff(before, after, f"kept/{name}", "as it is now"))
        pytest.fail(f"{differences}\n{HINT}", pytrace=False)


def test_every_stored_file_is_compared() -> None:
    """A file that nothing generates any more would look as if it were tested."""
    names = {path.relative_to(RETAINED).as_posix() for path in RETAINED.rglob("*") if path.is_file()}
    assert sorted(names - set(MADE)) == [], HINT
