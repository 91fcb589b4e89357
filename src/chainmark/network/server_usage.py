"""The resource use of a server's processes or control group on this machine, read from the kernel's files."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from chainmark.core.errors import UsageError
from chainmark.network.run_queue import PROC
from chainmark.network.server_series import Name, Readings, Resource, SeriesRecorder, Sort, by_name
from chainmark.network.witness import with_descendants

CGROUPS = Path("/sys/fs/cgroup")
PROCESS, CGROUP, MACHINE = "process", "cgroup", "machine"
_LOOK_AGAIN_S = 3.0
# Thread states are not read of a server with more threads: it would use CPU time of the processors under test.
_MOST_THREADS = 256
_THREADS_A_GLANCE = 64
_US = 1e6
_SECTOR_FREE = ("loop", "ram", "zram", "dm-", "md")
# Name, unit and kind of each series; the labels describe it in a sentence.
_CPU: tuple[str, str, Sort] = ("cpu", "cores", "counter")
MEMORY = "memory"
_MEMORY: tuple[str, str, Sort] = (MEMORY, "bytes", "gauge")
_READ: tuple[str, str, Sort] = ("disk read", "bytes/s", "counter")
_WRITTEN: tuple[str, str, Sort] = ("disk written", "bytes/s", "counter")
_WAITING: tuple[str, str, Sort] = ("threads waiting for the disk", "threads", "waiting")
_BUSIEST: tuple[str, str, Sort] = ("busiest thread", "cores", "gauge")
_OPEN: tuple[str, str, Sort] = ("open files", "files", "gauge")
_THREADS: tuple[str, str, Sort] = ("threads", "threads", "gauge")
_NETWORK: Mapping[str, tuple[str, str, Sort]] = {
    "received": ("network received", "bytes/s", "counter"),
    "sent": ("network sent", "bytes/s", "counter"),
}


class NoReading(Exception):  # noqa: N818 - a temporary failure of a source, which is counted and not an error
    """A source did not respond this time; the message says why."""


@dataclass(frozen=True)
class ResourceLimits:
    """The amount of a limited resource; None: unknown."""

    cores: float | None = None
    cores_are: str = ""
    memory_bytes: float | None = None
    memory_is: str = ""
    files: float | None = None
    tasks: float | None = None


class ProcessUsage:
    """The sum of a server's processes and their children.

    Args:
        pids: the initial ones; their children are looked up every few seconds.

    Raises:
        UsageError: one of them does not run.
    """

    source = PROCESS
    glances = True

    def __init__(self, pids: Collection[int]) -> None:
        for pid in pids:
            if not psutil.pid_exists(pid):
                raise UsageError(
                    f"there is no process with ID {pid}", "`--server-pid` takes the ID of a process on this machine"
                )
        self._first = tuple(sorted(pids))
        self._names = {row[0]: Name(PROCESS, *row) for row in _process_rows()}
        self._pids: set[int] = set(pids)
        self._looked_s = -math.inf
        self._before: dict[int, tuple[float, ...]] = {}
        self._grown = [0.0, 0.0, 0.0]
        self._threads = _ThreadTimes()
        self._waiting = _Average()
        self._pause = 0
        self.limits = process_limits(self._first[0])
        self.what = f"process {', '.join(map(str, self._first))} and its children"

    def read(self, recorder: SeriesRecorder) -> None:
        """One reading of all values.

        Raises:
            Silent: none of the processes runs.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_AGAIN_S:
            self._pids, self._looked_s = with_descendants(self._first), now_s
        rows = {pid: row for pid in self._pids if (row := _process_row(pid)) is not None}
        if not rows:
            raise NoReading("its processes have ended")
        time_ns = time.time_ns()
        for pid, row in rows.items():
            before = self._before.get(pid)
            if before is None and self._before:
                before = (0.0, 0.0, 0.0)  # it began since
            for at in range(3):
                self._grown[at] += max(0.0, row[at] - before[at]) if before else 0.0
        self._before = {pid: row[:3] for pid, row in rows.items()}
        kinds: dict[tuple[str, str, Sort], float | None] = {
            **dict(zip((_CPU, _READ, _WRITTEN), self._grown, strict=True)),
            **{kind: sum(row[3 + at] for row in rows.values()) for at, kind in enumerate((_MEMORY, _OPEN, _THREADS))},
            _BUSIEST: self._threads.busiest(rows, time_ns),
            _WAITING: self._waiting.taken(),
            **{_NETWORK[way]: total for way, total in _network(next(iter(rows))).items()},
        }
        for kind, value in kinds.items():
            if value is not None:
                recorder.add(time_ns, self._names[kind[0]], value)

    def glance(self) -> None:
        """Count the threads that wait for the disk now; the more there are, the less often."""
        if self._pause > 0:
            self._pause -= 1
            return
        states = list(_states(self._pids))
        self._pause = len(states) // _THREADS_A_GLANCE
        if len(states) <= _MOST_THREADS:
            self._waiting.add(states.count("D"))

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """The readings, with their limits."""
        return _resources(by_name(series, PROCESS), self.limits)

    def close(self) -> None:
        """Nothing is open."""


