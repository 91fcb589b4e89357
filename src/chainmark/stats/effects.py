"""How far two samples lie apart, in words that need no model."""

from __future__ import annotations

import numpy as np

from chainmark.stats.centiles import FloatArray

LARGE_SAMPLE = 1_000_000  # beyond it a sample is compared by as many quantiles as there are cells
CELLS = 65_536  # of equal share


def _is_large(baseline: FloatArray, candidate: FloatArray) -> bool:
    return max(len(baseline), len(candidate)) > LARGE_SAMPLE


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


def probability_larger(baseline: FloatArray, candidate: FloatArray) -> float:
    """P(candidate > baseline) + P(equal) / 2 for one sample of each.

    Of a large sample, the candidate's is replaced by the middles of 65,536 cells of equal share: the result, a mean of
    a monotone function with values from 0 to 1, moves by at most 1 / 131,072.

    Args:
        baseline: shape (n,), n >= 1, ascending.
        candidate: shape (m,), m >= 1; ascending where either sample is large.

    Source: Vargha and Delaney (2000), measure A; the Mann-Whitney statistic over n m.
    """
    if _is_large(baseline, candidate):
        candidate = _quantiles(candidate, 0.5)
    below = np.searchsorted(baseline, candidate, side="left")
    not_above = np.searchsorted(baseline, candidate, side="right")
    pairs = len(baseline) * len(candidate)
    return int(below.sum() + not_above.sum()) / (2.0 * pairs)


def wasserstein(baseline: FloatArray, candidate: FloatArray) -> float:
    """Area between the two CDFs, in the metric's unit.

    Large samples are compared by the means of 65,536 cells of equal share. Only in a cell in which the quantile
    functions cross does that differ from the area, which it never passes but for the rounding of the cells' edges.

    Args:
        baseline: shape (n,), n >= 1, ascending, in the metric's unit.
        candidate: likewise.
    """
    if _is_large(baseline, candidate) and min(len(baseline), len(candidate)) >= CELLS:
        return float(np.abs(_cell_means(candidate) - _cell_means(baseline)).mean())
    values = np.sort(np.concatenate([baseline, candidate]), kind="stable")  # merges what is sorted already
    return float((_gaps(baseline, candidate, values[:-1]) * np.diff(values)).sum())


def _gaps(baseline: FloatArray, candidate: FloatArray, values: FloatArray) -> FloatArray:
    """Vertical distances of the two CDFs at values."""
    left = np.searchsorted(baseline, values, side="right") / len(baseline)
    right = np.searchsorted(candidate, values, side="right") / len(candidate)
    return np.abs(left - right)


def largest_gap(baseline: FloatArray, candidate: FloatArray) -> tuple[float, float]:
    """Largest vertical distance of the two CDFs and the smallest value at which it occurs.

    Of large samples the CDFs are compared at the edges of 65,536 cells of equal share of each: the gap found is
    exact there, and no gap elsewhere is larger by 1 / 65,536.

    Args:
        baseline: shape (n,), n >= 1, ascending, in the metric's unit.
        candidate: shape (m,), m >= 1, ascending.

    Returns:
        The gap (0 to 1) and the value, in the metric's unit.
    """
    if _is_large(baseline, candidate):
        edges = [part for sample in (baseline, candidate) for part in (_quantiles(sample, 0.0), sample[-1:])]
        values = np.unique(np.concatenate(edges))
    else:
        values = np.union1d(baseline, candidate)
    gaps = _gaps(baseline, candidate, values)
    position = int(gaps.argmax())
    return float(gaps[position]), float(values[position])
