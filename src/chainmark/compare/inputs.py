"""What a comparison needs of a run, and a run with its reads kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.core.metric import Population
from chainmark.stats.centiles import BoolArray, FloatArray, IntArray
from chainmark.stats.samples import FrameSamples, OrderedSamples
from chainmark.stats.units import Units, plain_units

MOST_BUNDLES = 4096  # of units: what a band is resampled by
_KEPT_CELLS = 250_000  # of a population's table: 2 MB; a larger one is read column by column


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

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Those of the columns (None: of all) that a population has; asked only when some metric has a value."""


@runtime_checkable
class HasEvents(Protocol):
    """A run whose samples can be followed; runs in memory need not be."""

    def scan_events(self, name: str) -> pl.LazyFrame:
        """The typed events of one kind, of which only what is asked for is read."""


class LoadedRun:
    """A run whose summaries are read once, and whose samples are read column by column.

    Args:
        run: the sealed run.
    """

    def __init__(self, run: RunData) -> None:
        self.manifest = run.manifest
        self.catalogue = run.catalogue
        self._run = run
        self._summaries: dict[str, MetricSummary] | None = None
        self._ordered: dict[str, OrderedSamples | None] = {}
        self._bundles: dict[str, Bundles] = {}
        self._kept: dict[str, pl.DataFrame] = {}
        self._instants: dict[str, Instants | None] = {}

    @property
    def run_id(self) -> str:
        """The run's identifier."""
        return self.manifest.run_id

    def summary(self, metric_id: str) -> MetricSummary | None:
        """One metric's summary; None when the run does not have it."""
        if self._summaries is None:
            self._summaries = self._run.summaries()
        return self._summaries.get(metric_id)

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Those of the columns that a population has, as stored; an empty frame when none of its metrics has a value.

        Args:
            population_id: of the population.
            columns: None reads all of them, which a large population has too many of.
        """
        kept = self._kept.get(population_id)
        if kept is not None:
            return FrameSamples({population_id: kept}).samples(population_id, columns)
        metrics = self.catalogue.metrics_of(population_id)
        summaries = [self.summary(metric.id) for metric in metrics]
        if not any(summary and summary.distribution for summary in summaries):
            return pl.DataFrame()
        frame = self._run.samples(population_id, columns)
        population = self.catalogue.population(population_id)
        if frame.height * (len(metrics) + len(population.keys) + 1) <= _KEPT_CELLS:
            self._kept[population_id] = self._run.samples(population_id)  # small: one reading serves every column
        return frame

    def ordered(self, population_id: str) -> OrderedSamples | None:
        """A population's columns in total order; None when the run's catalogue has no such population."""
        if population_id not in self._ordered:
            known = any(population.id == population_id for population in self.catalogue.populations)
            metric_ids = [metric.id for metric in self.catalogue.metrics_of(population_id)]
            self._ordered[population_id] = (
                OrderedSamples(self, self.catalogue.population(population_id), metric_ids) if known else None
            )
        return self._ordered[population_id]

    def scan_events(self, name: str) -> pl.LazyFrame | None:
        """The typed events of one kind; None where the run keeps none."""
        return self._run.scan_events(name) if isinstance(self._run, HasEvents) else None

    def rows(self, population_id: str) -> int:
        """Rows of a population, with and without values."""
        ordered = self.ordered(population_id)
        return ordered.height if ordered else 0

    def bundles(self, population: Population) -> Bundles:
        """A population's rows in bundles of neighbouring units, or of single ones; kept, for it is small."""
        if population.id not in self._bundles:
            self._bundles[population.id] = self._bundled(population)
        return self._bundles[population.id]

    def _bundled(self, population: Population) -> Bundles:
        instants = self.instants(population) if population.average_over else None
        if instants is not None and instants.rows:  # rows lie instant by instant: their keys need not be read
            size = math.ceil(len(instants.starts) / MOST_BUNDLES)
            return Bundles(None, np.append(instants.starts[::size], instants.rows), ordered=True, coarse=size > 1)
        ordered = self.ordered(population.id)
        units = plain_units(ordered.keys() if ordered else pl.DataFrame(), population)
        return _bundles_of(units.bundled(MOST_BUNDLES), coarse=units.count > MOST_BUNDLES)

    def instants(self, population: Population) -> Instants | None:
        """The time values of a population's rows in total order; None where it has no time, or some row has none."""
        if population.id not in self._instants:
            ordered = self.ordered(population.id)
            times = ordered.column(population.time_key) if ordered and population.time_key else None
            self._instants[population.id] = None if times is None else _instants_of(times)
        return self._instants[population.id]


@dataclass(frozen=True)
class Instants:
    """Rows that share a time value.

    Attributes:
        starts: shape (instants,), the first row of each, ascending.
        times: shape (instants,), ascending.
        rows: all of them.
    """

    starts: IntArray
    times: FloatArray
    rows: int

    def of(self, present: BoolArray) -> Instants:
        """The same of those rows only, shape (rows,); an instant without one is left out."""
        absent = np.flatnonzero(~present)
        starts = self.starts - np.searchsorted(absent, self.starts)
        rows = self.rows - len(absent)
        held = np.diff(starts, append=rows) > 0
        return Instants(starts[held], self.times[held], rows)


def _instants_of(times: FloatArray) -> Instants | None:
    if not bool(np.isfinite(times).all()):
        return None
    starts = np.flatnonzero(np.diff(times, prepend=np.nan) != 0.0)
    return Instants(starts, times[starts], len(times))


@dataclass(frozen=True)
class Bundles:
    """Rows in bundles of neighbouring units.

    Attributes:
        order: shape (rows,), the rows bundle by bundle; None where they lie so already.
        starts: shape (bundles + 1,), where each bundle begins, and the number of rows.
        ordered: whether neighbouring bundles are neighbours in time.
        coarse: whether a bundle holds more than one unit.
    """

    order: IntArray | None
    starts: IntArray
    ordered: bool
    coarse: bool


def _bundles_of(units: Units, *, coarse: bool) -> Bundles:
    lies_so = bool((np.diff(units.of_row) >= 0).all())
    order = None if lies_so else np.argsort(units.of_row, kind="stable")
    in_order = units.of_row if order is None else units.of_row[order]
    return Bundles(order, np.searchsorted(in_order, np.arange(units.count + 1)), units.ordered, coarse)
