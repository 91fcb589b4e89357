"""Charts of a saturation test: processed against offered, the share processed, latency against throughput.

Colours are versions; dashes and shapes are connections, so that each line can be told without colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainmark.report.model_charts import DASHES
from chainmark.report.vega import Spec

Rows = Sequence[dict[str, Any]]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_QUIET = "#888888"
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_TEXT = {"type": "text", "fontSize": 11, "tooltip": None, "color": _QUIET}


def _scale(values: Sequence[float]) -> Spec:
    if values and min(values) > 0.0 and max(values) / min(values) > _WIDE_RATIO:
        return {"type": "log", "nice": False, "padding": 12}
    return {"zero": True, "nice": True}


def _ticks(values: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, … between the least and the most."""
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return [tick for tick in found if low <= tick <= high]


def _axis(field: str, title: str, values: Sequence[float]) -> Spec:
    scale = _scale(values)
    look: Spec = {"labelOverlap": "greedy", "labelExpr": "format(datum.value, ',.6~g')"}
    if scale.get("type") == "log":
        look["values"] = _ticks(values)
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": look}


def _looks(versions: Sequence[str], connections: Sequence[str]) -> tuple[Spec, Spec, Spec]:
    """Colour, dash and shape."""
    stroke = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400, "symbolFillColor": "transparent"}
    legend: Spec = {"title": None, "orient": "top", "labelLimit": 260, "columns": 3, **stroke}
    colour = {"field": "version", "type": "nominal", "scale": {"domain": list(versions)}, "legend": legend}
    # One legend for both: what stands in one place of the chart must stand in one of the legend.
    shapes: Spec = {"title": None, "orient": "top", "symbolSize": 70, "symbolFillColor": _QUIET, "symbolStrokeWidth": 0}
    beside = shapes if len(connections) > 1 else None
    dash = {
        "field": "connections", "type": "nominal", "legend": beside,
        "scale": {"domain": list(connections), "range": [DASHES[i % len(DASHES)] for i in range(len(connections))]},
    }  # fmt: skip
    shape = {
        "field": "connections", "type": "nominal",
        "scale": {"domain": list(connections), "range": [_SHAPES[i % len(_SHAPES)] for i in range(len(connections))]},
        "legend": beside,
    }  # fmt: skip
    return colour, dash, shape


def _tips(*pairs: tuple[str, str, str | None]) -> list[Spec]:
    return [
        {"field": field, "title": title, **({"type": "quantitative", "format": form} if form else {"type": "nominal"})}
        for field, title, form in pairs
    ]


