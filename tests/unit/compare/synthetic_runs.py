"""Synthetic runs that resemble CometBFT, with enough structure for every metric kind, population and chart.

Run as a program, this module writes one comparison per verdict, for work on the renderings:
``python -m tests.unit.compare.synthetic_runs DIRECTORY``.

"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from chainmark.compare import compare
from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import Comparison
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import (
    ConfigChange,
    Configuration,
    ExperimentPlace,
    Gate,
    GateStatus,
    HostFacts,
    Incident,
    Manifest,
    Status,
    Subject,
)
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, SharedFact
from chainmark.stats.samples import FrameSamples
from chainmark.stats.summarise import summarise

SECONDS = 60  # length of the analysis window, enough for tests
LONG_SECONDS = 240  # for samples that people look at
RATE = 50  # transactions per second
NODES = ("node0", "node1", "node2", "node3")

POPULATIONS = [
    Population(id="transaction", label="transactions", keys=["transaction", "due_s"], time_key="due_s"),
    Population(id="block", label="blocks", keys=["height", "time_s"], time_key="time_s"),
    Population(id="second", label="seconds", keys=["time_s"], time_key="time_s"),
    Population(
        id="node_second",
        label="nodes × seconds",
        keys=["node", "time_s"],
        time_key="time_s",
        average_over=["node"],
    ),
    Population(id="node", label="nodes", keys=["node"]),
]
TABLES = [
    MetricGroup(id="client", title="What a client sees"),
    MetricGroup(id="consensus", title="Consensus"),
    MetricGroup(id="resources", title="Resources"),
]


def _metric(  # noqa: PLR0917 - a table of metrics reads best without names
    identifier: str, label: str, unit: str, population: str, table: str, order: int, **settings: object
) -> Metric:
    defaults: dict[str, object] = {
        "kind": Kind.POSITIVE,
        "better": Better.LOWER,
        "statistics": ["mean", "p50", "p99"],
        "judged_by": ["mean"],
        "charts": [ChartKind.CDF],
        "description": f"{label}, made up.",
        "source": ["synthetic"],
    }
    return Metric.model_validate(
        defaults
        | {
            "id": identifier,
            "label": label,
            "unit": unit,
            "population": population,
            "table": table,
            "order": order,
        }
        | settings
    )


def catalogue() -> Catalogue:
    """Twenty metrics of every kind: 8 gating (metric, statistic) pairs and 15 diagnostics."""
    client, consensus, resources = "client", "consensus", "resources"
    series = [ChartKind.SERIES]
    return Catalogue(
        system="cometbft",
        title="CometBFT",
        populations=POPULATIONS,
        tables=TABLES,
        conditions=[
            SharedFact(
                id="time_source",
                label="block time",
                explanation="BFT time lags the commit by a round; proposer-based time does not.",
            )
        ],
        metrics=[
            _metric("tx_latency_s", "tx latency", "s", "transaction", client, 1, gating=True, floor=0.005,
                    statistics=["mean", "min", "p50", "p90", "p99", "p99.9", "max"], judged_by=["p50", "p99"],
                    charts=[ChartKind.CDF, ChartKind.SCATTER]),
            _metric("committed_share", "committed share", "1", "transaction", client, 2, gating=True,
                    kind=Kind.PROPORTION, better=Better.HIGHER, statistics=["mean"], charts=[], margin=0.01),
            _metric("committed_tx_per_s", "committed", "tx/s", "second", client, 3, gating=True, better=Better.HIGHER,
                    charts=series),
            _metric("rpc_latency_s", "RPC latency", "s", "transaction", client, 4, statistics=["mean", "p50"]),
            _metric("block_interval_s", "block interval", "s", "block", consensus, 1, gating=True,
                    charts=[ChartKind.CDF, ChartKind.SERIES]),
            _metric("rounds_extra_count", "extra rounds", "1", "block", consensus, 2, gating=True, kind=Kind.COUNT,
                    statistics=["mean"], charts=[], floor=0.1),
            _metric("block_size_bytes", "block size", "B", "block", consensus, 3, better=Better.NEITHER),
            _metric("block_txs_count", "transactions a block", "1", "block", consensus, 4, better=Better.NEITHER,
                    charts=[ChartKind.SCATTER]),
            _metric("proposal_delay_s", "proposal delay", "s", "block", consensus, 5),
            _metric("vote_power_late_share", "late votes", "1", "block", consensus, 6, kind=Kind.DIFFERENCE,
                    floor=0.01),
            _metric("clock_offset_s", "clock offset", "s", "node", consensus, 7, kind=Kind.DIFFERENCE,
                    better=Better.NEITHER, floor=0.01, statistics=["mean", "max"], charts=[]),
            _metric("cpu_cores", "CPU", "cores", "node_second", resources, 1, gating=True,
                    charts=[ChartKind.CDF, ChartKind.SERIES]),
            _metric("rss_bytes", "resident memory", "B", "node_second", resources, 2, gating=True, charts=series),
            _metric("goroutines_count", "goroutines", "1", "node_second", resources, 3, charts=series),
            _metric("p2p_sent_bytes_per_s", "p2p bytes sent", "B/s", "node_second", resources, 4, charts=series),
            _metric("p2p_received_bytes_per_s", "p2p bytes received", "B/s", "node_second", resources, 5, charts=[]),
            _metric("disk_written_bytes_per_s", "disk written", "B/s", "node_second", resources, 6, charts=series),
            _metric("gc_pause_s", "GC pause", "s", "node_second", resources, 7, charts=[]),
            _metric("mempool_txs_count", "mempool", "1", "node_second", resources, 8, kind=Kind.DIFFERENCE,
                    charts=series),
            _metric("threads_count", "threads", "1", "node_second", resources, 9, charts=[]),
            _metric("open_files_count", "open files", "1", "node_second", resources, 10, charts=[]),
            _metric("peer_count", "peers", "1", "node", resources, 11, better=Better.HIGHER, charts=[]),
        ],
    )  # fmt: skip


def _digest(frame: pl.DataFrame) -> str:
    return hashlib.sha256(frame.write_ipc(None).getvalue()).hexdigest()


_SUMMARISED: dict[tuple[int, str, str], list[MetricSummary]] = {}


@dataclass
class SyntheticRun:
    """A run in memory that satisfies `chainmark.compare.RunData`."""

    manifest: Manifest
    catalogue: Catalogue
    frames: dict[str, pl.DataFrame]
    _summaries: dict[str, MetricSummary] = field(default_factory=dict)

    def summaries(self) -> dict[str, MetricSummary]:
        """Summaries as a sealed run would hold them."""
        if not self._summaries:
            # Equal runs are created repeatedly. The cache key is the contents, because a test may have changed them.
            tables = [(name, frame.columns, _digest(frame)) for name, frame in sorted(self.frames.items())]
            contents = (self.manifest.seed, self.catalogue.model_dump_json(), repr(tables))
            if contents not in _SUMMARISED:
                _SUMMARISED[contents] = summarise(self.catalogue, self.frames, self.manifest.seed)
            self._summaries = {summary.metric_id: summary.model_copy(deep=True) for summary in _SUMMARISED[contents]}
        return self._summaries

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The samples of a population. Empty if there are none."""
        return FrameSamples(self.frames).samples(population_id, columns)


