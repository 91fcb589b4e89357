"""Time and memory of the block bootstrap beside its peer, on the sizes of a long run.

``python -m benches.stats.run`` prints a table; it asserts nothing, because a busy machine is not a regression.
The peer draws one resample at a time and applies a function to it; the statistics are the same (mean, p50, p99).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from arch.bootstrap import StationaryBootstrap

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Kind, Metric, Population, Table
from chainmark.stats.bootstrap import RESAMPLES, optimal_block_length
from chainmark.stats.centiles import FloatArray
from chainmark.stats.summarise import summarise

SIZES = (2_300, 20_000, 100_000)


def _series(n: int) -> FloatArray:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=n)
    level, values = 0.0, np.empty(n)
    for index in range(n):
        level = 0.5 * level + noise[index]
        values[index] = level
    return np.exp(0.2 * values)


def _catalogue() -> Catalogue:
    population = Population(id="block", label="blocks", keys=["height"], time_key="height")
    metric = Metric(
        id="x_s",
        label="x",
        unit="s",
        kind=Kind.POSITIVE,
        better=Better.LOWER,
        statistics=["mean", "p50", "p99"],
        judged_by=["mean"],
        table="all",
        order=1,
        population="block",
        description="A benchmark's metric.",
        source=["benchmark"],
    )
    tables = [Table(id="all", title="All")]
    return Catalogue(system="x", title="X", populations=[population], tables=tables, metrics=[metric])


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peer(values: FloatArray) -> object:
    def statistics(sample: FloatArray) -> FloatArray:
        middle, tail = len(sample) // 2, int(len(sample) * 0.99)
        ordered = np.partition(sample, [middle, tail])
        return np.array([sample.mean(), ordered[middle], ordered[tail]])

    return StationaryBootstrap(round(optimal_block_length(values)), values, seed=1).apply(statistics, RESAMPLES)


def main() -> None:
    """Print one line a size."""
    print(f"{'n':>8} {'summarise, s':>13} {'arch, s':>9} {'largest memory, MB':>19}")
    for n in SIZES:
        values = _series(n)
        frame = pl.DataFrame({"height": np.arange(n), "x_s": values})
        own = _seconds(lambda frame=frame: summarise(_catalogue(), {"block": frame}, 1))  # type: ignore[misc]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        peer = _seconds(lambda values=values: _peer(values))  # type: ignore[misc]
        print(f"{n:>8} {own:>13.2f} {peer:>9.2f} {memory:>19.0f}")


if __name__ == "__main__":
    main()
