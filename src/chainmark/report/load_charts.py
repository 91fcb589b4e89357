"""Charts of a load test: capacities, latency by load, and its distribution step by step.

Colours, dashes and shapes carry the same information, so each chart is readable without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, Kind, LoadReport, StepEntry
from chainmark.report import load_text as text
from chainmark.report.chart import BAD, QUIET, SHAPES, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of
from chainmark.report.load_server import use_charts

CENTILES = ("p50", "p95", "p99")
_FEWEST_LEVELS = 2
_MOST_LINES = 6  # of a chart of distributions: more are indistinguishable
_MOST_CURVE_POINTS = 200
_ROW_PX = 26
_PLOT_PX = 240  # clients and rates are next to each other
_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_OUTCOME_SHAPES = {"pass": "circle", "fail": "triangle-up", "inconclusive": "diamond", "generator-limited": "square"}

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class EndpointSide:
    """One endpoint of one server."""

    name: str
    endpoint: EndpointEntry

    def steps(self, kind: Kind) -> list[StepEntry]:
        """Its steps with this kind of load."""
        return [step for step in self.endpoint.steps if step.kind == kind]


def capacity_charts(report: LoadReport) -> list[Chart]:
    """Every endpoint's capacity in one chart, for clients and for rates."""
    return [drawn for kind in text.kinds_of(report.targets) if (drawn := _capacity_chart(report, kind))]


