"""Decisions at several looks: p-values against Student's, errors by simulation, and what must not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import LEVEL
from chainmark.stats.sequential import (
    DRAWS,
    FamilyTest,
    Looks,
    chance_for_equal,
    deviations,
    family_test,
    forecast,
    lone_levels,
    spent,
)

NOTHING = np.empty((0, 0))
MARGIN = math.log(1.1)


def looks_at(*runs: int, planned: int | None = None, archive: int = 0) -> Looks:
    return Looks(tuple((count, count) for count in runs), planned or runs[-1], archive)


def once(baseline: FloatArray, candidate: FloatArray, archive: FloatArray = NOTHING, draws: int = DRAWS) -> FamilyTest:
    looks = Looks(((len(baseline), len(candidate)),), min(len(baseline), len(candidate)), len(archive))
    return family_test(baseline, candidate, archive, looks, draws=draws)


def correlated(rng: np.random.Generator, *shape: int, shared: float = 0.9) -> FloatArray:
    """Normal values of which the last axis, metrics, has this pairwise correlation."""
    common = rng.standard_normal((*shape[:-1], 1))
    return np.asarray(math.sqrt(shared) * common + math.sqrt(1.0 - shared) * rng.standard_normal(shape))


# --- the table ------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(-9.0, 9.0), min_size=2, max_size=6), min_size=1, max_size=4))
def test_deviations_keep_the_squares_and_lose_one_degree_of_freedom_a_group(groups: list[list[float]]) -> None:
    rows = deviations([np.array(group)[:, None] for group in groups])
    squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
    assert len(rows) == sum(len(group) - 1 for group in groups)
    assert float(np.square(rows).sum()) == pytest.approx(squares, abs=1e-9)


@pytest.mark.parametrize("runs", [2, 3, 7])
def test_deviations_are_orthonormal_combinations_of_the_runs(runs: int) -> None:
    """So that independent runs of one variance give independent rows of the same variance, without the mean."""
    rows = deviations([np.eye(runs)])
    assert rows @ rows.T == pytest.approx(np.eye(runs - 1), abs=1e-12)
    assert rows.sum(axis=1) == pytest.approx(0.0, abs=1e-12)


def test_single_runs_deviate_from_nothing() -> None:
    assert deviations([np.ones((1, 3)), np.ones((1, 3))]).size == 0
    assert deviations([]).size == 0


# --- p-values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 3), (2, 5), (6, 3)])
def test_one_metric_has_students_p_value(first: int, second: int) -> None:
    """Of 40,000 rotations: four standard errors of the share."""
    rng = np.random.default_rng(first + 10 * second)
    for shift in (0.0, 1.0, 2.5):
        baseline, candidate = rng.standard_normal((first, 1)), shift + rng.standard_normal((second, 1))
        oracle = stats.ttest_ind(candidate[:, 0], baseline[:, 0], equal_var=True, alternative="greater").pvalue
        found = once(baseline, candidate, draws=40_000)
        allowed = 4.0 * math.sqrt(oracle * (1.0 - oracle) / 40_000) + 1e-4
        assert found.p_value == pytest.approx(oracle, abs=allowed)
        assert found.adjusted == (found.p_value,)


def test_the_archives_degrees_of_freedom_count() -> None:
    """The variance is that of both sides and of the archive's rows."""
    rng = np.random.default_rng(3)
    baseline, candidate, archive = rng.standard_normal((2, 1)), 2.0 + rng.standard_normal((3, 1)), np.ones((8, 1))
    squares = 1.0 * baseline.var() * 2 + candidate.var() * 3 + 8.0
    t = float(candidate.mean() - baseline.mean()) / math.sqrt(squares / 11 * (1 / 2 + 1 / 3))
    assert once(baseline, candidate, archive, draws=40_000).p_value == pytest.approx(stats.t.sf(t, 11), abs=0.01)


