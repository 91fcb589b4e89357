"""Logs in an object store: their beginnings and the documents next to them are copied here, and imitate the folder.

The logs themselves are copied one host at a time by whoever decodes them, on this machine or on a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from chainmark.core.errors import UsageError
from chainmark.core.storage import storage_errors
from chainmark.store.objects import StoredFile, listed_files
from chainmark.systems.cardano.documents import GENESIS_FILES, META_FILE, PING_FILES, TOPOLOGY_FILE
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs, LogFile, find_logs
from chainmark.systems.cardano.mixing import text_hash
from chainmark.systems.cardano.unread import LOG_LIKE

DOCUMENTS = frozenset({*GENESIS_FILES, META_FILE, TOPOLOGY_FILE, *PING_FILES})
# More than the 4000 lines from which the facts of a log are read; of other files, what shows whether they are logs.
LOG_HEAD_BYTES, OTHER_HEAD_BYTES = 4 << 20, 64 << 10
# Folders: tracer, logs, host, and one below it.
DEPTH = 5
_AT_ONCE = 16


class Stored:
    """Logs at an address of a storage.

    Args:
        address: "s3://bucket/run".
        copies: an empty folder of this machine for the beginnings.
    """

    def __init__(self, address: str, copies: Path) -> None:
        self._address, self._copies, self._folder = address, copies, copies
        self.is_folder = True

    def find(self) -> ClusterLogs:
        """See `find_logs`.

        Raises:
            UsageError: there are no such logs at the address.
            EnvironmentFailure: it cannot be read.
        """
        self.is_folder, files = listed_files(self._address, DEPTH)
        if not self.is_folder:  # a log without a host's name is named after its folder
            self._folder = self._copies / PurePosixPath(self._address).parent.name
        with ThreadPoolExecutor(_AT_ONCE, "beginnings") as pool:
            list(pool.map(self._copy_beginning, files))
        source = self._folder if self.is_folder else self._folder / files[0].name
        try:
            cluster = find_logs(source)
        except UsageError as error:
            raise UsageError(error.message.replace(str(source), self._address), error.hint) from error
        by_name = {file.name: file for file in files}
        hosts = tuple(_in_storage(host, by_name) for host in cluster.hosts)
        return replace(cluster, hosts=hosts, folder=self._address, copied=self._folder)

    def text_hash(self, file: LogFile) -> str:
        """See `chainmark.systems.cardano.mixing.text_hash`."""
        if file.stored is None:
            return text_hash(file)
        with TemporaryDirectory(prefix="chainmark-") as folder:
            path = Path(folder) / file.path.name
            file.stored.copy(path)
            return text_hash(replace(file, path=path))

    def _copy_beginning(self, file: StoredFile) -> None:
        relative = PurePosixPath(file.name)
        if relative.is_absolute() or ".." in relative.parts:
            raise UsageError(f"{file.address} has a name that no folder can contain", "rename it")
        target = self._folder / relative
        if file.name in DOCUMENTS:
            most_bytes = file.size_bytes
        else:
            most_bytes = LOG_HEAD_BYTES if LOG_LIKE.fullmatch(relative.name) else OTHER_HEAD_BYTES
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.beginning(most_bytes))


def _in_storage(host: HostLogs, files: Mapping[str, StoredFile]) -> HostLogs:
    logs = []
    for log in host.files:
        stored = files[log.name]
        logs.append(replace(log, stored_bytes=stored.size_bytes, stored=stored))
    return replace(host, files=tuple(logs))
