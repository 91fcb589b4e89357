"""A server's resource use under load: the bottleneck, shares of the available amounts by level, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainmark.capacity.verdict import level_text
from chainmark.core import units
from chainmark.core.load_report import (
    EndpointEntry,
    Kind,
    LevelUse,
    LoadReport,
    ResourceEntry,
    StatementEntry,
    StepEntry,
    TargetEntry,
)
from chainmark.core.wording import cut
from chainmark.report import load_text as text
from chainmark.report.blocks import Block, Column, Remarks, Table, TableCell, TableRow, row_of, words
from chainmark.report.chart import QUIET, Axis, Chart, Layer, LegendSeries, Limit, Tooltip, columns_of

_MOST_LINES = 6  # of a chart: more are indistinguishable
_WIDE_RATIO = 12.0  # more than a decade does not fit a linear axis
_FULL_PERCENT = 95.0
_ALL_PERCENT = 100.0
_LONGEST_STATEMENT = 90
_MOST_STATEMENTS = 5


def exhausted_remarks(report: LoadReport) -> list[Block]:
    """A sentence for each endpoint and kind of load with observations."""
    several = len(report.targets) > 1
    messages = []
    for name, target in zip(text.names_of(report.targets), report.targets, strict=True):
        for endpoint in target.endpoints:
            for exhausted in endpoint.exhausted:
                prefix = f"{f'{name} ' if several else ''}{endpoint.label} ({exhausted.kind})"
                messages.append(f"{prefix}: {exhausted.sentence}.")
    return [Remarks("exhausted", "First exhausted resource", messages)] if messages else []


def use_charts(report: LoadReport, id_: str, kind: Kind) -> list[Chart]:
    """Charts of one endpoint on every server: shares of the available amounts by load."""
    several = len(report.targets) > 1
    charts = []
    for index, (name, target) in enumerate(zip(text.names_of(report.targets), report.targets, strict=True)):
        for endpoint in target.endpoints:
            if endpoint.id == id_:
                label = f"{endpoint.label}{f', {name}' if several else ''}"
                drawn = _use_chart(endpoint, kind, label, f"used-{kind}-{id_}-{index}")
                charts += [drawn] if drawn else []
    return charts


def _use_chart(endpoint: EndpointEntry, kind: Kind, label: str, id_: str) -> Chart | None:
    limited = [(resource, shares) for resource in endpoint.resources if (shares := _shares(resource, kind))]
    fullest = sorted(limited, key=lambda item: -max(item[1].values()))[:_MOST_LINES]
    rows: list[dict[str, Any]] = [
        {"label": _short(resource), "level": level, "value": units.rounded(_ALL_PERCENT * share, 4)}
        for resource, shares in fullest for level, share in shares.items()
    ]  # fmt: skip
    if not rows:
        return None
    names = list(dict.fromkeys(row["label"] for row in rows))
    level, share = text.KIND_AXES[kind], "share of the limit, %"
    tips = [Tooltip("resource", "label"), Tooltip(level, "level", ",.5g"), Tooltip(share, "value", ",.3g")]
    capacity = text.capacity_of(endpoint, kind)
    marks = [{"level": capacity.capacity}] if capacity and capacity.capacity else []
    note = "Each line is a resource with a known limit: the median of each level's steps."
    if len(fullest) < len(limited):
        note += f" The fullest {len(fullest)} of {len(limited)}; the table has all."
    return Chart(
        id=id_,
        title=f"{label}: server resource use, as a share of the limits",
        x=Axis(level, log_beyond=_WIDE_RATIO),
        y=Axis(share, domain=(0.0, max(_ALL_PERCENT, *(row["value"] for row in rows)))),
        layers=[
            *([Layer("interval", "capacities", x="level", colour=QUIET, width=1.5)] if marks else []),
            Layer("line", x="level", y="value", colour="label", style="label", opacity=1),
            Layer("points", x="level", y="value", colour="label", style="label", size=36, opacity=0.9, tips=tips),
        ],
        data={"points": columns_of(rows), **({"capacities": columns_of(marks)} if marks else {})},
        series={"label": LegendSeries(names)},
        limits=[Limit(_FULL_PERCENT, "full")],
        note=note,
        on_terminal=len(endpoint.exhausted) == 1
        and any(exhausted.finding == "exhausted" for exhausted in endpoint.exhausted),
        height=200,
        paper=(560, 120),
    )


def _short(resource_entry: ResourceEntry) -> str:
    label = resource_entry.label.removeprefix("the server's ").removeprefix("the ")
    reported = label[:1].upper() + label[1:]
    return (
        f"{reported}: {resource_entry.unit} waiting"
        if resource_entry.sort == "waiting" and resource_entry.unit
        else reported
    )


def _shares(resource: ResourceEntry, kind: Kind) -> dict[float, float]:
    """The shares by level."""
    return {use.level: use.share for use in resource.levels if use.kind == kind and use.share is not None}


def _by_level(endpoint: EndpointEntry, kind: Kind) -> dict[float, list[StepEntry]]:
    step_entries: dict[float, list[StepEntry]] = {}
    for step in endpoint.steps:
        if step.kind == kind and not step.partial:
            step_entries.setdefault(step.level, []).append(step)
    return dict(sorted(step_entries.items()))


def use_blocks(report: LoadReport) -> list[Block]:
    """Every endpoint's resources at some levels, the most expensive statements, and the sources."""
    several = len(report.targets) > 1
    blocks: list[Block] = []
    for number, (name, target) in enumerate(zip(text.names_of(report.targets), report.targets, strict=True)):
        for endpoint in target.endpoints:
            label = f"{endpoint.label}{f', {name}' if several else ''}"
            for kind in text.KINDS:
                id_ = f"{kind}-{endpoint.id}-{number}"
                blocks += _use_table(endpoint, kind, f"{label}, {text.KIND_WORDS[kind]}", f"resources-{id_}")
                blocks += _statement_table(endpoint, kind, f"{label}, {text.KIND_WORDS[kind]}", f"statements-{id_}")
        blocks += _sources(target, name, number)
    return blocks