class CgroupUsage:
    """A control group (version 2), read from its files.

    Raises:
        UsageError: the folder is not a control group.
    """

    source = CGROUP
    glances = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder if folder.is_absolute() and folder.exists() else CGROUPS / str(folder).lstrip("/")
        if not (self._folder / "cgroup.procs").is_file() or not (self._folder / "cpu.stat").is_file():
            raise UsageError(
                f"`{folder}` is not a cgroup v2 directory",
                "give a folder below `/sys/fs/cgroup` that has `cpu.stat`",
            )
        self._names = {row[0]: Name(CGROUP, *row) for row in _process_rows()}
        self.limits = cgroup_limits(self._folder)
        self.what = f"the control group {folder}"

    def read(self, recorder: SeriesRecorder) -> None:
        """One reading of all values.

        Raises:
            Silent: it was removed.
        """
        time_ns = time.time_ns()
        try:
            used_s = _fields(self._folder / "cpu.stat")["usage_usec"] / _US
        except (OSError, KeyError, ValueError) as error:
            raise NoReading("it was removed") from error
        disk = _disk(self._folder)
        stalled = _pressure(self._folder / "io.pressure")
        kinds: dict[tuple[str, str, Sort], float | None] = {
            _CPU: used_s,
            _MEMORY: _number(self._folder / "memory.current"),
            _READ: disk.get("rbytes"),
            _WRITTEN: disk.get("wbytes"),
            _THREADS: _number(self._folder / "pids.current"),
            _STALLED: stalled,
            **{_NETWORK[way]: total for way, total in _network(next(_pids(self._folder), None)).items()},
        }
        for kind, value in kinds.items():
            if value is not None:
                recorder.add(time_ns, self._names[kind[0]], value)

    def glance(self) -> None:
        """Nothing: the kernel reports how long the group waited for disks."""

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """The readings, with their limits."""
        return _resources(by_name(series, CGROUP), self.limits)

    def close(self) -> None:
        """Nothing is open."""


class DiskUsage:
    """The utilisation of this machine's disks, by all processes."""

    source = MACHINE
    glances = False
    what = "the disks of this machine"

    def read(self, recorder: SeriesRecorder) -> None:
        """One reading of every disk that was used at all.

        Raises:
            Silent: this machine does not report it.
        """
        time_ns = time.time_ns()
        try:
            disks = psutil.disk_io_counters(perdisk=True, nowrap=False)
        except (OSError, RuntimeError) as error:
            raise NoReading(str(error)) from error
        for disk, counters in disks.items():
            busy_ms = getattr(counters, "busy_time", 0)
            if busy_ms and not disk.startswith(_SECTOR_FREE) and (Path("/sys/block") / disk).exists():
                recorder.add(time_ns, Name(MACHINE, f"disk {disk} busy", "fraction", "counter"), busy_ms / 1000.0)

    def glance(self) -> None:
        """Nothing more."""

    def resources(self, series: Collection[Readings]) -> Iterator[Resource]:
        """Every disk: at most it is busy all of the time."""
        for name, reading_series in by_name(series, MACHINE).items():
            yield Resource(f"the {name.removesuffix(' busy')}", reading_series, 1.0, "100 % of the time")

    def close(self) -> None:
        """Nothing is open."""


