"""Detect logs that were mixed up when they were collected: copied, put into the wrong folder, or of another run."""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from chainmark.core.errors import UsageError
from chainmark.core.storage import storage_errors
from chainmark.core.times import utc_text
from chainmark.store.log_lines import DAMAGE, unpacked
from chainmark.systems.cardano.accounting import HostSummary
from chainmark.systems.cardano.logs import ClusterLogs, LogFile, RepeatedLog, listed

# Two files whose slots began further apart than this are of two runs; clocks of one network are not so wrong.
RUN_MISFIT_S = 30.0
_PIECE_BYTES = 1 << 20
# Old nodes print at most this much of a host's name, cardano-tracer adds a port.
_SHORT_NAME = 8
_LISTED_RUNS = 3
_PORT = re.compile(r"_\d{1,5}$")


def exclude_hint(host: str) -> str:
    """The hint if one host is the obstacle for all."""
    return f"`--exclude {host}` excludes it"


def text_hash(file: LogFile) -> str:
    """The hash of the complete text that can be unpacked; a truncated log is not a copy of the complete one."""
    hasher = hashlib.blake2b()
    with storage_errors(file.path), file.path.open("rb") as raw:
        try:
            text = unpacked(raw, file.path)
            while piece := text.read(_PIECE_BYTES):
                hasher.update(piece)
        except DAMAGE:
            hasher.update(b"damaged")
    return hasher.hexdigest()


def without_copies(cluster: ClusterLogs, hash_of: Callable[[LogFile], str] = text_hash) -> ClusterLogs:
    """The cluster with every log once: a copy next to the log of the same host is omitted, and recorded.

    Two logs are copies of each other if their texts are the same, however they are compressed.

    Args:
        hash_of: hashes the text of a log on the machine that holds the log.

    Raises:
        UsageError: two hosts have the same log.
    """
    owners = {file.name: host.name for host in cluster.hosts for file in host.files}
    _check_links(cluster)
    copies: dict[str, str] = {}
    for files in _alike(cluster.files):
        first: dict[str, LogFile] = {}
        for file in sorted(files, key=lambda file: file.name):
            original = first.setdefault(hash_of(file), file)
            if original is file:
                continue
            if owners[original.name] != owners[file.name]:
                raise UsageError(
                    f"{original.name} and {file.name} are the same log, which cannot be of two hosts, "
                    f"{owners[original.name]} and {owners[file.name]}",
                    f"replace it with the host's own log; {exclude_hint(owners[file.name])}",
                )
            copies[file.name] = original.name
    hosts = [
        replace(host, files=tuple(item for item in host.files if item.name not in copies)) for host in cluster.hosts
    ]
    repeated = [RepeatedLog(name, of) for name, of in sorted(copies.items())]
    return replace(cluster, hosts=tuple(hosts), repeated=(*cluster.repeated, *repeated))


def _check_links(cluster: ClusterLogs) -> None:
    first: dict[str, tuple[str, str]] = {}
    for host in cluster.hosts:
        for file in host.files:
            owner, name = first.setdefault(os.path.realpath(file.path), (host.name, file.name))
            if owner != host.name:
                raise UsageError(
                    f"{name} and {file.name} are the same file, which cannot be the log of two hosts, "
                    f"{owner} and {host.name}",
                    f"replace the link with the host's own log; {exclude_hint(host.name)}",
                )


