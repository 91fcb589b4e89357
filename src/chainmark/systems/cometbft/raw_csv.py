"""The `raw.csv` of CometBFT's report tool as runs: every transaction of every experiment with its latency.

Its rows are unordered, because the tool decodes in parallel. Files have millions of rows: they are streamed, and one
experiment at a time is in memory.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.metric import Better, Kind, Metric, Population
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.core.times import NS
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.stats.centiles import estimable_centile
from chainmark.store.schema import Schema
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.experiments import (
    LATENCY_IS,
    LOAD_S,
    NAME,
    LoadExperiment,
    ordered_experiment,
    parts_of_source,
    published_runs,
)
from chainmark.systems.cometbft.published_import import (
    BLOCK_TIME,
    EXPERIMENTS,
    KEY,
    POPULATION,
    TABLE,
    PublishedLoad,
    imported,
)
from chainmark.systems.cometbft.saturation.results import CellRun, LatencyEntry, RunFigure, VersionRuns

COLUMNS = ("experiment_id", "block_time", "duration_ns", "tx_hash", "connections", "rate", "size")
_NUMBERS = ("block_time", "duration_ns", "connections", "rate", "size")
ROW_SCHEMA: Schema = {
    "index": pl.UInt32,
    **{name: pl.Int64 if name in _NUMBERS else pl.String for name in COLUMNS},
}
_LONGEST_HEADING = 4096
LATENCY = "tx_latency_next_header_s"
TRANSACTIONS = Population(
    id="transaction", label="transactions of the experiment", keys=["index", "time_s"], time_key="time_s"
)


@dataclass(frozen=True)
class RawExperiment(LoadExperiment):
    """The common data of one experiment's rows."""

    rows: int


@dataclass(frozen=True)
class RawIndex:
    """All experiments of a file, and its rows by class."""

    experiments: tuple[RawExperiment, ...]
    rows: int
    malformed: int


@dataclass(frozen=True)
class RawFigures:
    """An experiment's figures as CometBFT's `latency_throughput.py` computes them, and the rows that it does not count.

    Attributes:
        mean_s: of the latencies.
        throughput_per_s: rows over the time from the creation of the first block's first transaction to the last
            block's time; None if that is not positive.
    """

    mean_s: float
    throughput_per_s: float | None
    duplicates: int
    negative: int


def recognises_raw(path: Path) -> bool:
    """Whether a file begins with the heading of `raw.csv`; false also for an unreadable file."""
    return _heading(path) == list(COLUMNS)


def _heading(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST_HEADING)
    except OSError:
        return []
    text = first.decode("utf-8-sig", errors="replace").strip()
    return next(csv.reader([text]), [])


def _scan(path: Path) -> pl.LazyFrame:
    """Every row with its index; values that are not numbers are null."""
    texts = pl.scan_csv(path, schema=dict.fromkeys(COLUMNS, pl.String), row_index_name="row", encoding="utf8-lossy")
    return texts.with_columns(pl.col(name).str.strip_chars().cast(pl.Int64, strict=False) for name in _NUMBERS)


_MALFORMED = pl.any_horizontal(pl.col(name).is_null() for name in COLUMNS)


