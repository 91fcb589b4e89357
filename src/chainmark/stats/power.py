"""The smallest effect that a comparison can detect."""

from __future__ import annotations

from chainmark.stats.special import t_quantile

POWER = 0.80


def needed_standard_errors(degrees_of_freedom: float | None, level: float) -> float:
    """Standard errors between an effect and the margin for a one-sided test at that level to have 80 % power."""
    return t_quantile(1.0 - level, degrees_of_freedom) + t_quantile(POWER, degrees_of_freedom)


def detectable_worsening(margin: float, standard_error: float, degrees_of_freedom: float | None, level: float) -> float:
    """The smallest worsening that is called worse with 80 % power.

    Args:
        margin: the worsening that is still accepted, on the working scale.
        standard_error: of the change, on the working scale.
        degrees_of_freedom: None for a known standard error.
        level: the error of the test, at this look of several.

    Returns:
        On the working scale.
    """
    return margin + needed_standard_errors(degrees_of_freedom, level) * standard_error
