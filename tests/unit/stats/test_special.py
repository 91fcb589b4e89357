"""Tails and quantiles compared with scipy, and with figures of 60 digits where scipy is not precise enough."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import special as oracle

from chainmark.stats import special

CLOSE = 1e-12
freedoms = st.one_of(st.floats(1.0, 1e6), st.sampled_from([1.0, 1.5, 2.0, 3.7, 29.0, 1e5, 1e6]))
tails = st.floats(-12.0, math.log10(0.5)).map(lambda exponent: 10.0**exponent)
counts = st.floats(0.0, 9.0).map(lambda exponent: float(round(10.0**exponent)))


def _close(trials: float) -> float:
    """Tolerance: scipy's tails (Boost) lose about as many digits as the counts have: 1e-8 at 32 of 3e8 trials."""
    return max(CLOSE, 1e-16 * trials)


def _near(expected: Any, rel: float = CLOSE) -> object:
    return pytest.approx(float(expected), rel=rel, abs=1e-290)


@given(st.floats(-37.0, 37.0))
def test_normal_tails_agree_with_scipy(value: float) -> None:
    assert special.normal_cdf(value) == _near(oracle.ndtr(value))
    assert special.normal_sf(value) == special.normal_cdf(-value)


@given(st.floats(1e-300, 1.0, exclude_max=True))
def test_normal_quantiles_agree_with_scipy(probability: float) -> None:
    assert special.normal_quantile(probability) == pytest.approx(oracle.ndtri(probability), rel=CLOSE, abs=1e-15)


@example(2.9e-05, 1.0)
@given(st.floats(-40.0, 40.0), freedoms)
def test_tails_of_t_agree_with_scipy(value: float, freedom: float) -> None:
    close = max(CLOSE, 1e-16 / max(abs(value), 1e-8))  # scipy loses digits near 0
    assert special.t_cdf(value, freedom) == _near(oracle.stdtr(freedom, value), close)
    assert special.t_sf(value, freedom) == _near(oracle.stdtr(freedom, -value), close)


@example(2.9e-05)
@given(st.floats(-1.0, 1.0))
def test_tails_of_t_are_precise_near_zero(value: float) -> None:
    """With one degree of freedom they have a closed form."""
    assert special.t_cdf(value, 1.0) == _near(0.5 + math.atan(value) / math.pi)


@given(tails, freedoms)
def test_quantiles_of_t_agree_with_scipy(tail: float, freedom: float) -> None:
    for probability in (tail, 1.0 - tail):
        expected = oracle.stdtrit(freedom, probability)
        assert special.t_quantile(probability, freedom) == pytest.approx(expected, rel=CLOSE, abs=1e-15)


@given(st.floats(1e-12, 0.5), freedoms)
def test_a_quantile_of_t_has_the_given_tail(tail: float, freedom: float) -> None:
    assert special.t_cdf(special.t_quantile(tail, freedom), freedom) == _near(tail)


def test_t_with_infinite_degrees_of_freedom_is_normal() -> None:
    for freedom in (None, math.inf):
        assert special.t_sf(1.7, freedom) == special.normal_sf(1.7)
        assert special.t_quantile(0.95, freedom) == special.normal_quantile(0.95)


@given(counts, counts, st.floats(1e-9, 1.0, exclude_max=True))
def test_binomial_tails_agree_with_scipy(count: float, more: float, share: float) -> None:
    trials = count + more
    close = _close(trials)
    at_least, at_most = oracle.betainc(count, more + 1.0, share), oracle.betaincc(count + 1.0, more, share)
    assert special.binomial_at_least(count, trials, share) == _near(at_least, close)
    assert special.binomial_cdf(count, trials, share) == _near(at_most, close)


@given(counts, counts, st.floats(-7.0, 7.0))
def test_binomial_tails_near_the_mean_agree_with_scipy(count: float, more: float, away: float) -> None:
    """Both tails are large there: a random share is almost always far from the counts."""
    trials = count + more + 1.0
    share = (count + 0.5) / trials
    share = min(max(share + away * math.sqrt(share * (1.0 - share) / trials), 0.1 * share), 1.0 - 0.1 * (1.0 - share))
    close = _close(trials)
    assert special.binomial_at_least(count, trials, share) == _near(
        oracle.betainc(count, trials - count + 1.0, share), close
    )
    assert special.binomial_cdf(count, trials, share) == _near(
        oracle.betaincc(count + 1.0, trials - count, share), close
    )


@given(counts, counts, st.sampled_from([0.025, 0.05, 0.1, 1e-3, 1e-9]))
def test_tails_of_share_quantiles_agree_with_scipy(count: float, more: float, tail: float) -> None:
    close = 1e-11 + 1e-15 * (count + more)  # the effect of rounding a share close to 1 on its tail
    low, high = (special.beta_quantile(chance, count, more + 1.0) for chance in (tail, 1.0 - tail))
    assert oracle.betainc(count, more + 1.0, low) == _near(tail, close)
    assert oracle.betainc(count, more + 1.0, high) == _near(1.0 - tail, close)


@given(counts, st.one_of(tails, st.floats(-290.0, -12.0).map(lambda exponent: 10.0**exponent)))
def test_tails_of_poisson_limits_agree_with_scipy(count: float, tail: float) -> None:
    # scipy's own tails are off by 7e-6 at 1e6 events, measured against mpmath, and by 4 % at 1e7.
    assume(count <= 1e6)
    close = 1e-11 if count <= 200 else 2e-5
    assert oracle.gammainc(count, special.poisson_mean_at_least(count, tail)) == _near(tail, close)
    assert oracle.gammaincc(count + 1.0, special.poisson_mean_at_most(count, tail)) == _near(tail, close)


