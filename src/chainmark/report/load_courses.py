"""Ramps and spikes: where the SLA was missed, how long a server took to recover, and both second by second."""

from __future__ import annotations

from chainmark.capacity.verdict import course_figure, course_text, measured_text
from chainmark.core import units
from chainmark.core.load_report import CourseEntry, LoadReport, TargetEntry
from chainmark.core.verdict import Verdict
from chainmark.report import load_text as text
from chainmark.report.blocks import Column, Table, TableCell, TableRow, words
from chainmark.report.chart import Chart
from chainmark.report.load_charts import EndpointSide, sides_of
from chainmark.report.load_timelines import timelines_of
from chainmark.report.wording import LOOKS

_QUIET = TableCell(units.NOT_ESTIMABLE, emphasis="quiet")
_SPIKE_NOTE = (
    "Recovery time: from the end of the spike to the first response of 299 consecutive requests of which at most 1 % "
    "failed or took longer than the p99 before the spike plus `recovery_share`. Its interval follows from that p99's."
)
_RAMP_NOTE = (
    "Missed from: the level at the first of 299 consecutive requests of which clearly (95 %) more failed or were too "
    "slow than the SLA allows. Its interval spans the levels at the first and the last of the 299."
)


def course_tables(target: TargetEntry, name: str, number: int, *, several: bool) -> list[Table]:
    """A table of the spikes and one of the ramps, a row each; empty without any."""
    suffix = f": {name}" if several else ""
    every = [(endpoint.label, course) for endpoint in target.endpoints for course in endpoint.courses]
    tables = []
    if spikes := [TableRow(_spike_cells(label, course)) for label, course in every if course.what == "spike"]:
        figures = map(Column, ("p99 before, ms", "p99 at the peak, ms", "failed", "recovery time", "interval"))
        columns = [*words("load"), *figures, *words("remarks")]
        tables.append(Table(f"spikes-{number}", f"Recovery from spikes{suffix}", columns, spikes, [_SPIKE_NOTE]))
    if ramps := [TableRow(_ramp_cells(label, course)) for label, course in every if course.what == "ramp"]:
        columns = [*words("load"), *map(Column, ("failed", "missed from", "interval")), *words("remarks")]
        tables.append(Table(f"ramps-{number}", f"Ramps{suffix}", columns, ramps, [_RAMP_NOTE]))
    return tables


def course_charts(report: LoadReport) -> list[Chart]:
    """The charts of each ramp and spike, second by second."""
    several = len(report.targets) > 1
    charts = []
    for id_ in text.endpoint_ids(report):
        for index, side in enumerate(sides_of(report, id_)):
            for turn, course in enumerate(side.endpoint.courses):
                # As if it were the endpoint's only step.
                course_step = side.endpoint.model_copy(
                    update={"steps": [course.step], "seconds": course.seconds, "joined": course.joined}
                )
                name = f"{f', {side.name}' if several else ''}, {course_text(course)}"
                charts += timelines_of(
                    EndpointSide(side.name, course_step), course.kind, f"course-{id_}-{index}-{turn}", name
                )
    return charts


def _spike_cells(label: str, course: CourseEntry) -> list[TableCell]:
    p99s = [_QUIET if value_s is None else text.milliseconds(value_s) for value_s in (course.before_s, course.peak_s)]
    return [TableCell(f"{label}, {course_text(course)}"), *p99s, *_common(course)]


def _ramp_cells(label: str, course: CourseEntry) -> list[TableCell]:
    return [TableCell(f"{label}, {course_text(course)}"), *_common(course)]


def _common(course: CourseEntry) -> list[TableCell]:
    failed = course.step.failed - course.step.closed_idle
    is_known = not course.note
    return [
        TableCell(units.count(failed), emphasis="worse" if failed else "plain"),
        TableCell(measured_text(course), emphasis=LOOKS[Verdict(course.outcome)].emphasis if is_known else "quiet"),
        TableCell(_interval(course), emphasis="quiet"),
        TableCell(course.note),
    ]


def _interval(course: CourseEntry) -> str:
    if course.note or (course.low is None and course.high is None):
        return units.UNSET
    low, high = (None if end is None else course_figure(course, end) for end in (course.low, course.high))
    return f"{low} … {high}" if high is not None else f"≥ {low}"
