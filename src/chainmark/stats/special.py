"""Tails and quantiles of the distributions that tests and intervals use, for plain numbers.

The incomplete beta and gamma functions are the Rust core's (`crates/chainmark-special`): accurate to about 1e-14, in
tails down to 1e-300, for parameters and counts up to 1e9. Outside of a distribution's range the result is NaN.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from chainmark._native import beta_quantile as _beta_quantile
from chainmark._native import beta_tails, gamma_quantile

_NORMAL = NormalDist()


def normal_cdf(value: float) -> float:
    """The probability of at most the value, under the standard normal distribution."""
    return math.erfc(-value / math.sqrt(2.0)) / 2.0


def normal_sf(value: float) -> float:
    """The probability of more than the value, under the standard normal distribution."""
    return normal_cdf(-value)


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal variable is with that probability, 0 to 1.

    Source: Wichura (1988), "Algorithm AS 241: The percentage points of the normal distribution", as the standard
    library has it.
    """
    if 0.0 < probability < 1.0:
        return _NORMAL.inv_cdf(probability)
    return {0.0: -math.inf, 1.0: math.inf}.get(probability, math.nan)


def t_cdf(value: float, degrees_of_freedom: float | None) -> float:
    """The probability of at most the value, under Student's t distribution; under the normal one for None.

    Args:
        value: any number.
        degrees_of_freedom: > 0, also fractions.
    """
    return t_sf(-value, degrees_of_freedom)


def t_sf(value: float, degrees_of_freedom: float | None) -> float:
    """The probability of more than the value, under Student's t distribution; under the normal one for None.

    Args:
        value: any number.
        degrees_of_freedom: > 0, also fractions.

    Source: Abramowitz and Stegun (1964), 26.7.1.
    """
    if degrees_of_freedom is None or math.isinf(degrees_of_freedom):
        return normal_sf(value)
    if not degrees_of_freedom > 0.0:
        return math.nan
    beyond = 0.5 * beta_tails(degrees_of_freedom / 2.0, 0.5, *_shares(abs(value), degrees_of_freedom))[0]
    return beyond if value > 0.0 else 1.0 - beyond


def _shares(value: float, degrees_of_freedom: float) -> tuple[float, float]:
    """ν / (ν + t²) and t² / (ν + t²), also if t² would overflow a float."""
    if value * value < degrees_of_freedom:
        odds = value * value / degrees_of_freedom
        return 1.0 / (1.0 + odds), odds / (1.0 + odds)
    odds = degrees_of_freedom / value / value
    return odds / (1.0 + odds), 1.0 / (1.0 + odds)


def t_quantile(probability: float, degrees_of_freedom: float | None) -> float:
    """The value below which a variable of Student's t distribution is with that probability; a normal one for None.

    NaN, too, if the value is beyond about 1e150: it is not found.

    Args:
        probability: 0 to 1.
        degrees_of_freedom: > 0, also fractions.

    Source: Abramowitz and Stegun (1964), 26.7.1, solved for t.
    """
    if degrees_of_freedom is None or math.isinf(degrees_of_freedom):
        return normal_quantile(probability)
    if probability > 0.5:
        return -t_quantile(1.0 - probability, degrees_of_freedom)
    share, rest = _beta_quantile(degrees_of_freedom / 2.0, 0.5, 2.0 * probability, 1.0 - 2.0 * probability)
    return 0.0 - math.sqrt(degrees_of_freedom * rest / share) if share != 0.0 else -math.inf


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The share below which a variable of the beta distribution is with that probability.

    Args:
        probability: 0 to 1.
        a: > 0.
        b: > 0.

    Source: Newton's method on the logarithm of the tail, over the logarithm of the odds.
    """
    return _beta_quantile(a, b, probability, 1.0 - probability)[0]


def binomial_cdf(count: float, trials: float, share: float) -> float:
    """The probability of at most that many successes; fractional counts are those of the incomplete beta function.

    Args:
        count: from trials on it is certain.
        trials: > 0.
        share: the probability of each, 0 to 1.

    Source: NIST Digital Library of Mathematical Functions, 8.17.5.
    """
    return beta_tails(count + 1.0, trials - count, share, 1.0 - share)[1] if count < trials else 1.0


def binomial_at_least(count: float, trials: float, share: float) -> float:
    """The probability of at least that many successes; arguments and source as of `binomial_cdf`."""
    return beta_tails(count, trials - count + 1.0, share, 1.0 - share)[0] if count > 0 else 1.0


def poisson_mean_at_least(count: float, tail: float) -> float:
    """The mean under which at least that many events have the probability `tail`: Garwood's lower limit.

    Args:
        count: > 0.
        tail: 0 to 1.

    Source: Garwood (1936); Newton's method on the logarithm of the incomplete gamma function.
    """
    return gamma_quantile(count, tail, 1.0 - tail)


def poisson_mean_at_most(count: float, tail: float) -> float:
    """The mean under which at most that many events have the probability `tail`: Garwood's upper limit.

    Args:
        count: >= 0.
        tail: 0 to 1.

    Source: as of `poisson_mean_at_least`.
    """
    return gamma_quantile(count + 1.0, 1.0 - tail, tail)
