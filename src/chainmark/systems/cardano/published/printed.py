"""A published report of the benchmarks, with the figures as it prints them."""

from __future__ import annotations

import re
from pathlib import Path

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric
from chainmark.core.side_by_side import FactRow
from chainmark.systems.cardano.published.content import (
    SAMPLE_COUNT,
    ReportContent,
    RowContent,
    TableContent,
    metrics_by_label,
    row_name,
)
from chainmark.systems.cardano.published.entries import published_of
from chainmark.systems.cardano.published.files import read_content
from chainmark.systems.cardano.published.reader import NUMBER
from chainmark.systems.cardano.published.results import (
    PublishedChange,
    PublishedColumn,
    PublishedReport,
    PublishedRow,
    PublishedTable,
    PublishedValue,
    ReportStyle,
    data_dictionary,
)

ERA = "Era"


def printed_report(path: Path, catalogue: Catalogue, tool_version: str) -> PublishedReport:
    """Read a published report.

    Args:
        path: the report: JSON, a PDF, or text of one.
        catalogue: the metrics, found in the report by their labels.
        tool_version: recorded in the result.

    Raises:
        UsageError: the file cannot be read, is of another kind, or a row does not have one number for each version.
    """
    content = read_content(path, catalogue)
    rows = [row for table in content.tables.values() for row in table.rows]
    style = ReportStyle.ORG if any(row_name(row) == SAMPLE_COUNT for row in rows) else ReportStyle.TYPST
    known = metrics_by_label(catalogue)
    facts = [FactRow(label=label, values=_facts(path, content, label)) for label in content.manifest]
    eras = next((fact.values for fact in facts if fact.label == ERA), [""] * len(content.versions))
    return PublishedReport(
        tool_version=tool_version,
        style=style,
        title=content.title or path.stem,
        workload=content.workload,
        author=content.author,
        date=content.date,
        statement=content.statement,
        columns=[
            PublishedColumn(label=version, beside=era.capitalize(), rules="values as printed")
            for version, era in zip(content.versions, eras, strict=True)
        ],
        facts=facts,
        tables=[_table(path, content, title, table, known) for title, table in content.tables.items()],
        figures=[],
        dictionary=data_dictionary(catalogue, style),
    )


def _facts(path: Path, content: ReportContent, label: str) -> list[str]:
    values = content.manifest[label]
    if len(values) != len(content.versions):
        raise _ragged(path, label, len(values), content)
    return [str(value) for value in values]


def _ragged(path: Path, label: str, result: int, content: ReportContent) -> UsageError:
    return UsageError(
        f"{path} has {result} values of `{label}` for {len(content.versions)} versions",
        "every row of a report must have one value per version",
    )


def _table(
    path: Path, content: ReportContent, title: str, table: TableContent, known: dict[str, Metric]
) -> PublishedTable:
    counts = next((row.values for row in table.rows if row_name(row) == SAMPLE_COUNT), [])
    rows = [_row(path, content, row, known) for row in table.rows if row_name(row) != SAMPLE_COUNT]
    metrics = [known[row.label] for row in rows if row.label in known]
    slug = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return PublishedTable(
        id=metrics[0].table if metrics else slug,
        title=title,
        rows=rows,
        sample_counts=[str(count) for count in counts] if len(counts) == len(content.versions) else [],
    )


def _row(path: Path, content: ReportContent, row: RowContent, known: dict[str, Metric]) -> PublishedRow:
    if len(row.values) != len(content.versions):
        raise _ragged(path, row.label, len(row.values), content)
    texts = [str(value).strip() for value in row.values]
    invalid = next((text for text in texts if NUMBER.fullmatch(text) is None or not any(map(str.isdigit, text))), None)
    if invalid is not None:
        raise UsageError(
            f"{path} has `{invalid}` for `{row.label}`, which is not a number",
            "figures must be decimal numbers such as 0.01234 or 7.7e-5",
        )
    name = row_name(row)
    metric = known.get(name)
    further = len(content.versions) - 1
    changes = []
    if len(row.delta) == len(row.delta_pct) == further:
        changes = [
            PublishedChange(delta=str(delta), percent=str(percent), printed=True)
            for delta, percent in zip(row.delta, row.delta_pct, strict=True)
            if _is_change(str(delta), str(percent))
        ]
    return PublishedRow(
        metric_id=metric.id if metric else None,
        label=name,
        unit=row.unit or row.label.removeprefix(name).removeprefix(",").strip(),
        width=published_of(metric).width if metric else None,
        values=[PublishedValue(printed=text) for text in texts],
        reported_changes=changes if len(changes) == further else [],
    )


def _is_change(delta: str, percent: str) -> bool:
    return NUMBER.fullmatch(delta) is not None and (percent.lower() == "nan" or NUMBER.fullmatch(percent) is not None)
