"""Contrasts: the difference between a candidate and a baseline, with a 90 % interval and one-sided p-values.

Every constructor is a pure function of numbers. A contrast is on a *working* scale: the logarithm of a ratio, a ratio
minus one, or a plain difference. A 90 % interval is two one-sided tests at 5 %, which the verdict needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from chainmark.stats import special
from chainmark.stats.centiles import FloatArray
from chainmark.stats.special import t_quantile

LEVEL = 0.05  # of each of the two one-sided tests that an interval is; exact, as counts' p-values can be equal to it
CONFIDENCE = 1.0 - 2.0 * LEVEL
_LARGEST_Z = 37.0  # beyond it the normal tail is smaller than a float can hold
_ROUNDING = 1e-12  # of a distance between logarithms or shares
_HALVINGS = 48  # of the range up to it: to 2e-13


class Working(StrEnum):
    """The scale on which a contrast is computed."""

    LOG = "logarithm of the ratio"
    RATIO = "ratio minus one"
    DIFFERENCE = "difference"


@dataclass(frozen=True)
class Contrast:
    """Candidate against baseline on a working scale.

    Attributes:
        working: the scale of the numbers.
        change: the point estimate; positive means that the candidate's value is larger.
        low, high: the 90 % interval.
        p_above: one-sided p-value of "the change is at most this bound" against "it is larger".
        p_below: one-sided p-value of "the change is at least this bound" against "it is smaller".
        p_different: two-sided p-value of "there is no change".
        standard_error: of the change; for intervals that are not symmetrical, their width over that of a normal one.
        degrees_of_freedom: of the t distribution; None for the normal and the exact ones.
    """

    working: Working
    change: float
    low: float
    high: float
    p_above: Callable[[float], float]
    p_below: Callable[[float], float]
    p_different: float
    standard_error: float
    degrees_of_freedom: float | None = None

    @property
    def width(self) -> float:
        """Width of the interval on the working scale."""
        return self.high - self.low


def from_standard_error(
    change: float,
    standard_error: float,
    degrees_of_freedom: float | None,
    working: Working,
    level: float = LEVEL,
) -> Contrast:
    """A contrast with a t (or normal) interval.

    Args:
        change: on the working scale.
        standard_error: of the change, >= 0; 0 gives an interval of zero width and p-values of 0 or 1.
        degrees_of_freedom: None for a known standard error.
        working: the scale of the numbers.
        level: error of the interval at each end.
    """

    def tail(distance: float) -> float:
        if standard_error > 0.0:
            return special.t_sf(distance / standard_error, degrees_of_freedom)
        return 0.0 if distance > _ROUNDING else 1.0

    half = t_quantile(1.0 - level, degrees_of_freedom) * standard_error
    return Contrast(
        working=working,
        change=change,
        low=change - half,
        high=change + half,
        p_above=lambda bound: tail(change - bound),
        p_below=lambda bound: tail(bound - change),
        p_different=min(1.0, 2.0 * tail(abs(change))),
        standard_error=standard_error,
        degrees_of_freedom=degrees_of_freedom,
    )


def mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample variance; a spread at the level of rounding counts as zero.

    Args:
        values: at least one value; the variance of a single one is 0.
    """
    # A few numbers, thousands of times: arrays would take longer.
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return float(values[0]), 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def difference_of(baseline: float, candidate: float) -> float:
    """``candidate - baseline``, 0 if they differ by rounding only."""
    difference = candidate - baseline
    return 0.0 if abs(difference) <= 1e-12 * max(abs(baseline), abs(candidate)) else difference


def _welch_freedom(first: float, n_first: int, second: float, n_second: int) -> float:
    """Welch-Satterthwaite from the two squared standard errors; with no spread at all the pooled number."""
    total = first + second
    if total <= 0.0:
        return float(n_first + n_second - 2)
    return total * total / (first * first / (n_first - 1) + second * second / (n_second - 1))


def welch(baseline: Sequence[float], candidate: Sequence[float], working: Working) -> Contrast:
    """Welch's t interval for the difference of the means of two sides' runs.

    Args:
        baseline: one estimate per run, at least two; logarithms when the working scale is the logarithm of the ratio.
        candidate: likewise.
        working: LOG or DIFFERENCE.

    Source: Welch (1947); the same as ``scipy.stats.ttest_ind(..., equal_var=False).confidence_interval(0.90)``.
    """
    mean_a, variance_a = mean_and_variance(baseline)
    mean_b, variance_b = mean_and_variance(candidate)
    squared_a, squared_b = variance_a / len(baseline), variance_b / len(candidate)
    freedom = _welch_freedom(squared_a, len(baseline), squared_b, len(candidate))
    return from_standard_error(difference_of(mean_a, mean_b), math.sqrt(squared_a + squared_b), freedom, working)


