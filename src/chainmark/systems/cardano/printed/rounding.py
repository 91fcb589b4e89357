"""How exactly a printed figure is known: what its digits leave open."""

from __future__ import annotations

from chainmark.systems.cardano.published.digits import hidden_value
from chainmark.systems.cardano.published.results import ReportStyle

_CUT = 6  # characters of a value in the org style, a zero before the point not counted


def unit_of(printed: str, width: int | None, style: ReportStyle) -> float:
    """The width of the range of averages that are printed so, in the figure's unit.

    Args:
        printed: a decimal number, zeros at its end perhaps left out.
        width: the characters that the reports leave for the metric; None where nobody knows.
        style: TYPST rounds to the width; ORG cuts to six characters.
    """
    if style is ReportStyle.TYPST:
        hidden = hidden_value(printed, width)
        return float(hidden.high - hidden.low)
    mantissa, _, exponent = printed.lower().lstrip("+-").partition("e")
    if exponent:
        # Cut before it was read as a number: 0.00002 has become 2e-05.
        return 10.0 ** -(_CUT - 1)
    whole, point, _ = mantissa.partition(".")
    digits = len(whole.lstrip("0"))
    return 10.0 ** -max(0, _CUT - 1 - digits) if point else 1.0
