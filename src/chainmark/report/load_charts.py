"""Charts of a load test: latency against load, its distribution step by step, and what happened second by second.

Colours, dashes and shapes say the same, so that each chart can be read without colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainmark.report.model_charts import DASHES, PART_COLOURS
from chainmark.report.vega import Spec

Rows = Sequence[dict[str, Any]]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LIMIT_COLOUR = "#d55e00"
_QUIET = "#888888"
_LONGEST_LABEL = 230
CAPACITY_ROW_PX = 13
_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_MOST_DECADES = 5
_SHAPES = {"pass": "circle", "fail": "triangle-up", "inconclusive": "diamond", "generator-limited": "square"}
_TARGET_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
_TEXT = {"type": "text", "fontSize": 11, "tooltip": None}


def _spec(description: str, layers: Sequence[Spec], **rest: Any) -> Spec:
    return {"$schema": _SCHEMA, "description": description, "layer": list(layers), **rest}


def _scale(values: Sequence[float], *, zero: bool = False) -> Spec:
    """Logarithmic where wide, with the ``values`` of its ticks."""
    if values and min(values) > 0.0 and max(values) / min(values) > _WIDE_RATIO:
        return {"type": "log", "nice": False, "values": _ticks(min(values), max(values))}
    return {"zero": zero, "nice": zero}


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … or, of many decades, the decades alone."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= _MOST_DECADES else (1,)
    found = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in found if low <= tick <= high]


def _axis(field: str, title: str, scale: Spec, **axis: Any) -> Spec:
    # An expression, since a format without its number of digits is given one, and then reads "1e+2".
    look = {"labelOverlap": "greedy", "labelExpr": "format(datum.value, ',.6~g')", **axis}
    if "values" in scale:
        look["values"] = scale["values"]
        scale = {key: value for key, value in scale.items() if key != "values"}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": look}


def _by(field: str, labels: Sequence[str], cycle: Sequence[Any], legend: Spec | None) -> Spec:
    scale: Spec = {"domain": list(labels)}
    if cycle:
        scale["range"] = [cycle[index % len(cycle)] for index in range(len(labels))]
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _line_legend(*, interactive: bool) -> Spec:
    return {
        "title": None, "orient": "top", "symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400,
        "symbolFillColor": "transparent", "symbolOpacity": 1, "labelLimit": _LONGEST_LABEL,
        "columns": 4 if interactive else 3,
    }  # fmt: skip


def _tips(*pairs: tuple[str, str, str | None]) -> list[Spec]:
    return [
        {"field": field, "title": title, **({"type": "quantitative", "format": form} if form else {"type": "nominal"})}
        for field, title, form in pairs
    ]


def _limit(value: float, name: str, *, along: str) -> list[Spec]:
    """A dashed line at a limit with its name."""
    place: Spec = {"x": {"value": 4}} if along == "y" else {"y": {"value": "height"}}
    offset = {"dy": -6, "align": "left"} if along == "y" else {"dx": -4, "dy": -8, "align": "right"}
    at = {along: {"datum": value, "type": "quantitative"}}
    data: Spec = {"values": [{}]}
    return [
        {"data": data, "mark": {"type": "rule", "strokeDash": [6, 3], "strokeWidth": 1.5, "color": _LIMIT_COLOUR},
         "encoding": at},
        {"data": data, "mark": {**_TEXT, "color": _LIMIT_COLOUR, **offset},
         "encoding": {**at, **place, "text": {"value": name}}},
    ]  # fmt: skip


def load_chart(
    points: Rows,
    lines: Rows,
    limits: Sequence[tuple[float, str]],
    capacities: Rows,
    *,
    series: tuple[Sequence[str], Sequence[str]],
    axes: tuple[str, str],
    interactive: bool,
) -> Spec:
    """Latencies against the level.

    Args:
        points: every step's: label, centile, level, value, outcome, step.
        lines: one point a level: label, centile, level, value.
        limits: of the latency, with their names.
        capacities: label (of its line), level, text, row (its place above the plot, in pixels from the top).
        series: the labels that have a colour, and the centiles that have a dash where there are several labels.
        axes: what stands at the axes.
        interactive: adds what only a screen can do.
    """
    labels, centiles = series
    levels = [row["level"] for row in [*points, *capacities]]
    values = [row["value"] for row in points] + [value for value, _ in limits]
    x = _axis("level", axes[0], _scale(levels))
    y = _axis("value", axes[1], _scale(values, zero=True))
    # Room for the capacities' names between the legend and the plot.
    offset = {"offset": 8 + CAPACITY_ROW_PX * len(capacities)}
    legend = _line_legend(interactive=interactive) | offset
    colour = _by("label", labels, (), legend)
    # One server's centiles are told apart as several servers are; several servers' centiles by their dashes.
    dash = _by("label", labels, DASHES, legend) if not centiles else _by("centile", centiles, DASHES, legend)
    outcomes = list(dict.fromkeys(row["outcome"] for row in points))
    shape = _by("outcome", outcomes, [_SHAPES[name] for name in outcomes],
                {"title": None, "orient": "top", "symbolSize": 60, "symbolFillColor": _QUIET, **offset})  # fmt: skip
    told = _tips(("label", "", None), ("centile", "centile", None), ("level", axes[0], ",.5~g"),
                 ("value", axes[1], ",.4~g"), ("outcome", "outcome", None), ("step", "step", None))  # fmt: skip
    detail = {"field": "series", "type": "nominal"}
    line: Spec = {
        "data": {"values": list(lines)},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "detail": detail},
    }
    dots: Spec = {
        "data": {"values": list(points)},
        "mark": {"type": "point", "filled": True, "size": 42, "opacity": 0.9},
        "encoding": {"x": x, "y": y, "color": {**colour}, "shape": shape, "tooltip": told},
    }
    if interactive:
        line["params"] = [{"name": "shown", "select": {"type": "point", "fields": ["label"]}, "bind": "legend"}]
        seen = {"condition": {"param": "shown", "value": 1, "empty": True}, "value": 0.06}
        line["encoding"]["opacity"] = seen
        dots["encoding"]["opacity"] = seen
    marks = [layer for value, name in limits for layer in _limit(value, name, along="y")]
    if capacities:
        marks += _capacity_marks(capacities, x, {"color": colour} if centiles else {"color": {"value": _QUIET}})
    return _spec(f"{axes[1]} against {axes[0]}", [*marks, line, dots])


def _capacity_marks(capacities: Rows, x: Spec, colour: Spec) -> list[Spec]:
    """A line at each capacity, with its text above the plot."""
    found = {"values": list(capacities)}
    row = {"field": "row", "type": "quantitative", "scale": None, "axis": None}
    return [
        {"data": found, "mark": {"type": "rule", "strokeWidth": 1.5, "tooltip": None}, "encoding": {"x": x, **colour}},
        {"data": found, "mark": {**_TEXT, "align": "right", "dx": 3, "baseline": "bottom"},
         "encoding": {"x": x, "y": row, "text": {"field": "text"}, **colour}},
    ]  # fmt: skip


def distribution_chart(
    lines: Rows, labels: Sequence[str], limit: tuple[float, str], axis: str, *, interactive: bool
) -> Spec:
    """What share of a step's requests was answered within a time, stretched towards 100 %.

    Args:
        lines: label, value (positive), slower (the share that took longer, positive).
        labels: the steps, in the order of their levels.
        limit: of the p99, in the axis' unit, with its name.
        axis: what stands at the latencies.
        interactive: adds what only a screen can do.
    """
    values = [row["value"] for row in lines] + [limit[0]]
    least = min([0.001, *(row["slower"] for row in lines)])
    x = _axis("value", axis, _scale(values))
    ticks = [share for share in (0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001) if share >= least]
    y: Spec = {
        "field": "slower", "type": "quantitative", "title": "requests answered within that time",
        "scale": {"type": "log", "domain": [1.0, least], "nice": False},
        "axis": {"values": [1.0, *ticks], "labelExpr": "format((1 - datum.value) * 100, '.6~g') + ' %'"},
    }  # fmt: skip
    legend = _line_legend(interactive=interactive)
    colour, dash = _by("label", labels, (), legend), _by("label", labels, DASHES, legend)
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.8, "clip": True},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "order": {"field": "order"}},
    }
    layers = [line]
    if interactive:
        line["params"] = [{"name": "shown", "select": {"type": "point", "fields": ["label"]}, "bind": "legend"}]
        line["encoding"]["opacity"] = {"condition": {"param": "shown", "value": 1, "empty": True}, "value": 0.08}
        seen = {"condition": {"param": "hover", "value": 1, "empty": False}, "value": 0}
        select = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
        tips = _tips(("label", "step", None), ("value", axis, ",.4~g"), ("slower", "took longer", ".4~%"))
        layers.append(
            {
                "mark": {"type": "point", "filled": True, "size": 50},
                "params": [{"name": "hover", "select": select}],
                "encoding": {"x": x, "y": y, "color": colour, "opacity": seen, "tooltip": tips},
            }
        )
    return _spec(
        "requests answered within a time",
        [
            *_limit(limit[0], limit[1], along="x"),
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "strokeDash": [6, 3], "strokeWidth": 1.5, "color": _LIMIT_COLOUR},
                "encoding": {"y": {"datum": 0.01, "type": "quantitative"}},
            },
            *layers,
        ],
        data={"values": list(lines)},
    )


def _step_layers(steps: Rows) -> list[Spec]:
    """Warm-ups shaded, and each step's begin with its level."""
    data = {"values": list(steps)}
    x = {"field": "begin", "type": "quantitative"}
    return [
        {"data": data, "mark": {"type": "rect", "color": _QUIET, "opacity": 0.15, "tooltip": None},
         "encoding": {"x": x, "x2": {"field": "warm"}}},
        {"data": data, "mark": {"type": "rule", "color": _QUIET, "strokeWidth": 0.7, "tooltip": None},
         "encoding": {"x": x}},
        {"data": {"values": [row for row in steps if row["text"]]},
         "mark": {**_TEXT, "align": "left", "baseline": "bottom", "dx": 1, "dy": -2, "color": _QUIET, "fontSize": 10},
         "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "text"}}},
    ]  # fmt: skip


def _time_axis(end: float) -> Spec:
    return _axis("second", "seconds of load, step after step", {"domain": [0.0, end], "nice": False})


def latency_timeline(
    rows: Rows, steps: Rows, end: float, limit: tuple[float, str], axis: str, *, interactive: bool
) -> Spec:
    """Latencies second by second, step after step.

    Args:
        rows: second, label ("p50", "p99", "max"), value, series (a line is not drawn from step to step).
        steps: begin, warm (the end of its warm-up), text.
        end: of the axis.
        limit: of the p99, with its name.
        axis: what stands at the latencies.
        interactive: adds what only a screen can do.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    values = [row["value"] for row in rows] + [limit[0]]
    legend = _line_legend(interactive=interactive)
    x, y = _time_axis(end), _axis("value", axis, _scale(values, zero=True))
    encoding: Spec = {
        "x": x,
        "y": y,
        "color": _by("label", labels, (), legend),
        "strokeDash": _by("label", labels, DASHES, legend),
        "detail": {"field": "series", "type": "nominal"},
    }
    line: Spec = {
        "data": {"values": list(rows)},
        "mark": {"type": "line", "strokeWidth": 1.4, "point": {"size": 10, "filled": True}},
        "encoding": encoding,
    }
    if interactive:
        line["encoding"]["tooltip"] = _tips(("text", "step", None), ("second", "second", ",~g"), ("label", "", None),
                                            ("value", axis, ",.4~g"))  # fmt: skip
    return _spec("latency over time", [*_step_layers(steps), *_limit(limit[0], limit[1], along="y"), line])


def error_timeline(rows: Rows, steps: Rows, end: float, *, interactive: bool) -> Spec:
    """Failed requests second by second, by kind.

    Args:
        rows: second, until, kind, low, high (stacked counts per second), count.
        steps: as in `latency_timeline`.
        end: of the axis.
        interactive: adds what only a screen can do.
    """
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    x = _time_axis(end)
    y = _axis("low", "failed requests per second", {"zero": True, "nice": True}, tickMinStep=1)
    legend = {"title": None, "orient": "top", "labelLimit": _LONGEST_LABEL, "columns": 4 if interactive else 3}
    bars: Spec = {
        "data": {"values": list(rows)},
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "x2": {"field": "until"},
            "y": y,
            "y2": {"field": "high"},
            "color": _by("kind", kinds, PART_COLOURS, legend),
            "tooltip": _tips(("text", "step", None), ("second", "second", ",~g"), ("kind", "failure", None),
                             ("count", "failed", ",~g")),
        },
    }  # fmt: skip
    return _spec("failed requests over time", [*_step_layers(steps), bars])


def capacity_chart(rows: Rows, labels: Sequence[str], targets: Sequence[str], axis: str) -> Spec:
    """Every endpoint's capacity with its interval, server by server.

    Args:
        rows: label (of the endpoint), target, capacity, low, high, text, required.
        labels: the endpoints in their order.
        targets: the servers in their order.
        axis: what stands at the capacities.
    """
    figures = [row[name] for row in rows for name in ("capacity", "low", "high", "required") if row.get(name)]
    x = _axis("capacity", axis, _scale([value for value in figures if value > 0.0], zero=True))
    y = {"field": "label", "type": "nominal", "sort": list(labels), "title": None,
         "scale": {"domain": list(labels)}, "axis": {"labelLimit": 190, "grid": True}}  # fmt: skip
    legend = {"title": None, "orient": "top", "symbolSize": 80} if len(targets) > 1 else None
    look = {
        "color": _by("target", targets, (), legend),
        "yOffset": {"field": "target", "type": "nominal", "scale": {"domain": list(targets)}},
    }
    shape = {"shape": _by("target", targets, _TARGET_SHAPES, legend)}
    told = _tips(("label", "endpoint", None), ("target", "server", None), ("text", "capacity", None),
                 ("between", "interval", None))  # fmt: skip
    drawn = [row for row in rows if row.get("capacity")]
    spans = [row for row in rows if row.get("low") and row.get("high")]
    asked = [row for row in rows if row.get("required")]
    layers: list[Spec] = [
        {"data": {"values": spans}, "mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, **look}},
        {"data": {"values": drawn}, "mark": {"type": "point", "filled": True, "size": 65, "opacity": 1},
         "encoding": {"y": y, "x": x, **look, **shape, "tooltip": told}},
        {"data": {"values": drawn}, "mark": {**_TEXT, "dy": -11},
         "encoding": {"y": y, "x": x, **look, "text": {"field": "text"}}},
    ]  # fmt: skip
    if asked:
        layers.append(
            {"data": {"values": asked},
             "mark": {"type": "tick", "thickness": 2, "size": 16, "color": _LIMIT_COLOUR, "tooltip": None},
             "encoding": {"y": y, "x": {**x, "field": "required"}}}
        )  # fmt: skip
    return _spec("capacities", layers)
