"""Time and memory of the block bootstrap compared with a peer, with the data sizes of a long run.

``python -m benches.stats.run`` prints a table; it asserts nothing, because a busy machine is not a regression.
The peer draws one resample at a time and applies a function to it. The statistics are the same (mean, p50, p99).

``python -m benches.stats.run large`` summarises slots × hosts (64,000 × 52, 28 metrics) from a file in a separate
process, and compares it with polars, which reads the same file and computes the same means and centiles without errors.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from arch.bootstrap import StationaryBootstrap

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, Weighting
from chainmark.stats.bootstrap import RESAMPLES, optimal_block_length
from chainmark.stats.centiles import FloatArray
from chainmark.stats.samples import ParquetSamples
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
    tables = [MetricGroup(id="all", title="All")]
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


SLOTS, HOSTS, METRICS = 64_000, 52, 28
CENTILES = (0.5, 0.9, 0.99)


def _large_catalogue() -> Catalogue:
    small = _catalogue()
    population = Population(
        id="slot_host",
        label="slots × hosts",
        keys=["slot", "host", "time_s"],
        time_key="time_s",
        average_over=["host"],
        weighting=Weighting.KEYS,
    )
    statistics = ["mean", *(f"p{round(100 * fraction)}" for fraction in CENTILES), "max"]
    changed: dict[str, object] = {"population": "slot_host", "statistics": statistics}
    metrics = [small.metrics[0].model_copy(update={**changed, "id": f"m{number}_s"}) for number in range(METRICS)]
    return Catalogue(system="x", title="X", populations=[population], tables=small.tables, metrics=metrics)


def _write_large(path: Path) -> None:
    """Adjacent slots have similar values, hosts have different levels, and 5 % of the rows are missing."""
    rng = np.random.default_rng(1)
    present = np.flatnonzero(rng.random(SLOTS * HOSTS) < 0.95)
    slot, host = present // HOSTS, present % HOSTS
    columns: dict[str, object] = {
        "slot": slot,
        "host": np.array([f"node-{number:02d}" for number in range(HOSTS)])[host],
        "time_s": slot.astype(float),
    }
    common, levels = np.log(_series(SLOTS)), rng.normal(size=HOSTS)
    for number in range(METRICS):
        noise = common[slot] + 0.2 * levels[host] + 0.3 * rng.normal(size=len(present))
        columns[f"m{number}_s"] = np.exp(noise) if number % 2 else np.floor(20.0 * np.exp(noise))
    pl.DataFrame(columns).write_parquet(path, compression="zstd")


def _own_large(folder: Path) -> object:
    return summarise(_large_catalogue(), ParquetSamples(folder), 1)


def _peer_large(folder: Path) -> object:
    metrics = [metric.id for metric in _large_catalogue().metrics]
    scan = pl.scan_parquet(folder / "slot_host.parquet")
    means = scan.group_by("host").agg(pl.col(metrics).mean()).select(pl.col(metrics).mean()).collect()
    wanted = [pl.col(metrics).quantile(fraction).name.suffix(f" {fraction}") for fraction in CENTILES]
    return means, scan.select(wanted).collect()


def _measured(work: Callable[[Path], object], folder: Path) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds, and peak memory in MB, of a process that does only this."""
    started = time.process_time()
    seconds = _seconds(lambda: work(folder))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return seconds, time.process_time() - started, memory


def large() -> None:
    """Print one line for each method."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line sets it
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = context.Process(target=_write_large, args=(folder / "slot_host.parquet",))
        writer.start()
        writer.join()
        print(f"{'':>30} {'s':>8} {'CPU s':>8} {'largest memory, MB':>19}")
        for label, work in (("summarise, with errors", _own_large), ("polars, values alone", _peer_large)):
            with context.Pool(1) as pool:
                seconds, cpu, memory = pool.apply(_measured, (work, folder))
            print(f"{label:>30} {seconds:>8.1f} {cpu:>8.1f} {memory:>19.0f}")


def main() -> None:
    """Print one line per size."""
    print(f"{'n':>8} {'summarise, s':>13} {'arch, s':>9} {'largest memory, MB':>19}")
    for n in SIZES:
        values = _series(n)
        frame = pl.DataFrame({"height": np.arange(n), "x_s": values})
        own = _seconds(lambda frame=frame: summarise(_catalogue(), {"block": frame}, 1))  # type: ignore[misc]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        peer = _seconds(lambda values=values: _peer(values))  # type: ignore[misc]
        print(f"{n:>8} {own:>13.2f} {peer:>9.2f} {memory:>19.0f}")


if __name__ == "__main__":
    large() if sys.argv[1:] == ["large"] else main()
