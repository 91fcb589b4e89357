"""The time lines of a load test, step after step: latencies, and errors by kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.capacity.sla import WAITED_SHARE
from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, Kind, LoadReport, SecondEntry, StepEntry
from chainmark.report import load_text as text
from chainmark.report.chart import PART_COLOURS, QUIET, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of
from chainmark.report.load_charts import EndpointSide, Rows, sides_of

_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_LEAST_TEXT_SHARE = 0.045  # of a time line: a narrower step has no room for its level


def timeline_charts(report: LoadReport) -> list[Chart]:
    """Charts by second: latencies, and errors if there are any."""
    charts = []
    several = len(report.targets) > 1
    for id_ in text.endpoint_ids(report):
        for index, side in enumerate(sides_of(report, id_)):
            for kind in text.kinds_of(report.targets):
                name = f"{f', {side.name}' if several else ''}, {text.KIND_WORDS[kind]}"
                charts += timelines_of(side, kind, f"{kind}-{id_}-{index}", name)
    return charts


@dataclass(frozen=True)
class _Span:
    """The position of a step on the axis of the seconds of load, step after step."""

    step: StepEntry
    begin: int
    first: int
    length: int


@dataclass(frozen=True)
class _Drawn:
    """A second of a step, or several in one, from ``begin`` to ``end`` on that axis."""

    step: StepEntry
    begin: int
    end: int
    second: SecondEntry


@dataclass(frozen=True)
class _Track:
    """The common parts of two charts of the same seconds."""

    side: EndpointSide
    spans: Sequence[_Span]
    seconds: Sequence[_Drawn]
    id: str
    name: str
    note: str


def _spans(endpoint: EndpointEntry, kind: Kind) -> list[_Span]:
    """The steps of one kind of load with seconds, in their order."""
    seconds: dict[int, list[int]] = {}
    for entry in endpoint.seconds:
        seconds.setdefault(entry.step, []).append(entry.second)
    spans, begin = [], 0
    for step in endpoint.steps:
        if step.kind == kind and step.number in seconds:
            first = min(seconds[step.number])
            length = max(seconds[step.number]) - first + 1
            spans.append(_Span(step, begin, first, length))
            begin += length
    return spans


def _drawn(span: _Span, seconds: Sequence[SecondEntry], size: int) -> list[_Drawn]:
    """The seconds of a step in their positions."""
    ends = span.begin + span.length
    return [
        _Drawn(span.step, begin, min(begin + size, ends), second)
        for second in seconds
        for begin in [span.begin + second.second - span.first]
    ]


def _places(spans: Sequence[_Span]) -> list[dict[str, Any]]:
    """The steps' positions, with their levels if there is room."""
    across = sum(span.length for span in spans)
    return [
        {"begin": span.begin, "warm": span.begin + min(max(0.0, span.step.warm_up_s - span.first), span.length),
         "text": text.short_level(span.step) if span.length >= _LEAST_TEXT_SHARE * across else ""}
        for span in spans
    ]  # fmt: skip


def timelines_of(side: EndpointSide, kind: Kind, id_: str, name: str) -> list[Chart]:
    """The charts of the steps of one kind of load at one endpoint of one server."""
    spans = _spans(side.endpoint, kind)
    if not spans:
        return []
    joined = next((joined for joined in side.endpoint.joined if joined.kind == kind), None)
    size, entries = (joined.size, joined.seconds) if joined else (1, side.endpoint.seconds)
    by_step: dict[int, list[SecondEntry]] = {}
    for entry in sorted(entries, key=lambda second: second.second):
        by_step.setdefault(entry.step, []).append(entry)
    note = "Grey: warm-up, excluded from all figures. Top: the level of each step."
    if size > 1:
        note += f" Each point covers {size} seconds: their median p50, their worst p99 and max, all their errors."
    seconds = [second for span in spans for second in _drawn(span, by_step.get(span.step.number, []), size)]
    track = _Track(side, spans, seconds, id_, name, note)
    return [drawn for drawn in (_latency_timeline(track), _error_timeline(track), _waiting_strip(track)) if drawn]


def _latencies_s(second: SecondEntry) -> dict[str, float]:
    """The latencies that the second has."""
    values = {"p50": second.p50_s, "p99": second.p99_s, "max": second.max_s}
    return {name: value for name, value in values.items() if value is not None and 0.0 < value < math.inf}


def _failed(second: SecondEntry) -> dict[str, int]:
    """Its failed requests by kind; of an unknown kind: "failed"."""
    counts = {kind: count for kind, count in second.errors.items() if count > 0}
    if second.failed_otherwise:
        counts["failed"] = counts.get("failed", 0) + second.failed_otherwise
    return dict(sorted(counts.items()))


def _lost(second: SecondEntry) -> dict[str, float]:
    """The shares of its processor time that others had, by whose time it was."""
    shares = {
        "generator": second.generator_lost_share,
        "server": second.server_lost_share,
        "stolen": second.stolen_share,
    }
    return {name: share for name, share in shares.items() if share is not None and math.isfinite(share)}