HOST = HostFacts(
    cpu_model="AMD EPYC 7B13", cores=8, memory_bytes=32 * 2**30, kernel="6.1.0", operating_system="Debian 12"
)


def manifest(
    version: str, repetition: int, *, side: str = "baseline", position: int = 0, seed: int = 1, **changes: object
) -> Manifest:
    """A manifest of a valid run; ``changes`` replace its fields."""
    is_new = version.startswith("v1")
    consensus = {"consensus.timeout_commit": "1s", "consensus.peer_gossip_sleep_duration": "100ms"}
    only = {"mempool.type": "flood", "storage.compact": False} if is_new else {"mempool.version": "v0"}
    effective = {"config.toml": {**consensus, **only, "p2p.send_rate": 20_480_000 if is_new else 5_120_000}}
    base = Manifest(
        run_id=f"cometbft-demo-{version}-20261120T{8 + position:02d}0000Z-{seed % 10_000:04d}",
        subject=Subject(system="cometbft", name="CometBFT", version=version, binary_sha256=f"sha-{version}"),
        profile_name="cometbft/demo",
        profile={"load": {"rate": RATE, "size_bytes": 1024}, "network": {"validators": 4}},
        workload={
            "load.rate_tx_per_s": RATE,
            "load.size_bytes": 1024,
            "network.validators": 4,
            "window.start_s": 30,
            "window.duration_s": SECONDS,
        },
        conditions={"time_source": "proposer-based" if is_new else "BFT"},
        configuration=Configuration.model_validate({
            "effective": effective,
            "changed": {
                "config.toml": {"consensus.peer_gossip_sleep_duration": ConfigChange(default="10ms", used="100ms")}
            },
            "changed_per_node": {
                node: {
                    "config.toml": {
                        "p2p.laddr": ConfigChange(default="tcp://0.0.0.0:26656", used=f"tcp://{node}:26656")
                    }
                }
                for node in NODES
            },
        }),
        experiment=ExperimentPlace(id="experiment-1", side=side, repetition=repetition, position=position),
        tool_version="0.1.0",
        seed=seed,
        started_at=f"2026-11-20T{8 + position:02d}:00:00Z",
        ended_at=f"2026-11-20T{8 + position:02d}:06:00Z",
        host=HOST,
        counts={
            "transactions": {"offered": 12_000, "accepted": 11_998, "rejected": 2, "unsent": 0},
            "accepted": {"committed": 11_990, "pending": 8, "lost": 0},
        },
        gates=[
            Gate(id="load_met", label="offered load met", status=GateStatus.PASS, measured="99.9 %", limit=">= 98 %"),
            Gate(id="nodes_alive", label="no node lost", status=GateStatus.PASS, measured="4 of 4", limit="4 of 4"),
        ],
        status=Status.VALID,
    )  # fmt: skip
    return base.model_copy(update=changes)


