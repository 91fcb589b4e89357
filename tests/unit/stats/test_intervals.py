"""Intervals compared with scipy, published values and hand computation. Tests and intervals always agree."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from chainmark.stats.intervals import (
    Contrast,
    Spread,
    Working,
    difference_of,
    from_standard_error,
    is_wider,
    mean_and_variance,
    newcombe,
    not_below_zero,
    own_spread,
    poisson_difference,
    poisson_limits,
    poisson_p_different,
    poisson_ratio,
    pooled,
    welch,
    welch_ratio,
    wilson_limits,
)
from chainmark.stats.multiple import benjamini_hochberg, holm
from chainmark.stats.power import detectable_worsening
from chainmark.stats.special import t_quantile

several = st.lists(st.floats(1.0, 1e3), min_size=2, max_size=8)


@given(several, several)
def test_welch_agrees_with_scipy(baseline: list[float], candidate: list[float]) -> None:
    if np.var(baseline) < 1e-6 or np.var(candidate) < 1e-6:
        return
    contrast = welch(baseline, candidate, Working.DIFFERENCE)
    assert contrast.working is Working.DIFFERENCE
    oracle = stats.ttest_ind(candidate, baseline, equal_var=False)
    interval = oracle.confidence_interval(0.90)
    assert contrast.low == pytest.approx(interval.low, rel=1e-9, abs=1e-9)
    assert contrast.high == pytest.approx(interval.high, rel=1e-9, abs=1e-9)
    assert contrast.p_different == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    greater = stats.ttest_ind(candidate, np.array(baseline) + 1.5, equal_var=False, alternative="greater")
    assert contrast.p_above(1.5) == pytest.approx(greater.pvalue, rel=1e-6, abs=1e-12)


@given(several, several, st.sampled_from([0.05, 0.048, 0.01]))
def test_pooled_agrees_with_scipy(baseline: list[float], candidate: list[float], level: float) -> None:
    if np.var(baseline) < 1e-6 or np.var(candidate) < 1e-6:
        return
    contrast = pooled(baseline, candidate, Working.DIFFERENCE, level=level)
    oracle = stats.ttest_ind(candidate, baseline, equal_var=True)
    interval = oracle.confidence_interval(1.0 - 2.0 * level)
    assert contrast.low == pytest.approx(interval.low, rel=1e-9, abs=1e-9)
    assert contrast.high == pytest.approx(interval.high, rel=1e-9, abs=1e-9)
    assert contrast.p_different == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    greater = stats.ttest_ind(candidate, np.array(baseline) + 1.5, equal_var=True, alternative="greater")
    assert contrast.p_above(1.5) == pytest.approx(greater.pvalue, rel=1e-6, abs=1e-12)


def test_an_archive_adds_its_squares_and_degrees_of_freedom() -> None:
    """Runs of 1, 3 and 4, 8 have squares 2 + 8 with 2 degrees of freedom. Adding 14 with 4 gives a variance of 4."""
    contrast = pooled([1.0, 3.0], [4.0, 8.0], Working.DIFFERENCE, Spread(14.0, 4.0))
    assert (contrast.change, contrast.standard_error, contrast.degrees_of_freedom) == (4.0, 2.0, 6.0)
    assert contrast.high == pytest.approx(4.0 + 2.0 * stats.t.ppf(0.95, 6.0))
    alone = pooled([1.0], [4.0], Working.DIFFERENCE, Spread(14.0, 4.0))
    assert alone.standard_error == pytest.approx(math.sqrt(7.0))
    assert alone.degrees_of_freedom == 4.0


def test_the_spread_of_runs_is_around_the_mean_of_each_side() -> None:
    assert own_spread([1.0, 3.0], [14.0, 18.0, 16.0]) == Spread(10.0, 3.0)
    assert own_spread([1.0], [9.0]) == Spread(0.0, 0.0)


@given(st.integers(1, 8), st.integers(1, 30), st.floats(0.1, 20.0))
def test_a_wider_spread_is_detected_by_the_f_test(first: int, second: int, ratio: float) -> None:
    p_value = stats.f.sf(ratio, first, second)
    spreads = Spread(ratio * first, float(first)), Spread(float(second), float(second))
    assert is_wider(*spreads, p_value * 1.001)
    assert not is_wider(*spreads, p_value * 0.999)


def test_any_spread_is_wider_than_zero_spread() -> None:
    none, some = Spread(0.0, 4.0), Spread(1.0, 4.0)
    assert is_wider(some, none, 0.01)
    assert not is_wider(none, some, 0.01)
    assert not is_wider(none, none, 0.01)
    assert not is_wider(Spread(0.0, 0.0), some, 0.01)


@pytest.mark.filterwarnings("error")
def test_zero_spread_gives_an_interval_of_zero_width() -> None:
    same = welch([200.0] * 3, [200.0] * 3, Working.DIFFERENCE)
    assert (same.change, same.low, same.high, same.p_different, same.p_above(0.0)) == (0.0, 0.0, 0.0, 1.0, 1.0)
    moved = welch([math.log(0.1)] * 3, [math.log(0.2)] * 3, Working.LOG)
    assert moved.width == 0.0
    assert (moved.p_above(0.1), moved.p_above(1.0), moved.p_different) == (0.0, 1.0, 0.0)
    rates = welch_ratio([2.0, 2.0], [3.0, 3.0])
    assert (rates.change, rates.low, rates.high) == (0.5, 0.5, 0.5)


def test_rounding_does_not_count_as_spread() -> None:
    values = [0.1 + 0.2, 0.3, 0.3]
    contrast = welch(values, [0.3, 0.3, 0.3], Working.DIFFERENCE)
    assert (contrast.change, contrast.width) == (0.0, 0.0)


def test_welch_ratio_matches_hand_computed_values() -> None:
    """Means 2 and 6, variances 2 and 8, 2 + 4 runs: the baseline's error is multiplied by the squared ratio.

    SE² = (2/2 · 3² + 8/4) / 2² = 2.75, ν = 2.75² / (2.25² / 1 + 0.5² / 3).
    """
    contrast = welch_ratio([1.0, 3.0], [6.0 - math.sqrt(12.0), 6.0, 6.0, 6.0 + math.sqrt(12.0)])
    freedom = 2.75**2 / (2.25**2 + 0.5**2 / 3.0)
    assert contrast.working is Working.RATIO
    assert contrast.change == pytest.approx(2.0)
    assert contrast.standard_error == pytest.approx(math.sqrt(2.75))
    assert contrast.degrees_of_freedom == pytest.approx(freedom)
    half = stats.t.ppf(0.95, freedom) * math.sqrt(2.75)
    assert contrast.low == -1.0
    assert contrast.high == pytest.approx(2.0 + half)
    assert contrast.p_above(0.1) == pytest.approx(stats.t.sf(1.9 / math.sqrt(2.75), freedom))
    assert contrast.p_different == pytest.approx(2.0 * stats.t.sf(2.0 / math.sqrt(2.75), freedom))


def test_runs_that_hardly_differ_have_welchs_degrees_of_freedom() -> None:
    """Means 10 and 20: SE² = (2/2 · 2² + 8/4) / 10² = 0.06, as small as on a quiet machine."""
    contrast = welch_ratio([9.0, 11.0], [20.0 - math.sqrt(12.0), 20.0, 20.0, 20.0 + math.sqrt(12.0)])
    assert contrast.standard_error == pytest.approx(math.sqrt(0.06))
    assert contrast.degrees_of_freedom == pytest.approx(0.06**2 / (0.04**2 + 0.02**2 / 3.0))


@given(several, several, st.floats(0.01, 100.0))
def test_a_ratio_does_not_depend_on_the_unit(baseline: list[float], candidate: list[float], unit: float) -> None:
    contrast = welch_ratio(baseline, candidate)
    other = welch_ratio([unit * value for value in baseline], [unit * value for value in candidate])
    for name in ("change", "low", "high", "standard_error", "degrees_of_freedom"):
        assert getattr(other, name) == pytest.approx(getattr(contrast, name), rel=1e-6, abs=1e-9)


def test_welch_ratio_misses_the_true_value_in_ten_percent() -> None:
    """A rate that triples, with 8 % noise and 6 + 6 runs. Without the square, one interval in three would miss it."""
    rng = np.random.default_rng(8)
    left, right = 5.0 + 0.8 * rng.normal(size=(2000, 6)), 15.0 + 0.2 * rng.normal(size=(2000, 6))
    ratios = [welch_ratio(a.tolist(), b.tolist()) for a, b in zip(left, right, strict=True)]
    missed = sum(not contrast.low <= 2.0 <= contrast.high for contrast in ratios) / len(ratios)
    assert 0.08 <= missed <= 0.13


def test_equal_runs_have_the_pooled_degrees_of_freedom() -> None:
    """Zero spread gives no estimate of its own error, so the pooled number of both sides is used."""
    assert welch([2.0] * 3, [2.0] * 4, Working.DIFFERENCE).degrees_of_freedom == 5.0
    assert welch_ratio([2.0] * 2, [3.0] * 5).degrees_of_freedom == 5.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_spreads_and_changes_at_the_level_of_rounding_are_zero(sign: float, scale: float) -> None:
    """Relative to the larger value, for any size and sign."""
    value = sign * scale
    assert mean_and_variance([value, value * (1.0 + 5e-13)]) == (value, 0.0)
    assert mean_and_variance([value * (1.0 + 5e-13), value]) == (value * (1.0 + 5e-13), 0.0)
    assert mean_and_variance([value, value * (1.0 + 4e-12)])[1] > 0.0
    assert difference_of(value, value * (1.0 + 5e-13)) == 0.0
    assert difference_of(value * (1.0 + 5e-13), value) == 0.0
    assert difference_of(value, value * (1.0 + 4e-12)) * sign > 0.0
    assert difference_of(value, 2.0 * value) == value
    assert mean_and_variance([value, 0.0, 2.0 * value]) == pytest.approx((value, value * value))
    assert difference_of(value, 0.0) == -value


def test_mean_and_variance_match_hand_computed_values() -> None:
    assert mean_and_variance([1.0, 2.0, 6.0]) == (3.0, 7.0)
    assert mean_and_variance([-3.0]) == (-3.0, 0.0)
    assert mean_and_variance([-1.0, 1.0]) == (0.0, 2.0)


def test_a_ratio_is_bounded_at_a_decrease_of_100_percent() -> None:
    cut = not_below_zero(from_standard_error(-0.9, 0.2, None, Working.RATIO))
    assert (cut.low, cut.change) == (-1.0, -0.9)
    assert cut.high == pytest.approx(-0.9 + 0.2 * 1.6448536)
    beyond = not_below_zero(from_standard_error(-3.0, 0.2, None, Working.RATIO))
    assert (beyond.low, beyond.high) == (-1.0, -1.0)
    inside = from_standard_error(-0.5, 0.1, None, Working.RATIO)
    assert not_below_zero(inside) == inside


def test_the_standard_error_of_an_exact_interval_follows_from_its_width() -> None:
    """It determines the number of runs that are needed."""
    for contrast in (poisson_ratio(20, 1000, 31, 900), poisson_difference(6, 1000, 4, 800), newcombe(3, 1000, 12, 900)):
        assert contrast.standard_error == pytest.approx((contrast.high - contrast.low) / (2.0 * 1.6448536269514722))
        assert contrast.degrees_of_freedom is None


@pytest.mark.parametrize(
    ("a", "b"), [(0, 0), (1, 0), (0, 1), (60, 60), (83, 117), (101, 100), (150, 150), (151, 49), (1, 250)]
)
def test_counts_are_compared_by_the_e_test_up_to_two_hundred(a: int, b: int) -> None:
    """Larger counts are compared by the conditional test, which is slightly more conservative."""
    p_value = poisson_p_different(a, 100.0, b, 120.0)
    if a + b == 0:
        assert p_value == 1.0
    elif a + b <= 200:
        assert p_value == pytest.approx(stats.poisson_means_test(a, 100.0, b, 120.0).pvalue, rel=1e-6, abs=3e-10)
    else:
        share = 120.0 / 220.0
        tails = stats.binom.cdf(b, a + b, share), stats.binom.sf(b - 1, a + b, share)
        assert p_value == pytest.approx(min(1.0, 2.0 * min(tails)), rel=1e-9)


def test_equal_rates_of_many_counts_do_not_differ() -> None:
    assert poisson_p_different(5000, 1e3, 5000, 1e3) == 1.0
    assert poisson_p_different(20, 1e3, 40, 2e3) == pytest.approx(1.0)


@pytest.mark.parametrize(("a", "b"), [(20, 0), (1, 0), (20, 20)])
def test_a_poisson_ratio_of_zero_events_is_bounded_by_zero(a: int, b: int) -> None:
    """Without an event on the candidate, nothing indicates a rise, and a fall to zero cannot be excluded."""
    contrast = poisson_ratio(a, 1000, b, 500)
    if b == 0:
        assert (contrast.change, contrast.low) == (-1.0, -1.0)
        assert contrast.p_above(0.1) == 1.0
        assert contrast.p_below(-1.0) == contrast.p_below(-2.0) == 1.0
    else:
        assert (contrast.p_above(-1.0), contrast.p_below(-1.0)) == (0.0, 1.0)
        assert contrast.change == pytest.approx(1.0)


def test_differences_of_poisson_rates_and_shares_match_hand_computed_values() -> None:
    """Garwood's and Wilson's limits, combined by Zou and Donner's rule."""
    z = 1.6448536269514722
    (la, ua), (lb, ub) = poisson_limits(6, 1000, z), poisson_limits(14, 800, z)
    contrast = poisson_difference(6, 1000, 14, 800)
    change = 14 / 800 - 6 / 1000
    assert contrast.working is Working.DIFFERENCE
    assert contrast.change == pytest.approx(change)
    assert contrast.low == pytest.approx(change - math.hypot(14 / 800 - lb, ua - 6 / 1000))
    assert contrast.high == pytest.approx(change + math.hypot(ub - 14 / 800, 6 / 1000 - la))
    assert contrast.p_different == poisson_p_different(6, 1000, 14, 800)


