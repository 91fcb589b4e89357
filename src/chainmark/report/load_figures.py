"""What the charts of a load test show, and what they cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, Kind, LoadReport, StepEntry
from chainmark.report import load_text as text
from chainmark.report.load_charts import (
    CAPACITY_ROW_PX,
    Rows,
    capacity_chart,
    distribution_chart,
    load_chart,
)
from chainmark.report.sheet import Figure, Strip

CENTILES: tuple[tuple[str, Callable[[StepEntry], float | None]], ...] = (
    ("p50", text.p50_s),
    ("p95", text.p95_s),
    ("p99", text.p99_s),
)
PAPER = {"width": 560, "height": 165}
_MOST_LINES = 6  # of a chart of distributions: more cannot be told apart
_MOST_CURVE_POINTS = 200
_ROW_PX = 26


@dataclass(frozen=True)
class Side:
    """One endpoint of one server."""

    name: str
    endpoint: EndpointEntry

    def steps(self, kind: Kind) -> list[StepEntry]:
        """Its steps of this kind of load."""
        return [step for step in self.endpoint.steps if step.kind == kind]


def capacity_figures(report: LoadReport) -> list[Figure]:
    """Every endpoint's capacity in one picture, for clients and for rates."""
    return [drawn for kind in text.kinds_of(report.targets) if (drawn := _capacity_figure(report, kind))]