def _series(rows: Rows, x: Spec, y: Spec, looks: tuple[Spec, Spec, Spec], tips: list[Spec]) -> list[Spec]:
    """Lines, dots and error bars. Rows: version, connections, series, order, x, y and maybe low, high, left, right."""
    colour, dash, shape = looks
    detail = {"field": "series", "type": "nominal"}
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "detail": detail,
                     "order": {"field": "order", "type": "quantitative"}},
    }  # fmt: skip
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.95},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tips},
    }
    layers: list[Spec] = []
    upright = [row for row in rows if "low" in row]
    if upright:
        layers.append(
            {"data": {"values": upright}, "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.8, "tooltip": None},
             "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}}
        )  # fmt: skip
    level = [row for row in rows if "left" in row]
    if level:
        layers.append(
            {"data": {"values": level}, "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.8, "tooltip": None},
             "encoding": {"y": y, "x": {**x, "field": "left"}, "x2": {"field": "right"}, "color": colour}}
        )  # fmt: skip
    return [*layers, line, dots]


def _spec(description: str, rows: Rows, layers: Sequence[Spec]) -> Spec:
    return {"$schema": _SCHEMA, "description": description, "data": {"values": list(rows)}, "layer": list(layers)}


def _values(rows: Rows, *fields: str) -> list[float]:
    return [row[field] for row in rows for field in fields if field in row]


def processed_chart(rows: Rows, versions: Sequence[str], connections: Sequence[str]) -> Spec:
    """Processed against offered, both per second of load, with the line on which everything is processed.

    Args:
        rows: version, connections, series, order, x (offered), y (processed), low, high, name, share.
        versions: labels in their order.
        connections: likewise.
    """
    loads = _values(rows, "x")
    ends = [min(loads), max(loads)]
    x = _axis("x", "offered, connections × rate, tx/s", loads)
    y = _axis("y", "processed per second of load, tx/s", [*_values(rows, "y", "low", "high"), *ends])
    expected: Spec = {
        "data": {"values": [{"x": end, "y": end} for end in ends]},
        "mark": {"type": "line", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": _QUIET, "tooltip": None},
        "encoding": {"x": x, "y": y},
    }
    named: Spec = {
        "data": {"values": [{"x": ends[1], "y": ends[1]}]},
        "mark": {**_TEXT, "align": "right", "dy": 26},
        "encoding": {"x": x, "y": y, "text": {"value": "expected"}},
    }
    tips = _tips(("version", "version", None), ("name", "load", None), ("x", "offered, tx/s", ",.5~g"),
                 ("y", "processed, tx/s", ",.4~g"), ("share", "of what was offered", ".1%"))  # fmt: skip
    layers = [expected, named, *_series(rows, x, y, _looks(versions, connections), tips)]
    return _spec("processed against offered", rows, layers)


def share_chart(rows: Rows, versions: Sequence[str], connections: Sequence[str], threshold: float) -> Spec:
    """The share that is processed against the load, with the threshold.

    Args:
        rows: version, connections, series, order, x (offered), y (share), low, high, name.
        versions: labels in their order.
        connections: likewise.
        threshold: from this share on a load is kept up.
    """
    x = _axis("x", "offered, connections × rate, tx/s", _values(rows, "x"))
    top = max(1.0, *_values(rows, "y", "high"))
    y: Spec = {"field": "y", "type": "quantitative", "title": "processed of what was offered",
               "scale": {"domain": [0.0, top], "nice": False}, "axis": {"format": "~%"}}  # fmt: skip
    limit: list[Spec] = [
        {"data": {"values": [{}]},
         "mark": {"type": "rule", "strokeDash": [6, 3], "strokeWidth": 1.5, "color": _QUIET, "tooltip": None},
         "encoding": {"y": {"datum": threshold, "type": "quantitative"}}},
        {"data": {"values": [{}]}, "mark": {**_TEXT, "align": "right", "dx": -4, "dy": 10},
         "encoding": {"y": {"datum": threshold, "type": "quantitative"}, "x": {"value": "width"},
                      "text": {"value": f"kept up from {100.0 * threshold:.4g} % on"}}},
    ]  # fmt: skip
    tips = _tips(("version", "version", None), ("name", "load", None), ("y", "processed", ".1%"))
    return _spec("share processed", rows, [*limit, *_series(rows, x, y, _looks(versions, connections), tips)])


def latency_chart(rows: Rows, versions: Sequence[str], connections: Sequence[str], knees: Rows) -> Spec:
    """Mean latency against throughput: beyond the knee latency rises, and throughput does not.

    Args:
        rows: version, connections, series, order, x (throughput), y (latency), low, high, left, right, name.
        versions: labels in their order.
        connections: likewise.
        knees: version, x, y, name.
    """
    x = _axis("x", "throughput, tx/s", _values(rows, "x"))
    y = _axis("y", "mean latency, s", _values(rows, "y"))
    tips = _tips(("version", "version", None), ("name", "load", None), ("x", "throughput, tx/s", ",.4~g"),
                 ("y", "mean latency, s", ",.3~g"))  # fmt: skip
    looks = _looks(versions, connections)
    layers = _series(rows, x, y, looks, tips)
    if knees:
        layers.append(
            {"data": {"values": list(knees)},
             "mark": {"type": "point", "shape": "circle", "size": 320, "filled": False, "strokeWidth": 2, "opacity": 1},
             "encoding": {"x": x, "y": y, "color": looks[0],
                          "tooltip": _tips(("version", "version", None), ("name", "knee", None))}}
        )  # fmt: skip
    return _spec("latency against throughput", rows, layers)