def _autocorrelated(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    noise = rng.normal(size=n) * np.sqrt(1.0 - rho * rho)
    values = np.empty(n)
    level = rng.normal()
    for index in range(n):
        level = rho * level + noise[index]
        values[index] = level
    return values


RESOURCES = {  # metric id: usual value, spread
    "cpu_cores": (0.8, 0.15), "rss_bytes": (180e6, 0.05), "goroutines_count": (420.0, 0.03),
    "p2p_sent_bytes_per_s": (310e3, 0.2), "p2p_received_bytes_per_s": (300e3, 0.2),
    "disk_written_bytes_per_s": (1.4e6, 0.4), "gc_pause_s": (3e-4, 0.3), "mempool_txs_count": (40.0, 0.3),
    "threads_count": (18.0, 0.02), "open_files_count": (96.0, 0.01),
}  # fmt: skip


@cache
def frames(
    seed: int, multiplied: tuple[tuple[str, float], ...], run_noise: float, seconds: int
) -> Mapping[str, pl.DataFrame]:
    """Samples of one run.

    Args:
        seed: seed of all random values.
        multiplied: factors for the values of metrics, by metric id.
        run_noise: standard deviation of the logarithm of each metric between runs.
        seconds: length of the window.

    """
    rng, factors = np.random.default_rng(seed), dict(multiplied)

    def level(metric_id: str, value: float) -> float:
        return value * factors.get(metric_id, 1.0) * float(np.exp(rng.normal() * run_noise))

    def lognormal(metric_id: str, value: float, spread: float, n: int, rho: float = 0.5) -> np.ndarray:
        return level(metric_id, value) * np.exp(spread * _autocorrelated(rng, n, rho))

    transactions, blocks = seconds * RATE, int(seconds / 1.2)
    height = np.arange(blocks)
    interval = lognormal("block_interval_s", 1.2, 0.08, blocks)
    committed = np.where(rng.random(transactions) < 0.999, 1.0, 0.0)
    due = np.arange(transactions) / RATE
    latency = level("tx_latency_s", 0.15) + 1.1 * factors.get("tx_latency_s", 1.0) * rng.random(transactions)
    by_population = {
        "transaction": pl.DataFrame({
            "transaction": np.arange(transactions), "due_s": due,
            "tx_latency_s": pl.Series(np.where(committed > 0, latency, np.nan)).fill_nan(None),
            "committed_share": committed,
            "rpc_latency_s": lognormal("rpc_latency_s", 0.002, 0.3, transactions),
        }),
        "block": pl.DataFrame({
            "height": height, "time_s": 1.2 * height,
            "block_interval_s": interval,
            "rounds_extra_count": rng.poisson(0.02 * factors.get("rounds_extra_count", 1.0), blocks).astype(float),
            "block_size_bytes": lognormal("block_size_bytes", 62_000, 0.1, blocks),
            "block_txs_count": np.round(RATE * interval),
            "proposal_delay_s": lognormal("proposal_delay_s", 0.04, 0.3, blocks),
            "vote_power_late_share": 0.01 * rng.random(blocks),
        }),
        "second": pl.DataFrame({
            "time_s": np.arange(seconds, dtype=float),
            "committed_tx_per_s": np.full(seconds, float(RATE)) * factors.get("committed_tx_per_s", 1.0),
        }),
        "node": pl.DataFrame({
            "node": list(NODES), "clock_offset_s": rng.normal(size=4) * 1e-3, "peer_count": [3.0] * 4,
        }),
    }  # fmt: skip
    columns: dict[str, object] = {
        "node": np.repeat(NODES, seconds),
        "time_s": np.tile(np.arange(seconds, dtype=float), len(NODES)),
    }
    for metric_id, (value, spread) in RESOURCES.items():
        shared = level(metric_id, value)
        parts = [shared * np.exp(spread * _autocorrelated(rng, seconds, 0.6)) for _ in NODES]
        columns[metric_id] = np.concatenate(parts)
    by_population["node_second"] = pl.DataFrame(columns)
    return by_population


def run(
    version: str,
    repetition: int = 1,
    *,
    side: str = "baseline",
    factors: dict[str, float] | None = None,
    run_noise: float = 0.01,
    seed: int = 1,
    seconds: int = SECONDS,
    drawn: bool = False,
    **changes: object,
) -> SyntheticRun:
    """One synthetic run, determined by its seed. Without ``drawn`` no metric has a chart, which is faster."""
    position = 2 * repetition - (1 if side == "baseline" else 0)
    described = manifest(version, repetition, side=side, position=position, seed=seed, **changes)
    by_population = dict(frames(seed, tuple((factors or {}).items()), run_noise, seconds))
    metrics = [metric if drawn else metric.model_copy(update={"charts": []}) for metric in catalogue().metrics]
    return SyntheticRun(described, catalogue().model_copy(update={"metrics": metrics}), by_population)


def sides(
    factors: dict[str, float] | None = None,
    *,
    repetitions: int = 3,
    run_noise: float = 0.01,
    seed: int = 100,
    seconds: int = SECONDS,
    drawn: bool = False,
) -> tuple[list[SyntheticRun], list[SyntheticRun]]:
    """Interleaved runs of v0.38.17 and v1.0.1, the second with its metrics multiplied by ``factors``."""
    baseline = [
        run("v0.38.17", r, run_noise=run_noise, seed=seed + r, seconds=seconds, drawn=drawn)
        for r in range(1, repetitions + 1)
    ]
    candidate = [
        run(
            "v1.0.1",
            r,
            side="candidate",
            factors=factors,
            run_noise=run_noise,
            seed=seed + 50 + r,
            seconds=seconds,
            drawn=drawn,
        )
        for r in range(1, repetitions + 1)
    ]
    return baseline, candidate


def sample_comparisons() -> dict[str, Comparison]:
    """One comparison per verdict."""
    moved = {"p2p_sent_bytes_per_s": 1.14, "goroutines_count": 0.78}
    comparisons = {}
    baseline, candidate = sides(
        {**moved, "cpu_cores": 0.9, "rounds_extra_count": 0.5}, seconds=LONG_SECONDS, drawn=True
    )
    candidate[1].manifest.incidents.append(
        Incident(time_ns=1_795_168_861_000_000_000, what="node2 restarted its RPC server")
    )
    candidate[1].manifest.warnings.append("the machine was 71 % busy, of which the load generator used 4 %")
    comparisons["pass"] = compare(baseline, candidate, tool_version="0.1.0")
    worse = {**moved, "tx_latency_s": 1.38, "block_interval_s": 1.37, "rss_bytes": 1.06}
    baseline, candidate = sides(worse, seed=200, seconds=LONG_SECONDS, drawn=True)
    failed = Gate(id="load_met", label="offered load met", status=GateStatus.FAIL, measured="91.2 %", limit=">= 98 %")
    candidate[2].manifest.gates[0] = failed
    candidate[2].manifest.status = Status.INVALID
    comparisons["fail"] = compare(baseline, candidate, tool_version="0.1.0")
    baseline, candidate = sides(
        {**moved, "tx_latency_s": 1.06}, run_noise=0.06, seed=300, seconds=LONG_SECONDS, drawn=True
    )
    for synthetic in candidate:
        synthetic.frames["node_second"] = synthetic.frames["node_second"].drop("rss_bytes")
    comparisons["inconclusive"] = compare(baseline, candidate, tool_version="0.1.0")
    baseline, candidate = sides(moved, seed=400, seconds=LONG_SECONDS, drawn=True)
    for synthetic in candidate:
        synthetic.manifest.workload["load.rate_tx_per_s"] = 2 * RATE
    comparisons["invalid"] = compare(baseline, candidate, tool_version="0.1.0")
    return comparisons


def main(folder: Path) -> None:
    """Write ``sample-comparison.json`` (pass) and its three variants."""
    for name, comparison in sample_comparisons().items():
        suffix = "" if name == "pass" else f"-{name}"
        path = folder / f"sample-comparison{suffix}.json"
        path.write_text(comparison.model_dump_json(indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))


def with_hosts(means: dict[str, float], run: SyntheticRun) -> SyntheticRun:
    """The run with a different CPU usage for each node."""
    seconds = 30
    frame = pl.DataFrame({
        "node": np.repeat(list(means), seconds), "time_s": np.tile(np.arange(seconds, dtype=float), len(means)),
        "cpu_cores": np.repeat(list(means.values()), seconds) + np.tile(np.linspace(-1e-6, 1e-6, seconds), len(means)),
    })  # fmt: skip
    populations = [
        population.model_copy(update={"breakdowns": ["node"]}) if population.id == "node_second" else population
        for population in run.catalogue.populations
    ]
    changed = run.catalogue.model_copy(update={"populations": populations})
    return SyntheticRun(run.manifest, changed, {**run.frames, "node_second": frame})