@pytest.mark.parametrize(
    ("successes", "trials", "z"),
    [(0, 20, 1.6448536), (20, 20, 1.6448536), (3, 20, 0.5), (1, 7, 2.5758293), (5, 9, 0.0)],
)
def test_wilson_limits_agree_with_scipy(successes: int, trials: int, z: float) -> None:
    level = 1.0 - 2.0 * stats.norm.sf(z)
    exact = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    assert wilson_limits(successes, trials, z) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize(
    ("count", "exposure", "z"), [(0, 3.0, 1.6448536), (1, 2.0, 1.6448536), (4, 2.0, 0.3), (250, 10.0, 1.9599640)]
)
def test_garwood_limits_are_chi_squared_quantiles(count: int, exposure: float, z: float) -> None:
    tail = stats.norm.sf(z)
    low = stats.chi2.ppf(tail, 2 * count) / 2 if count else 0.0
    high = stats.chi2.isf(tail, 2 * count + 2) / 2
    assert poisson_limits(count, exposure, z) == pytest.approx((low / exposure, high / exposure), rel=1e-9)


@pytest.mark.parametrize("make", [newcombe, poisson_difference])
def test_p_values_of_extreme_bounds_are_zero_and_one(make: Callable[..., Contrast]) -> None:
    contrast = make(500, 1000, 600, 1000)
    assert (contrast.p_above(0.9), contrast.p_below(-0.9)) == (1.0, 1.0)
    assert contrast.p_above(-0.9) < 1e-100
    assert contrast.p_below(0.9) < 1e-100
    # At the estimate itself, both sides are equally likely.
    assert contrast.p_above(contrast.change) == pytest.approx(0.5, abs=1e-3)
    assert contrast.p_below(contrast.change) == pytest.approx(0.5, abs=1e-3)