_STALLED: tuple[str, str, Sort] = ("time waiting for the disk", "fraction", "counter")


def _process_rows() -> list[tuple[str, str, Sort]]:
    own = [_CPU, _MEMORY, _READ, _WRITTEN, _WAITING, _BUSIEST, _OPEN, _THREADS, _STALLED]
    return [*own, *_NETWORK.values()]


def _resources(read: Mapping[str, Readings], limits: ResourceLimits) -> Iterator[Resource]:
    """Sorted by priority; the first of two that are full from one level on is named."""
    messages: list[tuple[str, str, float | None, str]] = [
        ("cpu", "the server's CPU", limits.cores, limits.cores_are),
        ("busiest thread", "the server's busiest thread", 1.0, "one core per thread"),
        ("memory", "the server's memory", limits.memory_bytes, limits.memory_is),
        ("open files", "the server's open files", limits.files, "its open-file limit"),
        ("threads", "the server's threads", limits.tasks, "the task limit of its control group"),
        ("time waiting for the disk", "the disk", 1.0, "100 % of the time"),
        ("threads waiting for the disk", "the disk", None, ""),
        ("disk read", "the server's disk reads", None, ""),
        ("disk written", "the server's disk writes", None, ""),
        ("network received", "the server's received network traffic", None, ""),
        ("network sent", "the server's sent network traffic", None, ""),
    ]
    for name, label, limit, limit_is in messages:
        if name in read:
            yield Resource(label, read[name], limit, limit_is if limit else "", is_cpu=name == "cpu")


@dataclass
class _Average:
    """The mean of the counts since the last call."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total, self.count = self.total + value, self.count + 1

    def taken(self) -> float | None:
        """The mean, None without any; then it restarts."""
        mean = self.total / self.count if self.count else None
        self.total, self.count = 0.0, 0
        return mean


@dataclass
class _ThreadTimes:
    """The run time of each thread."""

    before: dict[int, int] = field(default_factory=dict)
    at_ns: int = 0

    def busiest(self, pids: Collection[int], time_ns: int) -> float | None:
        """The largest share of the time since the last call that one thread ran; None: unknown."""
        now: dict[int, int] = {}
        for pid in pids:
            threads = _tasks(pid)
            if len(threads) > _MOST_THREADS:
                return None
            now |= {int(thread.name): ran for thread in threads if (ran := _ran_ns(thread)) is not None}
        took_ns = time_ns - self.at_ns
        shares = [(ran - self.before[item]) / took_ns for item, ran in now.items() if item in self.before]
        self.before, self.at_ns = now, time_ns
        return max(shares, default=None)


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def _ran_ns(thread: Path) -> int | None:
    try:
        return int((thread / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _states(pids: Collection[int]) -> Iterator[str]:
    for pid in pids:
        threads = _tasks(pid)
        if len(threads) > _MOST_THREADS:
            yield from "?" * len(threads)
            return
        for thread in threads:
            try:
                yield (thread / "stat").read_text().rpartition(")")[2].split()[0]
            except (OSError, IndexError):
                continue


def _process_row(pid: int) -> tuple[float, ...] | None:
    """CPU seconds, bytes read and written; RSS, open files, threads; None if it is gone or not readable."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times, counters = process.cpu_times(), process.io_counters()
            return (
                times.user + times.system,
                float(counters.read_bytes),
                float(counters.write_bytes),
                float(process.memory_info().rss),
                float(process.num_fds()),
                float(process.num_threads()),
            )
    except psutil.Error:
        return None


def _network(pid: int | None) -> dict[str, float]:
    """Bytes that the network namespace of a process received and sent, over all its interfaces."""
    try:
        lines = (PROC / str(pid) / "net" / "dev").read_text().splitlines()[2:]
        columns = [line.partition(":")[2].split() for line in lines]
        return {
            direction: float(sum(int(column[at]) for column in columns))
            for direction, at in (("received", 0), ("sent", 8))
        }
    except (OSError, ValueError, IndexError):
        return {}


