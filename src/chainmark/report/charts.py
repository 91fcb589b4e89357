"""Charts of samples of two sides or many: distributions, their shifts, series over time, clouds of dots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import ChartData, ChartLine, Comparison, Scale
from chainmark.report.blocks import TERMINAL, Section
from chainmark.report.chart import (
    GOOD,
    QUIET,
    Axis,
    Chart,
    ColumnOrigin,
    Layer,
    LegendSeries,
    Limit,
    Thinning,
    Tooltip,
    columns_of,
)

_WIDE_RATIO = 100.0  # more than two decades do not fit a linear axis
# Paper has no zoom: details that are indistinguishable at 8 cm are omitted.
_PRINT_POINTS = {"pooled": 200, "single": 80}
_DOT_LOOKS = (
    (300, 40.0, 0.8),
    (2_000, 14.0, 0.6),
    (20_000, 9.0, 0.3),
    (math.inf, 6.0, 0.15),
)  # maximum number of dots: size, opacity
_PRINT_DOTS = 1500  # of a whole chart
_HALF_PAGE = (330, 185)
_BODY = 0.99  # fraction of a distribution beyond which its tail begins
_INSET_HEIGHT = 70  # pixels


@dataclass(frozen=True)
class ChartContext:
    """The context of a chart besides its points.

    Attributes:
        unit: of the metric's values.
        sides: by a line's side, its label; the first one has the first colour.
        relative: whether the metric's changes are ratios.
        margin: half the height of the band of irrelevant changes, in the chart's unit.
    """

    unit: str
    sides: Mapping[str, str]
    relative: bool = True
    margin: float = 0.0


def comparison_charts(comparison: Comparison, path: Sequence[str | int] = ()) -> list[Chart]:
    """All charts of a comparison, in its order.

    Args:
        comparison: with its charts.
        path: where it is in the page's document.
    """
    return [
        sample_chart(chart, chart_context(chart, comparison), (*path, "charts", index))
        for index, chart in enumerate(comparison.charts)
    ]


def summary_charts(comparison: Comparison, path: Sequence[str | int]) -> list[Chart]:
    """The charts of a comparison that is a part of a document, without those whose samples are all equal."""
    drawn = zip(comparison_charts(comparison, path), comparison.charts, strict=True)
    return [replace(chart, half=True) for chart, data in drawn if only_value(data) is None]


def metric_blocks(charts: Sequence[ChartData], labels: Sequence[str], catalogue: Catalogue) -> list[Chart]:
    """The charts of metrics as a part of any document, without those whose samples are all equal.

    Args:
        charts: without comparisons.
        labels: of their sides, in the order of the legend.
        catalogue: of the metrics.
    """
    units_of = {metric.id: metric.unit for metric in catalogue.metrics}
    sides = {label: label for label in labels}
    palette = "sides" if len(labels) == 2 else "lines"
    return [
        replace(sample_chart(chart, ChartContext(units_of[chart.metric_id], sides)), half=True, palette=palette)
        for chart in charts
        if only_value(chart) is None
    ]


def in_characters(charts: Sequence[Chart]) -> list[Section]:
    """The charts that a terminal can show, for a document whose section of charts is not for terminals."""
    return [Section("charts-in-characters", "Charts", [chart for chart in charts if chart.on_terminal], media=TERMINAL)]


def chart_context(chart: ChartData, comparison: Comparison) -> ChartContext:
    """The context of one of a comparison's charts."""
    metric = next(metric for metric in comparison.catalogue.metrics if metric.id == chart.metric_id)
    judgements = [judgement for judgement in comparison.judgements if judgement.metric_id == metric.id]
    relative = judgements[0].scale is Scale.RELATIVE if judgements else True
    # The widest effective margin among the metric's judgements.
    judged = [judgement.margin_high for judgement in judgements if judgement.margin_high]
    margin = max(judged) if judged else metric.margin if relative else metric.floor
    sides = {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label}
    return ChartContext(metric.unit, sides, relative, margin)


