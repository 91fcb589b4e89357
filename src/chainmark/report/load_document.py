"""A load test as a document: the verdict, what each endpoint sustains, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.capacity.verdict import Ruling, rulings, verdict
from chainmark.core import units
from chainmark.core.load_report import EndpointEntry, LoadReport, ServiceLevel, TargetEntry
from chainmark.core.manifest import Fact
from chainmark.core.wording import cut
from chainmark.report import load_text as text
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.report.load_charts import capacity_charts, distribution_charts, load_charts
from chainmark.report.load_courses import course_charts, course_tables
from chainmark.report.load_drift import drift_table
from chainmark.report.load_mix import mix_table
from chainmark.report.load_sentence import sentence
from chainmark.report.load_server import exhausted_remarks, use_blocks
from chainmark.report.load_suites import load_suites
from chainmark.report.load_tables import (
    basis_table,
    capacity_table,
    error_table,
    fixed_table,
    side_by_side_tables,
    step_table,
)
from chainmark.report.load_timelines import timeline_charts

_LONG_FACT = 64  # longest fact in a table; longer ones are below it


def load_document(report: LoadReport) -> Document:
    """Lay out a load test."""
    ruled = rulings(report)
    result, reasons = verdict(report, ruled)
    is_soak = any(endpoint.drifts for target in report.targets for endpoint in target.endpoints)
    sections = [
        Section("capacity", "Capacity", _capacities(report, ruled, reasons)),
        Section("latency", "Latency against load", load_charts(report)),
        Section("distributions", "Distributions of latencies", distribution_charts(report), closed=True),
        Section("courses", "Ramps and spikes, second by second", course_charts(report)),
        Section("timelines", "Second by second", timeline_charts(report), closed=not is_soak),
        Section("server", "Server resource use", use_blocks(report), closed=True),
        Section("errors", "Errors", _errors(report), closed=True),
        Section("steps", "Every step", _steps(report), closed=True),
        Section("conditions", "Conditions", _conditions(report), closed=True),
    ]
    scenario = [f"scenario {report.scenario}"] if report.scenario else []
    servers = ", ".join(f"{target.name} ({target.subject.name} {target.subject.version})" for target in report.targets)
    return Document(
        kind="load",
        title=report.title,
        subtitle=one_line([servers, *scenario, f"profile {report.profile_name}", units.utc(report.started_at)]),
        verdict=result,
        sentence=sentence(report, ruled),
        suites=load_suites(report, ruled),
        sections=[section for section in sections if section.blocks],
        notes=_notes(report),
        result=report,
    ).noted_once()


def _named(report: LoadReport) -> Iterable[tuple[int, TargetEntry, str]]:
    return zip(range(len(report.targets)), report.targets, text.names_of(report.targets), strict=True)


def _capacities(report: LoadReport, ruled: Sequence[Ruling], reasons: Sequence[str]) -> list[Block]:
    several = len(report.targets) > 1
    blocks: list[Block] = [Remarks("reasons", "Why", list(reasons))] if reasons else []
    blocks += exhausted_remarks(report)
    blocks += side_by_side_tables(report)
    searched = [item for item in _named(report) if any(endpoint.capacities for endpoint in item[1].endpoints)]
    blocks += [capacity_table(target, name, number, several=several) for number, target, name in searched]
    blocks += capacity_charts(report)
    blocks += [basis_table(target, name, number, ruled, several=several) for number, target, name in searched]
    mixes = [mix_table(target, name, number, several=several) for number, target, name in searched]
    drifts = [drift_table(target, name, number, several=several) for number, target, name in _named(report)]
    blocks += [*(table for table in mixes if table), *fixed_table(report), *(table for table in drifts if table)]
    for number, target, name in _named(report):
        blocks += course_tables(target, name, number, several=several)
    return blocks


def _errors(report: LoadReport) -> list[Block]:
    several = len(report.targets) > 1
    tables = [error_table(target, name, number, several=several) for number, target, name in _named(report)]
    return [table for table in tables if table]


def _steps(report: LoadReport) -> list[Block]:
    several = len(report.targets) > 1
    in_all = sum(len(endpoint.steps) for target in report.targets for endpoint in target.endpoints)
    blocks: list[Block] = []
    for number, target, name in _named(report):
        for endpoint in target.endpoints:
            title = f"{endpoint.label}{f', {name}' if several else ''}"
            for kind in text.KINDS:
                steps = [step for step in endpoint.steps if step.kind == kind]
                if steps:
                    title_of_kind, id_ = f"{title}, {text.KIND_WORDS[kind]}", f"steps-{kind}-{endpoint.id}-{number}"
                    blocks.append(step_table(steps, id_, title_of_kind, in_all))
    return blocks


def _conditions(report: LoadReport) -> list[Block]:
    blocks: list[Block] = [_sla_table(report)] if text.slas_of(report) else []
    corpus = [Fact(label="Corpus, BLAKE3", value=report.corpus_hash)] if report.corpus_hash else []
    facts = [Fact(label="Load generator", value=f"chainmark {report.tool_version}"), *corpus, *report.machine]
    blocks.append(_facts("machine", "The load generator's machine", [""], [facts]))
    names = text.names_of(report.targets)
    if report.targets:
        blocks.append(_facts("targets", "The servers", names, [_target_facts(target) for target in report.targets]))
    for number, target, name in _named(report):
        blocks += _corpus(target, name, number)
        skipped = [f"{id_}: {reason}" for id_, reason in target.skipped.items()]
        if skipped:
            blocks.append(Remarks(f"skipped-{number}", f"{name}: endpoints that were not measured", skipped))
        remarks = [*target.warnings, *(f"{end.label}: {note}" for end in target.endpoints for note in end.notes)]
        if remarks:
            blocks.append(Remarks(f"warnings-{number}", f"{name}: caveats", remarks))
    return blocks


def _target_facts(target: TargetEntry) -> list[Fact]:
    subject = target.subject
    facts = {"URL": target.url, "Server": f"{subject.name} {subject.version}", "Run": target.run_id}
    return [*(Fact(label=label, value=value) for label, value in facts.items() if value), *target.facts]


def _facts(id_: str, title: str, names: Sequence[str], columns: Sequence[Sequence[Fact]]) -> Table:
    """Facts in a table; those too long for a cell are below it in full."""
    labels = list(dict.fromkeys(fact.label for facts in columns for fact in facts))
    rows, long = [], []
    for label in labels:
        cells = [TableCell(label)]
        for name, facts in zip(names, columns, strict=True):
            value = ", ".join(" ".join(fact.value.split()) for fact in facts if fact.label == label)
            if len(value) > _LONG_FACT:
                long.append(f"{f'{name}, ' if name else ''}{label}: {value}.")
            cells.append(TableCell(cut(value, _LONG_FACT)))
        rows.append(TableRow(cells))
    return Table(id_, title, words("", *names), rows, notes=long)


def _sla_table(report: LoadReport) -> Table:
    """The requirements of each endpoint."""
    columns = [*words("endpoints"), Column("max p95, ms"), Column("max p99, ms"), Column("max errors, %"),
               Column("min achieved rate, %"), Column("min requests")]  # fmt: skip
    slas = text.slas_of(report)
    rows = []
    for sla in slas:
        labels = dict.fromkeys(end.label for target in report.targets for end in target.endpoints if end.sla == sla)
        name = f"all {len(labels)}" if len(slas) == 1 < len(labels) else ", ".join(labels)
        rows.append(row_of(name, *_sla_cells(sla)))
    return Table("agreements", "The SLA", columns, rows)


def _corpus(target: TargetEntry, name: str, number: int) -> list[Table]:
    """The number of different requests of the load."""
    made_of = [", ".join(f"{count} {name}" for name, count in end.strata.items()) for end in target.endpoints]
    long = [f"{end.label}: {words_}." for end, words_ in zip(target.endpoints, made_of, strict=True)
            if len(words_) > _LONG_FACT]  # fmt: skip
    rows = [
        row_of(end.label, units.count(end.requests), cut(words_, _LONG_FACT), _sizes(end))
        for end, words_ in zip(target.endpoints, made_of, strict=True)
    ]
    columns = [*words("endpoint"), Column("distinct requests"), *words("contents", "response sizes")]
    return [Table(f"corpus-{number}", f"{name}: the requests", columns, rows, long)] if rows else []


def _sizes(endpoint: EndpointEntry) -> str:
    """The sizes of the responses: "balances 1–40, bytes 332–1,604"."""
    spans = {name: tuple(map(units.count, span)) for name, span in endpoint.sizes.items()}
    messages = [f"{name} {low if low == high else f'{low}–{high}'}" for name, (low, high) in spans.items()]
    return ", ".join(messages) or units.UNSET


def _sla_cells(sla: ServiceLevel) -> list[TableCell]:
    p95 = TableCell(units.UNSET, emphasis="quiet") if sla.p95_s is None else text.milliseconds(sla.p95_s)
    return [
        p95,
        text.milliseconds(sla.p99_s),
        text.percent_figure(sla.error_share),
        text.percent_figure(sla.achieved_share),
        TableCell(units.count(sla.min_requests)),
    ]


def _notes(report: LoadReport) -> list[str]:
    """Notes on how to read it."""
    findings = {
        capacity.finding for target in report.targets for end in target.endpoints for capacity in end.capacities
    }
    stops = {
        capacity.stopped_by for target in report.targets for end in target.endpoints for capacity in end.capacities
    }
    notes = []
    if "ladder end" in stops:
        notes.append("“≥” at the ladder's end is a limit of the test: no level failed, the server may sustain more.")
    if "generator-limited" in stops:
        notes.append("Generator-limited: the load generator was late; the server may sustain more.")
    if "waited" in stops:
        notes.append(
            "Waited: other processes had the processors while the generator or the server was ready to run, in every "
            "repetition."
        )
    if "not confirmed" in findings:
        notes.append(
            "Not confirmed: the level above passed most of its measurements, but not all. The table shows the next "
            "lower level, which passed every time."
        )
    if "unsettled" in findings:
        notes.append("Unsettled results are based on too few requests, or on a search that did not end.")
    if len(text.slas_of(report)) > 1:
        notes.append("The endpoints have different SLAs, which the table of SLAs lists.")
    return notes
