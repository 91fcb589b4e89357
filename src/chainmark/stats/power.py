"""What a comparison could have found, and how many runs would have been enough."""

from __future__ import annotations

import math

from chainmark.stats.special import t_quantile

POWER = 0.80
LEVEL = 0.05
MOST_RUNS = 50


def needed_standard_errors(degrees_of_freedom: float | None) -> float:
    """Standard errors between an effect and the margin for a one-sided 5 % test to have 80 % power."""
    return t_quantile(1.0 - LEVEL, degrees_of_freedom) + t_quantile(POWER, degrees_of_freedom)


def detectable_worsening(margin: float, standard_error: float, degrees_of_freedom: float | None) -> float:
    """The smallest worsening that is called worse with 80 % power.

    Args:
        margin: the worsening that is still accepted, on the working scale.
        standard_error: of the change, on the working scale.
        degrees_of_freedom: None for a known standard error.

    Returns:
        On the working scale.
    """
    return margin + needed_standard_errors(degrees_of_freedom) * standard_error


def runs_needed(margin: float, deviation: float) -> int | None:
    """Runs a side with which an equal release would be shown to be within the margin with 80 % power.

    Args:
        margin: on the working scale, > 0.
        deviation: standard deviation of one run's estimate, on the working scale.

    Returns:
        The smallest number from 2 to 50; None when even 50 do not suffice or the margin is 0.
    """
    if not margin > 0.0 or not math.isfinite(deviation):
        return None
    for runs in range(2, MOST_RUNS + 1):
        if margin >= needed_standard_errors(2.0 * (runs - 1)) * deviation * math.sqrt(2.0 / runs):
            return runs
    return None
