"""Distributions: how the samples of one metric in one run are summarised."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

# The 29 fractions in this field's published performance reports; p99.99 and the extremes matter
# because regressions of releases appear in the tails.
STANDARD_CENTILES: tuple[float, ...] = (
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99,
    0.995, 0.997, 0.998, 0.999, 0.9995, 0.9997, 0.9998, 0.9999, 1.0,
)  # fmt: skip


class Distribution(BaseModel):
    """The samples of one metric: size, moments, range and nearest-rank centiles, all in the metric's unit.

    ``mean`` follows the weighting of the metric's population, so that a metric has one mean; all others are of the
    pooled samples, and ``sd`` is about their plain mean, unless the population treats its keys separately.
    ``centiles`` pairs each of the 29 standard fractions with its value, or with None if n is too small for
    that fraction to have a rank: fewer than one sample is expected beyond it (`stats.estimable.has_rank`).
    """

    model_config = ConfigDict(frozen=True)

    n: int
    n_null: int  # rows of the population in which the metric had no value
    mean: float
    sd: float | None  # sample standard deviation (n - 1); None for n = 1
    min: float
    max: float
    centiles: list[tuple[float, float | None]]


class Estimate(BaseModel):
    """One statistic of one metric in one run.

    Attributes:
        value: in the metric's unit; None when it is not estimable from n samples.
        standard_error: within-run, in the metric's unit; None when it cannot be estimated.
        log_standard_error: the same on the logarithmic scale, for metrics of kind ``positive``.
        method: how the standard error was estimated, with block length and resamples.
    """

    model_config = ConfigDict(frozen=True)

    value: float | None
    standard_error: float | None
    log_standard_error: float | None = None
    method: str


class MetricSummary(BaseModel):
    """All data of one metric in ``metrics.json``. ``distribution`` is None if there was no sample.

    For counts and proportions ``total`` is the sum of the samples and ``distribution.n`` the exposure or the trials.
    ``samples`` is their number if only an imported figure is known, and no distribution.
    """

    model_config = ConfigDict(frozen=True)

    metric_id: str
    distribution: Distribution | None
    estimates: dict[str, Estimate]
    total: float | None = None
    samples: int | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def n(self) -> int:
        """The number of samples behind its figures; 0 if it is not known."""
        return self.distribution.n if self.distribution else self.samples or 0


def value_in(summaries: Mapping[str, MetricSummary], metric_id: str, statistic: str) -> float | None:
    """One statistic of one metric in a run; None if it has none."""
    estimate = _estimate_in(summaries, metric_id, statistic)
    return estimate.value if estimate else None


def standard_error_in(summaries: Mapping[str, MetricSummary], metric_id: str, statistic: str) -> float | None:
    """The standard error of such a value within the run; None if it has none."""
    estimate = _estimate_in(summaries, metric_id, statistic)
    return estimate.standard_error if estimate else None


def _estimate_in(summaries: Mapping[str, MetricSummary], metric_id: str, statistic: str) -> Estimate | None:
    summary = summaries.get(metric_id)
    return summary.estimates.get(statistic) if summary else None
