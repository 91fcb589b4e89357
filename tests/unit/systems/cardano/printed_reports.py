"""Invented published reports: the printed values, without the runs that they were computed from."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core.side_by_side import FactRow
from chainmark.systems.cardano.published.results import (
    PublishedChange,
    PublishedColumn,
    PublishedReport,
    PublishedRow,
    PublishedTable,
    PublishedValue,
    ReportStyle,
)


def printed_row(
    label: str,
    unit: str,
    width: int | None,
    *printed: str,
    printed_changes: Sequence[tuple[str, str]] = (),
    metric_id: str | None = None,
) -> PublishedRow:
    """One metric as printed, with the absolute and relative changes that the report states."""
    return PublishedRow(
        metric_id=metric_id,
        label=label,
        unit=unit,
        width=width,
        values=[PublishedValue(printed=text) for text in printed],
        reported_changes=[
            PublishedChange(delta=delta, percent=percent, printed=True) for delta, percent in printed_changes
        ],
    )


def printed_report(
    rows: Sequence[PublishedRow],
    *versions: str,
    style: ReportStyle = ReportStyle.TYPST,
    table: tuple[str, str] = ("resource", "Resource Usage"),
) -> PublishedReport:
    """A report with one table, given by its id and title."""
    return PublishedReport(
        tool_version="test",
        style=style,
        title="a report",
        workload="value-only",
        date="2026-01-01",
        statement="We compare.",
        columns=[PublishedColumn(label=version) for version in versions],
        facts=[FactRow(label="Machines", values=["52"] * len(versions))],
        tables=[PublishedTable(id=table[0], title=table[1], rows=list(rows))],
        figures=[],
        dictionary=[],
    )
