"""Synthetic runs whose blocks can be followed: sealed on disk, together with their original logs."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import zstandard
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.manifest import HostFacts, Manifest, Source, Status, Subject
from chainmark.core.metric import Metric, MetricGroup, Population
from chainmark.stats.summarise import summarise
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

SYSTEM = "cardano"  # a system that follows blocks
HOST = HostFacts(cpu_model="c", cores=2, memory_bytes=2**30, kernel="k", operating_system="o")
START_NS = 1_700_000_000_000_000_000
SLOT_NS = 20_000_000_000
STAGES = ("forged", "noticed", "fetched", "adopted")
MS = 1_000_000
SLOW = "node-3"  # its fetches take three times as long
SLOW_FACTOR = 3


def key_of(name: str) -> str:
    """A hash like a block's."""
    return hashlib.sha256(name.encode()).hexdigest()


def trail(trail_id: str = "block", *, main: bool = True) -> dict[str, Any]:
    """The trail that follows the synthetic blocks."""
    stages = [
        {"id": name, "label": name, "time": f"{name}_ns", "file": f"{name}_file", "line": f"{name}_line"}
        for name in STAGES
    ]
    return {
        "id": trail_id,
        "label": "block",
        "populations": ["block", "block_host"],
        "events": "block_timelines",
        "key": "block",
        "number": "height",
        "number_label": "height",
        "main": "on_chain" if main else None,
        "place": "host",
        "place_label": "host",
        "role": "role",
        "region": "region",
        "sender": "sender",
        "base": "slot_start_ns",
        "base_label": "slot start",
        "facts": {
            "slot": "slot", "on_chain": "on chain", "rejected_because": "rejected because", "region": "region",
            "error": "error",
        },
        "stages": stages,
    }  # fmt: skip


def _metric(id_: str, label: str, population: str, **more: Any) -> Metric:
    base: dict[str, Any] = {
        "id": id_, "label": label, "unit": "s", "kind": "positive", "better": "lower", "statistics": ["mean"],
        "judged_by": "mean", "table": "all", "order": 1, "population": population, "description": label,
        "source": ["made up"],
    }  # fmt: skip
    return Metric.model_validate(base | more)


def catalogue(trails: list[dict[str, Any]] | None = None, *, charts: bool = True) -> Catalogue:
    """Two populations with a trail and one without."""
    drawn = [ChartKind.CDF] if charts else []
    return Catalogue(
        system=SYSTEM,
        title="Toy",
        populations=[
            Population(id="block", label="blocks", keys=["block", "time_s"], time_key="time_s"),
            Population(
                id="block_host", label="blocks × hosts", keys=["block", "host", "time_s"], time_key="time_s",
                average_over=["host"], breakdowns=["host"],
            ),
            Population(id="second", label="seconds", keys=["time_s"], time_key="time_s"),
        ],
        tables=[MetricGroup(id="all", title="All")],
        trails=[trail()] if trails is None else trails,
        metrics=[
            _metric("spread_s", "spread", "block", gating=True, charts=drawn),
            _metric("fetch_s", "fetch", "block_host", order=2, charts=drawn),
            _metric("quiet_s", "quiet", "block_host", order=3),
            _metric("load_s", "load", "second", order=4, charts=drawn),
        ],
    )  # fmt: skip


