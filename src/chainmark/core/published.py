"""A comparison in the published style: what the reports that people know show, in their order.

Made from runs it holds full averages; made from a published report it holds what that report printed. Every rendering
is made from it.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

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


class FactRow(BaseModel):
    """One row of the manifest: a fact with its value in every version."""

    label: str
    values: list[str]


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
