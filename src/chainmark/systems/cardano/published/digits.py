"""The possible values of the digits that a published report did not print, and whether they decide a change.

Only the typst style needs this: its changes are computed from averages of which a report prints the first digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from chainmark.systems.cardano.published.values import (
    DECIMALS_BY_SIZE,
    MOST_FIXED_DECIMALS,
    NOT_A_NUMBER,
    PrintedChange,
    typst_change,
)

_ZERO_BELOW = Fraction(1, 10**5)
_NO_CHANGE_BELOW = Fraction(1, 10**4)
_SCIENTIFIC_BELOW = Fraction(1, 10**4)  # percent: such a change is printed in another format
_HALF = Fraction(1, 2)
Point = tuple[Fraction, Fraction]  # base, value
HalfPlane = tuple[Fraction, Fraction, Fraction]  # (a, b, c): a · base + b · value + c >= 0


@dataclass(frozen=True)
class Interval:
    """All numbers between two, inclusive."""

    low: Fraction
    high: Fraction

    def within(self, other: Interval) -> bool:
        """Whether all of this is strictly inside the other: at an end, a half may be rounded either way."""
        return other.low < self.low and self.high < other.high

    def holds(self, value: Fraction) -> bool:
        """Whether it contains a number."""
        return self.low <= value <= self.high


def exactly(value: float) -> Interval:
    """A known average."""
    return Interval(Fraction(value), Fraction(value))


def hidden_value(printed: str, width: int | None) -> Interval:
    """Every average with this printed value in the typst style.

    Args:
        printed: a value of a table.
        width: the number of characters of the metric in the reports; None if unknown: then zeros may have been omitted
            after every digit, and the interval is the widest of all.
    """
    negative, size = printed.startswith("-"), printed.lstrip("-")
    interval = _around(Fraction(size), _shown_decimals(size)) if width is None else _hidden_size(size, width + 1)
    return Interval(-interval.high, -interval.low) if negative else interval


def _hidden_size(printed: str, precision: int) -> Interval:
    number = Fraction(printed)
    if number == 0:
        return Interval(Fraction(0), _ZERO_BELOW)
    if "e" in printed.lower():
        reach = Fraction(1, 20) * Fraction(10) ** int(printed.lower().partition("e")[2])
        return Interval(max(number - reach, _ZERO_BELOW), min(number + reach, 10 * _ZERO_BELOW))
    if precision <= MOST_FIXED_DECIMALS:
        return _around(number, precision)
    ceiling: Fraction | None = None
    for least, decimals in DECIMALS_BY_SIZE:
        interval = _around(number, decimals)
        low = max(interval.low, Fraction(least))
        high = interval.high if ceiling is None else min(interval.high, ceiling)
        shown = len(printed.partition(".")[2])
        if low <= high and shown <= decimals and ("." in printed) == (decimals > 0):
            return Interval(low, high)
        ceiling = Fraction(least)
    return _around(number, len(printed.partition(".")[2]))


def _shown_decimals(printed: str) -> int:
    """Decimals up to the last printed digit; negative powers of ten count."""
    mantissa, _, exponent = printed.lower().partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def _around(number: Fraction, decimals: int) -> Interval:
    reach = _HALF / 10**decimals
    return Interval(number - reach, number + reach)


def is_determined(base: Interval, value: Interval) -> bool:
    """Whether every pair of averages in the two intervals gives the same printed change.

    Args:
        base: of the baseline.
        value: of the version compared with it.
    """
    if base.low <= 0 or value.low < 0:
        return False  # the base may be zero or change its sign
    middle = typst_change(float((base.low + base.high) / 2), float((value.low + value.high) / 2))
    difference = Interval(value.low - base.high, value.high - base.low)
    if not difference.within(_delta_cell(middle.delta)):
        return False
    if difference.within(Interval(-_NO_CHANGE_BELOW, _NO_CHANGE_BELOW)):
        return True
    if difference.low < _NO_CHANGE_BELOW and difference.high > -_NO_CHANGE_BELOW:
        return False  # some of them have a relative change and some have none
    percent = Interval(100 * difference.low / base.high, 100 * difference.high / base.low)
    if difference.low < 0:
        percent = Interval(100 * (value.low / base.high - 1), 100 * (value.high / base.low - 1))
    tiny = Interval(-_SCIENTIFIC_BELOW, _SCIENTIFIC_BELOW)
    return percent.within(_percent_cell(middle.percent)) and not (tiny.holds(percent.low) or tiny.holds(percent.high))


def is_possible(base: Interval, value: Interval, change: PrintedChange) -> bool:
    """Whether some pair of averages in the two intervals gives this printed change.

    Args:
        base: of the baseline.
        value: of the version compared with it.
        change: as a report prints it.
    """
    corners = [(base.low, value.low), (base.high, value.low), (base.high, value.high), (base.low, value.high)]
    delta = _delta_cell(change.delta)
    limits: list[HalfPlane] = [
        (Fraction(-1), Fraction(1), -delta.low),
        (Fraction(1), Fraction(-1), delta.high),
    ]
    if change.percent == NOT_A_NUMBER:
        return base.holds(Fraction(0)) and bool(_clipped([(Fraction(0), v) for _, v in corners], limits))
    if change.percent in {"0", "-0"}:
        limits += [
            (Fraction(-1), Fraction(1), _NO_CHANGE_BELOW),
            (Fraction(1), Fraction(-1), _NO_CHANGE_BELOW),
        ]
        return bool(_clipped(corners, limits))
    percent = _percent_cell(change.percent)
    # 100 (value − base) / base between two figures, multiplied by the base, which is positive wherever it is not zero.
    limits += [
        (-100 - percent.low, Fraction(100), Fraction(0)),
        (100 + percent.high, Fraction(-100), Fraction(0)),
    ]
    return bool(_clipped(corners, limits))


def _delta_cell(printed: str) -> Interval:
    """Every difference with this printed value, to three decimals."""
    number = Fraction(printed)
    reach = _HALF / 1000
    if number == 0:
        return Interval(-reach, Fraction(0)) if printed.startswith("-") else Interval(Fraction(0), reach)
    return Interval(number - reach, number + reach)


def _percent_cell(printed: str) -> Interval:
    """Every relative change, in percent, with this printed value: to one decimal below 1 %, else to whole percents."""
    number = Fraction(printed)
    if "e" in printed.lower():
        reach = Fraction(1, 20) * Fraction(10) ** int(printed.lower().partition("e")[2])
        return Interval(number - reach, number + reach)
    tenths = "." in printed
    reach = Fraction(1, 20) if tenths else _HALF
    low, high = number - reach, number + reach
    if printed.startswith("-"):
        return (
            Interval(max(low, Fraction(-1)), min(high, Fraction(0)))
            if tenths
            else Interval(low, min(high, Fraction(-1)))
        )
    return Interval(max(low, Fraction(0)), min(high, Fraction(1))) if tenths else Interval(max(low, Fraction(1)), high)


def _clipped(corners: list[Point], limits: list[HalfPlane]) -> list[Point]:
    """The corners of a convex polygon cut by half planes (Sutherland and Hodgman, 1974); empty if all is cut off."""
    for a, b, c in limits:
        points: list[Point] = []
        for index, end in enumerate(corners):
            start = corners[index - 1]
            at_start, at_end = a * start[0] + b * start[1] + c, a * end[0] + b * end[1] + c
            if (at_start < 0 < at_end) or (at_end < 0 < at_start):
                share = at_start / (at_start - at_end)
                points.append((start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])))
            if at_end >= 0:
                points.append(end)
        corners = points
    return corners
