"""The distributions of all metrics on two sides, each metric by itself: here, or on other machines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from chainmark.compare.breakdowns import breakdowns_of
from chainmark.compare.charts import charts_of
from chainmark.compare.estimates import mean_of
from chainmark.compare.samples import ChartSide, RunExcerpt, RunSamples, SideSamples
from chainmark.compare.sides import SelectedRuns
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Breakdown, ChartData, DistributionRow, EffectSize
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.metric import Metric, Population
from chainmark.core.parts import Machines
from chainmark.stats.effects import TwoSamples
from chainmark.stats.estimable import has_rank

_METRICS_AT_A_TIME = 2  # more would hold more samples at a time


@dataclass(frozen=True)
class SampleDistributions:
    """Distributions of metrics' samples, in the report's order."""

    distributions: list[DistributionRow]
    effect_sizes: list[EffectSize]
    charts: list[ChartData]
    breakdowns: list[Breakdown]


@dataclass(frozen=True)
class MetricSides:
    """One metric of two sides: a piece of work.

    Attributes:
        seed: of the comparison.
    """

    metric: Metric
    population: Population
    sides: Sequence[ChartSide]
    seed: int


def describe_samples(
    catalogue: Catalogue, sides: Sequence[SelectedRuns], labels: Sequence[str], machines: Machines | None = None
) -> SampleDistributions:
    """Distributions of all metrics, from the descriptions that the runs store.

    Args:
        catalogue: of the comparison.
        sides: the baseline's runs and the candidate's.
        labels: their names in legends.
        machines: other machines that do the work; they need not have the runs. The result is the same.

    Raises:
        ChainmarkError: the machines or the network failed.
    """
    runs = [side.included or side.runs for side in sides]
    for run in {run for each in runs for run in each}:
        run.read_description()  # once, not by every thread

    def sides_of(metric: Metric, population: Population) -> list[ChartSide]:
        """New ones each time: they cache the samples of a metric."""
        return [
            ChartSide(
                side.name, label, each if machines is None else [RunExcerpt.of(run, metric, population) for run in each]
            )
            for side, label, each in zip(sides, labels, runs, strict=True)
        ]

    parts = (
        MetricSides(metric, population, sides_of(metric, population), sides[0].first.seed)
        for metric in catalogue.ordered()
        for population in [catalogue.population(metric.population)]
    )
    each = _map_here(parts) if machines is None else machines.map(describe_metric, list(parts))
    return SampleDistributions(
        [row for described in each for row in described.distributions],
        [effect for described in each for effect in described.effect_sizes],
        [chart for described in each for chart in described.charts],
        [breakdown for described in each for breakdown in described.breakdowns],
    )


def _map_here(parts: Iterable[MetricSides]) -> list[SampleDistributions]:
    """Most of it is arithmetic on arrays, during which another thread can run. A finished part is released."""
    with ThreadPoolExecutor(_METRICS_AT_A_TIME) as pool:
        return list(pool.map(describe_metric, parts))


def describe_metric(part: MetricSides) -> SampleDistributions:
    """The distributions of one metric; called on other machines, too."""
    metric, population, sides = part.metric, part.population, part.sides
    effect = _effect_size(metric, population, sides)
    return SampleDistributions(
        [_distribution_row(metric, population, side) for side in sides],
        [effect] if effect else [],
        charts_of(sides, metric, population, part.seed),
        breakdowns_of(sides, metric, population),
    )


def _mean(metric: Metric, population: Population, samples: SideSamples) -> float:
    """The mean of the runs' means, each by its population's weighting, weighted by their samples."""
    results = [(run.knots.n, _run_mean(metric, population, run)) for run in samples.present]
    if len(results) == 1:
        return results[0][1]
    return math.fsum(n * mean for n, mean in results) / sum(n for n, _ in results)


def _run_mean(metric: Metric, population: Population, run: RunSamples) -> float:
    summary = run.run.summary(metric.id) if population.average_over else None
    mean = mean_of(summary) if summary else None
    return run.described.mean if mean is None else mean


def _deviation(samples: SideSamples) -> float | None:
    """The pooled samples' standard deviation about their plain mean."""
    results = [(run.knots.n, run.described.mean, run.described.squares) for run in samples.present]
    n = sum(item for item, _, _ in results)
    if n < 2:
        return None
    mean = math.fsum(item * mean_of_run for item, mean_of_run, _ in results) / n
    apart = math.fsum(item * (mean_of_run - mean) ** 2 for item, mean_of_run, _ in results) if len(results) > 1 else 0.0
    return math.sqrt((math.fsum(squares for _, _, squares in results) + apart) / (n - 1))


def _distribution_row(metric: Metric, population: Population, side: ChartSide) -> DistributionRow:
    samples = side.samples(metric, population)
    rows = sum(run.described.rows for run in samples.runs)
    pooled = samples.pooled
    if pooled.n == 0:
        return DistributionRow(
            metric_id=metric.id, side=side.name, n=0, n_null=rows, mean=None, sd=None, min=None, max=None, centiles=[]
        )
    values = pooled.centiles(np.array(STANDARD_CENTILES)).tolist()
    return DistributionRow(
        metric_id=metric.id,
        side=side.name,
        n=pooled.n,
        n_null=rows - pooled.n,
        mean=_mean(metric, population, samples),
        sd=_deviation(samples),
        min=float(pooled.values[0]),
        max=float(pooled.values[-1]),
        centiles=[
            (fraction, value if has_rank(pooled.n, fraction) else None)
            for fraction, value in zip(STANDARD_CENTILES, values, strict=True)
        ],
    )


def _effect_size(metric: Metric, population: Population, sides: Sequence[ChartSide]) -> EffectSize | None:
    left, right = (side.samples(metric, population).pooled for side in sides)
    if left.n == 0 or right.n == 0:
        return None
    both = TwoSamples(left, right)
    gap, at = both.largest_gap()
    return EffectSize(
        metric_id=metric.id,
        probability_candidate_larger=both.probability_larger(),
        wasserstein=both.wasserstein(),
        largest_gap=gap,
        largest_gap_at=at,
    )
