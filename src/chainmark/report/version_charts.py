"""Charts of several versions in one plot. Colours and dashes follow the versions: each is told apart without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainmark.report.model_charts import DASHES
from chainmark.report.vega import Spec

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LONGEST_LABEL = 230


@dataclass(frozen=True)
class VersionLine:
    """One version's distribution: ``fractions[i]`` of the samples are at most ``values[i]``.

    ``low`` and ``high`` are a band around the values, where there is one.
    """

    label: str
    values: list[float]
    fractions: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Axes:
    """How distributions are drawn.

    Attributes:
        value, fraction: what stands at the axes.
        title: above the plot.
        values_upwards: the values on the vertical axis instead of the horizontal one.
        logarithmic: the scale of the values; only what is positive can be drawn then.
        points: marks at every point of a line.
        percent: fractions as percentages.
    """

    value: str
    fraction: str
    title: str = ""
    values_upwards: bool = False
    logarithmic: bool = False
    points: bool = False
    percent: bool = False


def distribution_chart(lines: Sequence[VersionLine], axes: Axes, labels: Sequence[str], *, interactive: bool) -> Spec:
    """The distributions of all versions.

    Args:
        lines: one a version that has samples.
        axes: how they are drawn.
        labels: of all versions, so that each keeps its colour where another one has no samples.
        interactive: adds what only a screen can do.
    """
    points = [point for line in lines for point in _points(line, axes)]
    along = "y" if axes.values_upwards else "x"
    across = "x" if axes.values_upwards else "y"
    scale: Spec = {"type": "log"} if axes.logarithmic else {"zero": False}
    value = {"field": "value", "type": "quantitative", "title": axes.value, "scale": scale | {"nice": False}}
    fraction: Spec = {"field": "fraction", "type": "quantitative", "title": axes.fraction, "scale": {"domain": [0, 1]}}
    if axes.percent:
        fraction["axis"] = {"format": ".0%"}
    legend = _legend(interactive=interactive) if len(labels) > 1 else None
    colour, dash = _by(labels, (), legend), _by(labels, DASHES, legend)
    mark: Spec = {"type": "line", "strokeWidth": 1.6}
    line: Spec = {
        "mark": mark,
        "encoding": {
            along: value,
            across: fraction,
            "color": colour,
            "strokeDash": dash,
            "order": {"field": "fraction"},
        },
    }
    layers: list[Spec] = []
    if any(one.low for one in lines):
        ends = {along: {**value, "field": "low"}, f"{along}2": {"field": "high"}}
        layers.append(
            {
                "mark": {
                    "type": "area",
                    "orient": "vertical" if axes.values_upwards else "horizontal",
                    "opacity": 0.15,
                },
                "transform": [{"filter": "isValid(datum.low)"}],
                "encoding": {**ends, across: fraction, "color": colour},
            }
        )
    if interactive:
        line["params"] = [{"name": "shown", "select": {"type": "point", "fields": ["label"]}, "bind": "legend"}]
        line["encoding"]["opacity"] = {"condition": {"param": "shown", "value": 1, "empty": True}, "value": 0.08}
    layers.append(line)
    if axes.points:
        layers.append(_marks(line["encoding"]))
    if interactive:
        layers.append(_pointed_at(line["encoding"], axes))
    spec: Spec = {
        "$schema": _SCHEMA,
        "description": f"{axes.title or axes.value}: distributions of {', '.join(labels)}",
        "data": {"values": points},
        "layer": layers,
    }
    if axes.title:
        spec["title"] = {"text": axes.title, "anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
    return spec


def hidden_points(line: VersionLine, axes: Axes) -> int:
    """How many points of a line cannot be drawn: on a logarithmic scale, those that are not positive."""
    return sum(value <= 0.0 for value in line.values) if axes.logarithmic else 0


def _points(line: VersionLine, axes: Axes) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for index, (value, fraction) in enumerate(zip(line.values, line.fractions, strict=True)):
        if axes.logarithmic and value <= 0.0:
            continue
        point: dict[str, Any] = {"label": line.label, "value": value, "fraction": fraction}
        if line.low and line.high:
            point |= {"low": line.low[index], "high": line.high[index]}
        points.append(point)
    return points


def _legend(*, interactive: bool) -> Spec:
    return {
        "title": None,
        "orient": "top",
        "symbolType": "stroke",
        "symbolStrokeWidth": 2,
        "symbolFillColor": "transparent",
        "symbolSize": 400,
        "symbolOpacity": 1,
        "labelLimit": _LONGEST_LABEL,
        "columns": 4 if interactive else 3,
    }


def _by(labels: Sequence[str], cycle: Sequence[Any], legend: Spec | None) -> Spec:
    scale: Spec = {"domain": list(labels)}
    if cycle:
        scale["range"] = [cycle[index % len(cycle)] for index in range(len(labels))]
    return {"field": "label", "type": "nominal", "scale": scale, "legend": legend}


def _marks(encoding: Spec) -> Spec:
    """A dot at every point. Not a shape a version: its legend would take the place of the lines' own."""
    kept = {name: channel for name, channel in encoding.items() if name not in {"strokeDash", "order"}}
    return {"mark": {"type": "point", "filled": True, "size": 18}, "encoding": kept}


def _pointed_at(encoding: Spec, axes: Axes) -> Spec:
    """The point nearest to the pointer, and what it says."""
    tips = [
        {"field": "label", "type": "nominal", "title": "version"},
        {"field": "fraction", "type": "quantitative", "title": "fraction", "format": ".4~g"},
        {"field": "value", "type": "quantitative", "title": axes.value or "value", "format": ".5~g"},
    ]
    seen = {"condition": {"param": "hover", "value": 1, "empty": False}, "value": 0}
    select = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
    kept = {name: channel for name, channel in encoding.items() if name in {"x", "y", "color"}}
    return {
        "mark": {"type": "point", "filled": True, "size": 55},
        "params": [{"name": "hover", "select": select}],
        "encoding": {**kept, "opacity": seen, "tooltip": tips},
    }
