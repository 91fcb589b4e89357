"""The time lines of a load test, step after step: latencies, and errors by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainmark.capacity.sla import WAITED_SHARE
from chainmark.capacity.summaries import BinnedSeconds, seconds_of
from chainmark.core import units
from chainmark.core.load_report import Kind, LoadReport
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
class _Track:
    """The common parts of two charts of the same seconds."""

    side: EndpointSide
    seconds: BinnedSeconds
    id: str
    name: str
    note: str


def _places(seconds: BinnedSeconds) -> list[dict[str, Any]]:
    """The steps' positions, with their levels if there is room."""
    across = sum(span.length for span in seconds.spans)
    return [
        {"begin": span.begin, "warm": span.warm,
         "text": text.short_level(span.step) if span.length >= _LEAST_TEXT_SHARE * across else ""}
        for span in seconds.spans
    ]  # fmt: skip


def timelines_of(side: EndpointSide, kind: Kind, id_: str, name: str) -> list[Chart]:
    """The charts of the steps of one kind of load at one endpoint of one server."""
    seconds = seconds_of(side.endpoint, kind)
    if not seconds.bins:
        return []
    note = "Grey: warm-up, excluded from all figures. Top: the level of each step."
    if seconds.size > 1:
        joined = f"{seconds.size} seconds: their median p50, their worst p99 and max, all their errors."
        note += f" Each point covers {joined}"
    track = _Track(side, seconds, id_, name, note)
    return [drawn for drawn in (_latency_timeline(track), _error_timeline(track), _waiting_strip(track)) if drawn]


def _latency_timeline(track: _Track) -> Chart | None:
    limit_s = track.side.endpoint.sla.p99_s
    rows: list[dict[str, Any]] = [
        {"second": item.begin + 0.5 * (item.end - item.begin), "label": label,
         "value": units.rounded(value * text.MS.factor, 5), "series": f"{label} {item.step.number}",
         "text": f"{item.step.number}: {text.level_of(item.step)}"}
        for item in track.seconds.bins for label, value in item.latencies_s.items()
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
        x=Axis("seconds of load, step after step", domain=(0.0, track.seconds.bins[-1].end), whole=True),
        layers=[*steps, *layers],
        data={"steps": columns_of(_places(track.seconds)), "points": columns_of(rows)},
        note=track.note,
        wide=True,
        **rest,
    )


def _error_timeline(track: _Track) -> Chart | None:
    rows: list[dict[str, Any]] = []
    for item in track.seconds.bins:
        low, length = 0.0, max(item.end - item.begin, 1.0)
        for kind, count in item.failed.items():
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
        for item in track.seconds.bins for waiting, share in item.lost.items()
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
