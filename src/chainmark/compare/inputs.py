"""The interface of a run for comparisons, and a run with cached reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary, standard_error_in, value_in
from chainmark.core.manifest import Grouping, Manifest
from chainmark.core.metric import Metric, Population
from chainmark.stats.description import (
    LAYOUT,
    Descriptions,
    Extreme,
    MetricDescription,
    describe,
    describe_population,
    to_frame,
)
from chainmark.stats.samples import FrameSamples, OrderedSamples

_CACHED_CELLS = 250_000  # of a population's table: 2 MB; a larger one is read column by column


class RunData(Protocol):
    """A sealed run as a comparison reads it."""

    @property
    def manifest(self) -> Manifest:
        """The manifest: subject, method and environment."""

    @property
    def catalogue(self) -> Catalogue:
        """The metrics' definitions at the time of the run."""

    def summaries(self) -> Mapping[str, MetricSummary]:
        """Per metric id, its distribution and estimates."""

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The given columns (None: all) that a population has; called only if some metric has a value."""


@runtime_checkable
class HasEvents(Protocol):
    """A run whose samples can be linked to events; runs in memory need not support it."""

    def scan_events(self, name: str) -> pl.LazyFrame:
        """The typed events of one kind, of which only the requested columns are read."""


@runtime_checkable
class KeepsDocuments(Protocol):
    """A run that may contain further documents; runs in memory do not."""

    def document(self, name: str) -> dict[str, Any] | None:
        """The document with this name; None if there is none."""


@runtime_checkable
class KeepsFigures(Protocol):
    """A run that may contain figures by other rules than its own; runs in memory do not."""

    def figures(self, name: str) -> pl.DataFrame | None:
        """A table of them; None if the run has none of that name."""


@runtime_checkable
class KeepsDescription(Protocol):
    """A run that caches descriptions of its samples; runs in memory do not."""

    def description(self, layout: int) -> pl.DataFrame | None:
        """The cached description in this layout; None if there is none."""

    def keep_description(self, frame: pl.DataFrame, layout: int) -> None:
        """Cache it for the next time, if possible."""


@runtime_checkable
class KeepsValues(Protocol):
    """A run that can return single values without its summaries; runs in memory cannot."""

    def value(self, metric_id: str, statistic: str) -> float | None:
        """The value of one statistic of one metric; None if the run has none."""

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """Its standard error within the run; None if the run has none."""


class LoadedRun:
    """A run whose summaries are read once, and whose samples are read column by column.

    Args:
        run: the sealed run.
    """

    def __init__(self, run: RunData) -> None:
        self.manifest = run.manifest
        self._run = run
        self._values = run if isinstance(run, KeepsValues) else None
        self._summaries: Mapping[str, MetricSummary] | None = None
        self._ordered: dict[str, OrderedSamples | None] = {}
        self._described: Descriptions | None = None
        self._cached: dict[str, pl.DataFrame] = {}

    @property
    def run_id(self) -> str:
        """The run's identifier."""
        return self.manifest.run_id

    @cached_property
    def catalogue(self) -> Catalogue:
        """Its metrics; not needed for the runs of an archive."""
        return self._run.catalogue

    @property
    def groups(self) -> Mapping[str, Grouping]:
        """By key, the groups within which its values are compared."""
        return self.manifest.groups

    @property
    def data(self) -> RunData:
        """The run itself."""
        return self._run

    def summary(self, metric_id: str) -> MetricSummary | None:
        """One metric's summary; None if the run does not have it."""
        return self.summaries().get(metric_id)

    def value(self, metric_id: str, statistic: str) -> float | None:
        """One statistic of one metric; None if the run has none."""
        if self._values is not None:
            return self._values.value(metric_id, statistic)
        return value_in(self.summaries(), metric_id, statistic)

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """The standard error within the run of such a value; None if the run has none."""
        if self._values is not None:
            return self._values.standard_error(metric_id, statistic)
        return standard_error_in(self.summaries(), metric_id, statistic)

    def summaries(self) -> Mapping[str, MetricSummary]:
        """All of them, by metric ID."""
        if self._summaries is None:
            self._summaries = self._run.summaries()
        return self._summaries

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The given columns that a population has, as stored; an empty frame if none of its metrics has a value.

        Args:
            population_id: of the population.
            columns: None reads all of them, too many in a large population.
        """
        cached = self._cached.get(population_id)
        if cached is not None:
            return FrameSamples({population_id: cached}).samples(population_id, columns)
        metrics = self.catalogue.metrics_of(population_id)
        summaries = [self.summary(metric.id) for metric in metrics]
        if not any(summary and summary.distribution for summary in summaries):
            return pl.DataFrame()
        frame = self._run.samples(population_id, columns)
        population = self.catalogue.population(population_id)
        if frame.height * (len(metrics) + len(population.keys)) <= _CACHED_CELLS:
            self._cached[population_id] = self._run.samples(population_id)  # small: one read serves every column
        return frame

    def ordered(self, population_id: str) -> OrderedSamples | None:
        """A population's columns in total order; None if the run's catalogue has no such population."""
        if population_id not in self._ordered:
            is_defined = any(population.id == population_id for population in self.catalogue.populations)
            metric_ids = [metric.id for metric in self.catalogue.metrics_of(population_id)]
            self._ordered[population_id] = (
                OrderedSamples(self, self.catalogue.population(population_id), metric_ids) if is_defined else None
            )
        return self._ordered[population_id]

    def scan_events(self, name: str) -> pl.LazyFrame | None:
        """The typed events of one kind; None if the run contains none."""
        return self._run.scan_events(name) if isinstance(self._run, HasEvents) else None

    def figures(self, name: str) -> pl.DataFrame | None:
        """Figures by other rules than the run's own; None if it contains none of that name."""
        return self._run.figures(name) if isinstance(self._run, KeepsFigures) else None

    def described(self, metric: Metric, population: Population) -> MetricDescription:
        """The description of a metric's samples for comparisons and charts.

        Args:
            metric: of the comparison.
            population: of the comparison. If either is defined differently in the run, the samples are read.
        """
        if self._defines(metric, population):
            return self._descriptions().of(metric.id)
        return describe_population(self.catalogue, population, [metric], self, self.manifest.seed)[0]

    def description_of(self, metric: Metric, population: Population) -> pl.DataFrame:
        """The same as one packed row."""
        if self._defines(metric, population):
            return self._descriptions().row(metric.id)
        return to_frame([self.described(metric, population)])

    def read_description(self) -> None:
        """Read what `described` needs, or make it for a run that does not store it."""
        self._descriptions()

    def tail(self, metric: Metric, population: Population) -> Sequence[Extreme]:
        """The most extreme of a metric's samples, as in `described`, in less time."""
        if self._defines(metric, population):
            return self._descriptions().tail(metric.id)
        return self.described(metric, population).tail

    def _defines(self, metric: Metric, population: Population) -> bool:
        """Whether the run's own definitions of both describe the samples equally."""
        known = next((item for item in self.catalogue.metrics if item.id == metric.id), None)
        return (
            known is not None
            and _draws_alike(known, metric)
            and self.catalogue.population(known.population) == population
        )

    def _descriptions(self) -> Descriptions:
        if self._described is None:
            keeper = self._run if isinstance(self._run, KeepsDescription) else None
            frame = keeper.description(LAYOUT) if keeper else None
            if frame is None:
                frame = to_frame(describe(self.catalogue, self, self.manifest.seed))
                if keeper:
                    keeper.keep_description(frame, LAYOUT)
            self._described = Descriptions(frame, self.manifest.seed)
        return self._described


def _draws_alike(metric: Metric, other: Metric) -> bool:
    """Whether two definitions of a metric give the same description of its samples."""
    return (metric.population, metric.better, metric.charts, metric.is_shown_closely) == (
        other.population,
        other.better,
        other.charts,
        other.is_shown_closely,
    )
