"""The precision of a printed figure from its digits."""

from __future__ import annotations

from chainmark.systems.cardano.published.digits import hidden_value
from chainmark.systems.cardano.published.results import ReportStyle

_CUT = 6  # characters of a value in the org style, without a zero before the point


def unit_of(printed: str, width: int | None, style: ReportStyle) -> float:
    """The width of the range of averages with this printed value, in the figure's unit.

    Args:
        printed: a decimal number, possibly without trailing zeros.
        width: the number of characters of the metric in the reports; None if unknown.
        style: TYPST rounds to the width; ORG cuts to six characters.
    """
    if style is ReportStyle.TYPST:
        hidden = hidden_value(printed, width)
        return float(hidden.high - hidden.low)
    mantissa, _, exponent = printed.lower().lstrip("+-").partition("e")
    if exponent:
        # Cut before it was parsed as a number: 0.00002 has become 2e-05.
        return 10.0 ** -(_CUT - 1)
    whole, point, _ = mantissa.partition(".")
    digits = len(whole.lstrip("0"))
    return 10.0 ** -max(0, _CUT - 1 - digits) if point else 1.0
