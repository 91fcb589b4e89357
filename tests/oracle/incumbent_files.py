"""The files that the published analysis writes about a cluster, from the oracle's own reading of its logs.

Their formats follow the types of that analysis. The figures come from the oracle, and not from the package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.oracle.cluster_analysis import CENTILES, Cluster
from tests.oracle.cluster_blocks import CENTILES_OF_HOSTS, FORGING, PEER, SLOT_CONDITIONS
from tests.oracle.cluster_slots import COUNTERS, GAUGES, SLOT_STAGES

OF_BLOCKS = (
    *FORGING,
    "cdfPeerNoticeFirst",
    "cdfPeerFetchFirst",
    *PEER,
    "cdfBlocksPerHost",
    "cdfBlocksFilteredRatio",
    "cdfBlocksChainedRatio",
    "cdfBlockBattle",
    "cdfBlockSize",
)
OF_SLOTS = (
    "cdfStarts",
    "cdfLeads",
    "cdfDensity",
    *SLOT_STAGES,
    "cdfBlockGap",
    "cdfSpanLensCpu",
    "cdfSpanLensCpuEpoch",
)
Json = dict[str, Any]


def cdf(values: Iterable[float], fractions: Sequence[float] = CENTILES) -> Json:
    """A first-order distribution; all 0 without values."""
    xs = sorted(values)
    n = len(xs)

    def at(fraction: float) -> float:
        return xs[min(n - 1, math.floor(n * fraction))] if n else 0.0

    mean = math.fsum(xs) / n if n else 0.0
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in xs) / (n - 1)) if n > 1 else 0.0
    return {
        "cdfSize": n,
        "cdfAverage": mean,
        "cdfMedian": at(0.5),
        "cdfStddev": sd,
        "cdfRange": {"low": xs[0] if n else 0.0, "high": xs[-1] if n else 0.0},
        "cdfSamples": [[fraction, at(fraction)] for fraction in fractions],
    }


def equicentiles(n: int) -> list[float]:
    """Fractions at the middle of each of n elements."""
    return [1.0 / n * (place + 0.5) for place in range(n)]


def cdf_of_cdfs(hosts: Sequence[Json]) -> Json:
    """A distribution over the distributions of the hosts."""
    places = equicentiles(max(7, len(hosts)))
    columns = zip(*([value for _, value in host["cdfSamples"]] for host in hosts), strict=True)
    return {
        "cdfSize": sum(host["cdfSize"] for host in hosts),
        "cdfAverage": cdf([host["cdfAverage"] for host in hosts], equicentiles(len(hosts))),
        "cdfMedian": sorted(host["cdfMedian"] for host in hosts)[len(hosts) // 2],
        "cdfStddev": max(host["cdfStddev"] for host in hosts),
        "cdfRange": {
            "low": min(host["cdfRange"]["low"] for host in hosts),
            "high": max(host["cdfRange"]["high"] for host in hosts),
        },
        "cdfSamples": [[fraction, cdf(column, places)] for fraction, column in zip(CENTILES, columns, strict=True)],
    }


def blockprop(cluster: Cluster) -> Json:
    """`blockprop.json`."""
    blocks, accepted = list(reversed(cluster.main.blocks)), list(reversed(cluster.main.accepted()))
    numbers = domain([b.timeline.block_no for b in blocks], [b.timeline.block_no for b in accepted], counts=True)
    slots = domain([b.timeline.slot for b in blocks], [b.timeline.slot for b in accepted])
    content: Json = {"bpVersion": {"getLocliVersion": "2.3"}}
    content |= {
        "bpDomainSlots": slots,
        "bpDomainBlocks": numbers,
        "bpDomainCDFSlots": slots,
        "bpDomainCDFBlocks": numbers,
    }
    content |= {name: cdf(_values(cluster, name)) for name in OF_BLOCKS}
    names = [f"cdf{fraction}" for fraction in CENTILES_OF_HOSTS]
    return content | {"bpPropagation": {name: cdf(_values(cluster, name)) for name in names}}


def clusterperf(cluster: Cluster) -> Json:
    """`clusterperf.json`."""
    ends = [(slots[0].slot, slots[-1].slot) for slots in cluster.retained.values() if slots]
    content: Json = {"mpVersion": {"getLocliVersion": "2.3"}, "mpDomainSlots": []}
    content["cdfHostSlots"] = cdf_of_cdfs([cdf([last - first]) for first, last in ends])
    content |= {name: _over_hosts(cluster, name) for name in OF_SLOTS}
    content["cdfUtxo"] = _over_hosts(cluster, "utxo_entries")
    resources: Json = {name: _over_hosts(cluster, name) for name in (*COUNTERS, *GAUGES) if name != "CentiBlkIO"}
    resources["CentiBlkIO"] = _over_hosts(cluster, "block_io_percent")
    return content | {"mpResourceCDFs": {"kind": "Resources", **resources}}


def summary(cluster: Cluster, folder: Path) -> Json:
    """`summary.json`."""
    logs = list(cluster.logs.values())
    firsts = [log.first_ns for log in logs if log.first_ns is not None]
    lasts = [log.last_ns for log in logs if log.last_ns is not None]
    spans = [(log.last_ns or 0) - (log.first_ns or 0) for log in logs]
    slots_of_hosts = [slots for slots in cluster.retained.values() if slots]
    begins = [cluster.chain.slot_start_ns(slots[0].slot) for slots in slots_of_hosts]
    ends = [cluster.chain.slot_start_ns(slots[-1].slot) for slots in slots_of_hosts]
    lengths = [slots[-1].slot - slots[0].slot for slots in slots_of_hosts]
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["meta"]
    rates = [log.raw_lines / (span // 10**9) for log, span in zip(logs, spans, strict=True)]
    return {
        "sumAnalysisTime": "2026-02-06T10:00:00Z",
        "sumMeta": {"tag": "run", "batch": "test", "profile": meta["profile"], "era": "conway"},
        "sumGenesis": json.loads((folder / "genesis" / "genesis.shelley.json").read_text(encoding="utf-8")),
        "sumGenesisSpec": {},
        "sumWorkload": meta["profile_content"]["generator"],
        "sumHosts": len(logs),
        "sumLogObjectsTotal": sum(log.classes["decoded"] for log in logs),
        "sumFilters": [meta["profile_content"]["analysis"].get("filters", []), filters(cluster)],
        "sumChainRejectionStats": [],
        "sumBlocksRejected": len(cluster.main.blocks) - len(cluster.main.accepted()),
        "sumDomainTime": times([min(firsts), max(lasts)], [min(begins), max(ends)]),
        "sumStartSpread": times(firsts, begins),
        "sumStopSpread": times(lasts, ends),
        "sumDomainSlots": {"ddFilteredCount": cdf(lengths, equicentiles(max(7, len(lengths))))},
        "sumDomainBlocks": blockprop(cluster)["bpDomainBlocks"],
        "sumProfilingData": None,
        "cdfLogLinesEmitted": cdf([log.raw_lines for log in logs]),
        "cdfLogObjectsEmitted": cdf([log.emitted for log in logs]),
        "cdfLogObjects": cdf([log.classes["decoded"] for log in logs]),
        "cdfRuntime": cdf([span / 10**9 for span in spans]),
        "cdfLogLineRate": cdf(rates),
    }


def filters(cluster: Cluster) -> list[Json]:
    """The conditions in the notation of the benchmarks."""
    kinds = {name: "CSlot" if name in SLOT_CONDITIONS else "CBlock" for name, _ in cluster.conditions}
    return [{"tag": kinds[name], "contents": {"tag": name, "contents": value}} for name, value in cluster.conditions]


def domain(raw: Sequence[int], values_used: Sequence[int], *, counts: bool = False) -> Json:
    """The first and last element of a range, before and after the filters."""
    return {
        "ddRaw": {"low": raw[0], "high": raw[-1]},
        "ddFiltered": {"low": values_used[0], "high": values_used[-1]},
        "ddRawCount": len(raw) if counts else raw[-1] - raw[0],
        "ddFilteredCount": len(values_used) if counts else values_used[-1] - values_used[0],
    }


def times(raw_ns: Sequence[int], retained_ns: Sequence[int]) -> Json:
    """The same range in time."""
    content: Json = {}
    for name, values in (("ddRaw", raw_ns), ("ddFiltered", retained_ns)):
        low, high = min(values), max(values)
        content[name] = {"low": iso(low), "high": iso(high)}
        content[f"{name}Count"] = round((high - low) / 10**9)
    return content


def iso(at_ns: int) -> str:
    """A time with all its nanoseconds."""
    whole, part = divmod(at_ns, 10**9)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:09d}Z"


def write(path: Path, content: Json) -> Path:
    """Write a file in the published format."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _values(cluster: Cluster, name: str) -> list[float]:
    return [value for value in cluster.samples.get(name, {}).values() if value is not None]


def _over_hosts(cluster: Cluster, name: str) -> Json:
    hosts: dict[str, list[float]] = {host: [] for host, slots in cluster.retained.items() if slots}
    for (_, host), value in cluster.samples.get(name, {}).items():
        if value is not None:
            hosts[host].append(value)
    return cdf_of_cdfs([cdf(values) for values in hosts.values()])
