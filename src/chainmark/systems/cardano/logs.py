"""Find a cluster's logs: which hosts a folder holds, and which files belong to each.

Three layouts are known. A benchmark run has a folder ``node-…`` for every host, with ``stdout…`` or other logs in it,
next to configuration files. A cardano-tracer has a folder for every node with ``node-<time>.json`` in it. In any other
layout logs are side by side, each named after its host. The content decides whether a file is a log; files that look
like logs but belong to no host are reported.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from chainmark._native import scan_head
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.store.contents import FileContent
from chainmark.store.objects import StoredFile
from chainmark.systems.cardano.accounting import Head, read_head
from chainmark.systems.cardano.unread import HOST_FOLDER, LOG_LIKE, NO_HOST, Unread, find_unread, readable_name, refusal

# Number of lines read at a file's beginning; nodes log their configuration in the first few hundred lines.
HEAD_LINES = 4000
_LISTED = 8
# Machines of a benchmark run that are not hosts of its network.
_OTHER_FOLDERS = re.compile(r"(explorer|generator|tracer|analysis|genesis|cdf).*")
_TRACER_LEVELS = ("", "logs", "tracer/logs")
# Files with these names are treated as logs even if nothing in them can be read: their lines count as malformed. The
# others are configuration unless they begin like a log.
_LOG_NAME = re.compile(r"stdout.*|.*\.log\b.*")
_COMPRESSION = re.compile(r"\.(gz|zst|zstd|xz)$")
_NUMBER = re.compile(r"(\.(?:log|jsonl?|ndjson|txt|out)|^stdout)[.-]\d+$")
_SUFFIX = re.compile(r"\.(log|jsonl?|ndjson|txt|out)$")
_TIME = re.compile(r"[-_.]20\d\d-?[01]\d-?[0-3]\d([-_T.:Z]?[\d-]+)*Z?$")
_NAMELESS = re.compile(r"stdout|node")
SHAPE_HINT = (
    "a folder of logs has `node-0/`, `node-1/` … with a log in each, a cardano-tracer's folders, or files that are "
    "named after their hosts; logs are JSON lines as cardano-node, docker or "
    "`journalctl -o json` print them"
)

UNPACK_HINT = "logs must be UTF-8 text, plain or compressed with gzip, zstd or xz, directly in the folder of their host"


@dataclass(frozen=True)
class LogFile:
    """One log.

    Attributes:
        name: its path from the folder that is imported.
        stored: where it is, if ``path`` is only a copy of its beginning.
    """

    path: Path
    name: str
    stored_bytes: int
    stored: StoredFile | None = None

    @cached_property
    def head(self) -> Head:
        """The facts in its first lines.

        Raises:
            EnvironmentFailure: it cannot be read.
            UsageError: it is compressed and damaged.
        """
        try:
            with self._readable():
                reported = scan_head(str(self.path), HEAD_LINES)
        except ValueError as error:
            message, _, hint = str(error).partition("\nhint: ")
            raise UsageError(message, hint or None) from error
        return read_head(str(self.path), reported)

    @cached_property
    def content(self) -> FileContent:
        """What whoever reads it on another machine, or later, must find.

        Raises:
            EnvironmentFailure: it cannot be read.
        """
        with self._readable():
            return FileContent.of(self.path, self.stored_bytes)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EnvironmentFailure(
                f"the log {self.path} cannot be read: {error.strerror or error}", "make it readable, or remove it"
            ) from error


@dataclass(frozen=True)
class HostLogs:
    """The logs of one host, sorted by name; the decoder sorts them by time.

    Attributes:
        at: addresses of the machines that can open them; none: this one.
    """

    name: str
    files: tuple[LogFile, ...]
    at: tuple[str, ...] = ()

    @property
    def stored_bytes(self) -> int:
        """The size of its files."""
        return sum(file.stored_bytes for file in self.files)

    @property
    def node_version(self) -> str | None:
        """What a node reports about itself when it starts."""
        return next((file.head.node_version for file in self.files if file.head.node_version), None)

    @property
    def loop_starts(self) -> list[tuple[int, int]]:
        """The first rounds of the forge loop in every file."""
        return [start for file in self.files for start in file.head.starts]


@dataclass(frozen=True)
class RepeatedLog:
    """A duplicate log: ``name`` was omitted, ``of`` was read."""

    name: str
    of: str


@dataclass(frozen=True)
class ClusterLogs:
    """The logs of a cluster.

    Attributes:
        folder: that holds the logs, or its address.
        copied: folder of the copies of the documents next to the logs, if the logs are not on this machine.
        hosts: in lexicographic order of their names.
        left_out: folders that hold logs but are not hosts of the network.
        unread: other files that look like logs.
        repeated: duplicates within a host's logs.
        excluded: hosts excluded on request, whose logs are not read.
    """

    folder: Path | str
    hosts: tuple[HostLogs, ...]
    left_out: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    repeated: tuple[RepeatedLog, ...] = ()
    excluded: tuple[HostLogs, ...] = ()
    copied: Path | None = None

    @property
    def documents(self) -> Path:
        """The folder from which the documents next to the logs are read."""
        return self.copied or Path(self.folder)

    def without(self, names: Sequence[str]) -> ClusterLogs:
        """The cluster without some of its hosts.

        Raises:
            UsageError: there is no such host, or none is left.
        """
        known = [host.name for host in self.hosts]
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            raise UsageError(f"there is no host `{unknown}` to exclude", f"the hosts are {listed(known)}")
        host_logs = tuple(host for host in self.hosts if host.name not in names)
        if not host_logs:
            raise UsageError(f"with {listed(list(names))} excluded, no host remains", "exclude fewer hosts")
        return replace(self, hosts=host_logs, excluded=tuple(host for host in self.hosts if host.name in names))

    @property
    def files(self) -> list[LogFile]:
        """The logs of all hosts."""
        return [file for host in self.hosts for file in host.files]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; a long list is shortened to the first ones and the number of the others."""
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} more"
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)


