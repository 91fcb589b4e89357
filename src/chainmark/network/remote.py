"""The processes of a network whose nodes are on other machines, each with an agent."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import numpy as np
import polars as pl

from chainmark.core.errors import ChainmarkError, EnvironmentFailure, LostMachineError
from chainmark.core.storage import FREE_BYTES_MIN, storage_errors
from chainmark.core.times import utc_now
from chainmark.network.agent import (
    PROGRAM,
    SPACE_HINT,
    HostCapacity,
    HostStatus,
    ProcessRequest,
    ProcessState,
)
from chainmark.network.clocks import ClockOffset, Exchange, clock_offset
from chainmark.network.processes import add_neighbours, kernel_of_processes, remove_neighbours
from chainmark.network.sampling import Ticker

REPORT_S = 1.0
# While the reports of a running network arrive in time, nothing else is asked of its hosts.
REPORT_AGE_S = 2.0
# A process that should end is awaited.
ENDING_AGE_S = 0.2
# Counters of which each host has a part, of which each machine has one, and of which each generator has one.
_OF_HOSTS = ("nodes_ran_s", "nodes_waited_s")
_OF_MACHINES = ("contended_s", "cpu_steal_s", "cpu_total_s")
_OF_GENERATORS = ("generator_ran_s", "generator_waited_s")
# At the start; afterwards every report is an exchange.
FIRST_EXCHANGES = 10
CONNECTIONS = 5  # per pair of hosts, to measure its round trip
_CONFIGURATIONS = frozenset({".toml", ".json", ".yaml", ".yml"})


@dataclass
class RemoteHost:
    """One machine with an agent.

    Attributes:
        address: at which the nodes of other machines reach its nodes.
        call: a method of the agent, by its name, with its arguments; it raises the agent's errors.
        measures: whether it is reserved for load and observation, and runs no node.
    """

    address: str
    call: Callable[..., Any]
    measures: bool = False
    exchanges: list[Exchange] = field(default_factory=list)
    _newest: tuple[float, HostStatus] | None = None
    _changed_s: float = 0.0

    def about(self) -> HostCapacity:
        """Its resources."""
        facts: HostCapacity = self.call("about")
        return facts

    def ask_time(self, times: int = 1) -> None:
        """Compare its clock with this machine's."""
        for _ in range(times):
            sent_ns = time.time_ns()
            there_ns = self.call("now_ns")
            self.exchanges.append(Exchange(sent_ns, there_ns, time.time_ns()))

    def ask_report(self) -> HostStatus:
        """Ask how it is, and compare its clock with this machine's."""
        asked_s, sent_ns = time.monotonic(), time.time_ns()
        report: HostStatus = self.call("report")
        # The time to write the report is not on the way.
        self.exchanges.append(Exchange(sent_ns + report.took_ns, report.now_ns, time.time_ns()))
        self._newest = (asked_s, report)
        return report

    def report(self, max_age_s: float) -> HostStatus:
        """The last report, or a new one if it is older than that, or than the last change by this client."""
        if self._newest is not None:
            asked_s, report = self._newest
            if asked_s > self._changed_s and time.monotonic() - asked_s <= max_age_s:
                return report
        return self.ask_report()

    def deaths(self, max_age_s: float) -> Sequence[str]:
        """A sentence for every process there that ended unexpectedly.

        Raises:
            EnvironmentFailure: it is lost, or its disk is full.
        """
        deaths = self.report(max_age_s).deaths
        if deaths:
            self.require_space()
        return deaths

    def require_space(self) -> None:
        """Check that its nodes can still write.

        Raises:
            EnvironmentFailure: its disk is full. Its nodes will fail, which is not their fault.
        """
        free_bytes = self.report(REPORT_AGE_S).free_bytes
        if free_bytes < FREE_BYTES_MIN:
            raise EnvironmentFailure(
                f"the disk of {self.address} is full: {free_bytes >> 20} MiB are left for its nodes ({utc_now()})",
                SPACE_HINT,
            )

    def clock(self) -> ClockOffset:
        """Its clock so far."""
        return clock_offset(list(self.exchanges))

    def changed(self) -> None:
        """A process was started or ended: earlier reports are void."""
        self._changed_s = time.monotonic()

    def provide(self, program: Path, digest: str) -> str:
        """Make sure that it has a program; return the key of it there."""
        key = f"{digest}/{program.name}"  # a list of its processes shows the name
        if not self.call("has_program", key):
            self.call("take_program", key, program.read_bytes())
        return key


