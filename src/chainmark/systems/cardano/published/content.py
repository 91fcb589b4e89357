"""The printed figures of a published report, independent of its file format."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Metric
from chainmark.systems.cardano.published.entries import published_of

# Rows with another name in some reports than in the catalogue.
LABEL_VARIANTS = {
    "RTS live GC dataset": "RTS live GC dateset",
    "RTS live GC dateset": "RTS live GC dataset",
    "Fetches to announced": "Fetched to announced",
    "Fetches to sending": "Fetched to sending",
    "Fetches to adopted": "Fetched to adopted",
    "Fetch to adopted": "Fetched to adopted",
}


# A row that only reports of the org style have.
SAMPLE_COUNT = "Sample count"


class RowContent(BaseModel):
    """A row as in the JSON: one value per version, one change per further version."""

    label: str
    metric: str | None = None
    unit: str = ""
    values: list[Any] = []
    delta: list[Any] = []
    delta_pct: list[Any] = []


class TableContent(BaseModel):
    """A table as in the JSON."""

    rows: list[RowContent]


class ReportContent(BaseModel):
    """A report as in the JSON; ``unread`` are rows of a text that could not be parsed."""

    versions: list[str]
    title: str = ""
    workload: str = ""
    author: str = ""
    date: str = ""
    statement: str = ""
    manifest: dict[str, list[Any]] = {}
    tables: dict[str, TableContent]
    unread: list[str] = []


def row_name(row: RowContent) -> str:
    """A row's name without its unit."""
    return row.metric or row.label.rpartition(",")[0] or row.label


def metrics_by_label(catalogue: Catalogue) -> dict[str, Metric]:
    """The metrics by every possible label in a report; those in the reports' tables come first."""
    metrics: dict[str, Metric] = {}
    for metric in sorted(catalogue.metrics, key=lambda item: published_of(item).width is None):
        published = published_of(metric)
        for label in (metric.label, published.label, published.org_label):
            if label is not None:
                metrics.setdefault(label, metric)
    for variant, label in LABEL_VARIANTS.items():
        if label in metrics:
            metrics.setdefault(variant, metrics[label])
    return metrics