def pooled(
    baseline: Sequence[float],
    candidate: Sequence[float],
    working: Working,
    archive: Spread | None = None,
    level: float = LEVEL,
) -> Contrast:
    """Student's t interval for the difference of the means of two sides' runs, with one variance for all of them.

    Args:
        baseline: one estimate per run; logarithms when the working scale is the logarithm of the ratio.
        candidate: likewise; without an archive one side has at least two.
        working: LOG or DIFFERENCE.
        archive: runs of other equal builds, which add to the variance.
        level: error of the interval at each end.

    Source: Student (1908); with equal numbers of runs its standard error is Welch's.
    """
    own = own_spread(baseline, candidate)
    squares = own.squares + (archive.squares if archive else 0.0)
    freedom = own.degrees_of_freedom + (archive.degrees_of_freedom if archive else 0.0)
    error = math.sqrt(squares / freedom * (1.0 / len(baseline) + 1.0 / len(candidate)))
    means = mean_and_variance(baseline)[0], mean_and_variance(candidate)[0]
    return from_standard_error(difference_of(*means), error, freedom, working, level)


@dataclass(frozen=True)
class Spread:
    """Squared deviations of runs from the means of their groups, and their degrees of freedom."""

    squares: float
    degrees_of_freedom: float

    @property
    def variance(self) -> float:
        """Of one run."""
        return self.squares / self.degrees_of_freedom


def own_spread(baseline: Sequence[float], candidate: Sequence[float]) -> Spread:
    """Of the runs of two sides, each around its own mean."""
    squares = [mean_and_variance(side)[1] * (len(side) - 1) for side in (baseline, candidate)]
    return Spread(math.fsum(squares), len(baseline) + len(candidate) - 2.0)


def is_wider(first: Spread, second: Spread, level: float) -> bool:
    """Whether the first variance is larger than the second by more than chance, by the F test.

    Source: Fisher (1924); F's tail is the one of a binomial variable with halves for counts.
    """
    if first.squares <= 0.0:
        return False
    half_first, half_second = first.degrees_of_freedom / 2.0, second.degrees_of_freedom / 2.0
    share = second.squares / (second.squares + first.squares)
    return special.binomial_at_least(half_second, half_first + half_second - 1.0, share) < level


def welch_ratio(baseline: Sequence[float], candidate: Sequence[float], level: float = LEVEL) -> Contrast:
    """Welch's interval for the ratio of two means of raw values, minus one, by the delta method.

    Args:
        baseline: one rate per run, at least two, with a mean above 0; single runs may be 0.
        candidate: likewise; its mean may be 0.
        level: error of the interval at each end.
    """
    mean_a, variance_a = mean_and_variance(baseline)
    mean_b, variance_b = mean_and_variance(candidate)
    ratio = 1.0 + difference_of(mean_a, mean_b) / mean_a
    squared_a = variance_a / len(baseline) * ratio * ratio / (mean_a * mean_a)
    squared_b = variance_b / len(candidate) / (mean_a * mean_a)
    freedom = _welch_freedom(squared_a, len(baseline), squared_b, len(candidate))
    error = math.sqrt(squared_a + squared_b)
    return not_below_zero(from_standard_error(ratio - 1.0, error, freedom, Working.RATIO, level))


def not_below_zero(contrast: Contrast) -> Contrast:
    """A ratio's interval cut at a fall of 100 %: a rate is never negative, whatever a t interval contains."""
    return replace(contrast, low=max(contrast.low, -1.0), high=max(contrast.high, -1.0))


def _width_as_standard_error(low: float, high: float, level: float) -> float:
    return (high - low) / (2.0 * t_quantile(1.0 - level, None))


