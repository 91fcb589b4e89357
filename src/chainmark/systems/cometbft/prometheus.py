"""A range of a Prometheus server's data about a CometBFT network, as a run.

What our own scrapes and samplers give is taken from the same families; what no metrics page tells (the transactions'
latencies, missing votes, disk use) has no data. A node is a target (job and instance) that exposes the consensus height
under `cometbft_` or, before v0.38, `tendermint_`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, HostFacts, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.core.times import NS
from chainmark.core.units import utc_of_nanoseconds
from chainmark.network.prometheus_api import (
    KeptAnswers,
    LiveServer,
    Prometheus,
    Series,
    Source,
    any_of,
    matchers,
)
from chainmark.network.sampling import PROCESS_SCHEMA
from chainmark.stats.extrapolated_rate import extrapolated_rate
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.runs import UnfinishedRun
from chainmark.systems.base import Imported, ImportOrder
from chainmark.systems.cometbft.analyse import Window, host_second_samples
from chainmark.systems.cometbft.heights import block_samples
from chainmark.systems.cometbft.prometheus_gates import Coverage, Judged, Limits, find_gates
from chainmark.systems.profiles import apply_setting, check_profile

NOT_STATED = "not stated"
NAMESPACES = ("cometbft", "tendermint")
HEIGHT = "cometbft_consensus_height"
TOTAL = "cometbft_consensus_total_txs"
MEMPOOL = "cometbft_mempool_size"
START = "process_start_time_seconds"
LOAD = "node_load1"
# Families of the node, without their namespace and without `_total`.
NODE_FAMILIES = (
    "consensus_height",
    "consensus_total_txs",
    "consensus_num_txs",
    "consensus_block_size_bytes",
    "consensus_rounds",
    "blocksync_latest_block_height",
    "mempool_size",
    "p2p_peers",
    "p2p_message_send_bytes",
    "p2p_message_receive_bytes",
)
PROCESS_FAMILIES = (
    "process_cpu_seconds",
    "process_resident_memory_bytes",
    "process_open_fds",
    START,
    "go_goroutines",
    "go_memstats_heap_alloc_bytes",
)
# Read before the range as well: rates look back, by 20 s in the published plots, and so do intervals between blocks.
LEAD_NS = 60 * NS
RATE_WINDOW_NS = 20 * NS
# A sample that is older than this many scrape intervals says nothing about now.
STALE = 1.5
ANSWERS = "prometheus"
ORDERED = "import.json"
_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
}
Target = tuple[str, str]


class Settings(BaseModel):
    """What `--set` can state of an import from a Prometheus server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    select: str = Field("", description='matchers that every node\'s series must meet, e.g. `chain_id="qa"`')
    host_label: str = Field("auto", description="the label that names a node: `auto`, `job`, `instance` or another")
    step_s: float = Field(0, ge=0, description="take the server's values at this step; 0: the samples as scraped")
    blocks_min: int = Field(10, ge=0, description="blocks")
    complete_min: float = Field(0.9, ge=0, le=1, description="the least share of the scrapes that each node must have")
    workload: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="what the network was asked to do, which two runs must share"
    )


