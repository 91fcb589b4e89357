"""The images in the documentation match the current output of chainmark."""

from __future__ import annotations

import pytest

from tests.pictures import IMAGES, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_not_stale(name: str) -> None:
    assert (IMAGES / f"{name}.png").read_bytes() == PICTURES[name](), f"run `make pictures`: {name}.png is stale"
