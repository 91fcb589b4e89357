"""Charts of what a model says: adoption curves, what they are made of, errors against limits.

Colours and dashes follow the scenarios, so that each can be told from the others without colour as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.report.vega import Spec

# Okabe and Ito's colours, without the yellow that is lost on white: told apart with every kind of colour blindness.
LINE_COLOURS = ("#333333", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255")
LINE_COLOURS_ON_DARK = ("#e6e9ec", "#56b4e9", "#ff8c42", "#2fc79a", "#e3a0c6", "#e6b93c", "#9fd4f5", "#c86a94")
DASHES = (
    [1, 0],
    [7, 3],
    [2, 2],
    [9, 3, 2, 3],
    [14, 4],
    [4, 2, 1, 2],
    [6, 2, 1, 2, 1, 2],
    [12, 2, 3, 2, 3, 2],
    [3, 5],
)  # one more than colours: the ninth line is not the first again
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
# Paul Tol's muted scheme, in an order in which neighbours differ in lightness as well.
PART_COLOURS = (
    "#88ccee", "#cc6677", "#ddcc77", "#117733", "#aa4499", "#44aa99", "#999933", "#882255", "#6f63c9", "#bbbbbb",
)  # fmt: skip
_GOOD, _BAD = "#009e73", "#d55e00"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_NARROWEST_NUMBERED = 0.035  # of the axis: a narrower part has no room for its number
_TICKS = 6


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


def _spec(description: str, values: Sequence[dict[str, Any]], **rest: Any) -> Spec:
    return {"$schema": _SCHEMA, "description": description, "data": {"values": list(values)}, **rest}


def _line_legend(interactive: bool) -> Spec:
    legend: Spec = {"title": None, "orient": "top", "symbolType": "stroke", "symbolStrokeWidth": 2, "labelLimit": 230}
    return legend | {
        "symbolFillColor": "transparent",
        "symbolSize": 400,
        "symbolOpacity": 1,
        "columns": 4 if interactive else 2,
    }


def _by(labels: Sequence[str], cycle: Sequence[Any], legend: Spec | None, field: str = "label") -> Spec:
    scale: Spec = {"domain": list(labels)}
    if cycle:
        scale["range"] = [cycle[index % len(cycle)] for index in range(len(labels))]
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _axis(field: str, title: str, **rest: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False, "nice": False}, **rest}


def _error_axis() -> Spec:
    label = "datum.value ? format(datum.value, '+.1~%') : '0'"
    axis = _axis("error", "modelled / measured \u2212 1", axis={"labelExpr": label, "tickCount": _TICKS})
    axis["scale"]["padding"] = 8
    return axis


def _names(field: str, labels: Sequence[str], **axis: Any) -> Spec:
    """Names down the left side, in their own order."""
    return {"field": field, "type": "nominal", "sort": list(labels), "title": None, "axis": {"labelLimit": 190, **axis}}


def _diamond(size: int) -> Spec:
    """The mark of what is not the simulation: measured, or of a formula."""
    return {"type": "point", "shape": "diamond", "size": size, "filled": False, "color": "#888888", "opacity": 1}


def _tips(*pairs: tuple[str, str, str | None]) -> list[Spec]:
    """What the pointer is told: field, name, and the format of a figure."""
    return [
        {"field": field, "title": title, **({"type": "quantitative", "format": form} if form else {"type": "nominal"})}
        for field, title, form in pairs
    ]


def curve_chart(
    lines: Sequence[CurveLine], measured: Sequence[tuple[float, float]], unit: str, *, interactive: bool
) -> Spec:
    """How many hosts adopted, over time; what was measured as diamonds."""
    labels = list(dict.fromkeys(line.label for line in lines))
    values = [
        {"label": line.label, "x": x, "y": y, "low": low, "high": high}
        for line in lines
        for x, y, low, high in zip(line.x, line.y, line.low, line.high, strict=True)
    ]
    x, y = _axis("x", f"time, {unit}", axis={"tickCount": 10}), _axis("y", "hosts that adopted", axis={"format": ".0%"})
    y["scale"] = {"domain": [0, 1]}
    legend = _line_legend(interactive) if len(labels) > 1 else None
    colour, dash = _by(labels, (), legend), _by(labels, DASHES, legend)
    tips = _tips(("label", "scenario", None), ("y", "hosts", ".0%"), ("x", f"time, {unit}", ".4~g"),
                 ("low", "from", ".4~g"), ("high", "to", ".4~g"))  # fmt: skip
    band = {
        "mark": {"type": "area", "orient": "horizontal", "opacity": 0.22},
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
    }
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "order": {"field": "y"}},
    }
    if interactive:
        line["params"] = [{"name": "shown", "select": {"type": "point", "fields": ["label"]}, "bind": "legend"}]
        line["encoding"]["opacity"] = {"condition": {"param": "shown", "value": 1, "empty": True}, "value": 0.08}
    layers = [band, line]
    if interactive:
        seen = {"condition": {"param": "hover", "value": 1, "empty": False}, "value": 0}
        select = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
        layers.append(
            {
                "mark": {"type": "point", "filled": True, "size": 45},
                "params": [{"name": "hover", "select": select}],
                "encoding": {"x": x, "y": y, "color": colour, "opacity": seen, "tooltip": tips},
            }
        )
    if measured:
        layers.append(_measured(measured, x, y, unit))
    return _spec("hosts that adopted over time", values, layer=layers)


def _measured(measured: Sequence[tuple[float, float]], x: Spec, y: Spec, unit: str) -> Spec:
    tips = _tips(("y", "hosts, measured", ".0%"), ("x", f"time, {unit}", ".4~g"))
    return {
        "data": {"values": [{"x": value, "y": fraction} for value, fraction in measured]},
        "mark": {**_diamond(70), "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "tooltip": tips},
    }


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


def part_chart(rows: Sequence[dict[str, Any]], names: Sequence[str], unit: str, *, interactive: bool) -> Spec:
    """Stacked bars of what a figure is made of, one bar a label.

    Where the rows have a ``choice``, a reader chooses among them on the screen.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    choices = list(dict.fromkeys(row["choice"] for row in rows if "choice" in row))
    longest = max((row["end"] for row in rows), default=1.0)
    y = _names("label", labels)
    x = {"type": "quantitative", "title": unit, "scale": {"domain": [0, longest], "nice": False},
         "axis": {"tickCount": _TICKS}}  # fmt: skip
    legend = {"title": None, "orient": "top", "columns": 4 if interactive else 3, "labelLimit": 200, "symbolSize": 120}
    colour = _by(names, PART_COLOURS, {**legend, "symbolType": "square"}, "part")
    tips = _tips(("label", "of", None), ("part", "part", None), ("value", unit, ".4~g"), ("share", "share", ".1%"))
    layers = [
        {
            "mark": {"type": "bar", "stroke": "#ffffff", "strokeWidth": 0.6, "height": {"band": 0.78}},
            "encoding": {"y": y, "x": {**x, "field": "start"}, "x2": {"field": "end"}, "color": colour,
                         "tooltip": tips},
        },
        {
            "transform": [{"filter": f"datum.value > {longest * _NARROWEST_NUMBERED}"}],
            "mark": {"type": "text", "fontSize": 10, "fontWeight": "bold", "tooltip": None},
            "encoding": {"y": y, "x": {**x, "field": "middle"}, "text": {"field": "number"},
                         "color": {"field": "ink", "type": "nominal", "scale": None}},
        },
    ]  # fmt: skip
    spec = _spec("what a figure is made of", rows, layer=layers)
    if interactive and len(choices) > 1:
        choice = {"input": "select", "options": choices, "name": "show "}
        spec["params"] = [{"name": "choice", "value": choices[0], "bind": choice}]
        spec["transform"] = [{"filter": "datum.choice === choice"}]
    return spec


