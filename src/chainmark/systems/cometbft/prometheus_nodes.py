"""The nodes of a CometBFT network in a Prometheus server: their series, and their names.

A node is a target (job and instance) that exposes the consensus height under `cometbft_` or, as Tendermint did,
`tendermint_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.times import NS
from chainmark.core.units import utc_of_nanoseconds
from chainmark.network.prometheus_api import Prometheus, TimeSeries, any_of, matchers
from chainmark.systems.cometbft.ingest import SCRAPE_SCHEMA

NOT_STATED = "not stated"
NAMESPACES = ("cometbft", "tendermint")
HEIGHT = "cometbft_consensus_height"
TOTAL = "cometbft_consensus_total_txs"
START = "process_start_time_seconds"
LOAD = "node_load1"
# No release of CometBFT has its version on its metrics page (v0.34 to v1.0); the scraper may add it as a target's
# label.
VERSION_LABEL = "version"
# Families of the node, without their namespace and without `_total`.
NODE_FAMILIES = (
    "consensus_height",
    "consensus_latest_block_height",
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
Target = tuple[str, str]


class PrometheusSettings(BaseModel):
    """What `--set` can state of an import from a Prometheus server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    select: str = Field("", description='matchers that every node\'s series must meet, e.g. `chain_id="qa"`')
    host_label: str = Field("auto", description="label that identifies a node: `auto`, `job`, `instance` or another")
    step_s: float = Field(0, ge=0, description="step of the values to query; 0: the samples as scraped")
    blocks_min: int = Field(10, ge=0, description="blocks")
    complete_min: float = Field(0.9, ge=0, le=1, description="minimum share of the scrapes that each node must have")
    workload: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="the workload of the network; comparable runs have the same"
    )


