"""The units of a population that are resampled together, and the sums of each of its metrics in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from chainmark.core.metric import Population, Weighting
from chainmark.stats.bootstrap import optimal_block_length
from chainmark.stats.centiles import FloatArray, IntArray


@dataclass(frozen=True)
class Units:
    """The units that are resampled together, and the weights in the mean.

    Attributes:
        of_row: shape (rows,), the unit of every row; units are numbered in time order.
        count: number of units.
        ordered: whether neighbouring units are neighbours in time.
        noun: name of a unit in the method's description.
        group_of_row: shape (rows,), rows that are averaged to one value; None when each row counts separately.
        of_group: shape (groups,), the unit of every group; None likewise.
        key_of_row: shape (rows,), the number of the averaged keys' values, from 0; None unless they have equal weights.
    """

    of_row: IntArray
    count: int
    ordered: bool
    noun: str
    group_of_row: IntArray | None = None
    of_group: IntArray | None = None
    key_of_row: IntArray | None = None

    def without_rows(self) -> Units:
        """The same units if only their number is needed: the arrays of a large population are large."""
        nothing = np.empty(0, dtype=np.int64)
        return replace(self, of_row=nothing, group_of_row=None, of_group=None, key_of_row=None)

    def bundled(self, most: int) -> Units:
        """The same rows in at most this many units: neighbours are bundled, equally many in each bundle.

        Blocks of bundles are blocks of time as well, so only the finest blocks become coarser.
        """
        size = math.ceil(self.count / most)
        if size <= 1:
            return self
        return replace(
            self,
            of_row=self.of_row // size,
            count=math.ceil(self.count / size),
            noun=f"bundles of {size} {self.noun}",
            of_group=None if self.of_group is None else self.of_group // size,
        )


def _numbered(keys: pl.DataFrame, names: Sequence[str]) -> IntArray:
    """Rows numbered from 0 by their distinct values of the named columns, in ascending order."""
    if not names:
        return np.zeros(keys.height, dtype=np.int64)
    chosen = keys.select(names)
    if any(series.null_count() for series in chosen):
        return chosen.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    if list(names) == keys.columns[: len(names)]:  # rows that are sorted by them already
        changes = chosen.select(pl.any_horizontal(pl.all() != pl.all().shift(1)).fill_null(value=False))
        return changes.to_series().to_numpy().cumsum(dtype=np.int64)
    if len(names) == 1 and chosen.dtypes[0] == pl.String:
        values = chosen.to_series()
        return values.cast(pl.Enum(values.unique().sort())).to_physical().cast(pl.Int64).to_numpy()
    return chosen.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()


def plain_units(keys: pl.DataFrame, population: Population) -> Units:
    """The units that are resampled together, of rows in total order; the weights in the mean remain open.

    Args:
        keys: the key columns in total order, as `OrderedSamples.keys` gives them.
        population: defines which keys are averaged, and which one is time.
    """
    ordered = population.time_key is not None
    if not population.average_over:
        return Units(np.arange(keys.height, dtype=np.int64), keys.height, ordered, "rows")
    unit = _numbered(keys, _unit_keys(population))
    return Units(unit, int(unit.max()) + 1 if len(unit) else 0, ordered, "time values" if ordered else "groups")


def _unit_keys(population: Population) -> list[str]:
    return [population.time_key] if population.time_key else _unaveraged_keys(population)


def _unaveraged_keys(population: Population) -> list[str]:
    return [key for key in population.keys if key not in population.average_over]


def units_of(keys: pl.DataFrame, population: Population) -> Units:
    """The resampling units of rows in total order.

    Args:
        keys: the key columns in total order, as `OrderedSamples.keys` gives them.
        population: defines which keys are averaged, which one is time, and the weights in the mean.
    """
    plain = plain_units(keys, population)
    if not population.average_over or population.weighting is Weighting.SAMPLES:
        return plain
    unit, time, retained = plain.of_row, _unit_keys(population), _unaveraged_keys(population)
    if population.weighting is Weighting.KEYS:
        return replace(plain, key_of_row=_numbered(keys, population.average_over))
    both = list(dict.fromkeys([*time, *retained]))
    group = unit if both == time else _numbered(keys, both)
    of_group = np.zeros(int(group.max()) + 1 if len(group) else 0, dtype=np.int64)
    of_group[group] = unit
    return replace(plain, group_of_row=group, of_group=of_group)


def unit_sums(values: FloatArray, units: Units) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values in every unit: of samples, or of the groups that are averaged first.

    Args:
        values: shape (rows,), NaN if there is none.
        units: how rows are grouped.

    Returns:
        Two arrays of shape (units,): sums in the metric's unit, and counts.
    """
    valid = np.isfinite(values)
    filled = np.where(valid, values, 0.0)
    if units.group_of_row is None or units.of_group is None:
        return _totals(units.of_row, filled, units.count), _totals(units.of_row, valid, units.count)
    groups = len(units.of_group)
    counts = _totals(units.group_of_row, valid, groups)
    sums = _totals(units.group_of_row, filled, groups)
    present = counts > 0
    means = np.divide(sums, counts, out=np.zeros(groups), where=present)
    return _totals(units.of_group, means, units.count), _totals(units.of_group, present, units.count)


