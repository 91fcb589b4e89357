"""The number of samples from which a centile may be reported: the only definition, by purpose.

A nearest-rank value describes the samples themselves: it is reported if at least one of them is expected beyond it (100
for a p99), as in published reports. An upper bound means that the true centile is hardly larger, and needs more (299).
"""

from __future__ import annotations

import math

# Maximum probability that a bound is wrong.
RISK = 0.05
# Fractions are decimals (0.9), products are binary (10 * (1 - 0.9) is 0.9999999999999998): without this allowance the
# p90 of 10 samples would have no rank.
_ROUNDING = 1e-9


def has_rank(n: int, fraction: float) -> bool:
    """Whether the nearest-rank centile may be reported: at least one of n samples is expected on either side of it.

    Args:
        n: number of samples.
        fraction: 0 to 1; 0 and 1 are the extremes, which any sample has.
    """
    if n < 1:
        return False
    if fraction in {0.0, 1.0}:
        return True
    return n * (1.0 - fraction) >= 1.0 - _ROUNDING and n * fraction >= 1.0 - _ROUNDING


def has_upper_bound(n: int, fraction: float, risk: float = RISK) -> bool:
    """Whether n samples bound the centile from above: the probability that all are below it is at most the risk.

    Args:
        n: number of samples.
        fraction: above 0, below 1.
        risk: above 0, below 1.
    """
    return n > 0 and fraction**n <= risk


def fewest_for_upper_bound(fraction: float, risk: float = RISK) -> int:
    """The smallest n for which `has_upper_bound` is true: 299 for a p99, 59 for a p95."""
    n = max(1, math.ceil(math.log(risk) / math.log(fraction)))
    # The quotient of the logarithms may miss a whole number by its last digit.
    while n > 1 and has_upper_bound(n - 1, fraction, risk):
        n -= 1
    while not has_upper_bound(n, fraction, risk):
        n += 1
    return n
