"""From samples to ``metrics.json``: the distribution of every metric and the standard error of every statistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.metric import Kind, Metric, Population
from chainmark.stats.bootstrap import (
    RESAMPLES,
    generator,
    multiplicities,
    optimal_block_length,
    resampled_centiles,
    resampled_means,
    standard_error,
)
from chainmark.stats.centiles import FloatArray, IntArray, distribution, estimable_centile, fraction_of


def in_total_order(frame: pl.DataFrame, population: Population, metric_ids: Sequence[str]) -> pl.DataFrame:
    """Rows by time, then keys, then values: any permutation of the same rows gives the same frame.

    Args:
        frame: samples of one population.
        population: its keys and time key.
        metric_ids: the columns of values; they break ties between rows of equal keys.
    """
    wanted = [population.time_key] if population.time_key else []
    wanted += [*population.keys, *metric_ids]
    by = [name for name in dict.fromkeys(wanted) if name in frame.columns]
    return frame.sort(by, nulls_last=True, maintain_order=True) if by else frame


def column(frame: pl.DataFrame, metric_id: str) -> FloatArray | None:
    """A metric's values, NaN where there is none; None when the frame has no such column."""
    if metric_id not in frame.columns:
        return None
    values = frame.get_column(metric_id).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


@dataclass(frozen=True)
class Units:
    """What is resampled together, and what is averaged first.

    Attributes:
        of_row: shape (rows,), the unit of every row; units are numbered in time order.
        count: number of units.
        group_of_row: shape (rows,), rows that are averaged to one value; None when each row stands for itself.
        of_group: shape (groups,), the unit of every group.
        ordered: whether neighbouring units are neighbours in time.
        noun: what a unit is called in the method's description.
    """

    of_row: IntArray
    count: int
    group_of_row: IntArray | None
    of_group: IntArray
    ordered: bool
    noun: str


def _numbered(frame: pl.DataFrame, names: Sequence[str]) -> IntArray:
    """Rows numbered by their distinct values of the named columns, in order of first appearance."""
    if not names:
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()


def units_of(frame: pl.DataFrame, population: Population) -> Units:
    """The resampling units of a frame in total order.

    Args:
        frame: samples of the population, as `in_total_order` leaves them.
        population: says which keys are averaged and which one is time.
    """
    rows = np.arange(frame.height, dtype=np.int64)
    ordered = population.time_key is not None
    if not population.average_over:
        return Units(rows, frame.height, None, rows, ordered, "rows")
    kept = [key for key in population.keys if key not in population.average_over]
    time = [population.time_key] if population.time_key else kept
    unit = _numbered(frame, time)
    group = _numbered(frame, list(dict.fromkeys([*time, *kept])))
    groups = int(group.max()) + 1 if len(group) else 0
    unit_of_group = np.zeros(groups, dtype=np.int64)
    unit_of_group[group] = unit
    count = int(unit.max()) + 1 if len(unit) else 0
    return Units(unit, count, group, unit_of_group, ordered, "time values" if ordered else "groups")


def unit_sums(values: FloatArray, units: Units) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the averaged values in every unit.

    Args:
        values: shape (rows,), NaN where there is none.
        units: how rows are grouped.

    Returns:
        Two arrays of shape (units,): sums in the metric's unit, and counts.
    """
    valid = np.isfinite(values)
    filled = np.where(valid, values, 0.0)
    if units.group_of_row is None:
        return filled, valid.astype(np.float64)
    groups = len(units.of_group)
    counts = np.bincount(units.group_of_row, weights=valid, minlength=groups)
    sums = np.bincount(units.group_of_row, weights=filled, minlength=groups)
    present = counts > 0
    means = np.divide(sums, counts, out=np.zeros(groups), where=present)
    unit_sum = np.bincount(units.of_group, weights=means, minlength=units.count)
    unit_count = np.bincount(units.of_group, weights=present, minlength=units.count)
    return unit_sum.astype(np.float64), unit_count.astype(np.float64)


def block_length(series: Sequence[tuple[FloatArray, FloatArray]], *, ordered: bool) -> float:
    """One block length for a population: the longest that any of its metrics asks for.

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


@dataclass(frozen=True)
class _Column:
    """One metric of a population, prepared for resampling."""

    metric: Metric
    values: FloatArray
    sums: FloatArray
    counts: FloatArray
    sorted_values: FloatArray
    sorted_units: IntArray
    fractions: list[float]


def _prepare(metric: Metric, values: FloatArray, units: Units) -> _Column:
    sums, counts = unit_sums(values, units)
    valid = np.flatnonzero(np.isfinite(values))
    order = valid[np.argsort(values[valid], kind="stable")]
    wanted = {fraction_of(name) for name in metric.statistics} - {None, 0.0, 1.0}
    fractions = sorted(fraction for fraction in wanted if fraction is not None)
    return _Column(metric, values, sums, counts, values[order], units.of_row[order], fractions)


