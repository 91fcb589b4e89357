"""From samples to ``metrics.json``: the distribution of every metric and the standard error of every statistic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Distribution, Estimate, MetricSummary
from chainmark.core.metric import Kind, Metric, Population
from chainmark.core.parts import Machines
from chainmark.core.units import number
from chainmark.stats import woodruff
from chainmark.stats.bootstrap import (
    RESAMPLES,
    Multiplicities,
    generator,
    multiplicities,
    resampled_centiles,
    resampled_means,
    standard_error,
)
from chainmark.stats.centiles import FloatArray, distribution_of_sorted, estimable_centile, fraction_of
from chainmark.stats.keys_apart import keys_apart, of_keys
from chainmark.stats.samples import OrderedSamples, OrderedSource, SampleSource, ordered_source
from chainmark.stats.threads import at_most, worker_threads
from chainmark.stats.units import UnitMean, Units, block_length, unit_mean, units_of

# Per fraction, and None for the mean: the statistic of every resample.
Replicates = Mapping[float | None, FloatArray]
# Measured on one core: a value in a resample, and a sum over a unit. The draws are not divided.
_S_PER_VALUE, _S_PER_SUM = 6.5e-9, 0.2e-9
_DIVIDED_FROM_S = 2.5  # a second of two cores; for shorter work, the message and the repeated draws cost more


@dataclass(frozen=True)
class _Prepared:
    """One metric of a population: the summary of its samples, and the input of its resamples.

    Attributes:
        resampled: the fractions whose errors come from resamples.
        sorted_values, sorted_units: shape (n,), ascending, with their units; None for a large population, which has
            ``reduced`` instead.
    """

    metric: Metric
    distribution: Distribution | None
    total: float | None
    mean: UnitMean
    centiles: dict[float, float | None]
    resampled: list[float]
    sorted_values: FloatArray | None = None
    sorted_units: npt.NDArray[np.uint32] | None = None
    reduced: woodruff.Reduced | None = None


def _prepare(
    metric: Metric, values: FloatArray | None, units: Units, population: Population, *, is_large: bool
) -> _Prepared | None:
    """A metric without a sample gives None."""
    if values is None:
        return None
    if not bool(np.isfinite(values).any()):
        return None
    silent = population.silent_keys_are_zero
    # Before the next copy is made: columns are large.
    mean = unit_mean(values, units, population.lowest_means, silent_keys_are_zero=silent)
    ordered = values[np.isfinite(values)]
    order = None
    if is_large:
        ordered.sort()
    else:
        order = np.argsort(values, kind="stable")[: len(ordered)]  # NaN comes last
        ordered = values[order]
    fractions = [fraction for name in metric.statistics if (fraction := fraction_of(name)) is not None]
    resampled = sorted(set(fractions) - {0.0, 1.0})
    centiles = {fraction: estimable_centile(ordered, fraction) for fraction in fractions}
    distribution = distribution_of_sorted(
        ordered, len(values) - len(ordered), mean.value if population.average_over else None
    )
    if population.keys_apart and units.key_of_row is not None and distribution is not None:
        parts = keys_apart(values, units.key_of_row, silent_keys_are_zero=silent)
        distribution = of_keys(distribution, parts)
        centiles = {
            fraction: value if value is None else parts.centile(fraction) for fraction, value in centiles.items()
        }
        resampled = []
    return _Prepared(
        metric=metric,
        distribution=distribution,
        total=float(np.nansum(values)) if metric.kind in {Kind.COUNT, Kind.PROPORTION} else None,
        mean=mean,
        centiles=centiles,
        resampled=resampled,
        sorted_values=None if order is None else ordered,
        sorted_units=None if order is None else units.of_row[order].astype(np.uint32),
        reduced=woodruff.reduced(values, units, mean, ordered, resampled) if is_large else None,
    )


@dataclass(frozen=True)
class _Resampling:
    """The resamples of some metrics of a population, drawn jointly for all of them: a piece of work.

    Attributes:
        units: their number.
        block_length: mean, in units.
        seed, population_id: determine every draw, so that the metrics can be divided.
    """

    metrics: Sequence[_Prepared]
    units: int
    block_length: float
    seed: int
    population_id: str

    def divisible_s(self) -> float:
        """About how long the work takes that can be divided, on one core."""
        values = sum(len(item.sorted_values) for item in self.metrics if item.sorted_values is not None)
        sums = sum(item.reduced.columns.size for item in self.metrics if item.reduced is not None)
        return RESAMPLES * (values * _S_PER_VALUE + sums * _S_PER_SUM)

    def divided(self, count: int) -> list[_Resampling]:
        """The same in at most this many parts, each with about as many metrics."""
        starts = [len(self.metrics) * place // count for place in range(count + 1)]
        return [replace(self, metrics=self.metrics[low:high]) for low, high in pairwise(starts) if low < high]

    def replicates(self) -> list[Replicates]:
        """Per metric the statistics of all resamples."""
        rng = generator(self.seed, "summarise", self.population_id)
        large = [item.reduced for item in self.metrics if item.reduced is not None]
        if large:
            return list(woodruff.replicates(large, self.units, self.block_length, rng))
        return self._row_replicates(rng)

    def _row_replicates(self, rng: np.random.Generator) -> list[Replicates]:
        """Resample every row with its unit: exact, and too slow for a large population."""
        parts: list[list[FloatArray]] = [[] for _ in self.metrics]
        rows = max((len(item.sorted_values) for item in self.metrics if item.sorted_values is not None), default=0)
        with worker_threads(rows) as pool:
            for weights in multiplicities(rng, self.units, self.block_length):
                factors = weights.astype(np.float64)
                replicates = partial(_replicates, weights, factors)
                for part, result in zip(parts, pool.map(replicates, self.metrics), strict=True):
                    part.append(result)
        return [
            dict(zip([None, *item.resampled], np.concatenate(part).T, strict=True))
            for part, item in zip(parts, self.metrics, strict=True)
        ]


def _replicates_there(part: _Resampling) -> list[Replicates]:
    """The same on a thread of another machine, which may have other work on its other threads."""
    with at_most(1):
        return part.replicates()


def _replicates(weights: Multiplicities, factors: FloatArray, item: _Prepared) -> FloatArray:
    """The mean and the centiles of one metric's resamples, shape (resamples, 1 + fractions)."""
    means = resampled_means(factors, item.mean.sums, item.mean.counts)[:, None]
    if not item.resampled or item.sorted_values is None or item.sorted_units is None:
        return means
    centiles = resampled_centiles(weights, item.sorted_values, item.sorted_units, item.resampled)
    return np.concatenate([means, centiles], axis=1)


