"""Whether our own processes waited for a processor while others had it.

The kernel says of every thread how long it ran and how long it was ready to run and did not (`schedstat`). Threads also
wait for each other, which is their own affair. So what counts as lost to others is at most the processor time that
others had: not that of processes which give way (SCHED_IDLE, niceness from 10 on), because the scheduler gives them
what is left. `docs/concepts/validity.md` has the measurements behind the constants.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import numpy as np
import psutil

from chainmark.network.sampling import Ticker

PROC = Path("/proc")
NS = 1e9
# Who runs less than this share of one processor has waits too short for a share of them to mean anything.
LEAST_BUSY_SHARE = 0.05
# A weight of a tenth of the usual one.
YIELDING_NICE = 10
_SCHED_IDLE = 5
_KERNEL_THREADS = 2
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PORTS = {"http": 80, "https": 443}


class RunQueue:
    """How long the threads of some processes ran, and how long they waited for a processor, since the first reading."""

    def __init__(self) -> None:
        self.ran_s = 0.0
        self.waited_s = 0.0
        self.known = True
        self._before: dict[tuple[int, int], tuple[int, int]] | None = None

    def read(self, pids: Collection[int]) -> None:
        """Add what happened since the last reading; a thread that ended in between is left out from then on."""
        now = {(pid, thread): times for pid in pids for thread, times in self._threads(pid)}
        if self._before is not None:
            for thread, (ran_ns, waited_ns) in now.items():
                ran_before_ns, waited_before_ns = self._before.get(thread, (0, 0))
                self.ran_s += max(0, ran_ns - ran_before_ns) / NS
                self.waited_s += max(0, waited_ns - waited_before_ns) / NS
        self._before = now

    def _threads(self, pid: int) -> Iterator[tuple[int, tuple[int, int]]]:
        try:
            threads = list((PROC / str(pid) / "task").iterdir())
        except OSError:
            return
        for thread in threads:
            try:
                text = (thread / "schedstat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                # It has ended, or this kernel keeps no such account.
                self.known = self.known and (PROC / "self" / "schedstat").exists()
                continue
            except OSError:
                self.known = False
                continue
            ran_ns, waited_ns, _ = map(int, text.split())
            yield int(thread.name), (ran_ns, waited_ns)


@dataclass(frozen=True)
class _Process:
    """What /proc/PID/stat says of it; times in seconds."""

    user_s: float
    system_s: float
    nice: int
    policy: int
    is_kernel: bool


class Contention:
    """Processor time, in seconds since the first reading, of processes that are none of ours and do not give way."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: tuple[dict[int, _Process], float] | None = None

    def read(self, ours: Collection[int]) -> None:
        """Add what others had since the last reading."""
        times = psutil.cpu_times()
        # Niced processes' user time has an account of its own: of those that do not give way it is added below.
        busy_s = times.user + times.system + times.irq + times.softirq
        now = dict(_processes())
        if self._before is not None:
            processes_before, busy_before_s = self._before
            groups = {_autogroup(pid)[0] for pid in ours}
            others_s = busy_s - busy_before_s
            for pid, process in now.items():
                before = processes_before.get(pid)
                user_s = process.user_s - (before.user_s if before else 0.0)
                system_s = process.system_s - (before.system_s if before else 0.0)
                if user_s + system_s <= 0.0:
                    continue
                niced = process.nice > 0
                if pid in ours or process.is_kernel or _gives_way(pid, process, groups):
                    others_s -= system_s + (0.0 if niced else user_s)
                elif niced:
                    others_s += user_s
            self.seconds += max(0.0, others_s)
        self._before = (now, busy_s)


def _processes() -> Iterator[tuple[int, _Process]]:
    for pid in psutil.pids():
        try:
            text = (PROC / str(pid) / "stat").read_text()
        except OSError:
            continue
        # Its name stands in parentheses and may hold anything; proc(5) numbers what follows from 3 on.
        fields = text[text.rindex(")") + 2 :].split()
        user_s, system_s = int(fields[11]) / _TICKS_PER_S, int(fields[12]) / _TICKS_PER_S
        is_kernel = int(fields[1]) == _KERNEL_THREADS or pid == _KERNEL_THREADS
        yield pid, _Process(user_s, system_s, int(fields[16]), int(fields[38]), is_kernel)


