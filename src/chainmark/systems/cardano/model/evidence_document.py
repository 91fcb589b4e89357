"""A model's record as a document: the errors of each method, group by group, and run by run."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import capitalised, first_sentence, sentence_of
from chainmark.report.blocks import (
    Block,
    Column,
    Section,
    Table,
    TableCell,
    TableRow,
    one_line,
    row_of,
    short_labels,
    words,
)
from chainmark.report.document import Document
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import prose
from chainmark.systems.cardano.model import modelled
from chainmark.systems.cardano.model.charts import method_chart, strip_chart
from chainmark.systems.cardano.model.results import EvidenceRow, EvidenceRun, ModelRecord

_ERRORS_ARE = "Errors are modelled / measured − 1, in percent."


def evidence_document(evidence: ModelRecord) -> Document:
    """Lay out a record."""
    shorts, shared = short_labels([evidence.catalogue.metric(id_).label for id_ in evidence.metric_ids])
    groups = list(dict.fromkeys([*(row.group for row in evidence.rows), *(run.group for run in evidence.runs)]))
    methods = list(dict.fromkeys(row.method for row in evidence.rows))
    by_method, by_run = [], []
    for index, group in enumerate(groups):
        rows = [row for row in evidence.rows if row.group == group]
        runs = [run for run in evidence.runs if run.group == group]
        by_method += _methods(f"methods-{index}", group, rows, shorts, methods)
        by_run += _runs(f"runs-{index}", group, runs, shorts)
    sections = [Section("methods", "Errors by method", by_method), Section("runs", "Errors run by run", by_run)]
    of = f"errors of {shared}" if shared else "errors"
    return Document(
        kind="evidence",
        title=evidence.title,
        subtitle=one_line([of, units.plural(len(evidence.runs), "run"), f"seed {evidence.seed}"]),
        verdict=Verdict.INFORMATIONAL,
        sentence=_sentence(evidence, groups, methods),
        suites=[Suite(evidence.title, [_case(row) for row in evidence.rows])],
        sections=[section for section in sections if section.blocks],
        notes=[sentence_of(capitalised(prose(note))) for note in evidence.notes],
        result=evidence,
    ).noted_once()


def _case(row: EvidenceRow) -> Case:
    """One method's error over the runs of a group; a record is not judged."""
    label = f"{row.method}, {row.group}"
    return Case(label, label, Verdict.INFORMATIONAL, gates=False, figures={"overall": row.overall})


def _sentence(evidence: ModelRecord, groups: Sequence[str], methods: Sequence[str]) -> str:
    """The errors of the first method, typical and worst, and their meaning for a prediction."""
    runs = f"{units.plural(len(evidence.runs), 'run')} in {units.plural(len(groups), 'group')}"
    rows = [row for row in evidence.rows if methods and row.method == methods[0]]
    if not rows:
        return first_sentence(f"The record contains {runs}")
    usual = [row.overall for row in rows]
    low, high = _percent(min(usual)), _percent(max(usual))
    typical = f"{low} %" if low == high else f"{low}–{high} %"
    largest = _percent(max(max(row.largest) for row in rows if row.largest))
    return first_sentence(
        f"The error of “{methods[0]}” is {typical} (root mean square), and at most {largest} %, over {runs}",
        next_step="if this accuracy does not suffice, measure instead",
    )


def _percent(fraction: float, *, signed: bool = False) -> str:
    return units.number(fraction * 100.0, 1 if abs(fraction) < 0.9995 else 0, signed=signed)


def _methods(
    id_: str, group: str, rows: Sequence[EvidenceRow], shorts: Sequence[str], methods: Sequence[str]
) -> list[Block]:
    if not rows:
        return []
    columns = [*words("method"), *(Column(short) for short in shorts), Column("all")]
    lines = []
    for row in rows:
        squared = [_percent(value) for value in row.root_mean_square]
        lines.append(_line(row.method, [*squared, _percent(row.overall)]))
        lines.append(_line("mean", [*(_percent(value, signed=True) for value in row.mean), ""], second=True))
        lines.append(_line("largest", [*(_percent(value) for value in row.largest), ""], second=True))
    runs = sorted({row.runs for row in rows})
    counted = units.plural(runs[0], "run") if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs"
    notes = [_ERRORS_ARE, "First row: the root mean square over the runs. “All”: the same over all columns."]
    points = [
        {"method": row.method, "column": short, "error": value}
        for row in rows
        for short, value in zip(shorts, row.root_mean_square, strict=True)
    ]
    table = Table(id_, f"{group}: {counted}", columns, lines, notes)
    chart = method_chart(f"{id_}-chart", f"Root mean square error, {group}", points, shorts, methods)
    return [table, chart]


def _line(name: str, figures: Sequence[str], *, second: bool = False) -> TableRow:
    emphasis: Emphasis = "quiet" if second else "plain"
    return TableRow([TableCell(name), *(TableCell(text, emphasis=emphasis) for text in figures)], second=second)


def _runs(id_: str, group: str, runs: Sequence[EvidenceRun], shorts: Sequence[str]) -> list[Block]:
    if not runs:
        return []
    columns = [*words("run"), *(Column(short, spare_tail=True) for short in shorts)]
    rows = [row_of(run.label, *map(_run_cell, run.errors, run.standard_errors)) for run in runs]
    notes = [_ERRORS_ARE, f"±: one standard error of the simulation{_range(runs)}."]
    points = []
    for run in runs:
        for short, error in zip(shorts, run.modelled_errors, strict=True):
            low, high = error.interval
            points.append({"label": run.label, "column": short, "error": error.value, "low": low, "high": high})
    table = Table(id_, f"{group}: run by run", columns, rows, notes, sortable=True)
    return [table, strip_chart(f"{id_}-chart", f"Errors run by run, {group}", points, shorts)]


def _run_cell(error: float, spread: float) -> TableCell:
    return TableCell(_percent(error, signed=True), modelled.spread(spread * 100.0, 1))


def _range(runs: Sequence[EvidenceRun]) -> str:
    errors = [error * 100.0 for run in runs for error in run.standard_errors]
    if not errors:
        return ""
    low, high = units.number(min(errors), 2), units.number(max(errors), 2)
    return f", from {low} to {high}" if low != high else f", {low}"
