"""Charts: one Vega-Lite specification per kind, the same for the browser and for paper.

A specification refers to a data set by name. The HTML report fills it from the embedded comparison, the PDF from
``chart_points``; so the comparison's figures are stored once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.core import units
from chainmark.core.comparison import ChartData, ChartKind, Comparison, Line, Scale
from chainmark.report.vega import Spec, svg_of

DATA_NAME = "points"
# Okabe and Ito's blue and vermilion: told apart with every kind of colour blindness, and dark enough on white.
SIDE_COLOURS = ("#0072b2", "#d55e00")
SIDE_COLOURS_ON_DARK = ("#56b4e9", "#e69f00")
OTHER_COLOURS = ("#009e73", "#cc79a7", "#888888")  # of lines that belong to no side
_DASHES = ([5, 3], [1, 0], [2, 2], [8, 2, 2, 2])
_SHAPES = ("circle", "triangle-up", "square", "diamond")
_LONGEST_LABEL = 300  # pixels, in a legend
_WIDE_RATIO = 100.0  # more than two decades do not fit a linear axis

# Paper has no zoom: what cannot be told apart at 8 cm is not drawn.
_PRINT_POINTS = {True: 200, False: 80}  # pooled lines; lines of single runs
_DOT_LOOKS = (
    (300, 40.0, 0.8),
    (2_000, 14.0, 0.6),
    (20_000, 9.0, 0.3),
    (math.inf, 6.0, 0.15),
)  # up to so many dots: size, opacity
_PRINT_DOTS = 1500  # of a whole chart


@dataclass(frozen=True)
class ChartDrawing:
    """A specification and what its points must be multiplied by to be in the axes' units."""

    spec: Spec
    x_factor: float
    y_factor: float


@dataclass(frozen=True)
class ChartContext:
    """What must be known of a chart besides its points.

    Attributes:
        unit: of the metric's values.
        sides: by a line's side, the label under which it stands; the first one has the first colour.
        relative: whether the metric's changes are ratios.
        margin: half the height of the band of changes that do not matter, as the chart's values are.
    """

    unit: str
    sides: Mapping[str, str]
    relative: bool = True
    margin: float = 0.0


def chart_context(chart: ChartData, comparison: Comparison) -> ChartContext:
    """What a comparison says of one of its charts."""
    metric = next(metric for metric in comparison.catalogue.metrics if metric.id == chart.metric_id)
    own = [judgement for judgement in comparison.judgements if judgement.metric_id == metric.id]
    relative = own[0].scale is Scale.RELATIVE if own else True
    # The widest effective margin among the metric's judgements.
    judged = [judgement.margin_high for judgement in own if judgement.margin_high]
    margin = max(judged) if judged else metric.margin if relative else metric.floor
    sides = {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label}
    return ChartContext(metric.unit, sides, relative, margin)


def chart_drawing(chart: ChartData, comparison: Comparison, *, interactive: bool) -> ChartDrawing:
    """The specification of one chart of a comparison, which gives the sides' labels, the unit and the margin."""
    return drawing_of(chart, chart_context(chart, comparison), interactive=interactive)


def drawing_of(chart: ChartData, context: ChartContext, *, interactive: bool) -> ChartDrawing:
    """The specification of one chart.

    Args:
        chart: what to draw.
        context: the sides' labels, the metric's unit and the margin.
        interactive: adds zoom, the legend's toggles and tooltips; the drawing itself is the same.
    """
    unit = context.unit
    horizontal = chart.kind is ChartKind.CDF
    values = [value for line in chart.lines for value in (line.x if horizontal else line.y)]
    relative = chart.kind is ChartKind.SHIFT and context.relative
    shown = units.DisplayUnit("%") if relative else units.display_unit(unit, values)
    x_label, y_label = chart.x_label, chart.y_label
    if horizontal:
        x_label = _in_unit(x_label, unit, shown.symbol)
    else:
        y_label = _in_unit(y_label, unit, shown.symbol)
    scale = _value_scale([scaled for value in values if (scaled := shown.of(value)) is not None])
    axes = _Axes(
        chart, context, labels=(x_label, y_label), factor=shown.factor, value_scale=scale, interactive=interactive
    )
    layers = {
        ChartKind.CDF: axes.cdf,
        ChartKind.SHIFT: axes.shift,
        ChartKind.SERIES: axes.series,
        ChartKind.SCATTER: axes.scatter,
    }[chart.kind]()
    if interactive:
        layers = axes.interactions(layers)
    spec: Spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": f"{chart.title}: {x_label} against {y_label}",
        "data": {"name": DATA_NAME},
        "layer": layers,
    }
    return ChartDrawing(spec, shown.factor if horizontal else 1.0, 1.0 if horizontal else shown.factor)


