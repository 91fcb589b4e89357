"""The small charts of the dashboard: a figure over the releases, and the values of single runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.core import units
from chainmark.report.chart import Axis, Chart, Columns, Layer, LegendSeries, Limit, Tooltip

_TREND_WIDTH, _TREND_HEIGHT, _EDGE = 154, 26, 3
_ROW_PX = 24
_SAYS = [Tooltip("", "says")]


def trend(values: Sequence[float | None], changes: Sequence[int], title: str) -> Chart | None:
    """Values from left to right, a point at the last one, a line where the level changed; None without two values."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    data: Columns = {
        "x": [place for place, _ in known],
        "y": [value for _, value in known],
        "of": [title] * len(known),
    }
    return Chart(
        id="trend",
        title=title,
        x=Axis(bare=True, domain=(-0.25, len(values) - 0.75)),
        y=Axis(bare=True, padding=_EDGE),
        layers=[
            Layer("line", x="x", y="y", colour="of", width=1.5),
            Layer("points", "last", x="x", y="y", colour="of", size=20.0),
        ],
        data={"points": data, "last": {name: column[-1:] for name, column in data.items()}},
        series={"of": LegendSeries([title])},
        limits=[Limit(change - 0.5, along="x", dash=(3, 2)) for change in changes],
        palette="sides",
        width=_TREND_WIDTH,
        height=_TREND_HEIGHT,
    )


@dataclass(frozen=True)
class Dot:
    """A value with the key of its item: the same key is marked in every drawing of a page."""

    key: str
    value: float | None


def strip(id_: str, title: str, rows: Sequence[tuple[str, Sequence[Dot]]], unit: str, address: str = "") -> Chart:
    """Values as dots on one axis, a row for each side."""
    known = [(side, dot.key, dot.value) for side, own in rows for dot in own if dot.value is not None]
    shown = units.display_unit(unit, [value for *_, value in known])
    sides = list(dict.fromkeys(side for side, _ in rows))
    return Chart(
        id=id_,
        title=title,
        x=Axis(shown.symbol, padding=8),
        y=Axis(names=sides),
        layers=[Layer("points", x="value", y="side", colour="side", style="side", key="key", opacity=0.6, tips=_SAYS)],
        data={
            "points": {
                "side": [side for side, *_ in known],
                "key": [key for _, key, _ in known],
                "value": [value * shown.factor for *_, value in known],
                "says": [f"{key}: {units.quantity(value, unit)}" for _, key, value in known],
            }
        },
        series={"side": LegendSeries(sides, listed=[])},
        palette="sides" if len(sides) <= 2 else "lines",
        half=True,
        row=_ROW_PX,
        address=address,
    )
