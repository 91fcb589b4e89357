"""The error caused by the rounding of printed digits, and the figures that it applies to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.stats.rounding import last_digit, rounding_error, with_rounding


@pytest.mark.parametrize(("text", "unit"), [("169", 1.0), ("0.30", 0.01), ("11206.81", 0.01), ("1.5", 0.1)])
def test_the_unit_of_the_last_digit_includes_trailing_zeros(text: str, unit: float) -> None:
    assert last_digit(text) == pytest.approx(unit)


def test_the_rounding_error_matches_the_deviation_of_rounded_figures() -> None:
    values = np.random.default_rng(1).uniform(0.0, 100.0, 100_000)
    assert float(np.std(np.round(values, 1) - values)) == pytest.approx(rounding_error(0.1), rel=0.01)


def test_only_the_named_figures_get_a_rounding_error() -> None:
    summaries = [_summary("x_s", 2.0), _summary("y_s", None), _summary("z", 3.0)]
    x, y, z = (summary.estimates["mean"] for summary in with_rounding(summaries, {"x_s": 0.1, "y_s": 0.1}))
    assert x.standard_error == pytest.approx(0.1 / math.sqrt(12.0))
    assert x.log_standard_error == pytest.approx(0.05 / math.sqrt(12.0))
    assert (y.standard_error, z.standard_error) == (None, None)


def _summary(name: str, value: float | None) -> MetricSummary:
    estimate = Estimate(value=value, standard_error=None, method="a single unit")
    return MetricSummary(metric_id=name, distribution=None, estimates={"mean": estimate})
