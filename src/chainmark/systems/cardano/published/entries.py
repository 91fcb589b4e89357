"""What a catalogue's entries say of published reports: how these are composed, and how they show a metric."""

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
    """How the reports that people know are composed.

    Attributes:
        tables: the ids of their tables, in their order.
        dictionary: the lists of their data dictionary, in their order.
        beside_version: the label of the fact that stands in brackets behind a version in their first sentence.
        workload: the dotted key of a run's workload or profile that names the workload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: list[str]
    dictionary: list[DictionaryPart] = []
    beside_version: str | None = None
    workload: str = "workload.name"


class Published(BaseModel):
    """How the reports that people know show a metric, where that differs from its label and unit here.

    Attributes:
        label, unit: as those reports print them.
        org_label, org_unit: as the earlier ones of the org style printed them, where that differs.
        width: the characters that they leave for a value; None: the metric stands in no table of theirs.
        chart: the place of its chart among theirs; None: they draw none.
        chart_style: the style of the reports that draw it ("typst", "org"); None: both.
        logarithmic: whether the values of their charts of the org style stand on a logarithmic axis.
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
    """The same catalogue, with all that its entries leave out of published reports written out.

    Raises:
        ValidationError: an entry says something else of them.
    """
    metrics = [
        metric.model_copy(update={"published": published_of(metric).model_dump() if metric.published else None})
        for metric in catalogue.metrics
    ]
    reports = reports_of(catalogue)
    return catalogue.model_copy(update={"metrics": metrics, "published": reports.model_dump() if reports else None})


def published_of(metric: Metric) -> Published:
    """How the reports show a metric; one that they do not know has neither a width nor a chart."""
    return Published.model_validate(metric.published or {})


def reports_of(catalogue: Catalogue) -> PublishedReports | None:
    """How the reports are composed; None where the catalogue does not say."""
    return None if catalogue.published is None else PublishedReports.model_validate(catalogue.published)
