"""Events to samples, one function per population.

The window is the load after its warm-up. Transactions belong to it by their due time, blocks by the moment their commit
was seen (or the header's time, if it was not seen), everything else by the second in which it was sampled. A column's
name is the ID of its metric in the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from chainmark.core.profiles import CPU
from chainmark.network.processor_speed import NOMINAL_S
from chainmark.network.run_queue import LEAST_BUSY_SHARE
from chainmark.network.sampling import PRESSURE_SCHEMA, PROCESS_SCHEMA
from chainmark.store.schema import Schema
from chainmark.systems.cometbft.disturb import PERTURBATION_SCHEMA
from chainmark.systems.cometbft.ingest import STEP_COUNT, STEP_SUM, STEP_TOTALS, Events
from chainmark.systems.cometbft.profile import Load
from chainmark.systems.cometbft.rotating import HEIGHT_SCHEMA, JOINER_SCHEMA

NS = 1_000_000_000


@dataclass(frozen=True)
class Window:
    """The analysed part of a run, in ns since the epoch."""

    start_ns: int
    end_ns: int

    @classmethod
    def of_load(cls, start_ns: int, load: Load) -> Window:
        """The load after its warm-up."""
        begin_ns = start_ns + round(load.warm_up_s * NS)
        return cls(begin_ns, begin_ns + round(load.duration_s * NS))

    @property
    def seconds(self) -> int:
        """Whole seconds of the window."""
        return (self.end_ns - self.start_ns) // NS

    def contains(self, column: str) -> pl.Expr:
        """Whether a time is in the window."""
        return (pl.col(column) >= self.start_ns) & (pl.col(column) < self.end_ns)

    def time_s(self, column: str) -> pl.Expr:
        """Seconds since the window's start."""
        return (pl.col(column) - self.start_ns) / NS


@dataclass(frozen=True)
class Sampled:
    """The samples of each second, of processes and host; and the activities besides the load, if any.

    ``perturbations``, ``joiners`` and ``heights`` are the frames of :mod:`.disturb` and :mod:`.rotating`.
    """

    processes: pl.DataFrame
    pressure: pl.DataFrame
    perturbations: pl.DataFrame | None = None
    joiners: pl.DataFrame | None = None
    heights: pl.DataFrame | None = None


SAMPLED_SCHEMAS: Mapping[str, Schema] = {
    "processes": PROCESS_SCHEMA,
    "pressure": PRESSURE_SCHEMA,
    "perturbations": PERTURBATION_SCHEMA,
    "joiners": JOINER_SCHEMA,
    "heights": HEIGHT_SCHEMA,
}


_ABOUT_BLOCKS = {
    "transaction": ["tx_latency_s", "tx_latency_next_header_s", "tx_latency_header_s", "tx_committed_share"],
    "second": ["committed_per_s"],
    "host": ["node_cpu_per_transaction_s"],
}


def samples(events: Events, sampled: Sampled, window: Window, start_up_s: dict[str, float]) -> dict[str, pl.DataFrame]:
    """The samples of every population of this system that the run has.

    Without blocks, because no node was left to read them from, there are no figures of commits.
    """
    joining = [] if sampled.joiners is None else sampled.joiners["host"].to_list()
    steady = sampled.processes.filter(~pl.col("host").is_in(joining))
    result = {
        "transaction": transaction_samples(events, window),
        "block": block_samples(events.blocks, window),
        "second": second_samples(events, sampled.pressure, window),
        "host_second": host_second_samples(events.scrapes, steady, window),
        "host": host_samples(start_up_s, steady, committed_until(events.blocks), window),
    }
    if not (steps := step_samples(events.scrapes, window)).is_empty():
        result["host"] = result["host"].join(steps, on="host", how="left", maintain_order="left")
    if events.blocks.is_empty():
        del result["block"]
        for population, about_blocks in _ABOUT_BLOCKS.items():
            result[population] = result[population].drop(about_blocks)
    if sampled.perturbations is not None:
        result["perturbation"] = perturbation_samples(sampled.perturbations, window)
    if sampled.joiners is not None and sampled.heights is not None:
        result["joiner"] = joiner_samples(sampled.joiners, sampled.processes, window)
        result["joiner_second"] = joiner_second_samples(sampled.heights, window)
    return result


def _seconds(later: str, earlier: str) -> pl.Expr:
    return (pl.col(later) - pl.col(earlier)) / NS