@dataclass(frozen=True)
class _Range:
    """What is asked for: the run, and before it what rates need."""

    begin_ns: int
    end_ns: int
    settings: Settings

    def series(self, prometheus: Prometheus, selector: str) -> list[Series]:
        if self.settings.step_s:
            step_ns = round(self.settings.step_s * NS)
            lead_ns = -(-LEAD_NS // step_ns) * step_ns
            return prometheus.query_range(selector, self.begin_ns - lead_ns, self.end_ns, step_ns)
        return prometheus.samples(selector, self.begin_ns - LEAD_NS, self.end_ns)


@dataclass(frozen=True)
class Fetched:
    """What the server has, by node, the lead before the range included.

    Attributes:
        scrapes: time_ns, host, metric, value; every family under its name at `cometbft_`, labels summed up.
        load: likewise, of the machines' load average.
        interval_s: the median time between two scrapes of a node.
    """

    scrapes: pl.DataFrame
    load: pl.DataFrame
    hosts: dict[str, Target]
    chain_id: str
    namespaces: tuple[str, ...]
    interval_s: float


def recognises(path: Path) -> bool:
    """Whether a folder holds the answers that an import kept, as `raw/prometheus` of its run does."""
    return (path / ORDERED).is_file()


def ingest_server(order: ImportOrder, run: UnfinishedRun, progress: Progress) -> Imported:
    """A range of a server's data into a run.

    Raises:
        UsageError: there is no version or range, or nothing of CometBFT in it.
        EnvironmentFailure: the server cannot be asked, or does not answer.
    """
    if order.begin_ns is None or order.end_ns is None:
        raise UsageError(
            "nothing says which range of time to import", "for example `--from 2026-01-01T10:00:00Z --duration 90s`"
        )
    asked = _Range(order.begin_ns, order.end_ns, _settings(order.settings))
    return _ingest(order.version, asked, LiveServer(str(order.source)), run, progress)


def ingest_kept(order: ImportOrder, run: UnfinishedRun, progress: Progress) -> Imported:
    """The same from the answers that such an import kept.

    Raises:
        UsageError: they were changed, or other ones are needed.
    """
    folder = order.path
    content = _read_order(folder / ORDERED)
    settings = _settings(order.settings, content["settings"])
    asked = _Range(order.begin_ns or content["begin_ns"], order.end_ns or content["end_ns"], settings)
    source = KeptAnswers(folder, content["server"])
    return _ingest(order.version or content["version"], asked, source, run, progress)


def _settings(changes: Iterable[str], content: Mapping[str, Any] | None = None) -> Settings:
    told = dict(content or {})
    for change in changes:
        told = apply_setting(told, change)
    return check_profile(Settings, told)


def _read_order(path: Path) -> dict[str, Any]:
    content = _json_of(path)
    missing = {"server", "version", "begin_ns", "end_ns", "settings"} - content.keys()
    if missing:
        raise UsageError(f"{path} is not as an import wrote it: `{min(missing)}` is missing")
    return content


def _json_of(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} is not as an import wrote it")
    return content


def _ingest(version: str | None, asked: _Range, source: Source, run: UnfinishedRun, progress: Progress) -> Imported:
    if version is None:
        raise UsageError("a Prometheus server does not say which version of CometBFT ran", "say it: `--as v1.0.1`")
    kept = run.raw / ANSWERS
    content = {
        "server": source.place,
        "version": version,
        "begin_ns": asked.begin_ns,
        "end_ns": asked.end_ns,
        "settings": asked.settings.model_dump(mode="json"),
    }
    write_bytes(kept / ORDERED, json_bytes(content))
    with Prometheus(source, kept) as prometheus:
        fetched = fetch(prometheus, asked, progress)
        warnings = list(prometheus.warnings)
    progress.stage("analysing")
    window = Window(asked.begin_ns, asked.end_ns)
    samples = samples_of(fetched, window)
    for name, frame in samples.items():
        run.write_samples(name, frame)
    run.write_events("scrapes", fetched.scrapes)
    run.write_events("rates", rates(fetched.scrapes, window))
    return _imported(fetched, asked, content, Found(samples, warnings), run)


def fetch(prometheus: Prometheus, asked: _Range, progress: Progress) -> Fetched:
    """Ask for everything, and find the nodes in it.

    Raises:
        UsageError: there is no node, or there are two networks.
    """
    progress.stage(f"asking {prometheus.source.place}")
    names = f"({'|'.join(NAMESPACES)})_({'|'.join(NODE_FAMILIES)})(_total)?"
    select = asked.settings.select.strip("{} ")
    told = asked.series(prometheus, matchers([f'__name__=~"{names}"', select]))
    heights = [series for series in told if _family(series.name) == HEIGHT]
    present = [one for one in heights if any(time_ns >= asked.begin_ns for time_ns in one.times_ns)]
    if not present:
        jobs = ", ".join(prometheus.label_values("job", asked.begin_ns, asked.end_ns)) or "none at all"
        raise UsageError(
            f"{prometheus.source.place} has no consensus height of CometBFT between "
            f"{utc_of_nanoseconds(asked.begin_ns)} and {utc_of_nanoseconds(asked.end_ns)}",
            f"jobs that it scraped then: {jobs}",
        )
    chains = sorted({one.labels.get("chain_id", NOT_STATED) for one in present})
    if len(chains) > 1:
        raise UsageError(
            f"{prometheus.source.place} has {len(chains)} networks in this range: {', '.join(chains)}",
            f"choose one: `--set 'select=chain_id=\"{chains[0]}\"'`",
        )
    hosts = name_hosts([one.labels for one in present], asked.settings.host_label)
    progress.update(0.5, f"{len(hosts)} nodes")
    processes = f'__name__=~"({"|".join(PROCESS_FAMILIES)})(_total)?"'
    jobs_of = f"job=~{any_of(sorted({job for job, _ in hosts.values()}))}"
    used = asked.series(prometheus, matchers([processes, jobs_of]))
    load = asked.series(prometheus, matchers([f'__name__="{LOAD}"']))
    scrapes = _frame([*_one_namespace(told), *used], hosts)
    times = scrapes.filter(pl.col("metric") == HEIGHT).sort("host", "time_ns")
    steps = times.select((pl.col("time_ns").diff().over("host") / NS).alias("step"))["step"].drop_nulls()
    interval_s = steps.median()
    return Fetched(
        scrapes=scrapes,
        load=_load_frame(load, hosts),
        hosts=hosts,
        chain_id=chains[0],
        namespaces=tuple(sorted({one.name.partition("_")[0] for one in present})),
        interval_s=float(interval_s) if isinstance(interval_s, int | float) else float("nan"),
    )


def name_hosts(labels: Sequence[Mapping[str, str]], host_label: str) -> dict[str, Target]:
    """A name for every node, by which its series are found: host → (job, instance).

    With `auto` it is the job where every node is a job of its own, as in the QA's own configuration; else the instance;
    else both.

    Raises:
        UsageError: the label that was asked for does not tell the nodes apart.
    """
    targets = sorted({(one.get("job", ""), one.get("instance", "")) for one in labels})
    if host_label == "auto":
        candidates = [[job for job, _ in targets], [instance for _, instance in targets]]
        both = [f"{job}/{instance}" for job, instance in targets]
        names = next((one for one in candidates if len(set(one)) == len(targets) and all(one)), both)
        return dict(zip(names, targets, strict=True))
    named: dict[str, Target] = {}
    for one in labels:
        name, target = one.get(host_label, ""), (one.get("job", ""), one.get("instance", ""))
        if not name or named.setdefault(name, target) != target:
            raise UsageError(
                f"the label `{host_label}` does not tell {target[0]} {target[1]} from other nodes: it is `{name}`",
                "`--set host_label=instance` always does",
            )
    return named


def _family(name: str) -> str:
    """A family's name without `_total`, and under the namespace of today."""
    plain = name.removesuffix("_total")
    old = f"{NAMESPACES[1]}_"
    return f"{NAMESPACES[0]}_{plain.removeprefix(old)}" if plain.startswith(old) else plain


def _one_namespace(series: Sequence[Series]) -> list[Series]:
    """A node that exposes a family under both names is not counted twice."""
    new = {(_target(one), _family(one.name)) for one in series if one.name.startswith(f"{NAMESPACES[0]}_")}
    return [
        one
        for one in series
        if one.name.startswith(f"{NAMESPACES[0]}_") or (_target(one), _family(one.name)) not in new
    ]


def _target(series: Series) -> Target:
    return series.labels.get("job", ""), series.labels.get("instance", "")


def _frame(series: Iterable[Series], hosts: Mapping[str, Target]) -> pl.DataFrame:
    """Families of the nodes, each summed over its labels, as from our own scrapes."""
    named = {target: host for host, target in hosts.items()}
    frames = [
        pl.DataFrame(
            {"time_ns": one.times_ns, "host": named[_target(one)], "metric": _family(one.name), "value": one.values},
            schema=_SCHEMA,
        )
        for one in series
        if _target(one) in named
    ]
    everything = pl.concat([pl.DataFrame(schema=_SCHEMA), *frames]).filter(pl.col("value").is_finite())
    return everything.group_by("time_ns", "host", "metric").agg(pl.col("value").sum()).sort("time_ns", "host", "metric")


def _load_frame(series: Sequence[Series], hosts: Mapping[str, Target]) -> pl.DataFrame:
    """The load average of each node's machine: of its job, where a job is one node, else at its address."""
    jobs = [job for job, _ in hosts.values()]
    by_job = len(set(jobs)) == len(jobs)
    frames = []
    for host, (job, instance) in hosts.items():
        for one in series:
            told_job, told_instance = _target(one)
            if (by_job and told_job == job) or _address(told_instance) == _address(instance):
                frames.append(
                    pl.DataFrame(
                        {"time_ns": one.times_ns, "host": host, "metric": LOAD, "value": one.values}, schema=_SCHEMA
                    )
                )
                break
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *frames]).sort("host", "time_ns")


