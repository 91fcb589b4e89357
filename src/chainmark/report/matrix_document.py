"""A plan of load tests as a document: every cell's verdict, what each endpoint sustains there, then cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainmark.capacity.verdict import Ruling, rulings, verdict
from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, Kind, TargetEntry
from chainmark.core.manifest import Fact
from chainmark.core.matrix_report import CellEntry, MatrixReport
from chainmark.core.verdict import Case, Suite, Verdict, worst
from chainmark.core.wording import command, first_sentence, some_of
from chainmark.report import load_text as text
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.report.load_courses import course_tables
from chainmark.report.load_sentence import next_step, noticed
from chainmark.report.load_suites import load_suites
from chainmark.report.load_tables import basis_table, capacity_table, error_table
from chainmark.report.wording import verdict_cell

_NAMED = 4
_NOTHING = TableCell(units.UNSET, emphasis="quiet")
_HEADINGS: dict[Kind, str] = {"clients": "max clients", "rate": "max rate, /s"}


@dataclass(frozen=True)
class _Ruled:
    """A cell with its rulings."""

    place: int
    cell: CellEntry
    rulings: list[Ruling]
    verdict: Verdict
    reasons: list[str]


def matrix_document(report: MatrixReport) -> Document:
    """Lay out a plan's tests, the worst cells first."""
    ruled = [_ruled(index, cell) for index, cell in enumerate(report.cells)]
    ordered = sorted(ruled, key=lambda item: list(Verdict).index(item.verdict))
    result = worst([item.verdict for item in ruled if item.cell.gates] or [Verdict.INCONCLUSIVE])
    sections = [
        Section("cells", "Cells", [_cells(ordered), *_reasons(ordered)]),
        Section("capacities", "Capacity of each endpoint", _side_by_side(report), folded=False),
        *(Section(f"cell-{item.place}", item.cell.name, _cell(item)) for item in ordered if item.cell.report),
        Section("conditions", "Conditions", _conditions(report)),
    ]
    return Document(
        kind="load-plan",
        title=report.title,
        subtitle=one_line([f"plan {report.plan}", report.experiment, units.utc(report.date)]),
        verdict=result,
        sentence=_sentence(report, ruled),
        suites=[_suite(item) for item in ruled],
        sections=[section for section in sections if section.blocks],
        notes=[
            f"Every scenario on every server is a run of the experiment {report.experiment}; `chainmark runs show RUN` "
            "shows its steps."
        ],
        result=report,
        contents=True,
        date=report.date,
        tool_version=report.tool_version,
    ).noted_once()


def _ruled(place: int, cell: CellEntry) -> _Ruled:
    if cell.report is None:
        return _Ruled(place, cell, [], cell.ended or Verdict.NOT_RUN, [cell.missing])
    ruled = rulings(cell.report)
    return _Ruled(place, cell, ruled, *verdict(cell.report, ruled))


def _sentence(report: MatrixReport, ruled: Sequence[_Ruled]) -> str:
    """What users notice in the worst cell and the next step; how many cells are met, and the other names."""
    gating = [item for item in ruled if item.cell.gates]
    met = sum(item.verdict is Verdict.PASS for item in gating)
    first = min(gating, key=lambda item: list(Verdict).index(item.verdict), default=None)
    clauses, step = list[str](), ""
    resume = (
        f"continue with {command('load', '--resume', report.experiment)}" if report.interrupted else "repeat that test"
    )
    if first is not None and first.verdict is not Verdict.PASS:
        worst = next((ruling for ruling in first.rulings if ruling.gates and ruling.verdict is first.verdict), None)
        shown = noticed(first.cell.report, worst) if first.cell.report and worst else first.cell.missing
        clauses = [f"{first.cell.name}: {shown.rstrip('.')}"]
        step = next_step(first.cell.report, worst) if first.cell.report and worst else resume
    clauses.append(f"{met} of {units.plural(len(gating), 'test')} met the SLA")
    for kind in Verdict:
        names = [item.cell.name for item in gating if item.verdict is kind is not Verdict.PASS and item is not first]
        if names:
            also = "also " if first and first.verdict is kind else ""
            clauses.append(f"{also}{kind.value}: {some_of(names, _NAMED)}")
    clauses += ["the plan was interrupted"] if report.interrupted else []
    return first_sentence(*clauses, next_step=step or (resume if report.interrupted else ""))


def _suite(ruled: _Ruled) -> Suite:
    """A case for every capacity of every endpoint; one for the whole cell if nothing was measured."""
    if ruled.cell.report is None:
        case = Case("cell", ruled.cell.name, ruled.verdict, ruled.cell.missing, gates=ruled.cell.gates)
        return Suite(ruled.cell.name, [case])
    (suite,) = load_suites(ruled.cell.report, ruled.rulings)
    properties = [*suite.properties, *((f"cell.{key}", word) for key, word in ruled.cell.words.items())]
    return replace(suite, name=ruled.cell.name, properties=properties)


