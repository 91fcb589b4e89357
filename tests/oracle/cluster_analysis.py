"""A second, plain implementation of the analysis of a Cardano cluster's logs: the oracle of `chainmark ingest`.

It follows the description of the published analysis line by line, with dictionaries, integer nanoseconds and exact
fractions, and shares no code with the package. ``published`` selects the published reports' rules; otherwise their
known errors are corrected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.oracle.cluster_blocks import (
    SLOT_CONDITIONS,
    Life,
    MainChain,
    Timelines,
    block_samples,
    conditions_of,
    host_samples,
    peer_samples,
    rebuild,
)
from tests.oracle.cluster_lines import NS_PER_S, HostLog, read_host
from tests.oracle.cluster_slots import Chain, Slot, seconds, slot_samples, slots_of

CENTILES = (
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99,
    0.995, 0.997, 0.998, 0.999, 0.9995, 0.9997, 0.9998, 0.9999, 1.0,
)  # fmt: skip
BUSY_PERCENT = 85
EPOCH_BORDER_SLOT = 3
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Distribution:
    """Size, moments, range and centiles of some values."""

    n: int
    mean: float
    sd: float
    low: float
    high: float
    centiles: tuple[float, ...]


def distribution(values: Iterable[float]) -> Distribution:
    """The distribution of values; all zero without values, as published."""
    xs = sorted(values)
    n = len(xs)
    if n == 0:
        return Distribution(0, 0.0, 0.0, 0.0, 0.0, (0.0,) * len(CENTILES))
    mean = math.fsum(xs) / n
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in xs) / (n - 1)) if n > 1 else 0.0
    return Distribution(n, mean, sd, xs[0], xs[-1], tuple(xs[min(n - 1, math.floor(n * c))] for c in CENTILES))


@dataclass
class Cluster:
    """The content of a cluster's logs."""

    published: bool
    chain: Chain
    conditions: list[tuple[str, float | None]]
    logs: dict[str, HostLog]
    timelines: dict[str, dict[str, Life]]
    region_of: dict[str, str]
    records: dict[str, list[Slot]]
    retained: dict[str, list[Slot]]
    main: MainChain

    @cached_property
    def samples(self) -> dict[str, dict[Key, float | None]]:
        """The samples of each metric, by its published short name and the sample's key.

        Keys are (block), (block, host), (host), (slot, host), or (first slot, host) of a span. None: the population
        has the key, but the metric has no value there.
        """
        by_metric: dict[str, dict[Key, float | None]] = {}
        for block in self.main.accepted():
            add(by_metric, (block.hash,), block_samples(block, published=self.published))
            for host, values in peer_samples(block).items():
                add(by_metric, (block.hash, host), values)
        for host, slots in self.retained.items():
            add(by_metric, (host,), host_samples(host, self.main))
            for slot in slots:
                add(by_metric, (slot.slot, host), slot_samples(slot, self.chain, published=self.published))
        for key, values in [*self.regions().items(), *self.chained().items()]:
            add(by_metric, key, values)
        for host, slots in self.retained.items():
            for first, values in self.spans(slots).items():
                add(by_metric, (first, host), values)
        return by_metric

    def spans(self, slots: list[Slot]) -> dict[int, dict[str, float | None]]:
        """Runs of slots in which the processor was busy, by their first slot."""
        by_slot: dict[int, dict[str, float | None]] = {}
        for span in runs(slots, busy_published) if self.published else busy_spans(slots):
            first, last = span[0], span[-1]
            if self.published:
                length, records = last.slot - first.slot, len(span)
                border = first.epoch_slot < EPOCH_BORDER_SLOT < last.epoch_slot
            else:
                length = records = last.slot - first.slot + 1
                border = any(slot.epoch_slot == EPOCH_BORDER_SLOT for slot in span[1:-1])
            by_slot[first.slot] = {
                "cdfSpanLensCpu": float(length),
                "cdfSpanLensCpuEpoch": float(records) if border else None,
            }
        return by_slot

    def regions(self) -> dict[Key, dict[str, float | None]]:
        """The time at which each region first had an accepted block, by block and region."""
        by_key: dict[Key, dict[str, float | None]] = {}
        for block in self.main.accepted():
            by_region: dict[str, list[float]] = {}
            for host, timeline in block.timelines.items():
                if "adoption" in timeline.times:
                    since_s = (timeline.times["adoption"] - block.slot_start_ns) / NS_PER_S
                    by_region.setdefault(self.region_of[host], []).append(since_s)
            for region, times in by_region.items():
                bars = distribution(times)
                half = bars.centiles[CENTILES.index(0.5)]
                by_key[block.hash, region] = {"region_adoption_p50_s": half, "region_adoption_p100_s": bars.high}
        return by_key

    def chained(self) -> dict[Key, dict[str, float | None]]:
        """The values of every block of the main chain, by block."""
        forged = {block.timeline.block_no: block.timeline.times.get("forged") for block in self.main.blocks}
        by_key: dict[Key, dict[str, float | None]] = {}
        for block in self.main.blocks:
            number = block.timeline.block_no
            between_s = seconds(forged[number], forged.get(number - 1))
            by_key[(block.hash,)] = {
                "chained_interval_s": between_s,
                "chained_size_bytes": None if block.timeline.size is None else float(block.timeline.size),
                "chained_battles": float(block.battles),
            }
        return by_key

    def per_host(self, metric: str) -> dict[str, Distribution]:
        """A slot metric's distribution on every host with analysed slots."""
        values: dict[str, list[float]] = {host: [] for host, slots in self.retained.items() if slots}
        for (_, host), value in self.samples.get(metric, {}).items():
            if value is not None:
                values[host].append(value)
        return {host: distribution(host_values) for host, host_values in values.items()}


