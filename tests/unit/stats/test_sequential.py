"""Decisions at several looks: p-values compared with Student's t, simulated error rates, and invariances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from chainmark.stats import sequential
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import LEVEL
from chainmark.stats.sequential import (
    Forecast,
    Looks,
    chance_for_equal,
    deviations,
    family_test,
    forecast,
    lone_levels,
    spent,
)

from tests.unit.stats.sequential_cases import MARGIN, NOTHING, correlated, looks_at, once

# --- the table ------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(-9.0, 9.0), min_size=2, max_size=6), min_size=1, max_size=4))
def test_deviations_preserve_the_squares_and_lose_one_degree_of_freedom_per_group(groups: list[list[float]]) -> None:
    rows = deviations([np.array(group)[:, None] for group in groups])
    squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
    assert len(rows) == sum(len(group) - 1 for group in groups)
    assert float(np.square(rows).sum()) == pytest.approx(squares, abs=1e-9)


@pytest.mark.parametrize("runs", [2, 3, 7])
def test_deviations_are_orthonormal_combinations_of_the_runs(runs: int) -> None:
    """Independent runs with one variance give independent rows with the same variance, without the mean level."""
    rows = deviations([np.eye(runs)])
    assert rows @ rows.T == pytest.approx(np.eye(runs - 1), abs=1e-12)
    assert rows.sum(axis=1) == pytest.approx(0.0, abs=1e-12)


def test_single_runs_have_no_deviations() -> None:
    assert deviations([np.ones((1, 3)), np.ones((0, 3)), np.ones((1, 3))]).shape == (0, 3)
    assert deviations([]).shape == (0, 0)


# --- p-values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 3), (2, 5), (6, 3)])
def test_one_metric_has_students_p_value(first: int, second: int) -> None:
    """The tolerance is four standard errors of the share of 40,000 rotations."""
    rng = np.random.default_rng(first + 10 * second)
    for shift in (0.0, 1.0, 2.5):
        baseline, candidate = rng.standard_normal((first, 1)), shift + rng.standard_normal((second, 1))
        oracle = stats.ttest_ind(candidate[:, 0], baseline[:, 0], equal_var=True, alternative="greater").pvalue
        result = once(baseline, candidate, draws=40_000)
        allowed = 4.0 * math.sqrt(oracle * (1.0 - oracle) / 40_000) + 1e-4
        assert result.p_value == pytest.approx(oracle, abs=allowed)
        assert result.adjusted == (result.p_value,)


def test_the_archives_degrees_of_freedom_count() -> None:
    """The variance is pooled over both sides and the rows of the archive."""
    rng = np.random.default_rng(3)
    baseline, candidate, archive = rng.standard_normal((2, 1)), 2.0 + rng.standard_normal((3, 1)), np.ones((8, 1))
    squares = 1.0 * baseline.var() * 2 + candidate.var() * 3 + 8.0
    t = float(candidate.mean() - baseline.mean()) / math.sqrt(squares / 11 * (1 / 2 + 1 / 3))
    assert once(baseline, candidate, archive, draws=40_000).p_value == pytest.approx(stats.t.sf(t, 11), abs=0.01)


def test_correlation_is_used_and_not_assumed() -> None:
    """Seven copies of a metric count as one, unlike with Bonferroni or Holm. Seven independent ones count as seven."""
    rng = np.random.default_rng(4)
    sides = rng.standard_normal((2, 4, 1)) + np.array([0.0, 2.0])[:, None, None]
    p_value = once(sides[0], sides[1]).p_value
    copies = once(np.repeat(sides[0], 7, axis=1), np.repeat(sides[1], 7, axis=1))
    assert copies.p_value == pytest.approx(p_value, abs=0.02)
    assert copies.adjusted == pytest.approx([p_value] * 7, abs=0.02)
    others = rng.standard_normal((2, 4, 6))
    left, right = (np.concatenate(pair, axis=1) for pair in zip(sides, others, strict=True))
    apart = once(left, right)
    assert 3.0 * p_value < apart.adjusted[0] < 7.0 * p_value + 0.02


def test_three_slightly_worse_metrics_are_found_together() -> None:
    rng = np.random.default_rng(6)
    baseline, candidate = rng.standard_normal((2, 6, 7))
    candidate = candidate - candidate.mean(axis=0) + baseline.mean(axis=0)
    candidate[:, [1, 4, 6]] += 1.3
    result = once(baseline, candidate)
    assert result.is_worse
    assert set(result.together) == {1, 4, 6}
    assert result.p_value < min(result.adjusted)


def test_the_step_down_is_monotone_and_no_smaller_than_each_metric_alone() -> None:
    rng = np.random.default_rng(8)
    baseline, candidate = correlated(rng, 2, 5, 6, shared=0.3)
    candidate += np.array([3.0, 2.0, 1.0, 0.5, 0.0, -1.0])
    result = once(baseline, candidate)
    t = stats.ttest_ind(candidate, baseline, equal_var=True, alternative="greater")
    order = np.argsort(-t.statistic)
    adjusted = np.array(result.adjusted)[order]
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
    result = once(*turned)
    # The rotations are the same but act on other coordinates, so the results agree within the simulation error.
    assert result.p_value == pytest.approx(plain.p_value, abs=0.04)
    assert result.adjusted == pytest.approx([plain.adjusted[index] for index in order], abs=0.04)


@pytest.mark.filterwarnings("error")
def test_a_metric_without_noise_is_tested() -> None:
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


def steady(rng: np.random.Generator, *, worse: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seven metrics: the first is worse, all others are far below their margins."""
    baseline, candidate, archive = (rng.standard_normal((rows, 7)) for rows in (4, 4, 10))
    return baseline, candidate + np.array([worse, *[-30.0] * 6]), archive