def transaction_samples(events: Events, window: Window) -> pl.DataFrame:
    """One row per transaction due in the window. All latencies run from the due time: an overloaded sender counts."""
    blocks = events.blocks.sort("height").select(
        "height",
        "observed_ns",
        header_ns="time_ns",
        next_header_ns=pl.when(pl.col("height").shift(-1) == pl.col("height") + 1).then(pl.col("time_ns").shift(-1)),
    )
    joined = events.transactions.filter(window.contains("due_ns")).join(blocks, on="height", how="left")
    return joined.select(
        "connection",
        "sequence",
        time_s=window.time_s("due_ns"),
        tx_latency_s=_seconds("observed_ns", "due_ns"),
        tx_latency_next_header_s=_seconds("next_header_ns", "due_ns"),
        tx_latency_header_s=_seconds("header_ns", "due_ns"),
        tx_answer_s=_seconds("answered_ns", "due_ns"),
        tx_schedule_lag_s=_seconds("sent_ns", "due_ns"),
        tx_committed_share=pl.col("height").is_not_null().cast(pl.Float64),
    ).sort("time_s", "connection", "sequence")


def block_samples(blocks: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per block whose commit was seen in the window."""
    return (
        _with_intervals(blocks)
        .filter(window.contains("seen_ns"))
        .select(
            "height",
            time_s=window.time_s("seen_ns"),
            block_interval_s=pl.col("block_interval_s"),
            block_interval_observed_s=pl.col("block_interval_observed_s"),
            block_size_bytes=pl.col("size_bytes").cast(pl.Float64),
            block_transactions=pl.col("transactions").cast(pl.Float64),
            block_extra_rounds=pl.col("round").cast(pl.Float64),
            block_missing_votes=pl.col("missing_votes").cast(pl.Float64),
        )
        .sort("height")
    )


def _with_intervals(blocks: pl.DataFrame) -> pl.DataFrame:
    ordered = blocks.sort("height")
    return ordered.with_columns(
        block_interval_s=pl.col("time_ns").diff() / NS,
        block_interval_observed_s=pl.col("observed_ns").diff() / NS,
        seen_ns=pl.coalesce("observed_ns", "time_ns"),
    )


def second_samples(events: Events, pressure: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per second of the window: rates of the whole network, its mempools, the machine."""
    edges_ns = window.start_ns + NS * np.arange(window.seconds + 1)
    due, sent = events.transactions["due_ns"], events.transactions["sent_ns"].drop_nulls()
    mempools = _by_second(events.scrapes.filter(pl.col("metric") == "cometbft_mempool_size"), window, "host")
    per_second = mempools.group_by("second").agg(
        mempool_mean_transactions=pl.col("value").mean(), mempool_max_transactions=pl.col("value").max()
    )
    frame = pl.DataFrame(
        {
            "second": np.arange(window.seconds),
            "time_s": np.arange(window.seconds, dtype=float),
            "offered_per_s": _counts(due, edges_ns),
            "achieved_per_s": _counts(sent, edges_ns),
            "committed_per_s": committed_per_second(events.blocks, edges_ns),
        }
    )
    joined = frame.join(per_second, on="second", how="left").join(
        _pressure_by_second(pressure, window), on="second", how="left"
    )
    return joined.drop("second").sort("time_s")


def _counts(times_ns: pl.Series, edges_ns: np.ndarray) -> np.ndarray:
    return np.diff(np.searchsorted(np.sort(times_ns.to_numpy()), edges_ns)).astype(float)


def committed_per_second(blocks: pl.DataFrame, edges_ns: np.ndarray) -> np.ndarray:
    """Committed transactions per second, each block's spread evenly over the interval that ended with it.

    Counting blocks by the second in which they end would make the mean of a short window depend on whether its last
    block came just before or just after its end: with 1.3 s blocks and 30 s that alone is ±4 %.
    """
    rates: np.ndarray = np.diff(committed_until(blocks).at(edges_ns))
    return rates


@dataclass(frozen=True)
class CountCurve:
    """A count that grows over time, interpolated between the times at which it is known, and constant outside them."""

    times_ns: np.ndarray
    totals: np.ndarray

    def at(self, times_ns: np.ndarray) -> np.ndarray:
        """The count at those times; 0 if it is never known."""
        if not len(self.times_ns):
            return np.zeros(len(times_ns))
        result: np.ndarray = np.interp(times_ns, self.times_ns, self.totals)
        return result


def committed_until(blocks: pl.DataFrame) -> CountCurve:
    """The transactions committed with the blocks so far, each block's spread evenly over its interval."""
    ordered = blocks.sort("height").with_columns(seen_ns=pl.coalesce("observed_ns", "time_ns"))
    return CountCurve(ordered["seen_ns"].to_numpy(), ordered["transactions"].cum_sum().cast(pl.Float64).to_numpy())


def growth(values: np.ndarray) -> np.ndarray:
    """The growth of a counter from sample to sample; one that fell restarted at zero."""
    steps = np.diff(values)
    return np.where(steps < 0, values[1:], steps)


def host_samples(
    start_up_s: Mapping[str, float], processes: pl.DataFrame, committed: CountCurve, window: Window
) -> pl.DataFrame:
    """One row per node: how long it took to start, and its processor time per committed transaction."""
    started = pl.DataFrame(
        {"host": list(start_up_s), "start_up_s": list(start_up_s.values())},
        schema={"host": pl.String, "start_up_s": pl.Float64},
    )
    used = cpu_per_transaction(processes, committed, window)
    return started.join(used, on="host", how="full", coalesce=True).sort("host")


STEPS: Mapping[str, str] = {
    "NewHeight": "step_new_height_s",
    "NewRound": "step_new_round_s",
    "Propose": "step_propose_s",
    "Prevote": "step_prevote_s",
    "Precommit": "step_precommit_s",
    "Commit": "step_commit_s",
}


def step_samples(scrapes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per node: the mean duration of each step of consensus that ended in the window, s.

    From the sums and counts of the node's own histogram. Null if no such step ended, or if the node restarted.

    Args:
        scrapes: time_ns, host, metric and value.
        window: the analysed part.
    """
    name, step = (pl.col("metric").str.split(":").list.get(place, null_on_oob=True) for place in (0, 1))
    totals = scrapes.with_columns(name=name, step=step).filter(
        pl.col("name").is_in(STEP_TOTALS), pl.col("step").is_in(list(STEPS)), window.contains("time_ns")
    )
    value = pl.col("value")
    grown = (
        totals.sort("time_ns")
        .group_by("host", "step", "name")
        .agg(grown=pl.when((value.diff() >= 0).all()).then(value.last() - value.first()))
    )
    both = grown.pivot("name", index=["host", "step"], on_columns=STEP_TOTALS)
    means = both.with_columns(mean=pl.when(pl.col(STEP_COUNT) > 0).then(pl.col(STEP_SUM) / pl.col(STEP_COUNT)))
    wide = means.pivot("step", index="host", values="mean", on_columns=list(STEPS))
    return wide.select("host", *(pl.col(step).alias(column) for step, column in STEPS.items()))


def cpu_per_transaction(processes: pl.DataFrame, committed: CountCurve, window: Window) -> pl.DataFrame:
    """Each node's processor time in the window per transaction committed in the window, s.

    The time is that of the process's own counter between the window's edges, not a sum of rounded shares of seconds.
    A process that was first or last seen within the window counts from or until then, with what was committed
    meanwhile. Null if that is less than half of the window, or if nothing was committed. If the speed of all nodes'
    processors was measured, the time is the one that processors with a speed of 1 would need.

    Args:
        processes: time_ns, host and cpu_s, a counter of seconds; and, if measured, the counters of reference work.
        committed: transactions of the whole network.
        window: the analysed part.
    """
    rows = []
    corrects = speed_is_known(processes)
    for part in processes.drop_nulls("cpu_s").sort("time_ns").partition_by("host"):
        used = CountCurve(
            part["time_ns"].to_numpy(), np.concatenate([[0.0], np.cumsum(growth(part["cpu_s"].to_numpy()))])
        )
        edges_ns = _seen(part, window)
        used_s, transactions = (float(np.diff(curve.at(edges_ns))[0]) for curve in (used, committed))
        reported = 2 * (edges_ns[1] - edges_ns[0]) >= window.end_ns - window.start_ns
        used_s *= _speed(part, edges_ns) if corrects else 1.0
        per_transaction_s = used_s / transactions if reported and transactions > 0 else None
        rows.append((part["host"][0], per_transaction_s))
    schema = {"host": pl.String, "node_cpu_per_transaction_s": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


REFERENCE = ("reference_cpu_s", "reference_times")


def speed_is_known(processes: pl.DataFrame) -> bool:
    """Whether the speed of the processors of every node was measured."""
    rows = processes.drop_nulls("cpu_s")
    if rows.is_empty() or not set(REFERENCE) <= set(rows.columns):
        return False
    return all(rows[column].null_count() == 0 for column in REFERENCE)


def _seen(samples: pl.DataFrame, window: Window) -> np.ndarray:
    """The edges of the window, or the first and last sample if they are within it."""
    return np.clip([window.start_ns, window.end_ns], samples["time_ns"][0], samples["time_ns"][-1])


def _speed(processes: pl.DataFrame, edges_ns: np.ndarray) -> float:
    """The known speed of a node's processors between two times."""
    times_ns = processes["time_ns"].to_numpy()
    cpu_s, times = (
        float(np.diff(CountCurve(times_ns, processes[column].to_numpy()).at(edges_ns))[0]) for column in REFERENCE
    )
    return NOMINAL_S * times / cpu_s if cpu_s > 0.0 else 1.0


def at_reference_speed(profiles: pl.DataFrame, processes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """The nodes' profiles with the CPU times that processors with a speed of 1 would need, if the speed is known."""
    if not speed_is_known(processes):
        return profiles
    speeds = {}
    for part in processes.drop_nulls("cpu_s").sort("time_ns").partition_by("host"):
        speeds[part["host"][0]] = _speed(part, _seen(part, window))
    speed = pl.col("host").replace_strict(speeds, default=1.0, return_dtype=pl.Float64)
    return profiles.with_columns(value=pl.col("value") * pl.when(pl.col("kind") == CPU).then(speed).otherwise(1.0))


def _by_second(frame: pl.DataFrame, window: Window, *keys: str) -> pl.DataFrame:
    """The last row of every second and key in the window, in no order."""
    binned = frame.filter(window.contains("time_ns")).with_columns(second=(pl.col("time_ns") - window.start_ns) // NS)
    return binned.sort("time_ns").group_by("second", *keys).last()


def _rate(column: str, *over: str) -> pl.Expr:
    """Increase per second of a counter since the previous sample; null if it fell (the process restarted)."""
    step = pl.col(column).diff().over(over) if over else pl.col(column).diff()
    seconds = (pl.col("time_ns").diff().over(over) if over else pl.col("time_ns").diff()) / NS
    return pl.when(step >= 0).then(step / seconds)


def _waiting_share(column: str) -> pl.Expr:
    """The share of the time since the previous sample; a delayed sampler may read its two clocks at different times."""
    return (_rate(column) / 1e6).clip(upper_bound=1.0)


def _lost_share(ran: str, waited: str, *over: str) -> pl.Expr:
    """As :func:`.run_queue.lost_share`, of the time since the previous sample; null if a counter fell."""
    ran_s, waited_s, contended_s = (_rate(column, *over) for column in (ran, waited, "contended_s"))
    wanted_s = pl.max_horizontal(ran_s + waited_s, LEAST_BUSY_SHARE)
    return pl.when(ran_s.is_not_null() & waited_s.is_not_null()).then(
        pl.min_horizontal(waited_s, contended_s) / wanted_s
    )


def _pressure_by_second(pressure: pl.DataFrame, window: Window) -> pl.DataFrame:
    rates = pressure.sort("time_ns").select(
        "time_ns",
        machine_cpu_pressure=_waiting_share("cpu_pressure_us"),
        machine_io_pressure=_waiting_share("io_pressure_us"),
        machine_memory_pressure=_waiting_share("memory_pressure_us"),
        machine_cpu_cores=_rate("cpu_busy_s"),
        machine_cpu_steal_cores=_rate("cpu_steal_s"),
        machine_load1=pl.col("load1"),
        harness_cpu_cores=_rate("harness_cpu_s"),
        nodes_run_queue_share=_lost_share("nodes_ran_s", "nodes_waited_s"),
        generator_run_queue_share=_lost_share("generator_ran_s", "generator_waited_s"),
        machine_steal_share=_rate("cpu_steal_s") / _rate("cpu_total_s"),
        machine_speed=NOMINAL_S * _rate("reference_times") / _rate("reference_cpu_s"),
    )
    # A sampler that has to wait leaves out seconds, also at the end of the window: the next sample covers their time.
    last = _by_second(rates, replace(window, end_ns=np.iinfo(np.int64).max)).sort("second")
    seconds = pl.DataFrame({"second": np.arange(window.seconds)})
    return seconds.join_asof(last, on="second", strategy="forward").drop("time_ns")


def host_second_samples(scrapes: pl.DataFrame, processes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per node and second: what its process used and what the node itself reports."""
    used = processes.sort("time_ns").select(
        "time_ns",
        "host",
        node_cpu_cores=_rate("cpu_s", "host"),
        node_run_queue_share=_lost_share("ran_s", "waited_s", "host"),
        node_rss_bytes=pl.col("rss_bytes").cast(pl.Float64),
        node_open_files=pl.col("open_files").cast(pl.Float64),
        node_threads=pl.col("threads").cast(pl.Float64),
        node_disk_read_bytes_per_s=_rate("disk_read_bytes", "host"),
        node_disk_written_bytes_per_s=_rate("disk_written_bytes", "host"),
    )
    wide = scrapes.pivot("metric", index=["time_ns", "host"]).sort("time_ns")
    reported = wide.select(
        "time_ns",
        "host",
        node_mempool_transactions=_column(wide, "cometbft_mempool_size"),
        node_peers=_column(wide, "cometbft_p2p_peers"),
        node_goroutines=_column(wide, "go_goroutines"),
        node_heap_bytes=_column(wide, "go_memstats_heap_alloc_bytes"),
        node_sent_bytes_per_s=_counter(wide, "cometbft_p2p_message_send_bytes"),
        node_received_bytes_per_s=_counter(wide, "cometbft_p2p_message_receive_bytes"),
    )
    hosts = sorted(processes["host"].unique())
    grid = pl.DataFrame({"host": hosts}, schema={"host": pl.String}).join(
        pl.DataFrame({"second": np.arange(window.seconds)}), how="cross"
    )
    return (
        grid.join(_by_second(used, window, "host").drop("time_ns"), on=["host", "second"], how="left")
        .join(_by_second(reported, window, "host").drop("time_ns"), on=["host", "second"], how="left")
        .with_columns(time_s=pl.col("second").cast(pl.Float64))
        .drop("second")
        .sort("time_s", "host")
    )


def _column(wide: pl.DataFrame, family: str) -> pl.Expr:
    """A family's column, or nulls if no page had it."""
    return pl.col(family) if family in wide.columns else pl.lit(None, dtype=pl.Float64)


def _counter(wide: pl.DataFrame, family: str) -> pl.Expr:
    return _rate(family, "host") if family in wide.columns else pl.lit(None, dtype=pl.Float64)


def perturbation_samples(perturbations: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per perturbation and node: the recovery in the column of its kind, and how many blocks it missed.

    An unused kind has no column. A node that did not recover has no value.
    """
    kinds = perturbations["kind"].unique(maintain_order=True).to_list()
    recovery_s = _seconds("recovered_ns", "undone_ns")
    return perturbations.select(
        pl.format("{} {}", "perturbation", "kind").alias("perturbation"),
        "host",
        time_s=window.time_s("begun_ns"),
        **{f"recovery_{kind}_s": pl.when(pl.col("kind") == kind).then(recovery_s) for kind in kinds},
        blocks_missed=(pl.col("height_undone") - pl.col("height_begun")).cast(pl.Float64),
    ).sort("time_s", "perturbation", "host")


def joiner_samples(joiners: pl.DataFrame, processes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per joining node that was started."""
    memory = processes.group_by("host").agg(joiner_rss_max_bytes=pl.col("rss_bytes").max().cast(pl.Float64))
    catch_up_s = _seconds("caught_up_ns", "started_ns")
    return (
        joiners.filter(pl.col("started_ns").is_not_null())
        .join(memory, on="host", how="left")
        .select(
            "host",
            time_s=window.time_s("started_ns"),
            catch_up_s=catch_up_s,
            catch_up_blocks=pl.col("height").cast(pl.Float64),
            catch_up_blocks_per_s=pl.col("height") / catch_up_s,
            joiner_rss_max_bytes="joiner_rss_max_bytes",
        )
        .sort("time_s", "host")
    )


def joiner_second_samples(heights: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per joining node and second in which it was observed: its height, and that of the network."""
    return (
        _by_second(heights, window, "host")
        .select(
            "host",
            time_s=pl.col("second").cast(pl.Float64),
            joiner_height_blocks=pl.col("height").cast(pl.Float64),
            network_height_blocks=pl.col("network_height").cast(pl.Float64),
        )
        .sort("time_s", "host")
    )