def _capacity_chart(report: LoadReport, kind: Kind) -> Chart | None:
    names = text.names_of(report.targets)
    rows: list[dict[str, Any]] = []
    for name, target in zip(names, report.targets, strict=True):
        for endpoint in target.endpoints:
            capacity = text.capacity_of(endpoint, kind)
            if capacity is None:
                continue
            row = {
                "label": endpoint.label,
                "target": name,
                "capacity": capacity.capacity or None,
                "low": capacity.low or None,
                "high": capacity.high,
                "text": text.capacity_text(capacity),
                "between": text.interval_text(capacity),
                "required": report.required.get(f"{endpoint.id}.{kind}"),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
    labels = list(dict.fromkeys(row["label"] for row in rows))
    # A single figure needs no chart in addition to the table.
    if len(rows) < 2 or not any(row.get("capacity") for row in rows):
        return None
    spans = [row for row in rows if row.get("low") and row.get("high")]
    notes = ["Bars: the interval."] if spans else []
    required = [row for row in rows if "required" in row]
    if required:
        notes.append("Vertical ticks: the required capacity.")
    missing = [f"{row['target']} {row['label']}" if len(names) > 1 else row["label"]
               for row in rows if "capacity" not in row]  # fmt: skip
    if missing:
        notes.append(f"No level passed, or nothing was decided: {', '.join(missing)}.")
    tooltips = [
        Tooltip("endpoint", "label"),
        Tooltip("server", "target"),
        Tooltip("capacity", "text"),
        Tooltip("interval", "between"),
    ]
    look: dict[str, Any] = {"y": "label", "colour": "target", "offset": "target"}
    return Chart(
        id=f"capacity-{kind}",
        title=f"{text.KIND_NAMES[kind]} sustained by each endpoint",
        x=Axis(text.KIND_AXES[kind], log_beyond=_WIDE_RATIO, zero=True, nice=True, whole=kind == "clients"),
        y=Axis(names=labels),
        layers=[
            *([Layer("interval", "spans", x="low", x2="high", **look)] if spans else []),
            Layer("points", "drawn", x="capacity", style="target", size=65, opacity=1, tips=tooltips, **look),
            Layer("text", "drawn", x="capacity", text="text", nudge=(0, -11), **look),
            *([Layer("tick", "required", "required", "label", colour=BAD)] if required else []),
        ],
        data={
            "spans": columns_of(spans),
            "drawn": columns_of(row for row in rows if row.get("capacity")),
            "required": columns_of(required),
        },
        series={"target": LegendSeries(names)},
        note=" ".join(notes),
        wide=True,
        height=130,
        row=_ROW_PX * max(1, (len(names) + 1) // 2),
        on_terminal=True,
        beside={label: " / ".join(row["text"] for row in rows if row["label"] == label) for label in labels},
    )


def sides_of(report: LoadReport, id_: str) -> list[EndpointSide]:
    """An endpoint on every server that has it."""
    names = text.names_of(report.targets)
    return [
        EndpointSide(name, endpoint)
        for name, target in zip(names, report.targets, strict=True)
        for endpoint in target.endpoints
        if endpoint.id == id_
    ]


def load_charts(report: LoadReport) -> list[Chart]:
    """Latency by load: one chart per endpoint and kind, with all servers; below it, the resource use of each.

    A single level is no curve: the table of fixed levels has it.
    """
    ids = text.endpoint_ids(report)
    kinds = text.kinds_of(report.targets)
    few = len(ids) * len(kinds) <= 4
    charts: list[Chart] = []
    for id_ in ids:
        for kind in kinds:
            sides = sides_of(report, id_)
            if (
                len({step.level for side in sides for step in side.endpoint.steps if step.kind == kind})
                < _FEWEST_LEVELS
            ):
                continue
            used = use_charts(report, id_, kind)
            drawn = _load_chart(sides, id_, kind, few=few)
            # As wide as the charts below it, so that a level has one place in all of them.
            charts += [*([replace(drawn, half=not used)] if drawn else []), *used]
    return charts


def _load_chart(sides: Sequence[EndpointSide], id_: str, kind: Kind, *, few: bool) -> Chart | None:
    alone = len(sides) == 1
    rows = [row for side in sides for row in _points(side, kind, alone=alone)]
    messages = [row for row in rows if row["value"] is not None]
    if not messages:
        return None
    limits_s = list(dict.fromkeys(limit for side in sides for limit in _limits(side.endpoint)))
    for row in messages:
        row["value"] = _in_ms(row["value"])
    label = sides[0].endpoint.label
    level, latency = text.KIND_AXES[kind], f"latency, {text.MS.symbol}"
    marks = _marks(sides, kind)
    missing = sum(row["value"] is None for row in rows)
    notes = ["Lines run through the median of each level's steps."]
    if missing:
        notes.append(f"Without a mark: {units.plural(missing, 'centile')}, not estimable or without a response.")
    tips = [
        Tooltip("line", "label"),
        Tooltip("centile", "centile"),
        Tooltip(level, "level", ",.5g"),
        Tooltip(latency, "value", ",.4g"),
        Tooltip("outcome", "outcome"),
        Tooltip("step", "step"),
    ]
    outcomes = list(dict.fromkeys(row["outcome"] for row in messages))
    colour = QUIET if alone else "label"
    series = {
        "label": LegendSeries(list(dict.fromkeys(row["label"] for row in messages))),
        "outcome": LegendSeries(outcomes, shapes=[_OUTCOME_SHAPES.get(name, SHAPES[4]) for name in outcomes]),
    }
    if not alone:
        series["centile"] = LegendSeries(CENTILES)
    return Chart(
        id=f"load-{kind}-{id_}",
        title=f"{label}: latency against {'concurrency' if kind == 'clients' else 'arrival rate'}",
        x=Axis(level, log_beyond=_WIDE_RATIO, whole=kind == "clients"),
        y=Axis(latency, log_beyond=_WIDE_RATIO, zero=True, nice=True),
        layers=[
            Layer("interval", "capacities", x="level", colour=colour, width=1.5),
            Layer("text", "capacities", x="level", colour=colour, text="text", above="row", align="right",
                  nudge=(3, 0)),
            # With one server, its centiles are distinguished like several servers; with several, by dashes.
            Layer("line", "lines", "level", "value", colour="label", style="label" if alone else "centile",
                  detail="series", opacity=1),
            Layer("points", "points", "level", "value", colour="label", style="outcome", size=42, opacity=0.9,
                  tips=tips),
        ],
        data={
            "capacities": columns_of(marks),
            "lines": columns_of(_medians(sides, kind)),
            "points": columns_of(messages),
        },
        series=series,
        limits=[Limit(limit * text.MS.factor, name) for limit, name in limits_s],
        note=" ".join(notes),
        half=True,
        height=_PLOT_PX,
        on_terminal=few and alone,
    )  # fmt: skip


def _limits(endpoint: EndpointEntry) -> list[tuple[float, str]]:
    sla = endpoint.sla
    results = [(sla.p99_s, f"SLA p99 {units.duration(sla.p99_s)}")]
    if sla.p95_s is not None:
        results.append((sla.p95_s, f"SLA p95 {units.duration(sla.p95_s)}"))
    return [limit for limit in results if limit[0] > 0.0]


def _points(side: EndpointSide, kind: Kind, *, alone: bool) -> list[dict[str, Any]]:
    """Three centiles per step, without missing values."""
    rows = []
    for step in side.steps(kind):
        for name in CENTILES:
            value = getattr(step.of_due, name).value_s
            rows.append(
                {
                    "label": name if alone else side.name,
                    "centile": name,
                    "series": f"{side.name} {name}",
                    "level": step.level,
                    "value": None if value is None or value <= 0.0 else value,
                    "outcome": step.outcome,
                    "step": f"{step.number}, {step.phase}",
                }
            )
    return rows


def _medians(sides: Sequence[EndpointSide], kind: Kind) -> list[dict[str, Any]]:
    """One point per level of each line."""
    return [
        {"label": name if len(sides) == 1 else side.name, "centile": name, "series": f"{side.name} {name}",
         "level": figures.level, "value": _in_ms(value_s)}
        for side in sides
        for name in CENTILES
        for figures in side.endpoint.levels
        if figures.kind == kind and (value_s := getattr(figures, f"{name}_s")) is not None
    ]  # fmt: skip


def _in_ms(seconds: float) -> float:
    return units.rounded(seconds * text.MS.factor, 5)


def _marks(sides: Sequence[EndpointSide], kind: Kind) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for side in sides:
        capacity = text.capacity_of(side.endpoint, kind)
        if capacity and capacity.capacity:
            name = "" if len(sides) == 1 else f"{side.name} "
            words = f"{name or 'capacity '}{text.capacity_text(capacity)}"
            rows.append({"label": side.name, "level": capacity.capacity, "text": words, "row": len(rows)})
    return rows


def distribution_charts(report: LoadReport) -> list[Chart]:
    """The latencies' distributions at some levels, server by server."""
    charts = []
    several = len(report.targets) > 1
    for id_ in text.endpoint_ids(report):
        for index, side in enumerate(sides_of(report, id_)):
            for kind in text.kinds_of(report.targets):
                name = f", {side.name}" if several else ""
                drawn = _distribution_chart(side, kind, f"distribution-{kind}-{id_}-{index}", name)
                charts += [drawn] if drawn else []
    return charts


def _distribution_chart(side: EndpointSide, kind: Kind, id_: str, name: str) -> Chart | None:
    measured = [step for step in side.steps(kind) if any(value > 0.0 for _, value in step.curve)]
    if not measured:
        return None
    chosen = _some_steps(side, kind, measured)
    limit_s = side.endpoint.sla.p99_s
    labels = _step_names(side, kind, chosen)
    rows: list[dict[str, Any]] = [
        {"label": label, "value": _in_ms(value), "slower": units.rounded(1.0 - fraction, 5),
         "order": order}
        for label, step in zip(labels, chosen, strict=True)
        for order, (fraction, value) in enumerate(_thinned(step.curve))
        # 100 % is infinitely far on an axis that is stretched towards it.
        if value > 0.0 and 0.0 <= fraction < 1.0
    ]  # fmt: skip
    if not rows:
        return None
    axis = f"latency, {text.MS.symbol}"
    least = min([0.001, *(row["slower"] for row in rows)])
    note = "A step meets its p99 limit if its line passes above the crossing of the two dashed lines."
    if len(chosen) < len(measured):
        note += f" {len(chosen)} of {len(measured)} steps are drawn; the table of steps has all."
    tips = [Tooltip("step", "label"), Tooltip(axis, "value", ",.4g"), Tooltip("took longer", "slower", ".4%")]
    return Chart(
        id=id_,
        title=f"{side.endpoint.label}{name}: distribution of latencies, {text.KIND_WORDS[kind]}",
        x=Axis(axis, log_beyond=_WIDE_RATIO),
        y=Axis(
            "requests answered within that time",
            numbers="answered",
            log_beyond=1.0,
            domain=(1.0, least),
            ticks=[share for share in (1.0, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001) if share >= least],
        ),
        layers=[
            Layer("line", x="value", y="slower", colour="label", style="label", order="order", width=1.8, opacity=1,
                  tips=tips, nearest=True)
        ],
        data={"points": columns_of(rows)},
        series={"label": LegendSeries(labels)},
        limits=[
            Limit(limit_s * text.MS.factor, f"SLA p99 {units.duration(limit_s)}", along="x"),
            Limit(0.01),
        ],
        note=note,
        half=True,
        height=_PLOT_PX,
    )  # fmt: skip


def _some_steps(side: EndpointSide, kind: Kind, known: Sequence[StepEntry]) -> list[StepEntry]:
    """One step per level: the lowest, the highest, the two that determine the capacity, and some between them."""
    capacity = text.capacity_of(side.endpoint, kind)
    numbers = {capacity.best_step, capacity.fail_step} if capacity else set()
    by_level: dict[float, StepEntry] = {}
    for step in sorted(known, key=lambda item: (item.number in numbers, item.number)):
        by_level[step.level] = step
    levels = sorted(by_level)
    selected = {levels[0], levels[-1], *(level for level in levels if by_level[level].number in numbers)}
    others = [level for level in levels if level not in selected]
    room = min(_MOST_LINES - len(selected), len(others))
    selected |= {others[index * len(others) // room] for index in range(room)}
    return [by_level[level] for level in levels if level in selected]


def _step_names(side: EndpointSide, kind: Kind, steps: Sequence[StepEntry]) -> list[str]:
    capacity = text.capacity_of(side.endpoint, kind)
    roles = {capacity.best_step: " (capacity)", capacity.fail_step: " (first fail)"} if capacity else {}
    return [f"{text.level_of(step)}{roles.get(step.number, '')}" for step in steps]


def _thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A sample of the points, and the complete tail."""
    if len(curve) <= _MOST_CURVE_POINTS:
        return list(curve)
    tail = _MOST_CURVE_POINTS // 4
    head = len(curve) - tail
    stride = -(-head // (_MOST_CURVE_POINTS - tail))
    return [*curve[:head:stride], *curve[head:]]