@pytest.mark.parametrize(
    ("count", "trials", "share", "at_least"),
    [
        (779, 1000000000, 1e-06, 0.9999999999998389),
        (1051, 1000000000, 1e-06, 0.056028748376401157),
        (9994966, 1000000000, 0.01, 0.9452173611660137),
        (10022025, 1000000000, 0.01, 1.3041866982181874e-12),
        (300004347, 1000000000, 0.3, 0.38211101051070956),
        (499936754, 1000000000, 0.5, 0.9999683367717207),
        (500063246, 1000000000, 0.5, 3.1671691489162454e-05),
        (989999056, 1000000000, 0.99, 0.6179987713520831),
    ],
)
def test_tails_of_large_counts_are_exact(count: float, trials: float, share: float, at_least: float) -> None:
    """Compared with mpmath at 60 digits. scipy is off by up to 2e-11 here."""
    assert special.binomial_at_least(count, trials, share) == pytest.approx(at_least, rel=5e-14)


@pytest.mark.parametrize("trials", [40, 10_000, 337_128_325, 1_000_000_000])
@pytest.mark.parametrize("count", [1, 5, 32])
@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
def test_tails_of_few_among_many_are_exact(trials: int, count: int, times: float) -> None:
    """Summed term by term with 60 digits. A few errors among many requests decide whether an SLA is met."""
    share = min(0.9, times * count / trials)
    with localcontext() as context:
        context.prec = 60
        rest = 1 - Decimal(share)
        term, below = rest**trials, Decimal(0)
        for number in range(count):
            below += term
            term *= Decimal(share) / rest * (trials - number) / (number + 1)
    assert special.binomial_at_least(count, trials, share) == pytest.approx(float(1 - below), rel=5e-14)
    assert special.binomial_cdf(count - 1, trials, share) == pytest.approx(float(below), rel=5e-14)


def test_the_edges_of_a_distribution_are_certain() -> None:
    assert special.binomial_at_least(0, 10, 0.3) == special.binomial_cdf(10, 10, 0.3) == 1.0
    assert special.binomial_at_least(3, 10, 0.0) == special.binomial_cdf(3, 10, 1.0) == 0.0
    assert special.normal_quantile(0.0) == special.t_quantile(0.0, 3.0) == -math.inf
    assert special.normal_quantile(1.0) == special.t_quantile(1.0, 3.0) == math.inf
    assert special.t_quantile(0.5, 3.0) == 0.0
    assert special.t_quantile(0.0, 0.5) == -math.inf
    assert special.t_sf(math.inf, 3.0) == 0.0
    assert special.t_sf(1e200, 1.0) == pytest.approx(1e-200 / math.pi)


@pytest.mark.parametrize("tail", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("count", [1.0, 50.0, 1e4])
def test_poisson_limits_on_the_other_side_are_exact(count: float, tail: float) -> None:
    """For a probability close to 1, the small distance to 1 must be precise."""
    chance, close = 1.0 - tail, 1e-9 if count <= 50 else 2e-5
    lacking = 1.0 - chance
    assert oracle.gammaincc(count, special.poisson_mean_at_least(count, chance)) == _near(lacking, close)
    assert oracle.gammainc(count + 1.0, special.poisson_mean_at_most(count, chance)) == _near(lacking, close)


def test_arguments_outside_a_distribution_give_nan() -> None:
    """Any other number would be judged as if it were valid."""
    quantiles = [
        special.normal_quantile(1.5),
        special.t_quantile(-0.1, 3.0),
        *(special.t_quantile(probability, -1.0) for probability in (0.0, 0.1, 0.5, 0.9, 1.0)),
        *(special.t_quantile(probability, 0.0) for probability in (0.0, 0.1, 0.9, 1.0)),
        special.t_quantile(math.nan, 3.0),
        special.t_quantile(0.1, math.nan),
        *(special.t_sf(value, freedom) for value in (0.0, 1.0) for freedom in (0.0, -1.0)),
        special.t_sf(1.0, math.nan),
        special.t_sf(math.nan, 3.0),
        special.binomial_at_least(3, 10, math.nan),
        special.beta_quantile(0.5, -1.0, 2.0),
        special.poisson_mean_at_least(-1.0, 0.05),
    ]
    assert [math.isnan(value) for value in quantiles] == [True] * len(quantiles)


@pytest.mark.parametrize("count", [1e7, 1e8, 1e9])
@pytest.mark.parametrize("tail", [0.05, 1e-3, 1e-6])
def test_poisson_limits_of_many_events_match_the_cornish_fisher_expansion(count: float, tail: float) -> None:
    """Cornish and Fisher (1938): the quantile of a gamma variable of shape k is k + z √k + (z² - 1)/3 + O(1/√k)."""
    z = NormalDist().inv_cdf(1.0 - tail)
    for shape, mean_limit, side in (
        (count, special.poisson_mean_at_least(count, tail), -1.0),
        (count + 1.0, special.poisson_mean_at_most(count, tail), 1.0),
    ):
        expected = shape + side * z * math.sqrt(shape) + (z * z - 1.0) / 3.0
        assert mean_limit - expected == pytest.approx(0.0, abs=abs(z**3 - 7.0 * z) / (36.0 * math.sqrt(shape)) + 1e-4)