def test_p_values_around_a_large_change() -> None:
    """From 90 % to 10 %: with so many trials, no limit is close to a change of 0."""
    fell, rose = newcombe(9000, 10_000, 1000, 10_000), newcombe(1000, 10_000, 9000, 10_000)
    assert fell.p_above(fell.high) == pytest.approx(0.95, abs=1e-6)
    assert rose.p_below(rose.low) == pytest.approx(0.95, abs=1e-6)


def test_p_different_of_a_difference_of_shares_follows_its_interval() -> None:
    contrast = newcombe(3, 1000, 12, 900)
    assert contrast.p_different == pytest.approx(2.0 * min(contrast.p_above(0.0), contrast.p_below(0.0)))
    assert newcombe(10, 1000, 10, 1000).p_different == pytest.approx(1.0, abs=1e-6)


def test_wilson_limits_match_the_published_example() -> None:
    # Newcombe (1998), table of single proportions: 81 of 263 at 95 % is 0.2553 to 0.3662.
    low, high = wilson_limits(81, 263, 1.959964)
    assert [low, high] == pytest.approx([0.2553, 0.3662], abs=5e-5)


def test_newcombe_at_ninety_percent_recovers_its_parts() -> None:
    z = 1.6448536269514722
    (la, ua), (lb, ub) = wilson_limits(48, 80, z), wilson_limits(56, 70, z)
    contrast = newcombe(48, 80, 56, 70)
    assert contrast.change == pytest.approx(0.2)
    assert contrast.low == pytest.approx(0.2 - math.sqrt((0.8 - lb) ** 2 + (ua - 0.6) ** 2))
    assert contrast.high == pytest.approx(0.2 + math.sqrt((ub - 0.8) ** 2 + (0.6 - la) ** 2))