def _latency_timeline(track: _Track) -> Chart | None:
    limit_s = track.side.endpoint.sla.p99_s
    rows: list[dict[str, Any]] = [
        {"second": item.begin + 0.5 * (item.end - item.begin), "label": label,
         "value": units.rounded(value * text.MS.factor, 5), "series": f"{label} {item.step.number}",
         "text": f"{item.step.number}: {text.level_of(item.step)}"}
        for item in track.seconds for label, value in _latencies_s(item.second).items()
    ]  # fmt: skip
    if not rows:
        return None
    axis = f"latency, {text.MS.symbol}"
    tips = [
        Tooltip("step", "text"),
        Tooltip("second", "second", ",g"),
        Tooltip("line", "label"),
        Tooltip(axis, "value", ",.4g"),
    ]
    line = Layer("line", x="second", y="value", colour="label", style="label", detail="series", width=1.4, opacity=1)
    dots = Layer("points", x="second", y="value", colour="label", size=10, opacity=1, tips=tips)
    return _over_seconds(
        track,
        f"time-{track.id}",
        f"{track.side.endpoint.label}{track.name}: latency by the second",
        y=Axis(axis, log_beyond=_WIDE_RATIO, zero=True, nice=True),
        layers=[line, dots],
        rows=rows,
        series={"label": LegendSeries(list(dict.fromkeys(row["label"] for row in rows)))},
        limits=[Limit(limit_s * text.MS.factor, f"SLA p99 {units.duration(limit_s)}", at_end=True)],
        paper=(560, 140),
    )


def _over_seconds(track: _Track, id_: str, title: str, *, layers: Sequence[Layer], rows: Rows, **rest: Any) -> Chart:
    """A chart of the seconds: warm-ups shaded, and each step's start with its level."""
    steps = [
        Layer("box", "steps", x="begin", x2="warm", colour=QUIET, opacity=0.15),
        Layer("interval", "steps", x="begin", colour=QUIET, width=0.7),
        Layer("text", "steps", x="begin", text="text", above=0, align="left", nudge=(1, 0), colour=QUIET, size=10),
    ]
    return Chart(
        id=id_,
        title=title,
        x=Axis(
            "seconds of load, step after step", domain=(0.0, track.spans[-1].begin + track.spans[-1].length), whole=True
        ),
        layers=[*steps, *layers],
        data={"steps": columns_of(_places(track.spans)), "points": columns_of(rows)},
        note=track.note,
        wide=True,
        **rest,
    )


def _error_timeline(track: _Track) -> Chart | None:
    rows: list[dict[str, Any]] = []
    for item in track.seconds:
        low, length = 0.0, max(item.end - item.begin, 1.0)
        for kind, count in _failed(item.second).items():
            high = low + count / length
            rows.append(
                {"second": item.begin, "until": item.end, "kind": kind, "low": low, "high": high, "count": count,
                 "text": f"{item.step.number}: {text.level_of(item.step)}"}
            )  # fmt: skip
            low = high
    if not rows:
        return None
    tips = [
        Tooltip("step", "text"),
        Tooltip("second", "second", ",g"),
        Tooltip("failure", "kind"),
        Tooltip("failed", "count", ",g"),
    ]
    return _over_seconds(
        track,
        f"errors-{track.id}",
        f"{track.side.endpoint.label}{track.name}: errors by the second",
        y=Axis("failed requests per second", zero=True, nice=True),
        layers=[Layer("box", x="second", x2="until", y="low", y2="high", colour="kind", opacity=1, tips=tips)],
        rows=rows,
        series={"kind": LegendSeries(list(dict.fromkeys(row["kind"] for row in rows)), PART_COLOURS)},
        height=140,
        paper=(560, 70),
    )


def _waiting_strip(track: _Track) -> Chart | None:
    """The processor time of others, in a low chart below the others."""
    rows: list[dict[str, Any]] = [
        {"second": item.begin, "until": item.end, "label": waiting, "low": 0.0, "share": 100.0 * share,
         "text": f"{item.step.number}: {text.level_of(item.step)}"}
        for item in track.seconds for waiting, share in _lost(item.second).items()
    ]  # fmt: skip
    if not rows:
        return None
    tips = [
        Tooltip("step", "text"),
        Tooltip("second", "second", ",g"),
        Tooltip("whose", "label"),
        Tooltip("lost, %", "share", ",.1f"),
    ]
    return _over_seconds(
        track,
        f"waiting-{track.id}",
        f"{track.side.endpoint.label}{track.name}: processor time lost to other processes",
        y=Axis("lost, %", domain=(0.0, 100.0), ticks=(0, 50, 100)),
        layers=[Layer("box", x="second", x2="until", y="low", y2="share", colour="label", opacity=0.7, tips=tips)],
        rows=rows,
        series={"label": LegendSeries(list(dict.fromkeys(row["label"] for row in rows)))},
        limits=[Limit(100.0 * WAITED_SHARE, "limit")],
        height=70,
        paper=(560, 45),
    )
