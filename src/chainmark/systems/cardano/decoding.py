"""The hosts of a cluster decoded, several at a time: logs in, one table of slots and one of blocks per host out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chainmark.core.errors import ChainmarkError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.systems.cardano.accounting import HostSummary, MessageCounts, read_summary
from chainmark.systems.cardano.analyse import HostTrace
from chainmark.systems.cardano.decoders import HostPart, count_here, read_here, stage_of
from chainmark.systems.cardano.decoding_elsewhere import count_there, decode_there, read_elsewhere
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs
from chainmark.systems.cardano.rules import Rules

_LONGEST_STEM, _STEM_LENGTH = 200, 40
# Why no message of an excluded host is used.
HOST_EXCLUDED = "host excluded"


@dataclass(frozen=True)
class Reading:
    """How logs are read, and where the tables are written.

    Attributes:
        folder: of the tables.
        events: the folder of all decoded events; None discards them.
        slots_group_rows: rows per row group of the tables of slots.
    """

    genesis: Genesis
    rules: Rules
    folder: Path
    events: Path | None
    slots_group_rows: int

    def slots(self, host: str) -> Path:
        """The table of a host's slots."""
        return self.folder / f"{_stem(host)}.slots.parquet"

    def block_timelines(self, host: str) -> Path:
        """The table of the blocks that a host knew."""
        return self.folder / f"{_stem(host)}.timelines.parquet"

    def links(self, host: str) -> Path:
        """The table of the chain as a host's lines record it."""
        return self.folder / f"{_stem(host)}.links.parquet"

    def published(self, host: str) -> tuple[Path, Path]:
        """The tables of slots and blocks by the published rules: the same if the logs are read by those."""
        if self.rules.published:
            return self.slots(host), self.block_timelines(host)
        stem = _stem(host)
        return self.folder / f"{stem}.published-slots.parquet", self.folder / f"{stem}.published-timelines.parquet"

    def order(self, host: HostLogs, threads: int) -> dict[str, Any]:
        """The decoder's request, as crates/chainmark-trace/src/host.rs describes it."""
        slots, block_timelines = (None, None) if self.rules.published else map(str, self.published(host.name))
        return {
            "host": host.name,
            "files": [str(file.path) for file in host.files],
            "threads": threads,
            "published_rules": self.rules.published,
            "system_start_ns": self.genesis.system_start_ns,
            "slot_length_s": self.genesis.slot_length_s,
            "epoch_slots": self.genesis.epoch_slots,
            "security_parameter": self.genesis.security_parameter,
            "active_slots_coefficient": self.genesis.active_slots_coefficient,
            "slots_out": str(self.slots(host.name)),
            "slots_group_rows": self.slots_group_rows,
            "block_timelines_out": str(self.block_timelines(host.name)),
            "links_out": str(self.links(host.name)),
            "published_slots_out": slots,
            "published_block_timelines_out": block_timelines,
            "events_out": None if self.events is None else str(self.events / f"messages-{_stem(host.name)}.parquet"),
        }


def _stem(host: str) -> str:
    """A host's name as a file name, which may not be as long as a folder's."""
    if len(host.encode()) <= _LONGEST_STEM:
        return host
    return f"{host[:_STEM_LENGTH]}-{hashlib.blake2b(host.encode(), digest_size=8).hexdigest()}"


def decode(
    cluster: ClusterLogs, reading: Reading, threads: int, progress: Progress, machines: Machines | None = None
) -> tuple[list[HostTrace], list[HostTrace], dict[str, HostSummary]]:
    """Read every host's logs once, ``threads`` hosts at a time (0: one per core), or on other machines.

    Returns:
        The decoded hosts by the rules of the reading and by the published ones, and their accounting, in the hosts'
        order.

    Raises:
        UsageError: a request is invalid.
        EnvironmentFailure: logs cannot be read, or tables cannot be written.
    """
    if reading.events is not None:
        with storage_errors(reading.events):
            reading.events.mkdir(exist_ok=True)
    threads = _threads(threads, machines)
    parts = _parts(cluster, cluster.hosts, reading, threads)
    progress.stage(stage_of("reading", parts))
    if machines is None:
        accounts = read_here(parts, threads, progress)
    else:
        accounts = read_elsewhere(decode_there, parts, cluster.hosts, machines, threads=threads, progress=progress)
    traces, published, summaries = [], [], {}
    for part, text in zip(parts, accounts, strict=True):
        if text is None:
            raise KeyboardInterrupt
        summary = read_summary(part.host, text)
        summaries[part.host] = summary
        trace = HostTrace(
            part.host,
            reading.slots(part.host),
            reading.block_timelines(part.host),
            reading.links(part.host),
            summary.line_counts.local_addresses,
            summary.links.lowest_tip,
        )
        traces.append(trace)
        slots, block_timelines = reading.published(part.host)
        # The chain in the lines is the same by any rules.
        published.append(replace(trace, slots=slots, block_timelines=block_timelines))
    return traces, published, summaries


@dataclass(frozen=True)
class Excluded:
    """The accounting of excluded hosts, so that the sums cover all input.

    Attributes:
        summaries: per host, the counts; none of its messages is used.
        unreadable: per host whose logs cannot be read, why; it may be the reason for the exclusion.
    """

    summaries: dict[str, HostSummary] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


def count_excluded(
    cluster: ClusterLogs, reading: Reading, threads: int, progress: Progress, machines: Machines | None = None
) -> Excluded:
    """Count the lines and messages of the excluded hosts; no table is written for them."""
    excluded = Excluded()
    threads = _threads(threads, machines)
    hosts = [host for host in cluster.excluded if host.files]
    parts = _parts(cluster, hosts, reading, threads, tables=False)
    if not parts:
        return excluded
    progress.stage(stage_of("counting excluded lines:", parts))
    if machines is None:
        accounts = count_here(parts, threads, progress)
    else:
        accounts = read_elsewhere(count_there, parts, hosts, machines, threads=threads, progress=progress)
    for part, account in zip(parts, accounts, strict=True):
        if account is None:
            raise KeyboardInterrupt
        if isinstance(account, ChainmarkError):
            excluded.unreadable[part.host] = account.message
            continue
        summary = read_summary(part.host, account)
        unused = MessageCounts(used=0, unused={HOST_EXCLUDED: summary.line_counts.decoded})
        excluded.summaries[part.host] = summary.model_copy(update={"usage": unused})
    return excluded


def _threads(wanted: int, machines: Machines | None) -> int:
    return wanted or (os.cpu_count() or 1 if machines is None else machines.threads)


def _parts(
    cluster: ClusterLogs, hosts: Sequence[HostLogs], reading: Reading, threads: int, *, tables: bool = True
) -> list[HostPart]:
    # Hosts fill the threads; if there are fewer hosts, each host's files are divided among its threads.
    each = max(1, threads // max(1, len(hosts)))
    parts = []
    for host in hosts:
        order = reading.order(host, each)
        wanted = (
            order if tables else {key: None if key.endswith("_out") else reported for key, reported in order.items()}
        )
        stored = tuple(file.stored for file in host.files if file.stored is not None)
        folder = str(cluster.documents) if stored else ""
        contents = tuple(file.content for file in host.files) if host.at else ()
        parts.append(HostPart(host.name, json.dumps(wanted), host.stored_bytes, host.at, stored, folder, contents))
    return parts
