"""The timeline of a story: a row a place, a mark a stage, a thin line from the first to the last.

A specification refers to two data sets by name. A page that carries the story itself fills them from it in its script;
``with_data`` does the same for paper and for pages of one story.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.core import units
from chainmark.core.trail import Story
from chainmark.report.model_charts import LINE_COLOURS
from chainmark.report.sheet import Figure, Strip
from chainmark.report.vega import Spec

MARKS_DATA, SPANS_DATA = "marks", "spans"
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip
_ROW_PX = 15
_ROW_PX_ON_PAPER = 12
_ROWS_ON_PAPER = 64  # what a page has room for
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


@dataclass(frozen=True)
class Axis:
    """What the times of a story are shown in."""

    unit: units.DisplayUnit
    decimals: int
    title: str

    def text(self, seconds: float | None, *, signed: bool = False) -> str:
        """A time without its unit."""
        return "" if seconds is None else units.number(self.unit.of(seconds), self.decimals, signed=signed)

    def with_unit(self, seconds: float) -> str:
        """A time with its unit."""
        return f"{self.text(seconds)} {self.unit.symbol}"


def axis_of(story: Story) -> Axis:
    """One unit and one number of decimals for all times of a story."""
    told = [second for place in story.places for second in place.seconds if second is not None]
    unit = units.display_unit("s", told)
    decimals = min(3, units.decimals_for([unit.of(second) for second in told]))
    return Axis(unit, decimals, f"{unit.symbol} after {story.base_label}")


def place_labels(story: Story) -> list[str]:
    """The places' names; those with a role of their own say so."""
    roles = [place.role for place in story.places]
    lone = {role for role in roles if role and roles.count(role) == 1 and len(roles) > 1}
    return [f"{place.place} · {place.role}" if place.role in lone else place.place for place in story.places]


def timeline_spec(story: Story, *, interactive: bool, rows: Sequence[int] | None = None) -> Spec:
    """The chart without its data.

    Args:
        story: gives the stages, the places and the unit.
        interactive: adds tooltips, and zoom along the axis.
        rows: the places to draw; None: all that are shown.
    """
    labels = place_labels(story)
    shown = [labels[index] for index in (story.rows if rows is None else rows)]
    y: Spec = {
        "field": "place", "type": "nominal", "sort": shown, "title": None, "scale": {"domain": shown},
        "axis": {"grid": True, "labelLimit": 190, "ticks": False, "labelOverlap": False},
    }  # fmt: skip
    x: Spec = {"type": "quantitative", "title": axis_of(story).title, "scale": {"domain": _domain(story), "nice": True}}
    legend: Spec = {"title": None, "orient": "top", "symbolSize": 70, "columns": 8 if interactive else 4}
    told = [story.stages[stage] for stage in told_stages(story)]
    shown_legend = {**legend, "values": told, "labelLimit": 260} if told else None
    stage: Spec = {"field": "stage", "type": "nominal", "legend": shown_legend}
    cycle = [index % len(SHAPES) for index in range(len(story.stages))]
    colour = {**stage, "scale": {"domain": story.stages}}
    if len(story.stages) > len(LINE_COLOURS):
        colour["scale"] = {"domain": story.stages, "range": [LINE_COLOURS[index] for index in cycle]}
    shape = {**stage, "scale": {"domain": story.stages, "range": [SHAPES[index] for index in cycle]}}
    marks: Spec = {
        "data": {"name": MARKS_DATA},
        "mark": {"type": "point", "filled": True, "size": 48, "opacity": 0.95, "clip": True},
        "encoding": {"x": {**x, "field": "time"}, "y": y, "color": colour, "shape": shape},
    }
    if interactive:
        marks["encoding"]["tooltip"] = _tips(story, axis_of(story))
        select = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.ctrlKey || event.metaKey]"}
        marks["params"] = [{"name": "zoom", "select": select, "bind": "scales"}]
    return {
        "$schema": _SCHEMA,
        "description": f"{story.name}: when each {story.place_label} told each stage",
        "height": max(60, (_ROW_PX if interactive else _ROW_PX_ON_PAPER) * len(shown)),
        "layer": [
            {
                "data": {"values": [{"time": 0}]},
                "mark": {"type": "rule", "color": "#888888", "strokeDash": [3, 3]},
                "encoding": {"x": {**x, "field": "time"}},
            },
            {
                "data": {"name": SPANS_DATA},
                "mark": {"type": "rule", "color": "#888888", "strokeWidth": 1, "clip": True},
                "encoding": {"x": {**x, "field": "first"}, "x2": {"field": "last"}, "y": y},
            },
            marks,
        ],
    }


