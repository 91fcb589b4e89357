"""Monitor processes of this machine during a measurement: whether they waited for others."""

from __future__ import annotations

import ipaddress
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

import numpy as np
import psutil

from chainmark.network.run_queue import NS, Contention, RunQueue
from chainmark.network.sampling import Ticker

_LOOK_AGAIN_S = 3.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class PressureSeconds:
    """The activity of some processes and the machine in consecutive intervals, in seconds of CPU time.

    Attributes:
        ran, waited: sum over the watched processes' threads; NaN if unknown.
        contended: used by others with normal priority.
        stolen: by the hypervisor, as a share of the time of all CPUs.
    """

    ran: np.ndarray
    waited: np.ndarray
    contended: np.ndarray
    stolen: np.ndarray


class Witness:
    """Monitors processes, and the machine's other activity, every second. Use as a context manager.

    Args:
        pids: the watched processes.
        behind: those that serve them (a server's node or database): not watched, and not counted among the others,
            whose CPU time competes with ours.
    """

    def __init__(
        self, pids: Callable[[], Collection[int]], behind: Callable[[], Collection[int]] = frozenset[int]
    ) -> None:
        self._pids, self._behind = pids, behind
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
            self._contention.read(pids | set(self._behind()) | {os.getpid()})
            stolen_s = psutil.cpu_times().steal
            queue = self._queue
            known = (queue.ran_s, queue.waited_s) if queue.known and pids else (np.nan, np.nan)
            self._rows.append((time.time_ns(), *known, self._contention.seconds, stolen_s))

    def between(self, edges_ns: Sequence[float] | np.ndarray) -> PressureSeconds:
        """The activity between each two of these wall times, interpolated between readings."""
        times_ns, ran, waited, contended, stolen = np.array(self._rows, dtype=float).T
        ran, waited, contended, stolen = (
            np.diff(np.interp(edges_ns, times_ns, column)) for column in (ran, waited, contended, stolen)
        )
        processors_s = np.diff(edges_ns) / NS * (os.cpu_count() or 1)
        return PressureSeconds(ran, waited, contended, np.divide(stolen, processors_s))


def server_witness(url: str, ours: Collection[int] = ()) -> Witness:
    """A witness of a server's processes, if they are on this machine. Other processes of the measurement are `ours`."""
    pids = listening_processes(url)
    return Witness(lambda: pids, Behind(lambda: pids, ours))


def listening_processes(url: str) -> set[int]:
    """The processes that listen at this address, and their descendants; empty if it is not on this machine."""
    if url.startswith("unix:"):
        return with_descendants(_listening_at(url.removeprefix("unix:")))
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)}
        if not all(_is_here(address) for address in addresses):
            return set()
        listening = psutil.net_connections("tcp")
    except (OSError, psutil.Error):
        return set()
    local = (
        connection
        for connection in listening
        if connection.status == psutil.CONN_LISTEN and tuple(connection.laddr)[1:2] == (port,)
    )
    return with_descendants(connection.pid for connection in local)


def _listening_at(socket_path: str) -> list[int | None]:
    try:
        return [
            net_connection.pid
            for net_connection in psutil.net_connections("unix")
            if str(net_connection.laddr) == socket_path
        ]
    except (OSError, psutil.Error):
        return []


def with_descendants(pids: Iterable[int | None]) -> set[int]:
    """The known ones of these processes, and all that they started."""
    results = {pid for pid in pids if pid}
    for pid in list(results):
        try:
            results |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
        except psutil.Error:
            continue
    return results


class Behind:
    """The processes of this machine that a server's own connections lead to, and those behind them; rarely updated.

    The activity that a load test causes in them is the server's work: a node next to its API on one machine does not
    disturb it. Databases that are reached through sockets in the file system are not found.

    Args:
        pids: the server's processes.
        ours: other processes of the measurement.
    """

    def __init__(self, pids: Callable[[], Collection[int]], ours: Collection[int] = ()) -> None:
        self._pids = pids
        self._known = frozenset(ours)
        self._looked_s = -math.inf

    def __call__(self) -> frozenset[int]:
        """Those found so far, including those that have stopped listening."""
        if time.monotonic() - self._looked_s >= _LOOK_AGAIN_S:
            self._known |= processes_behind(self._pids())
            self._looked_s = time.monotonic()
        return self._known


def processes_behind(pids: Collection[int]) -> frozenset[int]:
    """The processes on this machine that listen where these processes connect to, recursively."""
    try:
        connections = psutil.net_connections("tcp")
    except (OSError, psutil.Error):
        return frozenset()
    listening = {
        tuple(connection.laddr)[1]: connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN and connection.pid
    }
    own_ends = {tuple(connection.laddr) for connection in connections if connection.pid}
    result, new = set[int](), set(pids)
    while new:
        ends = [tuple(connection.raddr) for connection in connections if connection.pid in new and connection.raddr]
        reached = {listening[end[1]] for end in ends if end in own_ends and end[1] in listening}
        new = reached - result - set(pids)
        result |= new
    return frozenset(result)


def _is_here(address: str) -> bool:
    if ipaddress.ip_address(address).is_loopback:
        return True
    return any(item.address == address for several in psutil.net_if_addrs().values() for item in several)
