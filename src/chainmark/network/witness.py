"""Watching processes of this machine while something is measured: whether they waited for others."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

import numpy as np
import psutil

from chainmark.network.run_queue import NS, Contention, RunQueue
from chainmark.network.sampling import Ticker

_PORTS = {"http": 80, "https": 443}


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