@dataclass
class Timelines:
    """Rows of the events and lines of the logs, created host by host.

    Special cases: block 3 has a rival of the same height that only two hosts know; the last host never received
    block 5; node-2 does not log when it fetched block 4; each host has its own region.
    """

    hosts: int
    blocks: int
    factor: float = 1.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, list[str]] = field(default_factory=dict)

    def fill(self) -> Timelines:
        """Create all rows and lines."""
        for height in range(1, self.blocks + 1):
            for host in range(self.hosts):
                if not (height == 5 and host == self.hosts - 1):
                    self._row(f"b{height}", height, host, on_chain=True)
            if height == 3:
                for host in (1, 2):
                    self._row("rival", height, host, on_chain=False)
        return self

    def _row(self, name: str, height: int, host: int, *, on_chain: bool) -> None:
        place = f"node-{host}"
        slot_start = START_NS + height * SLOT_NS
        forger = host == (height % 3 if on_chain else 1)
        lag = int((1.0 + 0.01 * ((7 * height + 3 * host) % 11)) * 100 * self.factor) * MS
        times: dict[str, int] = {}
        if forger:
            times = {"forged": 40 * MS, "adopted": 40 * MS + lag // 2}
        else:
            fetch = lag * (SLOW_FACTOR if place == SLOW else 1)
            times = {"noticed": 60 * MS + 10 * host * MS, "fetched": 60 * MS + 10 * host * MS + fetch}
            times["adopted"] = times["fetched"] + 50 * MS
            if place == "node-2" and height == 4:
                del times["fetched"]
        row: dict[str, Any] = {
            "block": key_of(name), "height": height, "host": place, "slot": 20 * height,
            "slot_start_ns": slot_start, "role": "forger" if forger else "observer", "on_chain": on_chain,
            "rejected_because": None if on_chain else "not on the main chain", "region": f"region-{host % 2}",
            "sender": None if forger else f"node-{height % 3 if on_chain else 1}",
            "error": "odd" if place == "node-4" and height == 2 else None,
        }  # fmt: skip
        for stage in STAGES:
            is_recorded = stage in times
            row[f"{stage}_ns"] = slot_start + times[stage] if is_recorded else None
            row[f"{stage}_file"] = f"{place}/log.json" if is_recorded else None
            row[f"{stage}_line"] = (
                self._say(place, f'{{"what":"{stage}","block":"{key_of(name)}"}}') if is_recorded else None
            )
        self.rows.append(row)

    def _say(self, place: str, text: str) -> int:
        lines = self.logs.setdefault(place, [])
        lines += ['{"what":"tick"}', text]
        return len(lines)

    def events(self) -> pl.DataFrame:
        """One row per block and host."""
        return pl.DataFrame(self.rows, infer_schema_length=None)

    def samples(self) -> dict[str, pl.DataFrame]:
        """The samples of the metrics."""
        timelines = self.events().with_columns(
            time_s=(pl.col("slot_start_ns") - START_NS) / 1e9,
            spread_s=(pl.col("adopted_ns") - pl.col("slot_start_ns")) / 1e9,
            fetch_s=(pl.col("fetched_ns") - pl.col("noticed_ns")) / 1e9,
        )
        block = timelines.group_by("block").agg(pl.col("time_s").first(), pl.col("spread_s").max())
        each = timelines.select("block", "host", "time_s", "fetch_s", quiet_s=pl.lit(0.5))
        seconds = pl.DataFrame({"time_s": [float(second) for second in range(30)], "load_s": [0.5] * 30})
        return {"block": block.sort("time_s", "block"), "block_host": each, "second": seconds}


def write_logs(timelines: Timelines, folder: Path, container: str = "plain") -> None:
    """Write the logs to a folder per host, plain or compressed."""
    for place, lines in timelines.logs.items():
        content = ("\n".join(lines) + "\n").encode()
        path = folder / place / "log.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if container == "gzip":
            path.with_name("log.json.gz").write_bytes(gzip.compress(content))
        elif container == "zstd":
            path.with_name("log.json.zst").write_bytes(zstandard.compress(content))
        else:
            path.write_bytes(content)


class Network(BaseModel):
    """What is kept of a cluster's network."""

    hosts: list[dict[str, Any]]
    round_trips: list[dict[str, Any]]


def sealed(
    store: Store,
    timelines: Timelines,
    version: str = "v1",
    *,
    trails: list[dict[str, Any]] | None = None,
    trips: Mapping[tuple[str, str], float] | None = None,
    numbered_files: bool = False,
    charts: bool = True,
) -> SealedRun:
    """A sealed run of these timelines.

    Args:
        store: the store for the run.
        timelines: the events and logs.
        version: version of the subject.
        trails: trails of the catalogue; None: the default trail.
        trips: measured round trips between regions; None: the network of the cluster is unknown.
        numbered_files: the events refer to log files by number, not by path.
        charts: whether metrics have charts; a comparison is faster without them.
    """
    run = store.create("toy", "toy/demo", version, {"pid": 1})
    events = timelines.events()
    if numbered_files:
        columns = [f"{stage}_file" for stage in STAGES]
        events = events.with_columns(pl.when(pl.col(name).is_not_null()).then(0).alias(name) for name in columns)
    run.write_events("block_timelines", events, events.schema)
    if trips is not None:
        hosts: list[dict[str, Any]] = [{"name": "node-0", "region": "region-0", "producers": []}]
        measured: list[dict[str, Any]] = [{"a": a, "b": b, "mean_s": seconds} for (a, b), seconds in trips.items()]
        run.write_document("network", Network(hosts=hosts, round_trips=measured))
    samples = timelines.samples()
    for population, frame in samples.items():
        run.write_samples(population, frame)
    merged = catalogue(trails, charts=charts)
    manifest = Manifest(
        run_id=run.run_id,
        subject=Subject(system=SYSTEM, name="Toy", version=version),
        profile_name="toy/demo",
        profile={},
        workload={"hosts": timelines.hosts},
        tool_version="0",
        seed=1,
        started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:10:00Z",
        host=HOST,
        sources=[Source(path=f"{place}/log.json", size_bytes=1, blake3=run.run_id) for place in sorted(timelines.logs)],
        status=Status.VALID,
    )
    return run.seal(manifest, merged, summarise(merged, samples, 1))