def test_garwood_limits_match_exact_values() -> None:
    low, high = poisson_limits(10, 2.0, 1.959964)
    assert [low, high] == pytest.approx([4.795 / 2, 18.390 / 2], abs=1e-3)
    assert poisson_limits(0, 1.0, 1.6448536)[0] == 0.0
    assert poisson_limits(0, 1.0, 1.6448536)[1] == pytest.approx(-math.log(0.05), rel=1e-6)


@pytest.mark.parametrize("count", [1, 30])
def test_the_poisson_ratio_is_the_exact_conditional_interval(count: int) -> None:
    contrast = poisson_ratio(20, 1000, count, 1500)
    limits = stats.binomtest(count, 20 + count).proportion_ci(0.90, method="exact")
    odds = 1000 / 1500
    assert contrast.working is Working.RATIO
    assert contrast.change == pytest.approx(count / 30 - 1.0)
    assert contrast.p_different == poisson_p_different(20, 1000, count, 1500)
    assert contrast.low == pytest.approx(limits.low / (1 - limits.low) * odds - 1)
    assert contrast.high == pytest.approx(limits.high / (1 - limits.high) * odds - 1)
    assert poisson_ratio(20, 1000, 0, 1000).change == -1.0


@pytest.mark.parametrize(("a", "b"), [(3, 9), (40, 44), (120, 60), (0, 4)])
def test_the_conditional_test_is_near_the_e_test(a: int, b: int) -> None:
    oracle = stats.poisson_means_test(a, 100.0, b, 120.0).pvalue
    # scipy omits 1e-10 of each tail.
    assert poisson_p_different(a, 100.0, b, 120.0) == pytest.approx(oracle, rel=1e-6, abs=3e-10)