def _estimate(prepared: _Prepared, statistic: str, replicates: Replicates | None, method: str) -> Estimate:
    fraction = fraction_of(statistic)
    value = prepared.mean.value if fraction is None else prepared.centiles[fraction]
    if value is None:
        return Estimate(value=None, standard_error=None, method="not estimable: too few samples")
    if fraction in {0.0, 1.0}:
        # A resample never reaches beyond the sample's own extreme, so its spread does not show the extreme's error.
        return Estimate(value=value, standard_error=None, method="extreme value: resampling cannot estimate its error")
    if replicates is None:
        return Estimate(value=value, standard_error=None, method=method)
    if fraction not in replicates:
        return Estimate(value=value, standard_error=None, method="the median over the keys: no error is estimated")
    if fraction is not None and prepared.reduced is not None:
        method = f"Woodruff's inversion of the share below it: {method}"
    drawn = np.ascontiguousarray(replicates[fraction])
    error, logarithmic = standard_error(drawn), None
    if prepared.metric.kind is Kind.POSITIVE and value > 0 and bool((drawn[np.isfinite(drawn)] > 0).all()):
        logarithmic = standard_error(np.log(drawn)) if error else error
    return Estimate(value=value, standard_error=error, log_standard_error=logarithmic, method=method)


def _without_samples(metric: Metric) -> MetricSummary:
    empty = {name: Estimate(value=None, standard_error=None, method="no samples") for name in metric.statistics}
    return MetricSummary(metric_id=metric.id, distribution=None, estimates=empty)