def error_chart(points: Sequence[ErrorPoint], *, interactive: bool) -> Spec:
    """Every error with its interval, before the band that the model's own record allows."""
    labels = [point.label for point in points]
    values = [
        {"label": p.label, "error": p.error, "low": p.low, "high": p.high, "floor": -p.limit, "ceiling": p.limit,
         "state": "beyond the limit" if p.flagged else "within the limit"}
        for p in points
    ]  # fmt: skip
    others = [{"label": point.label, "error": other} for point in points for other in point.others]
    y = _names("label", labels, grid=False)
    x = _error_axis()
    states = ["within the limit", "beyond the limit"]
    legend = {"title": None, "orient": "top", "symbolSize": 70} if interactive or any(p.flagged for p in points) else {}
    look = {
        "color": _by(states, (_GOOD, _BAD), legend or None, "state"),
        "shape": _by(states, ("circle", "triangle-up"), legend or None, "state"),
    }
    form = "+.2%"
    tips = _tips(("label", "of", None), ("error", "error", form), ("low", "from", form), ("high", "to", form),
                 ("ceiling", "limit", ".1%"))  # fmt: skip
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "opacity": 0.16, "color": _GOOD, "height": {"band": 0.9}, "tooltip": None},
            "encoding": {"y": y, "x": {**x, "field": "floor"}, "x2": {"field": "ceiling"}},
        },
        {"mark": {"type": "rule", "color": "#888888"}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": look["color"]},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"y": y, "x": x, **look, "tooltip": tips},
        },
    ]
    if others:
        layers.append(
            {
                "data": {"values": others},
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "size": 55,
                    "filled": False,
                    "color": "#888888",
                    "opacity": 1,
                },
                "encoding": {"y": y, "x": x, "tooltip": _tips(("label", "of", None), ("error", "by formula", form))},
            }
        )
    return _spec("errors against their limits", values, layer=layers)