def _address(instance: str) -> str:
    return instance.rpartition(":")[0] or instance


def samples_of(fetched: Fetched, window: Window) -> dict[str, pl.DataFrame]:
    """The samples of every population of which a metrics page tells anything."""
    return {
        "transaction": pl.DataFrame(schema={"connection": pl.UInt32, "sequence": pl.UInt32, "time_s": pl.Float64}),
        "block": block_samples(fetched.scrapes, window),
        "second": second_samples(fetched, window),
        "host_second": host_second_samples(fetched.scrapes, _processes(fetched.scrapes), window),
    }


def _processes(scrapes: pl.DataFrame) -> pl.DataFrame:
    """What the processes say of themselves, in the columns of what we sample of our own; a row for every scrape."""
    wide = scrapes.pivot(on="metric", index=["time_ns", "host"], values="value").sort("host", "time_ns")
    told = {
        "cpu_s": "process_cpu_seconds",
        "rss_bytes": "process_resident_memory_bytes",
        "open_files": "process_open_fds",
    }
    columns = {
        name: pl.col(told[name]).cast(kind) if told.get(name) in wide.columns else pl.lit(None, dtype=kind)
        for name, kind in PROCESS_SCHEMA.items()
        if name not in {"time_ns", "host"}
    }
    return wide.select("time_ns", "host", **columns)


