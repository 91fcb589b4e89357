"""The tables of a load test: what each endpoint sustains, the evidence, every step, every kind of error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chainmark.capacity.summaries import error_share, failures_of, non_2xx
from chainmark.capacity.verdict import Ruling, bare_level, level_text
from chainmark.core import units
from chainmark.core.load_report import (
    CapacityChange,
    CapacityEntry,
    EndpointEntry,
    ErrorEntry,
    FixedLevel,
    Kind,
    LoadReport,
    StepEntry,
    TargetEntry,
)
from chainmark.core.verdict import Verdict
from chainmark.core.wording import cut
from chainmark.report import load_text as text
from chainmark.report.blocks import EVERYWHERE, ON_PAGES, Column, Table, TableCell, TableRow, row_of, words
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import LOOKS, verdict_cell

_QUIET = TableCell(units.UNSET, emphasis="quiet")
_LONGEST_WORDS = 44  # of a cell: longer texts are below the table
_MOST_STEPS_ON_TERMINAL = 40
_GENERATOR = (
    "CPU: of the generator's threads. Lag: p99 of the time from a request's due time until it is sent. Timer delay: "
    "p99 of the delay of the generator's timer. Run queue: share of the time in which the generator or the server was "
    "runnable but other processes used the processors."
)


def capacity_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table:
    """The table of the published pages, and next to it the same for an arrival rate."""
    kinds = text.kinds_of([target])
    main: Kind = kinds[0] if kinds else "clients"
    second: Kind | None = kinds[1] if len(kinds) > 1 else None
    first = "max concurrency" if main == "clients" else "max rate, requests/s"
    headings = [first, "p95, ms", "p99, ms", "non-2xx", "error rate, %", "reqs/sec"]
    columns = [*words("ID, endpoint"), *map(Column, headings)]
    if second:
        columns += [Column("max rate, /s"), Column("p99 at that rate, ms", follows=True)]
    rows = []
    for index, endpoint in enumerate(target.endpoints, start=1):
        rows += _capacity_rows(index, endpoint, main, second)
    notes = ["reqs/sec: correct responses per second at that level.", text.ERRORS_ARE, *text.centile_notes(rows)]
    if second:
        notes.append("max rate: requests due per second; latency counts from the due time.")
    if any(row.second for row in rows):
        notes.append("If the lowest level failed, the row below has its figures.")
    title = f"Capacity of each endpoint{f': {name}' if several else ''}"
    return Table(f"capacity-{number}", title, columns, rows, notes)


def _capacity_rows(place: int, endpoint: EndpointEntry, main: Kind, beside: Kind | None) -> list[TableRow]:
    capacity = text.capacity_of(endpoint, main)
    best = text.shown_step(endpoint, capacity) if capacity else None
    cells = [TableCell(f"{place} {endpoint.label}"), _capacity_cell(capacity), *_figures(best)]
    other = text.capacity_of(endpoint, beside) if beside else None
    if beside:
        other_best = text.shown_step(endpoint, other) if other else None
        cells += [_capacity_cell(other), text.centile_cell(other_best.of_due.p99) if other_best else _QUIET]
    rows = [TableRow(cells)]
    failed = [item if item and item.capacity == 0.0 else None for item in (capacity, other)]
    steps = [text.step_of(endpoint, item.kind, item.fail_step) if item else None for item in failed]
    if any(steps):
        levels = " and ".join(text.level_of(step) for step in steps if step)
        second = [TableCell(f"at {levels}", emphasis="quiet"), TableCell()]
        second += _figures(steps[0]) if steps[0] else [TableCell()] * 5
        if beside:
            second += [TableCell(), text.centile_cell(steps[1].of_due.p99) if steps[1] else TableCell()]
        rows.append(TableRow(second, second=True))
    return rows


def _capacity_cell(capacity_entry: CapacityEntry | None) -> TableCell:
    if capacity_entry is None:
        return _QUIET
    return TableCell(text.capacity_text(capacity_entry), emphasis=text.capacity_emphasis(capacity_entry))


def _figures(step: StepEntry | None) -> list[TableCell]:
    """p95, p99, non-2xx, error rate, responses per second."""
    if step is None:
        return [_QUIET] * 5
    return [
        text.centile_cell(step.of_due.p95),
        text.centile_cell(step.of_due.p99),
        TableCell(units.count(non_2xx(step))),
        text.percent_figure(error_share(step)),
        text.per_second(step.ok_per_s),
    ]


def basis_table(target: TargetEntry, name: str, number: int, ruled: Sequence[Ruling], *, several: bool) -> Table:
    """The evidence for each capacity: its interval, its samples, its first fail, what stopped it."""
    by_key = {(item.endpoint, item.kind): item for item in ruled if item.number == number}
    has_required = any(item.required is not None for item in by_key.values())
    columns = [*words("capacity"), Column("measured"), *words("interval"), Column("requests"), Column("first fail"),
               Column("p99 at first fail, ms", follows=True), *words("stopped by", "confirmed"),
               *([Column("required")] if has_required else []), *words("verdict")]  # fmt: skip
    rows = []
    for endpoint in target.endpoints:
        for capacity in endpoint.capacities:
            best = text.shown_step(endpoint, capacity)
            fail = text.step_of(endpoint, capacity.kind, capacity.fail_step)
            ruling = by_key.get((endpoint.id, capacity.kind))
            required = ruling.required if ruling else None
            cells = [
                TableCell(f"{endpoint.label} ({capacity.kind})"),
                _capacity_cell(capacity),
                TableCell(text.interval_text(capacity)),
                TableCell(units.count(best.due)) if best else _QUIET,
                TableCell(bare_level(fail.level)) if fail else _QUIET,
                text.centile_cell(fail.of_due.p99) if fail else _QUIET,
                TableCell(text.stopped_text(capacity, endpoint.sla)),
                TableCell("yes" if capacity.confirmed else "no", emphasis="plain" if capacity.confirmed else "quiet"),
            ]
            if has_required:
                cells.append(_QUIET if required is None else TableCell(bare_level(required)))
            rows.append(row_of(*cells, _verdict_cell(ruling)))
    notes = [
        text.INTERVALS_ARE,
        "Confirmed: the capacity and the first failing level were measured again, and all measurements of each agree.",
        *text.centile_notes(rows),
    ]
    return Table(f"basis-{number}", f"Details of the capacities{f': {name}' if several else ''}", columns, rows, notes)


def _verdict_cell(ruling: Ruling | None) -> TableCell:
    if ruling is None:
        return _QUIET
    if not ruling.gates:
        return TableCell(f"{ruling.verdict.value}, not required", emphasis="quiet")
    return verdict_cell(ruling.verdict)


def side_by_side_tables(report: LoadReport) -> list[Table]:
    """Every server's capacities in one row, with the change relative to the first one."""
    if len(report.targets) < 2:
        return []
    tables = [_side_by_side(report, kind) for kind in text.kinds_of(report.targets)]
    return [table for table in tables if table.rows]