def find_logs(source: Path) -> ClusterLogs:
    """The hosts whose logs a folder holds, or the one host of a single file.

    Raises:
        UsageError: there is no such folder, or it holds no logs.
        EnvironmentFailure: it may not be read.
    """
    try:
        cluster = _cluster(source)
    except PermissionError as error:
        raise EnvironmentFailure(f"{error.filename} may not be read", "make it readable") from error
    if not cluster.files:
        raise UsageError(f"`{source}` contains no logs of Cardano nodes{_where_else(cluster.unread)}", SHAPE_HINT)
    return cluster


def _cluster(source: Path) -> ClusterLogs:
    if source.is_dir():
        return _shape_of(source).cluster(source)
    if not source.exists():
        raise UsageError(f"there is no folder or file `{source}`", "give the folder with the logs of a cluster")
    refused = refusal(source)
    if refused is not None:
        raise UsageError(f"`{source}` cannot be read as a log: it is {refused}", UNPACK_HINT)
    return ClusterLogs(source.parent, tuple(_families([source], source.parent)))


def _where_else(unread: Sequence[Unread]) -> str:
    """The expected locations of logs, in a sentence that states that there are none."""
    return f"; not read: {listed([f'{item.name} ({item.reason})' for item in unread])}" if unread else ""


@dataclass(frozen=True)
class _Shape:
    """The layout of logs in a folder.

    Attributes:
        folders: those of hosts, by their names; empty if logs are side by side.
        links: files omitted because they are only another name of a log that is read.
        no_hosts: folders of machines that are not hosts of the network.
    """

    hosts: Sequence[HostLogs]
    folders: Sequence[Path] = ()
    links: Sequence[RepeatedLog] = ()
    no_hosts: Sequence[str] = ()

    def cluster(self, source: Path) -> ClusterLogs:
        """The cluster, including what was not read of the folder."""
        read = {os.path.realpath(file.path) for host in self.hosts for file in host.files}
        unread = find_unread(source, self.folders, read)
        left_out = sorted({item.name.split("/")[0] for item in unread if item.reason == NO_HOST} & set(self.no_hosts))
        return ClusterLogs(
            source,
            tuple(sorted(self.hosts, key=lambda host: host.name)),
            tuple(left_out),
            tuple(item for item in unread if item.name.split("/")[0] not in left_out),
            tuple(self.links),
        )