def _in_unit(label: str, unit: str, symbol: str) -> str:
    """An axis' label with the unit it is drawn in."""
    suffix = f", {unit}"
    if not unit or not label.endswith(suffix):
        return label
    return f"{label.removesuffix(suffix)}, {symbol}" if symbol else label.removesuffix(suffix)


def _value_scale(values: Sequence[float]) -> Spec:
    """The scale of the axis that carries the metric: logarithmic where wide, with some room where flat."""
    if not values:
        return {"zero": False}
    low, high = min(values), max(values)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        return {"zero": False, "domain": [low - room, high + room]}
    if low > 0.0 and high / low > _WIDE_RATIO:
        return {"type": "log"}
    return {"zero": False}


def line_label(line: Line, context: ChartContext) -> str:
    """The name under which a line stands in the legend: its side's label, or its own if it belongs to both."""
    return context.sides.get(line.side, line.label)


class _Axes:
    """Builds the layers of one chart."""

    def __init__(
        self,
        chart: ChartData,
        context: ChartContext,
        *,
        labels: tuple[str, str],
        factor: float,
        value_scale: Spec,
        interactive: bool,
    ) -> None:
        self.chart = chart
        self.context = context
        self.x_label, self.y_label = labels
        self.factor = factor
        self.value_scale = value_scale
        self.interactive = interactive
        self.labels = self._labels()

    def _labels(self) -> list[str]:
        """Baseline first, so that it has the first colour even where only the candidate has a line."""
        found = [line_label(line, self.context) for line in self.chart.lines]
        sided = any(line.side in self.context.sides for line in self.chart.lines)
        return list(dict.fromkeys([*(self.context.sides.values() if sided else []), *found]))

    def _side(self, channel: str) -> Spec:
        scale: Spec = {"domain": self.labels}
        cycle = len(self.labels)
        if channel == "strokeDash":
            scale["range"] = [_DASHES[index % len(_DASHES)] for index in range(cycle)]
        elif channel == "shape":
            scale["range"] = [_SHAPES[index % len(_SHAPES)] for index in range(cycle)]
        legend: Spec | None = None
        if len(self.labels) > 1:
            legend = {"title": None, "orient": "top", "symbolOpacity": 1, "labelLimit": _LONGEST_LABEL}
            if self.chart.kind is ChartKind.SCATTER:
                legend |= {"symbolSize": 60}
            else:
                legend |= {"symbolType": "stroke", "symbolFillColor": "transparent", "symbolStrokeWidth": 2}
        return {"field": "side", "type": "nominal", "scale": scale, "legend": legend}

    def _x(self, scale: Spec | None = None, **axis: Any) -> Spec:
        return {
            "field": "x",
            "type": "quantitative",
            "title": self.x_label,
            "scale": scale or {"zero": False, "nice": False},
            "axis": {"grid": True, **axis},
        }

    def _y(self, scale: Spec | None = None, **axis: Any) -> Spec:
        return {
            "field": "y",
            "type": "quantitative",
            "title": self.y_label,
            "scale": scale or {"zero": False},
            "axis": {"grid": True, **axis},
        }

    def _fade(self, opacity: float) -> Any:
        if not self.interactive:
            return {"value": opacity}
        return {"condition": {"param": "side", "value": opacity, "empty": True}, "value": 0.02}

    def cdf(self) -> list[Spec]:
        """Pooled curves thick with their band, single runs thin behind them."""
        x = self._x({**self.value_scale, "nice": False})
        y = self._y({"domain": [0, 1]}, format=".0%")
        colour, dash = self._side("color"), self._side("strokeDash")
        return [
            {
                "mark": {"type": "area", "orient": "horizontal", "clip": True},
                "transform": [{"filter": "datum.pooled && isValid(datum.low)"}],
                "encoding": {
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                    "y": y,
                    "color": colour,
                    "opacity": self._fade(0.18),
                },
            },
            *self._lines(x, y, colour, dash, order="y"),
        ]

    def _lines(self, x: Spec, y: Spec, colour: Spec, dash: Spec, order: str) -> list[Spec]:
        common = {"x": x, "y": y, "color": colour, "detail": {"field": "run"}, "order": {"field": order}}
        has_pooled = any(line.run_id is None for line in self.chart.lines)
        thin = 0.4 if has_pooled else 0.85
        width = 0.8 if has_pooled else 1.2
        # A dash on many thin lines is noise; where only single runs are drawn, it is what tells the sides apart.
        single = common if has_pooled else {**common, "strokeDash": dash}
        layers: list[Spec] = [
            {
                "mark": {"type": "line", "strokeWidth": width, "clip": True},
                "transform": [{"filter": "!datum.pooled"}],
                "encoding": {**single, "opacity": self._fade(thin)},
            }
        ]
        if has_pooled:
            layers.append(
                {
                    "mark": {"type": "line", "strokeWidth": 2, "clip": True},
                    "transform": [{"filter": "datum.pooled"}],
                    "encoding": {**common, "strokeDash": dash, "opacity": self._fade(1.0)},
                }
            )
        return layers

    def shift(self) -> list[Spec]:
        """How each quantile moved, against no change and the band in which a change does not matter."""
        margin = self.context.margin * self.factor
        low, high = self._shift_domain(margin)
        x = self._x({"domain": [0, 1]}, labelExpr="'p' + format(datum.value * 100, '~g')", tickCount=6)
        ticks = "+.0%" if self.context.relative else "+,.12~r"
        y = self._y({"domain": [low, high], "nice": False}, format=ticks, tickCount=6)
        colour = self._side("color")
        return [
            {
                "data": {"values": [{"band_low": -margin, "band_high": margin}]},
                "mark": {"type": "rect", "color": "#009e73", "opacity": 0.12, "clip": True},
                "encoding": {"y": {**y, "field": "band_low"}, "y2": {"field": "band_high"}},
            },
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "strokeWidth": 1, "color": "#888888"},
                "encoding": {"y": {**y, "field": "zero"}},
            },
            {
                "mark": {"type": "area", "clip": True},
                "transform": [{"filter": "isValid(datum.low)"}],
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "low"},
                    "y2": {"field": "high"},
                    "color": colour,
                    "opacity": self._fade(0.25),
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 2, "clip": True},
                "encoding": {"x": x, "y": y, "color": colour, "opacity": self._fade(1.0)},
            },
        ]

    def _shift_domain(self, margin: float) -> tuple[float, float]:
        """Room for the band and for every point; intervals of wild tails may leave the frame."""
        points = [value * self.factor for line in self.chart.lines for value in line.y if math.isfinite(value)]
        reach = max([1.5 * margin, *(1.2 * abs(value) for value in points)])
        reach = reach or 1.0
        return -reach, reach

    def series(self) -> list[Spec]:
        """One line a run, with its range over what was averaged."""
        x, y = self._x(), self._y(self.value_scale)
        colour = self._side("color")
        band: Spec = {
            "mark": {"type": "area", "clip": True},
            "transform": [{"filter": "isValid(datum.low)"}],
            "encoding": {
                "x": x,
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "color": colour,
                "detail": {"field": "run"},
                "opacity": self._fade(0.1),
            },
        }
        has_band = any(line.low for line in self.chart.lines)
        lines = self._lines(x, y, colour, self._side("strokeDash"), order="x")
        return [band, *lines] if has_band else lines

    def scatter(self) -> list[Spec]:
        """One dot a sample; the more there are, the fainter: density shows, and no side covers the other."""
        dots = sum(len(line.x) for line in self.chart.lines if line.run_id is not None)
        size, opacity = next((look[1:] for look in _DOT_LOOKS if dots <= look[0]), _DOT_LOOKS[-1][1:])
        encoding = {
            "x": self._x(),
            "y": self._y(self.value_scale),
            "color": self._side("color"),
            "shape": self._side("shape"),
            "opacity": self._fade(opacity),
        }
        layer: Spec = {"mark": {"type": "point", "filled": True, "size": size, "clip": True}, "encoding": encoding}
        if all(line.run_id is not None for line in self.chart.lines):
            return [layer]
        level: Spec = {
            "mark": {"type": "line", "strokeWidth": 1.6, "clip": True},
            "transform": [{"filter": "datum.pooled"}],
            "encoding": {
                "x": encoding["x"],
                "y": encoding["y"],
                "color": self._side("color"),
                "detail": {"field": "run"},
                "strokeDash": {**self._side("strokeDash"), "legend": None},
                "opacity": self._fade(1.0),
            },
        }
        return [level, {**layer, "transform": [{"filter": "!datum.pooled"}]}]

    def _tooltip(self) -> str:
        """What the pointer is told of a point.

        Written out, because the nearest point's own row lies one level deeper than a dot's, and Vega-Lite 6.4 looks
        for names at one level and for figures at the other.
        """
        row = "(datum.datum || datum)"
        parts = [f"'side': {row}.side", f"'run': {row}.run"]
        parts += [f"{json.dumps(label)}: format({row}.{axis}, '.4~g')" for axis, label in self._axis_names()]
        if any(line.low for line in self.chart.lines):
            interval = f"format({row}.low, '.4~g') + ' … ' + format({row}.high, '.4~g')"
            parts.append(f"'band': isValid({row}.low) ? {interval} : 'none'")
        return "{" + ", ".join(parts) + "}"

    def _axis_names(self) -> list[tuple[str, str]]:
        return [("x", self.x_label or "x"), ("y", self.y_label or "y")]

    def interactions(self, layers: list[Spec]) -> list[Spec]:
        """Add what only a screen can do to the last layer, and a layer that names the nearest point."""
        last = dict(layers[-1])
        sides = {"name": "side", "select": {"type": "point", "fields": ["side"]}, "bind": "legend"}
        # Plain scrolling must scroll the page, so zooming asks for the key with which browsers zoom.
        zoom = {
            "name": "zoom",
            "select": {"type": "interval", "zoom": "wheel![event.ctrlKey || event.metaKey]"},
            "bind": "scales",
        }
        scatter = self.chart.kind is ChartKind.SCATTER
        tooltip = {"value": {"expr": self._tooltip()}}
        # A parameter may be declared once only, so it goes with a layer; the others see it by its name.
        last["params"] = [sides, zoom] if len(self.labels) > 1 else [{**sides, "bind": None}, zoom]
        if len(self.labels) == 1:
            last["params"] = [{"name": "side", "select": {"type": "point", "fields": ["side"], "on": "none"}}, zoom]
        if scatter:
            last["encoding"] = {**last["encoding"], "tooltip": tooltip}
            return [*layers[:-1], last]
        hover: Spec = {
            "mark": {"type": "point", "filled": True, "size": 45, "clip": True},
            "params": [
                {
                    "name": "hover",
                    "select": {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"},
                }
            ],
            "encoding": {
                "x": last["encoding"]["x"],
                "y": last["encoding"]["y"],
                "color": last["encoding"]["color"],
                "opacity": {"condition": {"param": "hover", "value": 1, "empty": False}, "value": 0},
                "tooltip": tooltip,
            },
        }
        return [*layers[:-1], last, hover]


def chart_points(chart: ChartData, context: ChartContext, drawing: ChartDrawing) -> list[dict[str, object]]:
    """The rows of the data set ``points``. The HTML report does the same in its script."""
    points: list[dict[str, object]] = []
    # The dashed baseline goes over the solid candidate, so that both are seen where they coincide.
    for line in sorted(chart.lines, key=lambda line: line.side != "candidate"):
        side = line_label(line, context)
        low, high = line.low or [], line.high or []
        factor = drawing.x_factor if chart.kind is ChartKind.CDF else drawing.y_factor
        for index, (x, y) in enumerate(zip(line.x, line.y, strict=False)):
            point: dict[str, object] = {
                "x": x * drawing.x_factor,
                "y": y * drawing.y_factor,
                "side": side,
                "run": line.run_id or "all runs",
                "pooled": line.run_id is None,
            }
            if index < len(low) and index < len(high):
                point |= {"low": low[index] * factor, "high": high[index] * factor}
            points.append(point)
    return points


def chart_svg(chart: ChartData, comparison: Comparison) -> tuple[str, str]:
    """One chart as SVG for paper, thinned to what paper can show.

    Returns:
        The SVG, and a sentence on what was thinned ("" if nothing was).
    """
    spec, note = paper_spec(chart, chart_context(chart, comparison))
    return svg_of({**spec, "width": 330, "height": 185}, [*SIDE_COLOURS, "#009e73", "#cc79a7", "#555555"]), note


def screen_spec(chart: ChartData, context: ChartContext) -> Spec:
    """One chart with its points in it, for a screen."""
    drawing = drawing_of(chart, context, interactive=True)
    return drawing.spec | {"datasets": {DATA_NAME: chart_points(chart, context, drawing)}}


def paper_spec(chart: ChartData, context: ChartContext) -> tuple[Spec, str]:
    """The same for paper, thinned to what that can show, and a sentence on what was thinned ("" if nothing was)."""
    thinned, note = _for_print(chart)
    drawing = drawing_of(thinned, context, interactive=False)
    return drawing.spec | {"datasets": {DATA_NAME: chart_points(thinned, context, drawing)}}, note


def _for_print(chart: ChartData) -> tuple[ChartData, str]:
    lines, thinned = [], False
    for line in chart.lines:
        most = (
            _PRINT_DOTS // len(chart.lines) if chart.kind is ChartKind.SCATTER else _PRINT_POINTS[line.run_id is None]
        )
        keep = _extremes(line.y, most) if chart.kind is ChartKind.SERIES else _spread(len(line.x), most)
        if len(keep) < len(line.x):
            thinned = True
            line = _picked(line, keep)  # noqa: PLW2901 - the thinned line takes the place of the whole one
        lines.append(line)
    dots = thinned and chart.kind is ChartKind.SCATTER
    return chart.model_copy(update={"lines": lines}), "thinned evenly for paper" if dots else ""


def _spread(size: int, most: int) -> list[int]:
    """Even indices, and all of the last ten: a distribution's tail is where its points are few and matter."""
    if size <= most:
        return list(range(size))
    tail = 10
    body = size - tail
    step = body / (most - tail)
    return sorted({*(int(index * step) for index in range(most - tail)), *range(body, size)})


def _extremes(values: Sequence[float], most: int) -> list[int]:
    """The indices of the least and greatest value of even stretches: thinning must not hide a peak."""
    size = len(values)
    if size <= most:
        return list(range(size))
    buckets = most // 2
    keep = {0, size - 1}
    for bucket in range(buckets):
        stretch = range(bucket * size // buckets, (bucket + 1) * size // buckets)
        keep |= {min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}
    return sorted(keep)


def _picked(line: Line, keep: Sequence[int]) -> Line:
    def pick(values: list[float] | None) -> list[float] | None:
        return None if values is None else [values[index] for index in keep if index < len(values)]

    return line.model_copy(
        update={"x": pick(line.x), "y": pick(line.y), "low": pick(line.low), "high": pick(line.high)}
    )