def sample_chart(data: ChartData, context: ChartContext, path: Sequence[str | int] | None = None) -> Chart:
    """One chart of samples, in the unit in which its values are most readable.

    Args:
        data: the chart's data.
        context: its context.
        path: where the data are in the page's document, if they are.
    """
    samples = _Samples(data, context)
    axes = {samples.look.values: samples.value_axis(), samples.other: samples.other_axis()}
    chart = Chart(
        id=data.id,
        title=data.title,
        x=axes["x"],
        y=axes["y"],
        layers=samples.layers(),
        data={name: samples.columns(name) for name in ("pooled", "single") if samples.lines[name]},
        series={"side": LegendSeries(samples.labels(), listed=samples.drawn_labels())},
        limits=samples.limits(),
        note=data.note,
        palette="sides",
        height=250,
        paper=_HALF_PAGE,
        zoom=True,
        thinning=samples.thinning(),
        origins={} if path is None else {name: samples.origins(name, path) for name in samples.lines},
        on_terminal=data.kind.is_for_terminals,
    )
    return _with_tail(chart, samples.bend()) if samples.look.has_tail else chart


def _with_tail(chart: Chart, bend: tuple[float, float, float] | None) -> Chart:
    """The axis cut at the highest p99 if the rest is mostly empty, and that rest in an inset chart."""
    if bend is None:
        return chart
    low, p99, top = bend
    room = 0.03 * (p99 - low)
    tail = replace(
        chart,
        id=f"{chart.id}-tail",
        title=f"{chart.title}, the highest 1 %",
        x=Axis("the highest 1 %", domain=(p99, top + 0.03 * (top - p99))),
        y=Axis("", numbers="percent", domain=(0.99, 1.0)),
        series={name: replace(series, listed=[]) for name, series in chart.series.items()},
        height=_INSET_HEIGHT,
        note="",
    )
    beyond = f"on a screen, the inset shows the highest 1 %, up to {units.tidy(units.rounded(top, 3))}"
    note = "; ".join(filter(None, [chart.note, beyond]))
    return replace(chart, x=replace(chart.x, domain=(low - room, p99 + room), log_beyond=None), note=note, inset=tail)


def with_tail_points(
    chart: Chart, data: ChartData, context: ChartContext, points: Sequence[tuple[str, float, str, str]]
) -> Chart:
    """The chart with a clickable mark for each sample of its tail that has details, on the pooled line."""
    lines = {context.sides.get(line.side, ""): line for line in data.lines if line.run_id is None}
    factor = _Samples(data, context).unit.factor
    rows = [
        {
            "x": value * factor,
            "y": float(np.interp(value, line.x, line.y)),
            "side": side,
            "what": description,
            "at": f"#{to}",
        }
        for side, value, description, to in points
        if (line := lines.get(side)) is not None
    ]
    if not rows:
        return chart
    marks = Layer("points", "tail", "x", "y", colour="side", leads_to="at", size=60, tips=[Tooltip("open", "what")])
    return replace(chart, layers=[*chart.layers, marks], data={**chart.data, "tail": columns_of(rows)})


def only_value(data: ChartData) -> float | None:
    """The value that all of a chart's samples have; None if they differ and the chart is worth drawing."""
    values = {
        value
        for line in data.lines
        for column in (getattr(line, data.kind.look.values), line.low, line.high)
        for value in column or ()
    }
    return next(iter(values)) if len(values) == 1 else None


def line_label(line: ChartLine, context: ChartContext) -> str:
    """The name of a line in the legend: its side's label, or its own if it belongs to both."""
    return context.sides.get(line.side, line.label)


def _is_banded(line: ChartLine) -> bool:
    return bool(line.low and line.high)


def _times(figures: Sequence[float], factor: float) -> Sequence[float]:
    """The same figures without a copy if the unit is unchanged."""
    return figures if factor == 1.0 else [figure * factor for figure in figures]