def process_limits(pid: int) -> ResourceLimits:
    """The CPU limit of this process: of its affinity, its control group, the machine."""
    cores, cores_are = _cores(pid)
    try:
        files: float | None = float(psutil.Process(pid).rlimit(psutil.RLIMIT_NOFILE)[0])
    except (psutil.Error, OSError, AttributeError):
        files = None
    folder = group_of(pid)
    group = cgroup_limits(folder) if folder else ResourceLimits()
    memory: tuple[float, str] = (float(psutil.virtual_memory().total), "the machine's memory")
    if group.memory_bytes is not None and group.memory_bytes < memory[0]:
        memory = group.memory_bytes, group.memory_is
    return ResourceLimits(cores, cores_are, *memory, files=files)


def _cores(pid: int) -> tuple[float | None, str]:
    try:
        allowed = float(len(os.sched_getaffinity(pid)))
    except OSError:
        return None, ""
    folder = group_of(pid)
    quota = _quota_cores(folder) if folder else None
    if quota is not None and quota < allowed:
        return quota, "the quota of its control group"
    return allowed, "the cores that it may run on"


def cgroup_limits(folder: Path) -> ResourceLimits:
    """The limit of a control group, by its own files, those of its ancestors, and the affinity of its processes."""
    quota, memory = _quota_cores(folder), _least(folder, "memory.max")
    cores = float(os.cpu_count() or 1), "the machine's cores"
    if (allowed := _allowed_cores(folder)) and allowed < cores[0]:
        cores = allowed, "the cores that its processes may run on"
    if quota is not None and quota < cores[0]:
        cores = quota, "its quota"
    limits = (float(psutil.virtual_memory().total), "the machine's memory")
    if memory is not None:
        limits = (memory, "the limit of its control group")
    return ResourceLimits(*cores, *limits, tasks=_least(folder, "pids.max"))


def group_of(pid: int) -> Path | None:
    """The folder of its control group, if this machine has version 2."""
    try:
        lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if path is None or not (CGROUPS / "cgroup.controllers").exists():
        return None
    return CGROUPS / path.lstrip("/")


def _upwards(folder: Path) -> Iterator[Path]:
    while (folder / "cgroup.procs").exists():
        yield folder
        folder = folder.parent


def _allowed_cores(folder: Path) -> float | None:
    """The cores on which its processes may run together; None without a readable process."""
    cores: set[int] = set()
    for pid in _pids(folder):
        with suppress(OSError):
            cores |= os.sched_getaffinity(pid)
    return float(len(cores)) or None


def _quota_cores(folder: Path) -> float | None:
    """The minimum of its own and of its ancestors."""
    results = []
    for upward in _upwards(folder):
        try:
            quota, period = (upward / "cpu.max").read_text().split()
            results += [float(quota) / float(period)] if quota != "max" else []
        except (OSError, ValueError):
            continue
    return min(results, default=None)


def _least(folder: Path, name: str) -> float | None:
    return min((value for upward in _upwards(folder) if (value := _number(upward / name)) is not None), default=None)


def _number(path: Path) -> float | None:
    """A file's only figure; None if there is none, or no limit."""
    try:
        return float(path.read_text().strip().replace("max", ""))
    except (OSError, ValueError):
        return None


def _fields(path: Path) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def _disk(folder: Path) -> dict[str, float]:
    """Bytes read and written, over all disks."""
    results: dict[str, float] = {}
    try:
        for line in (folder / "io.stat").read_text().splitlines():
            for pair in line.split()[1:]:
                name, _, value = pair.partition("=")
                results[name] = results.get(name, 0.0) + float(value)
    except (OSError, ValueError):
        return results
    return results


def _pressure(path: Path) -> float | None:
    """Seconds in which some task of the group waited."""
    try:
        return float(path.read_text(encoding="ascii").splitlines()[0].rsplit("total=", 1)[1]) / _US
    except (OSError, ValueError, IndexError):
        return None


def _pids(folder: Path) -> Iterator[int]:
    """Its own processes, then those of its descendants: container engines put a container's processes there."""
    for path in (folder / "cgroup.procs", *folder.glob("*/**/cgroup.procs")):
        with suppress(OSError, ValueError):
            yield from map(int, path.read_text().split())