def _alike(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """Files whose beginnings are equal; only these need a full comparison."""
    groups: dict[Hashable, list[LogFile]] = defaultdict(list)
    for file in files:
        head = file.head
        if head.objects:
            reported = (head.first_ns, head.last_ns, head.lines, head.objects, head.decoded, head.malformed)
            groups[(*reported, tuple(head.starts), tuple(sorted(head.names.items())))].append(file)
    return [group for group in groups.values() if len(group) > 1]


def check_names(cluster: ClusterLogs) -> list[str]:
    """Check that every host's lines are its own, as far as the names in them show.

    All nodes of one machine may have its name in their lines, so a name that several hosts share and that is no host's
    own proves nothing.

    Returns:
        A sentence about hosts whose lines name another one, if there are such.

    Raises:
        UsageError: a host's lines name another host of the cluster.
    """
    messages = [(host.name, item, name) for host in cluster.hosts for item in host.files if (name := _only_name(item))]
    sharing: dict[str, set[str]] = defaultdict(set)
    for host, _, name in messages:
        sharing[name].add(host)
    is_of_machine = len(sharing) == 1 and len({host for host, _, _ in messages}) > 2
    owners = {name: host for host, _, name in messages if _is_own(host, name)}
    for host, file, name in messages:
        owner = owners.get(name, host)
        if owner != host and not is_of_machine and (_is_own(host, name) or not _may_be(host, name)):
            raise UsageError(
                f"{owner} and {host} are both logs of the host {name}, according to the lines of {file.name}",
                f"put the parts of one host's log into one folder; {exclude_hint(host)}",
            )
    alone = {host: name for host, _, name in messages if len(sharing[name]) == 1 and not _may_be(host, name)}
    if not alone:
        return []
    named = listed([f"{host} (named {name})" for host, name in alone.items()])
    return [f"the lines name other hosts than the folders or files they are in: {named}"]


def check_shared_names(summaries: Mapping[str, HostSummary]) -> None:
    """Check that hosts whose lines have the same name ran at the same time, as nodes of one machine do.

    Raises:
        UsageError: one's log ends before the other's begins: they are parts of one host's log.
    """
    sharing: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for host, summary in summaries.items():
        accounting = summary.line_counts
        if len(accounting.names) == 1 and accounting.first_ns is not None and accounting.last_ns is not None:
            sharing[next(iter(accounting.names))].append((accounting.first_ns, accounting.last_ns, host))
    for name, spans in sharing.items():
        spans.sort()
        for (_, end_ns, item), (begin_ns, _, other) in pairwise(spans):
            if end_ns < begin_ns:
                raise UsageError(
                    f"{item} and {other} are both logs of the host {name}, according to their lines: one ends before "
                    "the other begins",
                    f"put the parts of one host's log into one folder; {exclude_hint(other)}",
                )


def _only_name(file: LogFile) -> str | None:
    names = file.head.names
    return next(iter(names)) if len(names) == 1 else None


def _is_own(host: str, name: str) -> bool:
    """Whether a name in the lines is that of the folder or file, possibly followed by a port."""
    return name.lower() in (host.lower(), _PORT.sub("", host).lower())


def _may_be(host: str, name: str) -> bool:
    """The same for a name with or without a domain, or truncated as by old nodes."""
    bare, reported = _PORT.sub("", host).lower(), name.lower()
    with_domain = reported.split(".")[0] == bare or bare.split(".")[0] == reported
    return _is_own(host, name) or with_domain or (len(reported) == _SHORT_NAME and bare.startswith(reported))


def slot_length_s(cluster: ClusterLogs) -> float | None:
    """The slot length by the rounds of the forge loops, to the millisecond; None without any."""
    lengths = [
        (at_ns - before_ns) / (slot - before) / 1e9
        for file in cluster.files
        for (before, before_ns), (slot, at_ns) in pairwise(file.head.starts)
        if slot > before
    ]
    if not lengths:
        return None
    # A round may begin late, as a node's first one does; slots have round lengths.
    reported = median(lengths)
    whole = round(reported)
    return float(whole) if whole and abs(reported - whole) < 0.02 * whole else round(reported, 3)


def check_one_run(cluster: ClusterLogs, length_s: float, *, within_hosts: bool) -> None:
    """Check that all logs are of one run: the same start of slot 0 by all of them, for slots of this length.

    Args:
        cluster: the files to compare with each other.
        length_s: of a slot.
        within_hosts: only compare the files of one host; a genesis shows which hosts are foreign.

    Raises:
        UsageError: files disagree; the sentence names them.
    """
    for files in [host.files for host in cluster.hosts] if within_hosts else [cluster.files]:
        runs = _runs(files, length_s)
        if len(runs) > 1:
            starts = "; ".join(f"{utc_text(start_ns)} by {listed(names)}" for start_ns, names in runs[:_LISTED_RUNS])
            more = f"; and {len(runs) - _LISTED_RUNS} more" if len(runs) > _LISTED_RUNS else ""
            raise UsageError(
                f"these are logs of {len(runs)} runs, whose slot 0 began at {starts}{more}",
                "import each run from its own folder, and remove logs of other runs",
            )


def _runs(files: Sequence[LogFile], length_s: float) -> list[tuple[int, list[str]]]:
    """The start of slot 0, with the files that imply it; files without slots are omitted."""
    length_ns = round(length_s * 1e9)
    runs: list[tuple[int, list[str]]] = []
    messages = [
        (median(at - slot * length_ns for slot, at in item.head.starts), item) for item in files if item.head.starts
    ]
    last_ns = 0.0
    for start_ns, file in sorted(messages, key=lambda item: (item[0], item[1].name)):
        if not runs or start_ns - last_ns > RUN_MISFIT_S * 1e9:
            # Rounded to seconds, as in a genesis.
            runs.append((int(start_ns) // 10**9 * 10**9, []))
        runs[-1][1].append(file.name)
        last_ns = start_ns
    return runs
