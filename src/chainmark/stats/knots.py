"""A sample reduced to some of its values: its distribution function is exact there, and nearly exact between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray, centile_indices

MOST_DISTINCT = 4000  # maximum number of values of a sample that is kept whole
EVEN_STEPS = 1985  # a larger sample has less than this share of its values between two knots; a multiple of the charts'
_ENDS = 16  # lowest and highest values that are knots as well
_BEYOND = 64  # and this many quantiles from there on: tails are long


@dataclass(frozen=True)
class Knots:
    """Some distinct values of a sample, including its extremes, with the number of values below each.

    Attributes:
        values: shape (knots,), ascending, in the metric's unit.
        below: shape (knots,), number of the sample's values that are smaller than each.
        at_or_below: shape (knots,), number of values that are not larger; the last is n.

    No value is between two knots of a sample of at most 4,000 distinct values: its results are exact. Of a larger one,
    less than 1 / 1,985 of its values are between two knots, and assumed to be spread evenly there. A distribution
    function is then off by less than 1 / 1,985 between knots, and exact at them.
    """

    values: FloatArray
    below: IntArray
    at_or_below: IntArray

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.at_or_below[-1]) if len(self.at_or_below) else 0

    @cached_property
    def is_whole(self) -> bool:
        """Whether every value of the sample is a knot."""
        return bool((self.below == np.append(0, self.at_or_below[:-1])).all())

    def ascending(self) -> FloatArray:
        """All values, shape (n,), of a whole sample."""
        return np.repeat(self.values, self.at_or_below - self.below)

    def at_ranks(self, ranks: IntArray) -> FloatArray:
        """The values at some ranks of the ascending sample, from 0."""
        upper = np.searchsorted(self.at_or_below, ranks, side="right")
        result: FloatArray = self.values[upper]
        between = np.flatnonzero(ranks < self.below[upper])
        if len(between):
            knot = upper[between]
            before = self.at_or_below[knot - 1]
            part = (ranks[between] - before + 1) / (self.below[knot] - before + 1)
            start = self.values[knot - 1]
            result[between] = start + part * (result[between] - start)
        return result

    def centiles(self, fractions: FloatArray) -> FloatArray:
        """Nearest-rank centiles, shape (fractions,), of at least one sample."""
        return self.at_ranks(centile_indices(np.array([self.n]), fractions)[0])

    def shares(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The number of samples below, and at or below, some values.

        Args:
            at: shape (points,), in the metric's unit.

        Returns:
            Two arrays of shape (points,): whole numbers except for values between two knots.
        """
        right = np.searchsorted(self.values, at)  # the first knot that is not smaller
        known = np.minimum(right, len(self.values) - 1)
        left = np.maximum(right - 1, 0)
        is_knot = self.values[known] == at
        inside = ~is_knot & (right > 0) & (right < len(self.values))
        width = np.where(inside, self.values[known] - self.values[left], 1.0)
        part = (at - self.values[left]) / width
        start = np.where(right > 0, self.at_or_below[left], 0)
        between = start + np.where(inside, part * (self.below[known] - start), 0)
        return np.where(is_knot, self.below[known], between), np.where(is_knot, self.at_or_below[known], between)


def knots_of(ascending: FloatArray, fractions: FloatArray) -> Knots:
    """Reduce a sample.

    Args:
        ascending: shape (n,), ascending, in the metric's unit; may be empty.
        fractions: centiles that must be exact, besides those of equal steps and both ends.
    """
    n = len(ascending)
    is_last = np.append(ascending[1:] != ascending[:-1], True)[:n]
    if np.count_nonzero(is_last) <= MOST_DISTINCT:
        at_or_below = np.flatnonzero(is_last) + 1
        return Knots(ascending[is_last], np.append(0, at_or_below[:-1])[: len(at_or_below)], at_or_below)
    wanted = np.concatenate([np.linspace(0.0, 1.0, EVEN_STEPS + 1), fractions])
    ends = np.concatenate([np.arange(_ENDS), np.geomspace(_ENDS, n / _ENDS, _BEYOND).astype(np.int64)])
    places = np.unique(np.concatenate([centile_indices(np.array([n]), wanted)[0], ends, n - 1 - ends]))
    values = np.unique(ascending[places])
    values = np.union1d(values, _edges_of_gaps(ascending, values))
    below, at_or_below = (np.searchsorted(ascending, values, side=side) for side in ("left", "right"))
    return Knots(values, below, at_or_below)


def _edges_of_gaps(ascending: FloatArray, values: FloatArray) -> FloatArray:
    """The values at both ends of the widest gap between two knots, if it is more than a third of their distance.

    Clustered values are not spread evenly.
    """
    gaps = np.diff(ascending)
    starts = np.searchsorted(ascending, values, side="right")[:-1] - 1
    widest = np.maximum.reduceat(gaps, starts)
    cells = np.flatnonzero(3.0 * widest > np.diff(values))
    ends = np.append(starts[1:], len(gaps))
    places = [int(starts[cell] + gaps[starts[cell] : ends[cell]].argmax()) for cell in cells]
    result: FloatArray = ascending[np.array([places, [place + 1 for place in places]], dtype=np.int64).ravel()]
    return result


def pooled(samples: Sequence[Knots]) -> Knots:
    """Several samples as one, with the knots of all."""
    present = [sample for sample in samples if sample.n]
    if len(present) == 1:
        return present[0]
    values = np.unique(np.concatenate([np.empty(0), *(item.values for item in present)]))
    below, at_or_below = np.zeros((2, len(values)), dtype=np.int64)
    for knots in present:
        lower, upper = knots.shares(values)
        below += np.rint(lower).astype(np.int64)
        at_or_below += np.rint(upper).astype(np.int64)
    return Knots(values, below, at_or_below)
