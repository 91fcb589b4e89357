"""A catalogue's entries about published reports: their composition, and how they show a metric."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Metric


class DictionaryPart(BaseModel):
    """One list of the published reports' data dictionary: the metrics of some tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    tables: list[str]


class PublishedReports(BaseModel):
    """The composition of the published reports.

    Attributes:
        tables: the IDs of their tables, in order.
        dictionary: the lists of their data dictionary, in order.
        beside_version: the label of the fact in brackets after a version in their first sentence.
        workload: the dotted key of a run's workload or profile that names the workload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: list[str]
    dictionary: list[DictionaryPart] = []
    beside_version: str | None = None
    workload: str = "workload.name"


class Published(BaseModel):
    """How the published reports show a metric, if that differs from its label and unit here.

    Attributes:
        label, unit: as those reports print them.
        org_label, org_unit: as the earlier ones of the org style printed them, if that differs.
        width: the number of characters of a value; None: the metric is in none of their tables.
        chart: the index of its chart; None: they draw none.
        chart_style: the style of the reports that draw it ("typst", "org"); None: both.
        logarithmic: whether the charts of the org style have a logarithmic axis for its values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str | None = None
    unit: str | None = None
    org_label: str | None = None
    org_unit: str | None = None
    width: int | None = None
    chart: int | None = None
    chart_style: Literal["typst", "org"] | None = None
    logarithmic: bool = False


def checked(catalogue: Catalogue) -> Catalogue:
    """The same catalogue, with all defaults of its entries about published reports written out.

    Raises:
        ValidationError: an entry has other keys about them.
    """
    metrics = [
        metric.model_copy(update={"published": published_of(metric).model_dump() if metric.published else None})
        for metric in catalogue.metrics
    ]
    reports = reports_of(catalogue)
    return catalogue.model_copy(update={"metrics": metrics, "published": reports.model_dump() if reports else None})


def published_of(metric: Metric) -> Published:
    """How the reports show a metric; an unknown one has neither a width nor a chart."""
    return Published.model_validate(metric.published or {})


def reports_of(catalogue: Catalogue) -> PublishedReports | None:
    """The composition of the reports; None if the catalogue does not state it."""
    return None if catalogue.published is None else PublishedReports.model_validate(catalogue.published)
