"""A system's catalogue: its metrics, populations, tables and conditions, as data."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator

from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric, MetricGroup, Population, SharedFact

Margins = Mapping[str, float]  # by metric id: the accepted relative change
NO_MARGINS: Margins = MappingProxyType({})


@dataclass(frozen=True)
class Bounds:
    """The limits for a learnt margin, as fractions of the baseline."""

    low: float = 0.05
    high: float = 0.20


WIDEST = 0.20  # default limit for margins widened by re-runs


@dataclass(frozen=True)
class FollowedBy:
    """The key columns of a traceable object, and the column of its place; None: it has one place."""

    key: tuple[str, ...]
    place: str | None = None


class Catalogue(BaseModel):
    """Every metric of one system, with the data to compute, judge, group and draw it.

    Attributes:
        trails: how samples can be linked to events; the system reads all of it, the description of a run the
            keys of the objects.
        published: the composition of the system's published reports; only the system reads it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    title: str
    populations: list[Population]
    tables: list[MetricGroup]
    conditions: list[SharedFact] = []
    trails: list[dict[str, JsonValue]] = []
    published: dict[str, JsonValue] | None = None
    metrics: list[Metric]

    @model_validator(mode="after")
    def _references_resolve(self) -> Catalogue:
        populations = {population.id for population in self.populations}
        tables = {table.id for table in self.tables}
        ids: set[str] = set()
        for metric in self.metrics:
            if metric.population not in populations:
                raise ValueError(f"metric `{metric.id}` names the unknown population `{metric.population}`")
            if metric.table not in tables:
                raise ValueError(f"metric `{metric.id}` names the unknown table `{metric.table}`")
            covariates = {covariate.column for covariate in self.population(metric.population).covariates}
            unknown = next((name for name in metric.adjusted_for if name not in covariates), None)
            if unknown is not None:
                raise ValueError(f"metric `{metric.id}` is adjusted for the unknown covariate `{unknown}`")
            if metric.id in ids:
                raise ValueError(f"metric `{metric.id}` is defined twice")
            ids.add(metric.id)
        return self

    @model_validator(mode="after")
    def _conditions_name_metrics(self) -> Catalogue:
        metric_ids = {metric.id for metric in self.metrics}
        for condition in self.conditions:
            unknown = next((name for name in condition.makes_incomparable if name not in metric_ids), None)
            if unknown is not None:
                raise ValueError(f"condition `{condition.id}` names the unknown metric `{unknown}`")
        return self

    def followed_by(self, population_id: str) -> FollowedBy | None:
        """The keys that link a population's samples to events; None if there are none."""
        for trail in self.trails:
            populations = trail.get("populations")
            if isinstance(populations, list) and population_id in populations:
                key, place = trail["key"], trail.get("place")
                columns = tuple(map(str, key)) if isinstance(key, list) else (str(key),)
                return FollowedBy(columns, None if place is None else str(place))
        return None

    def metric(self, metric_id: str) -> Metric:
        """The metric of that id.

        Raises:
            UsageError: there is none.
        """
        for metric in self.metrics:
            if metric.id == metric_id:
                return metric
        raise UsageError(
            f"`{metric_id}` is not a metric of {self.system}", f"`chainmark metrics {self.system}` lists them"
        )

    def with_margins(self, margins: Margins) -> Catalogue:
        """The catalogue with other margins; each metric keeps its floor.

        Raises:
            UsageError: there is no such metric, or the margin is not above zero.
        """
        for metric_id, margin in margins.items():
            metric = self.metric(metric_id)
            if not 0.0 < margin < math.inf:
                raise UsageError(
                    f"the margin of `{metric.id}` is {margin}", "a margin must be above zero: 0.2 accepts 20 %"
                )
        if not margins:
            return self
        changed = [
            metric.model_copy(update={"margin": margins.get(metric.id, metric.margin), "widened": None})
            for metric in self.metrics
        ]
        return self.model_copy(update={"metrics": changed})

    def with_widened(self, margins: Margins) -> Catalogue:
        """The catalogue with wider bands of equality; margins that are not wider than a metric's own change nothing.

        Args:
            margins: by metric id.
        """
        wider = {item.id for item in self.metrics if item.id in margins and margins[item.id] > item.margin}
        if not wider:
            return self
        changed = [
            item.model_copy(update={"widened": margins[item.id]}) if item.id in wider else item for item in self.metrics
        ]
        return self.model_copy(update={"metrics": changed})

    def population(self, population_id: str) -> Population:
        """The population of that id; the catalogue's own validation guarantees it for every metric's population."""
        return next(population for population in self.populations if population.id == population_id)

    def metrics_of(self, population_id: str) -> list[Metric]:
        """The metrics sampled over one population, in the catalogue's order."""
        return [metric for metric in self.metrics if metric.population == population_id]

    def judging(self, metric_ids: Collection[str] | None) -> Catalogue:
        """The catalogue with only these metrics gating, as far as it has them; None: unchanged."""
        if metric_ids is None:
            return self
        metrics = [metric.model_copy(update={"gating": metric.id in metric_ids}) for metric in self.metrics]
        return self.model_copy(update={"metrics": metrics})

    def sampled(self, columns: Mapping[str, Collection[str]]) -> Catalogue:
        """The part of the catalogue with samples in a run, so that what it was not set up to measure is not "no data".

        Args:
            columns: of the samples, by population. A metric whose measurement failed has a column without values.
        """
        metrics = [metric for metric in self.metrics if metric.id in columns.get(metric.population, ())]
        tables = {metric.table for metric in metrics}
        metric_ids = {metric.id for metric in metrics}
        conditions = [
            condition.model_copy(
                update={"makes_incomparable": [name for name in condition.makes_incomparable if name in metric_ids]}
            )
            for condition in self.conditions
        ]
        return self.model_copy(
            update={
                "metrics": metrics,
                "populations": [population for population in self.populations if population.id in columns],
                "tables": [table for table in self.tables if table.id in tables],
                "conditions": conditions,
                "trails": [_trail_of(trail, columns) for trail in self.trails],
            }
        )

    def ordered(self) -> list[Metric]:
        """All metrics in the order of the report: by table, then by ``order``, then by id."""
        rank = {table.id: index for index, table in enumerate(self.tables)}
        return sorted(self.metrics, key=lambda metric: (rank[metric.table], metric.order, metric.id))


def _trail_of(trail: Mapping[str, JsonValue], populations: Collection[str]) -> dict[str, JsonValue]:
    """A trail reduced to the existing populations."""
    followed = trail.get("populations")
    json_values: list[JsonValue] = (
        [item for item in followed if item in populations] if isinstance(followed, list) else []
    )
    return {**trail, "populations": json_values}


def load_catalogue(path: Path) -> Catalogue:
    """Read a catalogue from TOML.

    Its parts: ``[[population]]``, ``[[table]]``, ``[[condition]]``, ``[[trail]]``, ``[published]``, ``[[metric]]``.

    Raises:
        UsageError: the file is not a valid catalogue.
    """
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        return Catalogue(
            system=raw["system"],
            title=raw["title"],
            populations=raw["population"],
            tables=raw["table"],
            conditions=raw.get("condition", []),
            trails=raw.get("trail", []),
            published=raw.get("published"),
            metrics=raw["metric"],
        )
    except (KeyError, ValidationError) as error:
        raise UsageError(f"the catalogue {path} is not valid: {error}") from error
