"""Logs on other machines: listed there, with their beginnings and the documents next to them read.

The logs themselves are not transferred over the network: a machine that can open a host's logs decodes them. Machines
that see the same logs share a storage; machines that see the logs of different hosts form one cluster. Each log is
given to the machine that reads it by its path there, a sample of its content, and the range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.store.files import write_bytes
from chainmark.systems.cardano.documents import GENESIS_FILES, META_FILE, PING_FILES, TOPOLOGY_FILE, TRUTH_FILE
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs, LogFile, find_logs, listed
from chainmark.systems.cardano.mixing import text_hash

Named = TypeVar("Named")


class Here:
    """Logs of this machine."""

    def __init__(self, source: Path) -> None:
        self._source = source

    @property
    def is_folder(self) -> bool:
        """Whether they are in a folder, and not one file."""
        return self._source.is_dir()

    def find(self) -> ClusterLogs:
        """See `find_logs`."""
        return find_logs(self._source)

    def text_hash(self, file: LogFile) -> str:
        """See `chainmark.systems.cardano.mixing.text_hash`."""
        return text_hash(file)


@dataclass(frozen=True)
class RemoteSource:
    """The part of a source on one machine.

    Attributes:
        documents: those next to the logs, by their paths in the folder; for the truth about synthetic logs only the
            name.
    """

    cluster: ClusterLogs
    is_folder: bool
    documents: Mapping[str, bytes]


def list_logs(source: Path) -> RemoteSource | UsageError:
    """The part of a source on this machine; or why there is none.

    Raises:
        EnvironmentFailure: it cannot be read.
    """
    try:
        cluster = find_logs(source)
    except UsageError as error:
        return error
    paths = {name: cluster.documents / name for name in (*GENESIS_FILES, META_FILE, TOPOLOGY_FILE, *PING_FILES)}
    documents = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
    if (cluster.documents / TRUTH_FILE).is_file():
        documents[TRUTH_FILE] = b""
    for file in cluster.files:
        _ = file.content  # read here, and sent with the file
    return RemoteSource(cluster, source.is_dir(), documents)


class Elsewhere:
    """The same of other machines' logs.

    Args:
        source: their path there.
        copies: a folder of this machine for the documents next to them.
    """

    def __init__(self, source: Path, machines: Machines, copies: Path) -> None:
        self._source, self._machines, self._copies = source.absolute(), machines, copies
        self.is_folder = True
        self._owners: dict[str, HostLogs] = {}

    def find(self) -> ClusterLogs:
        """The logs of all machines as those of one cluster, and copies of the documents next to them.

        Raises:
            UsageError: no machine has such logs, or two have different ones under the same name.
            EnvironmentFailure: they cannot be read.
        """
        answers = self._machines.ask_each(list_logs, self._source)
        result = {machine: answer for machine, answer in answers.items() if isinstance(answer, RemoteSource)}
        if not result:
            reason = next(answer for answer in answers.values() if isinstance(answer, UsageError))
            raise UsageError(f"{reason.message} (on {listed(sorted(answers))})", reason.hint)
        self.is_folder = any(remote_source.is_folder for remote_source in result.values())
        for name, content in _same({machine: remote_source.documents for machine, remote_source in result.items()}):
            write_bytes(self._copies / name, content)
        merged = replace(
            _merged({machine: remote_source.cluster for machine, remote_source in result.items()}), copied=self._copies
        )
        self._owners = {file.name: host for host in merged.hosts for file in host.files}
        return merged

    def text_hash(self, file: LogFile) -> str:
        """The hash of a log's text, computed on a machine that has it."""
        results: list[str] = self._machines.map(text_hash, [file], at=lambda _: self._owners[file.name].at)
        return results[0]


def _same(documents: Mapping[str, Mapping[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Every document once.

    Raises:
        UsageError: two machines have different ones.
    """
    first: dict[str, tuple[str, bytes]] = {}
    for machine, contents in documents.items():
        for name, content in contents.items():
            other, known = first.setdefault(name, (machine, content))
            if known != content:
                raise UsageError(
                    f"{name} on {machine} differs from {name} on {other}",
                    "the documents of a cluster must be the same on every machine that has them",
                )
    return ((name, content) for name, (_, content) in first.items())


def _merged(clusters: Mapping[str, ClusterLogs]) -> ClusterLogs:
    """The parts on several machines, as one cluster.

    Raises:
        UsageError: two machines have different logs of one host.
    """
    seen: dict[str, dict[str, HostLogs]] = defaultdict(dict)
    for machine, cluster in clusters.items():
        for host in cluster.hosts:
            seen[host.name][machine] = host
    hosts = [_one_host(name, places) for name, places in sorted(seen.items())]
    first = next(iter(clusters.values()))
    return replace(
        first,
        hosts=tuple(hosts),
        left_out=tuple(sorted({name for cluster in clusters.values() for name in cluster.left_out})),
        unread=_once([unread for cluster in clusters.values() for unread in cluster.unread]),
        repeated=_once([repeated_log for cluster in clusters.values() for repeated_log in cluster.repeated]),
    )


def _one_host(name: str, places: Mapping[str, HostLogs]) -> HostLogs:
    """A host and the machines with its logs: an empty folder of its name on another machine is ignored."""
    having = {machine: host for machine, host in places.items() if host.files} or places
    first = next(iter(having))
    differing = next((machine for machine, host in having.items() if _described(host) != _described(having[first])), "")
    if differing:
        raise UsageError(
            f"the logs of {name} on {differing} differ from those on {first}",
            "keep a host's logs on one machine, or on shared storage",
        )
    return replace(having[first], at=tuple(having))


def _described(host: HostLogs) -> list[tuple[str, int, str]]:
    """A signature for whether two machines have the same logs, without reading them completely."""
    return [(file.name, file.content.size_bytes, file.content.sample_hash) for file in host.files]


def _once(items: Sequence[Named]) -> tuple[Named, ...]:
    return tuple(dict.fromkeys(items))