def read_index(path: Path) -> RawIndex:
    """The experiments of a file, by connections, rate and ID.

    Raises:
        UsageError: it is another kind of file, or an experiment has several loads.
        EnvironmentFailure: it cannot be read.
    """
    with storage_errors(path):
        stat = path.stat()
    return _index(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _index(path: Path, _size: int, _changed_ns: int) -> RawIndex:
    """The same, cached until the file changes: every experiment is imported separately, and requests it again."""
    heading = _heading(path)
    if heading != list(COLUMNS):
        raise UsageError(
            f"`{path}` is not a `raw.csv` of CometBFT's report tool", f"its header must be {','.join(COLUMNS)}"
        )
    loads = ("connections", "rate", "size")
    bounds = [bound for name in loads for bound in (pl.col(name).min().alias(f"{name}_low"), pl.col(name).max())]
    rows = _scan(path)
    try:
        frame = rows.filter(~_MALFORMED).group_by("experiment_id").agg(pl.len(), *bounds).collect(engine="streaming")
        total, malformed = rows.select(pl.len(), _MALFORMED.sum().alias("bad")).collect(engine="streaming").row(0)
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"`{path}` is not well-formed CSV: {str(error).splitlines()[0]}") from error
    experiments = []
    for row in frame.sort("connections", "rate", "experiment_id").iter_rows(named=True):
        mixed = next((name for name in loads if row[name] != row[f"{name}_low"]), None)
        if mixed is not None:
            raise UsageError(
                f"the experiment {row['experiment_id']} of `{path}` has {mixed} {row[f'{mixed}_low']} and {row[mixed]}",
                "an experiment must have one load",
            )
        numbers = (row["connections"], row["rate"], row["size"], row["len"])
        experiments.append(RawExperiment(row["experiment_id"], *numbers))
    if not experiments:
        raise UsageError(f"`{path}` contains no transactions")
    return RawIndex(tuple(experiments), int(total), int(malformed))


def read_experiment(path: Path, experiment: RawExperiment) -> pl.DataFrame:
    """The rows of one experiment in the file's order: row, block_time, duration_ns, tx_hash."""
    own = _scan(path).filter(~_MALFORMED & (pl.col("experiment_id") == experiment.id))
    frame = own.select("row", "block_time", "duration_ns", "tx_hash").collect(engine="streaming")
    return frame.sort("row")


def figures_of(rows: pl.DataFrame) -> RawFigures:
    """The figures of one experiment's rows, in the file's order: the order of the first block's rows matters."""
    times, durations = rows["block_time"].to_numpy(), rows["duration_ns"].to_numpy()
    start_ns = int(times.min()) - int(durations[int(np.argmin(times))])
    span_ns = int(times.max()) - start_ns
    return RawFigures(
        mean_s=float(durations.astype(np.float64).mean()) / NS,
        throughput_per_s=rows.height * NS / span_ns if span_ns > 0 else None,
        duplicates=rows.height - rows["tx_hash"].n_unique(),
        negative=int((durations < 0).sum()),
    )


def raw_parts(order: ImportRequest) -> list[str]:
    """The names of the experiments: c1-r200-93024f38.

    Raises:
        UsageError: the file is of another kind, or two experiments would have one name.
    """
    return parts_of_source(order.path, read_index(order.path).experiments)


