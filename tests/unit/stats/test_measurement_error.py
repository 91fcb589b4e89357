"""An error that all samples of a run share widens its figures' standard errors as much as it moves the figures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.stats.measurement_error import with_measurement_errors


def _summary(metric_id: str, **estimates: Estimate) -> MetricSummary:
    return MetricSummary(metric_id=metric_id, distribution=None, estimates=estimates)


def _estimate(value: float | None, error: float | None, log_error: float | None = None) -> Estimate:
    return Estimate(value=value, standard_error=error, log_standard_error=log_error, method="bootstrap")


def test_the_stated_error_is_the_spread_of_figures_whose_samples_share_an_error() -> None:
    """Means of 25 samples with sd 0.1, all moved by one clock error within ±0.05, in 20,000 runs."""
    rng = np.random.default_rng(1)
    means = rng.normal(2.0, 0.1 / 5.0, 20_000) + rng.uniform(-0.05, 0.05, 20_000)
    (summary,) = with_measurement_errors([_summary("a", mean=_estimate(2.0, 0.02, 0.01))], {"a": 0.05})
    stated = summary.estimates["mean"]
    assert stated.standard_error == pytest.approx(means.std(), rel=0.02)
    assert stated.log_standard_error == pytest.approx(np.log(means).std(), rel=0.02)
    assert stated.value == 2.0
    assert stated.method.startswith("bootstrap; ")


def test_only_figures_with_a_known_error_of_the_named_metrics_change() -> None:
    """Nothing is known about the error of an extreme, so it stays unknown."""
    extreme, absent = _estimate(9.0, None), _estimate(None, None)
    before = [_summary("a", max=extreme, p999=absent), _summary("b", mean=_estimate(1.0, 0.1))]
    assert with_measurement_errors(before, {"a": 1.0, "unknown": 2.0}) == before
    assert with_measurement_errors(before, {"b": 0.0}) == before


def test_a_figure_of_zero_has_no_error_on_the_logarithmic_scale() -> None:
    (summary,) = with_measurement_errors([_summary("a", mean=_estimate(0.0, 0.3))], {"a": math.sqrt(3.0) * 0.4})
    assert summary.estimates["mean"].standard_error == pytest.approx(0.5)
    assert summary.estimates["mean"].log_standard_error is None