def test_the_observed_counts_belong_to_the_tail() -> None:
    """If rounding put the observed value below itself, the p-value would miss its largest term."""
    assert poisson_p_different(16, 2572.0447155077068, 23, 4069.7945692693115) == pytest.approx(0.770281, abs=1e-6)
    for a, b in ((5, 0), (1, 1), (30, 18)):
        assert poisson_p_different(a, 700.3, b, 91.7) == pytest.approx(poisson_p_different(b, 91.7, a, 700.3))


@given(st.integers(1, 300), st.integers(0, 300), st.floats(-0.9, 3.0))
def test_the_poisson_ratios_p_values_are_binomial_tails(a: int, b: int, bound: float) -> None:
    contrast = poisson_ratio(a, 900.0, b, 1100.0)
    share = 1100.0 * (1.0 + bound) / (900.0 + 1100.0 * (1.0 + bound))
    assert contrast.p_above(bound) == pytest.approx(stats.binom.sf(b - 1, a + b, share), rel=1e-9, abs=1e-300)
    assert contrast.p_below(bound) == pytest.approx(stats.binom.cdf(b, a + b, share), rel=1e-9, abs=1e-300)


def test_large_counts_need_no_large_table() -> None:
    assert poisson_p_different(10**7, 1e6, 10**7 + 20_000, 1e6) < 1e-4