def second_samples(fetched: Fetched, window: Window) -> pl.DataFrame:
    """One row per second of the window; the mempools and the load once per scrape interval, when each was told anew."""
    seconds = np.arange(window.seconds)
    edges_ns = window.start_ns + NS * np.arange(window.seconds + 1)
    step = max(1, round(fetched.interval_s)) if np.isfinite(fetched.interval_s) else 1
    told = np.flatnonzero((seconds + 1) % step == 0)
    stale_ns = round(STALE * max(step, 1) * NS)
    mempools = _latest(fetched.scrapes.filter(pl.col("metric") == MEMPOOL), edges_ns[told + 1], stale_ns)
    loads = _latest(fetched.load, edges_ns[told + 1], stale_ns)
    columns = {
        "mempool_mean_transactions": mempools.mean,
        "mempool_max_transactions": mempools.max,
        "machine_load1": loads.mean,
    }
    frame = pl.DataFrame({"time_s": seconds.astype(float), "committed_per_s": _committed(fetched.scrapes, edges_ns)})
    for name, values in columns.items():
        column = np.full(window.seconds, np.nan)
        column[told] = values
        frame = frame.with_columns(pl.Series(name, column))
    return frame.with_columns(pl.all().fill_nan(None))


@dataclass(frozen=True)
class _Latest:
    """Over the nodes, of what each had said last; NaN where nobody had said anything lately."""

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
    nobody = count == 0
    return _Latest(np.where(nobody, np.nan, total / np.maximum(count, 1)), np.where(nobody, np.nan, most))


