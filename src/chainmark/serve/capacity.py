"""Latency against load of all releases in one plot, from the steps that runs of load tests store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.lab.stages import has_stages
from chainmark.report.blocks import Block, Section, Table, row_of, words
from chainmark.report.chart import Axis, Chart, Layer, LegendSeries, Tooltip, columns_of
from chainmark.report.document import Document
from chainmark.report.load_text import KIND_AXES, KIND_NAMES, MS
from chainmark.serve.curves import Curves, CurveStep, curves_of
from chainmark.serve.pages import own_document
from chainmark.store.sealed import SealedRun

_WIDE_RATIO = 20.0  # ratio of an axis, from which on it is logarithmic
_MOST_RELEASES = 8


def capacity_document(title: str, runs: Sequence[SealedRun]) -> Document:
    """The curves of a workload.

    Args:
        title: of the workload.
        runs: one for each release, oldest first.

    Raises:
        UsageError: none of them is of a load test.
    """
    tested = [run for run in runs if has_stages(run)][-_MOST_RELEASES:]
    if not tested:
        raise UsageError("this workload has no load tests", "run one with `chainmark load`")
    curves = curves_of(tested)
    versions = list(dict.fromkeys(run.manifest.subject.version for run in tested))
    pairs = list(dict.fromkeys((step.endpoint, step.kind) for step in curves.steps))
    charts: list[Block] = [chart for pair in pairs if (chart := _chart(curves, versions, *pair)) is not None]
    sections = [
        Section("curves", "Latency against load", charts),
        Section("steps", "Steps", [_table(curves)]),
    ]
    subtitle = f"{units.plural(len(versions), 'release')} · {units.plural(len(curves.steps), 'step')}"
    return own_document("capacity", title, subtitle, sections, curves)


def _chart(curves: Curves, versions: Sequence[str], endpoint: str, kind: str) -> Chart | None:
    own = [step for step in curves.steps if (step.endpoint, step.kind) == (endpoint, kind) and step.p99_s]
    if not own:
        return None
    axis = next(text for known, text in KIND_AXES.items() if known == kind)
    name = next(text for known, text in KIND_NAMES.items() if known == kind)
    tips = [
        Tooltip("release", "version"),
        Tooltip(axis, "level", ".5g"),
        Tooltip("p99", "value", ".4g"),
        Tooltip("", "outcome"),
    ]
    look: dict[str, Any] = {"x": "level", "y": "value", "colour": "version", "style": "version"}
    return Chart(
        id=f"curve-{kind}-{endpoint}".replace("/", "-"),
        title=f"{endpoint}: p99 against {name.lower()}",
        x=Axis(axis, log_beyond=_WIDE_RATIO),
        y=Axis(f"latency, {MS.symbol}", log_beyond=_WIDE_RATIO, zero=True, nice=True),
        layers=[
            Layer("line", "lines", **look),
            Layer("points", "tried", **look, hollow=True, size=40, tips=tips),
            Layer("points", "confirmed", **look, size=55, tips=tips),
        ],
        data={
            "lines": columns_of(
                {"version": line.version, "level": line.level, "value": _in_ms(line.p99_s)}
                for line in curves.medians
                if (line.endpoint, line.kind) == (endpoint, kind)
            ),
            "tried": columns_of(_point(curve_step) for curve_step in own if not curve_step.is_confirmed),
            "confirmed": columns_of(_point(curve_step) for curve_step in own if curve_step.is_confirmed),
        },
        series={"version": LegendSeries(versions)},
        note="Hollow points: unconfirmed steps. Lines run through the median of each level's steps.",
        half=True,
    )


def _point(step: CurveStep) -> dict[str, object]:
    return {"version": step.version, "level": step.level, "value": _in_ms(step.p99_s or 0.0), "outcome": step.outcome}


def _in_ms(seconds: float) -> float:
    return units.rounded(seconds * MS.factor, 5)


def _table(curves: Curves) -> Table:
    rows = [
        row_of(
            step.version,
            step.endpoint,
            step.kind,
            units.tidy(step.level, 5),
            units.NO_DATA if step.p99_s is None else units.quantity(step.p99_s, "s"),
            step.outcome,
            "yes" if step.is_confirmed else "no",
        )
        for step in curves.steps
    ]
    headings = words("release", "endpoint", "by", "level", "p99", "outcome", "confirmed")
    return Table("steps", "", headings, rows, sortable=True)