class _Samples:
    """One chart's lines, and how they are drawn: pooled ones thick with their band, single runs thin behind."""

    def __init__(self, data: ChartData, context: ChartContext) -> None:
        self.data = data
        self.context = context
        self.look = data.kind.look
        self.other: Literal["x", "y"] = "y" if self.look.values == "x" else "x"
        # The dashed baseline goes over the solid candidate, so that both are visible where they coincide.
        lines = sorted(data.lines, key=lambda line: line.side != "candidate")
        self.lines = {
            "pooled": [line for line in lines if line.run_id is None],
            "single": [line for line in lines if line.run_id is not None],
        }
        values = [value for line in lines for value in getattr(line, self.look.values)]
        relative = self.look.is_change and context.relative
        self.unit = units.DisplayUnit("%") if relative else units.display_unit(context.unit, values)
        self.titles = {"x": data.x_label, "y": data.y_label}
        self.titles[self.look.values] = self._in_unit(self.titles[self.look.values])

    def _in_unit(self, label: str) -> str:
        """An axis' label with the unit it is drawn in."""
        suffix = f", {self.context.unit}"
        if not self.context.unit or not label.endswith(suffix):
            return label
        symbol = self.unit.symbol
        return f"{label.removesuffix(suffix)}, {symbol}" if symbol else label.removesuffix(suffix)

    def labels(self) -> list[str]:
        """Baseline first, so that it has the first colour even if only the candidate has a line."""
        results = [line_label(line, self.context) for line in self.data.lines]
        sided = any(line.side in self.context.sides for line in self.data.lines)
        return list(dict.fromkeys([*(self.context.sides.values() if sided else []), *results]))

    def drawn_labels(self) -> list[str]:
        """The sides with a line: a side whose runs have no samples is not in the legend."""
        drawn = {line_label(line, self.context) for line in self.data.lines if line.x}
        return [label for label in self.labels() if label in drawn]

    def columns(self, name: str) -> dict[str, list[Any]]:
        """The points of the lines of one set."""
        factor, across, upwards = self._factors()
        lines = self.lines[name]
        columns: dict[str, list[Any]] = {"x": [], "y": [], "side": [], "run": []}
        if any(_is_banded(line) for line in lines):
            columns |= {"low": [], "high": []}
        for line in lines:
            points = min(len(line.x), len(line.y))
            columns["x"] += _times(line.x, across)[:points]
            columns["y"] += _times(line.y, upwards)[:points]
            columns["side"] += [line_label(line, self.context)] * points
            columns["run"] += [line.run_id or "all runs"] * points
            if "low" in columns:
                low, high = (line.low, line.high) if line.low and line.high else (None, None)
                columns["low"] += [None] * points if low is None else _times(low, factor)[:points]
                columns["high"] += [None] * points if high is None else _times(high, factor)[:points]
        return columns

    def _factors(self) -> tuple[float, float, float]:
        """The factors of the metric's values, and of x and y."""
        factor = self.unit.factor
        return (factor, factor, 1.0) if self.look.values == "x" else (factor, 1.0, factor)

    def origins(self, name: str, path: Sequence[str | int]) -> dict[str, list[ColumnOrigin]]:
        """Where the figures of one set are in the document: line by line."""
        factor, across, upwards = self._factors()
        column_origins: dict[str, list[ColumnOrigin]] = {}
        for column, times in (("x", across), ("y", upwards), ("low", factor), ("high", factor)):
            for line in self.lines[name]:
                line_index = next(index for index, item in enumerate(self.data.lines) if item is line)
                at = [*path, "lines", line_index, column] if getattr(line, column) else None
                column_origins.setdefault(column, []).append(ColumnOrigin(at, len(line.x), times))
        return column_origins

    def thinning(self) -> dict[str, Thinning]:
        """How paper thins each set."""
        if self.look.across == "names":
            return {}
        if self.look.single == "points":
            most = _PRINT_DOTS // max(1, len(self.data.lines))
            return {"single": Thinning(most, "run", note="thinned evenly for print")} if self.lines["single"] else {}
        keep = {"keep": "peaks"} if self.look.across == "figures" else {}
        by = {"pooled": "side", "single": "run"}
        return {
            name: Thinning(_PRINT_POINTS[name], by[name], **keep)  # type: ignore[arg-type]
            for name in by if self.lines[name]
        }  # fmt: skip

    def _banded(self, name: str) -> bool:
        return any(line.low for line in self.lines[name])

    def _tips(self, name: str) -> list[Tooltip]:
        tips = [Tooltip("side", "side"), Tooltip("run", "run")]
        tips += [Tooltip(self.titles[axis] or axis, axis, ".4g") for axis in ("x", "y") if self._place(axis) == axis]
        return [*tips, Tooltip("band", "low", ".4g", until="high")] if self._banded(name) else tips

    def _place(self, axis: Literal["x", "y"]) -> str:
        return "side" if axis == self.other and self.look.across == "names" else axis

    def layers(self) -> list[Layer]:
        """The marks from back to front; dots are in front of lines."""
        spans = [self._span(name) for name in self.lines if self._banded(name)]
        order = ("pooled", "single") if self.look.single == "points" else ("single", "pooled")
        return [*spans, *(self._marks(name) for name in order if self.lines[name])]

    def _span(self, name: str) -> Layer:
        detail = "run" if name == "single" else ""
        layer = Layer(self.look.span, name, colour="side", detail=detail, opacity=self.look.opacity)
        if self.look.values == "x":
            return replace(layer, x="low", x2="high", y=self._place("y"))
        return replace(layer, x=self._place("x"), y="low", y2="high")

    def _marks(self, name: str) -> Layer:
        mark = self.look.pooled if name == "pooled" else self.look.single
        layer = Layer(mark, name, self._place("x"), self._place("y"), colour="side", tips=self._tips(name))
        if mark == "points":
            return self._as_points(layer)
        is_nearest = self.look.single == "line" and (name == "pooled" or not self.lines["pooled"])
        layer = replace(layer, order=self.other, nearest=is_nearest)
        if name == "pooled":
            return replace(layer, style="" if self.look.is_change else "side", opacity=1.0)
        # A dash on many thin lines is noise; if only single runs are drawn, it distinguishes the sides.
        thin = bool(self.lines["pooled"])
        width, opacity = (0.8, 0.4) if thin else (1.2, 0.85)
        return replace(layer, style="" if thin else "side", detail="run", width=width, opacity=opacity)

    def _as_points(self, layer: Layer) -> Layer:
        """The more there are, the fainter: density shows, and neither side covers the other."""
        count = sum(len(line.x) for line in self.lines[layer.data])
        size, opacity = next((look[1:] for look in _DOT_LOOKS if count <= look[0]), _DOT_LOOKS[-1][1:])
        return replace(layer, style="side", size=size, opacity=opacity)

    def bend(self) -> tuple[float, float, float] | None:
        """The lowest value, the highest p99 and the highest, if the last 1 % would take over half of an axis."""
        lines = [line for line in self.lines["pooled"] if line.x and line.y and line.y[-1] > _BODY]
        if not lines:
            return None
        factor = self.unit.factor
        low, top = min(line.x[0] for line in lines) * factor, max(line.x[-1] for line in lines) * factor
        p99 = max(next(x for x, y in zip(line.x, line.y, strict=False) if y >= _BODY) for line in lines) * factor
        return (low, p99, top) if low < p99 and top - low > 2.0 * (p99 - low) else None

    def value_axis(self) -> Axis:
        """The axis of the metric's values; of changes, with no change in the middle."""
        title = self.titles[self.look.values]
        if not self.look.is_change:
            return Axis(title, log_beyond=_WIDE_RATIO)
        points = [value * self.unit.factor for line in self.data.lines for value in line.y if math.isfinite(value)]
        # Room for the band and for every point; intervals of wild tails may leave the frame.
        reach = max([1.5 * self._margin(), *(1.2 * abs(value) for value in points)]) or 1.0
        return Axis(title, numbers="signed percent" if self.context.relative else "signed", domain=(-reach, reach))

    def other_axis(self) -> Axis:
        """The axis that orders the values."""
        if self.look.across == "names":
            return Axis(names=self.drawn_labels())
        return Axis(self.titles[self.other], numbers=self.look.across, domain=self.look.ends)

    def limits(self) -> list[Limit]:
        """Of changes: no change, and the band of irrelevant changes."""
        if not self.look.is_change:
            return []
        margin = self._margin()
        return [Limit(-margin, until=margin, colour=GOOD), Limit(0.0, colour=QUIET, dash=())]

    def _margin(self) -> float:
        return self.context.margin * self.unit.factor
