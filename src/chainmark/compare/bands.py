"""How far a side's quantiles could have come out otherwise: runs resampled first, then blocks of time within each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from chainmark.compare.inputs import Bundles
from chainmark.compare.samples import ChartSide, RunSamples
from chainmark.core.metric import Metric, Population
from chainmark.stats.bootstrap import (
    Multiplicities,
    generator,
    multiplicities,
    optimal_block_length,
    resampled_centiles,
)
from chainmark.stats.centiles import FloatArray, IntArray, centile_index
from chainmark.stats.units import Units, block_length, unit_sums
from chainmark.stats.woodruff import LARGE_ROWS

BAND_RESAMPLES = 200
_CHUNK = 10  # resamples of rows held at a time: bounds the memory
_GRID = 400  # values at which the distribution functions of resamples of bundles are known


@dataclass(frozen=True)
class _Part:
    """One run's finite values, and the units in which they are resampled."""

    values: FloatArray
    unit_of_value: IntArray
    units: int
    block_length: float


def _part(values: FloatArray, units: Units) -> _Part:
    kept = np.isfinite(values)
    length = block_length([unit_sums(values, units)], ordered=units.ordered)
    return _Part(values[kept], units.of_row[kept], units.count, length)


def band(replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The pointwise 90 % band of replicates.

    Args:
        replicates: shape (resamples, points).
    """
    ordered = np.sort(replicates, axis=0)
    last = len(ordered) - 1
    return ordered[round(0.05 * last)], ordered[round(0.95 * last)]


class Resampler:
    """Quantiles of a side's pooled samples, resampled. A run with very many rows is resampled in bundles of them.

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
        """Whether bundles of neighbouring rows are resampled, instead of units of rows."""
        return any(len(run.values) > LARGE_ROWS for run in self._runs)

    def quantiles(self, fractions: FloatArray) -> FloatArray:
        """Replicates, shape (resamples, fractions), in the metric's unit."""
        return self._of_bundles(fractions) if self.in_bundles else self._of_rows(fractions)

    def _of_rows(self, fractions: FloatArray) -> FloatArray:
        rng = generator(*self._purpose)
        parts = [_part(run.values, run.run.units(self._population)) for run in self._runs]
        values = np.concatenate([part.values for part in parts])
        order = np.argsort(values, kind="stable")
        wanted = [float(fraction) for fraction in fractions]
        chunks = []
        for _ in range(BAND_RESAMPLES // _CHUNK):
            weights = np.take(_row_weights(parts, rng), order, axis=1)
            chunks.append(resampled_centiles(weights, values[order], wanted))
        return np.concatenate(chunks)

    def _of_bundles(self, fractions: FloatArray) -> FloatArray:
        """A resample has its quantile where the sample has the one of the fraction that its share became."""
        shares, resampled = self._shares
        n = len(self._pooled)
        moved = np.array([np.interp(fractions, np.append(0.0, row), np.append(0.0, shares)) for row in resampled])
        ranks = np.minimum(np.floor(moved * n + 1e-9).astype(np.int64), n - 1)
        return self._pooled[ranks]

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """The shares at or below the values of a grid, of the sample (points,) and its resamples (resamples, points).

        All sums are of whole numbers below 2^53, so that the order in which BLAS adds them does not matter.
        """
        rng = generator(*self._purpose)
        n = len(self._pooled)
        places = [centile_index(n, float(fraction)) for fraction in np.linspace(0.0, 1.0, _GRID)]
        grid = np.unique(self._pooled[places])
        drawn = _drawn(rng, BAND_RESAMPLES, len(self._runs))
        sums = np.zeros((BAND_RESAMPLES, len(grid)))
        for index, run in enumerate(self._runs):
            bundles = run.run.bundles(self._population)
            length = _bundle_block_length(run, bundles)
            weights = np.concatenate(list(multiplicities(rng, len(bundles.starts) - 1, length, BAND_RESAMPLES)))
            sums += (weights * drawn[:, index, None]).astype(np.float64) @ _at_or_below(run, bundles, grid)
        return np.searchsorted(self._pooled, grid, side="right") / n, sums / sums[:, -1:]


def _drawn(rng: np.random.Generator, resamples: int, runs: int) -> IntArray:
    """How often each run is drawn, shape (resamples, runs)."""
    drawn = rng.integers(0, runs, size=(resamples, runs))
    return np.stack([(drawn == index).sum(axis=1, dtype=np.int64) for index in range(runs)], axis=1)


def _row_weights(parts: Sequence[_Part], rng: np.random.Generator) -> Multiplicities:
    """Multiplicities of the pooled values for a few resamples, shape (chunk, n): runs drawn, then blocks."""
    drawn = _drawn(rng, _CHUNK, len(parts)).astype(np.int32)
    weights = []
    for index, part in enumerate(parts):
        chunks = list(multiplicities(rng, part.units, part.block_length, _CHUNK))
        weights.append(np.take(np.concatenate(chunks), part.unit_of_value, axis=1) * drawn[:, index, None])
    return np.concatenate(weights, axis=1)


def _in_bundles(run: RunSamples, bundles: Bundles) -> FloatArray:
    return run.values if bundles.order is None else run.values[bundles.order]


def _bundle_block_length(run: RunSamples, bundles: Bundles) -> float:
    if not bundles.ordered:
        return 1.0
    values = _in_bundles(run, bundles)
    valid = np.isfinite(values)
    counts = np.add.reduceat(valid, bundles.starts[:-1], dtype=np.int64)
    sums = np.add.reduceat(np.where(valid, values, 0.0), bundles.starts[:-1])
    present = counts > 0
    return optimal_block_length(sums[present] / counts[present])


def _at_or_below(run: RunSamples, bundles: Bundles, grid: FloatArray) -> FloatArray:
    """How many values of each bundle are at or below each value of the grid, shape (bundles, points)."""
    values = _in_bundles(run, bundles)
    ends = bundles.starts.tolist()
    counts = [
        np.searchsorted(np.sort(values[start:end]), grid, side="right")  # NaN sorts last, so it is never counted
        for start, end in pairwise(ends)
    ]
    return np.array(counts, dtype=np.float64)
