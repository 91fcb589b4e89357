"""Variances of many metrics from few repetitions, each shrunk towards the value of a second source.

The second source is biased (differences between releases contain noise and change), so the repetitions of all metrics
together decide its weight and its degrees of freedom. Source: Smyth, "Linear models and empirical Bayes methods for
assessing differential expression" (2004), with a prior variance for every metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MAD_TO_SD = 1.4826  # of a normal distribution
# For n steps a median absolute value is as informative as 0.37 n squares (Huber, "Robust Statistics", 1981), and since
# neighbouring steps share a run, the variance of a mean of their squares is half as large again.
STEP_FREEDOM = 0.37 / 1.5
FEWEST_METRICS = 3  # for which a ratio and its dispersion can be estimated
_LARGE = 8.0  # from here on the asymptotic series are exact to a float


@dataclass(frozen=True)
class RepeatedMetric:
    """The observations of one metric.

    Attributes:
        squares: of the repetitions' deviations from their means, with the degrees of freedom ``freedom``.
        bound: the variance of one run that the second source gives.
        bound_freedom: maximum degrees of freedom of that.
    """

    squares: float
    freedom: float
    bound: float
    bound_freedom: float


@dataclass(frozen=True)
class Prior:
    """How the second source is used: its variance times ``ratio``, for ``freedom`` degrees of freedom."""

    ratio: float
    freedom: float


def step_variance(steps: Sequence[float]) -> float:
    """The variance of one run from the differences between neighbouring releases, robust against true changes.

    Args:
        steps: on the working scale; a few of them may be large.
    """
    return (_MAD_TO_SD * float(np.median(np.abs(steps)))) ** 2 / 2.0


def prior_of(seen: Sequence[RepeatedMetric]) -> Prior:
    """Fit the ratio of the repetitions' variances to the bounds, and its dispersion, over all metrics.

    Args:
        seen: those without repetitions or without a bound are ignored.

    Returns:
        A ratio of at most 1, because the bound holds; with too few metrics the bound itself.
    """
    repeated_metrics = [
        metric for metric in seen if metric.freedom > 0.0 and metric.squares > 0.0 and metric.bound > 0.0
    ]
    if len(repeated_metrics) < FEWEST_METRICS:
        return Prior(1.0, math.inf)
    halves = [metric.freedom / 2.0 for metric in repeated_metrics]
    logs = [
        math.log(metric.squares / metric.freedom / metric.bound) - digamma(half) + math.log(half)
        for metric, half in zip(repeated_metrics, halves, strict=True)
    ]
    spare = float(np.var(logs, ddof=1)) - math.fsum(map(trigamma, halves)) / len(halves)
    freedom = 2.0 * inverse_trigamma(spare) if spare > 0.0 else math.inf
    return Prior(min(1.0, math.exp(math.fsum(logs) / len(logs))), freedom)


def moderated(metric: RepeatedMetric, prior: Prior) -> tuple[float, float]:
    """The variance of one run, and its degrees of freedom; 0 and 0 if it is unknown.

    Args:
        metric: with a bound, repetitions, both, or neither: a figure that no release changed.
        prior: from `prior_of`.
    """
    weight = min(prior.freedom, metric.bound_freedom) if metric.bound > 0.0 else 0.0
    freedom = metric.freedom + weight
    if freedom == 0.0:
        return 0.0, 0.0
    return (metric.squares + weight * prior.ratio * metric.bound) / freedom, freedom


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function, x > 0: by recurrence, then its asymptotic series."""
    shift = 0.0
    while x < _LARGE:
        shift -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return shift + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """The derivative of `digamma`, x > 0."""
    shift = 0.0
    while x < _LARGE:
        shift += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return shift + 1.0 / x + y / 2.0 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))


def inverse_trigamma(value: float) -> float:
    """The inverse of `trigamma` for a value > 0; it falls from infinity to 0, so exponents are bisected."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp((low + high) / 2.0)
