"""Where a cluster's logs lie: which hosts a folder holds, and which files are whose.

Three shapes are known. A benchmark run has a folder ``node-…`` for every host, with ``stdout…`` or other logs in it,
beside configuration that is none. A cardano-tracer has a folder for every node with ``node-<time>.json`` in it.
Anything else is logs that lie side by side, each named after its host. What is a log is decided by its content.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chainmark._native import scan_head
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.cardano.books import Head, read_head

# Lines of a file's beginning that are looked at; nodes tell their configuration in some hundred lines first.
HEAD_LINES = 4000
_LISTED = 8
HOST_FOLDER = re.compile(r"node-.+")
# Machines of a benchmark run that are no hosts of its network.
_OTHER_FOLDERS = re.compile(r"(explorer|generator|tracer|analysis|genesis|cdf).*")
_TRACER_LEVELS = ("", "logs", "tracer/logs")
# What may be a log by its name. Of these, the first are taken for logs even if nothing in them can be read: their lines
# count as malformed. The others are configuration unless they begin as a log does.
_LOG_NAME = re.compile(r"stdout.*|.*\.log\b.*")
_CANDIDATE = re.compile(r"(stdout.*|.*\.(log|jsonl?|ndjson|txt|out)\b.*)")
_COMPRESSION = re.compile(r"\.(gz|zst|zstd)$")
_NUMBER = re.compile(r"(\.(?:log|jsonl?|ndjson|txt|out)|^stdout)[.-]\d+$")
_SUFFIX = re.compile(r"\.(log|jsonl?|ndjson|txt|out)$")
_TIME = re.compile(r"[-_.]20\d\d-?[01]\d-?[0-3]\d([-_T.:Z]?[\d-]+)*Z?$")
_NAMELESS = re.compile(r"stdout|node")
SHAPE_HINT = (
    "a folder of logs has `node-0/`, `node-1/` … with a log in each, a cardano-tracer's folders, or files that are "
    "named after their hosts; logs are JSON lines as cardano-node prints them"
)


@dataclass(frozen=True)
class LogFile:
    """One log.

    Attributes:
        name: its path from the folder that is imported.
    """

    path: Path
    name: str
    stored_bytes: int

    @cached_property
    def head(self) -> Head:
        """What its beginning tells.

        Raises:
            EnvironmentFailure: it cannot be read.
            UsageError: it is compressed and damaged.
        """
        try:
            told = scan_head(str(self.path), HEAD_LINES)
        except OSError as error:
            raise EnvironmentFailure(
                f"the log {self.path} cannot be read: {error.strerror or error}", "make it readable, or take it away"
            ) from error
        except ValueError as error:
            message, _, hint = str(error).partition("\nhint: ")
            raise UsageError(message, hint or None) from error
        return read_head(str(self.path), told)


@dataclass(frozen=True)
class HostLogs:
    """The logs of one host, in the order of their names; the decoder puts them into that of their times."""

    name: str
    files: tuple[LogFile, ...]

    @property
    def stored_bytes(self) -> int:
        """The size of its files."""
        return sum(file.stored_bytes for file in self.files)

    @property
    def node_version(self) -> str | None:
        """What a node tells of itself when it starts."""
        return next((file.head.node_version for file in self.files if file.head.node_version), None)

    @property
    def loop_starts(self) -> list[tuple[int, int]]:
        """The first rounds of the forge loop in every file."""
        return [start for file in self.files for start in file.head.starts]


@dataclass(frozen=True)
class ClusterLogs:
    """The logs of a cluster.

    Attributes:
        folder: where the documents beside the logs lie.
        hosts: in lexicographic order of their names.
        left_out: folders that hold logs but are no hosts of the network.
    """

    folder: Path
    hosts: tuple[HostLogs, ...]
    left_out: tuple[str, ...] = ()

    def without(self, names: Sequence[str]) -> ClusterLogs:
        """The cluster without some of its hosts.

        Raises:
            UsageError: there is no such host, or none is left.
        """
        known = [host.name for host in self.hosts]
        stranger = next((name for name in names if name not in known), None)
        if stranger is not None:
            raise UsageError(f"there is no host `{stranger}` to leave out", f"the hosts are {listed(known)}")
        kept = tuple(host for host in self.hosts if host.name not in names)
        if not kept:
            raise UsageError(f"with {listed(list(names))} left out no host is left", "leave out fewer")
        return ClusterLogs(self.folder, kept, self.left_out)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; of many the first ones and how many more there are."""
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
        if not source.exists():
            raise UsageError(f"there is no folder or file `{source}`", "give the folder of a cluster's logs")
        if source.is_file():
            hosts: list[HostLogs] = _families([source], source.parent)
            left_out: list[str] = []
        else:
            hosts, left_out = _hosts_of(source)
    except PermissionError as error:
        raise EnvironmentFailure(f"{error.filename} may not be read", "make it readable") from error
    if not any(host.files for host in hosts):
        raise UsageError(f"`{source}` holds no logs of Cardano nodes", SHAPE_HINT)
    folder = source.parent if source.is_file() else source
    return ClusterLogs(folder, tuple(sorted(hosts, key=lambda host: host.name)), tuple(left_out))


