"""How far a side's quantiles could have come out otherwise: runs resampled first, then blocks of time within each.

Resampled are bundles of rows, all rows of a unit at least. Of every resample it is counted how many values are at or
below the values of a grid: its distribution function, from which all its quantiles are read.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from chainmark.compare.inputs import Bundles
from chainmark.compare.samples import ChartSide
from chainmark.core.metric import Metric, Population
from chainmark.stats.bootstrap import Multiplicities, generator, multiplicities, optimal_block_length
from chainmark.stats.centiles import FloatArray, IntArray, centile_index, centile_indices

BAND_RESAMPLES = 200
_GRID = 400  # values at which the distribution functions of resamples are known, where more are distinct
_ENDS = 32  # lowest and highest values that are in the grid as well, and as many quantiles beyond them: tails are long
_CHUNK_ELEMENTS = 2_000_000  # held at a time: bounds the memory
_FEW = 20  # rows of a bundle: so many are weighted one by one sooner than counted
_EXACT_IN_FLOAT32 = 2**24  # whole numbers up to it; the product takes half the time
_MANY = 256  # rows of a bundle: so many are sorted sooner than looked up


def band(replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The pointwise 90 % band of replicates; resamples without a value tell nothing.

    Args:
        replicates: shape (resamples, points).
    """
    ordered = np.sort(replicates[np.isfinite(replicates).all(axis=1)], axis=0)
    last = len(ordered) - 1
    return ordered[round(0.05 * last)], ordered[round(0.95 * last)]


def resampled_quantiles(
    pooled: FloatArray, at_or_below: IntArray, counts: IntArray, fractions: FloatArray
) -> FloatArray:
    """Nearest-rank quantiles of resamples whose distribution functions are known at the values of a grid.

    Between two values of the grid a resample is taken to hold the sample's values in their proportions. Where all
    distinct values are in the grid, its quantiles are exact.

    Args:
        pooled: shape (n,), ascending, in the metric's unit.
        at_or_below: shape (points,), the number of them at or below each value of the grid; the last is n.
        counts: shape (resamples, points), the same of every resample.
        fractions: shape (fractions,), 0 to 1.

    Returns:
        Shape (resamples, fractions), in the metric's unit; NaN where a resample holds no value.
    """
    result = np.full((len(counts), len(fractions)), np.nan)
    full = np.flatnonzero(counts[:, -1])
    known = np.pad(counts[full], ((0, 0), (1, 0)))
    # Far enough apart that all resamples together are one ascending row.
    offsets = (np.arange(len(full)) * (known[:, -1].max(initial=0) + 1))[:, None]
    wanted = centile_indices(known[:, -1], fractions)
    cells = np.searchsorted((known + offsets).ravel(), (wanted + offsets).ravel(), side="right").reshape(wanted.shape)
    after = cells - np.arange(len(full))[:, None] * known.shape[1]
    low, high = (np.take_along_axis(known, places, axis=1) for places in (after - 1, after))
    edges = np.append(0, at_or_below)
    ranks = edges[after - 1] + (wanted - low) * (edges[after] - edges[after - 1]) // (high - low)
    result[full] = pooled[ranks]
    return result


class Resampler:
    """Quantiles of a side's pooled samples, resampled.

    Args:
        side: the runs.
        metric: whose samples; quantiles exist where at least one run has some.
        population: of the metric.
        seed: with the side's name and the metric's id it decides every resample.
    """

    def __init__(self, side: ChartSide, metric: Metric, population: Population, seed: int) -> None:
        samples = side.samples(metric)
        self._purpose = (seed, "charts", side.name, metric.id)
        self._runs = [run for run in samples.runs if len(run.ascending)]
        self._pooled = samples.pooled
        self._population = population
        self.runs = len(side.runs)

    @property
    def in_bundles(self) -> bool:
        """Whether a resampled bundle holds more than one unit."""
        return any(run.run.bundles(self._population).coarse for run in self._runs)

    def quantiles(self, fractions: FloatArray) -> FloatArray:
        """Replicates, shape (resamples, fractions), in the metric's unit."""
        return resampled_quantiles(self._pooled, *self._counts, fractions)

    @cached_property
    def _counts(self) -> tuple[IntArray, IntArray]:
        """Values at or below those of a grid, of the sample (points,) and of its resamples (resamples, points)."""
        rng = generator(*self._purpose)
        grid = _grid(self._pooled)
        drawn = _drawn(rng, len(self._runs))
        sums = np.zeros((BAND_RESAMPLES, len(grid)), dtype=np.int64)
        for index, run in enumerate(self._runs):
            bundles = run.run.bundles(self._population)
            values = run.values if bundles.order is None else run.values[bundles.order]
            length = _block_length(values, bundles)
            chunks = multiplicities(rng, len(bundles.starts) - 1, length, BAND_RESAMPLES)
            weights = np.concatenate(list(chunks)) * drawn[:, index, None]
            sums += resampled_counts(weights, values, bundles.starts, grid)
        return np.searchsorted(self._pooled, grid, side="right"), sums