def _replicates(columns: Sequence[_Column], units: Units, length: float, rng: np.random.Generator) -> list[FloatArray]:
    """Per column an array of shape (resamples, 1 + fractions): the mean, then the centiles."""
    parts: list[list[FloatArray]] = [[] for _ in columns]
    for weights in multiplicities(rng, units.count, length):
        for part, prepared in zip(parts, columns, strict=True):
            means = resampled_means(weights, prepared.sums, prepared.counts)[:, None]
            if not prepared.fractions:
                part.append(means)
                continue
            per_row = np.take(weights, prepared.sorted_units, axis=1)
            centiles = resampled_centiles(per_row, prepared.sorted_values, prepared.fractions)
            part.append(np.concatenate([means, centiles], axis=1))
    return [np.concatenate(part) for part in parts]


def _estimate(prepared: _Column, statistic: str, replicates: FloatArray | None, method: str) -> Estimate:
    fraction = fraction_of(statistic)
    if fraction is None:
        value: float | None = float(prepared.sums.sum() / prepared.counts.sum())
        position = 0
    else:
        value = estimable_centile(prepared.sorted_values, fraction)
        position = 1 + prepared.fractions.index(fraction) if fraction in prepared.fractions else 0
    if value is None:
        return Estimate(value=None, standard_error=None, method="not estimable: too few samples")
    if fraction in {0.0, 1.0}:
        # A resample never reaches beyond the sample's own extreme, so its spread says nothing of the extreme's error.
        return Estimate(value=value, standard_error=None, method="an extreme: resampling cannot estimate its error")
    if replicates is None:
        return Estimate(value=value, standard_error=None, method=method)
    drawn = replicates[:, position]
    logarithmic = None
    if prepared.metric.kind is Kind.POSITIVE and value > 0 and bool((drawn[np.isfinite(drawn)] > 0).all()):
        logarithmic = standard_error(np.log(drawn))
    return Estimate(value=value, standard_error=standard_error(drawn), log_standard_error=logarithmic, method=method)


def _without_samples(metric: Metric) -> MetricSummary:
    empty = {name: Estimate(value=None, standard_error=None, method="no samples") for name in metric.statistics}
    return MetricSummary(metric_id=metric.id, distribution=None, estimates=empty)


def _summarise_population(
    catalogue: Catalogue, population: Population, frame: pl.DataFrame, seed: int
) -> dict[str, MetricSummary]:
    metrics = catalogue.metrics_of(population.id)
    frame = in_total_order(frame, population, [metric.id for metric in metrics])
    units = units_of(frame, population)
    columns = []
    for metric in metrics:
        values = column(frame, metric.id)
        if values is not None and bool(np.isfinite(values).any()):
            columns.append(_prepare(metric, values, units))
    replicates: list[FloatArray | None] = [None] * len(columns)
    method = "not estimable: a single unit"
    if units.count > 1 and columns:
        length = block_length([(item.sums, item.counts) for item in columns], ordered=units.ordered)
        replicates = list(_replicates(columns, units, length, generator(seed, "summarise", population.id)))
        how = f"stationary bootstrap, mean block {length:.1f} {units.noun}" if units.ordered else "bootstrap"
        method = f"{how}, {RESAMPLES} resamples of {units.count} {units.noun}"
    result = {}
    for prepared, drawn in zip(columns, replicates, strict=True):
        metric = prepared.metric
        result[metric.id] = MetricSummary(
            metric_id=metric.id,
            distribution=distribution(prepared.values),
            estimates={name: _estimate(prepared, name, drawn, method) for name in metric.statistics},
            total=float(np.nansum(prepared.values)) if metric.kind in {Kind.COUNT, Kind.PROPORTION} else None,
        )
    return result


def summarise(catalogue: Catalogue, samples: Mapping[str, pl.DataFrame], seed: int) -> list[MetricSummary]:
    """Summarise every metric of a run.

    Args:
        catalogue: the metrics and their populations.
        samples: per population id, its keys and one column per metric, named by the metric's id, in its unit; null,
            NaN and infinity all mean that a row has no value.
        seed: the run's seed; with the population's id it decides every resample.

    Returns:
        One summary per metric in the catalogue's order. Any permutation of the rows gives the same bytes.

    Source: docs/concepts/distributions.md.
    """
    summaries: dict[str, MetricSummary] = {}
    for population in catalogue.populations:
        frame = samples.get(population.id)
        if frame is not None and frame.height > 0:
            summaries |= _summarise_population(catalogue, population, frame, seed)
    return [summaries.get(metric.id) or _without_samples(metric) for metric in catalogue.metrics]
