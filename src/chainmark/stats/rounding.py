"""The uncertainty from the digits of a printed figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from chainmark.core.distribution import Estimate, MetricSummary

# Rounding errors are uniformly distributed.
UNIFORM = math.sqrt(12.0)
METHOD = "as printed: uniform over the rounding interval"


def rounding_error(unit: float) -> float:
    """The standard error of a figure that was rounded to whole multiples of ``unit``: the unit over √12."""
    return unit / UNIFORM


def last_digit(text: str) -> float:
    """The unit of the last digit of a plain decimal number: 0.01 of "0.30"."""
    return 10.0 ** -len(text.partition(".")[2])


def with_rounding(summaries: Iterable[MetricSummary], units: Mapping[str, float]) -> list[MetricSummary]:
    """The same, each mean with the error from its digits.

    Args:
        summaries: of a run with a single known figure per metric.
        units: of the last digit, by metric ID, in the metric's unit; 0 for a count that is printed exactly. Other
            metrics are unchanged.
    """
    return [
        _rounded(summary, units[summary.metric_id]) if summary.metric_id in units else summary for summary in summaries
    ]


def _rounded(summary: MetricSummary, unit: float) -> MetricSummary:
    result = {
        name: _estimate(estimate, unit) if name == "mean" else estimate for name, estimate in summary.estimates.items()
    }
    return summary.model_copy(update={"estimates": result})


def _estimate(estimate: Estimate, unit: float) -> Estimate:
    if estimate.value is None:
        return estimate
    error = rounding_error(unit)
    logarithmic = error / estimate.value if estimate.value > 0.0 else None
    return Estimate(value=estimate.value, standard_error=error, log_standard_error=logarithmic, method=METHOD)
