"""The labels that identify a run, by key, and those of them that name the cell of a matrix of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.core.verdict import Verdict

ENDPOINT = "endpoint"  # the measured part of the subject
SLA = "sla"  # whether the run met its service level
_NOT_OF_CELL = frozenset({ENDPOINT, SLA})

Labels = Mapping[str, Sequence[str]]


def sla_label(result: Verdict) -> str:
    """The value of a run's label `sla`, which selectors use: "met", "missed", or the verdict itself."""
    if result is Verdict.PASS:
        return "met"
    return "missed" if result is Verdict.FAIL else result.value


def cell_of(labels: Labels) -> dict[str, str]:
    """The first value of every key of `Manifest.labels` that names a cell."""
    return {key: words[0] for key, words in labels.items() if words and key not in _NOT_OF_CELL}


def same_cell(left: Labels, right: Labels) -> bool:
    """Whether two runs are of one cell, as far as both state it: by its name and its description.

    Two machines with one name are two cells if their descriptions differ.
    """
    shared = (left.keys() & right.keys()) - _NOT_OF_CELL
    return all(_agree(left[key], right[key]) for key in shared if left[key] and right[key])


def _agree(left: Sequence[str], right: Sequence[str]) -> bool:
    more, of_right = set(left[1:]), set(right[1:])
    return left[0] == right[0] and (not more or not of_right or bool(more & of_right))