def ingest_raw(order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
    """Import one experiment into a run: its transactions' latencies, and the figures of the published plots.

    Raises:
        UsageError: there is no such experiment, or its version is unknown.
    """
    progress.stage(f"reading {order.part}")
    index = read_index(order.path)
    experiment = ordered_experiment(order, index.experiments)
    rows = read_experiment(order.path, experiment)
    figures = figures_of(rows)
    _write(run, experiment, rows, figures, keep_events=order.keep_events)
    counts = {
        "rows of the file": {
            "of this experiment": rows.height,
            "of other experiments": index.rows - index.malformed - rows.height,
            "malformed": index.malformed,
        },
        "transactions of the experiment": {
            "different": rows.height - figures.duplicates,
            "duplicates": figures.duplicates,
        },
        "latencies": {"positive or 0": rows.height - figures.negative, "negative": figures.negative},
    }
    warnings = []
    if figures.duplicates:
        warnings.append(
            f"{units.count(figures.duplicates)} rows repeat a transaction; all are counted, as in the published figures"
        )
    if figures.negative:
        warnings.append(f"{units.count(figures.negative)} latencies are negative: the machines' clocks differed")
    if index.malformed:
        warnings.append(f"{units.count(index.malformed)} rows of the file are malformed and excluded")
    load = PublishedLoad(
        experiment,
        first_ns=_extreme(rows["block_time"].min()),
        last_ns=_extreme(rows["block_time"].max()),
        counts=counts,
        warnings=warnings,
    )
    return imported(order, load, raw_catalogue())


def _extreme(value: object) -> int:
    return value if isinstance(value, int) else 0


def _write(
    run: UnfinishedRun, experiment: RawExperiment, rows: pl.DataFrame, figures: RawFigures, *, keep_events: bool
) -> None:
    ordered = rows.sort("block_time", "tx_hash", "duration_ns").drop("row").with_row_index("index")
    if keep_events:
        run.write_events("transactions", ordered, ROW_SCHEMA)
    since = (pl.col("block_time") - pl.col("block_time").min()) / NS
    run.write_samples("transaction", ordered.select("index", time_s=since, **{LATENCY: pl.col("duration_ns") / NS}))
    reported: Mapping[str, float | None] = {
        "raw_latency_s": figures.mean_s,
        "raw_throughput_per_s": figures.throughput_per_s,
        "raw_share": rows.height / experiment.expected,
    }
    schema = {KEY: pl.String, **dict.fromkeys(reported, pl.Float64)}
    values = {name: [value] for name, value in reported.items()}
    run.write_samples(EXPERIMENTS, pl.DataFrame({KEY: [experiment.id], **values}, schema=schema))


def raw_catalogue() -> Catalogue:
    """The metrics of one experiment."""
    return Catalogue(
        system="cometbft",
        title=NAME,
        populations=[TRANSACTIONS, POPULATION],
        tables=[TABLE],
        conditions=[BLOCK_TIME],
        metrics=[
            Metric(
                id=LATENCY, published_id="latency", label="tx latency to the next header", unit="s",
                kind=Kind.DIFFERENCE, better=Better.LOWER, statistics=["mean", "p50", "p99", "min", "max"],
                judged_by=["mean"], table=TABLE.id, order=1, population=TRANSACTIONS.id, floor=0.02,
                description=f"{LATENCY_IS[0].upper()}{LATENCY_IS[1:]}. May be negative if clocks differ.",
                source=["raw.csv duration_ns"],
            ),
            _figure(2, "raw_latency_s", "latency, mean", "Mean of the latencies.", unit="s", better=Better.LOWER),
            _figure(
                3, "raw_throughput_per_s", "throughput",
                "Transactions per second from the creation of the first one of the first block to the time of the "
                "last block, as `latency_throughput.py` computes it.",
                unit="tx/s", better=Better.HIGHER,
            ),
            _figure(
                4, "raw_share", "processed share", f"Transactions over connections × rate × {LOAD_S} s (P/E).",
                unit="fraction", better=Better.HIGHER,
            ),
        ],
    )  # fmt: skip


def _figure(order: int, id_: str, label: str, description: str, *, unit: str, better: Better) -> Metric:
    return Metric(
        id=id_, label=label, unit=unit, kind=Kind.DIFFERENCE, better=better, statistics=["mean"], judged_by=["mean"],
        table=TABLE.id, order=order, population=EXPERIMENTS, description=description, source=["raw.csv"],
    )  # fmt: skip


def raw_version(path: Path, label: str | None) -> VersionRuns:
    """A `raw.csv` as one version of a saturation test.

    Raises:
        UsageError: it is of another kind.
    """
    index = read_index(path)
    malformed = f"{units.count(index.malformed)} rows of {path.name} are malformed and excluded."
    return published_runs(
        label or path.stem,
        f"{path.name}: {len(index.experiments)} experiments, {units.count(index.rows)} rows",
        throughput_is="transactions per second from the creation of the first one to the time of the last block",
        runs=[_cell(path, experiment) for experiment in index.experiments],
        notes=[malformed] if index.malformed else [],
    )


def _cell(path: Path, experiment: RawExperiment) -> CellRun:
    rows = read_experiment(path, experiment)
    figures = figures_of(rows)
    latencies = np.sort(rows["duration_ns"].to_numpy() / NS)
    p50, p99 = (estimable_centile(latencies, fraction) for fraction in (0.5, 0.99))
    latency = LatencyEntry(
        n=rows.height,
        mean=RunFigure(value=figures.mean_s),
        p50=None if p50 is None else RunFigure(value=p50),
        p99=None if p99 is None else RunFigure(value=p99),
        min_s=float(latencies[0]),
        max_s=float(latencies[-1]),
        sd_s=float(latencies.std(ddof=1)) if rows.height > 1 else None,
    )
    return experiment.cell(rows.height, figures.throughput_per_s or rows.height / LOAD_S, latency)