@dataclass
class RemoteProcess:
    """A process on another machine: `chainmark.network.processes.RunningProcess`."""

    name: str
    pid: int
    log_path: Path
    started_ns: int
    host: RemoteHost
    _is_ending: bool = False

    @property
    def is_here(self) -> bool:
        """It is not."""
        return False

    def signal(self, number: signal.Signals, *, ends: bool = False) -> None:
        """Send a signal; after a signal that should end the process, its exit is not a death."""
        self._is_ending = self._is_ending or ends
        self.host.call("signal", self.name, int(number), ends)
        self.host.changed()

    def kill(self) -> None:
        """Kill it, and wait until it has exited; its exit is not a death."""
        self.host.call("kill", self.name)
        self.host.changed()

    def ended(self) -> bool:
        """Whether it has exited."""
        return self._state().ended

    def death(self) -> str | None:
        """How the process ended unexpectedly, or None while it runs or if chainmark stopped it.

        Raises:
            EnvironmentFailure: its host is lost, or the disk there is full.
        """
        death = self._state().death
        if death is not None:
            self.host.require_space()
        return death

    def _state(self) -> ProcessState:
        return self.host.report(ENDING_AGE_S if self._is_ending else REPORT_AGE_S).states[self.name]

    def last_log_lines(self, count: int = 5) -> str:
        """The end of its log, for an error message."""
        lines: str = self.host.call("last_log_lines", self.name, count)
        return lines