def _side_by_side(report: LoadReport, kind: Kind) -> Table:
    names = text.names_of(report.targets)
    columns = [*words("endpoint")]
    for index, name in enumerate(names):
        columns += [Column(name), Column("p99, ms", follows=True)]
        if index:
            columns += [Column("change", follows=True), Column("range", kind="words", follows=True)]
    changes = {(change.target, change.endpoint): change for change in report.changes if change.kind == kind}
    rows = []
    for id_, label in text.endpoint_ids(report).items():
        endpoints = [target.endpoint(id_) for target in report.targets]
        entries = [text.capacity_of(item, kind) if item else None for item in endpoints]
        if not any(entries):
            continue
        cells = [TableCell(label)]
        for index, (endpoint, capacity) in enumerate(zip(endpoints, entries, strict=True)):
            best = text.shown_step(endpoint, capacity) if endpoint and capacity else None
            cells += [_capacity_cell(capacity), text.centile_cell(best.of_due.p99) if best else _QUIET]
            if index:
                cells += _change(changes.get((index, id_)))
        rows.append(TableRow(cells))
    notes = [
        f"Columns of each server: its capacity and the p99 at that level. Change: of the capacity, "
        f"relative to {names[0]}. Range: the smallest and largest change that the intervals of both servers allow."
    ]
    return Table(f"side-by-side-{kind}", f"{text.KIND_NAMES[kind]}, side by side", columns, rows, notes)


