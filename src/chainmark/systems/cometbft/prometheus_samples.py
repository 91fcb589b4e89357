"""The samples from a Prometheus server's data of a network, by the catalogue's metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from chainmark.core.times import NS
from chainmark.network.sampling import PROCESS_SCHEMA
from chainmark.stats.extrapolated_rate import extrapolated_rate
from chainmark.store.schema import Schema
from chainmark.systems.cometbft.analyse import CountCurve, Window, cpu_per_transaction, growth, host_second_samples
from chainmark.systems.cometbft.heights import block_samples
from chainmark.systems.cometbft.prometheus_nodes import HEIGHT, TOTAL, Fetched

MEMPOOL = "cometbft_mempool_size"
RATE_WINDOW_NS = 20 * NS
# A sample older than this many scrape intervals is stale.
STALE = 1.5
RATE_SCHEMA: Schema = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "blocks_per_minute": pl.Float64,
    "transactions_per_minute": pl.Float64,
}


def samples_of(fetched: Fetched, window: Window) -> dict[str, pl.DataFrame]:
    """The samples of every population that metrics pages cover."""
    processes = _processes(fetched.scrapes)
    per_second = second_samples(fetched, window)
    return {
        "transaction": pl.DataFrame(schema={"connection": pl.UInt32, "sequence": pl.UInt32, "time_s": pl.Float64}),
        "block": block_samples(fetched.scrapes, window),
        "second": per_second,
        "host_second": host_second_samples(fetched.scrapes, processes, window),
        "host": cpu_per_transaction(processes, _committed_until(per_second["committed_per_s"], window), window),
    }


def _committed_until(per_second: pl.Series, window: Window) -> CountCurve:
    """The transactions committed since the window's start; seconds without any node's data add none."""
    edges_ns = window.start_ns + NS * np.arange(window.seconds + 1)
    return CountCurve(edges_ns, np.concatenate([[0.0], np.cumsum(per_second.fill_null(0.0).to_numpy())]))


def _processes(scrapes: pl.DataFrame) -> pl.DataFrame:
    """The processes' own figures, in the columns of our own samples; a row for every scrape."""
    wide = scrapes.pivot(on="metric", index=["time_ns", "host"], values="value").sort("host", "time_ns")
    reported = {
        "cpu_s": "process_cpu_seconds",
        "rss_bytes": "process_resident_memory_bytes",
        "open_files": "process_open_fds",
    }
    columns = {
        name: pl.col(reported[name]).cast(kind) if reported.get(name) in wide.columns else pl.lit(None, dtype=kind)
        for name, kind in PROCESS_SCHEMA.items()
        if name not in {"time_ns", "host"}
    }
    return wide.select("time_ns", "host", **columns)


def second_samples(fetched: Fetched, window: Window) -> pl.DataFrame:
    """One row per second of the window; the mempools and the load once per scrape interval, when each was updated."""
    seconds = np.arange(window.seconds)
    edges_ns = window.start_ns + NS * np.arange(window.seconds + 1)
    step = max(1, round(fetched.interval_s)) if np.isfinite(fetched.interval_s) else 1
    reported = np.flatnonzero((seconds + 1) % step == 0)
    stale_ns = round(STALE * max(step, 1) * NS)
    mempools = _latest(fetched.scrapes.filter(pl.col("metric") == MEMPOOL), edges_ns[reported + 1], stale_ns)
    loads = _latest(fetched.load, edges_ns[reported + 1], stale_ns)
    columns = {
        "mempool_mean_transactions": mempools.mean,
        "mempool_max_transactions": mempools.max,
        "machine_load1": loads.mean,
    }
    frame = pl.DataFrame({"time_s": seconds.astype(float), "committed_per_s": _committed(fetched.scrapes, edges_ns)})
    for name, values in columns.items():
        column = np.full(window.seconds, np.nan)
        column[reported] = values
        frame = frame.with_columns(pl.Series(name, column))
    return frame.with_columns(pl.all().fill_nan(None))


@dataclass(frozen=True)
class _Latest:
    """Over the nodes, of each one's last value; NaN if there is no recent one."""

    mean: np.ndarray
    max: np.ndarray


def _by_host(frame: pl.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (part["time_ns"].to_numpy(), part["value"].to_numpy())
        for part in frame.sort("host", "time_ns").partition_by("host", maintain_order=True)
    ]


def _latest(frame: pl.DataFrame, at_ns: np.ndarray, stale_ns: int) -> _Latest:
    total, count, most = np.zeros(len(at_ns)), np.zeros(len(at_ns)), np.full(len(at_ns), -np.inf)
    for times, values in _by_host(frame):
        place = np.searchsorted(times, at_ns, side="left") - 1
        fresh = (place >= 0) & (at_ns - times[place] <= stale_ns)
        total[fresh] += values[place[fresh]]
        count += fresh
        most[fresh] = np.maximum(most[fresh], values[place[fresh]])
    empty = count == 0
    return _Latest(np.where(empty, np.nan, total / np.maximum(count, 1)), np.where(empty, np.nan, most))


def _committed(scrapes: pl.DataFrame, edges_ns: np.ndarray) -> np.ndarray:
    """Committed transactions per second: the growth of each node's count, even between two scrapes, mean over nodes."""
    rates = []
    for times, values in _by_host(scrapes.filter(pl.col("metric") == TOTAL)):
        grown = np.concatenate([[0.0], np.cumsum(growth(values))])
        rates.append(np.diff(np.interp(edges_ns, times, grown, left=np.nan, right=np.nan)))
    if not rates:
        return np.full(len(edges_ns) - 1, np.nan)
    stacked = np.array(rates)
    known = np.isfinite(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def rates(scrapes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Blocks and transactions per minute of every node, each second: ``rate(…[20s]) * 60``, as the QA reports plot it.

    Returns:
        time_ns, host, blocks_per_minute, transactions_per_minute; null if the window holds fewer than two scrapes.
    """
    at_ns = window.start_ns + NS * np.arange(window.seconds, dtype=np.int64)
    data_frames: dict[str, list[pl.DataFrame]] = {"blocks_per_minute": [], "transactions_per_minute": []}
    for name, metric in (("blocks_per_minute", HEIGHT), ("transactions_per_minute", TOTAL)):
        for part in scrapes.filter(pl.col("metric") == metric).sort("time_ns").partition_by("host"):
            values = extrapolated_rate(part["time_ns"].to_numpy(), part["value"].to_numpy(), at_ns, RATE_WINDOW_NS)
            row = pl.DataFrame({"time_ns": at_ns, "host": part["host"][0], name: 60 * values})
            data_frames[name].append(row.with_columns(pl.col(name).fill_nan(None)))
    empty = pl.DataFrame(schema=dict(RATE_SCHEMA))
    tables = [pl.concat([empty.select("time_ns", "host", name), *rows]) for name, rows in data_frames.items()]
    return tables[0].join(tables[1], on=["time_ns", "host"], how="full", coalesce=True).sort("time_ns", "host")
