"""The samples of one metric on one side, as described by its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from chainmark.compare.inputs import LoadedRun
from chainmark.core.metric import Metric, Population
from chainmark.stats.description import MetricDescription
from chainmark.stats.knots import Knots, pooled


@dataclass(frozen=True)
class RunSamples:
    """One metric in one run."""

    run: LoadedRun
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

    def __init__(self, runs: Sequence[LoadedRun], metric: Metric, population: Population) -> None:
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

    def __init__(self, name: str, label: str, runs: Sequence[LoadedRun]) -> None:
        self.name = name
        self.label = label
        self.runs = list(runs)
        self._latest: tuple[str, SideSamples] | None = None

    def samples(self, metric: Metric, population: Population) -> SideSamples:
        """The side's samples of a metric; only those of the last requested metric are cached."""
        if self._latest is None or self._latest[0] != metric.id:
            self._latest = (metric.id, SideSamples(self.runs, metric, population))
        return self._latest[1]
