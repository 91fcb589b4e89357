"""One statistic of one metric on one side, run by run and combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.compare.inputs import LoadedRun
from chainmark.core.comparison import SideValue
from chainmark.core.distribution import MetricSummary
from chainmark.core.metric import Kind, Metric, Weighting
from chainmark.stats.level import Level


@dataclass(frozen=True)
class SideEstimates:
    """The values of the judged runs of a side.

    Attributes:
        per_run: one value per run, in the metric's unit; None if it is not estimable.
        values: the estimable ones.
        standard_errors, log_standard_errors: within-run, one per value; 0 if they cannot be estimated, because
            they only ever widen an interval.
        total: events or successes of all runs.
        exposure: samples of all runs.
        absence: why there is no value; empty if there is one.
        level: replaces the value of the single run if previous releases contribute to the baseline.
    """

    per_run: list[float | None]
    values: list[float]
    standard_errors: list[float]
    log_standard_errors: list[float]
    total: float
    exposure: int
    absence: str
    level: Level | None = None

    @property
    def runs(self) -> int:
        """Runs with a value."""
        return len(self.values)


def collect(runs: Sequence[LoadedRun], metric: Metric, statistic: str) -> SideEstimates:
    """Read one statistic of one metric from the judged runs of a side."""
    per_run: list[float | None] = []
    errors: list[tuple[float, float]] = []
    total, exposure, is_defined = 0.0, 0, False
    for run in runs:
        summary = run.summary(metric.id)
        is_defined = is_defined or any(item.id == metric.id for item in run.catalogue.metrics)
        estimate = summary.estimates.get(statistic) if summary else None
        value = estimate.value if estimate and estimate.value is not None and math.isfinite(estimate.value) else None
        per_run.append(value)
        if estimate and value is not None:
            errors.append((estimate.standard_error or 0.0, estimate.log_standard_error or 0.0))
        if summary and summary.n:
            exposure += summary.n
            total += _total(run, metric, summary)
    values = [value for value in per_run if value is not None]
    absence = ""
    if not values:
        missing = f"{statistic} is not estimable from {exposure} samples" if exposure else "no samples"
        absence = missing if is_defined or not runs else "not in the catalogue"
    return SideEstimates(
        per_run, values, [raw for raw, _ in errors], [log for _, log in errors], total, exposure, absence
    )


def mean_of(summary: MetricSummary) -> float | None:
    """A run's mean by its population's weighting; None without samples."""
    estimate = summary.estimates.get("mean")
    if estimate is not None and estimate.value is not None:
        return estimate.value
    return summary.distribution.mean if summary.distribution else None


def _total(run: LoadedRun, metric: Metric, summary: MetricSummary) -> float:
    """Events or successes of a run; with weights by key, the number that its samples would contain at its mean rate."""
    weighting = run.catalogue.population(metric.population).weighting
    mean = mean_of(summary)
    if weighting is Weighting.KEYS and mean is not None and summary.distribution and summary.total is not None:
        return mean * summary.distribution.n
    return summary.total or 0.0


def combined(metric: Metric, side: SideEstimates) -> float | None:
    """The side's value: pooled rate, geometric mean of positive values, or mean; None without a value."""
    if not side.values:
        return None
    if metric.kind in {Kind.COUNT, Kind.PROPORTION}:
        return side.total / side.exposure if side.exposure else None
    if len(set(side.values)) == 1:
        return side.values[0]
    if metric.kind is Kind.POSITIVE and min(side.values) > 0.0:
        return math.exp(math.fsum(math.log(value) for value in side.values) / side.runs)
    return math.fsum(side.values) / side.runs


def side_value(metric: Metric, side: SideEstimates) -> SideValue:
    """The side's value as the report shows it."""
    return SideValue(value=combined(metric, side), per_run=side.per_run, samples=side.exposure)
