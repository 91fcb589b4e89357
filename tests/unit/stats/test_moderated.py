"""Variances of few repetitions, drawn towards a second source: against scipy, and against what was put in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from chainmark.stats.level import level_of
from chainmark.stats.moderated import (
    Prior,
    Repeated,
    digamma,
    inverse_trigamma,
    moderated,
    prior_of,
    step_variance,
    trigamma,
)


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 2.5, 7.99, 8.0, 40.0, 1e6])
def test_the_derivatives_of_the_gamma_function_are_scipys(x: float) -> None:
    assert digamma(x) == pytest.approx(float(special.digamma(x)), rel=1e-12, abs=1e-12)
    assert trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=1e-12)
    assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_a_few_large_steps_do_not_make_noise() -> None:
    """One release in ten changes a metric by half: the others tell how much runs deviate, and a little more."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0.0, 0.02, 200)
    changes = np.where(rng.random(200) < 0.1, 0.5, 0.0).cumsum()
    assert 0.019 < math.sqrt(step_variance(np.diff(noise + changes))) < 0.026
    assert float(np.std(np.diff(noise + changes))) > 0.15


def test_the_bound_counts_as_far_as_the_repetitions_bear_it_out() -> None:
    """Where steps are twice the noise everywhere, that is seen over all metrics, and taken off."""
    rng = np.random.default_rng(2)
    true = np.exp(rng.normal(-4.0, 1.0, 40)) ** 2
    seen = [Repeated(variance * rng.chisquare(3), 3.0, 4.0 * variance, 6.0) for variance in true]
    prior = prior_of(seen)
    assert prior.ratio == pytest.approx(0.25, rel=0.35)
    found = np.array([moderated(one, prior)[0] for one in seen])
    alone = np.array([one.squares / one.freedom for one in seen])
    assert np.std(np.log(found / true)) < 0.7 * np.std(np.log(alone / true))


def test_intervals_with_the_moderated_variance_hold_what_they_promise() -> None:
    """90 % intervals of the difference of two runs cover it in about 90 %: too small a variance would raise alarms."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        true = np.exp(rng.normal(-4.0, 0.7, 10)) ** 2
        seen = [Repeated(v * rng.chisquare(3), 3.0, v * rng.chisquare(6) / 6.0, 6.0) for v in true]
        prior = prior_of(seen)
        for one, variance in zip(seen, true, strict=True):
            estimate, freedom = moderated(one, prior)
            reach = stats.t.ppf(0.95, freedom) * math.sqrt(2.0 * estimate)
            covered.append(abs(rng.normal(0.0, math.sqrt(2.0 * variance))) < reach)
    assert 0.87 < np.mean(covered) < 0.94


def test_without_repetitions_the_bound_stands_for_itself() -> None:
    """With nothing to say how much of a step is noise, all of it is."""
    seen = [Repeated(0.0, 0.0, 4.0, 5.0) for _ in range(9)]
    assert prior_of(seen) == Prior(1.0, math.inf)
    assert moderated(seen[0], prior_of(seen)) == (4.0, 5.0)


def test_the_bound_is_never_exceeded_by_the_prior() -> None:
    """Steps hold the noise and the changes: repetitions that deviate more say so for their own metric alone."""
    seen = [Repeated(30.0, 3.0, 1.0, 5.0) for _ in range(5)]
    assert prior_of(seen).ratio == 1.0
    assert 1.0 < moderated(seen[0], prior_of(seen))[0] < 10.0


def test_a_level_is_better_known_than_its_last_run() -> None:
    """Of equal releases the level is their mean, and its error smaller than one run's."""
    level = level_of([1.0, 1.2, 0.9, 1.1], 0.04, 0.04)
    assert level.runs == 4
    assert level.variance < 0.5 * 0.04
    assert 1.0 < level.value < 1.1


def test_a_level_begins_anew_where_a_release_changed_the_metric() -> None:
    """Else an improvement of half would be averaged with what it improved."""
    level = level_of([1.0, 1.01, 0.99, 0.5, 0.51], 1e-4, 1e-4)
    assert level.runs == 2
    assert level.value == pytest.approx(0.505, abs=0.002)
    assert level_of([3.0], 0.04, 0.04).variance == 0.04


def test_a_drifting_level_follows() -> None:
    """Where steps are larger than the noise, releases of long ago say little of the level now."""
    series = [0.1 * number for number in range(10)]
    assert abs(level_of(series, 1e-2, 1e-2 + 5e-3).value - series[-1]) < abs(level_of(series, 1e-2, 1e-2).value - 0.9)