def test_metrics_that_are_clearly_not_worse_do_not_hide_a_worse_one() -> None:
    """A throughput that never changes must not make a worse latency harder to detect."""
    tables = steady(np.random.default_rng(15), worse=2.0)
    baseline, candidate, archive = (rows[:, :1] for rows in tables)
    alone, result = once(baseline, candidate, archive), once(*tables)
    assert (result.p_value, result.level) == (alone.p_value, alone.level)
    assert result.adjusted == (alone.p_value, *[1.0] * 6)
    assert result.together == (0,)


def test_a_metric_is_omitted_only_if_all_its_tests_agree() -> None:
    """A count of 0 in all runs has no noise between runs, and shows little if it was hardly observed."""
    baseline, candidate, archive = steady(np.random.default_rng(15), worse=2.0)
    looks = Looks(((4, 4),), 4, 10)
    unsure, sure = (
        family_test(baseline, candidate, archive, looks, limits=np.array([99.0, *[limit] * 6]))
        for limit in (-1.0, -30.0)
    )
    assert sure == once(baseline, candidate, archive)
    assert unsure.p_value > 2.0 * sure.p_value


@pytest.mark.parametrize(("runs", "share"), [((2,), 0.85 * math.sqrt(1 / 5)), ((2, 6), 1.0 - 0.85 * math.sqrt(1 / 5))])
def test_omitting_metrics_uses_two_percent_of_the_error_of_a_look(runs: tuple[int, ...], share: float) -> None:
    looks = looks_at(*runs, planned=6, archive=3)
    bound = stats.t.ppf(0.02 * 0.05 * 0.96 * share / 3, 2 * runs[-1] + 1)
    assert sequential._in_question(np.array([0.0, bound + 1e-6, bound - 1e-6]), looks).tolist() == [0, 1]
    assert sequential._in_question(np.array([-99.0, -98.0, -97.0]), looks).tolist() == [2]


@pytest.mark.parametrize("power", [-80, 80])
def test_metrics_of_very_different_sizes_are_tested_equally(power: int) -> None:
    """The smaller of two metrics in seconds and bytes must not be lost in the rounding of the larger one."""
    rng = np.random.default_rng(13)
    tables = rng.standard_normal((4, 3)), 1.0 + rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    sizes = np.array([1.0, 2.0**power, 1.0])
    baseline, candidate, archive = (rows * sizes for rows in tables)
    assert once(baseline, candidate, archive) == once(*tables)


def test_equally_worse_metrics_are_listed_in_catalogue_order() -> None:
    """Otherwise the same runs would be reported differently on another machine."""
    baseline, candidate = (np.repeat(np.array([[-0.1], [0.0], [0.1]]) + shift, 40, axis=1) for shift in (0.0, 1.0))
    assert once(baseline, candidate, draws=100).together == (0, 1, 2)