def _cells(ruled: Sequence[_Ruled]) -> Table:
    rows = []
    for item in ruled:
        capacities = [ruling for ruling in item.rulings if ruling.gates and not ruling.is_of_levels]
        met = sum(ruling.verdict is Verdict.PASS for ruling in capacities)
        stated = one_line(word for key, word in item.cell.words.items() if key != "scenario")
        counted = f"{met} of {len(capacities)}" if capacities else units.UNSET
        version = item.cell.report.targets[0].subject.version if item.cell.report else units.UNSET
        run = item.cell.run_id or units.UNSET
        rows.append(
            row_of(item.cell.server, item.cell.scenario, verdict_cell(item.verdict), counted, version, stated, run)
        )
    columns = [
        *words("server", "scenario"),
        Column("verdict", kind="badge"),
        Column("capacities met"),
        *words("version"),
        Column("labels", kind="words", if_any=True),
        *words("run"),
    ]
    return Table("cells", "", columns, rows)


def _reasons(ruled: Sequence[_Ruled]) -> list[Block]:
    messages = [
        f"{item.cell.name}: {reason}" for item in ruled for reason in item.reasons if item.verdict is not Verdict.PASS
    ]
    return [Remarks("reasons", "Why", messages)] if messages else []


def _side_by_side(report: MatrixReport) -> list[Block]:
    """A table of endpoints × servers for each scenario and kind of load."""
    blocks: list[Block] = []
    for number, scenario in enumerate(dict.fromkeys(cell.scenario for cell in report.cells)):
        cells = [cell for cell in report.cells if cell.scenario == scenario and cell.report]
        for kind in text.KINDS:
            table = _scenario_table(f"capacities-{number}-{kind}", scenario, cells, kind)
            if table.rows:
                blocks.append(table)
    return blocks


def _scenario_table(id_: str, scenario: str, cells: Sequence[CellEntry], kind: Kind) -> Table:
    endpoint_entries: dict[str, dict[str, EndpointEntry]] = {}
    for cell in cells:
        for endpoint in cell.report.targets[0].endpoints if cell.report else []:
            if text.capacity_of(endpoint, kind):
                endpoint_entries.setdefault(endpoint.label, {})[cell.server] = endpoint
    servers = [cell.server for cell in cells]
    columns = words("endpoint")
    for server in servers:
        columns += [Column(server), Column(f"{server}: p99, ms", follows=True)]
    rows = [
        TableRow([TableCell(label), *(cell for server in servers for cell in _capacity(of.get(server), kind))])
        for label, of in endpoint_entries.items()
    ]
    return Table(id_, f"{scenario}: {_HEADINGS[kind]}", columns, rows, text.centile_notes(rows))


def _capacity(endpoint: EndpointEntry | None, kind: Kind) -> list[TableCell]:
    result = text.capacity_of(endpoint, kind) if endpoint else None
    if endpoint is None or result is None:
        return [_NOTHING] * 2
    step = text.shown_step(endpoint, result)
    capacity = TableCell(text.capacity_text(result), emphasis=text.capacity_emphasis(result))
    return [capacity, text.centile_cell(step.of_due.p99) if step else _NOTHING]


def _cell(ruled: _Ruled) -> list[Block]:
    """The tables of the cell's own load test."""
    blocks: list[Block] = []
    for target in ruled.cell.report.targets if ruled.cell.report else []:
        blocks += _measured(ruled, target)
    return [replace(block, id=f"{block.id}-{ruled.place}") for block in blocks]


def _measured(ruled: _Ruled, target: TargetEntry) -> list[Block]:
    blocks: list[Block] = []
    if any(endpoint.capacities for endpoint in target.endpoints):
        blocks.append(capacity_table(target, ruled.cell.name, 0, several=True))
        blocks.append(basis_table(target, ruled.cell.name, 0, ruled.rulings, several=True))
    blocks += course_tables(target, ruled.cell.name, 0, several=True)
    blocks += [table for table in [error_table(target, ruled.cell.name, 0, several=True)] if table]
    skipped = [f"{name}: {reason}" for name, reason in target.skipped.items()]
    messages = [*target.warnings, *(f"{end.label}: {note}" for end in target.endpoints for note in end.notes)]
    if skipped:
        blocks.append(Remarks("skipped", "Endpoints that were not measured", skipped))
    if messages:
        blocks.append(Remarks("warnings", "Caveats", messages))
    return blocks


def _conditions(report: MatrixReport) -> list[Block]:
    facts: dict[str, dict[str, list[Fact]]] = {}
    for cell in report.cells:
        for target in cell.report.targets if cell.report else []:
            for fact in target.facts:
                facts.setdefault(fact.label, {}).setdefault(cell.server, []).append(fact)
    servers = list(dict.fromkeys(cell.server for cell in report.cells))
    rows = [
        row_of(label, *("; ".join(dict.fromkeys(item.value for item in of.get(server, []))) for server in servers))
        for label, of in facts.items()
    ]
    machine = [Fact(label="Load generator", value=f"chainmark {report.tool_version}"), *report.machine]
    blocks: list[Block] = [
        Table(
            "machine",
            "The load generator's machine",
            words("", ""),
            [row_of(item.label, item.value) for item in machine],
        )
    ]
    if rows:
        blocks.append(Table("servers", "The servers", words("", *servers), rows))
    return blocks
