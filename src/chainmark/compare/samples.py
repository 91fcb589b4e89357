"""The samples of one metric on one side, read once for everything that is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from chainmark.compare.inputs import LoadedRun
from chainmark.core.metric import Metric
from chainmark.stats.centiles import FloatArray, finite
from chainmark.stats.threads import worker_threads
from chainmark.stats.woodruff import LARGE_ROWS


@dataclass(frozen=True)
class RunSamples:
    """One metric in one run.

    Attributes:
        run: the run.
        values: shape (rows,), in total order, in the metric's unit, NaN where there is none.
        ascending: shape (n,), the values that there are.
    """

    run: LoadedRun
    values: FloatArray
    ascending: FloatArray


def _read(run: LoadedRun, metric: Metric) -> RunSamples:
    ordered = run.ordered(metric.population)
    values = ordered.column(metric.id) if ordered else None
    if values is None:
        return RunSamples(run, np.empty(0), np.empty(0))
    # Twice as fast as numpy's sort, whose vector instructions some processors carry out slowly.
    ascending = pl.Series(finite(values)).sort(multithreaded=False).to_numpy()
    return RunSamples(run, values, ascending)


class SideSamples:
    """One metric in all runs of a side.

    Args:
        runs: in the side's order.
        metric: whose samples.
    """

    def __init__(self, runs: Sequence[LoadedRun], metric: Metric) -> None:
        if len(runs) == 1 or all(run.rows(metric.population) <= LARGE_ROWS for run in runs):
            self.runs = [_read(run, metric) for run in runs]  # sooner than threads are started
            return
        with worker_threads() as pool:
            self.runs = list(pool.map(lambda run: _read(run, metric), runs))

    @cached_property
    def pooled(self) -> FloatArray:
        """All samples, shape (n,), ascending, in the metric's unit."""
        present = [run.ascending for run in self.runs if len(run.ascending)]
        if len(present) == 1:
            return present[0]
        # A stable sort merges what is sorted already.
        return np.sort(np.concatenate([np.empty(0), *present]), kind="stable")


class ChartSide:
    """One side as charts see it.

    Args:
        name: "baseline" or "candidate".
        label: what legends call it.
        runs: in the side's order.
    """

    def __init__(self, name: str, label: str, runs: Sequence[LoadedRun]) -> None:
        self.name = name
        self.label = label
        self.runs = list(runs)
        self._latest: tuple[str, SideSamples] | None = None

    def samples(self, metric: Metric) -> SideSamples:
        """The side's samples of a metric; those of the metric asked for last are kept, and only those."""
        if self._latest is None or self._latest[0] != metric.id:
            self._latest = None
            self._latest = (metric.id, SideSamples(self.runs, metric))
        return self._latest[1]