@pytest.mark.parametrize(("planned", "level"), [(3, 113), (5, 79), (2, 188)])
def test_the_level_of_a_first_look_is_the_error_spent_on_worse(planned: int, level: int) -> None:
    """Of 4,000 rotations 5 % · 96 % · 98 % · 85 % · √(1 / 2) may stop, for 5 rounds √(1 / 4), at the end 96 % · 98 %.

    The level is the p-value of the last of them, which counts these rotations and the observed value.
    """
    rng = np.random.default_rng(14)
    baseline, candidate = rng.standard_normal((2, 2, 1))
    result = family_test(baseline, candidate, rng.standard_normal((8, 1)), looks_at(2, planned=planned, archive=8))
    assert result.level == pytest.approx((level + 1) / 4_001, abs=1e-9)


# --- the error of all looks together --------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(0, 12), st.booleans())
def test_the_error_spent_grows_and_never_exceeds_its_level(planned: int, added: int, worse: bool) -> None:
    errors = spent(looks_at(*range(2, planned + added + 1), planned=planned), worse=worse)
    assert all(0.0 < earlier < later for earlier, later in pairwise(errors))
    assert errors[-1] < LEVEL
    assert errors[planned - 2] == pytest.approx(0.96 * LEVEL)


def stopped(t: FloatArray, levels: Sequence[float], freedom: FloatArray) -> float:
    """The share of rows of t values, one value per look, that at least one look calls significant."""
    bounds = np.array(
        [stats.t.isf(level, nu) if level > 0.0 else np.inf for level, nu in zip(levels, freedom, strict=True)]
    )
    return float((t >= bounds).any(axis=1).mean())


@pytest.mark.parametrize(
    ("runs", "planned", "archive"),
    [((2, 3, 4, 5, 6), 6, 0), ((2, 3, 4), 4, 10), ((3, 4, 5), 3, 0), ((2, 4, 8), 8, 5), ((2, 3, 4), 4, 300)],
)
def test_the_levels_of_an_interval_spend_their_error(runs: tuple[int, ...], planned: int, archive: int) -> None:
    """One metric exactly at its margin, in an independent simulation of means and variances of growing samples."""
    rng = np.random.default_rng(40)
    looks = looks_at(*runs, planned=planned, archive=archive)
    sides, archive_squares = (
        rng.standard_normal((20_000, 2, runs[-1])),
        rng.chisquare(archive, 20_000) if archive else 0.0,
    )
    values = []
    for count in runs:
        seen = sides[:, :, :count]
        freedom = 2 * count - 2 + archive
        variance = (seen.var(axis=2).sum(axis=1) * count + archive_squares) / freedom
        values.append((seen[:, 1].mean(axis=1) - seen[:, 0].mean(axis=1)) / np.sqrt(variance * 2 / count))
    errors = spent(looks, worse=False)
    t = np.stack(values, axis=1)
    for look in range(1, len(runs) + 1):
        share = stopped(t[:, :look], lone_levels(looks)[:look], looks.degrees_of_freedom[:look])
        assert share == pytest.approx(errors[look - 1], abs=0.006)


# --- what further runs would do -------------------------------------------------------------------------------------


def test_more_runs_never_make_a_decision_less_likely() -> None:
    rng = np.random.default_rng(61)
    sides = 0.05 * correlated(rng, 2, 3, 4, shared=0.5)
    expected_looks = forecast(sides[0], sides[1] - MARGIN, NOTHING, Looks(((2, 2), (3, 3)), 8), range(4, 9), draws=300)
    chances = [expected_looks.decided[runs] for runs in range(4, 9)]
    assert chances == sorted(chances)
    assert expected_looks.enough(0.0) == 4
    assert expected_looks.enough(1.01) is None


@pytest.mark.parametrize("runs", [6, 12])
def test_the_chance_of_a_new_experiment_matches_the_normal_test(runs: int) -> None:
    """Two independent metrics, each with its own margin and noise."""
    signs = np.where(np.arange(60)[:, None] & np.array([1, 2]), 1.0, -1.0)
    noise, margins = np.array([0.10, 0.05]), np.array([0.17, 0.06])
    pair = np.array([[-1e-9, -1e-9], [1e-9, 1e-9]])
    chance = chance_for_equal(pair, pair, signs * noise, margins, runs)
    level = lone_levels(looks_at(runs))[-1]
    shown = stats.norm.cdf(margins / (noise * math.sqrt(2.0 / runs)) - stats.norm.isf(level))
    assert chance == pytest.approx(shown.prod(), abs=0.06)


