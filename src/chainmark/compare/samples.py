"""The samples of one metric on one side, as described by its runs, or by excerpts of them for other machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import polars as pl

from chainmark.compare.inputs import LoadedRun
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Grouping
from chainmark.core.metric import Metric, Population
from chainmark.stats.description import Descriptions, MetricDescription
from chainmark.stats.knots import Knots, pooled


class SampledRun(Protocol):
    """A run, or an excerpt of one."""

    @property
    def run_id(self) -> str:
        """The run's identifier."""

    @property
    def groups(self) -> Mapping[str, Grouping]:
        """By key, the groups within which its values are compared."""

    def summary(self, metric_id: str) -> MetricSummary | None:
        """One metric's summary; None if the run does not have it."""

    def described(self, metric: Metric, population: Population) -> MetricDescription:
        """The description of a metric's samples for comparisons and charts."""


@dataclass(frozen=True)
class RunExcerpt:
    """What a run says of one metric: it can be sent to another machine, which need not have the run.

    Attributes:
        description: one row, as `chainmark.stats.description.to_frame` made it.
        seed: the run's.
    """

    run_id: str
    groups: Mapping[str, Grouping]
    summaries: Mapping[str, MetricSummary]
    description: pl.DataFrame
    seed: int

    @classmethod
    def of(cls, run: LoadedRun, metric: Metric, population: Population) -> RunExcerpt:
        """The excerpt of a run that is on this machine."""
        summary = run.summary(metric.id)
        summaries = {} if summary is None else {metric.id: summary}
        return cls(run.run_id, run.groups, summaries, run.description_of(metric, population), run.manifest.seed)

    def summary(self, metric_id: str) -> MetricSummary | None:
        """One metric's summary; None if the run does not have it."""
        return self.summaries.get(metric_id)

    def described(self, metric: Metric, _: Population) -> MetricDescription:
        """The description of the excerpt's metric."""
        return Descriptions(self.description, self.seed).of(metric.id)


@dataclass(frozen=True)
class RunSamples:
    """One metric in one run."""

    run: SampledRun
    described: MetricDescription

    @property
    def knots(self) -> Knots:
        """The distribution function of its samples."""
        return self.described.knots


class SideSamples:
    """One metric in all runs of a side.

    Args:
        runs: in the side's order.
        metric: the metric.
        population: of the metric.
    """

    def __init__(self, runs: Sequence[SampledRun], metric: Metric, population: Population) -> None:
        self.runs = [RunSamples(run, run.described(metric, population)) for run in runs]

    @property
    def present(self) -> list[RunSamples]:
        """The runs that have samples."""
        return [run for run in self.runs if run.knots.n]

    @cached_property
    def pooled(self) -> Knots:
        """All samples."""
        return pooled([run.knots for run in self.runs])


class ChartSide:
    """One side for charts.

    Args:
        name: "baseline" or "candidate".
        label: its name in legends.
        runs: in the side's order.
    """

    def __init__(self, name: str, label: str, runs: Sequence[SampledRun]) -> None:
        self.name = name
        self.label = label
        self.runs = list(runs)
        self._latest: tuple[str, SideSamples] | None = None

    def samples(self, metric: Metric, population: Population) -> SideSamples:
        """The side's samples of a metric; only those of the last requested metric are cached."""
        if self._latest is None or self._latest[0] != metric.id:
            self._latest = (metric.id, SideSamples(self.runs, metric, population))
        return self._latest[1]
