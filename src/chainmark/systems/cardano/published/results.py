"""A comparison in the published style: the content of the well-known reports, in their order.

Made from runs it holds full averages; made from a published report it holds the printed values. All renderings are made
from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric
from chainmark.core.side_by_side import FactRow
from chainmark.systems.cardano.published.entries import published_of, reports_of

PUBLISHED_SCHEMA = 1


class ReportStyle(StrEnum):
    """The two styles that published reports have had, named after what they were set with."""

    TYPST = "typst"  # values rounded, changes of full averages
    ORG = "org"  # values cut to six characters, changes of the cut values


class PublishedValue(BaseModel):
    """One figure: the full average if known, and the printed text if a report has one; or neither."""

    model_config = ConfigDict(frozen=True)

    value: float | None = None
    printed: str | None = None


class PublishedChange(BaseModel):
    """A change as printed.

    Attributes:
        delta: the difference; percent: the same in percent of the baseline. Empty if there is none.
        decided: whether it follows from the values; False if a report printed too few digits of them.
        printed: whether a report printed this change.
        agrees: False if the report's change is inconsistent with the values that it prints.
    """

    model_config = ConfigDict(frozen=True)

    delta: str = ""
    percent: str = ""
    decided: bool = True
    printed: bool = False
    agrees: bool = True


class PublishedRow(BaseModel):
    """One metric in every version.

    Attributes:
        metric_id: None for a row of a report that is not in the catalogue.
        label, unit: as the style prints them.
        width: the number of characters of a value in the reports; None if unknown.
        values: one per column.
        reported_changes: the changes that a report prints, one per further column; empty if it prints none.
        shown, changes: values and changes as this style prints them; computed from the others.
    """

    metric_id: str | None
    label: str
    unit: str
    width: int | None
    values: list[PublishedValue]
    reported_changes: list[PublishedChange] = []
    shown: list[str] = []
    changes: list[PublishedChange] = []


class PublishedTable(BaseModel):
    """One table; ``sample_counts`` as printed, one per column, in the style that has such a row."""

    id: str
    title: str
    rows: list[PublishedRow]
    sample_counts: list[str] = []


class PublishedColumn(BaseModel):
    """One version.

    Attributes:
        label: heading of its column.
        beside: text in brackets after it in the first sentence.
        runs: the runs of its values; empty for a column of a published report.
        rules: how its values were computed, in a sentence.
    """

    label: str
    beside: str = ""
    runs: list[str] = []
    rules: str = ""


class PublishedLine(BaseModel):
    """One version's distribution: at ``fractions[i]`` of the samples the metric is at most ``values[i]``."""

    label: str
    values: list[float]
    fractions: list[float]


class PublishedFigure(BaseModel):
    """One chart: all versions in one plot."""

    metric_id: str
    published_id: str
    label: str
    unit: str
    description: str
    logarithmic: bool
    lines: list[PublishedLine]


class PublishedEntry(BaseModel):
    """One metric of the data dictionary."""

    published_id: str
    label: str
    description: str


class PublishedDictionary(BaseModel):
    """One list of the data dictionary, sorted by published id."""

    title: str
    entries: list[PublishedEntry]


class PublishedReport(BaseModel):
    """The whole document."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = PUBLISHED_SCHEMA
    tool_version: str
    style: ReportStyle
    title: str
    workload: str
    author: str = ""
    date: str
    statement: str
    columns: list[PublishedColumn]
    facts: list[FactRow]
    tables: list[PublishedTable]
    figures: list[PublishedFigure]
    dictionary: list[PublishedDictionary]
    notes: list[str] = []
    caveats: CaveatsField = Caveats()


def published_label(metric: Metric, style: ReportStyle) -> str:
    """A metric's label as reports of that style print it."""
    published = published_of(metric)
    own = published.org_label if style is ReportStyle.ORG else None
    return own or published.label or metric.label


def published_unit(metric: Metric, style: ReportStyle) -> str:
    """A metric's unit as reports of that style print it."""
    published = published_of(metric)
    own = published.org_unit if style is ReportStyle.ORG else None
    return own or published.unit or metric.unit


def data_dictionary(catalogue: Catalogue, style: ReportStyle) -> list[PublishedDictionary]:
    """Every metric that the published reports know, in their lists, each sorted by published id."""
    reports = reports_of(catalogue)
    if reports is not None and reports.dictionary:
        parts = [(part.title, part.tables) for part in reports.dictionary]
    else:
        parts = [("Metrics", [table.id for table in catalogue.tables])]
    lists = []
    for title, tables in parts:
        entries = [
            PublishedEntry(
                published_id=metric.published_id,
                label=published_label(metric, style),
                description=" ".join(metric.description.split()),
            )
            for metric in catalogue.metrics
            if metric.published_id is not None and metric.table in tables
        ]
        entries.sort(key=lambda entry: entry.published_id)
        if entries:
            lists.append(PublishedDictionary(title=title, entries=entries))
    return lists


def find_version(report: PublishedReport, version: str) -> int:
    """The index of a version's column.

    Raises:
        UsageError: the report has no such version.
    """
    labels = [column.label for column in report.columns]
    if version not in labels:
        raise UsageError(
            f"the report “{report.title}” has no version `{version}`", f"its versions are {', '.join(labels)}"
        )
    return labels.index(version)


def chosen(report: PublishedReport, retained: Sequence[int]) -> PublishedReport:
    """Some columns of a report. The printed changes are kept as long as their baseline is.

    Args:
        report: the source of the columns.
        retained: their indices, the new baseline's first.
    """
    result = report.model_copy(deep=True)
    result.columns = [result.columns[index] for index in retained]
    for fact in result.facts:
        fact.values = [fact.values[index] for index in retained]
    for table in result.tables:
        table.sample_counts = [table.sample_counts[index] for index in retained] if table.sample_counts else []
        for row in table.rows:
            row.values = [row.values[index] for index in retained]
            row.reported_changes = (
                [row.reported_changes[index - 1] for index in retained[1:]]
                if row.reported_changes and retained[:1] == [0]
                else []
            )
    labels = {column.label for column in result.columns}
    for figure in result.figures:
        figure.lines = [line for line in figure.lines if line.label in labels]
    return result