def far(runs: int, mean: float) -> FloatArray:
    """Runs around a mean, almost without noise."""
    return np.asarray(mean + 1e-6 * (np.arange(runs) % 2)[:, None])


@pytest.mark.parametrize("mean", [-0.10, -0.03, 0.10, 0.25])
def test_a_forecast_matches_the_normal_distribution(mean: float) -> None:
    """Four and six runs, then ten per side: the forecast is the observed change, with the error of the unknown runs.

    The mean of N runs, n of which are known, varies by s² (1 - n/N)² / n because the true mean is unknown, and by
    s² (N - n) / N² because of the future runs.
    """
    spread, (first, second), later = 0.10, (4, 6), 10
    known = spread * np.where(np.arange(40) % 2, 1.0, -1.0)[:, None]
    looks = Looks(((first, second),), later, len(known))
    expected_looks = forecast(far(first, 0.0), far(second, mean), known, looks, [later], draws=2_000)
    assert list(expected_looks.decided) == [later]
    variance = sum((1 - n / later) ** 2 / n + (later - n) / later**2 for n in (first, second))
    # The noise is pooled over 40 + 4 - 1 + 6 - 1 degrees of freedom, the last 8 of which have almost no noise.
    scale = spread * math.sqrt(40 / 48)
    future = Looks(((first, second), (later, later)), later, len(known))
    freedom, error = 58.0, spread * math.sqrt((40 + 10 * 40 / 48) / 58) * math.sqrt(2.0 / later)
    equal_below = -stats.t.isf(lone_levels(future)[-1], freedom) * error
    level = family_test(far(later, 0.0), far(later, 0.0), known, future, draws=20_000).level
    normal = stats.norm(mean, scale * math.sqrt(variance))
    chance = normal.cdf(equal_below) + normal.sf(stats.t.isf(level, freedom) * error)
    assert expected_looks.decided[later] == pytest.approx(chance, abs=0.05)


def test_a_decided_metric_does_not_change_the_chance_of_another() -> None:
    """Each metric has its own mean and its own noise."""
    rows = np.arange(40)[:, None]
    known = np.concatenate([0.10 * np.where(rows % 2, 1.0, -1.0), 0.01 * np.where(rows % 4 < 2, 1.0, -1.0)], axis=1)
    looks = Looks(((5, 5),), 10, 40)
    baseline = np.concatenate([far(5, 0.0), far(5, 5.0)], axis=1)
    candidate = np.concatenate([far(5, -0.10), far(5, 4.0)], axis=1)
    both = forecast(baseline, candidate, known, looks, [10], draws=2_000).decided[10]
    alone = forecast(baseline[:, :1], candidate[:, :1], known[:, :1], looks, [10], draws=2_000).decided[10]
    assert 0.3 < alone < 0.9
    assert both == pytest.approx(alone, abs=0.05)


