"""The tables of a load test: what each endpoint takes, what that rests on, every step, every kind of error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chainmark.capacity.summaries import CapacityChange, change_of, error_share, failures_of, non_2xx
from chainmark.capacity.verdict import Ruling, bare_level, level_text, said
from chainmark.core import units
from chainmark.core.load_report import (
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

_QUIET = TableCell(units.UNSET, emphasis="quiet")
_LONGEST_WORDS = 44  # of a cell: what is longer is told below the table
_MOST_STEPS_ON_TERMINAL = 40
_GENERATOR = (
    "CPU: of the generator's threads. Lag: p99 of how late the generator took up what was due; woke late: p99 of how "
    "late its timer was. Waited: of the time in which generator or server wanted to run, what others had of the "
    "processors."
)
_EMPHASIS: dict[Verdict, Emphasis] = {Verdict.PASS: "plain", Verdict.FAIL: "worse"}


def capacity_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table:
    """The table of the published pages, and beside it the same asked with an arrival rate."""
    kinds = text.kinds_of([target])
    main: Kind = kinds[0] if kinds else "clients"
    beside: Kind | None = kinds[1] if len(kinds) > 1 else None
    first = "max concurrency" if main == "clients" else "max rate, requests/s"
    headings = [first, "p95, ms", "p99, ms", "non-2xx", "error rate, %", "reqs/sec"]
    columns = [*words("ID, endpoint"), *map(Column, headings)]
    if beside:
        columns += [Column("max rate, /s"), Column("its p99, ms", follows=True)]
    rows = []
    for place, endpoint in enumerate(target.endpoints, start=1):
        rows += _capacity_rows(place, endpoint, main, beside)
    notes = ["reqs/sec: right answers per second at that level.", text.ERRORS_ARE, *text.centile_notes(rows)]
    if beside:
        notes.append("max rate: requests due per second, whose latency counts from when each was due.")
    if any(row.second for row in rows):
        notes.append("Where the lowest level failed, its own figures stand below.")
    title = f"Capacity of each endpoint{f': {name}' if several else ''}"
    return Table(f"capacity-{number}", title, columns, rows, notes)


def _capacity_rows(place: int, endpoint: EndpointEntry, main: Kind, beside: Kind | None) -> list[TableRow]:
    found = text.capacity_of(endpoint, main)
    best = text.shown_step(endpoint, found) if found else None
    cells = [TableCell(f"{place} {endpoint.label}"), _capacity_cell(found), *_figures(best)]
    other = text.capacity_of(endpoint, beside) if beside else None
    if beside:
        other_best = text.shown_step(endpoint, other) if other else None
        cells += [_capacity_cell(other), text.centile_cell(other_best.of_due.p99) if other_best else _QUIET]
    rows = [TableRow(cells)]
    failed = [one if one and one.capacity == 0.0 else None for one in (found, other)]
    steps = [text.step_of(endpoint, one.kind, one.fail_step) if one else None for one in failed]
    if any(steps):
        levels = " and ".join(text.level_of(step) for step in steps if step)
        second = [TableCell(f"at {levels}", emphasis="quiet"), TableCell()]
        second += _figures(steps[0]) if steps[0] else [TableCell()] * 5
        if beside:
            second += [TableCell(), text.centile_cell(steps[1].of_due.p99) if steps[1] else TableCell()]
        rows.append(TableRow(second, second=True))
    return rows


def _capacity_cell(found: CapacityEntry | None) -> TableCell:
    if found is None:
        return _QUIET
    return TableCell(text.capacity_text(found), emphasis=text.capacity_emphasis(found))


def _figures(step: StepEntry | None) -> list[TableCell]:
    """p95, p99, non-2xx, error rate, answers per second."""
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
    """What each capacity rests on: its interval, its samples, its first fail, what stopped it."""
    by_key = {(one.endpoint, one.kind): one for one in ruled if one.number == number}
    asked = any(one.required is not None for one in by_key.values())
    columns = [*words("capacity"), Column("found"), *words("interval"), Column("requests"), Column("first fail"),
               Column("its p99, ms", follows=True), *words("stopped by", "confirmed"),
               *([Column("required")] if asked else []), *words("verdict")]  # fmt: skip
    rows = []
    for endpoint in target.endpoints:
        for found in endpoint.capacities:
            best = text.shown_step(endpoint, found)
            fail = text.step_of(endpoint, found.kind, found.fail_step)
            ruling = by_key.get((endpoint.id, found.kind))
            required = ruling.required if ruling else None
            cells = [
                TableCell(f"{endpoint.label} ({found.kind})"),
                _capacity_cell(found),
                TableCell(text.interval_text(found)),
                TableCell(units.count(best.due)) if best else _QUIET,
                TableCell(bare_level(fail.level)) if fail else _QUIET,
                text.centile_cell(fail.of_due.p99) if fail else _QUIET,
                TableCell(text.stopped_text(found, endpoint.agreement)),
                TableCell("yes" if found.confirmed else "no", emphasis="plain" if found.confirmed else "quiet"),
            ]
            if asked:
                cells.append(_QUIET if required is None else TableCell(bare_level(required)))
            rows.append(row_of(*cells, _verdict_cell(ruling)))
    notes = [
        text.INTERVALS_ARE,
        "Confirmed: the capacity and the first fail were measured again, and all measurements of each agree.",
        *text.centile_notes(rows),
    ]
    return Table(f"basis-{number}", f"What that rests on{f': {name}' if several else ''}", columns, rows, notes)


def _verdict_cell(ruling: Ruling | None) -> TableCell:
    if ruling is None:
        return _QUIET
    if not ruling.gates:
        return TableCell(f"{said(ruling.verdict)}, not required", emphasis="quiet")
    return TableCell(said(ruling.verdict), emphasis=_EMPHASIS.get(ruling.verdict, "caution"))


def side_by_side_tables(report: LoadReport) -> list[Table]:
    """Every server's capacities in one row, with the change against the first one."""
    if len(report.targets) < 2:
        return []
    tables = [_side_by_side(report, kind) for kind in text.kinds_of(report.targets)]
    return [table for table in tables if table.rows]


