"""A comparison in the published style: what the reports that people know show, in their order.

Made from runs it holds full averages; made from a published report it holds what that report printed. Every rendering
is made from it.
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
    ORG = "org"  # values cut to six characters, changes of what is left


class PublishedValue(BaseModel):
    """One figure: the full average where it is known, and how a report printed it where one did; or neither."""

    model_config = ConfigDict(frozen=True)

    value: float | None = None
    printed: str | None = None


class PublishedChange(BaseModel):
    """A change as printed.

    Attributes:
        delta: the difference; percent: the same in percent of the baseline. Empty where there is none.
        decided: whether it follows from the values; False where a report printed too few digits of them.
        told: whether a report printed this very change.
        agrees: False where the report's change cannot be that of the values that it prints.
    """

    model_config = ConfigDict(frozen=True)

    delta: str = ""
    percent: str = ""
    decided: bool = True
    told: bool = False
    agrees: bool = True


class PublishedRow(BaseModel):
    """One metric in every version.

    Attributes:
        metric_id: None for a row of a report that the catalogue does not know.
        label, unit: as the style prints them.
        width: the characters that the reports leave for a value; None where nobody knows.
        values: one a column.
        told: the changes that a report prints, one a further column; empty where none does.
        shown, changes: values and changes as this style prints them; computed from the others.
    """

    metric_id: str | None
    label: str
    unit: str
    width: int | None
    values: list[PublishedValue]
    told: list[PublishedChange] = []
    shown: list[str] = []
    changes: list[PublishedChange] = []


class PublishedTable(BaseModel):
    """One table; ``sample_counts`` as printed, one a column, of the style that has such a row."""

    id: str
    title: str
    rows: list[PublishedRow]
    sample_counts: list[str] = []


class PublishedColumn(BaseModel):
    """One version.

    Attributes:
        label: what stands above its column.
        beside: what stands in brackets behind it in the first sentence.
        runs: the runs that its values are of; empty for a column of a published report.
        rules: how its values came about, in a sentence.
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
    """The place of a version's column.

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
    """Some columns of a report. The changes that it prints stay as long as their baseline does.

    Args:
        report: whose columns.
        retained: their places, the new baseline's first.
    """
    result = report.model_copy(deep=True)
    result.columns = [result.columns[index] for index in retained]
    for fact in result.facts:
        fact.values = [fact.values[index] for index in retained]
    for table in result.tables:
        table.sample_counts = [table.sample_counts[index] for index in retained] if table.sample_counts else []
        for row in table.rows:
            row.values = [row.values[index] for index in retained]
            row.told = [row.told[index - 1] for index in retained[1:]] if row.told and retained[:1] == [0] else []
    labels = {column.label for column in result.columns}
    for figure in result.figures:
        figure.lines = [line for line in figure.lines if line.label in labels]
    return result