def _use_table(endpoint: EndpointEntry, kind: Kind, title: str, id_: str) -> list[Table]:
    chosen = _levels(endpoint, kind, list(_by_level(endpoint, kind)))
    rows = []
    for resource in endpoint.resources:
        uses = {use.level: use for use in resource.levels if use.kind == kind}
        cells = [_use_cell(resource, uses.get(level)) for level in chosen]
        if any(cell.text != units.NO_DATA for cell in cells):
            limit = f"{amount(resource.limit, resource.unit)} ({resource.limit_is})"
            reported = units.UNSET if resource.limit is None else limit
            rows.append(TableRow([TableCell(_short(resource)), *cells, TableCell(reported)]))
    if not rows:
        return []
    columns = [*words("resource"), *(Column(level_text(kind, level)) for level in chosen), *words("limit")]
    notes = ["Means over the steps of a level, and the median of these; of what only grows, its rate."]
    if endpoint.series_left_out:
        omitted = units.plural(endpoint.series_left_out, "further series", "further series")
        notes.append(f"{omitted} without a known limit in `events/server.parquet`.")
    return [Table(id_, f"{title}: server resource use", columns, rows, notes)]


def _levels(endpoint: EndpointEntry, kind: Kind, known: Sequence[float]) -> list[float]:
    """The lowest, the bottleneck's, the capacity, the first fail, the highest."""
    if not known:
        return []
    capacity = text.capacity_of(endpoint, kind)
    selected = {known[0], known[-1]}
    selected |= {
        exhausted.level for exhausted in endpoint.exhausted if exhausted.kind == kind and exhausted.level is not None
    }
    if capacity:
        numbers = {capacity.best_step, capacity.fail_step}
        selected |= {step.level for step in endpoint.steps if step.kind == kind and step.number in numbers}
    return [level for level in known if level in selected]


def _use_cell(resource: ResourceEntry, use: LevelUse | None) -> TableCell:
    if use is None:
        return TableCell(units.NO_DATA, emphasis="quiet")
    reported = amount(use.mean, resource.unit)
    if use.share is None or resource.unit == "fraction":
        return TableCell(reported)
    share = units.plain_percent(use.share, decimals=0)
    return TableCell(
        f"{reported}, {share}", emphasis="caution" if _ALL_PERCENT * use.share >= _FULL_PERCENT else "plain"
    )


def amount(value: float | None, unit: str) -> str:
    """A figure with its unit, short: "0.98 cores", "12.1 MiB/s", "38 %"."""
    if value is None:
        return units.NO_DATA
    if unit == "fraction":
        return units.plain_percent(value, decimals=0)
    if unit.startswith("bytes"):
        return units.byte_size(round(value)) + unit.removeprefix("bytes")
    reported = units.tidy(value, 3)
    if reported == "1":
        unit = unit.removesuffix("s")
    return f"{reported}{'' if unit.startswith('/') or not unit else ' '}{unit}"


def _statement_table(endpoint: EndpointEntry, kind: Kind, title: str, id_: str) -> list[Table]:
    """The use at the highest of the chosen levels with a reading."""
    by_level = _by_level(endpoint, kind)
    for level in reversed(_levels(endpoint, kind, list(by_level))):
        numbers = {step.number for step in by_level[level]}
        statements = [statement for statement in endpoint.statements if statement.step in numbers]
        last = [statement for statement in statements if statement.step == max(each.step for each in statements)]
        if last:
            rows = [_statement_row(statement) for statement in last[:_MOST_STATEMENTS]]
            columns = [Column("statement", kind="code"), Column("sessions busy"), Column("calls/s"), Column("each, ms")]
            level_name = level_text(kind, level)
            return [Table(id_, f"{title}: what the database spent its time on at {level_name}", columns, rows)]
    return []


def _statement_row(statement_entry: StatementEntry) -> TableRow:
    each = (
        units.tidy(statement_entry.busy / statement_entry.calls_per_s * text.MS.factor, 3)
        if statement_entry.calls_per_s > 0.0
        else units.NO_DATA
    )
    return row_of(
        cut(statement_entry.text, _LONGEST_STATEMENT),
        amount(statement_entry.busy, ""),
        amount(statement_entry.calls_per_s, ""),
        each,
    )


def _sources(target: TargetEntry, name: str, number: int) -> list[Table]:
    rows = [
        TableRow(
            [TableCell(source.name), TableCell(source.what), TableCell(units.count(source.read)),
             TableCell(units.count(source.missed), emphasis="caution" if source.missed else "plain"),
             TableCell(source.why or units.UNSET)]
        )
        for source in target.sources
    ]  # fmt: skip
    columns = [*words("source", "what"), Column("readings"), Column("not answered"), *words("why")]
    return [Table(f"sources-{number}", f"{name}: monitored sources", columns, rows)] if rows else []