def _domain(story: Story) -> list[float]:
    """From the base, or the first event if that was before it, to the last event."""
    factor = axis_of(story).unit.factor
    told = [second * factor for place in story.places for second in place.seconds if second is not None]
    return [min([0.0, *told]), max([0.0, *told]) or 1.0]


def _tips(story: Story, axis: Axis) -> list[Spec]:
    pairs = [("place", story.place_label), ("stage", "stage"), ("time", axis.title), ("step", "after the stage before")]
    tips: list[Spec] = [{"field": field, "title": title, "type": "nominal"} for field, title in pairs]
    for tip in tips[2:]:
        tip |= {"type": "quantitative", "format": f",.{axis.decimals}f"}
    return [*tips, {"field": "log", "title": "log", "type": "nominal"}] if story.files else tips


def with_data(spec: Spec, story: Story, rows: Sequence[int] | None = None) -> Spec:
    """The chart with the story's times; the script of the report of a comparison does the same."""
    labels, factor = place_labels(story), axis_of(story).unit.factor
    marks: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    for index in story.rows if rows is None else rows:
        place = story.places[index]
        told = [second * factor for second in place.seconds if second is not None]
        if told:
            spans.append({"place": labels[index], "first": min(told), "last": max(told)})
        for stage, second in enumerate(place.seconds):
            if second is None:
                continue
            mark = {"place": labels[index], "stage": story.stages[stage], "time": second * factor}
            step = place.steps[stage]
            if step is not None:
                mark["step"] = step * factor
            if where := log_place(story, index, stage):
                mark["log"] = where
            marks.append(mark)
    return {**spec, "datasets": {MARKS_DATA: marks, SPANS_DATA: spans}}


def log_place(story: Story, place: int, stage: int) -> str:
    """The file and the line that tell a stage: "node-3/log.json:17"; "" where that is not known."""
    found = story.places[place]
    if stage >= len(found.lines) or (line := found.lines[stage]) is None:
        return ""
    file = found.files[stage]
    return f"line {line}" if file is None else f"{story.files[file]}:{line}"


def timeline_figure(story: Story) -> Figure:
    """The chart for every rendering; on paper a page of places at a time."""
    shown = story.rows
    pages = [shown[start : start + _ROWS_ON_PAPER] for start in range(0, len(shown), _ROWS_ON_PAPER)]
    low, high = _domain(story)
    axis = axis_of(story)
    return Figure(
        id="timeline",
        title=f"Timeline, {axis.title}",
        spec=with_data(timeline_spec(story, interactive=True), story),
        paper=[
            with_data(timeline_spec(story, interactive=False, rows=rows), story, rows) | {"width": 560}
            for rows in pages
        ],
        note=f"0 is {story.base_label}; {units.plural(len(shown), story.place_label)} in the order of “{_end(story)}”.",
        wide=True,
        strips=_strips(story, low / axis.unit.factor, high / axis.unit.factor),
        kinds=story.stages,
    )


def _end(story: Story) -> str:
    return story.stages[story.end]


def _strips(story: Story, low: float, high: float) -> list[Strip]:
    axis = axis_of(story)
    strips = []
    labels = place_labels(story)
    for index in story.rows:
        label, place = labels[index], story.places[index]
        told = [(stage, second) for stage, second in enumerate(place.seconds) if second is not None]
        marks = [(stage, (second - low) / (high - low)) for stage, second in told]
        strips.append(Strip(label, marks, axis.text(place.seconds[story.end])))
    return strips


def told_stages(story: Story) -> Sequence[int]:
    """The stages that any place told."""
    return [
        stage for stage in range(len(story.stages)) if any(place.seconds[stage] is not None for place in story.places)
    ]
