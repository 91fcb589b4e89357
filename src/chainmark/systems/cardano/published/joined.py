"""Join reports in the published style: their columns side by side, the first one as the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.core import units
from chainmark.core.caveats import Caveats
from chainmark.core.errors import UsageError
from chainmark.core.side_by_side import FactRow
from chainmark.core.wording import enumerated
from chainmark.systems.cardano.published.columns import has_published, published_column, workload_notes
from chainmark.systems.cardano.published.results import (
    PublishedChange,
    PublishedReport,
    PublishedRow,
    PublishedTable,
    PublishedValue,
    ReportStyle,
    chosen,
)


def compare_published(
    parts: Sequence[Sequence[RunData] | PublishedReport], style: ReportStyle, *, tool_version: str
) -> PublishedReport:
    """Versions as the published reports of their system show them; nothing is judged.

    Args:
        parts: the runs of a version, or a published report with its versions; the first version is the baseline.
        style: of the report.
        tool_version: recorded in the result.

    Raises:
        UsageError: there is one version alone, or a part cannot be shown in this style.
    """
    # Next to runs without figures by the published rules, the others' own ones match.
    runs = [LoadedRun(run) for part in parts if not isinstance(part, PublishedReport) for run in part]
    is_published = any(isinstance(part, PublishedReport) for part in parts) or all(has_published(run) for run in runs)
    reports = [
        restyled(part, style)
        if isinstance(part, PublishedReport)
        else published_column(part, style, tool_version=tool_version, published_rules=is_published)
        for part in parts
    ]
    result = joined(reports)
    result.notes += workload_notes([part for part in parts if not isinstance(part, PublishedReport)])
    return result


def restyled(report: PublishedReport, style: ReportStyle) -> PublishedReport:
    """A printed report as part of one in another style.

    The org style computes its changes from printed values, so these are enough for it. The typst style needs averages
    with more digits than the org style has left.

    Raises:
        UsageError: the digits that the style needs were not printed.
    """
    if report.style is style:
        return report
    if style is ReportStyle.TYPST:
        raise UsageError(
            f"the report “{report.title}” is in the org style, which omits digits that the typst style needs",
            "omit `--era`, or use `--era org`: the changes are then those of the printed values",
        )
    result = report.model_copy(deep=True)
    result.style = style
    for table in result.tables:
        for row in table.rows:
            row.reported_changes = []
    names = enumerated([column.label for column in report.columns])
    result.notes.append(f"{names}: printed in the typst style; changes are those of the printed values.")
    return result


def joined(reports: Sequence[PublishedReport]) -> PublishedReport:
    """Join reports: all their columns, the first one as the baseline.

    A version that an earlier report already has, with the same manifest and the same values, is not shown twice. A
    printed change is kept only if its baseline is that of the joined report.

    Args:
        reports: of one style, in the order of their columns.

    Raises:
        UsageError: there is only one column.
    """
    result = reports[0].model_copy(deep=True)
    for report in reports[1:]:
        new = chosen(report, [index for index in range(len(report.columns)) if not _is_known(result, report, index)])
        _append(result, _named_apart(new, [column.label for column in result.columns]))
    if len(result.columns) < 2:
        raise UsageError("at least two versions are required", "give two or more versions, the baseline first")
    result.caveats = Caveats.joined(report.caveats for report in reports)
    if len(reports) > 1:
        result.title = (
            f"{enumerated([column.label for column in result.columns[1:]])} against {result.columns[0].label}"
        )
        workloads = list(dict.fromkeys(report.workload for report in reports))
        result.workload = enumerated(workloads)
        if len(workloads) > 1:
            result.notes.append("The workloads differ, so the changes are not only those of the versions.")
        result.date = max(report.date for report in reports)
        authors = {report.author for report in reports}
        result.author = authors.pop() if len(authors) == 1 else ""
        result.statement = _statement(result)
    return result


def _statement(report: PublishedReport) -> str:
    base, *others = [
        f"{column.label} ({column.beside})" if column.beside else column.label for column in report.columns
    ]
    return f"We compare {enumerated(others)} relative to {base}, under {report.workload} workload."


def _is_known(result: PublishedReport, report: PublishedReport, index: int) -> bool:
    """Whether a column exists already: the same version with the same facts and the same values."""
    for place, column in enumerate(result.columns):
        if column.label == report.columns[index].label and column.runs == report.columns[index].runs:
            known = {row.label: row.values[place] for row in result.facts}
            if all(known.get(row.label, row.values[index]) == row.values[index] for row in report.facts):
                values = {_key(row): row.values[place] for table in result.tables for row in table.rows}
                rows = [row for table in report.tables for row in table.rows]
                return all(values.get(_key(row), row.values[index]) == row.values[index] for row in rows)
    return False


def _key(row: PublishedRow) -> str:
    return row.metric_id or row.label


def _append(result: PublishedReport, report: PublishedReport) -> None:
    """Append a report's columns to those of another; what either lacks is empty there."""
    before, more = len(result.columns), len(report.columns)
    result.columns += report.columns
    reported = {fact.label: fact.values for fact in report.facts}
    for fact in result.facts:
        fact.values += reported.pop(fact.label, [units.UNSET] * more)
    result.facts += [FactRow(label=label, values=[units.UNSET] * before + values) for label, values in reported.items()]
    tables = {table.id: table for table in report.tables}
    for table in result.tables:
        _append_rows(table, tables.pop(table.id, None), before, more)
    for table in tables.values():
        empty = PublishedTable(id=table.id, title=table.title, rows=[])
        _append_rows(empty, table, before, more)
        result.tables.append(empty)
    figures = {figure.metric_id: figure for figure in report.figures}
    for figure in result.figures:
        other = figures.pop(figure.metric_id, None)
        figure.lines += other.lines if other else []
    result.figures += figures.values()
    result.notes += [note for note in report.notes if note not in result.notes]


def _append_rows(table: PublishedTable, other: PublishedTable | None, before: int, more: int) -> None:
    rows = {_key(row): row for row in other.rows} if other else {}
    nothing = PublishedValue()
    for row in table.rows:
        published_row = rows.pop(_key(row), None)
        row.values += published_row.values if published_row else [nothing] * more
        row.reported_changes += [PublishedChange()] * more if row.reported_changes else []
    for row in rows.values():
        table.rows.append(row.model_copy(update={"values": [nothing] * before + row.values, "reported_changes": []}))
    counts = other.sample_counts if other else []
    if table.sample_counts or counts:
        table.sample_counts = (table.sample_counts or [""] * before) + (counts or [""] * more)


def _named_apart(report: PublishedReport, taken: Sequence[str]) -> PublishedReport:
    """The same report with a number after every version whose name is taken, so that all columns are distinct."""
    result = report.model_copy(deep=True)
    used = list(taken)
    names: dict[str, str] = {}
    for column in result.columns:
        name, number = column.label, 1
        while name in used:
            number += 1
            name = f"{column.label} ({number})"
        used.append(name)
        names[column.label] = name
    result.columns = [item.model_copy(update={"label": names[item.label]}) for item in result.columns]
    for figure in result.figures:
        figure.lines = [line.model_copy(update={"label": names[line.label]}) for line in figure.lines]
    return result
