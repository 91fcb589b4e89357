"""Variances of few repetitions, moderated by a second source, compared with scipy and with simulated true values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from chainmark.stats.level import Level, level_of
from chainmark.stats.moderated import (
    Prior,
    RepeatedMetric,
    digamma,
    inverse_trigamma,
    moderated,
    prior_of,
    step_variance,
    trigamma,
)


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 2.5, 7.99, 8.0, 40.0, 1e6])
def test_the_derivatives_of_the_gamma_function_agree_with_scipy(x: float) -> None:
    assert digamma(x) == pytest.approx(float(special.digamma(x)), rel=1e-12, abs=1e-12)
    assert trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=1e-12)
    assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_a_few_large_steps_do_not_count_as_noise() -> None:
    """One release in ten changes a metric by half. The estimated noise is hardly larger because of it."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0.0, 0.02, 200)
    changes = np.where(rng.random(200) < 0.1, 0.5, 0.0).cumsum()
    assert 0.019 < math.sqrt(step_variance(np.diff(noise + changes))) < 0.026
    assert float(np.std(np.diff(noise + changes))) > 0.15


def test_the_bound_is_scaled_by_the_repetitions() -> None:
    """If the steps are twice the noise in every metric, the repetitions show this, and the bound is reduced."""
    rng = np.random.default_rng(2)
    true = np.exp(rng.normal(-4.0, 1.0, 40)) ** 2
    seen = [RepeatedMetric(variance * rng.chisquare(3), 3.0, 4.0 * variance, 6.0) for variance in true]
    prior = prior_of(seen)
    assert prior.ratio == pytest.approx(0.25, rel=0.35)
    variances = np.array([moderated(repeated, prior)[0] for repeated in seen])
    alone = np.array([repeated.squares / repeated.freedom for repeated in seen])
    assert np.std(np.log(variances / true)) < 0.7 * np.std(np.log(alone / true))


