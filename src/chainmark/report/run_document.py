"""One sealed run as a document: whether it is valid, its accounts, and every metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import not_
from typing import Annotated

from pydantic import BaseModel, Field

from chainmark.core import units
from chainmark.core.accounts import Accounts, in_short
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, caveats_of
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import Gate, GateKind, GateStatus, Manifest, Status
from chainmark.core.metric import Metric
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import enumerated, first_sentence, judged_name
from chainmark.report.blocks import (
    Block,
    Column,
    Details,
    Section,
    Table,
    TableCell,
    TableRow,
    one_line,
    phrased,
    row_of,
    words,
)
from chainmark.report.document import Document
from chainmark.report.phrases import Phrase, computed_address
from chainmark.report.wording import GATE_LOOKS, gate_counts, gate_word

_OF_GATE = {
    GateStatus.PASS: Verdict.PASS,
    GateStatus.WARN: Verdict.INFORMATIONAL,
    GateStatus.UNKNOWN: Verdict.INCONCLUSIVE,
}
_OF_KIND = {GateKind.INSTRUMENT: Verdict.INVALID, GateKind.SUBJECT: Verdict.FAIL}
_MAIN_FIGURES = 3  # in the first sentence
OF_STATUS = {Status.VALID: Verdict.PASS, Status.FAILED: Verdict.FAIL, Status.INVALID: Verdict.INVALID}
STATUS_CLAUSES = {
    Status.VALID: "The run is valid and can be compared",
    Status.FAILED: "The subject failed the run, which counts against it in a comparison",
    Status.INVALID: "The run is invalid and is never compared",
}


class RunRecord(BaseModel):
    """The self-description of a sealed run."""

    manifest: Manifest
    metrics: Mapping[str, MetricSummary]
    catalogue: Catalogue = Field(exclude=True)
    notes: Annotated[list[str], Field(exclude_if=not_)] = []  # notes next to the run, which are not part of it

    @property
    def caveats(self) -> Caveats:
        """The manifest's caveats about the run, and the notes on it."""
        noted = Caveats(sentences=tuple(f"note: {text}" for text in self.notes))
        return Caveats.joined([caveats_of([self.manifest]), noted])


def run_document(record: RunRecord) -> Document:
    """Lay out a run."""
    manifest = record.manifest
    caveats = record.caveats.sentences  # on the first screen
    notes = [
        *(incident.what for incident in manifest.incidents),
        *(text for text in manifest.warnings if text not in caveats),
    ]
    counts = counts_table(manifest)
    sections = [
        Section("gates-section", "Gates", [_gates(manifest)] if manifest.gates else []),
        Section("counts-section", "Accounting", [counts] if counts else []),
        Section("facts", "Manifest", [_facts(manifest)]),
        Section("metrics", "Metrics", _metrics(record)),
        Section("counts-in-full", "Complete accounting", _all_counts(manifest)),
    ]
    return Document(
        kind="run",
        title=f"{manifest.subject.name} {manifest.subject.version}",
        subtitle=one_line([manifest.run_id, f"profile {manifest.profile_name}", units.utc(manifest.started_at)]),
        verdict=OF_STATUS[manifest.status],
        sentence=_sentence(record),
        suites=[Suite(manifest.run_id, gate_cases(manifest), started_at=manifest.started_at)],
        sections=[section for section in sections if section.blocks],
        notes=notes,
        result=record,
        date=manifest.ended_at,
        tool_version=manifest.tool_version,
    )


def _sentence(record: RunRecord) -> str:
    manifest = record.manifest
    if manifest.status is not Status.VALID:
        deciding = manifest.deciding_gates
        text = "; ".join(f"{gate.label}: {gate.measured}, but {gate.limit} is required" for gate in deciding)
        return f"{STATUS_CLAUSES[manifest.status]}: {text}."
    others = "".join(f", {count}" for count in gate_counts(manifest.gates))
    gates = f"{units.none_of(len(manifest.gates), 'gate')} failed{others}"
    return first_sentence(f"{STATUS_CLAUSES[manifest.status]}: {gates}", enumerated(_main_figures(record)))


def _main_figures(record: RunRecord) -> list[str]:
    """The first gating figures: "tx latency p50 706 ms"."""
    figures = [
        _main_figure(metric, name, estimate)
        for metric in record.catalogue.ordered()
        for name in metric.judged_by
        if metric.gating and (estimate := _estimate(record, metric, name)) is not None
    ]
    return figures[:_MAIN_FIGURES]


def _main_figure(metric: Metric, name: str, estimate: Estimate) -> str:
    """One figure; a unit that ends the label is not repeated: "max clients 12"."""
    label, value = judged_name(metric, name), estimate.value or 0.0
    if estimate.standard_error is None:
        text = units.tidy_quantity(value, metric.unit)
    else:
        text = units.quantity(value, metric.unit, estimate.standard_error)
    return f"{label} {text.removesuffix(f' {metric.unit}') if label.endswith(metric.unit) else text}"