def _grid(pooled: FloatArray) -> FloatArray:
    """All distinct values where they are few; else as many quantiles, and the values at both ends."""
    is_last = np.append(pooled[1:] != pooled[:-1], True)
    found: FloatArray
    if np.count_nonzero(is_last) <= _GRID:
        found = pooled[is_last]
        return found
    n = len(pooled)
    places = [centile_index(n, float(fraction)) for fraction in np.linspace(0.0, 1.0, _GRID)]
    beyond = np.geomspace(_ENDS, max(_ENDS, n / 50.0), _ENDS).astype(np.int64)
    ends = np.concatenate([np.arange(_ENDS), beyond])
    found = np.unique(pooled[np.concatenate([places, ends, n - 1 - ends])])
    return found


def _drawn(rng: np.random.Generator, runs: int) -> Multiplicities:
    """How often each run is drawn, shape (resamples, runs)."""
    drawn = rng.integers(0, runs, size=(BAND_RESAMPLES, runs))
    return np.stack([(drawn == index).sum(axis=1, dtype=np.int32) for index in range(runs)], axis=1)


def _block_length(values: FloatArray, bundles: Bundles) -> float:
    if not bundles.ordered:
        return 1.0
    valid = np.isfinite(values)
    if bool(valid.all()):
        return optimal_block_length(np.add.reduceat(values, bundles.starts[:-1]) / np.diff(bundles.starts))
    counts = np.add.reduceat(valid, bundles.starts[:-1], dtype=np.int64)
    sums = np.add.reduceat(np.where(valid, values, 0.0), bundles.starts[:-1])
    present = counts > 0
    return optimal_block_length(sums[present] / counts[present])


def resampled_counts(weights: Multiplicities, values: FloatArray, starts: IntArray, grid: FloatArray) -> IntArray:
    """How many values of each resample are at or below each value of the grid.

    Args:
        weights: shape (resamples, bundles), how often each bundle is drawn.
        values: shape (rows,), bundle by bundle, in the metric's unit, NaN where there is none.
        starts: shape (bundles + 1,), where each bundle begins, and the number of rows.
        grid: shape (points,), ascending; the last value is not below any of the values.

    Returns:
        Shape (resamples, points).
    """
    if len(values) <= _FEW * (len(starts) - 1):
        return _weighted(weights, values, starts, grid)
    # Sums of whole numbers that the type holds exactly: the order in which BLAS adds them does not matter.
    most = int((weights @ np.diff(starts)).max(initial=0))
    exact = np.dtype(np.float32 if most < _EXACT_IN_FLOAT32 else np.float64)
    counts: IntArray = (weights.astype(exact) @ _at_or_below(values, starts, grid, exact)).astype(np.int64)
    return counts


def _weighted(weights: Multiplicities, values: FloatArray, starts: IntArray, grid: FloatArray) -> IntArray:
    """The same, value by value."""
    order = np.argsort(values, kind="stable")[: np.count_nonzero(np.isfinite(values))]  # NaN comes last
    bundle_of_value = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[order]
    last = np.searchsorted(values[order], grid, side="right")
    counts = np.empty((len(weights), len(grid)), dtype=np.int64)
    rows = max(1, _CHUNK_ELEMENTS // max(1, len(order)))
    for first in range(0, len(weights), rows):
        drawn = np.take(weights[first : first + rows], bundle_of_value, axis=1)
        counts[first : first + rows] = drawn.cumsum(axis=1, dtype=np.int32)[:, last - 1]
    counts[:, last == 0] = 0
    return counts


def _at_or_below(values: FloatArray, starts: IntArray, grid: FloatArray, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """How many values of each bundle are at or below each value of the grid, shape (bundles, points)."""
    bundles, points = len(starts) - 1, len(grid)
    table = np.empty((bundles, points), dtype=kind)
    if len(values) > _MANY * bundles:
        for bundle, (start, end) in enumerate(pairwise(starts.tolist())):
            table[bundle] = np.searchsorted(np.sort(values[start:end]), grid, side="right")
        return table
    rows = max(1, _CHUNK_ELEMENTS // max(points + 1, _MANY))
    for first in range(0, bundles, rows):
        edges = starts[first : first + rows + 1]
        count = len(edges) - 1
        cells = np.searchsorted(grid, values[edges[0] : edges[-1]])  # NaN has a cell of its own, the last one
        cells += np.repeat(np.arange(count) * (points + 1), np.diff(edges))
        counted = np.bincount(cells, minlength=count * (points + 1)).reshape(count, points + 1)
        table[first : first + rows] = counted[:, :-1].cumsum(axis=1)
    return table
