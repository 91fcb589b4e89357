"""Values and changes as published reports print them, exactly, in both of their styles.

The *typst* style rounds every figure from the full average; a change is that of the averages. The *org* style cuts the
average to six characters, parses it again, and computes the change from the result, so that its relative change is that
of a difference already rounded. Source of both rules: the reports themselves (tests/oracle/test_published_style.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_ZERO_BELOW = 1e-5  # printed as zero
_SCIENTIFIC_BELOW = 1e-4
_NO_CHANGE_BELOW = 0.0001  # a smaller difference has no relative change
_CHANGE_DECIMALS = 3
_CUT = 6  # characters of a value in the org style
_MANTISSA_DECIMALS = 1
_CONTEXT = Context(prec=400, rounding=ROUND_HALF_EVEN)  # maximum total number of digits of a double
# The number of decimals if a column has room for more than five, by the size of the value.
DECIMALS_BY_SIZE = ((10_000.0, 0), (1_000.0, 1), (100.0, 2), (10.0, 3), (0.0, 4))
MOST_FIXED_DECIMALS = 5
NOT_A_NUMBER = "NaN"
NOT_A_NUMBER_IN_ORG = "nan"


@dataclass(frozen=True)
class PrintedChange:
    """A change as printed: the difference, and in percent of the base."""

    delta: str
    percent: str


def typst_value(value: float, width: int) -> str:
    """A value of a table in the typst style.

    Args:
        value: the full average, finite.
        width: the number of characters of the metric in the reports.
    """
    return typst_figure(value, width + 1)


def typst_figure(value: float, precision: int) -> str:
    """A figure with this number of decimals or, from four on, this number of places without trailing zeros.

    The shortest unique digits of the double are rounded, halves to the even digit.

    Args:
        value: finite.
        precision: 0 or more.
    """
    sign = "-" if math.copysign(1.0, value) < 0.0 else ""
    size = abs(value)
    if size < _ZERO_BELOW:
        zeros = "" if precision == 0 else ".0" if precision > 3 else "." + "0" * precision
        return f"{sign}0{zeros}"
    digits = Decimal(repr(size))
    if size < _SCIENTIFIC_BELOW:
        return sign + _scientific(digits)
    decimals = decimals_of(size, precision)
    text = format(digits.quantize(Decimal(1).scaleb(-decimals), context=_CONTEXT), "f")
    return sign + (text.rstrip("0") if precision > 3 and "." in text else text)


def decimals_of(size: float, precision: int) -> int:
    """The number of decimals to which a figure of this size is rounded."""
    if precision <= MOST_FIXED_DECIMALS:
        return precision
    return next(decimals for least, decimals in DECIMALS_BY_SIZE if size >= least)


def _scientific(digits: Decimal) -> str:
    exponent = digits.adjusted()
    mantissa = digits.scaleb(-exponent).quantize(Decimal(1).scaleb(-_MANTISSA_DECIMALS), context=_CONTEXT)
    if mantissa >= 10:
        mantissa, exponent = mantissa.scaleb(-1).quantize(Decimal("0.1")), exponent + 1
    return f"{mantissa}e{exponent}"


def typst_change(base: float, value: float) -> PrintedChange:
    """The change from one full average to another, in the typst style.

    Args:
        base: of the baseline, finite.
        value: of the version compared with it, finite.
    """
    difference = value - base
    if abs(difference) < _NO_CHANGE_BELOW:
        return PrintedChange("-0.000" if difference < 0.0 else "0.000", NOT_A_NUMBER if base == 0.0 else "0")
    delta = typst_figure(difference, _CHANGE_DECIMALS)
    if base == 0.0:
        return PrintedChange(delta, NOT_A_NUMBER)
    percent = 100.0 * difference / base
    return PrintedChange(delta, typst_figure(percent, 1 if abs(percent) < 1.0 else 0))


def org_value(value: float) -> str:
    """A value of a table in the org style: all its digits cut to six characters, and the rest parsed as a number.

    A zero before the point does not count. A value without digits after its point is a whole number from then on. A
    figure with more than six digits before its point is not cut there, which would change its magnitude.

    Args:
        value: the full average, finite.
    """
    text = format(Decimal(repr(value)), "f")
    text = (text if "." in text else text + ".0").removeprefix("0")
    cut = text[: max(_CUT, text.index("."))]
    return cut.rstrip(".") if is_whole(cut.rstrip(".")) else repr(float(cut))


def is_whole(printed: str) -> bool:
    """Whether a printed figure is a whole number: its changes are whole, too."""
    return "." not in printed and "e" not in printed.lower()


def org_change(base: str, value: str) -> PrintedChange:
    """The change from one printed value to another, in the org style.

    Args:
        base: of the baseline, as printed.
        value: of the version compared with it, as printed.
    """
    start, end = Fraction(base), Fraction(value)
    difference = end - start
    if is_whole(base) and is_whole(value):
        shown, delta = difference, str(difference)
    else:
        shown = Fraction(_nearest(difference * 10**_CHANGE_DECIMALS), 10**_CHANGE_DECIMALS)
        whole, rest = divmod(abs(shown.numerator) * 10**_CHANGE_DECIMALS // shown.denominator, 10**_CHANGE_DECIMALS)
        delta = f"{'-' if difference < 0 else ''}{whole}.{rest:0{_CHANGE_DECIMALS}d}"
    return PrintedChange(delta, NOT_A_NUMBER_IN_ORG if start == 0 else str(_nearest(100 * shown / start)))


def _nearest(value: Fraction) -> int:
    """The nearest whole number; halves are rounded away from zero."""
    whole = math.floor(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole
