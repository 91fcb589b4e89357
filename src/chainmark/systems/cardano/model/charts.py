"""Charts of a model's results: adoption curves, their components, errors against limits.

Line styles follow the scenarios, so that each can be distinguished without colour as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.report.chart import (
    BAD,
    GOOD,
    LINE_COLOURS,
    PART_COLOURS,
    QUIET,
    Axis,
    Chart,
    Layer,
    LegendSeries,
    Limit,
    Tooltip,
    columns_of,
)

_NARROWEST_NUMBERED = 0.035  # of the axis: a narrower part has no room for its number
_ERROR_AXIS = Axis("modelled / measured \u2212 1", numbers="signed percent", padding=8)
_STATES = ("circle", "triangle-up")


@dataclass(frozen=True)
class CurveLine:
    """One curve: at ``x`` the fraction ``y``, with the interval of x in ``low`` and ``high``."""

    label: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class ErrorPoint:
    """An error with its interval and its limit, as fractions; ``others`` are other methods' errors."""

    label: str
    error: float
    low: float
    high: float
    limit: float
    flagged: bool
    others: list[float]


def _diamonds(data: str, place: str, tips: Sequence[Tooltip], y: str = "label") -> Layer:
    """The mark of results that are not simulated: measured, or from a formula."""
    return Layer("points", data, place, y, colour=QUIET, style="diamond", size=60, hollow=True, tips=tips)


def curve_chart(lines: Sequence[CurveLine], measured: Sequence[tuple[float, float]], unit: str) -> Chart:
    """The number of hosts that adopted, over time; measured values as diamonds."""
    rows = [
        {"label": line.label, "x": x, "y": y, "low": low, "high": high}
        for line in lines
        for x, y, low, high in zip(line.x, line.y, line.low, line.high, strict=True)
    ]
    time = f"time, {unit}"
    tips = [Tooltip("scenario", "label"), Tooltip("hosts", "y", ".0%"), Tooltip(time, "x", ".4g"),
            Tooltip("interval", "low", ".4g", until="high")]  # fmt: skip
    layers = [
        Layer("band", x="low", x2="high", y="y", colour="label", opacity=0.22),
        Layer("line", x="x", y="y", colour="label", style="label", order="y", opacity=1, tips=tips, nearest=True),
    ]
    data = {"points": columns_of(rows)}
    note = "Bands: ± 2 standard errors of the simulation."
    if measured:
        layers.append(
            _diamonds("measured", "x", [Tooltip("hosts, measured", "y", ".0%"), Tooltip(time, "x", ".4g")], "y")
        )
        data["measured"] = columns_of({"x": value, "y": fraction} for value, fraction in measured)
        note += " Diamonds: measured by the source."
    return Chart(
        id="curves",
        title="Hosts that adopted, over time",
        x=Axis(time),
        y=Axis("hosts that adopted", numbers="percent", domain=(0, 1)),
        layers=layers,
        data=data,
        series={"label": LegendSeries(list(dict.fromkeys(line.label for line in lines)))},
        note=note,
        wide=True,
        paper=(620, 260),
    )


def part_rows(label: str, names: Sequence[str], parts: Sequence[float], **rest: Any) -> list[dict[str, Any]]:
    """The parts of one bar, laid end to end."""
    rows: list[dict[str, Any]] = []
    start = 0.0
    total = sum(parts)
    for index, (name, part) in enumerate(zip(names, parts, strict=True)):
        share = part / total if total else 0.0
        rows.append(
            {"label": label, "part": name, "number": str(index + 1), "start": start, "end": start + part,
             "middle": start + part / 2.0, "value": part, "share": share, "ink": _ink(index), **rest}
        )  # fmt: skip
        start += part
    return rows


def _ink(index: int) -> str:
    """A number's colour on its part: white on the dark ones."""
    red, green, blue = (int(PART_COLOURS[index % len(PART_COLOURS)][start : start + 2], 16) for start in (1, 3, 5))
    return "#14171a" if 0.299 * red + 0.587 * green + 0.114 * blue > 125.0 else "#ffffff"


def part_chart(rows: Sequence[dict[str, Any]], names: Sequence[str], axis: str, pages: Sequence[str]) -> Chart:
    """Stacked bars of a figure's components, one bar per label.

    Args:
        rows: of ``part_rows``. If they have a ``choice``, a reader selects among them on the screen.
        names: of the parts.
        axis: label of the figures' axis.
        pages: the choices that are shown on paper and on a terminal.
    """
    longest = max((row["end"] for row in rows), default=1.0)
    tips = [
        Tooltip("of", "label"),
        Tooltip("part", "part"),
        Tooltip(axis or "value", "value", ".4g"),
        Tooltip("share", "share", ".1%"),
    ]
    return Chart(
        id="parts",
        title="Stages, end to end",
        x=Axis(axis, domain=(0, longest)),
        y=Axis(names=list(dict.fromkeys(row["label"] for row in rows))),
        layers=[
            Layer("bar", x="start", x2="end", y="label", colour="part", tips=tips),
            Layer("text", "numbers", "middle", "label", ink="ink", text="number", size=10),
        ],
        data={
            "points": columns_of(rows),
            "numbers": columns_of(row for row in rows if row["value"] > longest * _NARROWEST_NUMBERED),
        },
        series={"part": LegendSeries(names, PART_COLOURS)},
        note="The stages add up to the total. The numbers in a bar are those of the legend.",
        wide=True,
        on_terminal=True,
        choice="choice" if any("choice" in row for row in rows) else "",
        pages=pages,
    )


