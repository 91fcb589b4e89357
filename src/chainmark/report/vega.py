"""Charts as Vega-Lite: the only place that makes a specification, for a screen and for paper."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from chainmark.report.chart import (
    PALETTES,
    QUIET,
    Axis,
    Chart,
    Layer,
    LegendSeries,
    Limit,
    Numbers,
    Place,
    Tooltip,
    paper_charts,
    rows_of,
)
from chainmark.report.drawing import Drawing
from chainmark.report.drawn import svgs_of

Spec = dict[str, Any]
Along = Literal["x", "y"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_INK = "#333333"
_LONGEST_LABEL = 260  # pixels, in a legend
_LONGEST_NAME = 190  # at an axis
_ROOM_FOR_NAMES = {"left": 16, "top": 5, "right": 5, "bottom": 5}
_ROW_ABOVE_PX = 13  # of a text above the plot
_FADED = 0.06  # series that are not selected in the legend
_MOST_DECADES = 5
_LETTER_PX = 6.1  # of the text in a box, on average
# The ratio of a name's row on paper to one on a screen.
_PAPER_ROW = 0.75
_LEAST_ROW = 12
_LEAST_HEIGHT = 60
_SCREEN, _SCREEN_WIDE, _SCREEN_NARROW = 560, 1080, 290  # pixels, where the window cannot be measured

_TEXT: Spec = {"type": "text", "fontSize": 11, "tooltip": None}
_MARKS: dict[str, Spec] = {
    "line": {"type": "line", "strokeWidth": 2},
    "band": {"type": "area", "opacity": 0.18},
    "points": {"type": "point", "filled": True, "size": 55, "opacity": 0.95},
    "interval": {"type": "rule", "strokeWidth": 2},
    "bar": {"type": "bar", "height": {"band": 0.8}},
    "box": {"type": "rect"},
    "flame": {"type": "rect", "stroke": "white", "strokeWidth": 0.5, "clip": True},
    "text": _TEXT,
    "tick": {"type": "tick", "thickness": 2, "size": 16},
}  # fmt: skip
# Expressions, because a format without a number of digits is given one, and then reads "1e+2".
_AXES: dict[Numbers, Spec] = {
    "figures": {"labelExpr": "format(datum.value, ',.6~g')"},
    "percent": {"format": ".3~%"},
    "signed": {"format": "+,.12~r"},
    "signed percent": {"labelExpr": "datum.value ? format(datum.value, '+.3~%') : '0'"},
    "quantiles": {"labelExpr": "'p' + format(datum.value * 100, '~g')"},
    "answered": {"labelExpr": "format((1 - datum.value) * 100, '.6~g') + ' %'"},
}


def vega_lite(chart: Chart, *, interactive: bool) -> Spec:
    """The specification of a chart, which refers to its data sets by name.

    Args:
        chart: what to draw.
        interactive: adds what only a screen supports: the legend's toggles, zoom, tooltips.
    """
    return _Drawing(chart, interactive=interactive).spec()


def with_data(chart: Chart, *, interactive: bool) -> Spec:
    """The specification with its data."""
    used = {layer.data for layer in chart.layers}
    datasets = {name: rows_of(columns) for name, columns in chart.data.items() if name in used}
    return vega_lite(chart, interactive=interactive) | {"datasets": datasets}


def on_paper(chart: Chart, background: str = "transparent") -> tuple[list[str], str]:
    """The drawings for paper as SVG, and their note."""
    return all_on_paper([chart], background)[0]


def all_on_paper(charts: Iterable[Chart], background: str = "transparent") -> list[tuple[list[str], str]]:
    """The same for several charts."""
    pages = [paper_drawings(chart, background) for chart in charts]
    drawn = iter(svgs_of([drawing for drawings, _ in pages for drawing in drawings]))
    return [([next(drawn) for _ in drawings], note) for drawings, note in pages]


def paper_drawings(chart: Chart, background: str = "transparent") -> tuple[list[Drawing], str]:
    """The drawings of a chart on paper, each with its data, its size and its look; and the note below."""
    charts = paper_charts(chart)
    look = print_config(PALETTES[chart.palette].light)
    drawings = []
    for page in charts:
        row = max(_LEAST_ROW, round(_PAPER_ROW * page.row))
        size = {"width": page.paper[0], "height": _height(page, row, page.paper[1])}
        drawings.append((with_data(page, interactive=False) | size | {"background": background}, look))
    return drawings, charts[0].note


def screen_drawings(chart: Chart, *, dark: bool, narrow: bool = False) -> list[Drawing]:
    """The drawings of a chart for a page without a script: the content of paper with the look of a screen."""
    palette = PALETTES[chart.palette]
    look = screen_config(palette.dark if dark else palette.light, dark=dark)
    drawings = []
    for page in paper_charts(chart):
        width = _SCREEN_NARROW if narrow else _SCREEN_WIDE if chart.wide else _SCREEN
        size: Spec = {"width": width, "height": _height(page, page.row, page.height)}
        if page.y.names:  # a browser's letters may be wider than the measured ones
            size["padding"] = _ROOM_FOR_NAMES
        drawings.append((with_data(page, interactive=False) | size | {"background": "transparent"}, look))
    return drawings


def inline_drawing(chart: Chart) -> Drawing:
    """The drawing of a chart as a part of a page, whose `colour_variables` it uses: one for light and dark."""
    size: Spec = {"width": chart.width or (_SCREEN_WIDE if chart.wide else _SCREEN), "background": "transparent"}
    size["height"] = _height(chart, chart.row, chart.height)
    if chart.y.names:
        size["padding"] = _ROOM_FOR_NAMES
    elif chart.x.bare and chart.y.bare:
        size["padding"] = 0
    colours = [f"var(--{chart.palette}-{index})" for index in range(len(PALETTES[chart.palette].light))]
    return with_data(chart, interactive=False) | size, _screen_config(colours, "var(--ink)", "var(--line)")


def colour_variables() -> str:
    """The style with the colours of inline drawings."""

    def listed(look: Literal["light", "dark"]) -> str:
        colours = (
            f"--{name}-{index}: {colour};"
            for name, palette in PALETTES.items()
            for index, colour in enumerate(getattr(palette, look))
        )
        return f":root {{ {' '.join(colours)} }}"

    return f"{listed('light')}\n@media (prefers-color-scheme: dark) {{ {listed('dark')} }}\n"


def _height(chart: Chart, row: int, otherwise: int) -> int:
    return max(_LEAST_HEIGHT, row * len(chart.y.names)) if chart.y.names else otherwise


class _Drawing:
    """Builds one specification."""

    def __init__(self, chart: Chart, *, interactive: bool) -> None:
        self.chart = chart
        self.interactive = interactive
        self.palette = PALETTES[chart.palette]
        self.legends = {column: series for column, series in chart.series.items() if len(series.labels) > 1}
        drawn = [layer for layer in chart.layers if layer.mark in {"line", "points"}]
        coloured = [layer for layer in drawn if layer.colour in self.legends]
        # The parameters of the legend's toggles, and the layer that declares them: only one may.
        self.toggled = coloured[0].colour if interactive and coloured and not chart.y.names else ""
        holders = [layer for layer in drawn if layer.colour == self.toggled] if self.toggled else drawn
        self.holder = holders[-1] if holders else None

    def spec(self) -> Spec:
        """The complete specification."""
        chart = self.chart
        layers = [layer for limit in chart.limits for layer in self._limit(limit)]
        for layer in chart.layers:
            if layer.mark == "flame":
                layers += self._flame(layer)
                continue
            layers.append(self._layer(layer))
            if layer.nearest and self.interactive:
                layers.append(self._pointed_at(layer))
        spec: Spec = {
            "$schema": _SCHEMA,
            "description": f"{chart.title}: {chart.x.title} against {chart.y.title}",
            "height": _height(chart, chart.row, chart.height),
            "layer": layers,
        }
        if chart.caption:
            spec["title"] = {"text": chart.caption, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
        if chart.choice and self.interactive:
            options = list(dict.fromkeys(chart.column(chart.choice)))
            bind = {"input": "select", "options": options, "name": "show "}
            spec["params"] = [{"name": "choice", "value": options[0], "bind": bind}]
        return spec

    @cached_property
    def _ends(self) -> dict[Along, tuple[float, float] | None]:
        """The lowest and the highest value along each axis; None without any."""
        results: dict[Along, list[float]] = {"x": self.chart.values("x"), "y": self.chart.values("y")}
        return {along: (min(values), max(values)) if values else None for along, values in results.items()}

    # ---- positions --------------------------------------------------------------------------------------------------
    def _place(self, along: Along, place: Place) -> Spec:
        at: Spec = {"field": place} if isinstance(place, str) else {"datum": place}
        axis = self.chart.x if along == "x" else self.chart.y
        if axis.names:
            kind = {"type": "nominal", "sort": list(axis.names), "scale": {"domain": list(axis.names)}}
            upright = {"axis": {"grid": False, "labelAngle": 0}}
            level = {"axis": {"grid": True, "labelLimit": _LONGEST_NAME, "ticks": False, "labelOverlap": False}}
            return {**at, **kind, "title": axis.title or None, **(upright if along == "x" else level)}
        scale, ticks = self._scale(axis, along)
        if axis.bare:
            return {**at, "type": "quantitative", "title": None, "scale": scale, "axis": None}
        look: Spec = {"grid": True, "labelOverlap": "greedy", **_AXES[axis.numbers]}
        if ticks:
            look["values"] = ticks
        elif along == "y" or self.chart.y.names:
            look["tickCount"] = 6
        if axis.whole and not ticks:
            look["tickMinStep"] = 1
        return {**at, "type": "quantitative", "title": axis.title or None, "scale": scale, "axis": look}

    def _scale(self, axis: Axis, along: Along) -> tuple[Spec, list[float]]:
        """Logarithmic if wide, with its ticks; with some room if all values are equal."""
        rest: Spec = {"nice": axis.nice, **({"padding": axis.padding} if axis.padding else {})}
        values = self._ends[along] if axis.domain is None or axis.log_beyond is not None else None
        low, high = values or (0.0, 0.0)
        logarithmic = axis.log_beyond is not None and low > 0.0 and high / low > axis.log_beyond
        if axis.domain is not None:
            kind = {"type": "log"} if logarithmic else {}
            return {**kind, "domain": list(axis.domain), "nice": axis.nice}, list(axis.ticks)
        if logarithmic:
            return {"type": "log", **rest, "nice": False}, list(axis.ticks) or _ticks(low, high)
        if values and low == high and not axis.zero:
            room = abs(low) * 0.1 or 1.0
            return {"domain": [low - room, high + room], "zero": False, "nice": False}, list(axis.ticks)
        if axis.zero:
            return {"zero": True, "nice": axis.nice}, list(axis.ticks)
        return {"zero": False, **rest}, list(axis.ticks)

    # ---- layers -----------------------------------------------------------------------------------------------------
    def _layer(self, layer: Layer) -> Spec:
        mark = self._mark(layer)
        encoding = self._places(layer) | self._mark_style(layer, mark)
        if layer.detail:
            encoding["detail"] = {"field": layer.detail, "type": "nominal"}
        if layer.order:
            encoding["order"] = {"field": layer.order, "type": "quantitative"}
        if layer.mark == "text":
            encoding["text"] = {"value": layer.words} if layer.words else {"field": layer.text, "type": "nominal"}
        if layer.tips and self.interactive and not layer.nearest:
            encoding["tooltip"] = {"value": {"expr": _tooltip_expression(layer.tips)}}
        if layer.leads_to and self.interactive:
            encoding["href"] = {"field": layer.leads_to, "type": "nominal"}
            mark["cursor"] = "pointer"
        layer_spec: Spec = {"data": {"name": layer.data}, "mark": mark, "encoding": encoding}
        if transform := self._transform(layer):
            layer_spec["transform"] = transform
        if layer is self.holder and (params := self._params()):
            layer_spec["params"] = params
        return layer_spec

    def _places(self, layer: Layer) -> Spec:
        encoding: Spec = {}
        ends: tuple[tuple[Along, Place, Place], ...] = (("x", layer.x, layer.x2), ("y", layer.y, layer.y2))
        for along, place, end in ends:
            if place is not None:
                encoding[along] = self._place(along, place)
            if end is not None:
                encoding[f"{along}2"] = {"field" if isinstance(end, str) else "datum": end}
        if isinstance(layer.above, str):
            encoding["y"] = {"field": "above", "type": "quantitative", "scale": None, "axis": None}
        elif layer.above is not None:
            encoding["y"] = {"value": -2 - _ROW_ABOVE_PX * layer.above}
        if layer.offset:
            series = self.chart.series.get(layer.offset)
            scale = {"scale": {"domain": list(series.labels)}} if series else {"sort": None}
            channel = "yOffset" if self.chart.y.names else "xOffset"
            encoding[channel] = {"field": layer.offset, "type": "nominal", **scale}
        return encoding

    def _transform(self, layer: Layer) -> list[Spec]:
        specs: list[Spec] = []
        choice = self.chart.choice
        if choice and self.interactive and choice in self.chart.data[layer.data]:
            specs.append({"filter": f"datum[{json.dumps(choice)}] === choice"})
        if isinstance(layer.above, str):
            specs.append({"calculate": f"-2 - {_ROW_ABOVE_PX} * datum[{json.dumps(layer.above)}]", "as": "above"})
        return specs

    def _mark(self, layer: Layer) -> Spec:
        mark = dict(_MARKS[layer.mark])
        properties = {"size": layer.size, "strokeWidth": layer.width, "opacity": layer.opacity}
        mark |= {name: value for name, value in properties.items() if value is not None}
        if layer.mark == "bar" and layer.size is not None:
            mark["height"] = {"band": mark.pop("size")}
        if layer.mark == "band" and layer.x2 is not None:
            mark["orient"] = "horizontal"
        if layer.hollow:
            mark |= {"filled": False, "opacity": 1}
        if layer.dash:
            mark["strokeDash"] = list(layer.dash)
        if layer.mark == "text":
            mark |= {"align": layer.align, "dx": layer.nudge[0], "dy": layer.nudge[1]}
            if layer.above is not None:
                mark["baseline"] = "bottom"
            elif layer.size is not None:
                mark["fontSize"] = mark.pop("size")
        elif self.chart.zoom:
            mark["clip"] = True
        return mark

    def _mark_style(self, layer: Layer, mark: Spec) -> Spec:
        """Colour, dash or shape, and how it fades; properties common to all marks go into ``mark``."""
        looks: Spec = {}
        if layer.colour in self.chart.series:
            looks["color"] = self._by(layer.colour, "colour")
        elif layer.colour:
            mark["color"] = layer.colour
        if layer.ink:
            looks["color"] = {"field": layer.ink, "type": "nominal", "scale": None}
        if layer.style in self.chart.series:
            channel = "strokeDash" if layer.mark == "line" else "shape"
            looks[channel] = self._by(layer.style, channel)
        elif layer.style:
            mark["shape"] = layer.style
        if self.toggled and layer.colour == self.toggled:
            shown = mark.pop("opacity", 1)
            looks["opacity"] = {"condition": {"param": "shown", "value": shown, "empty": True}, "value": _FADED}
        return looks

    def _by(self, column: str, channel: str) -> Spec:
        series = self.chart.series[column]
        scale: Spec = {"domain": list(series.labels)}
        cycle: Sequence[Any] = {
            "colour": series.colours,
            "strokeDash": self.palette.dashes,
            "shape": series.shapes or self.palette.shapes,
        }[channel]
        if cycle:
            scale["range"] = [cycle[index % len(cycle)] for index in range(len(series.labels))]
        return {"field": column, "type": "nominal", "scale": scale, "legend": self._legend(column, series, channel)}

    def _legend(self, column: str, series: LegendSeries, channel: str) -> Spec | None:
        if column not in self.legends or (series.listed is not None and not series.listed):
            return None
        by_shape = any(layer.style == column and layer.mark == "points" for layer in self.chart.layers)
        if channel == "strokeDash" and by_shape and self._coloured(column):
            return None  # the shapes in their colours suffice
        legend: Spec = {
            "title": None, "orient": "top", "labelLimit": _LONGEST_LABEL, "columns": 4 if self.interactive else 3,
            "symbolOpacity": 1,
        }  # fmt: skip
        above = [row for layer in self.chart.layers if isinstance(layer.above, str)
                 for row in self.chart.column(layer.above, layer.data)]  # fmt: skip
        if above:
            legend["offset"] = 8 + _ROW_ABOVE_PX * (max(above) + 1)
        if series.listed is not None:
            legend["values"] = list(series.listed)
        marks = {layer.mark for layer in self.chart.layers if column in {layer.colour, layer.style}}
        if by_shape:
            fill = {} if self._coloured(column) else {"symbolFillColor": QUIET, "symbolStrokeWidth": 0}
            return {**legend, "symbolSize": 70, **fill}
        if "line" in marks:
            return {**legend, "symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400,
                    "symbolFillColor": "transparent"}  # fmt: skip
        return {**legend, "symbolType": "square" if marks & {"bar", "box"} else "circle", "symbolSize": 100}

    def _coloured(self, column: str) -> bool:
        return any(layer.colour == column for layer in self.chart.layers)

    # ---- calls on their callers -------------------------------------------------------------------------------------
    def _flame(self, layer: Layer) -> list[Spec]:
        """Boxes, and in each as much of its name as fits; selecting one shows it alone."""
        boxes, names = self._layer(layer), self._layer(replace(layer, mark="text", align="left", tips=()))
        boxes["mark"]["cursor"] = "pointer"
        room = f"(scale('x', datum[{json.dumps(layer.x2)}]) - max(0, scale('x', datum[{json.dumps(layer.x)}])) - 6)"
        name = f"datum[{json.dumps(layer.text)}]"
        cut = f"floor({room} / {_LETTER_PX})"
        names["mark"] |= {
            "clip": True,
            "color": _INK,
            "baseline": "middle",
            "text": {"expr": f"{cut} < 4 ? '' : truncate(replace({name}, /^.*[/]/, ''), {cut}, 'right', '…')"},
            "x": {"expr": f"max(0, scale('x', datum[{json.dumps(layer.x)}])) + 3"},
            "y": {"expr": f"scale('y', (datum[{json.dumps(layer.y)}] + datum[{json.dumps(layer.y2)}]) / 2)"},
        }
        names["encoding"] = {}
        if self.interactive:
            fields = [place for place in (layer.x, layer.x2) if isinstance(place, str)]
            select = {"type": "point", "fields": fields, "on": "click", "clear": "dblclick", "toggle": False}
            boxes["params"] = [{"name": "focus", "select": select}]
            low, high = min(self.chart.values("x"), default=0.0), max(self.chart.values("x"), default=1.0)
            ends = [f"focus[{json.dumps(name)}] ? focus[{json.dumps(name)}][0] : " for name in fields]
            scale = {"domainMin": {"expr": f"{ends[0]}{low}"}, "domainMax": {"expr": f"{ends[1]}{high}"}}
            boxes["encoding"]["x"]["scale"] = {"zero": False, "nice": False, **scale}
        return [boxes, names]

    # ---- interaction on a screen ------------------------------------------------------------------------------------
    def _params(self) -> list[Spec]:
        params: list[Spec] = []
        if self.toggled:
            select = {"type": "point", "fields": [self.toggled]}
            params.append({"name": "shown", "select": select, "bind": "legend"})
        if self.interactive and self.chart.zoom:
            # Plain scrolling must scroll the page, so zooming requires the key with which browsers zoom.
            zoom: Spec = {"type": "interval", "zoom": "wheel![event.ctrlKey || event.metaKey]"}
            if self.chart.y.names:
                zoom["encodings"] = ["x"]
            params.append({"name": "zoom", "select": zoom, "bind": "scales"})
        return params

    def _pointed_at(self, layer: Layer) -> Spec:
        """The point nearest to the pointer, and its tooltip."""
        select = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
        encoding = {"x": self._place("x", layer.x), "y": self._place("y", layer.y)}
        if layer.colour in self.chart.series:
            encoding["color"] = self._by(layer.colour, "colour")
        encoding["opacity"] = {"condition": {"param": "hover", "value": 1, "empty": False}, "value": 0}
        encoding["tooltip"] = {"value": {"expr": _tooltip_expression(layer.tips)}}
        mark = {"type": "point", "filled": True, "size": 50, **({"clip": True} if self.chart.zoom else {})}
        params = [{"name": "hover", "select": select}]
        return {"data": {"name": layer.data}, "mark": mark, "params": params, "encoding": encoding}

    # ---- limits -----------------------------------------------------------------------------------------------------
    def _limit(self, limit: Limit) -> list[Spec]:
        data: Spec = {"values": [{}]}
        at: Spec = {limit.along: {"datum": limit.value, "type": "quantitative"}}
        if (self.chart.x if limit.along == "x" else self.chart.y).bare:
            at[limit.along]["axis"] = None
        clip = {"aria": False, **({"clip": True} if self.chart.zoom else {})}
        if limit.until is not None:
            zone = {"type": "rect", "color": limit.colour, "opacity": 0.12, "tooltip": None, **clip}
            return [{"data": data, "mark": zone, "encoding": {**at, f"{limit.along}2": {"datum": limit.until}}}]
        mark: Spec = {
            "type": "rule",
            "strokeWidth": 1.5 if limit.dash else 1,
            "color": limit.colour,
            "tooltip": None,
            **clip,
        }
        if limit.dash:
            mark["strokeDash"] = list(limit.dash)
        layers: list[Spec] = [{"data": data, "mark": mark, "encoding": at}]
        if limit.name:
            layers.append({"data": data, **_name_of(limit, at)})
        return layers


def _name_of(limit: Limit, at: Spec) -> Spec:
    text = {"text": {"value": limit.name}}
    if limit.along == "x":
        mark = {**_TEXT, "color": limit.colour, "dx": -4, "dy": -8, "align": "right"}
        return {"mark": mark, "encoding": {**at, "y": {"value": "height"}, **text}}
    offset: Spec = {"dx": -4, "dy": 10, "align": "right"} if limit.at_end else {"dy": -6, "align": "left"}
    place = {"value": "width" if limit.at_end else 4}
    return {"mark": {**_TEXT, "color": limit.colour, **offset}, "encoding": {**at, "x": place, **text}}


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … or, for many decades, the decades alone."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= _MOST_DECADES else (1,)
    results = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in results if low <= tick <= high]


def _tooltip_expression(tips: Sequence[Tooltip]) -> str:
    """The tooltip as an expression.

    Written out, because the nearest point's own row lies one level deeper than a dot's, and Vega-Lite 6.4 looks
    for names at one level and for figures at the other.
    """
    return "{" + ", ".join(f"{json.dumps(tip.title)}: {_tip(tip)}" for tip in tips) + "}"


def _tip(tip: Tooltip) -> str:
    form = json.dumps(re.sub(r"g$", "~g", tip.figures))

    def value(column: str) -> str:
        field = f"(datum.datum || datum)[{json.dumps(column)}]"
        return f"format({field}, {form})" if tip.figures else field

    end = f" + ' … ' + {value(tip.until)}" if tip.until else ""
    return f"isValid((datum.datum || datum)[{json.dumps(tip.column)}]) ? {value(tip.column)}{end} : ''"


# ---- paper ----------------------------------------------------------------------------------------------------------
def print_config(colours: Sequence[str]) -> Spec:
    """The look on white paper."""
    font = "Libertinus Serif"
    return {
        "font": font,
        "background": "transparent",
        "range": {"category": list(colours)},
        "axis": {
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelColor": _INK,
            "titleColor": _INK,
            "gridColor": "#e4e4e4",
            "domainColor": "#999999",
            "tickColor": "#999999",
        },
        "legend": {"labelFontSize": 11, "labelColor": _INK, "symbolStrokeWidth": 2, "symbolSize": 200},
        "view": {"stroke": None},
    }


# ---- a screen without a script ---------------------------------------------------------------------------------------
def screen_config(colours: Sequence[str], *, dark: bool) -> Spec:
    """The look of a drawing on a page: the same as for charts that the page's script draws."""
    return _screen_config(colours, "#d5dade", "#333a41") if dark else _screen_config(colours, _INK, "#e4e7ea")


def _screen_config(colours: Sequence[str], ink: str, grid: str) -> Spec:
    axis_look = {"labelColor": ink, "titleColor": ink, "gridColor": grid, "titleFontSize": 12, "labelFontSize": 11}
    config = print_config(colours)
    axis = config["axis"] | axis_look | {"domainColor": "#888888", "tickColor": "#888888"}
    legend = config["legend"] | {"labelColor": ink, "labelFontSize": 12}
    return config | {"font": "system-ui, sans-serif", "axis": axis, "legend": legend, "text": {"color": ink}}
