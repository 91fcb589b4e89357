"""How far two samples lie apart, in words that need no model."""

from __future__ import annotations

import numpy as np
from scipy import stats

from chainmark.stats.centiles import FloatArray


def probability_larger(baseline: FloatArray, candidate: FloatArray) -> float:
    """P(candidate > baseline) + P(equal) / 2 for one sample of each.

    Args:
        baseline: shape (n,), n >= 1, ascending.
        candidate: shape (m,), m >= 1.

    Source: Vargha and Delaney (2000), measure A; the Mann-Whitney statistic over n m.
    """
    below = np.searchsorted(baseline, candidate, side="left")
    not_above = np.searchsorted(baseline, candidate, side="right")
    pairs = len(baseline) * len(candidate)
    return int(below.sum() + not_above.sum()) / (2.0 * pairs)


def wasserstein(baseline: FloatArray, candidate: FloatArray) -> float:
    """Area between the two CDFs, in the metric's unit."""
    return float(stats.wasserstein_distance(baseline, candidate))


def largest_gap(baseline: FloatArray, candidate: FloatArray) -> tuple[float, float]:
    """Largest vertical distance of the two CDFs and the smallest value at which it occurs.

    Args:
        baseline: shape (n,), n >= 1, ascending, in the metric's unit.
        candidate: shape (m,), m >= 1, ascending.

    Returns:
        The gap (0 to 1) and the value, in the metric's unit.
    """
    values = np.union1d(baseline, candidate)
    left = np.searchsorted(baseline, values, side="right") / len(baseline)
    right = np.searchsorted(candidate, values, side="right") / len(candidate)
    gaps = np.abs(left - right)
    position = int(gaps.argmax())
    return float(gaps[position]), float(values[position])