def link_chart(rows: Sequence[dict[str, Any]], unit: str) -> Spec:
    """What was measured and what was inferred, link by link.

    Args:
        rows: label, measured, inferred, low, high (of the inferred), state.
        unit: of all figures.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    y = _names("label", labels, grid=False)
    x = _axis("inferred", f"round trip, {unit}")
    states = ["as measured", "differs"]
    legend = {"title": None, "orient": "top", "symbolSize": 70}
    colour = _by(states, (_GOOD, _BAD), legend, "state")
    shape = _by(states, ("circle", "triangle-up"), legend, "state")
    form = ".4~g"
    tips = _tips(("label", "link", None), ("measured", "measured", form), ("inferred", "inferred", form),
                 ("low", "from", form), ("high", "to", form))  # fmt: skip
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": "#888888", "strokeDash": [2, 2]},
            "encoding": {"y": y, "x": {**x, "field": "measured"}, "x2": {"field": "inferred"}},
        },
        {
            "mark": {
                "type": "point",
                "shape": "diamond",
                "size": 70,
                "filled": False,
                "color": "#888888",
                "opacity": 1,
            },
            "encoding": {"y": y, "x": {**x, "field": "measured"}, "tooltip": tips},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"y": y, "x": x, "color": colour, "shape": shape, "tooltip": tips},
        },
    ]
    return _spec("round trips", rows, layer=layers)


def method_chart(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], methods: Sequence[str], *, interactive: bool
) -> Spec:
    """How far each method was off, centile by centile.

    Args:
        rows: method, column, error (a fraction).
        columns: in their order along the axis.
        methods: in their order in the legend.
        interactive: adds what the pointer is told.
    """
    x = {"field": "column", "type": "ordinal", "sort": list(columns), "title": None, "axis": {"labelAngle": 0}}
    y = _axis("error", "root mean square error", axis={"format": ".1~%"})
    y["scale"] = {"zero": True}
    legend: Spec = {
        "title": None,
        "orient": "top",
        "labelLimit": 230,
        "symbolSize": 90,
        "columns": 4 if interactive else 3,
    }
    encoding = {"x": x, "y": y, "color": _by(methods, (), legend, "method")}
    tips = _tips(("method", "method", None), ("column", "of", None), ("error", "error", ".2%"))
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {**encoding, "strokeDash": _by(methods, DASHES, None, "method")},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {**encoding, "shape": _by(methods, _SHAPES, legend, "method"), "tooltip": tips},
        },
    ]
    return _spec("errors by method", rows, layer=layers)


def strip_chart(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Spec:
    """Every run's error, centile by centile.

    Args:
        rows: label, column, error, low, high (fractions).
        columns: in their order along the axis.
    """
    x = {"field": "column", "type": "ordinal", "sort": list(columns), "title": None, "axis": {"labelAngle": 0}}
    y = _error_axis()
    form = "+.2%"
    tips = _tips(("label", "run", None), ("column", "of", None), ("error", "error", form), ("low", "from", form),
                 ("high", "to", form))  # fmt: skip
    colour = {"value": LINE_COLOURS[1]}
    run = {"field": "label", "sort": None}  # the runs of one centile stand side by side, in their own order
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": "#888888"},
            "encoding": {"y": {"datum": 0, "type": "quantitative"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.35},
            "encoding": {"x": x, "xOffset": run, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.75},
            "encoding": {"x": x, "xOffset": run, "y": y, "color": colour, "tooltip": tips},
        },
    ]
    return _spec("errors run by run", rows, layer=layers)
