"""Formatting of numbers: with a unit, no more digits than are known, and a true minus sign.

Figures in one row share one unit and one number of decimals, so a column aligns on its decimal point.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MINUS = "\u2212"
NO_DATA = "no data"
NOT_ESTIMABLE = "not estimable"
UNSET = "—"  # a configuration key that has no value, or that a version does not have

_SECONDS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
_BYTE_UNITS = {"B": 1, "byte": 1, "bytes": 1, "Bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BYTE_STEPS = ("B", "KiB", "MiB", "GiB", "TiB")
_MOST_DECIMALS = 9
_LEAST_CHANCE = 0.001
_LARGEST_FIXED = 1e15  # above, and below the smallest, digits of a fixed notation carry no information
_SMALLEST_FIXED = 1e-6


@dataclass(frozen=True)
class DisplayUnit:
    """The unit that a row is printed in: multiply a value in the metric's own unit by ``factor``."""

    symbol: str
    factor: float = 1.0

    def of(self, value: float | None) -> float | None:
        """The value in this unit; None stays None, and non-finite values become None."""
        if value is None or not math.isfinite(value):
            return None
        scaled = value * self.factor
        return scaled if math.isfinite(scaled) else None


def symbol_of_change(unit: DisplayUnit) -> str:
    """The unit of a difference: a change of a percentage is in percentage points."""
    return "pp" if unit.symbol == "%" else unit.symbol


def _largest(values: Iterable[float | None]) -> float:
    return max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)


def display_unit(unit: str, values: Iterable[float | None]) -> DisplayUnit:
    """Choose one unit for all values of a row: ms only if every one is below a second, KiB to TiB for bytes.

    Args:
        unit: the metric's own unit ("s", "B", "MiB/s", "tx/s", …).
        values: all values to print in that unit; None is ignored.
    """
    largest = _largest(values)
    if unit == "s":
        return _seconds(largest)
    base, slash, per = unit.partition("/")
    if base in _BYTE_UNITS:
        return _bytes(largest, _BYTE_UNITS[base], slash + per)
    if unit == "fraction":
        return DisplayUnit("%", 100.0)
    return DisplayUnit("" if unit == "1" else unit)


def _seconds(largest: float) -> DisplayUnit:
    if largest == 0.0:
        return DisplayUnit("s")
    for symbol, factor in _SECONDS:
        if largest * factor >= 1.0:
            return DisplayUnit(symbol, factor)
    return DisplayUnit(*_SECONDS[-1])


def _bytes(largest: float, multiple: int, suffix: str) -> DisplayUnit:
    step = 0
    while step < len(_BYTE_STEPS) - 1 and largest * multiple >= 1024.0 ** (step + 1):
        step += 1
    return DisplayUnit(_BYTE_STEPS[step] + suffix, multiple / 1024.0**step)


def decimals_for(values: Iterable[float | None], uncertainty: float | None = None) -> int:
    """The number of decimals for figures printed together.

    Two digits of the uncertainty are shown, within 3 to 5 significant digits of the largest figure; without an
    uncertainty, 4 significant digits.

    Args:
        values: the figures, in the unit they are printed in.
        uncertainty: half the width of their interval, in the same unit.
    """
    largest = _largest(values)
    if largest == 0.0 or not math.isfinite(largest):
        return 1
    magnitude = math.floor(math.log10(largest)) + 1  # digits before the point; 0 or less for figures below 1
    if uncertainty is None or not math.isfinite(uncertainty) or uncertainty <= 0.0:
        digits = 4
    else:
        digits = min(5, max(3, magnitude + 1 - math.floor(math.log10(uncertainty))))
    return min(_MOST_DECIMALS, max(0, digits - magnitude))


def number(value: float | None, decimals: int, *, signed: bool = False, grouped: bool = True) -> str:
    """A figure with a fixed number of decimals; groups of three digits from 10,000 on, unless it goes into a file.

    Zero, and values that round to zero, have no sign.
    """
    if value is None or math.isnan(value):
        return NOT_ESTIMABLE
    if math.isinf(value):
        return "∞" if value > 0 else MINUS + "∞"
    size = abs(value)
    if size >= _LARGEST_FIXED or 0.0 < size < _SMALLEST_FIXED:
        mantissa, _, exponent = f"{size:.2e}".partition("e")
        power = int(exponent)
        return f"{_sign(value, signed)}{mantissa}e{MINUS if power < 0 else ''}{abs(power)}"
    body = f"{size:,.{decimals}f}" if grouped and round(size) >= 10_000 else f"{size:.{decimals}f}"
    return body if float(body.replace(",", "")) == 0.0 else _sign(value, signed) + body