def error_chart(points: Sequence[ErrorPoint]) -> Chart:
    """Every error with its interval, in front of the band of errors that the model has for published runs."""
    rows = [
        {"label": p.label, "error": p.error, "low": p.low, "high": p.high, "floor": -p.limit, "ceiling": p.limit,
         "state": "beyond the limit" if p.flagged else "within the limit"}
        for p in points
    ]  # fmt: skip
    others = [{"label": point.label, "error": other} for point in points for other in point.others]
    tips = [Tooltip("of", "label"), Tooltip("error", "error", "+.2%"), Tooltip("interval", "low", "+.2%", until="high"),
            Tooltip("limit", "ceiling", ".1%")]  # fmt: skip
    layers = [
        Layer("bar", x="floor", x2="ceiling", y="label", colour=GOOD, opacity=0.16, size=0.9),
        Layer("interval", x="low", x2="high", y="label", colour="state"),
        Layer("points", x="error", y="label", colour="state", style="state", size=70, opacity=1, tips=tips),
    ]
    data = {"points": columns_of(rows)}
    note = "Shaded: the limit. Lines: ± 2 standard errors."
    if others:
        layers.append(_diamonds("others", "error", [Tooltip("of", "label"), Tooltip("by formula", "error", "+.2%")]))
        data["others"] = columns_of(others)
        note += " Diamonds: the error of the closed-form formula."
    return Chart(
        id="errors",
        title="Errors and their limits",
        x=_ERROR_AXIS,
        y=Axis(names=[point.label for point in points]),
        layers=layers,
        data=data,
        series={"state": LegendSeries(["within the limit", "beyond the limit"], (GOOD, BAD), _STATES)},
        limits=[Limit(0.0, along="x", colour=QUIET, dash=())],
        note=note,
    )


def link_chart(rows: Sequence[dict[str, Any]], unit: str) -> Chart:
    """The measured and the inferred values, link by link.

    Args:
        rows: label, measured, inferred, low, high (of the inferred), state.
        unit: of all figures.
    """
    tips = [Tooltip("link", "label"), Tooltip("measured", "measured", ".4g"), Tooltip("inferred", "inferred", ".4g"),
            Tooltip("interval", "low", ".4g", until="high")]  # fmt: skip
    return Chart(
        id="links",
        title="Round trips, from pings and from the run",
        x=Axis(f"round trip, {unit}"),
        y=Axis(names=list(dict.fromkeys(row["label"] for row in rows))),
        layers=[
            Layer("interval", x="measured", x2="inferred", y="label", colour=QUIET, width=1, dash=(2, 2)),
            _diamonds("points", "measured", tips),
            Layer("interval", x="low", x2="high", y="label", colour="state"),
            Layer("points", x="inferred", y="label", colour="state", style="state", size=60, opacity=1, tips=tips),
        ],
        data={"points": columns_of(rows)},
        series={"state": LegendSeries(["as measured", "differs"], (GOOD, BAD), _STATES)},
        note="Diamonds: from pings. Points: from the run, ± 2 standard errors.",
    )


def method_chart(
    id_: str, title: str, rows: Sequence[dict[str, Any]], columns: Sequence[str], methods: Sequence[str]
) -> Chart:
    """The error of each method, centile by centile.

    Args:
        id_, title: of the chart.
        rows: method, column, error (a fraction).
        columns: in order along the axis.
        methods: in order in the legend.
    """
    tips = [Tooltip("method", "method"), Tooltip("of", "column"), Tooltip("error", "error", ".2%")]
    return Chart(
        id=id_,
        title=title,
        x=Axis(names=columns),
        y=Axis("root mean square error", numbers="percent", zero=True),
        layers=[
            Layer("line", x="column", y="error", colour="method", style="method", opacity=1),
            Layer("points", x="column", y="error", colour="method", style="method", opacity=1, tips=tips),
        ],
        data={"points": columns_of(rows)},
        series={"method": LegendSeries(methods)},
        paper=(560, 180),
    )


def strip_chart(id_: str, title: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Chart:
    """Every run's error, centile by centile.

    Args:
        id_, title: of the chart.
        rows: label, column, error, low, high (fractions).
        columns: in order along the axis.
    """
    tips = [Tooltip("run", "label"), Tooltip("of", "column"), Tooltip("error", "error", "+.2%"),
            Tooltip("interval", "low", "+.2%", until="high")]  # fmt: skip
    colour = LINE_COLOURS[1]
    # The runs of one centile are side by side, in their own order.
    return Chart(
        id=id_,
        title=title,
        x=Axis(names=columns),
        y=_ERROR_AXIS,
        layers=[
            Layer("interval", x="column", y="low", y2="high", offset="label", colour=colour, width=1, opacity=0.35),
            Layer("points", x="column", y="error", offset="label", colour=colour, size=30, opacity=0.75, tips=tips),
        ],
        data={"points": columns_of(rows)},
        limits=[Limit(0.0, colour=QUIET, dash=())],
        note="Lines: ± 2 standard errors.",
        paper=(560, 200),
    )
