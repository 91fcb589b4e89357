"""Whether consecutive values rise or fall: a slope that is robust to outliers, with an interval.

Sources: Theil (1950) and Sen (1968), "Estimates of the regression coefficient based on Kendall's tau", for the slope
and its interval; Matalas and Sankarasubramanian (2003), "Effect of persistence on trend detection via regression", for
the effect of autocorrelation on the effective number of values; Marriott and Pope (1954) for its bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chainmark.stats import special

# Fewer values show no trend.
FEWEST = 10
# Values with a higher autocorrelation are hardly more than one.
_MOST_CORRELATION = 0.95

_Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trend:
    """A line through values at even distances.

    Attributes:
        slope: per value; low, high: its interval.
        begin: the line's value at the first of them.
        n: values.
    """

    slope: float
    low: float
    high: float
    begin: float
    n: int

    @property
    def rise(self) -> float:
        """From the first value to the last."""
        return self.slope * (self.n - 1)

    @property
    def rise_interval(self) -> tuple[float, float]:
        """The interval of that."""
        return self.low * (self.n - 1), self.high * (self.n - 1)


def trend_of(values: Sequence[float], confidence: float = 0.95) -> Trend | None:
    """The line through values in their order; None of fewer than `FEWEST`.

    Args:
        values: finite, at even distances.
        confidence: of the interval.
    """
    n = len(values)
    if n < FEWEST:
        return None
    result = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(n, k=1)
    slopes = np.sort((result[second] - result[first]) / (second - first))
    slope = float(np.median(slopes))
    half = special.normal_quantile(0.5 + confidence / 2.0) * math.sqrt(_variance(result, slope))
    # Number of the sorted slopes outside the interval at each end.
    outside = max(1, math.floor((len(slopes) - half) / 2.0))
    low, high = float(slopes[outside - 1]), float(slopes[-outside])
    begin = float(np.median(result - slope * np.arange(n)))
    return Trend(slope, min(low, slope), max(high, slope), begin, n)


def _variance(values: _Values, slope: float) -> float:
    """The variance of Kendall's S: as of independent values, multiplied for autocorrelation; never less."""
    n = len(values)
    independent = n * (n - 1) * (2 * n + 5) / 18.0
    return independent * max(1.0, _inflation(values - slope * np.arange(n)))


def _inflation(rest: _Values) -> float:
    """The autocorrelation of neighbours, as in a series of first order.

    The residuals of a fitted line have a correlation that is too low, by (2 + 4 r) / n.
    """
    n = len(rest)
    ranks = np.argsort(np.argsort(rest, kind="stable"), kind="stable").astype(np.float64)
    ranks -= ranks.mean()
    seen = float(ranks[:-1] @ ranks[1:]) / float(ranks @ ranks)
    correlation = min(_MOST_CORRELATION, (seen + 2.0 / n) / (1.0 - 4.0 / n))
    return (1.0 + correlation) / (1.0 - correlation)
