"""Monitor a server under load: read every source once a second, each on its own thread."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from chainmark.core.errors import UsageError
from chainmark.core.storage import storage_errors
from chainmark.network.container import container_called
from chainmark.network.sampling import Ticker
from chainmark.network.server_postgres import PostgresUsage
from chainmark.network.server_scrape import MetricsPage, parse_scrape
from chainmark.network.server_series import Readings, Resource, SeriesRecorder, SourceState, Watched
from chainmark.network.server_usage import CGROUP, MEMORY, PROCESS, CgroupUsage, DiskUsage, NoReading, ProcessUsage
from chainmark.network.witness import listening_processes

GLANCE_S = 0.2
_NAMES = ("process", "cgroup", "machine", "postgres")


@dataclass(frozen=True)
class ServerSources:
    """The sources that are read about a server under load.

    By default, the processes of a server that listens on this machine are found by its address.

    Attributes:
        pids: its processes; their child processes are included.
        cgroup: the folder of its control group (version 2).
        container: the name of its docker or podman container on this machine; replaces ``cgroup``.
        scrapes: pages of metrics in the format of Prometheus, ``URL`` or ``NAME=URL``.
        postgres: the database behind it, as a libpq connection string. Its password is used, and never stored.

    Example:
        >>> sources = cm.ServerSources(scrapes=["pool=http://127.0.0.1:8080/metrics"])
        >>> sources.is_given
        True
    """

    pids: Sequence[int] = ()
    cgroup: Path | None = None
    scrapes: Sequence[str] = ()
    postgres: str | None = field(default=None, repr=False)
    container: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether any source was given."""
        return bool(self.pids or self.cgroup or self.container or self.scrapes or self.postgres)


# Default: the server's processes, found by its address.
BY_ADDRESS = ServerSources()


class UsageSource(Protocol):
    """A source that is read once a second.

    Attributes:
        source: its name; what: a description in words.
        glances: whether it also needs short reads in between.
    """

    source: str
    what: str
    glances: bool

    def read(self, recorder: SeriesRecorder) -> None:
        """One reading; raises `NoReading` if there is none this time."""

    def glance(self) -> None:
        """A cheap short read, several times a second."""

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """The readings, with their limits."""

    def close(self) -> None:
        """Close what is open."""


@dataclass
class _Watcher:
    """A source, with the number of its successful readings."""

    source: UsageSource
    recorder: SeriesRecorder
    read: int = 0
    missed: int = 0
    why: str = ""

    def tick(self) -> None:
        try:
            self.source.read(self.recorder)
        except NoReading as silent:
            self.missed, self.why = self.missed + 1, str(silent)
        else:
            self.read += 1

    def state(self) -> SourceState:
        return SourceState(self.source.source, self.source.what, self.read, self.missed, self.why)


class ServerWatch:
    """Watches one server from entering the context until `finish` is called or the context exits.

    Args:
        sources: what to read.
        url: address of the server, by which its processes are found if no source is given.

    Raises:
        UsageError: a process does not run, a folder is not a control group, or an address is invalid.
        EnvironmentFailure: a page of metrics or a database does not respond.
    """

    def __init__(self, sources: ServerSources, url: str) -> None:
        self._recorder = SeriesRecorder()
        self._watchers: list[_Watcher] = []
        self._folder, self._opened, self._ticking = ExitStack(), ExitStack(), ExitStack()
        with ExitStack() as failing:
            failing.callback(self.close)
            folder = self._folder.enter_context(tempfile.TemporaryDirectory(prefix="chainmark-metrics-"))
            self._pages = Path(folder)
            self._open(sources, url)
            failing.pop_all()

    def _open(self, sources: ServerSources, url: str) -> None:
        for source in _of_this_machine(sources, url):
            self._add(source)
        used_names = set(_NAMES)
        for text in sources.scrapes:
            name, place = parse_scrape(text, used_names)
            used_names.add(name)
            self._add(MetricsPage(name, place, self._pages))
        if sources.postgres is not None:
            self._add(PostgresUsage(sources.postgres))

    def _add(self, source: UsageSource) -> None:
        self._opened.callback(source.close)
        self._watchers.append(_Watcher(source, self._recorder))

    def __enter__(self) -> Self:
        for watcher in self._watchers:
            self._ticking.callback(Ticker(watcher.tick, f"watch-{watcher.source.source}").stop)
            if watcher.source.glances:
                self._ticking.callback(Ticker(watcher.source.glance, "watch-states", GLANCE_S).stop)
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watching, and discard the readings."""
        with self._folder, self._opened:
            self._ticking.close()

    def memory_bytes(self) -> float | None:
        """The current memory use of the server's control group or processes; None if unknown."""
        result = (self._recorder.last(source, MEMORY) for source in (CGROUP, PROCESS))
        return next((value for value in result if value is not None), None)

    def finish(self, pages: Path) -> Watched:
        """End the watching and return all readings.

        Args:
            pages: the folder that gets the pages of metrics as they came; it is made if there are any.
        """
        self._ticking.close()
        for watcher in self._watchers:
            watcher.tick()
        self._opened.close()
        for watcher in self._watchers:
            if isinstance(watcher.source, MetricsPage):
                watcher.source.parse(self._recorder)
        self._keep(pages)
        series = self._recorder.series()
        resources = [resource for item in self._watchers for resource in item.source.resources(series)]
        databases = [item.source for item in self._watchers if isinstance(item.source, PostgresUsage)]
        return Watched(
            tuple(item.state() for item in self._watchers),
            tuple(series),
            tuple(resources),
            tuple(statement for database in databases for statement in database.statements(series)),
        )

    def _keep(self, pages: Path) -> None:
        paths = sorted(self._pages.iterdir())
        if paths:
            with storage_errors(pages):
                pages.mkdir(parents=True, exist_ok=True)
                for path in paths:
                    shutil.copyfile(path, pages / path.name)


def _of_this_machine(sources: ServerSources, url: str) -> list[UsageSource]:
    """The server's processes or its control group, and the machine's disks."""
    pids = set(sources.pids)
    if sources.container is not None:
        return [*_of_container(sources.container, sources), DiskUsage()]
    if not pids and sources.cgroup is None:
        listening = listening_processes(url)
        # A server in the generator's own process cannot be separated from the generator.
        pids = listening if os.getpid() not in listening else set()
    usage_sources: list[UsageSource] = [CgroupUsage(sources.cgroup)] if sources.cgroup is not None else []
    usage_sources += [ProcessUsage(pids)] if pids else []
    return [*usage_sources, DiskUsage()] if usage_sources else []


def _of_container(name: str, sources: ServerSources) -> list[UsageSource]:
    """Its control group, or its processes if the engine gave it no readable one."""
    if sources.cgroup is not None:
        raise UsageError(
            "`--server-container` and `--server-cgroup` both name the server's group", "give only one of them"
        )
    container = container_called(name)
    others: list[UsageSource] = [ProcessUsage(sources.pids)] if sources.pids else []
    if container.group is not None:
        group = CgroupUsage(container.group)
        group.what = f"the container {name}"
        return [group, *others]
    processes = ProcessUsage({container.pid, *sources.pids})
    processes.what = f"the container {name}: {processes.what}"
    return [processes]
