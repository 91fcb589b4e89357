"""The uncertainty of a side's quantiles: runs are resampled first, then blocks of time within each.

The blocks are resampled when a run is described (`chainmark.stats.replicates`); here its resamples are combined
with those of the side's other runs. Every resample consists of the number of values at or below some values, from
which all its quantiles are computed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from chainmark.compare.samples import RunSamples, SideSamples
from chainmark.stats.bootstrap import generator
from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.replicates import BAND_RESAMPLES, Replicates, resampled_ranks


def band(replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The pointwise 90 % band of replicates; resamples without a value are ignored.

    Args:
        replicates: shape (resamples, points).
    """
    points = replicates.T  # sorting rows is faster than sorting columns
    ordered = np.sort(points[:, np.isfinite(points).all(axis=0)])
    last = ordered.shape[1] - 1
    return ordered[:, round(0.05 * last)], ordered[:, round(0.95 * last)]


class Resampler:
    """Quantiles of a side's pooled samples, resampled.

    Args:
        samples: of the runs; quantiles exist if at least one has some.
        side: its name, which together with the metric's id and the seed selects the runs and their resamples.
        metric_id: the metric.
        seed: of the comparison.
    """

    def __init__(self, samples: SideSamples, side: str, metric_id: str, seed: int) -> None:
        self._samples = samples
        self._purpose = (seed, "charts", side, metric_id)
        drawn = [(run, run.described.replicates) for run in samples.present]
        self._drawn = [(run, replicates) for run, replicates in drawn if replicates is not None]
        self.runs = len(samples.runs)

    @property
    def in_bundles(self) -> bool:
        """Whether a resample consists of more than one unit."""
        return any(replicates.coarse for _, replicates in self._drawn)

    def quantiles(self, fractions: FloatArray) -> FloatArray:
        """Replicates, shape (resamples, fractions), in the metric's unit; NaN if a resample has no value."""
        ranks = resampled_ranks(*self._counts, fractions)
        values = self._samples.pooled.at_ranks(np.maximum(ranks, 0).ravel()).reshape(ranks.shape)
        return np.where(ranks < 0, np.nan, values)

    def band(self, fractions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The pointwise 90 % band of the quantiles, shape (fractions,) each: that of their ranks, by their values."""
        ranks = resampled_ranks(*self._counts, fractions)
        low, high = band(np.where(ranks < 0, np.nan, ranks))
        pooled = self._samples.pooled
        return pooled.at_ranks(low.astype(np.int64)), pooled.at_ranks(high.astype(np.int64))

    @cached_property
    def _counts(self) -> tuple[IntArray, IntArray]:
        """The count of values at or below each point, in the sample (points,) and its resamples (resamples, points)."""
        rng = generator(*self._purpose)
        values = np.unique(np.concatenate([np.empty(0), *(_known(*item) for item in self._drawn)]))
        times = _times_drawn(rng, len(self._drawn))
        sums = np.zeros((BAND_RESAMPLES, len(values)), dtype=np.int64)
        for index, (run, replicates) in enumerate(self._drawn):
            # Runs with one seed draw the same blocks: a separate order combines their resamples randomly.
            order = rng.permutation(BAND_RESAMPLES)
            sums += replicates.at(run.knots, values)[order] * times[:, index, None]
        pooled = self._samples.pooled
        return pooled.at_or_below[np.searchsorted(pooled.values, values)], sums


def _known(run: RunSamples, replicates: Replicates) -> FloatArray:
    """The values at which a run's resamples are known."""
    return run.knots.values[replicates.places]


def _times_drawn(rng: np.random.Generator, runs: int) -> IntArray:
    """The count of each run in every resample, shape (resamples, runs)."""
    drawn = rng.integers(0, runs, size=(BAND_RESAMPLES, runs))
    return np.stack([(drawn == index).sum(axis=1, dtype=np.int64) for index in range(runs)], axis=1)