@dataclass(frozen=True)
class Range:
    """The query range: the run, and before it what rates need."""

    begin_ns: int
    end_ns: int
    settings: PrometheusSettings

    def series(self, prometheus: Prometheus, selector: str) -> list[TimeSeries]:
        """The samples of a selector, including the lead before the range."""
        if self.settings.step_s:
            step_ns = round(self.settings.step_s * NS)
            lead_ns = -(-LEAD_NS // step_ns) * step_ns
            return prometheus.query_range(selector, self.begin_ns - lead_ns, self.end_ns, step_ns)
        return prometheus.samples(selector, self.begin_ns - LEAD_NS, self.end_ns)


@dataclass(frozen=True)
class Fetched:
    """The server's data by node, including the lead before the range.

    Attributes:
        scrapes: time_ns, host, metric, value; every family under its name at `cometbft_`, labels summed up.
        load: likewise, of the machines' load average.
        interval_s: the median time between two scrapes of a node.
        versions: by the version label of the nodes' series, the nodes; a node's own pages have none.
    """

    scrapes: pl.DataFrame
    load: pl.DataFrame
    hosts: dict[str, Target]
    chain_id: str
    namespaces: tuple[str, ...]
    interval_s: float
    versions: dict[str, list[str]] = field(default_factory=dict)


def fetch(prometheus: Prometheus, requested: Range, progress: Progress) -> Fetched:
    """Query everything, and identify the nodes in it.

    Raises:
        UsageError: there is no node, or there are two networks.
    """
    progress.stage(f"querying {prometheus.source.place}")
    names = f"({'|'.join(NAMESPACES)})_({'|'.join(NODE_FAMILIES)})(_total)?"
    select = requested.settings.select.strip("{} ")
    reported = requested.series(prometheus, matchers([f'__name__=~"{names}"', select]))
    heights = [series for series in reported if _family(series.name) == HEIGHT]
    present = [height for height in heights if any(time_ns >= requested.begin_ns for time_ns in height.times_ns)]
    if not present:
        jobs = ", ".join(prometheus.label_values("job", requested.begin_ns, requested.end_ns)) or "none"
        raise UsageError(
            f"{prometheus.source.place} has no consensus height of CometBFT between "
            f"{utc_of_nanoseconds(requested.begin_ns)} and {utc_of_nanoseconds(requested.end_ns)}",
            f"jobs that it scraped in this range: {jobs}",
        )
    chains = sorted({series.labels.get("chain_id", NOT_STATED) for series in present})
    if len(chains) > 1:
        raise UsageError(
            f"{prometheus.source.place} has {len(chains)} networks in this range: {', '.join(chains)}",
            f"choose one: `--set 'select=chain_id=\"{chains[0]}\"'`",
        )
    hosts = name_hosts([series.labels for series in present], requested.settings.host_label)
    progress.update(0.5, f"{len(hosts)} nodes")
    processes = f'__name__=~"({"|".join(PROCESS_FAMILIES)})(_total)?"'
    jobs_of = f"job=~{any_of(sorted({job for job, _ in hosts.values()}))}"
    used = requested.series(prometheus, matchers([processes, jobs_of]))
    load = requested.series(prometheus, matchers([f'__name__="{LOAD}"']))
    scrapes = _frame([*_one_namespace(reported), *used], hosts)
    times = scrapes.filter(pl.col("metric") == HEIGHT).sort("host", "time_ns")
    steps = times.select((pl.col("time_ns").diff().over("host") / NS).alias("step"))["step"].drop_nulls()
    interval_s = steps.median()
    return Fetched(
        scrapes=scrapes,
        load=_load_frame(load, hosts),
        hosts=hosts,
        chain_id=chains[0],
        namespaces=tuple(sorted({series.name.partition("_")[0] for series in present})),
        interval_s=float(interval_s) if isinstance(interval_s, int | float) else float("nan"),
        versions=_versions(present, hosts),
    )


def _versions(heights: Sequence[TimeSeries], hosts: Mapping[str, Target]) -> dict[str, list[str]]:
    named = {target: host for host, target in hosts.items()}
    results: dict[str, set[str]] = {}
    for height in heights:
        if reported := height.labels.get(VERSION_LABEL):
            results.setdefault(reported, set()).add(named[_target(height)])
    return {stated: sorted(nodes) for stated, nodes in sorted(results.items())}


def name_hosts(labels: Sequence[Mapping[str, str]], host_label: str) -> dict[str, Target]:
    """A name for every node, with the key of its series: host → (job, instance).

    With `auto` it is the job if every node has its own job, as in the QA's own configuration; otherwise the instance;
    otherwise both.

    Raises:
        UsageError: the selected label does not distinguish the nodes.
    """
    targets = sorted({(item.get("job", ""), item.get("instance", "")) for item in labels})
    if host_label == "auto":
        candidates = [[job for job, _ in targets], [instance for _, instance in targets]]
        both = [f"{job}/{instance}" for job, instance in targets]
        names = next(
            (candidate for candidate in candidates if len(set(candidate)) == len(targets) and all(candidate)), both
        )
        return dict(zip(names, targets, strict=True))
    named: dict[str, Target] = {}
    for label in labels:
        name, target = label.get(host_label, ""), (label.get("job", ""), label.get("instance", ""))
        if not name or named.setdefault(name, target) != target:
            raise UsageError(
                f"the label `{host_label}` does not distinguish {target[0]} {target[1]} from other nodes: it is "
                f"`{name}`",
                "use `--set host_label=instance`",
            )
    return named


def _family(name: str) -> str:
    """A family's name without `_total`, and with the current namespace."""
    plain = name.removesuffix("_total")
    old = f"{NAMESPACES[1]}_"
    return f"{NAMESPACES[0]}_{plain.removeprefix(old)}" if plain.startswith(old) else plain


def _one_namespace(series: Sequence[TimeSeries]) -> list[TimeSeries]:
    """A node that exposes a family under both names is not counted twice."""
    new = {(_target(item), _family(item.name)) for item in series if item.name.startswith(f"{NAMESPACES[0]}_")}
    return [
        item
        for item in series
        if item.name.startswith(f"{NAMESPACES[0]}_") or (_target(item), _family(item.name)) not in new
    ]


def _target(series: TimeSeries) -> Target:
    return series.labels.get("job", ""), series.labels.get("instance", "")


def _frame(series: Iterable[TimeSeries], hosts: Mapping[str, Target]) -> pl.DataFrame:
    """Families of the nodes, each summed over its labels, as from our own scrapes."""
    named = {target: host for host, target in hosts.items()}
    frames = [
        pl.DataFrame(
            {
                "time_ns": item.times_ns,
                "host": named[_target(item)],
                "metric": _family(item.name),
                "value": item.values,
            },
            schema=SCRAPE_SCHEMA,
        )
        for item in series
        if _target(item) in named
    ]
    everything = pl.concat([pl.DataFrame(schema=SCRAPE_SCHEMA), *frames]).filter(pl.col("value").is_finite())
    return everything.group_by("time_ns", "host", "metric").agg(pl.col("value").sum()).sort("time_ns", "host", "metric")


def _load_frame(series: Sequence[TimeSeries], hosts: Mapping[str, Target]) -> pl.DataFrame:
    """The load average of each node's machine: of its job, if a job is one node, otherwise at its address."""
    jobs = [job for job, _ in hosts.values()]
    by_job = len(set(jobs)) == len(jobs)
    frames = []
    for host, (job, instance) in hosts.items():
        for item in series:
            item_job, item_instance = _target(item)
            if (by_job and item_job == job) or _address(item_instance) == _address(instance):
                frames.append(
                    pl.DataFrame(
                        {"time_ns": item.times_ns, "host": host, "metric": LOAD, "value": item.values},
                        schema=SCRAPE_SCHEMA,
                    )
                )
                break
    return pl.concat([pl.DataFrame(schema=SCRAPE_SCHEMA), *frames]).sort("host", "time_ns")


def _address(instance: str) -> str:
    return instance.rpartition(":")[0] or instance