def poisson_p_different(count_a: float, exposure_a: float, count_b: float, exposure_b: float) -> float:
    """Two-sided p-value of equal Poisson rates.

    The E-test of Krishnamoorthy and Thomson (2004) while counts are small; above that it needs a table as large as the
    product of the counts, and the exact conditional test of Przyborowski and Wilenski (1940) is as good.
    """
    if count_a + count_b == 0:
        return 1.0
    if count_a + count_b <= 200:
        return _e_test(round(count_a), exposure_a, round(count_b), exposure_b)
    share = exposure_b / (exposure_a + exposure_b)
    total = count_a + count_b
    return min(
        1.0, 2.0 * min(special.binomial_cdf(count_b, total, share), special.binomial_at_least(count_b, total, share))
    )


def _poisson_table(mean: float) -> tuple[FloatArray, FloatArray]:
    """Counts of a Poisson variable and their probabilities; the omitted ones have less than 1e-13 on either side."""
    reach = 8.0 * math.sqrt(mean) + 40.0
    counts = np.arange(max(0.0, math.floor(mean - reach)), math.ceil(mean + reach) + 1.0)
    ln_factorials = np.array([math.lgamma(count + 1.0) for count in counts])
    return counts, np.exp(counts * math.log(mean) - ln_factorials - mean)


def _e_test(count_a: int, exposure_a: float, count_b: int, exposure_b: float) -> float:
    """Probability of counts with at least the observed standardised difference, if the pooled rate held for both."""
    rate = (count_a + count_b) / (exposure_a + exposure_b)
    (counts_a, chances_a), (counts_b, chances_b) = (
        _poisson_table(rate * exposure_a),
        _poisson_table(rate * exposure_b),
    )

    def distance(of_a: FloatArray, of_b: FloatArray) -> FloatArray:
        variance = of_a / exposure_a**2 + of_b / exposure_b**2
        return np.abs(of_a / exposure_a - of_b / exposure_b) / np.sqrt(np.where(variance > 0.0, variance, np.inf))

    result = distance(np.array(float(count_a)), np.array(float(count_b)))
    # Equal distances differ by rounding: without this allowance the counts found need not be as far as themselves.
    as_far = distance(counts_a[:, None], counts_b[None, :]) >= result * (1.0 - 1e-12)
    return float((chances_a[:, None] * chances_b[None, :])[as_far].sum())


def poisson_ratio(
    count_a: float, exposure_a: float, count_b: float, exposure_b: float, level: float = LEVEL
) -> Contrast:
    """Exact interval for the ratio of two Poisson rates, minus one.

    Given the sum of the counts, the candidate's count is binomial and its share a function of the ratio.

    Args:
        count_a: events of the baseline, > 0.
        exposure_a: samples in which they were counted, > 0.
        count_b: events of the candidate, >= 0.
        exposure_b: likewise.
        level: error of the interval at each end.

    Source: Przyborowski and Wilenski (1940), with the binomial limits of Clopper and Pearson (1934).
    """
    total = count_a + count_b
    odds = exposure_a / exposure_b

    def share(bound: float) -> float:
        ratio = max(0.0, 1.0 + bound)
        return exposure_b * ratio / (exposure_a + exposure_b * ratio)

    low_share = special.beta_quantile(level, count_b, count_a + 1.0) if count_b > 0 else 0.0
    high_share = special.beta_quantile(1.0 - level, count_b + 1.0, count_a)
    low = low_share / (1.0 - low_share) * odds - 1.0
    high = high_share / (1.0 - high_share) * odds - 1.0
    return Contrast(
        working=Working.RATIO,
        change=count_b / count_a * odds - 1.0,
        low=low,
        high=high,
        p_above=lambda bound: special.binomial_at_least(count_b, total, share(bound)),
        p_below=lambda bound: special.binomial_cdf(count_b, total, share(bound)),
        p_different=poisson_p_different(count_a, exposure_a, count_b, exposure_b),
        standard_error=_width_as_standard_error(low, high, level),
    )


Limits = Callable[[float], tuple[float, float]]


def _crossing(limit: Callable[[float], float], bound: float) -> float:
    """The z at which a monotone limit meets the bound; the largest z when it never does."""
    nearest, furthest = limit(0.0) - bound, limit(_LARGEST_Z) - bound
    if nearest * furthest > 0.0:
        return _LARGEST_Z
    before, after = 0.0, _LARGEST_Z
    for _ in range(_HALVINGS):
        middle = (before + after) / 2.0
        if (limit(middle) - bound) * furthest > 0.0:
            after = middle
        else:
            before = middle
    return (before + after) / 2.0


