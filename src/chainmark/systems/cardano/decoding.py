"""The hosts of a cluster decoded, several at a time: logs in, one table of slots and one of blocks per host out."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from chainmark._native import TraceDecoder
from chainmark.cluster.working import watched
from chainmark.core import units
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.parts import Machines, map_parts
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.store.objects import StoredFile
from chainmark.systems.cardano.accounting import HostSummary, MessageCounts, read_summary
from chainmark.systems.cardano.analyse import HostTrace
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs
from chainmark.systems.cardano.rules import Rules

_LONGEST_STEM, _STEM_LENGTH = 200, 40
# Why no message of an excluded host is used.
HOST_EXCLUDED = "host excluded"

Account = TypeVar("Account")


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


@dataclass(frozen=True)
class HostPart:
    """One host: the decoder's request as JSON, the amount to read, and the machines that can read it.

    Attributes:
        stored: where the files of the request are, if they must be copied first.
        copies: the folder that their paths in the request are below.
    """

    host: str
    order: str
    stored_bytes: int
    at: tuple[str, ...] = ()
    stored: tuple[StoredFile, ...] = ()
    copies: str = ""


@dataclass(frozen=True)
class Decoded:
    """Another machine's result for a host's logs.

    Attributes:
        account: the host's accounting as JSON, or why its logs cannot be read; None if the reading was stopped.
        tables: the content of each table, by its key in the request.
    """

    account: str | ChainmarkError | None
    tables: dict[str, bytes] = field(default_factory=dict)


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
    progress.stage(_stage("reading", parts))
    if machines is None:
        decoders = Decoders(_shown(parts, progress))
        accounts = _map(decoders.decode, parts, decoders, threads)
    else:
        accounts = _map_elsewhere(decode_there, parts, machines, progress)
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
    progress.stage(_stage("counting excluded lines:", parts))
    if machines is None:
        decoders = Decoders(_shown(parts, progress))
        accounts = _map(decoders.count, parts, decoders, threads)
    else:
        accounts = _map_elsewhere(count_there, parts, machines, progress)
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
        parts.append(HostPart(host.name, json.dumps(wanted), host.stored_bytes, host.at, stored, folder))
    return parts


def _stage(doing: str, parts: Sequence[HostPart]) -> str:
    return f"{doing} {len(parts)} hosts" if len(parts) > 1 else f"{doing} {parts[0].host}"


def _map(
    decode_one: Callable[[HostPart], Account], parts: Sequence[HostPart], decoders: Decoders, threads: int
) -> list[Account]:
    with ThreadPoolExecutor(threads, thread_name_prefix="decoder") as executor:
        return map_parts(
            decode_one,
            parts,
            executor,
            weight=lambda part: part.stored_bytes,
            watch=decoders.watch,
            cancel=decoders.cancel,
        )


def _map_elsewhere(
    decode_one: Callable[[HostPart], Decoded], parts: Sequence[HostPart], machines: Machines, progress: Progress
) -> list[Any]:
    """The accounting of hosts that other machines read; their tables are written here as each arrives."""
    show = _shown(parts, progress)
    return machines.map(
        decode_one,
        parts,
        at=lambda part: part.at,
        take=_written,
        weight=lambda part: part.stored_bytes,
        watch=lambda reports: show(list(reports.values())),
    )


def _written(part: HostPart, decoded: Decoded) -> str | ChainmarkError | None:
    order = json.loads(part.order)
    for key, content in decoded.tables.items():
        path = Path(order[key])
        with storage_errors(path):
            path.write_bytes(content)
    return decoded.account


def decode_there(part: HostPart) -> Decoded:
    """The work of :meth:`Decoders.decode` on a worker's machine, with a separate folder for the tables.

    Raises:
        UsageError: the request is invalid.
        EnvironmentFailure: the files cannot be read, or the tables cannot be written.
    """
    with TemporaryDirectory(prefix="chainmark-") as folder:
        outs = {key: path for key, path in json.loads(part.order).items() if key.endswith("_out") and path is not None}
        own = {key: str(Path(folder) / Path(path).name) for key, path in outs.items()}
        reader = HostReader(replace(part, order=json.dumps({**json.loads(part.order), **own})))
        with watched(reader.cancel, reader.progress):
            account = reader.read()
        if account is None:
            return Decoded(None)
        return Decoded(account, {key: Path(path).read_bytes() for key, path in own.items()})


def count_there(part: HostPart) -> Decoded:
    """The same of a host whose logs need not be readable."""
    try:
        return decode_there(part)
    except (UsageError, EnvironmentFailure) as error:
        return Decoded(error)


class HostReader:
    """Decodes one host's logs, after copying them to this machine if they are in an object store.

    Raises:
        UsageError: the request is invalid.
    """

    def __init__(self, part: HostPart) -> None:
        self._part = part
        self._is_cancelled = False
        self._decoder = None if part.stored else _decoder(part.order)

    def read(self) -> str | None:
        """The host's accounting as JSON, once its tables are written; None if it was stopped.

        Raises:
            UsageError: the request is invalid.
            EnvironmentFailure: its files cannot be read, or its tables cannot be written.
        """
        if self._decoder is not None:
            return self._run(self._decoder, self._part.order)
        with TemporaryDirectory(prefix="chainmark-") as folder:
            order = json.loads(self._part.order)
            order["files"] = [self._copied(file, Path(folder)) for file in self._part.stored]
            decoder = self._decoder = _decoder(json.dumps(order))
            if self._is_cancelled:
                return None
            account = self._run(decoder, json.dumps(order))
            # The accounting names the files as the request did.
            return None if account is None else account.replace(folder, self._part.copies)

    def _copied(self, file: StoredFile, folder: Path) -> str:
        target = folder / file.name
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        file.copy(target, lambda: self._is_cancelled)
        return str(target)

    def cancel(self) -> None:
        """Stop soon; `read` then returns None."""
        self._is_cancelled = True
        if self._decoder is not None:
            self._decoder.cancel()

    def progress(self) -> tuple[int, int]:
        """The number of stored bytes and of lines that are decoded."""
        return (0, 0) if self._decoder is None else self._decoder.progress()

    def _run(self, decoder: TraceDecoder, order: str) -> str | None:
        try:
            return decoder.run()
        except ValueError as error:
            raise UsageError.from_native(error) from error
        except OSError as error:
            path = str(error.filename)
            if path in json.loads(order)["files"]:
                raise EnvironmentFailure(
                    f"the log {path} cannot be read: {error.strerror}",
                    f"`--exclude {self._part.host}` leaves the host out",
                ) from error
            with storage_errors(Path(path)):
                raise


def _decoder(order: str) -> TraceDecoder:
    try:
        return TraceDecoder(order)
    except ValueError as error:
        raise UsageError.from_native(error) from error


# The number of stored bytes and of lines that each decoder has read.
Reports = Sequence[tuple[int, int]]


def _shown(parts: Sequence[HostPart], progress: Progress) -> Callable[[Reports], None]:
    """Shows the progress of the decoders."""
    total_bytes = max(sum(part.stored_bytes for part in parts), 1)
    begun = time.monotonic()

    def show(reports: Reports) -> None:
        done = sum(stored for stored, _ in reports)
        rate = done / max(time.monotonic() - begun, 1e-3)
        lines = sum(count for _, count in reports) / 1e6
        text = f"{units.byte_size(done)}, {units.number(lines, 1)} M lines, {units.byte_size(round(rate))}/s"
        progress.update(done / total_bytes, text)

    return show


class Decoders:
    """The running decoders on this machine: their progress, and a way to stop them."""

    def __init__(self, show: Callable[[Reports], None]) -> None:
        self._show = show
        self._made: list[HostReader] = []
        self._lock = threading.Lock()
        self._is_cancelled = False

    def decode(self, part: HostPart) -> str | None:
        """See `HostReader.read`."""
        return self._begin(part).read()

    def count(self, part: HostPart) -> str | ChainmarkError | None:
        """The same of a host whose logs need not be readable."""
        try:
            return self.decode(part)
        except (UsageError, EnvironmentFailure) as error:
            return error

    def _begin(self, part: HostPart) -> HostReader:
        reader = HostReader(part)
        with self._lock:
            self._made.append(reader)
            if self._is_cancelled:
                reader.cancel()
        return reader

    def watch(self) -> None:
        """Show their progress."""
        with self._lock:
            reports = [reader.progress() for reader in self._made]
        self._show(reports)

    def cancel(self) -> None:
        """Stop all of them, and those that begin later."""
        with self._lock:
            self._is_cancelled = True
            for reader in self._made:
                reader.cancel()
