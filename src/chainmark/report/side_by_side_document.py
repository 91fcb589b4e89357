"""Three or more versions as a document: the verdicts first, then what they rest on, then every metric."""

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
        word=document_.verdict.value.upper(),
        sentence=prose(document_.sentence),
        suites=[comparison_suite(one.comparison, one.label) for one in candidates],
        sections=[section for section in sections if section.blocks],
        notes=[
            "Every version is compared with the first one, as the two alone would be: several candidates are no reason "
            "to judge any of them less strictly.",
        ],
        result=document_,
    ).noted_once()


def _verdicts(candidates: Sequence[_Candidate]) -> Table:
    rows = []
    for one in candidates:
        moved = TableCell(units.count(sum(row.moved and not row.gating for row in one.rows.values())))
        rows.append(row_of(one.label, *verdict_cells(one.comparison), moved))
    columns = [*verdict_columns("version"), Column("moved")]
    note = "Gating metrics by outcome; “moved”: diagnostic metrics that changed (q = 0.05)."
    return Table("verdicts", "Verdict by version", columns, rows, [note])


def _reasons(one: _Candidate) -> Remarks:
    found = one.comparison
    return Remarks(
        f"reasons-{one.label}",
        f"{one.label} against {one.comparison.baseline.label}",
        [prose(text) for text in (found.sentence, *found.reasons)]
        + [f"→ {prose(text)}" for text in found.advice]
        + ([prose(found.false_alarms.told)] if found.false_alarms else []),
    )


def _splits(candidates: Sequence[_Candidate]) -> list[Block]:
    """What of each candidate's changes has which cause."""
    blocks: list[Block] = []
    for place, one in enumerate(candidates):
        found = one.comparison
        deciding = {judgement.metric_id for judgement in found.judgements if judgement.gating}
        own = split_blocks(found.splits, found.catalogue, deciding, one.label)
        blocks += [replace(block, id=f"{block.id}-{place}") for block in own]
    return blocks


def _anchors(candidates: Sequence[_Candidate], table: str | None) -> list[str]:
    """The rows of a table, or without one the gating ones, in the order of the candidates' reports."""
    found: dict[str, None] = {}
    for one in candidates:
        tables = {metric.id: metric.table for metric in one.comparison.catalogue.metrics}
        for anchor, row in one.rows.items():
            if row.gating if table is None else tables[row.metric_id] == table:
                found[anchor] = None
    return list(found)


def _tables(base: str, candidates: Sequence[_Candidate]) -> list[Block]:
    titles: dict[str, str] = {}
    for one in candidates:
        for table in one.comparison.catalogue.tables:
            titles.setdefault(table.id, table.title)
    tables = [
        _metric_table(f"table-{id_}", title, base, candidates, _anchors(candidates, id_))
        for id_, title in titles.items()
    ]
    return [table for table in tables if table.rows]


def _metric_table(id_: str, title: str, base: str, candidates: Sequence[_Candidate], anchors: Sequence[str]) -> Table:
    columns = [*words("metric"), Column(base)]
    for one in candidates:
        columns += [
            Column(one.label, group=one.label),
            Column("change", group=one.label),
            Column("interval", group=one.label, kind="words"),
            Column("outcome", group=one.label, kind="words"),
        ]
    rows = []
    for anchor in anchors:
        first = next(one.rows[anchor] for one in candidates if anchor in one.rows)
        cells = [TableCell(first.label_with_unit), TableCell(first.baseline)]
        for one in candidates:
            cells += _cells(one.rows.get(anchor))
        rows.append(TableRow(cells))
    confidence = units.plain_percent(candidates[0].comparison.confidence)
    note = f"Under each version: its value, the change against {base} with its {confidence} interval, and the outcome."
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
    for one in candidates:
        for gate in one.comparison.gates:
            gates.setdefault(gate.id, gate.label)
    rows = []
    for id_, label in gates.items():
        cells = [TableCell(label)]
        for one in candidates:
            found = next((gate for gate in one.comparison.gates if gate.id == id_), None)
            text = f"{GATE_MARKS[found.status]} {found.measured}" if found else units.UNSET
            cells.append(TableCell(text, emphasis="worse" if found and found.status == "fail" else "plain"))
        rows.append(TableRow(cells))
    columns = words("gate of the pair", *(one.label for one in candidates))
    blocks: list[Block] = [Table("gates", "Each version with the baseline", columns, rows)] if rows else []
    for one in candidates:
        items = validity.concerns(one.comparison, warnings=True)
        if items:
            blocks.append(Remarks(f"validity-{one.label}", f"{one.label}: what to know before believing it", items))
    return blocks


def _figures(document_: SideBySide, candidates: Sequence[_Candidate]) -> list[Chart]:
    """What decides first, then by effect against noise; what is the same in every sample is not drawn."""
    ranks = ranks_of([row for one in candidates for row in one.rows.values()])
    places = [place for place, chart in enumerate(document_.charts) if only_value(chart) is None]
    places.sort(key=lambda place: ranks[document_.charts[place].metric_id])
    return [_figure(document_, place) for place in places]


def _figure(document_: SideBySide, place: int) -> Chart:
    chart = document_.charts[place]
    metrics = {metric.id: metric for one in document_.comparisons for metric in one.catalogue.metrics}
    context = ChartContext(metrics[chart.metric_id].unit, {label: label for label in document_.labels})
    return replace(sample_chart(chart, context, ("charts", place)), palette="lines", paper=_PAPER)
