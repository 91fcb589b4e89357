"""Trends: the slope of known lines, and the rate of false trends in noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from chainmark.stats.trend import FEWEST, Trend, trend_of


def _noise(rng: np.random.Generator, n: int, correlation: float, rise: float = 0.0) -> list[float]:
    values = np.empty(n)
    values[0] = rng.normal()
    for place in range(1, n):
        values[place] = correlation * values[place - 1] + np.sqrt(1.0 - correlation**2) * rng.normal()
    series: list[float] = (values + rise * np.arange(n) / (n - 1)).tolist()
    return series


def test_a_line_is_found_despite_outliers() -> None:
    """A garbage collection in one block must neither create nor hide a trend."""
    values = [5.0 + 0.25 * place for place in range(40)]
    for place in (3, 17, 39):
        values[place] += 1000.0
    trend = trend_of(values)
    assert trend is not None
    assert trend.slope == pytest.approx(0.25)
    assert trend.begin == pytest.approx(5.0)
    assert trend.rise == pytest.approx(0.25 * 39)
    assert trend.low <= 0.25 <= trend.high


def test_a_rise_and_its_interval_cover_the_steps_between_the_first_and_the_last_value() -> None:
    """Eleven values are ten steps apart, at both ends of the interval as well."""
    trend = Trend(slope=0.5, low=-0.25, high=1.0, begin=7.0, n=11)
    assert trend.rise == 5.0
    assert trend.rise_interval == (-2.5, 10.0)


def test_the_interval_matches_sens_method() -> None:
    """Hollander and Wolfe's rule by hand: n = 10, sd of S = 11.18, and the 11th of 45 slopes from either end."""
    values = [1.0, 2.2, 2.9, 4.3, 4.8, 6.1, 7.3, 7.7, 9.2, 9.9]
    slopes = sorted((values[j] - values[i]) / (j - i) for i in range(10) for j in range(i + 1, 10))
    trend = trend_of(values)
    assert trend is not None
    assert trend.low == pytest.approx(slopes[10])
    assert trend.high == pytest.approx(slopes[-11])


@pytest.mark.parametrize(("correlation", "most"), [(0.0, 0.08), (0.4, 0.12)])
def test_noise_is_rarely_a_trend(correlation: float, most: float) -> None:
    rng = np.random.default_rng(7)
    trends = [trend_of(_noise(rng, 60, correlation)) for _ in range(400)]
    assert sum(trend is not None and (trend.low > 0.0 or trend.high < 0.0) for trend in trends) / 400 < most


def test_a_rise_of_the_size_of_the_noise_is_found() -> None:
    rng = np.random.default_rng(8)
    trends = [trend_of(_noise(rng, 60, 0.2, rise=3.0)) for _ in range(100)]
    assert sum(trend is not None and trend.low > 0.0 for trend in trends) > 95


def test_few_values_and_equal_values_give_no_trend() -> None:
    assert trend_of([1.0] * (FEWEST - 1)) is None
    flat = trend_of([2.0] * 30)
    assert flat is not None
    assert (flat.slope, flat.low, flat.high, flat.begin) == (0.0, 0.0, 0.0, 2.0)


def _interval_by_hand(values: list[float]) -> tuple[float, float]:
    """The interval by the formulas, with ranks, correlation and normal distribution from scipy."""
    n = len(values)
    places = np.arange(n)
    slopes = sorted((values[j] - values[i]) / (j - i) for i in range(n) for j in range(i + 1, n))
    ranks = rankdata(np.array(values) - np.median(slopes) * places, method="ordinal")
    away = ranks - ranks.mean()
    neighbours = sum(away[:-1] * away[1:]) / sum(away**2)
    unbiased = min(0.95, (neighbours + 2 / n) / (1 - 4 / n))
    sd = np.sqrt(n * (n - 1) * (2 * n + 5) / 18 * max(1.0, (1 + unbiased) / (1 - unbiased)))
    outside = max(1, int((len(slopes) - norm.ppf(0.975) * sd) // 2))
    return slopes[outside - 1], slopes[-outside]


@pytest.mark.parametrize("n", [23, 60, 111])
@pytest.mark.parametrize("correlation", [0.2, 0.7])
def test_autocorrelation_widens_the_interval_as_in_the_formula(n: int, correlation: float) -> None:
    values = _noise(np.random.default_rng(n), n, correlation)
    trend = trend_of(values)
    assert trend is not None
    assert (trend.low, trend.high) == pytest.approx(_interval_by_hand(values))


def test_equal_values_rank_in_their_order() -> None:
    """Few distinct values on a line with an exact slope: the interval does not depend on machine and sort order."""
    levels = np.round(2.8 * np.array(_noise(np.random.default_rng(5), 100, 0.8)))
    values = [float(0.25 * place + level) for place, level in enumerate(levels)]
    trend = trend_of(values)
    assert trend is not None
    assert trend.slope == 0.25
    assert (trend.low, trend.high) == pytest.approx(_interval_by_hand(values))


def test_ten_strongly_correlated_values_give_only_the_range() -> None:
    values = [0.0, 1.0, 3.0, 5.0, 6.0, 6.5, 5.5, 4.0, 2.0, 0.5]
    slopes = sorted((values[j] - values[i]) / (j - i) for i in range(10) for j in range(i + 1, 10))
    trend = trend_of(values)
    assert trend is not None
    assert (trend.low, trend.high) == (slopes[0], slopes[-1])
