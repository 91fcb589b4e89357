"""The timeline of a trace: a row per place, a mark per stage, a thin line from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.core import units
from chainmark.report.chart import QUIET, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of
from chainmark.trails.trace import Trace, TracePlace

MARKS_DATA, SPANS_DATA = "marks", "spans"
_ROW_PX = 15
_ROWS_ON_PAPER = 64  # limit of a page


@dataclass(frozen=True)
class Times:
    """The unit and precision of a trace's times."""

    unit: units.DisplayUnit
    decimals: int
    title: str

    def text(self, seconds: float | None, *, signed: bool = False) -> str:
        """A time without its unit."""
        if seconds is None:
            return ""
        scaled = self.unit.of(seconds)
        rounded = None if scaled is None else round(scaled, self.decimals) + 0.0  # without "-0"
        return units.number(rounded, self.decimals, signed=signed)

    def with_unit(self, seconds: float) -> str:
        """A time with its unit."""
        return f"{self.text(seconds)} {self.unit.symbol}"


def times_of(trace: Trace) -> Times:
    """One unit and one number of decimals for all times of a trace."""
    messages = [second for place in trace.places for second in place.seconds if second is not None]
    unit = units.display_unit("s", messages)
    decimals = min(3, units.decimals_for([unit.of(second) for second in messages]))
    return Times(unit, decimals, f"{unit.symbol} after {trace.base_label}")


def place_labels(trace: Trace) -> list[str]:
    """The places' names; those with a unique role include it."""
    roles = [place.role for place in trace.places]
    lone = {role for role in roles if role and roles.count(role) == 1 and len(roles) > 1}
    return [f"{place.place} · {place.role}" if place.role in lone else place.place for place in trace.places]


def _domain(trace: Trace) -> tuple[float, float]:
    """From the base, or the first event if that was before it, to the last event."""
    factor = times_of(trace).unit.factor
    messages = [second * factor for place in trace.places for second in place.seconds if second is not None]
    return min([0.0, *messages]), max([0.0, *messages]) or 1.0


def log_place(trace: Trace, place: int, stage: int) -> str:
    """The file and the line that report a stage: "node-3/log.json:17"; "" if unknown."""
    trace_place = trace.places[place]
    if stage >= len(trace_place.lines) or (line := trace_place.lines[stage]) is None:
        return ""
    file = trace_place.files[stage]
    return f"line {line}" if file is None else f"{trace.files[file]}:{line}"


def timeline_chart(trace: Trace) -> Chart:
    """The chart for every rendering; on paper a page of places at a time."""
    note = f"0 is {trace.base_label}."
    if trace.place_label:
        places = units.plural(len(trace.rows), trace.place_label)
        note = f"0 is {trace.base_label}. {places}, ordered by the time of “{trace.stages[trace.end]}”."
    else:
        trace = _beside_median(trace)
    labels, axis = place_labels(trace), times_of(trace)
    factor, shown = axis.unit.factor, trace.rows
    form = f",.{axis.decimals}f"
    tips = [Tooltip(trace.place_label, "place"), Tooltip("stage", "stage"), Tooltip(axis.title, "time", form),
            Tooltip("since the previous stage", "step", form)]  # fmt: skip
    if trace.files:
        tips.append(Tooltip("log", "log"))
    marks, spans = [], []
    for index in shown:
        place = trace.places[index]
        messages = [second * factor for second in place.seconds if second is not None]
        if messages:
            spans.append({"place": labels[index], "first": min(messages), "last": max(messages)})
        for stage, second in enumerate(place.seconds):
            if second is None:
                continue
            step = place.steps[stage]
            marks.append(
                {"place": labels[index], "stage": trace.stages[stage], "time": second * factor,
                 "step": None if step is None else step * factor, "log": log_place(trace, index, stage) or None}
            )  # fmt: skip
    columns = columns_of(marks) or {"place": [], "stage": [], "time": [], "step": [], "log": []}
    return Chart(
        id="timeline",
        title=f"Timeline, {axis.title}",
        x=Axis(axis.title, domain=_domain(trace), nice=True),
        y=Axis(names=[labels[index] for index in shown]),
        layers=[
            Layer("interval", SPANS_DATA, x="first", x2="last", y="place", colour=QUIET, width=1),
            Layer("points", MARKS_DATA, "time", "place", colour="stage", style="stage", size=48, tips=tips),
        ],
        data={MARKS_DATA: columns, SPANS_DATA: columns_of(spans)},
        series={"stage": LegendSeries(trace.stages, listed=[trace.stages[stage] for stage in reported_stages(trace)])},
        limits=[Limit(0.0, along="x", colour=QUIET, dash=(3, 3))],
        note=note,
        wide=True,
        row=_ROW_PX,
        zoom=True,
        unit_s=1.0 / factor,
        page_rows=_ROWS_ON_PAPER,
        on_terminal=True,
        beside={labels[index]: axis.text(trace.places[index].seconds[trace.end]) for index in shown},
    )


def _beside_median(trace: Trace) -> Trace:
    """An item without places as a lane with its name, and the median of all such items as another lane."""
    own = trace.places[0].model_copy(update={"place": trace.name})
    lanes = [own]
    if any(second is not None for second in trace.usual_s):
        usual = TracePlace(place=f"median {trace.label}", seconds=trace.usual_s, steps=[None] * len(trace.stages))
        lanes.append(usual)
    return trace.model_copy(update={"places": lanes, "place_label": trace.label})


def reported_stages(trace: Trace) -> Sequence[int]:
    """The stages that any place reported."""
    return [
        stage for stage in range(len(trace.stages)) if any(place.seconds[stage] is not None for place in trace.places)
    ]