def _estimate(record: RunRecord, metric: Metric, name: str) -> Estimate | None:
    """An estimate that has a value."""
    summary = record.metrics.get(metric.id)
    estimate = summary.estimates.get(name) if summary else None
    return estimate if estimate and estimate.value is not None else None


def gate_cases(manifest: Manifest) -> list[Case]:
    """The gates of a run as cases of every document about it."""
    return [gate_case(gate) for gate in manifest.gates]


def gate_case(gate: Gate) -> Case:
    """A gate as a case, with what was measured and required as the reason."""
    text = f"{gate.measured}; required: {gate.limit}"
    reason = f"{text} ({gate.detail})" if gate.detail else text
    verdict = _OF_GATE.get(gate.status, _OF_KIND[gate.kind])
    return Case(gate.id, gate.label, verdict, reason, gates=gate.status not in {GateStatus.WARN, GateStatus.UNKNOWN})


def _gates(manifest: Manifest) -> Table:
    headings = ["gate", "kind", "status", "measured", "limit", "detail"]
    if not any(gate.detail for gate in manifest.gates):
        headings.remove("detail")
    rows = []
    for gate in manifest.gates:
        cells = [TableCell(getattr(gate, name)) for name in headings[3:]]
        status = TableCell(gate_word(gate.status), emphasis=GATE_LOOKS[gate.status])
        rows.append(row_of(gate.label, gate.kind.value, status, *cells))
    return Table("gates", "Gates of the run", words(*headings), rows)


def counts_table(manifest: Manifest) -> Table | None:
    """The totals of everything read and submitted, by class; None if nothing was counted."""
    short = in_short(manifest.counts)
    return _counts("counts", "Counts by class", short) if short else None


def _counts(id_: str, title: str, accounts: Accounts) -> Table:
    rows = [
        row_of(account, one_line(f"{name} {units.count(n)}" for name, n in classes.items()))
        for account, classes in accounts.items()
    ]
    return Table(id_, title, words("counted items", "classes"), rows)


def _all_counts(manifest: Manifest) -> list[Block]:
    """Every class of every account, if some were omitted above."""
    if len(in_short(manifest.counts)) == len(manifest.counts):
        return []
    return [Details("all-counts-details", "All counts", [_counts("all-counts", "", manifest.counts)])]


def _facts(manifest: Manifest) -> Table:
    host, place = manifest.host, manifest.experiment
    hardware = [units.plural(host.cores, "core"), units.byte_size(host.memory_bytes)] if host.cores else []
    facts = {
        "build": manifest.subject.build or "",
        "revision": manifest.subject.revision or "",
        "binary, SHA-256": manifest.subject.binary_sha256 or "",
        "experiment": f"{place.id}, {place.side} {place.repetition}" if place else "",
        "time": f"{manifest.started_at} to {manifest.ended_at}",
        "machine": one_line([host.cpu_model, *hardware]),
        "seed": str(manifest.seed),
        "sources": sources_text(manifest),
        "created by": f"chainmark {manifest.tool_version}",
        **{fact.label: fact.value for fact in manifest.facts},
    }
    rows = [row_of(label, value) for label, value in facts.items() if value]
    return Table("facts", "Subject, time and place", words("", ""), rows)


def sources_text(manifest: Manifest) -> str:
    """The number of files that the run was made from, and their size."""
    size = sum(source.size_bytes for source in manifest.sources)
    return f"{units.plural(len(manifest.sources), 'file')}, {units.byte_size(size)}"


def _metrics(record: RunRecord) -> list[Table]:
    """A table for each of the catalogue's tables: a row for each metric and statistic."""
    tables = []
    columns = [*words("metric", "unit"), Column("n"), *words("statistic"), Column("value"), Column("standard error")]
    for table in record.catalogue.tables:
        metrics = [metric for metric in record.catalogue.ordered() if metric.table == table.id]
        rows = [row for metric in metrics for row in _rows(metric, record)]
        if rows:
            tables.append(Table(f"metrics-{table.id}", table.title, columns, rows, sortable=True))
    return tables


def _rows(metric: Metric, record: RunRecord) -> list[TableRow]:
    summary = record.metrics.get(metric.id)
    if summary is None:
        return []
    n = units.count(summary.n)
    absent = units.NOT_ESTIMABLE if summary.n else units.NO_DATA
    system, runs = record.catalogue.system, [record.manifest.run_id]
    return [
        row_of(
            phrased(Phrase(metric.id, address=computed_address(system, metric.id, name, runs))),
            *_figures(metric, estimate, absent, [n, name]),
        )
        for name in metric.statistics
        if (estimate := summary.estimates.get(name))
    ]  # fmt: skip


def _figures(metric: Metric, estimate: Estimate, absent: str, counted: Sequence[str]) -> list[str]:
    """The cells of a row from its unit on."""
    unit = units.display_unit(metric.unit, [estimate.value])
    value, error = unit.of(estimate.value), unit.of(estimate.standard_error)
    if value is None:
        return [metric.unit, *counted, absent, ""]
    shown = units.number(value, units.decimals_for([value], error))
    return [unit.symbol, *counted, shown, "" if error is None else units.tidy(error, 2)]
