"""The part of a network on one host, for a client on another machine: homes, programs, processes, samples, the clock.

An agent belongs to its client. It stops its processes when the client is silent for a while; the kernel kills them if
the agent itself dies, as :mod:`.processes` describes. So all starts must come from one thread that lives as long.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import signal
import socket
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.storage import is_full, storage_errors
from chainmark.network.processes import (
    NodeProcess,
    ProcessGroup,
    add_neighbours,
    kernel_of_processes,
    remove_neighbours,
)
from chainmark.network.sampling import ResourceSampler, Ticker

SILENCE_MAX_S = 20.0
SPACE_HINT = "free some space there, or set TMPDIR of its worker to another disk"
# In a command, the place of a node's program.
PROGRAM = "{program}"
# The folder of an agent's homes, and before it is locked.
_PREFIX, _NEW_PREFIX = "chainmark-host-", "chainmark-new-host-"
_LOOK_S = 1.0
_CONNECT_S = 2.0
_CONNECTED_AT_ONCE = 16


@dataclass(frozen=True)
class HostCapacity:
    """What a host has."""

    cores: int
    memory_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class ProcessState:
    """Whether a process has ended, and how if that was unexpected."""

    ended: bool
    death: str | None


@dataclass(frozen=True)
class HostStatus:
    """A host at one moment.

    Attributes:
        now_ns: the time of its clock when the report was complete, in ns since the epoch.
        took_ns: how long the report took to write.
        free_bytes: on the disk of its nodes' homes.
        states: of the newest process of each name.
        deaths: a sentence for every process that ended unexpectedly, earlier ones included.
    """

    now_ns: int
    took_ns: int
    free_bytes: int
    states: Mapping[str, ProcessState]
    deaths: Sequence[str]


@dataclass(frozen=True)
class ProcessRequest:
    """A process of a node to start.

    Attributes:
        node: whose home it uses.
        name: in messages; a new process of that name takes the place of the old one.
        program: the key of its program: its SHA-256, a slash, its name.
        command: with `PROGRAM` for its path.
        log: its name in the home.
        environment: what differs from the machine's own.
    """

    node: str
    name: str
    program: str
    command: Sequence[str]
    log: str
    environment: Mapping[str, str]


class HostFailure(EnvironmentFailure):
    """An error on a host, which does not know by what address its client calls it."""


class HostAgent:
    """Runs the nodes of one network on this machine. Every call shows that the client still exists.

    Args:
        programs: the folder of cached programs, by their keys.
        silence_max_s: time (seconds) without a call after which everything is stopped.
    """

    def __init__(self, programs: Path, silence_max_s: float = SILENCE_MAX_S) -> None:
        self._programs = programs
        _remove_abandoned()
        self._folder, self._held = _locked_folder()
        self._silence_max_s = silence_max_s
        self._heard_s = time.monotonic()
        self._open_calls = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._group = ProcessGroup()
        self._group.__enter__()
        self._processes: dict[str, NodeProcess] = {}
        self._nodes: dict[str, str] = {}  # by the name of a process
        self._objects: dict[str, Any] = {}
        self._neighbours: set[int] = set()
        self._sampler = ResourceSampler({})
        self._tickers = [Ticker(self._look, "silence", _LOOK_S)]

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a public method: the only way in, so that none forgets that the client was heard."""
        self._heard_s = time.monotonic()
        if self._is_closed:
            raise HostFailure(
                f"the host's nodes were stopped: its client was silent for {units.duration(self._silence_max_s)}"
            )
        try:
            with self._lock:
                self._open_calls += 1
            return getattr(self, method)(*arguments)
        except EnvironmentFailure as error:
            raise HostFailure(error.message, SPACE_HINT if is_full(error.__cause__) else error.hint) from error
        except (RuntimeError, ValueError, OSError) as error:
            # As it is, the client would take it for the engine's error of a lost worker.
            raise HostFailure(f"`{method}` failed: {type(error).__name__}: {error}") from error
        finally:
            self._heard_s = time.monotonic()  # the client may wait for the end of one call before it makes the next
            with self._lock:
                self._open_calls -= 1

    def about(self) -> HostCapacity:
        """The resources of this machine."""
        return HostCapacity(
            cores=len(os.sched_getaffinity(0)),
            memory_bytes=psutil.virtual_memory().available,
            free_bytes=self._free_bytes(),
        )

    def report(self) -> HostStatus:
        """Everything that a client must know of a host while a network runs, in one message."""
        began_ns = time.time_ns()
        states = {name: ProcessState(each.ended(), each.death()) for name, each in self._processes.items()}
        free_bytes, deaths = self._free_bytes(), self._group.deaths()
        now_ns = time.time_ns()
        return HostStatus(now_ns, now_ns - began_ns, free_bytes, states, deaths)

    def now_ns(self) -> int:
        """The time of this machine's clock, in ns since the epoch."""
        return time.time_ns()

    def connection_times(self, targets: Sequence[tuple[str, int]], times: int) -> list[list[float]]:
        """Per address and port, the seconds until a connection was accepted, which is one round trip.

        Failed attempts are left out.
        """
        with ThreadPoolExecutor(max(1, min(_CONNECTED_AT_ONCE, len(targets))), "connecting") as pool:
            return list(pool.map(lambda target: _connection_times(target, times), targets))

    def identity(self) -> tuple[str, int]:
        """Where its process IDs are unique, and its own."""
        return kernel_of_processes(), os.getpid()

    def add_neighbours(self, pids: Sequence[int]) -> None:
        """Processes of this machine that belong to the same measurement, until the agent is closed."""
        self._neighbours.update(pids)
        add_neighbours(pids)

    def has_program(self, key: str) -> bool:
        """Whether the cache has the program with this key."""
        return self._program(key).is_file()

    def take_program(self, key: str, content: bytes) -> None:
        """Store a program in the cache.

        Raises:
            EnvironmentFailure: it was changed on the way, or the disk is full.
        """
        if hashlib.sha256(content).hexdigest() != key.partition("/")[0]:
            raise EnvironmentFailure("a program was changed on the way to its host")
        path = self._program(key)
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.{os.getpid()}")
            partial.write_bytes(content)
            partial.chmod(0o755)
            partial.replace(path)

    def home_of(self, node: str) -> str:
        """The path of a node's home on this machine."""
        return str(self._home(node))

    def take_home(self, node: str, content: bytes) -> None:
        """Unpack a node's home, a tar archive."""
        home = self._home(node)
        with storage_errors(home), tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(home, filter="data")

    def start(self, order: ProcessRequest) -> tuple[int, int]:
        """Start a process; return its id and the time of its start."""
        home, program = self._home(order.node), str(self._program(order.program))
        words = [word.replace(PROGRAM, program) for word in order.command]
        process = self._group.start(order.name, words, home / order.log, {**os.environ, **order.environment})
        with self._lock:
            self._processes[order.name] = process
            self._nodes[order.name] = order.node
            # Its application may be a process of its own.
            names = [name for name, node in self._nodes.items() if node == order.node]
            self._sampler.follow(order.node, [self._processes[name].pid for name in names])
            self._sample()
        return process.pid, process.started_ns

    def hold(self, name: str, make: Callable[..., Any], *arguments: Any) -> None:
        """Make an object that lives as long as the agent, such as a load generator, and sample this machine."""
        with self._lock:
            self._objects[name] = make(*arguments)
            self._sample()

    def ask(self, name: str, method: str, *arguments: Any) -> Any:
        """Call a method of an object."""
        return getattr(self._objects[name], method)(*arguments)

    def _sample(self) -> None:
        if len(self._tickers) == 1:
            self._tickers += self._sampler.tickers()

    def signal(self, name: str, number: int, ends: bool) -> None:
        """Send a signal to a process."""
        self._processes[name].signal(signal.Signals(number), ends=ends)

    def kill(self, name: str) -> None:
        """Kill a process and wait for its end."""
        self._processes[name].kill()

    def last_log_lines(self, name: str, count: int) -> str:
        """The end of a process's log."""
        return self._processes[name].last_log_lines(count)

    def read(self, node: str, path: str) -> bytes:
        """A file of a node's home."""
        with storage_errors(self._home(node)):
            return (self._home(node) / path).read_bytes()

    def samples(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What was sampled so far of the processes and of this machine, by its own clock."""
        return self._sampler.processes(), self._sampler.pressure()

    def stop(self) -> list[str]:
        """Stop all processes; return the names of those that had to be killed."""
        for ticker in self._tickers[1:]:
            ticker.stop()
        return self._group.stop()

    def close(self, *, by_silence: bool = False) -> None:
        """Stop everything, and remove the homes."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._objects.clear()  # a generator ends with its object
        try:
            self.stop()
        finally:
            self._group.__exit__(None, None, None)
            remove_neighbours(self._neighbours)
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._held)
        if not by_silence:  # its thread cannot wait for itself
            self._tickers[0].stop()

    def _look(self) -> None:
        """Close if the client is silent: it was killed, or the network between is cut.

        It is not silent while it waits for the end of a call, which may take longer on an overloaded machine.
        """
        if self._is_closed or self._open_calls:
            return
        if time.monotonic() - self._heard_s > self._silence_max_s:
            self.close(by_silence=True)

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self._folder).free

    def _home(self, node: str) -> Path:
        return self._folder / node

    def _program(self, key: str) -> Path:
        return self._programs / key


def _locked_folder() -> tuple[Path, int]:
    """A new folder, and the descriptor that locks it: the kernel frees the lock of a killed agent."""
    new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX))
    descriptor = os.open(new, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    folder = new.with_name(new.name.replace(_NEW_PREFIX, _PREFIX, 1))
    new.rename(folder)
    return folder, descriptor


def _remove_abandoned() -> None:
    """Remove the homes of agents that were killed: they contain the keys of nodes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # locked by its agent, or of another user
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _connection_times(target: tuple[str, int], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        with suppress(OSError), socket.create_connection(target, _CONNECT_S):
            taken.append(time.perf_counter() - began)
    return taken
