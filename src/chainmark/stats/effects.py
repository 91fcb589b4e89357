"""How far two samples lie apart, in words that need no model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray

LARGE_SAMPLE = 1_000_000  # beyond it a sample is compared by as many quantiles as there are cells
CELLS = 65_536  # of equal share


def _quantiles(sorted_values: FloatArray, within: float) -> FloatArray:
    """The value in each cell that has this share of the cell's samples below it; all values of a smaller sample."""
    if len(sorted_values) <= CELLS:
        return sorted_values
    places = ((np.arange(CELLS) + within) / CELLS * len(sorted_values)).astype(np.int64)
    return sorted_values[np.minimum(places, len(sorted_values) - 1)]


def _cell_means(sorted_values: FloatArray) -> FloatArray:
    """The mean of every cell of equal share, of at least as many values as there are cells."""
    edges = np.arange(CELLS + 1) * len(sorted_values) // CELLS
    means: FloatArray = np.add.reduceat(sorted_values, edges[:-1]) / np.diff(edges)
    return means


class TwoSamples:
    """One sample beside another; they are merged once for all that is said of them.

    Args:
        baseline: shape (n,), n >= 1, ascending, in the metric's unit.
        candidate: shape (m,), m >= 1, likewise.
    """

    def __init__(self, baseline: FloatArray, candidate: FloatArray) -> None:
        self._baseline, self._candidate = baseline, candidate
        self._is_large = max(len(baseline), len(candidate)) > LARGE_SAMPLE

    @cached_property
    def _merged(self) -> _Merged:
        n = len(self._baseline)
        both = np.concatenate([self._baseline, self._candidate])
        order = np.argsort(both, kind="stable")  # merges what is sorted already
        values = both[order]
        last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
        before = np.cumsum(order < n, dtype=np.int64)[last]
        return _Merged(values[last], before, last + 1 - before, last)

    def probability_larger(self) -> float:
        """P(candidate > baseline) + P(equal) / 2 for one sample of each.

        Of a large sample, the candidate's is replaced by the middles of 65,536 cells of equal share: the result, a
        mean of a monotone function with values from 0 to 1, moves by at most 1 / 131,072.

        Source: Vargha and Delaney (2000), measure A; the Mann-Whitney statistic over n m.
        """
        if self._is_large:
            candidate = _quantiles(self._candidate, 0.5)
            below = int(np.searchsorted(self._baseline, candidate, side="left").sum())
            not_above = int(np.searchsorted(self._baseline, candidate, side="right").sum())
            return (below + not_above) / (2.0 * (len(self._baseline) * len(candidate)))
        found = self._merged
        each = np.diff(found.candidate, prepend=0)
        equal = np.diff(found.baseline, prepend=0)
        wins = int((each * (2 * found.baseline - equal)).sum())
        return wins / (2.0 * (len(self._baseline) * len(self._candidate)))

    def wasserstein(self) -> float:
        """Area between the two CDFs, in the metric's unit.

        Large samples are compared by the means of 65,536 cells of equal share. Only in a cell in which the quantile
        functions cross does that differ from the area, which it never passes but for the rounding of the cells' edges.
        """
        left, right = self._baseline, self._candidate
        if self._is_large and min(len(left), len(right)) >= CELLS:
            return float(np.abs(_cell_means(right) - _cell_means(left)).mean())
        found = self._merged
        # Of equal values the last one carries the area, the others nothing: the sum is that over all samples.
        areas = np.zeros(len(left) + len(right) - 1)
        areas[found.last[:-1]] = self._gaps(found.baseline, found.candidate)[:-1] * np.diff(found.values)
        return float(areas.sum())

    def largest_gap(self) -> tuple[float, float]:
        """Largest vertical distance of the two CDFs and the smallest value at which it occurs.

        Of large samples the CDFs are compared at the edges of 65,536 cells of equal share of each: the gap found is
        exact there, and no gap elsewhere is larger by 1 / 65,536.

        Returns:
            The gap (0 to 1) and the value, in the metric's unit.
        """
        if self._is_large:
            sides = (self._baseline, self._candidate)
            values = np.unique(np.concatenate([part for one in sides for part in (_quantiles(one, 0.0), one[-1:])]))
            gaps = self._gaps(*(np.searchsorted(one, values, side="right") for one in sides))
        else:
            values = self._merged.values
            gaps = self._gaps(self._merged.baseline, self._merged.candidate)
        position = int(gaps.argmax())
        return float(gaps[position]), float(values[position])

    def _gaps(self, baseline: IntArray, candidate: IntArray) -> FloatArray:
        """Vertical distances of the two CDFs where so many samples of each are at or below."""
        return np.abs(baseline / len(self._baseline) - candidate / len(self._candidate))


@dataclass(frozen=True)
class _Merged:
    """Both samples in one row.

    Attributes:
        values: shape (distinct,), ascending.
        baseline, candidate: shape (distinct,), how many samples of each are at or below the value.
        last: shape (distinct,), the place of the value's last sample in the row.
    """

    values: FloatArray
    baseline: IntArray
    candidate: IntArray
    last: IntArray