def _committed(scrapes: pl.DataFrame, edges_ns: np.ndarray) -> np.ndarray:
    """Committed transactions per second: the growth of each node's count, even between two scrapes, mean over nodes."""
    rates = []
    for times, values in _by_host(scrapes.filter(pl.col("metric") == TOTAL)):
        grown = np.concatenate([[0.0], np.cumsum(_growth(values))])
        rates.append(np.diff(np.interp(edges_ns, times, grown, left=np.nan, right=np.nan)))
    if not rates:
        return np.full(len(edges_ns) - 1, np.nan)
    stacked = np.array(rates)
    known = np.isfinite(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _growth(values: np.ndarray) -> np.ndarray:
    """From sample to sample; a count that fell began anew at zero."""
    steps = np.diff(values)
    return np.where(steps < 0, values[1:], steps)


def rates(scrapes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Blocks and transactions per minute of every node, each second: ``rate(…[20s]) * 60``, as the QA reports plot it.

    Returns:
        time_ns, host, blocks_per_minute, transactions_per_minute; null where the window holds fewer than two scrapes.
    """
    at_ns = window.start_ns + NS * np.arange(window.seconds, dtype=np.int64)
    found: dict[str, list[pl.DataFrame]] = {"blocks_per_minute": [], "transactions_per_minute": []}
    for name, metric in (("blocks_per_minute", HEIGHT), ("transactions_per_minute", TOTAL)):
        for part in scrapes.filter(pl.col("metric") == metric).sort("time_ns").partition_by("host"):
            values = extrapolated_rate(part["time_ns"].to_numpy(), part["value"].to_numpy(), at_ns, RATE_WINDOW_NS)
            row = pl.DataFrame({"time_ns": at_ns, "host": part["host"][0], name: 60 * values})
            found[name].append(row.with_columns(pl.col(name).fill_nan(None)))
    keys = {"time_ns": pl.Int64, "host": pl.String}
    tables = [pl.concat([pl.DataFrame(schema={**keys, name: pl.Float64}), *rows]) for name, rows in found.items()]
    return tables[0].join(tables[1], on=["time_ns", "host"], how="full", coalesce=True).sort("time_ns", "host")


@dataclass(frozen=True)
class Found:
    """What an import found: its samples, and what the server said beside them."""

    samples: Mapping[str, pl.DataFrame]
    warnings: Sequence[str]


def _imported(
    fetched: Fetched, asked: _Range, content: dict[str, object], found: Found, run: UnfinishedRun
) -> Imported:
    window = Window(asked.begin_ns, asked.end_ns)
    coverage = Coverage.of(fetched.scrapes, window, fetched.interval_s)
    settings = asked.settings
    limits = Limits(settings.complete_min, settings.blocks_min)
    judged = Judged(coverage, limits, found.samples["block"].height, tuple(found.warnings))
    version = str(content["version"])
    workload: dict[str, Scalar | list[Scalar]] = {
        "source": "Prometheus",
        "network.nodes": len(fetched.hosts),
        "scrape_interval_s": round(fetched.interval_s, 1),
        "window.seconds": window.seconds,
        **settings.workload,
    }
    told = [Fact(label="Nodes", value=f"{len(fetched.hosts)}, chain {fetched.chain_id}")]
    told.append(Fact(label="Read from", value=f"{content['server']}, one sample every {fetched.interval_s:g} s"))
    return Imported(
        subject=Subject(system="cometbft", name="CometBFT", version=version),
        profile_name="cometbft/prometheus",
        profile={**content, "hosts": {host: list(target) for host, target in sorted(fetched.hosts.items())}},
        workload=workload,
        conditions={},
        configuration=Configuration(),
        counts={"samples of the nodes": _counts(fetched)},
        facts=told,
        gates=find_gates(judged),
        sources=run.sources(),
        host=HostFacts(cpu_model=NOT_STATED, cores=0, memory_bytes=0, kernel=NOT_STATED, operating_system=NOT_STATED),
        first_ns=asked.begin_ns,
        last_ns=asked.end_ns,
        options={},
        catalogue=catalogue_of_import(),
        incidents=coverage.incidents(),
        warnings=[*found.warnings, *_missing(fetched)],
    )


def _counts(fetched: Fetched) -> dict[str, int]:
    by_host = fetched.scrapes.group_by("host").len().sort("host")
    return dict(zip(by_host["host"], by_host["len"], strict=True))


def _missing(fetched: Fetched) -> list[str]:
    """Families that some node does not tell, which leaves metrics without data."""
    wanted = [f"{NAMESPACES[0]}_{name}" for name in NODE_FAMILIES if not name.startswith("blocksync")]
    found = []
    for family in [*wanted, *PROCESS_FAMILIES]:
        having = fetched.scrapes.filter(pl.col("metric") == family)["host"].n_unique()
        if having < len(fetched.hosts):
            found.append(f"{len(fetched.hosts) - having} of {len(fetched.hosts)} nodes do not tell {family}")
    if fetched.load.is_empty():
        found.append(f"no machine tells {LOAD}: the load average has no data")
    return found


def catalogue_of_import() -> Catalogue:
    """The metrics, saying how those are found that our own runs read from blocks."""
    own = load_catalogue(Path(__file__).with_name("catalogue.toml"))
    changed = [
        metric.model_copy(update={"description": _FOUND[metric.id][0], "source": [_FOUND[metric.id][1]]})
        if metric.id in _FOUND
        else metric
        for metric in own.metrics
    ]
    return own.model_copy(update={"metrics": changed})


_FOUND = {
    "block_interval_s": (
        "Time between the scrapes in which a height and the one before it were first seen on any node; heights that "
        "came between two scrapes share their time evenly. The mean is exact to one scrape interval over the window.",
        HEIGHT,
    ),
    "block_transactions": (
        "Transactions in a block, where a scrape came before the next one.",
        "cometbft_consensus_num_txs",
    ),
    "block_size_bytes": (
        "Size of a block, where a scrape came before the next one.",
        "cometbft_consensus_block_size_bytes",
    ),
    "block_extra_rounds": (
        "The last round that a node had finished, in the last scrape before the next block was seen.",
        "cometbft_consensus_rounds",
    ),
    "committed_per_s": (
        "Growth of the nodes' count of transactions per second, even between two scrapes, averaged over the nodes.",
        TOTAL,
    ),
    "machine_load1": ("The load average over one minute of the nodes' machines, averaged over the nodes.", LOAD),
    "node_cpu_cores": ("Processor time used by a node's process per second.", "process_cpu_seconds_total"),
    "node_rss_bytes": ("Resident memory of a node's process.", "process_resident_memory_bytes"),
    "node_open_files": ("File descriptors that a node's process holds.", "process_open_fds"),
}