def _side_by_side(report: LoadReport, kind: Kind) -> Table:
    names = text.names_of(report.targets)
    columns = [*words("endpoint")]
    for place, name in enumerate(names):
        columns += [Column(name), Column("p99, ms", follows=True)]
        if place:
            columns += [Column("change", follows=True), Column("between", kind="words", follows=True)]
    rows = []
    for id_, label in text.endpoint_ids(report).items():
        endpoints = [next((one for one in target.endpoints if one.id == id_), None) for target in report.targets]
        entries = [text.capacity_of(one, kind) if one else None for one in endpoints]
        if not any(entries):
            continue
        cells = [TableCell(label)]
        for place, (endpoint, found) in enumerate(zip(endpoints, entries, strict=True)):
            best = text.shown_step(endpoint, found) if endpoint and found else None
            cells += [_capacity_cell(found), text.centile_cell(best.of_due.p99) if best else _QUIET]
            if place:
                cells += _change(entries[0], found)
        rows.append(TableRow(cells))
    notes = [
        f"Under each server's name its capacity, then the p99 there; change: of the capacity against {names[0]}, and "
        "between which values it lies by the intervals of both."
    ]
    return Table(f"side-by-side-{kind}", f"{text.KIND_NAMES[kind]}, side by side", columns, rows, notes)


def _change(base: CapacityEntry | None, other: CapacityEntry | None) -> list[TableCell]:
    if base is None or other is None:
        return [_QUIET, TableCell()]
    found = change_of(base, other)
    emphasis: Emphasis = "quiet"
    if found.high is not None and found.high < 0.0:
        emphasis = "worse"
    elif found.low is not None and found.low > 0.0:
        emphasis = "better"
    point = TableCell(units.UNSET, emphasis="quiet")
    if found.point is not None:
        decimals = units.percent_decimals(found.point)
        point = TableCell(units.number(found.point * 100.0, decimals, signed=True), "%", emphasis)
    return [point, TableCell(_interval(found).replace(" ", "\u00a0"), emphasis=emphasis)]


def _interval(found: CapacityChange) -> str:
    if found.low is not None and found.high is not None:
        return units.percent_interval(found.low, found.high)
    if found.low is not None:
        return f"≥ {units.percent(found.low)}"
    return units.NOT_ESTIMABLE if found.high is None else f"≤ {units.percent(found.high)}"


def fixed_table(report: LoadReport) -> list[Table]:
    """The same fixed levels on every server: their median p50 and p99 and all their errors."""
    names = text.names_of(report.targets)
    found: dict[tuple[str, Kind, float], list[FixedLevel | None]] = {}
    labels = text.endpoint_ids(report)
    for place, target in enumerate(report.targets):
        for endpoint in target.endpoints:
            for one in endpoint.fixed:
                found.setdefault((endpoint.id, one.kind, one.level), [None for _ in names])[place] = one
    if not found:
        return []
    columns = [*words("level")]
    for name in names:
        first = f"{name}, p50, ms" if len(names) > 1 else "p50, ms"
        columns += [Column(first), *(Column(one, follows=True) for one in ("p99, ms", "error rate, %", "measured"))]
    order = list(labels)
    keys = sorted(found, key=lambda key: (order.index(key[0]), text.KINDS.index(key[1]), key[2]))
    rows = [
        row_of(
            f"{labels[key[0]]}, {level_text(key[1], key[2])}",
            *(cell for one in found[key] for cell in _fixed_cells(one)),
        )
        for key in keys
    ]
    notes = ["p50 and p99: medians of the measurements; error rate: of all of them together."]
    return [Table("fixed", "At fixed levels", columns, rows, [*notes, *text.centile_notes(rows)])]


