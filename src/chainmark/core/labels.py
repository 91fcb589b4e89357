"""The words by which a run is found, by key: what of them names the cell of a matrix of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The one label that names no cell: what of the subject was measured.
ENDPOINT = "endpoint"


def cell_of(labels: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The first word of every key of `Manifest.labels` that names a cell."""
    return {key: words[0] for key, words in labels.items() if words and key != ENDPOINT}