def test_intervals_with_the_moderated_variance_have_their_nominal_coverage() -> None:
    """90 % intervals of the difference of two runs cover it in about 90 %: otherwise there are false alarms."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        true = np.exp(rng.normal(-4.0, 0.7, 10)) ** 2
        seen = [RepeatedMetric(v * rng.chisquare(3), 3.0, v * rng.chisquare(6) / 6.0, 6.0) for v in true]
        prior = prior_of(seen)
        for repeated, variance in zip(seen, true, strict=True):
            estimate, freedom = moderated(repeated, prior)
            reach = stats.t.ppf(0.95, freedom) * math.sqrt(2.0 * estimate)
            covered.append(abs(rng.normal(0.0, math.sqrt(2.0 * variance))) < reach)
    assert 0.87 < np.mean(covered) < 0.94


def test_without_repetitions_the_bound_is_the_variance() -> None:
    """Without evidence of how much of a step is noise, all of it counts as noise."""
    seen = [RepeatedMetric(0.0, 0.0, 4.0, 5.0) for _ in range(9)]
    assert prior_of(seen) == Prior(1.0, math.inf)
    assert moderated(seen[0], prior_of(seen)) == (4.0, 5.0)


def test_the_prior_never_exceeds_the_bound() -> None:
    """Steps contain noise and changes. Repetitions that deviate more must affect only their own metric."""
    seen = [RepeatedMetric(30.0, 3.0, 1.0, 5.0) for _ in range(5)]
    assert prior_of(seen).ratio == 1.0
    assert 1.0 < moderated(seen[0], prior_of(seen))[0] < 10.0


@pytest.mark.parametrize("last", [0.1, 1.5])
def test_the_fit_over_all_metrics_matches_hand_computed_values(last: float) -> None:
    """Smyth's estimators with scipy's digamma functions, for metrics that differ much and little."""
    seen = [
        RepeatedMetric(squares, 4.0, bound, 9.0) for squares, bound in ((0.4, 1.0), (8.0, 2.0), (1.0, 4.0), (last, 3.0))
    ]
    logs = [
        math.log(repeated.squares / 4.0 / repeated.bound) - float(special.digamma(2.0)) + math.log(2.0)
        for repeated in seen
    ]
    spare = float(np.var(logs, ddof=1)) - float(special.polygamma(1, 2.0))
    prior = prior_of(seen)
    assert prior.ratio == pytest.approx(math.exp(sum(logs) / 4.0))
    assert float(special.polygamma(1, prior.freedom / 2.0)) == pytest.approx(spare)


def test_metrics_that_differ_only_by_chance_share_one_ratio() -> None:
    """Four metrics with similar deviations: nothing indicates different ratios."""
    assert prior_of([RepeatedMetric(1.0, 4.0, 1.0, 9.0)] * 4).freedom == math.inf


@pytest.mark.parametrize(
    "silent",
    [RepeatedMetric(1.0, 0.0, 1.0, 9.0), RepeatedMetric(0.0, 4.0, 1.0, 9.0), RepeatedMetric(1.0, 4.0, 0.0, 9.0)],
)
def test_two_metrics_give_no_ratio_and_uninformative_metrics_are_ignored(silent: RepeatedMetric) -> None:
    """A metric that never moved or was never repeated does not show how much of a step is noise."""
    repeated = RepeatedMetric(1.0, 4.0, 1.0, 9.0)
    assert prior_of([repeated, repeated, silent]) == Prior(1.0, math.inf)
    assert prior_of([repeated, repeated, repeated, silent]) == prior_of([repeated, repeated, repeated])
    assert prior_of([repeated, repeated, repeated]).ratio < 1.0
    assert prior_of([repeated, repeated, RepeatedMetric(1.0, 1.0, 1.0, 9.0)]).ratio < 1.0, "a single repetition counts"


@pytest.mark.parametrize(
    ("repeated", "prior", "expected"),
    [
        # The degrees of freedom of the prior, limited by the information in the steps of this metric.
        (RepeatedMetric(6.0, 3.0, 4.0, 5.0), Prior(0.5, 7.0), (2.0, 8.0)),
        (RepeatedMetric(6.0, 3.0, 4.0, 5.0), Prior(0.5, 2.0), (2.0, 5.0)),
        (RepeatedMetric(6.0, 3.0, 0.0, 5.0), Prior(0.5, 7.0), (2.0, 3.0)),
        (RepeatedMetric(6.0, 3.0, 0.5, 5.0), Prior(1.0, 7.0), (1.0625, 8.0)),
    ],
)
def test_a_moderated_variance_matches_hand_computed_values(
    repeated: RepeatedMetric, prior: Prior, expected: tuple[float, float]
) -> None:
    assert moderated(repeated, prior) == pytest.approx(expected)


def test_the_variance_of_one_run_is_half_the_variance_of_a_step() -> None:
    """It is estimated from the median size of the steps. Falls and rises count equally."""
    assert step_variance([0.01, -0.03, 9.0]) == pytest.approx((1.4826 * 0.03) ** 2 / 2.0)


@pytest.mark.parametrize(
    ("values", "step", "level"),
    [
        # A release without a change: the level is still expected to move by a quarter of the noise variance.
        ([1.0, 1.3], 1.0, Level(1.0 + 0.3 * 1.25 / 2.25, 1.25 / 2.25, 2)),
        ([1.0, 1.3], 0.0, Level(1.0 + 0.3 * 1.25 / 2.25, 1.25 / 2.25, 2)),
        # Steps with a variance of 4 per run: the level is expected to move with a variance of 6.
        ([1.0, 1.8], 4.0, Level(1.0 + 0.8 * 7.0 / 8.0, 7.0 / 8.0, 2)),
        # A step of three standard deviations, 1.5 each, does not start a new level, in either direction.
        ([0.0, -4.5], 1.0, Level(-4.5 * 1.25 / 2.25, 1.25 / 2.25, 2)),
        ([0.0, 4.6], 1.0, Level(4.6, 1.0, 1)),
        ([0.0, 4.6, 4.6], 1.0, Level(4.6, 1.25 / 2.25, 2)),
        ([1.0, 1.0, 1.0], 1.0, Level(1.0, (5.0 / 9.0 + 0.25) / (5.0 / 9.0 + 1.25), 3)),
    ],
)
def test_a_level_matches_hand_computed_values(values: list[float], step: float, level: Level) -> None:
    """With a wrong gain, a candidate would be compared with a level that never existed."""
    release_level = level_of(values, 1.0, step)
    assert (release_level.value, release_level.variance) == pytest.approx((level.value, level.variance))
    assert release_level.runs == level.runs


def test_a_level_has_a_smaller_error_than_its_last_run() -> None:
    """The level of equal releases is their mean, and its error is smaller than that of one run."""
    level = level_of([1.0, 1.2, 0.9, 1.1], 0.04, 0.04)
    assert level.runs == 4
    assert level.variance < 0.5 * 0.04
    assert 1.0 < level.value < 1.1


def test_a_level_restarts_where_a_release_changed_the_metric() -> None:
    """Otherwise an improvement by half would be averaged with the previous releases."""
    level = level_of([1.0, 1.01, 0.99, 0.5, 0.51], 1e-4, 1e-4)
    assert level.runs == 2
    assert level.value == pytest.approx(0.505, abs=0.002)
    assert level_of([3.0], 0.04, 0.04).variance == 0.04


def test_a_drifting_level_is_followed() -> None:
    """Where steps are larger than the noise, old releases say little about the current level."""
    series = [0.1 * number for number in range(10)]
    assert abs(level_of(series, 1e-2, 1e-2 + 5e-3).value - series[-1]) < abs(level_of(series, 1e-2, 1e-2).value - 0.9)


def test_a_constant_figure_without_repetitions_is_not_an_error() -> None:
    """A history without repetitions in which one figure never changes must not raise an error."""
    assert moderated(RepeatedMetric(0.0, 0.0, 0.0, 5.0), Prior(1.0, math.inf)) == (0.0, 0.0)