def decided_at(looks: Looks, sides: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Whether experiments without an archive are decided, per draw and look."""
    noise = sequential._Noise.of(np.array([[1.0]]))
    return sequential._decided(sequential._Groups.of(*sides, looks), noise, looks)


def test_a_forecast_decides_by_students_t() -> None:
    """Three runs per side have 4 degrees of freedom. A normal quantile would decide too early."""
    t = np.linspace(-4.0, 4.0, 4_001)
    baseline = np.broadcast_to(np.array([-1.0, 0.0, 1.0])[:, None], (len(t), 3, 1))
    candidate = baseline + (t * math.sqrt(2.0 / 3.0))[:, None, None]
    shares = decided_at(looks_at(3), (baseline, candidate))[:, 0]
    bound = stats.t.isf(0.048, 4)
    assert shares[t < -bound - 0.002].all()
    assert not shares[(t > -bound + 0.002) & (t < bound - 0.15)].any()
    assert shares[t > bound + 0.15].all()


def test_a_forecast_spends_the_error_of_each_look_like_the_experiment() -> None:
    """Both metrics at the margin: "worse" at the first of two looks in 5 % · 96 % · 85 % · √(1 / 2) of experiments."""
    looks = looks_at(2, 3)
    sides = np.random.default_rng(75).standard_normal((2, 40_000, 3, 1))
    shares = decided_at(looks, (sides[0], sides[1]))
    worse, equal = spent(looks, worse=True), spent(looks, worse=False)
    assert shares[:, 0].mean() == pytest.approx(worse[0] + equal[0], abs=0.0035)
    assert shares.any(axis=1).mean() == pytest.approx(worse[1] + equal[1], abs=0.005)


def test_a_decision_at_an_earlier_look_is_final() -> None:
    """The chance is that of a decision at this look or at an earlier one."""
    known = 0.1 * np.where(np.arange(40) % 2, 1.0, -1.0)[:, None]
    looks = Looks(((2, 2),), 12, len(known))
    expected_looks = forecast(far(2, 0.0), far(2, -0.1), known, looks, [4, 12])
    last = forecast(far(2, 0.0), far(2, -0.1), known, looks, [12])
    assert expected_looks.decided[12] > expected_looks.decided[4] > 0.0
    assert expected_looks.decided[12] >= last.decided[12] - 0.04  # the previous look has spent some of the error


def test_the_runs_needed_are_the_first_that_reach_the_chance() -> None:
    expected_looks = Forecast({4: 0.2, 5: 0.8, 6: 0.9})
    assert [expected_looks.enough(chance) for chance in (0.0, 0.2, 0.21, 0.8, 0.9, 0.91)] == [4, 4, 5, 5, 6, None]


# --- written out ----------------------------------------------------------------------------------------------------


def test_the_error_that_each_look_may_spend() -> None:
    """Of 5 %, 4 % are reserved for added runs. Of the rest, "worse" has 85 % before the last planned look."""
    looks = Looks(((2, 9), (3, 3), (5, 4), (5, 5), (6, 6), (9, 8)), 5)
    worse = [0.85 * math.sqrt(part) * 0.96 for part in (1 / 4, 2 / 4, 3 / 4)]
    equal = [math.sqrt(part) * 0.96 for part in (1 / 4, 2 / 4, 3 / 4)]
    rest = [0.96, 1.0 - 0.04 / 2, 1.0 - 0.04 / 4]
    assert spent(looks, worse=True) == pytest.approx([0.05 * share for share in (*worse, *rest)])
    assert spent(looks, worse=False) == pytest.approx([0.05 * share for share in (*equal, *rest)])
    # A look with one run on a side, or with none, spends nothing.
    assert spent(Looks(((0, 3), (1, 2), (3, 3)), 3), worse=True) == pytest.approx([0.0, 0.0, 0.048])
    # A plan of one run per side whose first run was excluded, as in a manifest written by another tool.
    assert spent(Looks(((0, 1), (1, 1)), 1), worse=True) == pytest.approx([0.0, 0.048])


def test_t_of_every_look_and_metric_matches_students_t() -> None:
    """Sides of different length, and an archive: exactly the values computed by hand from the runs of each look."""
    rng = np.random.default_rng(70)
    looks = Looks(((2, 3), (4, 3), (5, 6)), 6, 3)
    baseline, candidate, archive = (rng.standard_normal((2, rows, 2)) for rows in (5, 6, 3))
    rows = sequential._around_mean(sequential._stacked(baseline, candidate, looks.runs))
    table = np.concatenate([archive, rows], axis=1)
    contrasts, seen = sequential._contrasts(looks)
    t_values = sequential._t_values(table, 3, contrasts, seen, looks.degrees_of_freedom)
    assert t_values.shape == (2, 3, 2)
    # The same from groups, also for values whose squares are large: those of heights, or of bytes.
    level = np.array([1e5, -1e5])[:, None, None]
    for shift in (0.0, level):
        groups = sequential._Groups.of(baseline + shift, candidate + shift, looks)
        groups = groups.with_archive(np.square(archive).sum(axis=1))
        assert groups.t_values(looks) == pytest.approx(t_values, abs=1e-8)
    for look, (first, second) in enumerate(looks.runs):
        left, right = baseline[:, :first], candidate[:, :second]
        squares = left.var(axis=1) * first + right.var(axis=1) * second + np.square(archive).sum(axis=1)
        error = np.sqrt(squares / (first + second - 2 + 3) * (1 / first + 1 / second))
        assert t_values[:, look] == pytest.approx((right.mean(axis=1) - left.mean(axis=1)) / error, abs=1e-9)
    assert looks.degrees_of_freedom.tolist() == [6.0, 8.0, 12.0]


@pytest.mark.filterwarnings("error")
def test_t_without_noise_is_large_and_of_no_change_is_0() -> None:
    """A NaN would compare as larger or smaller than every other ratio."""
    looks = looks_at(2)
    table = sequential._around_mean(np.array([[[0.0] * 3, [0.0] * 3, [1.0, -1.0, 0.0], [1.0, -1.0, 0.0]]]))
    contrasts, seen = sequential._contrasts(looks)
    t_values = sequential._t_values(table, 0, contrasts, seen, looks.degrees_of_freedom)
    assert t_values.tolist() == [[[1e3, -1e3, 0.0]]]
    groups = sequential._Groups.of(np.zeros((1, 2, 3)), np.array([[[1.0, -1.0, 0.0]] * 2]), looks)
    assert groups.t_values(looks).tolist() == t_values.tolist()


@pytest.mark.parametrize("shape", [(6, 3), (3, 5), (4, 4)])
def test_rotations_preserve_covariances_and_have_no_preferred_direction(shape: tuple[int, int]) -> None:
    """This includes more metrics than rows. A rotation with a preferred direction would bias every p-value."""
    table = np.random.default_rng(71).standard_normal(shape)
    turned, archive = sequential._rotated(table, 0, 4_000)
    assert archive == 0
    assert turned.shape == (4_000, *shape)
    assert turned[::400].transpose(0, 2, 1) @ turned[::400] == pytest.approx(
        np.broadcast_to(table.T @ table, (10, shape[1], shape[1])), abs=1e-9
    )
    lengths = np.square(table).sum(axis=0)
    assert np.abs(turned.mean(axis=0)).max() < 5.0 * math.sqrt(lengths.max() / shape[0] / 4_000)
    assert np.square(turned).mean(axis=0) == pytest.approx(
        np.broadcast_to(lengths / shape[0], shape), abs=0.1 * lengths.max() / shape[0]
    )
    assert (turned == sequential._rotated(table, 0, 4_000)[0]).all()


def test_a_large_archive_is_rotated_like_a_table_of_all_its_rows() -> None:
    """A few rows represent it: its sums of squares, and the runs' rows, have the same moments as with all of them."""
    table = np.random.default_rng(72).standard_normal((60, 3)) * [1.0, 2.0, 3.0]
    few, archive = sequential._rotated(table, 50, 40_000)
    every, none = sequential._rotated(table, 0, 40_000)
    assert (archive, few.shape, none, every.shape) == (3, (40_000, 13, 3), 0, (40_000, 60, 3))
    squares, all_squares = (np.square(rows).sum(axis=1) for rows in (few[:, :3], every[:, :50]))
    assert squares.mean(axis=0) == pytest.approx(all_squares.mean(axis=0), rel=0.003)
    assert squares.var(axis=0) == pytest.approx(all_squares.var(axis=0), rel=0.05)
    assert np.corrcoef(squares.T) == pytest.approx(np.corrcoef(all_squares.T), abs=0.03)
    runs, all_runs = few[:, 3:].reshape(-1, 3), every[:, 50:].reshape(-1, 3)
    assert np.cov(runs.T) == pytest.approx(np.cov(all_runs.T), rel=0.02, abs=0.05)
    assert few.transpose(0, 2, 1)[::4_000] @ few[::4_000] == pytest.approx(
        np.broadcast_to(table.T @ table, (10, 3, 3)), abs=1e-9
    )


def test_each_look_stops_its_share_of_the_draws() -> None:
    """Of 20 draws, 2 stop at the first look, 3 more at the second, none at the third, and one at the last."""
    order = np.arange(20)
    p_values = np.stack([(order + 1) / 20, (20 - order) / 20, np.full(20, 0.5), (7 * order % 20 + 1) / 20], axis=1)
    thresholds = sequential._thresholds(p_values, [0.1, 0.25, 0.29, 0.31])
    # At the last look draws 2 to 16 continue. The third of them has the smallest p: 7 · 3 mod 20 + 1.
    assert thresholds.tolist() == [0.10, 0.15, 0.0, 0.10]
    ties = np.array([[0.1], [0.1], [0.1], [0.9]])
    assert sequential._thresholds(np.repeat(ties, 2, axis=1), [0.25, 0.75]).tolist() == [0.1, 0.0]
    assert sequential._thresholds(p_values[:, :1], [0.04]).tolist() == [0.0]


def test_a_rank_is_the_share_that_is_at_least_as_large() -> None:
    """The value itself counts, so a p-value is never 0."""
    ranks = sequential._ranked(np.array([3.0, 1.0, 2.0, 2.0]), np.array([0.0, 1.0, 2.0, 2.5, 3.0, 9.0]))
    assert ranks.tolist() == [1.0, 1.0, 0.8, 0.4, 0.4, 0.2]


def rank(null: Sequence[float], value: float) -> float:
    return (sum(null_value >= value for null_value in null) + 1) / (len(null) + 1)


@pytest.mark.parametrize("metrics", [1, 3, 4, 6])
def test_the_family_is_tested_by_the_largest_and_the_three_largest_statistics(metrics: int) -> None:
    """Every p-value worked out by hand: for each of the two statistics, and for the smaller p-value of both."""
    rng = np.random.default_rng(72 + metrics)
    null, observed = rng.standard_normal((40, 2, metrics)), 1.0 + rng.standard_normal((3, 2, metrics))
    null_p, found_p = sequential._combined(null, observed)
    for look in range(2):
        sums = [[sum(sorted(row, reverse=True)[:size]) for row in null[:, look]] for size in (1, 3)]
        sums = sums if metrics > 3 else sums[:1]

        def smallest(row: FloatArray, sums: list[list[float]] = sums) -> float:
            own = [sum(sorted(row, reverse=True)[:size]) for size in (1, 3)]
            return min(rank(of, value) for of, value in zip(sums, own, strict=False))

        least = [smallest(row) for row in null[:, look]]
        for rows, p_values in ((null, null_p), (observed, found_p)):
            expected = [rank([-p_value for p_value in least], -smallest(row)) for row in rows[:, look]]
            assert p_values[:, look] == pytest.approx(expected)


def test_the_step_down_matches_westfall_and_young() -> None:
    """Each metric is tested against the largest of the less extreme ones. A less extreme one has no smaller p-value."""
    rng = np.random.default_rng(73)
    null, observed = rng.standard_normal((50, 5)), np.array([0.4, 1.5, 1.49, -1.0, 1.0])
    order = np.argsort(-observed)
    expected, highest = {}, 0.0
    for place, index in enumerate(order.tolist()):
        highest = max(highest, rank(null[:, order[place:]].max(axis=1).tolist(), observed[index]))
        expected[index] = highest
    assert sequential._step_down(null, observed, order) == tuple(expected[index] for index in range(5))
    assert rank(null[:, [2, 4, 0, 3]].max(axis=1).tolist(), 1.49) < expected[1] == expected[2], "it is raised"


def test_a_single_look_has_the_whole_error_and_the_number_of_draws_hardly_matters() -> None:
    assert lone_levels(looks_at(4, planned=6)) == tuple(spent(looks_at(4, planned=6), worse=False))
    few, many = (lone_levels(looks_at(2, 3, 4), draws) for draws in (20_000, 50_000))
    assert few == pytest.approx(many, abs=0.004)
    assert few != many
    assert len(few) == 3


def test_a_family_test_reports_the_deciding_level_and_order() -> None:
    """At the second look, with an archive: both the level and the order of the metrics are those of this look."""
    rng = np.random.default_rng(74)
    baseline, candidate, archive = (rng.standard_normal((rows, 4)) for rows in (4, 4, 6))
    candidate[:2, 3] += 9.0
    candidate[2:, 3] -= 9.0
    candidate[:, 1] += 4.0
    looks = looks_at(2, 4, archive=6)
    result = family_test(baseline, candidate, archive, looks)
    t = candidate.mean(axis=0) - baseline.mean(axis=0)
    squares = baseline.var(axis=0) * 4 + candidate.var(axis=0) * 4 + np.square(archive).sum(axis=0)
    t = t / np.sqrt(squares / 12 / 2)
    assert result.together == tuple(np.argsort(-t)[:3].tolist())
    assert result.together[0] == 1
    first, last = spent(looks, worse=True)
    # Of the draws that continue after the first look: at least the newly spent error, at most all spent error.
    assert last - first - 0.002 < result.level < last
    assert len(result.adjusted) == 4
    assert result.adjusted[1] == min(result.adjusted)
    assert result.is_worse is (result.p_value <= result.level)
    plain = family_test(baseline, candidate, archive, looks, limits=t + 1e-9)
    assert plain == result
    held = family_test(baseline, candidate, archive, looks, limits=np.array([9.0, 0.5, 9.0, 9.0]))
    assert held.adjusted[1] > result.adjusted[1]
    assert held.p_value > result.p_value


def _correlated_noise(rows: int) -> tuple[sequential._Noise, FloatArray]:
    """A source of noise, and the covariance that its deviations have."""
    mixed = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.8], [0.0, 0.0, 2.0]])
    known = np.random.default_rng(3).standard_normal((rows, 3)) @ mixed
    return sequential._Noise.of(known), known.T @ known / rows


