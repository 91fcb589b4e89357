"""The timeline of a story: a row a place, a mark a stage, a thin line from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.core import units
from chainmark.report.chart import QUIET, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of
from chainmark.systems.cardano.trails.trace import BlockTrace

MARKS_DATA, SPANS_DATA = "marks", "spans"
_ROW_PX = 15
_ROWS_ON_PAPER = 64  # what a page has room for


@dataclass(frozen=True)
class Times:
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


def times_of(story: BlockTrace) -> Times:
    """One unit and one number of decimals for all times of a story."""
    told = [second for place in story.places for second in place.seconds if second is not None]
    unit = units.display_unit("s", told)
    decimals = min(3, units.decimals_for([unit.of(second) for second in told]))
    return Times(unit, decimals, f"{unit.symbol} after {story.base_label}")


def place_labels(story: BlockTrace) -> list[str]:
    """The places' names; those with a role of their own say so."""
    roles = [place.role for place in story.places]
    lone = {role for role in roles if role and roles.count(role) == 1 and len(roles) > 1}
    return [f"{place.place} · {place.role}" if place.role in lone else place.place for place in story.places]


def _domain(story: BlockTrace) -> tuple[float, float]:
    """From the base, or the first event if that was before it, to the last event."""
    factor = times_of(story).unit.factor
    told = [second * factor for place in story.places for second in place.seconds if second is not None]
    return min([0.0, *told]), max([0.0, *told]) or 1.0


def log_place(story: BlockTrace, place: int, stage: int) -> str:
    """The file and the line that tell a stage: "node-3/log.json:17"; "" where that is not known."""
    found = story.places[place]
    if stage >= len(found.lines) or (line := found.lines[stage]) is None:
        return ""
    file = found.files[stage]
    return f"line {line}" if file is None else f"{story.files[file]}:{line}"


def timeline_chart(story: BlockTrace) -> Chart:
    """The chart for every rendering; on paper a page of places at a time."""
    labels, axis = place_labels(story), times_of(story)
    factor, shown = axis.unit.factor, story.rows
    form = f",.{axis.decimals}f"
    tips = [Tooltip(story.place_label, "place"), Tooltip("stage", "stage"), Tooltip(axis.title, "time", form),
            Tooltip("after the stage before", "step", form)]  # fmt: skip
    if story.files:
        tips.append(Tooltip("log", "log"))
    marks, spans = [], []
    for index in shown:
        place = story.places[index]
        told = [second * factor for second in place.seconds if second is not None]
        if told:
            spans.append({"place": labels[index], "first": min(told), "last": max(told)})
        for stage, second in enumerate(place.seconds):
            if second is None:
                continue
            step = place.steps[stage]
            marks.append(
                {"place": labels[index], "stage": story.stages[stage], "time": second * factor,
                 "step": None if step is None else step * factor, "log": log_place(story, index, stage) or None}
            )  # fmt: skip
    columns = columns_of(marks) or {"place": [], "stage": [], "time": [], "step": [], "log": []}
    return Chart(
        id="timeline",
        title=f"Timeline, {axis.title}",
        x=Axis(axis.title, domain=_domain(story), nice=True),
        y=Axis(names=[labels[index] for index in shown]),
        layers=[
            Layer("interval", SPANS_DATA, x="first", x2="last", y="place", colour=QUIET, width=1),
            Layer("points", MARKS_DATA, "time", "place", colour="stage", style="stage", size=48, tips=tips),
        ],
        data={MARKS_DATA: columns, SPANS_DATA: columns_of(spans)},
        series={"stage": LegendSeries(story.stages, told=[story.stages[stage] for stage in reported_stages(story)])},
        limits=[Limit(0.0, along="x", colour=QUIET, dash=(3, 3))],
        note=f"0 is {story.base_label}; {units.plural(len(shown), story.place_label)} in the order of "
        f"“{story.stages[story.end]}”.",
        wide=True,
        row=_ROW_PX,
        zoom=True,
        unit_s=1.0 / factor,
        page_rows=_ROWS_ON_PAPER,
        on_terminal=True,
        beside={labels[index]: axis.text(story.places[index].seconds[story.end]) for index in shown},
    )


def reported_stages(story: BlockTrace) -> Sequence[int]:
    """The stages that any place told."""
    return [
        stage for stage in range(len(story.stages)) if any(place.seconds[stage] is not None for place in story.places)
    ]