def _resampled(
    prepared: Sequence[_Prepared], units: Units, population: Population, seed: int, machines: Machines | None
) -> tuple[Sequence[Replicates | None], str]:
    """The resamples of a population's metrics, and their method."""
    if units.count < 2 or not prepared:
        return [None] * len(prepared), "not estimable: a single unit"
    length = block_length([(item.mean.sums, item.mean.counts) for item in prepared], ordered=units.ordered)
    how = f"stationary bootstrap, mean block {number(length, 1)} {units.noun}" if units.ordered else "bootstrap"
    method = f"{how}, {RESAMPLES} resamples of {units.count} {units.noun}"
    work = _Resampling(prepared, units.count, length, seed, population.id)
    if machines is None or machines.threads == 1 or work.divisible_s() < _DIVIDED_FROM_S:
        return work.replicates(), method
    parts: list[list[Replicates]] = machines.map(_replicates_there, work.divided(machines.threads))
    return list(chain.from_iterable(parts)), method


def _prepared(
    metrics: Iterable[Metric], samples: OrderedSamples, population: Population
) -> tuple[list[_Prepared], Units]:
    """A population's metrics that have samples, one column at a time for each thread, and its units without rows."""
    is_large = samples.height > woodruff.LARGE_ROWS
    units = units_of(samples.keys(), population)
    if is_large:
        units = units.bundled(woodruff.MOST_UNITS)

    def prepare(metric: Metric) -> _Prepared | None:
        return _prepare(metric, samples.column(metric.id), units, population, is_large=is_large)

    with worker_threads(samples.height) as pool:
        return [item for item in pool.map(prepare, metrics) if item is not None], units.without_rows()


def _summarise_population(
    catalogue: Catalogue, population: Population, source: OrderedSource, seed: int, machines: Machines | None
) -> dict[str, MetricSummary]:
    metrics = catalogue.metrics_of(population.id)
    samples = source.ordered(population, [metric.id for metric in metrics])
    if samples.height == 0:
        return {}
    prepared, units = _prepared(metrics, samples, population)
    replicates, method = _resampled(prepared, units, population, seed, machines)
    return {
        item.metric.id: MetricSummary(
            metric_id=item.metric.id,
            distribution=item.distribution,
            estimates={name: _estimate(item, name, drawn, method) for name in item.metric.statistics},
            total=item.total,
        )
        for item, drawn in zip(prepared, replicates, strict=True)
    }


def summarise(
    catalogue: Catalogue,
    samples: Mapping[str, pl.DataFrame] | SampleSource,
    seed: int,
    machines: Machines | None = None,
) -> list[MetricSummary]:
    """Summarise every metric of a run.

    Args:
        catalogue: the metrics and their populations.
        samples: per population ID, its keys and one column per metric, named by the metric's ID, in its unit; null, NaN
            and infinity all mean that a row has no value. Frames in memory, or a source that reads column by column,
            which large populations need.
        seed: the run's seed; with the population's ID it determines every resample.
        machines: other machines, which resample populations that take more than about a second of two cores.

    Returns:
        One summary per metric in the catalogue's order. Any permutation of the rows gives the same bytes, and so does
        any number of machines.

    Raises:
        ChainmarkError: the machines or the network failed.

    Source: docs/concepts/distributions.md.
    """
    source = ordered_source(samples)
    summaries: dict[str, MetricSummary] = {}
    for population in catalogue.populations:
        summaries |= _summarise_population(catalogue, population, source, seed, machines)
    return [summaries.get(metric.id) or _without_samples(metric) for metric in catalogue.metrics]