@pytest.mark.parametrize("archive", [0, 10])
def test_p_values_of_strongly_correlated_metrics_are_uniform_where_nothing_is_worse(archive: int) -> None:
    """Seven metrics of correlation 0.9, 3 + 3 runs: the share below each level is that level."""
    rng = np.random.default_rng(30 + archive)
    p_values = []
    for _ in range(300):
        sides = correlated(rng, 2, 3, 7)
        p_values.append(once(sides[0], sides[1], correlated(rng, archive, 7), draws=400).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_correlation_is_used_and_not_assumed() -> None:
    """Seven copies of a metric are one: not Bonferroni's or Holm's seven; unrelated ones are."""
    rng = np.random.default_rng(4)
    sides = rng.standard_normal((2, 4, 1)) + np.array([0.0, 2.0])[:, None, None]
    one = once(sides[0], sides[1]).p_value
    copies = once(np.repeat(sides[0], 7, axis=1), np.repeat(sides[1], 7, axis=1))
    assert copies.p_value == pytest.approx(one, abs=0.02)
    assert copies.adjusted == pytest.approx([one] * 7, abs=0.02)
    others = rng.standard_normal((2, 4, 6))
    left, right = (np.concatenate(pair, axis=1) for pair in zip(sides, others, strict=True))
    apart = once(left, right)
    assert 3.0 * one < apart.adjusted[0] < 7.0 * one + 0.02


def test_what_is_slightly_worse_in_three_ways_is_found_by_all_three() -> None:
    rng = np.random.default_rng(6)
    baseline, candidate = rng.standard_normal((2, 6, 7))
    candidate = candidate - candidate.mean(axis=0) + baseline.mean(axis=0)
    candidate[:, [1, 4, 6]] += 1.3
    found = once(baseline, candidate)
    assert found.is_worse
    assert set(found.together) == {1, 4, 6}
    assert found.p_value < min(found.adjusted)


def test_the_step_down_is_monotone_and_no_smaller_than_each_metric_alone() -> None:
    rng = np.random.default_rng(8)
    baseline, candidate = correlated(rng, 2, 5, 6, shared=0.3)
    candidate += np.array([3.0, 2.0, 1.0, 0.5, 0.0, -1.0])
    found = once(baseline, candidate)
    t = stats.ttest_ind(candidate, baseline, equal_var=True, alternative="greater")
    order = np.argsort(-t.statistic)
    adjusted = np.array(found.adjusted)[order]
    assert all(later >= earlier for earlier, later in pairwise(adjusted))
    assert all(adjusted >= t.pvalue[order] - 0.01)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.lists(st.floats(1e-6, 1e6), min_size=5, max_size=5))
def test_neither_the_order_of_the_metrics_nor_their_units_matter(order: list[int], scales: list[float]) -> None:
    rng = np.random.default_rng(9)
    baseline, candidate = correlated(rng, 2, 4, 5, shared=0.5)
    candidate += np.array([2.0, 1.0, 0.0, 0.0, -1.0])
    archive = correlated(rng, 6, 5, shared=0.5)
    plain = once(baseline, candidate, archive)
    turned = [(rows * np.array(scales))[:, order] for rows in (baseline, candidate, archive)]
    found = once(*turned)
    # The rotations are the same, but act on other coordinates: equal within their own error.
    assert found.p_value == pytest.approx(plain.p_value, abs=0.04)
    assert found.adjusted == pytest.approx([plain.adjusted[index] for index in order], abs=0.04)


@pytest.mark.filterwarnings("error")
def test_a_metric_without_any_noise() -> None:
    rng = np.random.default_rng(10)
    baseline, candidate = rng.standard_normal((2, 3, 3))
    baseline[:, 2], candidate[:, 2] = 1.0, 1.0
    same = once(baseline, candidate)
    assert not same.is_worse
    assert same.adjusted[2] > 0.5
    candidate[:, 2] = 0.5
    assert not once(baseline, candidate).is_worse
    candidate[:, 2] = 1.5
    worse = once(baseline, candidate)
    assert worse.is_worse
    assert worse.adjusted[2] < 0.01
    assert worse.together[0] == 2


def test_a_limit_makes_a_failure_harder_and_never_easier() -> None:
    rng = np.random.default_rng(11)
    baseline, candidate = rng.standard_normal((2, 4, 2))
    candidate[:, 0] += 6.0
    looks = looks_at(4)
    free, limited, loose = (
        family_test(baseline, candidate, NOTHING, looks, limits=limits)
        for limits in (None, np.array([1.0, 1.0]), np.array([99.0, 99.0]))
    )
    assert free.is_worse
    assert not limited.is_worse
    assert loose == free


def test_the_same_runs_give_the_same_answer() -> None:
    sides = np.random.default_rng(12).standard_normal((2, 4, 3))
    assert once(sides[0], sides[1]) == once(sides[0], sides[1])


# --- the error of all looks together --------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(0, 12), st.booleans())
def test_the_error_spent_grows_and_never_exceeds_its_level(planned: int, added: int, worse: bool) -> None:
    found = spent(looks_at(*range(2, planned + added + 1), planned=planned), worse=worse)
    assert all(0.0 < earlier < later for earlier, later in pairwise(found))
    assert found[-1] < LEVEL
    assert found[planned - 2] == pytest.approx(0.96 * LEVEL)