def _change(change: CapacityChange | None) -> list[TableCell]:
    if change is None:
        return [_QUIET, TableCell()]
    emphasis: Emphasis = "quiet"
    if change.high is not None and change.high < 0.0:
        emphasis = "worse"
    elif change.low is not None and change.low > 0.0:
        emphasis = "better"
    point = TableCell(units.UNSET, emphasis="quiet")
    if change.point is not None:
        decimals = units.percent_decimals(change.point)
        point = TableCell(units.number(change.point * 100.0, decimals, signed=True), "%", emphasis)
    return [point, TableCell(_interval(change).replace(" ", "\u00a0"), emphasis=emphasis)]


def _interval(capacity_change: CapacityChange) -> str:
    if capacity_change.low is not None and capacity_change.high is not None:
        return units.percent_interval(capacity_change.low, capacity_change.high)
    if capacity_change.low is not None:
        return f"≥ {units.percent(capacity_change.low)}"
    return units.NOT_ESTIMABLE if capacity_change.high is None else f"≤ {units.percent(capacity_change.high)}"


def fixed_table(report: LoadReport) -> list[Table]:
    """The same fixed levels on every server: their median p50 and p99 and all their errors."""
    names = text.names_of(report.targets)
    fixed_levels: dict[tuple[str, Kind, float], list[FixedLevel | None]] = {}
    labels = text.endpoint_ids(report)
    for index, target in enumerate(report.targets):
        for endpoint in target.endpoints:
            for fixed_level in endpoint.fixed:
                fixed_levels.setdefault((endpoint.id, fixed_level.kind, fixed_level.level), [None for _ in names])[
                    index
                ] = fixed_level
    if not fixed_levels:
        return []
    columns = [*words("level")]
    for name in names:
        first = f"{name}, p50, ms" if len(names) > 1 else "p50, ms"
        columns += [Column(first), *(Column(item, follows=True) for item in ("p99, ms", "error rate, %", "measured"))]
    order = list(labels)
    keys = sorted(fixed_levels, key=lambda key: (order.index(key[0]), text.KINDS.index(key[1]), key[2]))
    rows = [
        row_of(
            f"{labels[key[0]]}, {level_text(key[1], key[2])}",
            *(cell for item in fixed_levels[key] for cell in _fixed_cells(item)),
        )
        for key in keys
    ]
    notes = ["p50 and p99: medians of the measurements; error rate: of all of them together."]
    return [Table("fixed", "At fixed levels", columns, rows, [*notes, *text.centile_notes(rows)])]


def _fixed_cells(fixed_level: FixedLevel | None) -> list[TableCell]:
    if fixed_level is None:
        return [_QUIET] * 4
    return [
        text.centile_cell(fixed_level.p50),
        text.centile_cell(fixed_level.p99),
        text.percent_figure(fixed_level.error_share),
        TableCell(f"{fixed_level.measured} ×", emphasis="quiet"),
    ]


def step_table(steps: Sequence[StepEntry], id_: str, name: str, steps_in_all: int) -> Table:
    """Steps of one endpoint, in order."""
    counted = ["requests", "p50, ms", "p95, ms", "p99, ms", "failed", "unsent", "reqs/sec"]
    columns = [*words("step", "phase"), *map(Column, counted), *words("outcome")]
    columns += [
        *map(Column, ("achieved, %", "lag, ms", "timer delay, ms", "CPU, %", "run queue, %")),
        *words("remarks"),
    ]
    rows = [TableRow(_step_cells(step)) for step in steps]
    shown = [
        index
        for index, column in enumerate(columns)
        if column.heading not in ("remarks", "unsent", "achieved, %", "lag, ms", "timer delay, ms", "run queue, %")
        or any(row.cells[index].text not in ("", "0", units.UNSET) for row in rows)
    ]
    return Table(
        id_,
        name,
        [columns[index] for index in shown],
        [TableRow([row.cells[index] for index in shown]) for row in rows],
        [_GENERATOR, *text.centile_notes(rows)],
        sortable=True,
        media=ON_PAGES if steps_in_all > _MOST_STEPS_ON_TERMINAL else EVERYWHERE,
    )