@pytest.mark.parametrize("rows", [2, 3, 4, 400])
def test_noise_is_drawn_from_the_covariance_of_the_deviations(rows: int) -> None:
    """The cost does not grow with the number of deviations."""
    noise, covariance = _correlated_noise(rows)
    assert noise.factor.shape == (min(rows, 3), 3)
    assert noise.factor.T @ noise.factor == pytest.approx(covariance)
    assert (_correlated_noise(rows)[0].drawn(3) == _correlated_noise(rows)[0].drawn(3)).all()
    drawn = noise.drawn(200_000)
    assert drawn.T @ drawn / len(drawn) == pytest.approx(covariance, abs=0.05)


@pytest.mark.parametrize("rows", [1, 3, 4, 70])
def test_sums_of_squares_have_a_wishart_distribution(rows: int) -> None:
    """As if every row were drawn: the mean is n σ², with a covariance of 2 n σ⁴ between metrics."""
    noise, covariance = _correlated_noise(100)
    squares = noise.squares(80_000, rows)
    assert squares.shape == (80_000, 3)
    assert squares.mean(axis=0) == pytest.approx(rows * np.diag(covariance), rel=0.02)
    assert np.cov(squares.T) == pytest.approx(2.0 * rows * covariance**2, rel=0.08, abs=0.1 * rows)


