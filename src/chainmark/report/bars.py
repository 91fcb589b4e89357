"""The position of an interval relative to its band: the geometry of the bar that every rendering draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainmark.core.comparison import Judgement

SPAN_IN_MARGINS = 2.0  # beyond twice the margin, the exact distance matters little


@dataclass(frozen=True)
class IntervalBar:
    """Positions as fractions of the axis' width, 0 at its left end and 1 at its right end.

    The axis spans twice the margin on either side of no change. ``low`` and ``high`` are clipped to it;
    ``beyond_low`` and ``beyond_high`` indicate a clipped end. ``point`` is None if it lies off the axis.
    """

    band_low: float
    zero: float
    band_high: float
    low: float
    high: float
    point: float | None
    beyond_low: bool
    beyond_high: bool


def interval_bar(judgement: Judgement) -> IntervalBar | None:
    """The bar of one judgement; None if it has no change or no band."""
    return bar_between(
        judgement.change,
        interval=(judgement.low, judgement.high),
        margin=(judgement.margin_low, judgement.margin_high),
    )


def bar_between(
    change: float | None, *, interval: tuple[float | None, float | None], margin: tuple[float | None, float | None]
) -> IntervalBar | None:
    """The bar of a change with its interval and a band, all on one scale; None without a change or a band."""
    change = _finite(change)
    margin_low, margin_high = _finite(margin[0]), _finite(margin[1])
    if change is None or margin_low is None or margin_high is None or not margin_low < 0.0 < margin_high:
        return None
    left, right = SPAN_IN_MARGINS * margin_low, SPAN_IN_MARGINS * margin_high
    if not math.isfinite(right - left):
        return None
    low = min(change, interval[0] if interval[0] is not None else change)
    high = max(change, interval[1] if interval[1] is not None else change)

    def place(value: float) -> float:
        return (min(max(value, left), right) - left) / (right - left)

    return IntervalBar(
        band_low=place(margin_low),
        zero=place(0.0),
        band_high=place(margin_high),
        low=place(low),
        high=place(high),
        point=place(change) if left <= change <= right else None,
        beyond_low=low < left,
        beyond_high=high > right,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def text_bar(bar: IntervalBar | None, width: int) -> str:
    """The bar in characters: ``·`` the band's edges, ``│`` no change, ``├──●─┤`` the interval, ``◂ ▸`` beyond the axis.

    Args:
        bar: None: blanks.
        width: in columns; odd widths put no change in the middle of a column.
    """
    if bar is None:
        return " " * width
    cells = [" "] * width

    def cell(fraction: float) -> int:
        return min(width - 1, max(0, round(fraction * (width - 1))))

    cells[cell(bar.zero)] = "│"
    cells[cell(bar.band_low)] = cells[cell(bar.band_high)] = "·"
    low, high = cell(bar.low), cell(bar.high)
    for index in range(low, high + 1):
        cells[index] = "─"
    if low <= cell(bar.zero) <= high and low != high:
        cells[cell(bar.zero)] = "┼"
    cells[low], cells[high] = "├", "┤"
    if bar.beyond_low:
        cells[low] = "◂"
    if bar.beyond_high:
        cells[high] = "▸"
    if bar.point is not None:
        cells[cell(bar.point)] = "●"
    return "".join(cells)


def text_scale(margin_low: str, margin_high: str, width: int) -> str:
    """The heading of a column of bars: the names of the band's edges and of no change."""
    cells = [" "] * width
    for fraction, text in ((0.25, margin_low), (0.5, "0"), (0.75, margin_high)):
        start = round(fraction * (width - 1)) - len(text) // 2
        for offset, character in enumerate(text):
            if 0 <= start + offset < width:
                cells[start + offset] = character
    return "".join(cells)