def _step_cells(step: StepEntry) -> list[TableCell]:
    achieved = next((condition.measured for condition in step.conditions if condition.name == "achieved"), None)
    outcome = step.outcome if step.outcome == step.point_outcome else f"{step.outcome}, leans to {step.point_outcome}"
    because = f": {step.reason}" if step.reason else ""
    remarks = [
        "longer" if step.extended else "",
        "interrupted" if step.partial else "",
        step.ended if step.ended not in ("time", "stopped") else "",
        f"{units.count(step.repeated)} repeated" if step.repeated else "",
    ]
    return [
        TableCell(f"{step.number}: {text.short_level(step)}"),
        TableCell(step.phase),
        TableCell(units.count(step.due)),
        text.centile_cell(step.of_due.p50),
        text.centile_cell(step.of_due.p95),
        text.centile_cell(step.of_due.p99),
        TableCell(units.count(step.failed), emphasis="worse" if step.failed else "plain"),
        TableCell(units.count(step.unsent), emphasis="worse" if step.unsent else "plain"),
        text.per_second(step.ok_per_s),
        TableCell(f"{outcome}{because}", emphasis=LOOKS[Verdict(step.outcome)].emphasis),
        _QUIET if achieved is None else text.percent_figure(achieved),
        _QUIET if step.lag_p99_s is None else text.milliseconds(step.lag_p99_s),
        _QUIET if step.wake_p99_s is None else text.milliseconds(step.wake_p99_s),
        text.percent_figure(step.generator_cpu_share if math.isfinite(step.generator_cpu_share) else None, 0),
        _waited_cell(step),
        TableCell(", ".join(remark for remark in remarks if remark)),
    ]


def _waited_cell(step: StepEntry) -> TableCell:
    """The largest share of processor time lost to others."""
    shares = [step.generator_lost_share, step.server_lost_share, step.stolen_share]
    measured = [share for share in shares if share is not None]
    if not measured:
        return _QUIET
    cell = text.percent_figure(max(measured), 1)
    return replace(cell, emphasis="caution") if step.reason == "waited" else cell


def error_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table | None:
    """Failed requests of all steps by endpoint and by the server's response."""
    columns = [*words("endpoint", "failure"), Column("HTTP status"), Column("code")]
    columns += [*words("message", "retriable"), Column("count"), Column("steps"), *words("first")]
    rows, long = [], []
    for endpoint in target.endpoints:
        for failures in failures_of(endpoint):
            message = _message(failures.entry)
            if len(message) > _LONGEST_WORDS:
                long.append(f"{endpoint.label}: “{message}”.")
            first = f"{text.level_of(failures.first)}, {units.number(failures.entry.first_s, 1)} s"
            reported = failures.entry.reported
            status = "" if failures.entry.status is None else str(failures.entry.status)
            code, retriable = (_value_of(reported, name) for name in ("code", "retriable"))
            counts = units.count(failures.count), units.count(failures.steps)
            cells = [endpoint.label, failures.entry.kind, status, code, cut(message, _LONGEST_WORDS), retriable]
            cells += [*counts, first]
            rows.append(row_of(*cells))
    if not rows:
        return None
    title = f"Errors of all steps{f': {name}' if several else ''}"
    notes = ["First: the level, and the time since its start, including the warm-up.", *long]
    return Table(f"errors-{number}", title, columns, rows, notes, sortable=True)


def _message(entry: ErrorEntry) -> str:
    """The server's response, then further details."""
    reported = {key.lstrip("/"): value for key, value in entry.reported.items()}
    texts = [reported.pop("message", "")]
    texts += [f"{key}: {value}" for key, value in sorted(reported.items()) if key not in ("code", "retriable")]
    return " ".join("; ".join(part for part in (*texts, entry.detail) if part).split())


def _value_of(reported: dict[str, str], name: str) -> str:
    result = next((value for key, value in reported.items() if key.lstrip("/") == name), "")
    return cut(result, _LONGEST_WORDS)
