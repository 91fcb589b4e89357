"""The uncertainty of figures whose samples share an error, such as that of a clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.stats.rounding import rounding_error


def with_measurement_errors(summaries: Iterable[MetricSummary], greatest: Mapping[str, float]) -> list[MetricSummary]:
    """The same, each standard error increased by an error that all samples of the metric have in common.

    It is the same for all statistics: adding a constant to the samples moves each of them by it. Statistics without a
    standard error remain without.

    Args:
        summaries: of one run.
        greatest: the greatest common error by metric ID, in the metric's unit. Other metrics are unchanged.
    """
    return [_widened(summary, greatest.get(summary.metric_id, 0.0)) for summary in summaries]


def _widened(summary: MetricSummary, greatest: float) -> MetricSummary:
    if not greatest:
        return summary
    error = rounding_error(2.0 * greatest)  # equally likely everywhere within its greatest value
    estimates = {name: _estimate(estimate, error) for name, estimate in summary.estimates.items()}
    return summary.model_copy(update={"estimates": estimates})


def _estimate(estimate: Estimate, error: float) -> Estimate:
    if estimate.value is None or estimate.standard_error is None:
        return estimate
    logarithmic = estimate.log_standard_error
    if logarithmic is not None:
        logarithmic = math.hypot(logarithmic, error / estimate.value)
    whole = math.hypot(estimate.standard_error, error)
    method = f"{estimate.method}; and an error common to all samples"
    return Estimate(value=estimate.value, standard_error=whole, log_standard_error=logarithmic, method=method)