def _sign(value: float, signed: bool) -> str:
    if value < 0:
        return MINUS
    return "+" if signed and value > 0 else ""


def percent_decimals(*fractions: float | None) -> int:
    """One decimal for percentages below 100 %, none above: a change of +1240 % is not known to 0.1 %."""
    return 1 if _largest(fractions) < 0.9995 else 0


def percent(fraction: float | None, *, decimals: int | None = None) -> str:
    """A relative change: ``0.039`` is "+3.9 %"."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_ESTIMABLE
    places = percent_decimals(fraction) if decimals is None else decimals
    return f"{number(fraction * 100.0, places, signed=True)} %"


def percent_interval(low: float | None, high: float | None) -> str:
    """An interval of relative changes: "−7.1 … −0.6 %"."""
    if low is None or high is None:
        return NOT_ESTIMABLE
    places = percent_decimals(low, high)
    return f"{number(low * 100.0, places, signed=True)} … {number(high * 100.0, places, signed=True)} %"


def change_and_interval(change: float, low: float | None, high: float | None, unit: str | None) -> tuple[str, str]:
    """A change and its interval in one unit and to the same decimals: "+31.0 %" and "+28.1 … +34.0 %".

    Args:
        change: a fraction of the baseline, or a difference in the metric's unit.
        low: the lower end of the interval; without both ends, the interval is "".
        high: the upper end.
        unit: the metric's unit; None for a fraction.
    """
    values = [change] if low is None or high is None else [change, low, high]
    if unit is None:
        decimals, symbol, factor = percent_decimals(*(values[1:] or values)), "%", 100.0
    else:
        shown = display_unit(unit, values)
        symbol, factor = symbol_of_change(shown), shown.factor
        half = None if low is None or high is None else (high - low) / 2.0 * factor
        decimals = decimals_for([value * factor for value in values], half)
    texts = [number(value * factor, decimals, signed=True) for value in values]
    return f"{texts[0]} {symbol}".rstrip(), f"{' … '.join(texts[1:])} {symbol}".strip() if texts[1:] else ""


def probability(value: float) -> str:
    """A p- or q-value: to three decimals, and below that "< 0.001"."""
    return "< 0.001" if value < 0.001 else number(value, 3)


def plain_percent(fraction: float, *, decimals: int | None = None) -> str:
    """A share or a margin without a sign and, by default, without trailing zeros: ``0.1`` is "10 %"."""
    if decimals is None:
        decimals = 0 if math.isclose(fraction * 100.0, round(fraction * 100.0), abs_tol=0.05) else 1
    return f"{number(fraction * 100.0, decimals)} %"


def chance(share: float) -> str:
    """A probability as a percentage; an estimated one is never 0 or 100 %."""
    if not _LEAST_CHANCE <= share <= 1.0 - _LEAST_CHANCE:
        return f"< {plain_percent(_LEAST_CHANCE)}" if share < 0.5 else f"> {plain_percent(1.0 - _LEAST_CHANCE)}"
    return plain_percent(share, decimals=1)


def share_beside(limit: float, fraction: float) -> str:
    """A share to 0.1 %, or with enough digits to differ from its limit: with a limit of 98 %, 97.99 is not "98.0 %"."""
    for decimals in range(1, _MOST_DECIMALS):
        text = plain_percent(fraction, decimals=decimals)
        if text != plain_percent(limit, decimals=decimals):
            return text
    return plain_percent(fraction, decimals=1)


def plain_percent_interval(low: float, high: float) -> str:
    """An interval of shares, to 0.1 %: "94.1 … 96.2 %"."""
    return f"{number(low * 100.0, 1)} … {number(high * 100.0, 1)} %"


def quantity(value: float | None, unit: str, uncertainty: float | None = None) -> str:
    """A single value with its unit, scaled by itself: ``0.0123`` s is "12.30 ms"."""
    shown = display_unit(unit, [value])
    scaled = shown.of(value)
    if scaled is None:
        return NOT_ESTIMABLE
    text = number(scaled, decimals_for([scaled], None if uncertainty is None else uncertainty * shown.factor))
    return f"{text} {shown.symbol}".rstrip()


def quantity_with_error(value: float, standard_error: float, unit: str) -> str:
    """A value with its standard error: ``0.0753`` and ``0.0021`` s are "75.3 ± 2.1 ms"."""
    shown = display_unit(unit, [value])
    decimals = decimals_for([value * shown.factor], standard_error * shown.factor)
    texts = (number(item * shown.factor, decimals) for item in (value, standard_error))
    return f"{' ± '.join(texts)} {shown.symbol}".rstrip()


def tidy(value: float, digits: int = 6) -> str:
    """A figure with this many significant digits, without trailing zeros: ``0.250`` is "0.25"."""
    magnitude = math.floor(math.log10(abs(value))) + 1 if value and math.isfinite(value) else 1
    text = number(value, min(_MOST_DECIMALS, max(0, digits - magnitude)))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def tidy_quantity(value: float, unit: str, *, is_change: bool = False) -> str:
    """A chosen value, such as a floor, with its unit and no trailing zeros: ``0.005`` s is "5 ms"."""
    shown = display_unit(unit, [value])
    symbol = symbol_of_change(shown) if is_change else shown.symbol
    return f"{tidy(value * shown.factor, 3)} {symbol}".rstrip()


def rounded(value: float, digits: int = 6) -> float:
    """A coordinate or a level with this many significant digits: more are invisible, and make a document long."""
    return float(f"{value:.{digits}g}")


def all_rounded(values: Sequence[float], digits: int = 6) -> list[float]:
    """The same for many values, faster."""
    return [float(text) for text in (f"%.{digits}g " * len(values) % tuple(values)).split()]


def duration(seconds: float) -> str:
    """A duration with three digits, without trailing zeros: ``0.005`` is "5 ms"."""
    return tidy_quantity(seconds, "s")


def count(value: int) -> str:
    """A whole number, grouped from 10,000 on."""
    return (MINUS if value < 0 else "") + (f"{abs(value):,}" if abs(value) >= 10_000 else str(abs(value)))


def plural(amount: int, singular: str, more: str | None = None) -> str:
    """A count with its noun: "1 run", "3 runs"."""
    return f"{count(amount)} {singular if amount == 1 else (more or singular + 's')}"


def none_of(amount: int, singular: str) -> str:
    """The subject of a sentence about none of several: "none of 3 runs", but "no run" of a single one."""
    return f"none of {plural(amount, singular)}" if amount > 1 else f"no {singular}"


def byte_size(size: int) -> str:
    """A size in bytes as KiB, MiB or GiB."""
    return quantity(float(size), "B") if abs(size) >= 1024 else f"{count(size)} B"


def utc(text: str) -> str:
    """An ISO 8601 time as "2026-11-20 10:11 UTC"; a bare date, or a text that is not a time, is returned unchanged."""
    if "T" not in text:
        return text
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    try:
        return time.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    except OverflowError:
        return text


def utc_clock(text: str) -> str:
    """The time of day of an ISO 8601 time: "12:51:07 UTC"."""
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time.astimezone(datetime.UTC).strftime("%H:%M:%S UTC")


def utc_of_nanoseconds(time_ns: int) -> str:
    """Nanoseconds since 1970 as a UTC time to the second."""
    try:
        time = datetime.datetime.fromtimestamp(time_ns // 1_000_000_000, tz=datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns since 1970"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def scalar(value: object) -> str:
    """A configuration value in the form of a configuration file."""
    if value is None:
        return UNSET
    if value == "":
        return '""'
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def align_on_point(texts: Sequence[str]) -> list[str]:
    """Pad figures to one width with their decimal points in one column; words are set flush right."""
    split = [_around_point(text) for text in texts]
    before = max((len(left) for left, _ in split), default=0)
    after = max((len(right) for _, right in split), default=0)
    padded = [left.rjust(before) + right.ljust(after) for left, right in split]
    width = max((len(text) for text in [*padded, *texts]), default=0)
    return [
        line.rjust(width) if is_figure(text) else text.rjust(width) for text, line in zip(texts, padded, strict=True)
    ]


def _around_point(text: str) -> tuple[str, str]:
    if not is_figure(text):
        return ("", "")
    left, point, right = text.partition(".")
    return (left, point + right)


FIGURE_SPACE = "\u2007"  # as wide as a digit
PUNCTUATION_SPACE = "\u2008"  # as wide as a point


def pad_after_point(texts: Sequence[str]) -> list[str]:
    """Figures that align on their decimal point when set flush right in a proportional font; words stay unchanged."""
    tails = [len(text.partition(".")[2]) if is_figure(text) else 0 for text in texts]
    longest = max(tails, default=0)
    padded = []
    for text, tail in zip(texts, tails, strict=True):
        if not is_figure(text) or longest == 0:
            padded.append(text)
        else:
            padded.append(text + ("" if "." in text else PUNCTUATION_SPACE) + FIGURE_SPACE * (longest - tail))
    return padded


def is_figure(text: str) -> bool:
    """Whether a cell aligns on its decimal point: it ends with a digit, or with the point itself ("2992.")."""
    return text.removesuffix(".")[-1:].isdigit()