def _hosts_of(folder: Path) -> tuple[list[HostLogs], list[str]]:
    """The first shape that fits."""
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    benchmark = [path for path in folders if HOST_FOLDER.fullmatch(path.name)]
    if hosts := _folders(benchmark, folder):
        others = [path.name for path in folders if path not in benchmark and path.name.startswith("explorer")]
        # A host whose folder is there and holds no log is one that was lost; whoever checks the hosts will name it.
        return hosts, others
    for level in _TRACER_LEVELS:
        base = folder / level
        if base.is_dir():
            inner = [path for path in sorted(base.iterdir()) if path.is_dir()]
            known = [path for path in inner if not _OTHER_FOLDERS.fullmatch(path.name)]
            if hosts := [host for host in _folders(known, folder) if host.files]:
                return hosts, [path.name for path in inner if path.name.startswith("explorer")]
    return _families(_once(_candidates(folder)), folder), []


def _folders(folders: Iterable[Path], base: Path) -> list[HostLogs]:
    """One host for every folder; empty when none of them holds a log."""
    owned = [(folder, _candidates(folder)) for folder in folders]
    kept = set(_once([path for _, paths in owned for path in paths]))
    hosts = [HostLogs(folder.name, _logs([path for path in paths if path in kept], base)) for folder, paths in owned]
    return hosts if any(host.files for host in hosts) else []


def _families(paths: Sequence[Path], base: Path) -> list[HostLogs]:
    """One host for all files whose names differ only in time, number and compression."""
    families: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        families[_family(path)].append(path)
    hosts = [HostLogs(name, _logs(members, base)) for name, members in families.items()]
    return [host for host in hosts if host.files]


def _family(path: Path) -> str:
    """The host that a file is named after: "node-0" of ``node-0.log.1.gz``; that of its folder if it says none."""
    name = _COMPRESSION.sub("", path.name)
    shorter = None
    while shorter != name:
        shorter, name = name, _TIME.sub("", _SUFFIX.sub("", _NUMBER.sub(r"\1", name)))
    return path.resolve().parent.name or name if _NAMELESS.fullmatch(name) else name


def _candidates(folder: Path) -> list[Path]:
    """Files that may be logs, by their names."""
    return sorted(path for path in folder.iterdir() if _CANDIDATE.fullmatch(path.name) and path.is_file())


def _once(paths: Sequence[Path]) -> list[Path]:
    """Every file once: a link to a file that is there anyway, as cardano-tracer makes them, is left out."""
    seen: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), path)):
        seen.setdefault(os.path.realpath(path), path)
    return sorted(seen.values())


def _logs(paths: Iterable[Path], base: Path) -> tuple[LogFile, ...]:
    files = [LogFile(path, path.relative_to(base).as_posix(), path.stat().st_size) for path in paths]
    return tuple(file for file in files if file.head.objects or _LOG_NAME.fullmatch(file.path.name))