def add(by_metric: dict[str, dict[Key, float | None]], key: Key, values: dict[str, float | None]) -> None:
    """Add one row of samples to the metrics."""
    for name, value in values.items():
        by_metric.setdefault(name, {})[key] = value


def busy_published(slot: Slot) -> bool:
    """At least 85 % of a core; a record without counters also counts."""
    return slot.resources is None or (slot.resources["CentiCpu"] or 0) >= BUSY_PERCENT


def busy_spans(slots: list[Slot]) -> list[list[Slot]]:
    """Sequences of adjacent slots that begin and end with at least 85 % of a core and never fall below.

    A slot without its own rate counts if it is inside such a sequence.
    """
    spans: list[list[Slot]] = []
    pending: list[Slot] = []
    before: Slot | None = None
    for slot in slots:
        percent = (slot.resources or {}).get("CentiCpu")
        neighbours = before is not None and before.slot == slot.slot - 1
        if not neighbours or (percent is not None and percent < BUSY_PERCENT):
            spans, pending = ([*spans, []], [])
        if percent is None and spans and spans[-1]:
            pending.append(slot)
        elif percent is not None and percent >= BUSY_PERCENT:
            spans[-1] += [*pending, slot]
            pending = []
        before = slot
    return [span for span in spans if span]


def runs(slots: list[Slot], test: Any) -> list[list[Slot]]:
    """Maximal sequences of adjacent elements that pass a test."""
    sequences: list[list[Slot]] = []
    inside = False
    for slot in slots:
        passes = test(slot)
        if passes and not inside:
            sequences.append([])
        if passes:
            sequences[-1].append(slot)
        inside = passes
    return sequences


def read_chain(folder: Path) -> Chain:
    """Read the genesis from a benchmark run's folder."""
    text = (folder / "genesis" / "genesis.shelley.json").read_text(encoding="utf-8")
    genesis = json.loads(text, parse_float=Decimal)
    start = datetime.fromisoformat(genesis["systemStart"].replace("Z", "+00:00"))
    return Chain(
        system_start_ns=int(start.timestamp()) * NS_PER_S + start.microsecond * 1000,
        slot_ns=int(Decimal(genesis["slotLength"]) * NS_PER_S),
        epoch_slots=genesis["epochLength"],
        security_parameter=genesis["securityParam"],
        active_slots_coefficient=float(genesis["activeSlotsCoeff"]),
        max_block_body_bytes=genesis["protocolParams"]["maxBlockBodySize"],
    )


def read_regions(folder: Path) -> dict[str, str]:
    """Read the region of every host from the topology next to the logs."""
    topology = json.loads((folder / "topology.json").read_text(encoding="utf-8"))
    return {f"node-{node['nodeId']}": node["region"] for node in topology["coreNodes"]}


def read_logs(folder: Path) -> dict[str, HostLog]:
    """Read the logs of a benchmark run's hosts, in the order of their names."""
    names = sorted(path.name for path in folder.glob("node-*") if path.is_dir())
    return {name: read_host(folder / name) for name in names}


