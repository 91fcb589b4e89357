"""Three or more versions as a document: the verdicts first, then the evidence, then every metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.core.side_by_side import SideBySide
from chainmark.report import validity
from chainmark.report.blocks import (
    Block,
    Column,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
    row_of,
    some_open,
    words,
)
from chainmark.report.by_workload_document import verdict_cells, verdict_columns
from chainmark.report.chart import Chart
from chainmark.report.charts import ChartContext, only_value, sample_chart
from chainmark.report.comparison_suite import comparison_suite
from chainmark.report.document import Document
from chainmark.report.judged_rows import JudgedRow, RowMaker, ranks_of
from chainmark.report.side_facts import manifest_table
from chainmark.report.split_parts import split_blocks
from chainmark.report.wording import GATE_MARKS, prose

_PAPER = (560, 230)
_UNBROKEN = "\u00a0"


@dataclass(frozen=True)
class _Candidate:
    """One candidate with its rows by metric and statistic."""

    label: str
    comparison: Comparison
    rows: Mapping[str, JudgedRow]


def side_by_side_document(document_: SideBySide) -> Document:
    """Lay out versions side by side."""
    candidates = []
    for label, comparison in zip(document_.labels[1:], document_.comparisons, strict=True):
        rows = {row.anchor: row for row in RowMaker(comparison, document_.comparisons).rows()}
        candidates.append(_Candidate(label, comparison, rows))
    gating = _metric_table("gating", "Gating metrics", document_.labels[0], candidates, _anchors(candidates, None))
    sections = [
        Section(
            "verdicts", "Verdicts", [_verdicts(candidates), gating, *_splits(candidates), *map(_reasons, candidates)]
        ),
        Section("validity", "Validity", _validity(candidates)),
        Section("manifest", "Manifest", [manifest_table(document_.facts, document_.labels)] if document_.facts else []),
        Section("metrics", "Metrics", _tables(document_.labels[0], candidates)),
        Section("charts", "Charts", some_open(_figures(document_, candidates))),
    ]
    return Document(
        kind="side-by-side",
        title=document_.title,
        subtitle=document_.subtitle,
        verdict=document_.verdict,
        sentence=prose(document_.sentence),
        suites=[comparison_suite(candidate.comparison, candidate.label) for candidate in candidates],
        sections=[section for section in sections if section.blocks],
        notes=[
            "Every version is compared with the first one, exactly as in a comparison of only these two. Several "
            "candidates do not make the judgement less strict.",
        ],
        result=document_,
    ).noted_once()


def _verdicts(candidates: Sequence[_Candidate]) -> Table:
    rows = []
    for candidate in candidates:
        moved = TableCell(units.count(sum(row.moved and not row.gating for row in candidate.rows.values())))
        rows.append(row_of(candidate.label, *verdict_cells(candidate.comparison), moved))
    columns = [*verdict_columns("version"), Column("moved")]
    note = "Gating metrics by outcome; “moved”: diagnostic metrics that changed (q = 0.05)."
    return Table("verdicts", "Verdict by version", columns, rows, [note])


def _reasons(candidate: _Candidate) -> Remarks:
    comparison = candidate.comparison
    return Remarks(
        f"reasons-{candidate.label}",
        f"{candidate.label} against {candidate.comparison.baseline.label}",
        [prose(text) for text in (comparison.sentence, *comparison.reasons)]
        + [f"Next: {prose(text)}" for text in comparison.advice]
        + ([prose(comparison.false_alarms.rate_sentence)] if comparison.false_alarms else []),
    )


def _splits(candidates: Sequence[_Candidate]) -> list[Block]:
    """The parts of each candidate's changes by cause."""
    blocks: list[Block] = []
    for index, candidate in enumerate(candidates):
        comparison = candidate.comparison
        deciding = {judgement.metric_id for judgement in comparison.judgements if judgement.gating}
        split_parts = split_blocks(comparison.splits, comparison.catalogue, deciding, candidate.label)
        blocks += [replace(block, id=f"{block.id}-{index}") for block in split_parts]
    return blocks