def _gives_way(pid: int, process: _Process, groups: Collection[str]) -> bool:
    """Whether the scheduler lets ours go first.

    Where sessions are scheduled as groups (autogroup), niceness counts among the processes of one session only; between
    sessions it is the group's niceness that does.
    """
    group, group_nice = _autogroup(pid)
    if group_nice >= YIELDING_NICE and group not in groups:
        return True
    is_low = process.nice >= YIELDING_NICE or process.policy == _SCHED_IDLE
    return is_low and (not group or set(groups) == {group})


def _autogroup(pid: int) -> tuple[str, int]:
    """Its name and niceness; "" and 0 where processes are not grouped."""
    try:
        if (PROC / "sys/kernel/sched_autogroup_enabled").read_text().strip() != "1":
            return "", 0
        name, _, nice = (PROC / str(pid) / "autogroup").read_text().split()
    except (OSError, ValueError):
        return "", 0
    return name, int(nice)


@dataclass(frozen=True)
class Seconds:
    """What some processes and the machine did in each of a row of intervals, in seconds of processor time.

    Attributes:
        ran, waited: of the watched processes' threads, together; NaN where that is not known.
        contended: had by others that do not give way.
        stolen: of all processors, by the hypervisor, as a share of their time.
    """

    ran: np.ndarray
    waited: np.ndarray
    contended: np.ndarray
    stolen: np.ndarray


class Witness:
    """Watches processes, and what else the machine does, every second. Use as a context manager."""

    def __init__(self, pids: Callable[[], Collection[int]]) -> None:
        self._pids = pids
        self._queue, self._contention = RunQueue(), Contention()
        self._rows: list[tuple[float, ...]] = []
        self._lock = threading.Lock()
        self._ticker: Ticker | None = None

    def __enter__(self) -> Witness:
        self._ticker = Ticker(self.look, "witness")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticker:
            self._ticker.stop()
        self.look()

    def look(self) -> None:
        """Take one reading."""
        with self._lock:
            pids = set(self._pids())
            self._queue.read(pids)
            self._contention.read(pids | {os.getpid()})
            stolen_s = psutil.cpu_times().steal
            queue = self._queue
            known = (queue.ran_s, queue.waited_s) if queue.known and pids else (np.nan, np.nan)
            self._rows.append((time.time_ns(), *known, self._contention.seconds, stolen_s))

    def between(self, edges_ns: np.ndarray) -> Seconds:
        """What happened between each two of these wall times, interpolated between readings."""
        times_ns, ran, waited, contended, stolen = np.array(self._rows, dtype=float).T
        ran, waited, contended, stolen = (
            np.diff(np.interp(edges_ns, times_ns, column)) for column in (ran, waited, contended, stolen)
        )
        processors_s = np.diff(edges_ns) / NS * (os.cpu_count() or 1)
        return Seconds(ran, waited, contended, np.divide(stolen, processors_s))


def lost_share(ran_s: float, waited_s: float, contended_s: float, over_s: float) -> float | None:
    """Of the time in which processes wanted to run, the share in which others ran instead; None: not known.

    Args:
        ran_s, waited_s: of their threads.
        contended_s: what others had.
        over_s: how long it was watched.
    """
    if not np.isfinite(ran_s + waited_s):
        return None
    wanted_s = max(ran_s + waited_s, LEAST_BUSY_SHARE * over_s)
    return float(min(waited_s, contended_s) / wanted_s) if wanted_s > 0.0 else 0.0


def listening_processes(url: str) -> set[int]:
    """The processes that listen at this address, and their descendants; none where it is not on this machine."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)}
        if not all(_is_here(address) for address in addresses):
            return set()
        listening = psutil.net_connections("tcp")
    except (OSError, psutil.Error):
        return set()
    here = [one for one in listening if one.status == psutil.CONN_LISTEN and tuple(one.laddr)[1:2] == (port,)]
    found = {one.pid for one in here if one.pid}
    for pid in list(found):
        try:
            found |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
        except psutil.Error:
            continue
    return found


def _is_here(address: str) -> bool:
    if ipaddress.ip_address(address).is_loopback:
        return True
    return any(one.address == address for several in psutil.net_if_addrs().values() for one in several)
