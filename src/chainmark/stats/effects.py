"""Model-free measures of the difference between two samples."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from chainmark.stats.centiles import FloatArray
from chainmark.stats.knots import Knots


class TwoSamples:
    """One sample compared with another, by the distribution functions at their knots.

    For whole samples all figures are exact. Otherwise each distribution function is off by less than 1 / 1,985
    between its knots: the gap by less than that, the probability by less than twice that.

    Source: docs/concepts/distributions.md, "What a comparison reads".

    Args:
        baseline: of at least one sample.
        candidate: likewise.
    """

    def __init__(self, baseline: Knots, candidate: Knots) -> None:
        self._n, self._m = baseline.n, candidate.n
        self._values = np.union1d(baseline.values, candidate.values)
        self._below, self._at_or_below = baseline.shares(self._values)
        self._candidate_below, self._candidate_at_or_below = candidate.shares(self._values)

    def probability_larger(self) -> float:
        """P(candidate > baseline) + P(equal) / 2 for one sample of each.

        Source: Vargha and Delaney (2000), measure A; the Mann-Whitney statistic over n m.
        """
        at = self._candidate_at_or_below - self._candidate_below
        between = self._candidate_below[1:] - self._candidate_at_or_below[:-1]
        wins = (at * (self._below + self._at_or_below)).sum()
        wins += (between * (self._at_or_below[:-1] + self._below[1:])).sum()
        return float(wins) / (2.0 * (self._n * self._m))

    def wasserstein(self) -> float:
        """Area between the two CDFs, in the metric's unit."""
        start = self._gaps[:-1]
        end = (self._candidate_below / self._m - self._below / self._n)[1:]
        both = np.abs(start) + np.abs(end)
        # Between two knots the distance of the CDFs is linear; if it changes its sign, the area is two triangles.
        crossed = np.divide(start * start + end * end, 2.0 * both, out=np.zeros(len(both)), where=both > 0.0)
        heights = np.where(start * end >= 0.0, 0.5 * both, crossed)
        return float((heights * np.diff(self._values)).sum())

    def largest_gap(self) -> tuple[float, float]:
        """Largest vertical distance of the two CDFs at a knot, and the smallest value at which it occurs.

        Returns:
            The gap (0 to 1) and the value, in the metric's unit.
        """
        gaps = np.abs(self._gaps)
        position = int(gaps.argmax())
        return float(gaps[position]), float(self._values[position])

    @cached_property
    def _gaps(self) -> FloatArray:
        """The excess share of the candidate over the baseline at or below each value."""
        gaps: FloatArray = self._candidate_at_or_below / self._m - self._at_or_below / self._n
        return gaps
