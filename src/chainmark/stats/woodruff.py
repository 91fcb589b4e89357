"""Standard errors of populations that are too large to resample row by row: only sums over units are resampled.

A centile's error follows from that of a share. Take the values at or below the centile: their share F is a mean, and
a resample's share F* is a ratio of sums over units. A resample in which the share is larger by F* - F has its centile
where the sample has the one of the fraction p - (F* - F): the empirical quantile function there is the replicate.

Source: Woodruff (1952), "Confidence intervals for medians and other position measures", here replicate by replicate;
the same inversion as Bahadur's (1966) representation of a quantile.

Sums use BLAS, whose order of summation depends on the number of threads. All summands are therefore whole numbers
(the means' are scaled to such) whose sums stay below 2^53: every order gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from chainmark.stats.bootstrap import RESAMPLES, multiplicities
from chainmark.stats.centiles import FloatArray, IntArray, centile_index
from chainmark.stats.threads import product_threads
from chainmark.stats.units import UnitMean, Units

LARGE_ROWS = 20_000  # of a population: with more, centiles' errors come from resampled shares
MOST_UNITS = 131_072  # resampled one by one; beyond it neighbours are bundled
_CHUNK_ELEMENTS = 2_000_000  # a larger chunk is quicker and takes more memory: some 120 MB
_NEAR = 64  # ranks around a centile that are all kept; those further away are thinned to steps of 2 %
_WHOLE_BITS = 52
_STACKED_COLUMNS = 60  # multiplied at a time: a product with a few columns takes twice as long per column


@dataclass(frozen=True)
class Share:
    """One centile, and the quantile function around it.

    Attributes:
        index: of the centile among the n ascending values.
        n: number of values.
        at_or_below: number of values at or below the centile.
        ranks, values: shape (points,), some of the ascending values and their ranks; including the extremes.
    """

    index: int
    n: int
    at_or_below: int
    ranks: FloatArray
    values: FloatArray

    def replicates(self, shares: FloatArray) -> FloatArray:
        """The centile of resamples in which these are the shares of values at or below it; NaN stays NaN."""
        moved = self.index + self.at_or_below - self.n * shares
        return np.interp(moved, self.ranks, self.values)


def share_at(sorted_values: FloatArray, fraction: float) -> Share:
    """The part of ascending values needed for the error of one centile.

    Args:
        sorted_values: shape (n,), n >= 1, ascending, in the metric's unit.
        fraction: 0 to 1.
    """
    n = len(sorted_values)
    index = centile_index(n, fraction)
    steps = max(2, math.ceil(math.log(n) / math.log(1.02)))
    away = np.unique(np.concatenate([np.arange(_NEAR), np.geomspace(1.0, n, steps).round()])).astype(np.int64)
    ranks = np.unique(np.clip(np.concatenate([index - away, index + away]), 0, n - 1))
    at_or_below = int(np.searchsorted(sorted_values, sorted_values[index], side="right"))
    return Share(index, n, at_or_below, ranks.astype(np.float64), sorted_values[ranks])


@dataclass(frozen=True)
class Reduced:
    """One metric over units: the complete input of its resamples.

    Attributes:
        mean: its mean.
        shares: per fraction, its centile.
        columns: shape (units, 3 + shares), whole numbers: the mean's scaled deviations and its counts, the number of
            values, and the number of values at or below each centile.
        exponent: the deviations were multiplied by 2 to this power.
    """

    mean: UnitMean
    shares: dict[float, Share]
    columns: FloatArray
    exponent: int

    def replicates(self, sums: FloatArray) -> dict[float | None, FloatArray]:
        """Per fraction, and None for the mean, the statistic of every resample; NaN if one holds no value.

        Args:
            sums: shape (resamples, 3 + shares), of the columns.
        """
        moved = np.ldexp(_ratio(sums[:, 0], sums[:, 1]), -self.exponent)
        result: dict[float | None, FloatArray] = {None: self.mean.value + moved}
        for place, (fraction, share) in enumerate(self.shares.items(), start=3):
            result[fraction] = share.replicates(_ratio(sums[:, place], sums[:, 2]))
        return result


def _ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    result: FloatArray = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return result


def _whole(deviations: FloatArray) -> tuple[FloatArray, int]:
    """Deviations scaled by a power of 2 and rounded, so that no sum of as many of the largest one passes 2^52."""
    largest = float(np.abs(deviations).max())
    if largest == 0.0:
        return deviations, 0
    exponent = _WHOLE_BITS - math.ceil(math.log2(len(deviations))) - math.frexp(largest)[1]
    return np.rint(np.ldexp(deviations, exponent)), exponent


def reduced(
    values: FloatArray, units: Units, mean: UnitMean, sorted_values: FloatArray, fractions: Sequence[float]
) -> Reduced:
    """One metric's columns of sums over units.

    Args:
        values: shape (rows,), in the metric's unit, NaN if there is none.
        units: of the rows.
        mean: of these values and units.
        sorted_values: the finite values, ascending, at least one.
        fractions: of the centiles whose errors are needed.
    """
    shares = {fraction: share_at(sorted_values, fraction) for fraction in fractions}
    deviations, exponent = _whole(mean.sums - mean.value * mean.counts)
    limits = [float(sorted_values[share.index]) for share in shares.values()]
    counts = _at_or_below(values, units, [*limits, np.inf])
    return Reduced(mean, shares, np.column_stack([deviations, mean.counts, counts[:, -1], counts[:, :-1]]), exponent)


def _at_or_below(values: FloatArray, units: Units, limits: Sequence[float]) -> IntArray:
    """The number of values of each unit at or below each of the limits, in any order; shape (units, limits)."""
    places = np.argsort(limits, kind="stable")
    cells = units.of_row * (len(limits) + 1)  # one for NaN, which is below no limit
    for place in places:
        cells += ~(values <= limits[place])
    counted = np.bincount(cells, minlength=units.count * (len(limits) + 1)).reshape(units.count, -1)
    result = np.empty((units.count, len(limits)), dtype=np.int64)
    result[:, places] = counted.cumsum(axis=1)[:, :-1]
    return result


def replicates(
    metrics: Sequence[Reduced], units: int, block_length: float, rng: np.random.Generator
) -> list[dict[float | None, FloatArray]]:
    """Resample several metrics of a population jointly.

    Args:
        metrics: of one population.
        units: their number.
        block_length: in units.
        rng: consumed in a fixed order.

    Returns:
        Per metric its `Reduced.replicates`.
    """
    groups = _stacked(metrics)
    sums: list[list[FloatArray]] = [[] for _ in groups]
    with product_threads() as pool:
        for weights in multiplicities(rng, units, block_length, RESAMPLES, _CHUNK_ELEMENTS):
            factors = weights.astype(np.float64)
            for part, result in zip(sums, pool.map(partial(np.matmul, factors), groups), strict=True):
                part.append(result)
    columns = np.concatenate([np.concatenate(part) for part in sums], axis=1)
    ends = np.cumsum([metric.columns.shape[1] for metric in metrics])[:-1]
    return [metric.replicates(own) for metric, own in zip(metrics, np.split(columns, ends, axis=1), strict=True)]


def _stacked(metrics: Sequence[Reduced]) -> list[FloatArray]:
    """The columns of all metrics side by side, some metrics at a time."""
    widths = np.cumsum([metric.columns.shape[1] for metric in metrics])
    groups = [list(group) for _, group in groupby(zip(widths, metrics, strict=True), key=_group)]
    return [np.concatenate([metric.columns for _, metric in group], axis=1) for group in groups]


def _group(numbered: tuple[np.int64, Reduced]) -> int:
    return int(numbered[0]) // _STACKED_COLUMNS