def _anchors(candidates: Sequence[_Candidate], table: str | None) -> list[str]:
    """The rows of a table, or without one the gating ones, in the order of the candidates' reports."""
    results: dict[str, None] = {}
    for candidate in candidates:
        tables = {metric.id: metric.table for metric in candidate.comparison.catalogue.metrics}
        for anchor, row in candidate.rows.items():
            if row.gating if table is None else tables[row.metric_id] == table:
                results[anchor] = None
    return list(results)


def _tables(base: str, candidates: Sequence[_Candidate]) -> list[Block]:
    titles: dict[str, str] = {}
    for candidate in candidates:
        for table in candidate.comparison.catalogue.tables:
            titles.setdefault(table.id, table.title)
    tables = [
        _metric_table(f"table-{id_}", title, base, candidates, _anchors(candidates, id_))
        for id_, title in titles.items()
    ]
    return [table for table in tables if table.rows]


def _metric_table(id_: str, title: str, base: str, candidates: Sequence[_Candidate], anchors: Sequence[str]) -> Table:
    columns = [*words("metric"), Column(base)]
    for candidate in candidates:
        columns += [
            Column(candidate.label, group=candidate.label),
            Column("change", group=candidate.label),
            Column("interval", group=candidate.label, kind="words"),
            Column("outcome", group=candidate.label, kind="words"),
        ]
    rows = []
    for anchor in anchors:
        first = next(item.rows[anchor] for item in candidates if anchor in item.rows)
        cells = [TableCell(first.label_with_unit), TableCell(first.baseline)]
        for candidate in candidates:
            cells += _cells(candidate.rows.get(anchor))
        rows.append(TableRow(cells))
    confidence = units.plain_percent(candidates[0].comparison.confidence)
    note = f"Columns of each version: the value, the change against {base}, its {confidence} interval, and the outcome."
    return Table(id_, title, columns, rows, [note])


def _cells(row: JudgedRow | None) -> list[TableCell]:
    if row is None:
        return [TableCell(units.NO_DATA, emphasis="quiet"), TableCell(), TableCell(), TableCell()]
    return [
        TableCell(row.candidate),
        TableCell(row.change, row.change_unit, row.emphasis),
        TableCell(row.interval.replace(" ", _UNBROKEN), emphasis="quiet" if row.emphasis == "quiet" else "plain"),
        TableCell(row.outcome, emphasis=row.emphasis),
    ]


def _validity(candidates: Sequence[_Candidate]) -> list[Block]:
    gates: dict[str, str] = {}
    for candidate in candidates:
        for gate in candidate.comparison.gates:
            gates.setdefault(gate.id, gate.label)
    rows = []
    for id_, label in gates.items():
        cells = [TableCell(label)]
        for candidate in candidates:
            result = next((gate for gate in candidate.comparison.gates if gate.id == id_), None)
            text = f"{GATE_MARKS[result.status]} {result.measured}" if result else units.UNSET
            cells.append(TableCell(text, emphasis="worse" if result and result.status == "fail" else "plain"))
        rows.append(TableRow(cells))
    columns = words("gate of the pair", *(item.label for item in candidates))
    blocks: list[Block] = [Table("gates", "Gates of each version with the baseline", columns, rows)] if rows else []
    for candidate in candidates:
        items = validity.concerns(candidate.comparison, warnings=True)
        if items:
            blocks.append(Remarks(f"validity-{candidate.label}", f"{candidate.label}: caveats", items))
    return blocks


def _figures(document_: SideBySide, candidates: Sequence[_Candidate]) -> list[Chart]:
    """Deciding metrics first, then by effect over noise; a metric with one constant value is not drawn."""
    ranks = ranks_of([row for candidate in candidates for row in candidate.rows.values()])
    indices = [index for index, chart in enumerate(document_.charts) if only_value(chart) is None]
    indices.sort(key=lambda index: ranks[document_.charts[index].metric_id])
    return [_figure(document_, index) for index in indices]


def _figure(document_: SideBySide, place: int) -> Chart:
    chart = document_.charts[place]
    metrics = {metric.id: metric for comparison in document_.comparisons for metric in comparison.catalogue.metrics}
    context = ChartContext(metrics[chart.metric_id].unit, {label: label for label in document_.labels})
    return replace(sample_chart(chart, context, ("charts", place)), palette="lines", paper=_PAPER)