def _shape_of(folder: Path) -> _Shape:
    """The first layout that fits."""
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    others = [path.name for path in folders if _OTHER_FOLDERS.fullmatch(path.name)]
    benchmark = [path for path in folders if HOST_FOLDER.fullmatch(path.name) and not _is_foreign(path)]
    if hosts := _folders(benchmark, folder):
        # A host whose folder has no log is one that was lost; the check of the hosts will report it.
        return _Shape(hosts, benchmark, no_hosts=others)
    for level in _TRACER_LEVELS:
        base = folder / level
        if base.is_dir():
            inner = [path for path in sorted(base.iterdir()) if path.is_dir() and not _is_foreign(path)]
            known = [path for path in inner if not _OTHER_FOLDERS.fullmatch(path.name)]
            if hosts := [host for host in _folders(known, folder) if host.files]:
                named = {host.name for host in hosts}
                return _Shape(hosts, [path for path in known if path.name in named], no_hosts=others)
    paths, links = _once(_candidates(folder))
    return _Shape(_families(paths, folder), links=[RepeatedLog(link.name, read.name) for link, read in links])


def _is_foreign(folder: Path) -> bool:
    """Whether a folder's name is not valid text, so that no host can be named after it."""
    return readable_name(folder.name) != folder.name


def _folders(folders: Iterable[Path], base: Path) -> list[HostLogs]:
    """One host for every folder; empty when none of them holds a log."""
    hosts = [HostLogs(folder.name, _logs(_once(_candidates(folder))[0], base)) for folder in folders]
    return hosts if any(host.files for host in hosts) else []


def _families(paths: Sequence[Path], base: Path) -> list[HostLogs]:
    """One host for all files whose names differ only in time, number and compression."""
    families: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        families[_family(path)].append(path)
    hosts = [HostLogs(name, _logs(members, base)) for name, members in families.items()]
    return [host for host in hosts if host.files]


def _family(path: Path) -> str:
    """The host that a file is named after: "node-0" of ``node-0.log.1.gz``; otherwise the name of its folder."""
    name = _COMPRESSION.sub("", path.name)
    shorter = None
    while shorter != name:
        shorter, name = name, _TIME.sub("", _SUFFIX.sub("", _NUMBER.sub(r"\1", name)))
    return path.resolve().parent.name or name if _NAMELESS.fullmatch(name) else name


def _candidates(folder: Path) -> list[Path]:
    """Files that may be logs, by their names and by the format of their content."""
    return sorted(path for path in folder.iterdir() if LOG_LIKE.fullmatch(path.name) and refusal(path) is None)


def _once(paths: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, Path]]]:
    """Every file once, and the links to files that are included anyway, as cardano-tracer creates them."""
    seen: dict[str, Path] = {}
    links = []
    for path in sorted(paths, key=lambda path: (path.is_symlink(), path)):
        first = seen.setdefault(os.path.realpath(path), path)
        if first is not path:
            links.append((path, first))
    return sorted(seen.values()), links


def _logs(paths: Iterable[Path], base: Path) -> tuple[LogFile, ...]:
    files = [LogFile(path, path.relative_to(base).as_posix(), path.stat().st_size) for path in paths]
    return tuple(file for file in files if file.head.objects or _LOG_NAME.fullmatch(file.path.name))