@dataclass
class RemoteProcesses:
    """The processes of one network on several hosts: `chainmark.network.processes.RunningProcesses`.

    A node's home is sent to its host when the node is started first, and nowhere else: it contains the node's keys.
    There it has another path, which takes the place of its path here in commands, environments and configurations.

    Attributes:
        host_of: by the name of a node, which is that of its home's folder.
        measuring: the hosts that load and observe; none: this machine does.
    """

    host_of: Mapping[str, RemoteHost]
    measuring: Sequence[RemoteHost] = ()
    _sent: set[str] = field(default_factory=set)
    _logs: dict[tuple[str, str], Path] = field(default_factory=dict)
    _digests: dict[Path, str] = field(default_factory=dict)
    _tickers: list[Ticker] = field(default_factory=list)
    _neighbours: set[int] = field(default_factory=set)  # on this machine

    @property
    def hosts(self) -> list[RemoteHost]:
        """The hosts, each once, those of nodes first."""
        return list({host.address: host for host in (*self.host_of.values(), *self.measuring)}.values())

    @cached_property
    def _agents(self) -> dict[str, tuple[str, int]]:
        """By the address of a host: where its process IDs are unique, and its agent's own."""
        return {host.address: host.call("identity") for host in self.hosts}

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max(1, len(self.hosts)), "hosts")

    def __enter__(self) -> RemoteProcesses:
        self._on_each(lambda host: host.ask_time(FIRST_EXCHANGES))
        # Each on its own: while one host is slow, the others must not take their client for gone.
        self._tickers = [
            Ticker(partial(_look_after, host), f"reports of {host.address}", REPORT_S) for host in self.hosts
        ]
        ours = [*self._agents.values(), (kernel_of_processes(), os.getpid())]
        for kernel in {kernel for kernel, _ in ours}:
            self._introduce(kernel, [pid for its_kernel, pid in ours if its_kernel == kernel])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for ticker in self._tickers:
            with suppress(ChainmarkError, OSError):  # a lost host is reported by what needed it
                ticker.stop()
        remove_neighbours(self._neighbours)
        if isinstance(error, Exception) and not isinstance(error, LostMachineError):  # the logs show why it failed
            for node, name in self._logs:
                with suppress(ChainmarkError, OSError):
                    self._fetch_log(node, name)
        for host in self.hosts:
            with suppress(ChainmarkError, OSError):
                host.call("close")
        self._pool.shutdown()

    def start(
        self, name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> RemoteProcess:
        """Start one process of the node with that home, on its host."""
        home = log_path.parent
        host, program = self.host_of[home.name], Path(command[0])
        there = host.call("home_of", home.name)
        if home.name not in self._sent:
            host.call("take_home", home.name, _packed(home, there))
            self._sent.add(home.name)
        words = [PROGRAM, *(word.replace(str(home), there) for word in command[1:])]
        changed = {
            key: value.replace(str(home), there)
            for key, value in (environment or {}).items()
            if os.environ.get(key) != value
        }
        key = host.provide(program, self._digest(program))
        order = ProcessRequest(home.name, name, key, words, log_path.name, changed)
        pid, started_ns = host.call("start", order)
        host.changed()
        self._introduce(self._agents[host.address][0], [pid])
        self._logs[home.name, log_path.name] = log_path
        return RemoteProcess(name, pid, log_path, started_ns, host)

    def check_machines(self) -> None:
        """Check the last report of every host.

        Raises:
            EnvironmentFailure: a host is lost, or its disk is full.
        """
        for ticker in self._tickers:
            if (error := ticker.error()) is not None:
                raise error

    def deaths(self, *, max_age_s: float = 0.0) -> list[str]:
        """A sentence for every process that ended unexpectedly.

        Raises:
            EnvironmentFailure: a host is lost, or its disk is full.
        """
        self.check_machines()
        return [death for host in self.hosts for death in host.deaths(max_age_s)]

    def stop(self) -> list[str]:
        """Stop all of them; return the names of those that had to be killed. Their logs are fetched."""
        killed = [name for names in self._on_each(lambda host: host.call("stop")) for name in names]
        self.fetch_logs()
        return killed

    def fetch_logs(self) -> None:
        """Copy every log as it is now to its place here."""
        for node, name in self._logs:
            self._fetch_log(node, name)

    def _fetch_log(self, node: str, name: str) -> None:
        path = self._logs[node, name]
        content = self.host_of[node].call("read", node, name)
        with storage_errors(path):
            path.write_bytes(content)

    def address_of(self, node: str) -> str:
        """The address of a node's host."""
        return self.host_of[node].address

    def round_trips(self, ports: Mapping[str, int]) -> list[float]:
        """The median round trip of every ordered pair of hosts that could connect, s.

        Args:
            ports: by the address of a host, one at which a node of it accepts connections.
        """

        def from_one(host: RemoteHost) -> list[list[float]]:
            targets = [(address, port) for address, port in ports.items() if address != host.address]
            result: list[list[float]] = host.call("connection_times", targets, CONNECTIONS)
            return result

        return [median(times) for pairs in self._on_each(from_one) for times in pairs if times]

    def clocks(self) -> dict[str, ClockOffset]:
        """The hosts' clocks so far, by their addresses."""
        return {host.address: host.clock() for host in self.hosts}

    def joined(self, processes: pl.DataFrame, pressure: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The samples of processes here and on all hosts, and of this machine with the contention of all hosts."""
        elsewhere, hosts = self.samples()
        machines = {self._agents[address][0]: frame for address, frame in hosts.items() if frame.height}
        machines.pop(kernel_of_processes(), None)
        generators = [hosts[host.address] for host in self.measuring]
        return pl.concat([processes, elsewhere]), joined_pressure(
            pressure, list(hosts.values()), list(machines.values()), generators
        )

    def samples(self) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
        """The samples of all processes, and those of each host by its address, in order of time, by this clock."""
        frames = {host.address: (host.clock(), *host.call("samples")) for host in self.hosts}
        processes = [_by_this_clock(frame, clock) for clock, frame, _ in frames.values()]
        return pl.concat(processes).sort("time_ns", "host"), {
            address: _by_this_clock(frame, clock) for address, (clock, _, frame) in frames.items()
        }

    def _introduce(self, kernel: str, pids: Sequence[int]) -> None:
        """Several hosts, and this machine, may be one: then a process of one is no foreign process for the others."""
        if kernel == kernel_of_processes():
            self._neighbours.update(pids)
            add_neighbours(pids)
        for host in self.hosts:
            if self._agents[host.address][0] == kernel:
                host.call("add_neighbours", pids)

    def _digest(self, program: Path) -> str:
        if program not in self._digests:
            self._digests[program] = hashlib.sha256(program.read_bytes()).hexdigest()
        return self._digests[program]

    def _on_each(self, ask: Callable[[RemoteHost], Any]) -> list[Any]:
        return list(self._pool.map(ask, self.hosts))


def _look_after(host: RemoteHost) -> None:
    host.ask_report()
    host.require_space()


def joined_pressure(
    own: pl.DataFrame,
    hosts: Sequence[pl.DataFrame],
    machines: Sequence[pl.DataFrame],
    generators: Sequence[pl.DataFrame] = (),
) -> pl.DataFrame:
    """The samples of this machine, with the nodes' figures and the contention of all machines at the same times.

    Counters of a host are interpolated between its samples, which are at other moments of the same seconds.

    Args:
        machines: one host's of every other machine: hosts that share one all see the same other processes.
        generators: those of the hosts that load and observe, if this machine does not.
    """
    times_ns = own["time_ns"].to_numpy()

    def total(name: str, frames: Sequence[pl.DataFrame]) -> pl.Series:
        # A host on which nothing ever started has no samples.
        series = [
            np.interp(times_ns, frame["time_ns"], frame[name].cast(pl.Float64)) for frame in frames if frame.height
        ]
        return pl.Series(np.sum(series, axis=0) if series else np.full(len(times_ns), np.nan))

    columns = {name: total(name, hosts) for name in _OF_HOSTS}
    columns |= {name: total(name, [own, *machines]) for name in _OF_MACHINES}
    if generators:
        columns |= {name: total(name, generators) for name in _OF_GENERATORS}
        columns["harness_cpu_s"] = total("harness_cpu_s", [own, *generators])
    return own.with_columns(**columns)


def _packed(home: Path, there: str) -> bytes:
    """A home as a tar archive, whose configurations contain its path on its host."""
    content = io.BytesIO()
    with storage_errors(home), tarfile.open(fileobj=content, mode="w") as archive:
        for path in sorted(home.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(home)))
            if not entry.isfile():
                archive.addfile(entry)
                continue
            text = path.read_bytes()
            if path.suffix in _CONFIGURATIONS:
                text = text.replace(str(home).encode(), there.encode())
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return content.getvalue()


def _by_this_clock(frame: pl.DataFrame, clock: ClockOffset) -> pl.DataFrame:
    times: np.ndarray = clock.to_here(frame["time_ns"].to_numpy())
    return frame.with_columns(time_ns=pl.Series(times, dtype=pl.Int64))