def _fixed_cells(found: FixedLevel | None) -> list[TableCell]:
    if found is None:
        return [_QUIET] * 4
    return [
        text.centile_cell(found.p50),
        text.centile_cell(found.p99),
        text.percent_figure(found.error_share),
        TableCell(f"{found.measured} ×", emphasis="quiet"),
    ]


def step_table(steps: Sequence[StepEntry], id_: str, name: str, steps_in_all: int) -> Table:
    """Steps of one endpoint in their order."""
    counted = ["requests", "p50, ms", "p95, ms", "p99, ms", "failed", "unsent", "reqs/sec"]
    columns = [*words("step", "phase"), *map(Column, counted), *words("outcome")]
    columns += [*map(Column, ("achieved, %", "lag, ms", "woke late, ms", "CPU, %", "waited, %")), *words("remarks")]
    rows = [TableRow(_step_cells(step)) for step in steps]
    kept = [
        place
        for place, column in enumerate(columns)
        if column.heading not in ("remarks", "unsent", "achieved, %", "lag, ms", "woke late, ms", "waited, %")
        or any(row.cells[place].text not in ("", "0", units.UNSET) for row in rows)
    ]
    return Table(
        id_,
        name,
        [columns[place] for place in kept],
        [TableRow([row.cells[place] for place in kept]) for row in rows],
        [_GENERATOR, *text.centile_notes(rows)],
        sortable=True,
        media=ON_PAGES if steps_in_all > _MOST_STEPS_ON_TERMINAL else EVERYWHERE,
    )


def _step_cells(step: StepEntry) -> list[TableCell]:
    achieved = next((one.measured for one in step.conditions if one.name == "achieved"), None)
    outcome = step.outcome if step.outcome == step.leaning else f"{step.outcome}, leans to {step.leaning}"
    because = f": {step.reason}" if step.reason else ""
    remarks = [
        "longer" if step.lengthened else "",
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
        TableCell(f"{outcome}{because}", emphasis=text.OUTCOMES[step.outcome]),
        _QUIET if achieved is None else text.percent_figure(achieved),
        _QUIET if step.lag_p99_s is None else text.milliseconds(step.lag_p99_s),
        _QUIET if step.wake_p99_s is None else text.milliseconds(step.wake_p99_s),
        text.percent_figure(step.generator_cpu_share if math.isfinite(step.generator_cpu_share) else None, 0),
        _waited_cell(step),
        TableCell(", ".join(one for one in remarks if one)),
    ]


def _waited_cell(step: StepEntry) -> TableCell:
    """The worst of what was lost to others."""
    shares = [step.generator_lost_share, step.server_lost_share, step.stolen_share]
    known = [share for share in shares if share is not None]
    if not known:
        return _QUIET
    cell = text.percent_figure(max(known), 1)
    return replace(cell, emphasis="caution") if step.reason == "waited" else cell


def error_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table | None:
    """Failed requests of all steps by endpoint and by what the server said."""
    columns = [*words("endpoint", "failure"), Column("HTTP status"), Column("code")]
    columns += [*words("message", "retriable"), Column("count"), Column("steps"), *words("first")]
    rows, long = [], []
    for endpoint in target.endpoints:
        for one in failures_of(endpoint):
            message = _message(one.entry)
            if len(message) > _LONGEST_WORDS:
                long.append(f"{endpoint.label}: “{message}”.")
            first = f"{text.level_of(one.first)}, {units.number(one.entry.first_s, 1)} s"
            told = one.entry.told
            status = "" if one.entry.status is None else str(one.entry.status)
            cells = [endpoint.label, one.entry.kind, status, _value_of(told, "code"), cut(message, _LONGEST_WORDS),
                     _value_of(told, "retriable"), units.count(one.count), units.count(one.steps), first]  # fmt: skip
            rows.append(row_of(*cells))
    if not rows:
        return None
    title = f"Errors of all steps{f': {name}' if several else ''}"
    notes = ["First: at which level, and how long after its begin, warm-up included.", *long]
    return Table(f"errors-{number}", title, columns, rows, notes, sortable=True)


def _message(entry: ErrorEntry) -> str:
    """What the server said, then what else is known."""
    told = {key.lstrip("/"): value for key, value in entry.told.items()}
    said = [told.pop("message", "")]
    said += [f"{key}: {value}" for key, value in sorted(told.items()) if key not in ("code", "retriable")]
    return " ".join("; ".join(part for part in (*said, entry.detail) if part).split())


def _value_of(told: dict[str, str], name: str) -> str:
    found = next((value for key, value in told.items() if key.lstrip("/") == name), "")
    return cut(found, _LONGEST_WORDS)
