"""What happened second by second, step after step: latencies, and errors by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, Kind, LoadReport, SecondEntry, StepEntry
from chainmark.core.load_verdict import bare_level
from chainmark.report import load_text as text
from chainmark.report.chart import PART_COLOURS, QUIET, Axis, Chart, Layer, Limit, Series, Tip, columns_of
from chainmark.report.load_charts import Rows, Side, sides_of

_MOST_BINS = 400  # of a time line: more cannot be told apart
_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_LEAST_TEXT_SHARE = 0.045  # of a time line: a narrower step has no room for its level


def timeline_charts(report: LoadReport) -> list[Chart]:
    """Second by second: latencies, and errors where there are any."""
    charts = []
    several = len(report.targets) > 1
    for id_ in text.endpoint_ids(report):
        for place, side in enumerate(sides_of(report, id_)):
            for kind in text.kinds_of(report.targets):
                name = f"{f', {side.name}' if several else ''}, {text.KIND_WORDS[kind]}"
                charts += _timelines(side, kind, f"{kind}-{id_}-{place}", name)
    return charts


@dataclass(frozen=True)
class _Bin:
    """Seconds of one step together: from ``begin`` to ``end`` on the axis."""

    step: StepEntry
    begin: float
    end: float
    seconds: list[SecondEntry]


@dataclass(frozen=True)
class _Track:
    """All that two charts of the same seconds share."""

    side: Side
    bins: list[_Bin]
    places: Rows
    id: str
    name: str
    note: str


def _bins(endpoint: EndpointEntry, kind: Kind) -> tuple[list[_Bin], list[dict[str, Any]], int]:
    """The seconds of all steps after each other, the steps' places, and how many seconds stand together."""
    by_step: dict[int, list[SecondEntry]] = {}
    for entry in endpoint.seconds:
        by_step.setdefault(entry.step, []).append(entry)
    steps = [step for step in endpoint.steps if step.number in by_step and step.kind == kind]
    across = sum(_seconds_across(by_step[step.number]) for step in steps)
    size = max(1, -(-across // _MOST_BINS))
    bins: list[_Bin] = []
    places: list[dict[str, Any]] = []
    offset = 0
    for step in steps:
        seconds = sorted(by_step[step.number], key=lambda one: one.second)
        first, length = seconds[0].second, _seconds_across(seconds)
        told = length >= _LEAST_TEXT_SHARE * across
        words = bare_level(step.kind, step.level) + ("/s" if step.kind == "rate" else "")
        warm = offset + min(max(0.0, step.warm_up_s - first), length)
        places.append({"begin": offset, "warm": warm, "text": words if told else ""})
        for start in range(0, length, size):
            together = [one for one in seconds if start <= one.second - first < start + size]
            bins.append(_Bin(step, offset + start, min(offset + start + size, offset + length), together))
        offset += length
    return bins, places, size


def _seconds_across(seconds: Sequence[SecondEntry]) -> int:
    numbers = [one.second for one in seconds]
    return max(numbers) - min(numbers) + 1


def _timelines(side: Side, kind: Kind, id_: str, name: str) -> list[Chart]:
    bins, places, size = _bins(side.endpoint, kind)
    if not bins:
        return []
    note = "Grey: warm-up, which no figure counts. Above: the level of each step."
    if size > 1:
        note += f" Each point stands for {size} seconds: their median p50, their worst p99 and max, all their errors."
    track = _Track(side, bins, places, id_, name, note)
    return [drawn for drawn in (_latency_timeline(track), _error_timeline(track)) if drawn]


def _latency_timeline(track: _Track) -> Chart | None:
    limit_s = track.side.endpoint.agreement.p99_s
    rows: list[dict[str, Any]] = []
    for one in track.bins:
        told = {
            "p50": _over([entry.p50_s for entry in one.seconds], median),
            "p99": _over([entry.p99_s for entry in one.seconds], max),
            "max": _over([entry.max_s for entry in one.seconds], max),
        }
        rows += [
            {"second": one.begin + 0.5 * (one.end - one.begin), "label": label, "value": value,
             "series": f"{label} {one.step.number}", "text": f"{one.step.number}: {text.level_of(one.step)}"}
            for label, value in told.items() if value is not None and value > 0.0
        ]  # fmt: skip
    if not rows:
        return None
    for row in rows:
        row["value"] = units.rounded(row["value"] * text.MS.factor, 5)
    axis = f"latency, {text.MS.symbol}"
    tips = [Tip("step", "text"), Tip("second", "second", ",g"), Tip("line", "label"), Tip(axis, "value", ",.4g")]
    line = Layer("line", x="second", y="value", colour="label", style="label", detail="series", width=1.4, opacity=1)
    dots = Layer("points", x="second", y="value", colour="label", size=10, opacity=1, tips=tips)
    return _over_seconds(
        track,
        f"time-{track.id}",
        f"{track.side.endpoint.label}{track.name}: latency by the second",
        y=Axis(axis, log_beyond=_WIDE_RATIO, zero=True, nice=True),
        layers=[line, dots],
        rows=rows,
        series={"label": Series(list(dict.fromkeys(row["label"] for row in rows)))},
        limits=[Limit(limit_s * text.MS.factor, f"SLA p99 {units.duration(limit_s)}")],
    )


def _over_seconds(track: _Track, id_: str, title: str, *, layers: Sequence[Layer], rows: Rows, **rest: Any) -> Chart:
    """A chart of the seconds: warm-ups shaded, and each step's begin with its level."""
    steps = [
        Layer("box", "steps", x="begin", x2="warm", colour=QUIET, opacity=0.15),
        Layer("interval", "steps", x="begin", colour=QUIET, width=0.7),
        Layer("text", "steps", x="begin", text="text", above=0, align="left", nudge=(1, 0), colour=QUIET, size=10),
    ]
    return Chart(
        id=id_,
        title=title,
        x=Axis("seconds of load, step after step", domain=(0.0, track.bins[-1].end)),
        layers=[*steps, *layers],
        data={"steps": columns_of(track.places), "points": columns_of(rows)},
        note=track.note,
        wide=True,
        **rest,
    )


def _over(values: Sequence[float | None], together: Callable[[list[float]], float]) -> float | None:
    told = [value for value in values if value is not None and math.isfinite(value)]
    return together(told) if told else None


def _error_timeline(track: _Track) -> Chart | None:
    rows: list[dict[str, Any]] = []
    for one in track.bins:
        counts: dict[str, int] = {}
        for entry in one.seconds:
            for kind, count in _failures(entry).items():
                counts[kind] = counts.get(kind, 0) + count
        low, length = 0.0, max(one.end - one.begin, 1.0)
        for kind, count in sorted(counts.items()):
            high = low + count / length
            rows.append(
                {"second": one.begin, "until": one.end, "kind": kind, "low": low, "high": high, "count": count,
                 "text": f"{one.step.number}: {text.level_of(one.step)}"}
            )  # fmt: skip
            low = high
    if not rows:
        return None
    tips = [Tip("step", "text"), Tip("second", "second", ",g"), Tip("failure", "kind"), Tip("failed", "count", ",g")]
    return _over_seconds(
        track,
        f"errors-{track.id}",
        f"{track.side.endpoint.label}{track.name}: errors by the second",
        y=Axis("failed requests per second", zero=True, nice=True),
        layers=[Layer("box", x="second", x2="until", y="low", y2="high", colour="kind", opacity=1, tips=tips)],
        rows=rows,
        series={"kind": Series(list(dict.fromkeys(row["kind"] for row in rows)), PART_COLOURS)},
    )


def _failures(entry: SecondEntry) -> dict[str, int]:
    """By kind; what is of no known kind is "failed"."""
    counts = {kind: count for kind, count in entry.errors.items() if count > 0}
    left = entry.failed - sum(counts.values())
    return {**counts, "failed": counts.get("failed", 0) + left} if left > 0 else counts