def _totals(numbers: IntArray, weights: npt.ArrayLike, count: int) -> FloatArray:
    return np.bincount(numbers, weights=weights, minlength=count).astype(np.float64)


@dataclass(frozen=True)
class UnitMean:
    """The mean of a metric, as a ratio of sums over units.

    Attributes:
        value: in the metric's unit.
        sums, counts: shape (units,); with the multiplicities w of a resample, its mean is Σ w sums / Σ w counts.
    """

    value: float
    sums: FloatArray
    counts: FloatArray


def unit_mean(
    values: FloatArray, units: Units, lowest_means: int | None = None, *, silent_keys_are_zero: bool = False
) -> UnitMean:
    """The mean of a metric by its population's weighting.

    Weighted by keys, the mean is θ = (1/H) Σ m_h over the H values of the averaged keys, with m_h = S_h / n_h, the
    mean of the n_h samples of h. Resampling time turns each m_h into Σ w_t S_ht / Σ w_t n_ht, which to first order
    moves θ by Σ w_t z_t, where z_t = Σ_h (S_ht - m_h n_ht) / (H n_h). The units' sums are therefore θ + T z_t, with
    T units and the counts 1: their mean is θ, and their resampled means are the linearised ones.

    Args:
        values: shape (rows,), NaN if there is none; at least one is a number.
        units: of the rows.
        lowest_means: only this number of the lowest m_h are averaged; which ones they are is assumed to be fixed.
        silent_keys_are_zero: an h without samples has the mean 0; otherwise it has none.

    Source: docs/concepts/distributions.md, "Means".
    """
    if units.key_of_row is None:
        sums, counts = unit_sums(values, units)
        return UnitMean(float(sums.sum() / counts.sum()), sums, counts)
    valid = np.isfinite(values)
    key_counts = np.bincount(units.key_of_row, weights=valid)
    present = np.flatnonzero(key_counts)
    means = np.zeros(len(key_counts))
    moves = np.where(valid, values, 0.0)  # changed in place below: columns are large
    means[present] = np.bincount(units.key_of_row, weights=moves)[present] / key_counts[present]
    candidates = np.arange(len(key_counts)) if silent_keys_are_zero else present
    chosen = candidates[np.argsort(means[candidates], kind="stable")[:lowest_means]]
    value = float(means[chosen].sum() / len(chosen))
    shares = np.zeros(len(key_counts))
    shares[chosen] = units.count / (len(chosen) * np.maximum(1, key_counts[chosen]))
    moves -= means[units.key_of_row]
    moves *= shares[units.key_of_row]
    moves[~valid] = 0.0
    return UnitMean(value, value + _totals(units.of_row, moves, units.count), np.ones(units.count))


def block_length(series: Sequence[tuple[FloatArray, FloatArray]], *, ordered: bool) -> float:
    """One block length for a population: the longest that any of its metrics needs.

    A block that is too long costs a little precision of the standard error; one that is too short makes it too small.

    Args:
        series: per metric, the sums and counts of its units.
        ordered: False for populations without time, whose units are independent.
    """
    if not ordered:
        return 1.0
    lengths = [1.0]
    for sums, counts in series:
        present = counts > 0
        lengths.append(optimal_block_length(sums[present] / counts[present]))
    return max(lengths)
