"""The effect of margins as a document: each with the noise of its figure and the chance to decide by it."""

from __future__ import annotations

from collections.abc import Mapping

from chainmark.core import units
from chainmark.core.margin_report import MarginReport, MarginRow
from chainmark.core.verdict import Verdict, shown
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, row_of, words
from chainmark.report.document import Document
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import prose

_INSIDE = "inside noise"


def margin_document(report: MarginReport) -> Document:
    """Lay out margins and their chances."""
    blocks: list[Block] = [_table(report)] if report.rows else []
    if report.unknown:
        text = f"{', '.join(report.unknown)}: the margin in force remains"
        blocks.append(Remarks("unknown", "Metrics with unknown noise, or not compared by ratio", [text]))
    return Document(
        kind="margins",
        title=report.title,
        subtitle=report.subtitle,
        verdict=Verdict.INFORMATIONAL,
        sentence=prose(report.sentence),
        suites=[shown(report.title)],
        sections=[Section("margins", "Margins", blocks)] if blocks else [],
        notes=[
            "Learnt: three standard deviations of the change between re-runs, which is √2 times that of one run, "
            f"but at least {units.plain_percent(report.low)} and at most {units.plain_percent(report.high)}. "
            "After each margin follows the probability, by runs per side, of judging an unchanged release as equal in "
            "that metric, if its noise is as estimated. Inside noise: with one run per side, an unchanged release "
            "would not be judged as equal. Widened: earlier releases show that re-runs of one build may exceed the "
            "narrower margin. A change beyond the narrower margin is still worse. Floors widen margins and are not "
            "considered here.",
        ],
        result=report,
        date=report.date,
        tool_version=report.tool_version,
    )


def _table(report: MarginReport) -> Table:
    counted = [Column(units.plural(runs, "run")) for runs in report.rows[0].chances]
    columns = [*words("metric"), Column("noise of a run")]
    for name in ("margin in force", "learnt"):
        columns += [Column(name, kind="words"), *counted]
    return Table(
        "margins", "Probability of judging an unchanged release as equal", columns, [_row(row) for row in report.rows]
    )


def _row(row: MarginRow) -> TableRow:
    cells = [TableCell(units.plain_percent(row.deviation, decimals=1))]
    cells += _side(row.margin, row.chances, inside=row.inside_noise, widened_from=row.widened_from)
    cells += _side(row.learnt, row.learnt_chances, inside=row.learnt_inside_noise)
    return row_of(row.label, *cells)


def _side(
    margin: float, chances: Mapping[int, float], *, inside: bool, widened_from: float | None = None
) -> list[TableCell]:
    text = units.plain_percent(margin, decimals=1)
    text += "" if widened_from is None else f", widened from {units.plain_percent(widened_from, decimals=1)}"
    emphasis: Emphasis = "caution" if inside else "plain"
    shown_margin = TableCell(f"{text}, {_INSIDE}" if inside else text, emphasis=emphasis)
    return [shown_margin, *(TableCell(units.plain_percent(chance)) for chance in chances.values())]