def analyse(folder: Path, read: dict[str, HostLog], *, published: bool, count_switches: bool = True) -> Cluster:
    """Analyse the logs of a benchmark run's folder."""
    chain = read_chain(folder)
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    conditions = conditions_of(meta)
    logs = {name: log.as_published() if published else log for name, log in read.items()}
    timelines = {name: Timelines(published, count_switches and not published).read(log) for name, log in logs.items()}
    records = {name: slots_of(log, chain, published=published) for name, log in logs.items()}
    tests = [(SLOT_CONDITIONS[name], value or 0) for name, value in conditions if name in SLOT_CONDITIONS]
    filtered = {
        name: [slot for slot in slots if all(test(slot, value) for test, value in tests)]
        for name, slots in records.items()
    }
    return Cluster(
        published=published,
        chain=chain,
        conditions=conditions,
        logs=logs,
        timelines=timelines,
        region_of=read_regions(folder),
        records=records,
        retained=filtered,
        main=rebuild(timelines, chain, conditions),
    )


def shown_mean(cluster: Cluster, metric: str) -> float:
    """A slot metric's mean as in the reports: of the hosts' means, by the published rules of the 29 lowest only."""
    means = sorted(
        distribution.mean for distribution in cluster.per_host(metric).values() if cluster.published or distribution.n
    )
    published_means = means[: len(CENTILES)] if cluster.published else means
    return math.fsum(published_means) / len(published_means)


def over_hosts(cluster: Cluster, metric: str) -> Distribution:
    """A slot metric by the published rules: the largest of the hosts' deviations, the medians of their centiles."""
    hosts = list(cluster.per_host(metric).values())
    middle = len(hosts) // 2
    return Distribution(
        n=sum(host.n for host in hosts),
        mean=shown_mean(cluster, metric),
        sd=max(host.sd for host in hosts),
        low=min(host.low for host in hosts),
        high=max(host.high for host in hosts),
        centiles=tuple(sorted(column)[middle] for column in zip(*(host.centiles for host in hosts), strict=True)),
    )


def manifest_values(cluster: Cluster) -> dict[str, float]:
    """The figures of the reports' first table, before truncation to a width."""
    logs = list(cluster.logs.values())
    spans_ns = [(log.last_ns or 0) - (log.first_ns or 0) for log in logs]
    firsts = [log.first_ns for log in logs if log.first_ns is not None]
    lasts = [log.last_ns for log in logs if log.last_ns is not None]
    slots_of_hosts = [slots for slots in cluster.retained.values() if slots]
    run_time_s = round((max(lasts) - min(firsts)) / NS_PER_S)
    rates = [log.raw_lines / (span // NS_PER_S) for log, span in zip(logs, spans_ns, strict=True) if span >= NS_PER_S]
    figures: dict[str, float] = {
        "Machines": len(logs),
        "Number of filters applied": len(cluster.conditions),
        "Log objects emitted per host": sum(log.emitted for log in logs) / len(logs),
        "Log objects analysed per host": sum(log.classes["decoded"] for log in logs) / len(logs),
        "Host run time, s": math.fsum(span / NS_PER_S for span in spans_ns) / len(logs),
        "Host log line rate, Hz": math.fsum(rates) / len(rates),
        "Total log objects analysed": sum(log.classes["decoded"] for log in logs),
        "Run time, s": run_time_s,
        "Node start spread, s": (max(firsts) - min(firsts)) / NS_PER_S,
        "Node stop spread, s": (max(lasts) - min(lasts)) / NS_PER_S,
        "Blocks analysed": len(cluster.main.accepted()),
        "Blocks rejected": len(cluster.main.blocks) - len(cluster.main.accepted()),
    }
    if slots_of_hosts:
        first, last = min(slots[0].slot for slots in slots_of_hosts), max(slots[-1].slot for slots in slots_of_hosts)
        duration_s = round((last - first) * cluster.chain.slot_ns / NS_PER_S)
        figures["Analysed run duration, s"] = duration_s
        figures["Run time efficiency"] = duration_s / run_time_s
        figures["Slots analysed"] = sum(slots[-1].slot - slots[0].slot for slots in slots_of_hosts) // len(
            slots_of_hosts
        )
    return figures