def _from_limits(
    change: float, limits: Limits, working: Working, level: float, p_different: float | None = None
) -> Contrast:
    """A contrast whose p-values invert its interval, so that test and interval can never disagree."""

    def above(bound: float) -> float:
        if bound < change:
            return special.normal_sf(_crossing(lambda z: limits(z)[0], bound))
        return special.normal_sf(-_crossing(lambda z: limits(z)[1], bound))

    def below(bound: float) -> float:
        if bound > change:
            return special.normal_sf(_crossing(lambda z: limits(z)[1], bound))
        return special.normal_sf(-_crossing(lambda z: limits(z)[0], bound))

    low, high = limits(t_quantile(1.0 - level, None))
    different = min(1.0, 2.0 * min(above(0.0), below(0.0))) if p_different is None else p_different
    return Contrast(working, change, low, high, above, below, different, _width_as_standard_error(low, high, level))


def _recovered(
    estimate_a: float, limits_a: tuple[float, float], estimate_b: float, limits_b: tuple[float, float]
) -> tuple[float, float]:
    """Limits of B - A from the limits of each: the variance near a limit is recovered from the distance to it.

    Source: Zou and Donner (2008), "Construction of confidence limits about effect measures: a general approach".
    """
    change = estimate_b - estimate_a
    low = change - math.hypot(estimate_b - limits_b[0], limits_a[1] - estimate_a)
    high = change + math.hypot(limits_b[1] - estimate_b, estimate_a - limits_a[0])
    return low, high


def poisson_limits(count: float, exposure: float, z: float) -> tuple[float, float]:
    """Exact limits of a Poisson rate at the confidence of a normal quantile z.

    Source: Garwood (1936), "Fiducial limits for the Poisson distribution".
    """
    tail = special.normal_sf(z)
    low = special.poisson_mean_at_least(count, tail) if count > 0 else 0.0
    high = special.poisson_mean_at_most(count, tail)
    rate = count / exposure
    return min(low / exposure, rate), max(high / exposure, rate)


def poisson_difference(
    count_a: float, exposure_a: float, count_b: float, exposure_b: float, level: float = LEVEL
) -> Contrast:
    """Interval for the difference of two Poisson rates; for a baseline without events, which has no ratio.

    Args:
        count_a: events of the baseline, >= 0.
        exposure_a: samples in which they were counted, > 0.
        count_b: events of the candidate, >= 0.
        exposure_b: likewise.
        level: error of the interval at each end.

    Source: Garwood's limits combined as Zou and Donner (2008) do.
    """
    rate_a, rate_b = count_a / exposure_a, count_b / exposure_b

    def limits(z: float) -> tuple[float, float]:
        if z <= 0.0:
            return rate_b - rate_a, rate_b - rate_a
        return _recovered(
            rate_a, poisson_limits(count_a, exposure_a, z), rate_b, poisson_limits(count_b, exposure_b, z)
        )

    p_different = poisson_p_different(count_a, exposure_a, count_b, exposure_b)
    return _from_limits(rate_b - rate_a, limits, Working.DIFFERENCE, level, p_different)


def wilson_limits(successes: float, trials: float, z: float) -> tuple[float, float]:
    """Score limits of a proportion.

    Source: Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    share = successes / trials
    scale = 1.0 + z * z / trials
    centre = (share + z * z / (2.0 * trials)) / scale
    half = z / scale * math.sqrt(share * (1.0 - share) / trials + z * z / (4.0 * trials * trials))
    return min(max(0.0, centre - half), share), max(min(1.0, centre + half), share)


def newcombe(
    successes_a: float, trials_a: float, successes_b: float, trials_b: float, level: float = LEVEL
) -> Contrast:
    """Interval for the difference of two independent proportions, candidate minus baseline.

    Args:
        successes_a: of the baseline, 0 to trials.
        trials_a: > 0.
        successes_b: of the candidate.
        trials_b: > 0.
        level: error of the interval at each end.

    Source: Newcombe (1998), "Interval estimation for the difference between independent proportions", method 10.
    """
    share_a, share_b = successes_a / trials_a, successes_b / trials_b

    def limits(z: float) -> tuple[float, float]:
        return _recovered(
            share_a, wilson_limits(successes_a, trials_a, z), share_b, wilson_limits(successes_b, trials_b, z)
        )

    return _from_limits(share_b - share_a, limits, Working.DIFFERENCE, level)
