"""What a comparison needs of a run, and a run with its reads kept."""

from __future__ import annotations

from typing import Protocol

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.stats.summarise import in_total_order


class RunData(Protocol):
    """A sealed run as a comparison reads it."""

    @property
    def manifest(self) -> Manifest:
        """Who was measured, how and where."""

    @property
    def catalogue(self) -> Catalogue:
        """The metrics' definitions at the time of the run."""

    def summaries(self) -> dict[str, MetricSummary]:
        """Per metric id, its distribution and estimates."""

    def samples(self, population_id: str) -> pl.DataFrame:
        """A population's keys and one column per metric; asked only when some metric of it has a value."""


class LoadedRun:
    """A run whose summaries and samples are read once.

    Args:
        run: the sealed run.
    """

    def __init__(self, run: RunData) -> None:
        self.manifest = run.manifest
        self.catalogue = run.catalogue
        self._run = run
        self._summaries: dict[str, MetricSummary] | None = None
        self._samples: dict[str, pl.DataFrame] = {}

    @property
    def run_id(self) -> str:
        """The run's identifier."""
        return self.manifest.run_id

    def summary(self, metric_id: str) -> MetricSummary | None:
        """One metric's summary; None when the run does not have it."""
        if self._summaries is None:
            self._summaries = self._run.summaries()
        return self._summaries.get(metric_id)

    def samples(self, population_id: str) -> pl.DataFrame:
        """A population's rows in total order; an empty frame when none of its metrics has a value."""
        if population_id not in self._samples:
            metric_ids = [metric.id for metric in self.catalogue.metrics_of(population_id)]
            summaries = [self.summary(metric_id) for metric_id in metric_ids]
            if not any(summary and summary.distribution for summary in summaries):
                return pl.DataFrame()
            frame = self._run.samples(population_id)
            population = self.catalogue.population(population_id)
            self._samples[population_id] = in_total_order(frame, population, metric_ids)
        return self._samples[population_id]
