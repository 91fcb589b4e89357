"""The distribution functions of a run's resamples: blocks of time are redrawn, and values below some limits counted.

Bundles of rows are resampled, at least all rows of a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from chainmark._native import resampled_ranks as _resampled_ranks
from chainmark.core.metric import Population
from chainmark.stats.bootstrap import Multiplicities, multiplicities, optimal_block_length
from chainmark.stats.centiles import BoolArray, FloatArray, IntArray, centile_indices
from chainmark.stats.knots import Knots
from chainmark.stats.samples import OrderedSamples
from chainmark.stats.units import Units, plain_units

BAND_RESAMPLES = 200
MOST_BUNDLES = 4096  # of units
_MOST_EXACT = 400  # knots: a distribution with at most this many is resampled at all of them
_EVEN = 64  # otherwise at this many quantiles
_ENDS = 8  # and at this many of the lowest and highest values
_BEYOND = 28  # and at this many quantiles between these and the middle: tails are long
_CHUNK_ELEMENTS = 2_000_000  # maximum held at a time: bounds the memory
_FEW = 20  # rows per bundle: so few are faster to weight one by one than to count
_EXACT_IN_FLOAT32 = 2**24  # whole numbers up to it; the product takes half the time
_FEW_ROWS = 128  # per point: so few take less space than 200 resamples of them
_MANY = 256  # rows per bundle: so few are faster to sort than to look up


@dataclass(frozen=True)
class Instants:
    """Rows that share a time value.

    Attributes:
        starts: shape (instants,), the first row of each, ascending.
        times: shape (instants,), ascending.
        rows: all of them.
    """

    starts: IntArray
    times: FloatArray
    rows: int

    def of(self, present: BoolArray) -> Instants:
        """The same of those rows only, shape (rows,); an instant without one is omitted."""
        absent = np.flatnonzero(~present)
        starts = self.starts - np.searchsorted(absent, self.starts)
        rows = self.rows - len(absent)
        held = np.diff(starts, append=rows) > 0
        return Instants(starts[held], self.times[held], rows)


def instants_of(times: FloatArray) -> Instants | None:
    """The time values of rows in order, shape (rows,); None if some row has none."""
    if not bool(np.isfinite(times).all()):
        return None
    starts = np.flatnonzero(np.diff(times, prepend=np.nan) != 0.0)
    return Instants(starts, times[starts], len(times))


@dataclass(frozen=True)
class Bundles:
    """Rows in bundles of neighbouring units.

    Attributes:
        order: shape (rows,), the rows bundle by bundle; None if they are in this order already.
        starts: shape (bundles + 1,), where each bundle begins, and the number of rows.
        ordered: whether neighbouring bundles are neighbours in time.
        coarse: whether a bundle holds more than one unit.
    """

    order: IntArray | None
    starts: IntArray
    ordered: bool
    coarse: bool


def bundles_of(samples: OrderedSamples, population: Population, instants: Instants | None) -> Bundles:
    """A population's rows in bundles of neighbouring units, or of single ones.

    Args:
        samples: of the population.
        population: defines a unit.
        instants: of its rows; None if they have no time.
    """
    if population.average_over and instants is not None and instants.rows:  # rows lie instant by instant
        size = math.ceil(len(instants.starts) / MOST_BUNDLES)
        return Bundles(None, np.append(instants.starts[::size], instants.rows), ordered=True, coarse=size > 1)
    units = plain_units(samples.keys(), population)
    return _bundled(units.bundled(MOST_BUNDLES), coarse=units.count > MOST_BUNDLES)


def _bundled(units: Units, *, coarse: bool) -> Bundles:
    lies_so = bool((np.diff(units.of_row) >= 0).all())
    order = None if lies_so else np.argsort(units.of_row, kind="stable")
    in_order = units.of_row if order is None else units.of_row[order]
    return Bundles(order, np.searchsorted(in_order, np.arange(units.count + 1)), units.ordered, coarse)


@dataclass(frozen=True)
class Drawn:
    """The resampled data, as far as resamples depend on them: in a small run they are smaller than its resamples.

    Attributes:
        rows: shape (bundles,), of each bundle.
        cells: shape (rows,), bundle by bundle: the index of the first point that a value is at or below; without a
            value, the number of points.
        block_length: mean, in bundles.
    """

    rows: IntArray
    cells: IntArray
    block_length: float

    def counts(self, points: int, rng: np.random.Generator) -> IntArray:
        """Counts of values of each resample at or below the points, shape (resamples, points); same generator."""
        weights = np.concatenate(list(multiplicities(rng, len(self.rows), self.block_length, BAND_RESAMPLES)))
        bounds = np.append(0, np.cumsum(self.rows))
        return resampled_counts(weights, self.cells.astype(np.float64), bounds, np.arange(points, dtype=np.float64))


@dataclass(frozen=True)
class Replicates:
    """The distribution functions of a run's resamples.

    Attributes:
        places: shape (points,), the indices of the knots at which they are known, including the last one.
        counted: shape (resamples, points), values of each resample at or below these knots; or a function that counts
            them, which is called when they are first needed.
        coarse: whether bundles of units were resampled.
        drawn: their input, if that is smaller to store.
    """

    places: IntArray
    counted: IntArray | Callable[[], IntArray]
    coarse: bool
    drawn: Drawn | None = None

    @cached_property
    def counts(self) -> IntArray:
        """Number of values of each resample at or below the knots of ``places``, shape (resamples, points)."""
        return self.counted() if callable(self.counted) else self.counted

    def at(self, knots: Knots, values: FloatArray) -> IntArray:
        """Number of values of each resample at or below other values than its knots, shape (resamples, len(values)).

        Between two points a resample is assumed to hold the run's values in their proportions.

        Args:
            knots: of the run.
            values: shape (values,), in the metric's unit.
        """
        if np.array_equal(values, knots.values[self.places]):
            return self.counts
        ranks = np.append(0, knots.at_or_below[self.places])
        counts = np.pad(self.counts, ((0, 0), (1, 0)))
        wanted = knots.shares(values)[1]
        after = np.maximum(1, np.searchsorted(ranks, wanted))
        part = (wanted - ranks[after - 1]) / (ranks[after] - ranks[after - 1])
        low, high = counts[:, after - 1], counts[:, after]
        result: IntArray = (low + np.floor(part * (high - low))).astype(np.int64)
        return result


def replicates_of(values: FloatArray, knots: Knots, bundles: Bundles, rng: np.random.Generator) -> Replicates:
    """Resample a run.

    Args:
        values: shape (rows,), in total order, in the metric's unit, NaN if there is none.
        knots: of these values, of which there is at least one.
        bundles: of the rows.
        rng: consumed in a fixed order.
    """
    places = _places(knots)
    own = values if bundles.order is None else values[bundles.order]
    block_length, grid = _block_length(own, bundles), knots.values[places]
    if len(own) <= _FEW_ROWS * len(places):
        drawn = Drawn(np.diff(bundles.starts), np.searchsorted(grid, own), block_length)  # NaN is after all others
        return Replicates(places, partial(drawn.counts, len(places), rng), bundles.coarse, drawn)
    chunks = multiplicities(rng, len(bundles.starts) - 1, block_length, BAND_RESAMPLES)
    counts = resampled_counts(np.concatenate(list(chunks)), own, bundles.starts, grid)
    return Replicates(places, counts, bundles.coarse)


def _places(knots: Knots) -> IntArray:
    """All knots if they are few; otherwise those at quantiles, denser towards both ends."""
    if len(knots.values) <= _MOST_EXACT:
        return np.arange(len(knots.values))
    n = knots.n
    beyond = np.geomspace(_ENDS, max(_ENDS, n / _EVEN), _BEYOND).astype(np.int64)
    ends = np.concatenate([np.arange(_ENDS), beyond])
    even = centile_indices(np.array([n]), np.linspace(0.0, 1.0, _EVEN + 1))[0]
    ranks = np.concatenate([even, ends, n - 1 - ends])
    return np.unique(np.searchsorted(knots.at_or_below, ranks, side="right"))


def resampled_ranks(at_or_below: IntArray, counts: IntArray, fractions: FloatArray) -> IntArray:
    """The positions of the nearest-rank quantiles of resamples among the sample's ascending values.

    Between two known values a resample is assumed to hold the sample's values in their proportions. If all distinct
    values are known, its quantiles are exact.

    Args:
        at_or_below: shape (points,), number of the sample's values at or below each known value; the last is n.
        counts: shape (resamples, points), the same of every resample.
        fractions: shape (fractions,), 0 to 1.

    Returns:
        Shape (resamples, fractions); -1 if a resample holds no value.
    """
    ranks = np.empty((len(fractions), len(counts)), dtype=np.int64)
    _resampled_ranks(at_or_below, counts, fractions, ranks)
    return ranks.T


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
    """The number of values of each resample at or below each value of the grid.

    Args:
        weights: shape (resamples, bundles), how often each bundle is drawn.
        values: shape (rows,), bundle by bundle, in the metric's unit, NaN if there is none.
        starts: shape (bundles + 1,), where each bundle begins, and the number of rows.
        grid: shape (points,), ascending; the last value is not below any of the values.

    Returns:
        Shape (resamples, points).
    """
    if len(values) <= _FEW * (len(starts) - 1):
        return _weighted(weights, values, starts, grid)
    # Sums of whole numbers that the type holds exactly: the order in which BLAS adds them does not matter.
    most = int((weights @ np.diff(starts)).max())
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
    """The number of values of each bundle at or below each value of the grid, shape (bundles, points)."""
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
        cells = np.searchsorted(grid, values[edges[0] : edges[-1]])  # NaN has its own cell, the last one
        cells += np.repeat(np.arange(count) * (points + 1), np.diff(edges))
        counted = np.bincount(cells, minlength=count * (points + 1)).reshape(count, points + 1)
        table[first : first + rows] = counted[:, :-1].cumsum(axis=1)
    return table