def stopped(t: FloatArray, levels: Sequence[float], freedom: FloatArray) -> float:
    """The share of the rows of t values, one a look, that any look calls shown."""
    bounds = np.array(
        [stats.t.isf(level, nu) if level > 0.0 else np.inf for level, nu in zip(levels, freedom, strict=True)]
    )
    return float((t >= bounds).any(axis=1).mean())


@pytest.mark.parametrize(
    ("runs", "planned", "archive"), [((2, 3, 4, 5, 6), 6, 0), ((2, 3, 4), 4, 10), ((3, 4, 5), 3, 0), ((2, 4, 8), 8, 5)]
)
def test_the_levels_of_an_interval_spend_what_they_may(runs: tuple[int, ...], planned: int, archive: int) -> None:
    """One metric exactly at its margin, by a simulation of its own: means and variances of growing samples."""
    rng = np.random.default_rng(40)
    looks = looks_at(*runs, planned=planned, archive=archive)
    sides, kept = rng.standard_normal((20_000, 2, runs[-1])), rng.chisquare(archive, 20_000) if archive else 0.0
    values = []
    for count in runs:
        seen = sides[:, :, :count]
        freedom = 2 * count - 2 + archive
        variance = (seen.var(axis=2).sum(axis=1) * count + kept) / freedom
        values.append((seen[:, 1].mean(axis=1) - seen[:, 0].mean(axis=1)) / np.sqrt(variance * 2 / count))
    errors = spent(looks, worse=False)
    t = np.stack(values, axis=1)
    for look in range(1, len(runs) + 1):
        found = stopped(t[:, :look], lone_levels(looks)[:look], looks.degrees_of_freedom[:look])
        assert found == pytest.approx(errors[look - 1], abs=0.006)


@pytest.mark.parametrize("archive", [0, 10])
def test_a_family_at_its_margins_fails_in_five_percent_over_all_looks(archive: int) -> None:
    """Looks after 2, 3, 4 and 6 runs; three standard errors of 300 cases are 3.8 points."""
    rng = np.random.default_rng(50 + archive)
    runs, failed = (2, 3, 4, 6), 0
    for _ in range(300):
        sides, kept = correlated(rng, 2, 6, 5, shared=0.5), correlated(rng, archive, 5, shared=0.5)
        for place, count in enumerate(runs):
            looks = looks_at(*runs[: place + 1], planned=6, archive=archive)
            if family_test(sides[0, :count], sides[1, :count], kept, looks, draws=400).is_worse:
                failed += 1
                break
    assert failed / 300 <= LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / 300)


# --- what further runs would do -------------------------------------------------------------------------------------


def decided(sides: FloatArray, archive: FloatArray, looks: Looks) -> bool:
    """Whether the last look decides: all below their margins, or the family above."""
    count = looks.runs[-1][0]
    baseline, candidate = sides[0, :count], sides[1, :count]
    freedom = looks.degrees_of_freedom[-1]
    squares = sum(np.square(side - side.mean(axis=0)).sum(axis=0) for side in (baseline, candidate))
    error = np.sqrt((squares + np.square(archive).sum(axis=0)) / freedom * 2 / count)
    high = candidate.mean(axis=0) - baseline.mean(axis=0) + stats.t.isf(lone_levels(looks)[-1], freedom) * error
    return bool((high < 0.0).all()) or family_test(baseline, candidate, archive, looks, draws=400).is_worse


def test_what_is_advised_decides_as_often_as_it_says() -> None:
    """Equal releases of 4 % noise that three runs left open: the runs that a forecast of 80 % names decide as many."""
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


def test_more_runs_never_make_a_decision_less_likely() -> None:
    rng = np.random.default_rng(61)
    sides = 0.05 * correlated(rng, 2, 3, 4, shared=0.5)
    found = forecast(sides[0], sides[1] - MARGIN, NOTHING, Looks(((2, 2), (3, 3)), 8), range(4, 9), draws=300)
    chances = [found.decided[runs] for runs in range(4, 9)]
    assert chances == sorted(chances)
    assert found.enough(0.0) == 4
    assert found.enough(1.01) is None


@pytest.mark.parametrize("runs", [10, 20, 40])
def test_the_chance_of_a_new_experiment_is_that_of_a_normal_test(runs: int) -> None:
    """One metric whose noise is known to be 10 %: who plans by this number must get what it promises."""
    known = np.full((400, 1), 0.10) * np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
    pair = np.array([[-1e-9], [1e-9]])
    chance = chance_for_equal(pair, pair, known, np.array([MARGIN]), runs)
    level = lone_levels(looks_at(runs))[-1]
    expected = stats.norm.cdf(MARGIN / (0.10 * math.sqrt(2.0 / runs)) - stats.norm.isf(level))
    assert chance == pytest.approx(expected, abs=0.05)