def contrasts() -> list[Contrast]:
    return [
        from_standard_error(0.04, 0.03, 4.0, Working.LOG),
        from_standard_error(-0.04, 0.03, None, Working.DIFFERENCE),
        welch([1.0, 1.1, 1.3], [1.2, 1.5, 1.1], Working.DIFFERENCE),
        poisson_ratio(20, 1000, 31, 900),
        poisson_difference(0, 1000, 4, 1000),
        poisson_difference(6, 1000, 4, 800),
        newcombe(3, 1000, 12, 900),
        newcombe(1000, 1000, 998, 1000),
        newcombe(9000, 10_000, 1000, 10_000),
    ]


@pytest.mark.parametrize("index", range(9))
def test_the_interval_is_two_one_sided_tests(index: int) -> None:
    contrast = contrasts()[index]
    assert contrast.p_above(contrast.low) == pytest.approx(0.05, abs=1e-6)
    assert contrast.p_below(contrast.high) == pytest.approx(0.05, abs=1e-6)
    grid = np.linspace(contrast.low - contrast.width, contrast.high + contrast.width, 25)
    above = [contrast.p_above(float(bound)) for bound in grid]
    assert all(0.0 <= p <= 1.0 for p in above)
    assert all(left <= right + 1e-9 for left, right in itertools.pairwise(above))


@given(st.integers(0, 50), st.integers(0, 50), st.integers(50, 5000), st.integers(50, 5000))
@settings(max_examples=80, deadline=None)
def test_swapping_the_sides_mirrors_proportions_and_counts(a: int, b: int, n: int, m: int) -> None:
    for make in (newcombe, poisson_difference):
        contrast, other = make(a, n, b, m), make(b, m, a, n)
        assert contrast.low == pytest.approx(-other.high, abs=1e-12)
        assert contrast.p_above(0.001) == pytest.approx(other.p_below(-0.001), abs=1e-6)
        assert math.isfinite(contrast.low)
        assert math.isfinite(contrast.high)


def test_the_poisson_interval_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        a, b = int(rng.poisson(15)), int(rng.poisson(18))
        contrast = poisson_ratio(max(a, 1), 1.0, b, 1.0)
        covered += contrast.low <= 0.2 <= contrast.high
    assert covered / 400 >= 0.89


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_false_discovery_control_agrees_with_scipy(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values), rel=1e-12)
    assert benjamini_hochberg([]) == []


def test_holm_matches_hand_computed_values() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04: multiplied by 4, 3, 2, 1 gives 0.04, 0.06, 0.06, 0.04, then made monotone.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.9, 0.8, 0.7]) == [1.0, 1.0, 1.0]
    assert holm([]) == []


def test_benjamini_hochberg_matches_hand_computed_values() -> None:
    # Sorted 0.005, 0.02, 0.03, 0.5: multiplied by 4/1, 4/2, 4/3, 1 gives 0.02, 0.04, 0.04, 0.5.
    assert benjamini_hochberg([0.03, 0.005, 0.5, 0.02]) == pytest.approx([0.04, 0.02, 0.5, 0.04])
    assert benjamini_hochberg([]) == []


def test_the_detectable_worsening_lies_beyond_the_margin() -> None:
    worsening = detectable_worsening(0.0953, 0.02, None, 0.05)
    assert worsening == pytest.approx(0.0953 + (1.6449 + 0.8416) * 0.02, abs=1e-4)
    assert detectable_worsening(0.0953, 0.02, None, 0.025) == pytest.approx(0.0953 + (1.96 + 0.8416) * 0.02, abs=1e-4)
    assert t_quantile(0.95, 4.0) == pytest.approx(2.1318, abs=1e-4)