def _capacity_figure(report: LoadReport, kind: Kind) -> Figure | None:
    names = text.names_of(report.targets)
    rows: list[dict[str, Any]] = []
    for name, target in zip(names, report.targets, strict=True):
        for endpoint in target.endpoints:
            found = text.capacity_of(endpoint, kind)
            if found is None:
                continue
            row = {
                "label": endpoint.label,
                "target": name,
                "capacity": found.capacity or None,
                "low": found.low or None,
                "high": found.high,
                "text": text.capacity_text(found),
                "between": text.interval_text(found),
                "required": report.required.get(f"{endpoint.id}.{kind}"),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
    labels = list(dict.fromkeys(row["label"] for row in rows))
    # Of a single figure there is nothing to see that the table does not say.
    if len(rows) < 2 or not any(row.get("capacity") for row in rows):
        return None
    spec = capacity_chart(rows, labels, names, text.KIND_AXES[kind])
    spec["height"] = max(130, _ROW_PX * len(labels) * max(1, (len(names) + 1) // 2))
    notes = ["Bars: the interval."]
    if any("required" in row for row in rows):
        notes.append("Upright ticks: what is required.")
    missing = [f"{row['target']} {row['label']}" if len(names) > 1 else row["label"]
               for row in rows if "capacity" not in row]  # fmt: skip
    if missing:
        notes.append(f"No level passed, or nothing was decided: {', '.join(missing)}.")
    strips = _capacity_strips(rows, labels, names)
    return Figure(
        id=f"capacity-{kind}",
        title=f"{text.KIND_NAMES[kind]} that each endpoint takes",
        spec=spec,
        paper=[{**spec, "width": 560}],
        note=" ".join(notes),
        wide=True,
        strips=strips,
        kinds=names if len(names) > 1 else ["all passed until here", "all failed from here", "capacity"],
    )


def _capacity_strips(rows: Rows, labels: Sequence[str], names: Sequence[str]) -> list[Strip]:
    """A row an endpoint along a logarithmic axis; of one server with its interval."""
    figures = [row[key] for row in rows for key in ("capacity", "low", "high") if row.get(key)]
    if not figures:
        return []
    place = _logarithmic(min(figures), max(figures))
    strips = []
    for label in labels:
        own = [row for row in rows if row["label"] == label]
        if len(names) > 1:
            marks = [(names.index(row["target"]), place(row["capacity"])) for row in own if row.get("capacity")]
        else:
            keys = ("low", "high", "capacity")
            marks = [(kind, place(own[0][key])) for kind, key in enumerate(keys) if own[0].get(key)]
        strips.append(Strip(label, marks, " / ".join(row["text"] for row in own)))
    return strips


def _logarithmic(low: float, high: float) -> Callable[[float], float]:
    span = math.log(high / low) if low > 0.0 else 0.0
    return lambda value: math.log(value / low) / span if span > 0.0 and value > 0.0 else 0.0


def figure(value: float) -> float:
    """To five digits: more cannot be drawn, and make a page long."""
    return float(f"{value:.5g}")


def sides_of(report: LoadReport, id_: str) -> list[Side]:
    """An endpoint on every server that has it."""
    names = text.names_of(report.targets)
    return [
        Side(name, endpoint)
        for name, target in zip(names, report.targets, strict=True)
        for endpoint in target.endpoints
        if endpoint.id == id_
    ]


def load_figures(report: LoadReport) -> list[Figure]:
    """Latency against load: one an endpoint and kind, all servers in it."""
    ids = text.endpoint_ids(report)
    kinds = text.kinds_of(report.targets)
    strips = len(ids) * len(kinds) <= 4
    found = [_load_figure(sides_of(report, id_), id_, kind, strips=strips) for id_ in ids for kind in kinds]
    return [drawn for drawn in found if drawn]


def _load_figure(sides: Sequence[Side], id_: str, kind: Kind, *, strips: bool) -> Figure | None:
    rows = [row for side in sides for row in _points(side, kind, alone=len(sides) == 1)]
    told = [row for row in rows if row["value"] is not None]
    limits_s = list(dict.fromkeys(limit for side in sides for limit in _limits(side.endpoint)))
    for row in told:
        row["value"] = figure(row["value"] * text.MS.factor)
    if not told:
        return None
    label = sides[0].endpoint.label
    labels = list(dict.fromkeys(row["label"] for row in told))
    centiles = [] if len(sides) == 1 else [name for name, _ in CENTILES]
    limits = [(limit * text.MS.factor, name) for limit, name in limits_s]
    axes = (text.KIND_AXES[kind], f"latency, {text.MS.symbol}")
    lines, marks = _medians(told), _marks(sides, kind)
    specs = [
        load_chart(told, lines, limits, marks, series=(labels, centiles), axes=axes, interactive=interactive)
        for interactive in (True, False)
    ]
    untold = sum(row["value"] is None for row in rows)
    notes = ["Lines run through the median of each level's steps."]
    if untold:
        notes.append(f"Without a mark: {units.plural(untold, 'centile')}, not estimable or never answered.")
    strip_rows = _load_strips(sides[0], kind) if strips and len(sides) == 1 else []
    return Figure(
        id=f"load-{kind}-{id_}",
        title=f"{label}: latency against {'concurrency' if kind == 'clients' else 'arrival rate'}",
        spec=specs[0],
        paper=[{**specs[1], **PAPER}],
        note=" ".join(notes),
        strips=strip_rows,
        kinds=[*(name for name, _ in CENTILES), "limit of the p99"],
    )


def _limits(endpoint: EndpointEntry) -> list[tuple[float, str]]:
    agreed = endpoint.agreement
    found = [(agreed.p99_s, f"SLA p99 {units.tidy_quantity(agreed.p99_s, 's')}")]
    if agreed.p95_s is not None:
        found.append((agreed.p95_s, f"SLA p95 {units.tidy_quantity(agreed.p95_s, 's')}"))
    return [limit for limit in found if limit[0] > 0.0]


def _points(side: Side, kind: Kind, *, alone: bool) -> list[dict[str, Any]]:
    """Three centiles a step; a value of None cannot be drawn."""
    rows = []
    for step in side.steps(kind):
        for name, read in CENTILES:
            value = read(step)
            rows.append(
                {
                    "label": name if alone else side.name,
                    "centile": name,
                    "series": f"{side.name} {name}",
                    "level": step.level,
                    "value": None if value is None or not math.isfinite(value) or value <= 0.0 else value,
                    "outcome": step.outcome,
                    "step": f"{step.number}, {step.phase}",
                }
            )
    return rows


def _medians(points: Rows) -> list[dict[str, Any]]:
    """One point a level of each line."""
    found: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in points:
        found.setdefault((row["series"], row["level"]), []).append(row)
    return [
        {**{key: rows[0][key] for key in ("label", "centile", "series", "level")},
         "value": median(row["value"] for row in rows)}
        for _, rows in sorted(found.items())
    ]  # fmt: skip


def _marks(sides: Sequence[Side], kind: Kind) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for side in sides:
        found = text.capacity_of(side.endpoint, kind)
        if found and found.capacity:
            name = "" if len(sides) == 1 else f"{side.name} "
            words = f"{name or 'capacity '}{text.capacity_text(found)}"
            rows.append(
                {"label": side.name, "level": found.capacity, "text": words, "row": -2 - CAPACITY_ROW_PX * len(rows)}
            )
    return rows


def _load_strips(side: Side, kind: Kind) -> list[Strip]:
    """A row a step that has centiles, along a logarithmic axis of latencies."""
    limit_s = side.endpoint.agreement.p99_s
    steps = sorted(side.steps(kind), key=lambda step: (step.level, step.number))
    told = {step.number: _placed(step) for step in steps}
    values = [limit_s, *(value for found in told.values() for _, value in found)]
    place = _logarithmic(min(values), max(values))
    return [
        Strip(
            f"{text.level_of(step)}, {step.outcome}",
            [*((mark, place(value)) for mark, value in told[step.number]), (3, place(limit_s))],
            f"{text.milliseconds(text.p99_s(step)).text} ms" if (text.p99_s(step) is not None) else units.NOT_ESTIMABLE,
        )
        for step in steps
        if told[step.number]
    ]


def _placed(step: StepEntry) -> list[tuple[int, float]]:
    """The centiles that can be told, by their place in `CENTILES`."""
    found = [(place, read(step)) for place, (_, read) in enumerate(CENTILES)]
    return [(place, value) for place, value in found if value is not None and math.isfinite(value) and value > 0.0]


def distribution_figures(report: LoadReport) -> list[Figure]:
    """The latencies' distributions at some levels, server by server."""
    figures = []
    several = len(report.targets) > 1
    for id_ in text.endpoint_ids(report):
        for place, side in enumerate(sides_of(report, id_)):
            for kind in text.kinds_of(report.targets):
                name = f", {side.name}" if several else ""
                drawn = _distribution_figure(side, kind, f"distribution-{kind}-{id_}-{place}", name)
                figures += [drawn] if drawn else []
    return figures


def _distribution_figure(side: Side, kind: Kind, id_: str, name: str) -> Figure | None:
    known = [step for step in side.steps(kind) if any(value > 0.0 for _, value in step.curve)]
    if not known:
        return None
    chosen = _some_steps(side, kind, known)
    limit_s = side.endpoint.agreement.p99_s
    labels = _step_names(side, kind, chosen)
    rows = [
        {"label": label, "value": figure(value * text.MS.factor), "slower": figure(1.0 - fraction), "order": order}
        for label, step in zip(labels, chosen, strict=True)
        for order, (fraction, value) in enumerate(_thinned(step.curve))
        # 100 % is endlessly far on an axis that is stretched towards it.
        if value > 0.0 and 0.0 <= fraction < 1.0
    ]
    if not rows:
        return None
    limit = (limit_s * text.MS.factor, f"SLA p99 {units.tidy_quantity(limit_s, 's')}")
    axis = f"latency, {text.MS.symbol}"
    specs = [distribution_chart(rows, labels, limit, axis, interactive=interactive) for interactive in (True, False)]
    note = "A step keeps to its p99 where its line passes above the crossing of the two dashed lines."
    if len(chosen) < len(known):
        note += f" {len(chosen)} of {len(known)} steps are drawn; the table of steps has all."
    return Figure(
        id=id_,
        title=f"{side.endpoint.label}{name}: distribution of latencies, {text.KIND_WORDS[kind]}",
        spec=specs[0],
        paper=[{**specs[1], **PAPER}],
        note=note,
    )


def _some_steps(side: Side, kind: Kind, known: Sequence[StepEntry]) -> list[StepEntry]:
    """One step a level: the lowest, the highest, the two that the answer stands on, and some between them."""
    found = text.capacity_of(side.endpoint, kind)
    wanted = {found.best_step, found.fail_step} if found else set()
    by_level: dict[float, StepEntry] = {}
    for step in sorted(known, key=lambda one: (one.number in wanted, one.number)):
        by_level[step.level] = step
    levels = sorted(by_level)
    kept = {levels[0], levels[-1], *(level for level in levels if by_level[level].number in wanted)}
    others = [level for level in levels if level not in kept]
    room = min(_MOST_LINES - len(kept), len(others))
    kept |= {others[index * len(others) // room] for index in range(room)}
    return [by_level[level] for level in levels if level in kept]


def _step_names(side: Side, kind: Kind, steps: Sequence[StepEntry]) -> list[str]:
    found = text.capacity_of(side.endpoint, kind)
    roles = {found.best_step: " (capacity)", found.fail_step: " (first fail)"} if found else {}
    return [f"{text.level_of(step)}{roles.get(step.number, '')}" for step in steps]


def _thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every so many points, and the tail whole."""
    if len(curve) <= _MOST_CURVE_POINTS:
        return list(curve)
    tail = _MOST_CURVE_POINTS // 4
    head = len(curve) - tail
    stride = -(-head // (_MOST_CURVE_POINTS - tail))
    return [*curve[:head:stride], *curve[head:]]
