"""Two versions under several workloads as a document: the verdicts first, then workload by workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.by_workload import ByWorkload
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.question import Question
from chainmark.report import validity
from chainmark.report.blocks import IN_FULL, ON_PAGES, Block, Column, Remarks, Section, Table, TableCell, row_of, words
from chainmark.report.charts import summary_charts
from chainmark.report.comparison_document import beside_anchor
from chainmark.report.comparison_suite import comparison_suite
from chainmark.report.document import Document
from chainmark.report.judged_rows import INSIDE_NOISE_MEANS, JudgedRow, RowMaker, moved_text
from chainmark.report.metric_tables import gating_table, metric_tables
from chainmark.report.split_parts import split_blocks
from chainmark.report.wording import prose, verdict_cell


def by_workload_document(result: ByWorkload) -> Document:
    """Lay out the comparisons of two versions."""
    parts = list(zip(result.labels, result.comparisons, strict=True))
    is_judged = any(comparison.question is Question.WORSE for comparison in result.comparisons)
    first: list[Block] = [verdicts_table(result)] if is_judged else []
    if result.unmatched:
        first.append(Remarks("unmatched", "Not compared", result.unmatched))
    return Document(
        kind="by-workload",
        title=result.title,
        subtitle=result.subtitle,
        verdict=result.verdict,
        sentence=prose(result.sentence),
        suites=[comparison_suite(part, label) for label, part in parts],
        sections=[
            *([Section("verdicts", "Verdicts", first)] if first else []),
            *(
                Section(f"workload-{index}", label, workload_blocks(index, label, part, ("comparisons", index)))
                for index, (label, part) in enumerate(parts)
            ),
        ],
        notes=["Each workload is judged separately. The overall verdict is the worst of them."],
        result=result,
        contents=True,
    ).noted_once()


def verdicts_table(result: ByWorkload) -> Table:
    """The verdict under each workload, and the number of gating metrics with each outcome."""
    rows = [
        row_of(label, *verdict_cells(comparison))
        for label, comparison in zip(result.labels, result.comparisons, strict=True)
    ]
    return Table("verdicts", "Verdict by workload", verdict_columns("workload"), rows, ["Gating metrics by outcome."])


def verdict_columns(of: str) -> list[Column]:
    """The columns of a table of verdicts, after the given first one."""
    return [*words(of, "verdict"), *(Column(outcome.value) for outcome in Outcome)]


def verdict_cells(comparison: Comparison) -> list[TableCell]:
    """The verdict, and the number of gating metrics with each outcome."""
    judged = [item.outcome for item in comparison.judgements if item.gating]
    counts = [TableCell(units.count(judged.count(outcome))) for outcome in Outcome]
    return [verdict_cell(comparison.verdict), *counts]


def workload_blocks(
    place: int, label: str, comparison: Comparison, path: Sequence[str | int], *, in_full: bool = True
) -> list[Block]:
    """The decision under one workload, and the reasons; in full also the moved metrics, all tables and the charts.

    Args:
        place: index of the workload, for the ids of the blocks.
        label: its name.
        comparison: the comparison under it.
        path: where that is in the document's result.
        in_full: whether the metrics that do not decide are shown.
    """
    rows = [replace(row, anchor=f"workload-{place}-{row.anchor}") for row in RowMaker(comparison).rows()]
    reasons = [prose(text) for text in (comparison.sentence, *comparison.reasons)] + [
        f"Next: {prose(text)}" for text in comparison.advice
    ]
    reasons += [prose(comparison.false_alarms.rate_sentence)] if comparison.false_alarms else []
    table = gating_table(comparison, rows)
    gating = replace(table, title=f"{label}: {table.title[:1].lower()}{table.title[1:]}")
    deciding = {judgement.metric_id for judgement in comparison.judgements if judgement.gating}
    split = split_blocks(comparison.splits, comparison.catalogue, deciding, label)
    blocks: list[Block] = [
        gating,
        *beside_anchor(comparison),
        *split,
        Remarks("why", f"{label}: why", reasons, abreast=True),
    ]
    if any(row.is_inside_noise for row in rows):
        blocks.insert(1, Remarks("gating-legend", "", [INSIDE_NOISE_MEANS], media=IN_FULL))
    if in_full and (moved := [moved_text(row) for row in rows if row.moved and not row.gating]):
        blocks.append(Remarks("moved", "Diagnostics that moved (q = 0.05)", moved))
    if concerns := validity.concerns(comparison, warnings=True):
        blocks.append(Remarks("concerns", "Caveats", concerns))
    if in_full:
        blocks += [*_tables(comparison, rows), *summary_charts(comparison, path)]
    return [replace(block, id=f"workload-{place}-{block.id}") for block in blocks]


def _tables(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Table]:
    return [replace(table, media=ON_PAGES) for table in metric_tables(comparison, rows).values()]
