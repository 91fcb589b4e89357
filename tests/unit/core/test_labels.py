"""Labels: runs belong to one cell if the labels that both state are equal."""

from __future__ import annotations

import pytest

from chainmark.core.labels import cell_of, same_cell

MID = {"hardware": ["mid", "8 cores"], "scenario": ["standard"], "endpoint": ["/block"]}


def test_endpoints_do_not_name_a_cell() -> None:
    assert cell_of({**MID, "deployment": []}) == {"hardware": "mid", "scenario": "standard"}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"endpoint": ["/account/balance"]}, True),
        ({"hardware": ["mid"]}, True),  # a label that only one of them states is not a contradiction
        ({"hardware": ["mid", "8 cores"], "deployment": ["Docker Compose"]}, True),
        ({"hardware": ["mid", "16 cores"]}, False),
        ({"hardware": ["advanced", "8 cores"]}, False),
        ({"hardware": ["mid", "8 cores"], "scenario": ["huge address"]}, False),
    ],
)
def test_cells_are_compared_by_the_fields_that_both_state(other: dict[str, list[str]], same: bool) -> None:
    assert same_cell(MID, other) == same_cell(other, MID) == same
