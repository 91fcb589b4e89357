"""The words by which a run is found, by key: what of them names the cell of a matrix of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The one label that names no cell: what of the subject was measured.
ENDPOINT = "endpoint"


Labels = Mapping[str, Sequence[str]]


def cell_of(labels: Labels) -> dict[str, str]:
    """The first word of every key of `Manifest.labels` that names a cell."""
    return {key: words[0] for key, words in labels.items() if words and key != ENDPOINT}


def same_cell(left: Labels, right: Labels) -> bool:
    """Whether two runs are of one cell, as far as both state it: what they call it, and what else they say of it.

    Two machines of one name are two cells where both are described, and differently.
    """
    shared = (left.keys() & right.keys()) - {ENDPOINT}
    return all(_agree(left[key], right[key]) for key in shared if left[key] and right[key])


def _agree(left: Sequence[str], right: Sequence[str]) -> bool:
    more, of_right = set(left[1:]), set(right[1:])
    return left[0] == right[0] and (not more or not of_right or bool(more & of_right))
