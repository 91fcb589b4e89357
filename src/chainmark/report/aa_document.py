"""One build against itself as a document: the verdict without a change, and the noise of every metric."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.aa_report import AAReport, NoiseRow
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, row_of, words
from chainmark.report.document import Document
from chainmark.report.wording import prose


def aa_document(report: AAReport) -> Document:
    """Lay out the measurements of one build."""
    left_out = [f"{run_id}: {reason}" for run_id, reason in report.left_out.items()]
    blocks: list[Block] = [_splits(report), _noise(report)]
    if left_out:
        blocks.append(Remarks("left-out", "Excluded runs", left_out))
    share = report.splits.get(Verdict.FAIL, 0) / sum(report.splits.values())
    is_within_limit = report.verdict is not Verdict.FAIL
    rate_text = "not significantly more than the nominal 5 %" if is_within_limit else "significantly more than 5 %"
    reason = f"{units.plain_percent(share)} of the splits judge one half as worse than the other, {rate_text}"
    return Document(
        kind="aa",
        title=report.title,
        subtitle=report.subtitle,
        verdict=report.verdict,
        sentence=prose(report.sentence),
        suites=[Suite(report.title, [Case("false-alarms", "False alarms", report.verdict, reason)])],
        sections=[Section("noise", "Measurement noise", blocks)],
        notes=[
            "The splits share runs and are not independent trials: the counts show only the order of magnitude. The "
            "runs are stored, and later verdicts on the same workload and hardware use their noise.",
            "The check fails if significantly more than 5 % of the splits are judged as worse. Inconclusive splits "
            "are due to the noise of so few runs. With more runs, fewer splits are inconclusive.",
        ],
        result=report,
        date=report.date,
        tool_version=report.tool_version,
    )


def _splits(report: AAReport) -> Table:
    rows = [row_of(verdict.value, TableCell(units.count(count))) for verdict, count in report.splits.items()]
    note = (
        f"{units.plural(report.runs_a_side, 'run')} per side. The noise estimate also uses "
        f"{units.plural(report.archive_runs, 'earlier run')}."
    )
    columns = [*words("verdict of one half against the other"), Column("splits")]
    return Table("splits", "Verdicts on an unchanged release", columns, rows, [note])


def _noise(report: AAReport) -> Table:
    columns = [
        *words("metric"),
        Column("mean"),
        Column("noise between runs"),
        Column("90 % interval", kind="intervals"),
        Column("margin"),
    ]
    return Table("figures", "Noise between runs of one build", columns, [_row(row) for row in report.noise])


def _row(row: NoiseRow) -> TableRow:
    def shown(value: float) -> str:
        if row.is_relative:
            return units.plain_percent(value, decimals=1)
        return units.tidy_quantity(value, row.unit, is_change=True)

    return row_of(
        f"{row.label}, {row.statistic}",
        TableCell(units.quantity(row.mean, row.unit)),
        TableCell(shown(row.deviation)),
        TableCell(f"{shown(row.low)} … {shown(row.high)}"),
        TableCell(units.plain_percent(row.margin) if row.is_relative else shown(row.margin)),
    )
