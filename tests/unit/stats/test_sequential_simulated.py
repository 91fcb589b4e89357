"""Error rates and forecasts of the sequential decision by simulation: the tests that take seconds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import LEVEL
from chainmark.stats.sequential import Looks, chance_for_equal, family_test, forecast, lone_levels

from tests.unit.stats.sequential_cases import MARGIN, correlated, looks_at, once


@pytest.mark.parametrize("archive", [0, 10])
def test_p_values_of_strongly_correlated_unchanged_metrics_are_uniform(archive: int) -> None:
    """Seven metrics of correlation 0.9, 3 + 3 runs: the share below each level is that level."""
    rng = np.random.default_rng(30 + archive)
    p_values = []
    for _ in range(300):
        sides = correlated(rng, 2, 3, 7)
        p_values.append(once(sides[0], sides[1], correlated(rng, archive, 7), draws=400).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.parametrize(("archive", "below"), [(0, 0.0), (10, 0.0), (10, 4.0), (10, 20.0)])
def test_a_family_at_its_margins_fails_in_five_percent_over_all_looks(archive: int, below: float) -> None:
    """Looks after 2, 3, 4 and 6 runs. Three standard errors of 300 cases are 3.8 points.

    Two of the five metrics may be below their margins by ``below`` deviations, which some or all looks detect.
    """
    rng = np.random.default_rng(50 + archive)
    runs, failed = (2, 3, 4, 6), 0
    for _ in range(300):
        sides, archive_runs = correlated(rng, 2, 6, 5, shared=0.5), correlated(rng, archive, 5, shared=0.5)
        sides[1, :, :2] -= below
        for place, count in enumerate(runs):
            looks = looks_at(*runs[: place + 1], planned=6, archive=archive)
            if family_test(sides[0, :count], sides[1, :count], archive_runs, looks, draws=400).is_worse:
                failed += 1
                break
    assert failed / 300 <= LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / 300)


def decided(sides: FloatArray, archive: FloatArray, looks: Looks) -> bool:
    """Whether the last look decides: all metrics are below their margins, or the family is above."""
    count = looks.runs[-1][0]
    baseline, candidate = sides[0, :count], sides[1, :count]
    freedom = looks.degrees_of_freedom[-1]
    squares = sum(np.square(side - side.mean(axis=0)).sum(axis=0) for side in (baseline, candidate))
    error = np.sqrt((squares + np.square(archive).sum(axis=0)) / freedom * 2 / count)
    high = candidate.mean(axis=0) - baseline.mean(axis=0) + stats.t.isf(lone_levels(looks)[-1], freedom) * error
    return bool((high < 0.0).all()) or family_test(baseline, candidate, archive, looks, draws=400).is_worse


def test_the_recommended_number_of_runs_decides_with_its_stated_chance() -> None:
    """Equal releases with 4 % noise, open after three runs: the runs of an 80 % forecast decide 80 % of them."""
    rng = np.random.default_rng(60)
    advised, done = 0, 0
    for _ in range(300):
        sides, archive = 0.04 * correlated(rng, 2, 10, 4, shared=0.5), 0.04 * correlated(rng, 8, 4, shared=0.5)
        sides[1] -= MARGIN
        looks = Looks(((2, 2), (3, 3)), 10, 8)
        if decided(sides, archive, Looks(((2, 2),), 10, 8)) or decided(sides, archive, looks):
            continue
        enough = forecast(sides[0, :3], sides[1, :3], archive, looks, range(4, 11), draws=300).enough(0.80)
        if enough is None:
            continue
        advised += 1
        done += any(
            decided(sides, archive, Looks(tuple((run, run) for run in range(2, count + 1)), 10, 8))
            for count in range(4, enough + 1)
        )
    assert advised >= 50
    assert done / advised >= 0.80 - 2.5 * math.sqrt(0.16 / advised)


@pytest.mark.parametrize("runs", [10, 20, 40])
def test_the_chance_of_a_new_experiment_matches_a_normal_test(runs: int) -> None:
    """One metric with a known noise of 10 %: a plan based on this number must have the stated chance."""
    known = np.full((400, 1), 0.10) * np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
    pair = np.array([[-1e-9], [1e-9]])
    chance = chance_for_equal(pair, pair, known, np.array([MARGIN]), runs)
    level = lone_levels(looks_at(runs))[-1]
    expected = stats.norm.cdf(MARGIN / (0.10 * math.sqrt(2.0 / runs)) - stats.norm.isf(level))
    assert chance == pytest.approx(expected, abs=0.05)