def test_no_rows_have_no_squares() -> None:
    """A look that adds one run to each side adds nothing to the squares around the groups' means."""
    assert (_correlated_noise(100)[0].squares(5, 0) == np.zeros((5, 3))).all()


def test_equal_experiments_have_students_t_at_every_look() -> None:
    """Looks that add one run, none, or several to a side, beside an archive."""
    looks = Looks(((2, 3), (3, 3), (3, 4), (9, 9)), 9, 12)
    noise, _ = _correlated_noise(100)
    t = noise.equal(40_000, looks).t_values(looks)
    for look, freedom in enumerate(looks.degrees_of_freedom):
        for metric in range(3):
            assert stats.kstest(t[:, look, metric], stats.t(freedom).cdf).statistic < 0.01
    # The correlation of the means that two looks have in common is that of their precisions.
    shared = (1 / 3 + 1 / 4) ** -0.5 * (1 / 9 + 1 / 9) ** 0.5
    assert np.corrcoef(t[:, 2, 0], t[:, 3, 0])[0, 1] == pytest.approx(shared, abs=0.03)


def test_a_forecast_omits_metrics_that_are_clearly_not_worse() -> None:
    """Six metrics far below their margins do not reduce the chance to detect a seventh that is worse."""
    known = 0.10 * np.where(np.arange(280).reshape(40, 7) * 3 % 7 < 3.5, 1.0, -1.0)
    looks = Looks(((4, 4),), 8, len(known))
    baseline = np.tile(far(4, 0.0), 7)
    candidate = np.concatenate([far(4, 0.09), *[far(4, -0.9)] * 6], axis=1)
    alone = forecast(baseline[:, :1], candidate[:, :1], known[:, :1], looks, [8], draws=4_000).decided[8]
    among = forecast(baseline, candidate, known, looks, [8], draws=4_000).decided[8]
    noise = sequential._Noise.of(known)
    sides = sequential._Groups.of(baseline[None], candidate[None], looks).with_archive(np.square(known).sum(axis=0))
    future = Looks(((4, 4), (8, 8)), 8, len(known))
    continued = noise.continued(sides, 4_000, looks, future)
    all_of_them = sequential._decided(continued, noise, future).any(axis=1).mean()
    assert 0.3 < alone < 0.9
    assert among == pytest.approx(alone, abs=0.04)
    assert all_of_them < alone - 0.08
