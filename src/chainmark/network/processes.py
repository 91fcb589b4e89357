"""Node processes: started so that they cannot outlive chainmark, monitored, and stopped by their IDs.

Every process runs in a session of its own (the terminal's Ctrl-C does not reach it: chainmark stops it in order) and
asks the kernel to be killed when its parent dies, which covers even SIGKILL of chainmark. The kernel ties that request
to the thread that started the process, so :meth:`ProcessGroup.start` must be called from a thread that lives as long as
the network does; the command line calls it from the main thread.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from chainmark.core.errors import EnvironmentFailure
from chainmark.core.storage import require_space, storage_errors

if TYPE_CHECKING:  # for the types of what only processes on other machines have
    import polars as pl

    from chainmark.network.clocks import ClockOffset

STOP_TIMEOUT_S = 20.0
LOG_TAIL_BYTES = 16_384
LAST_WORDS = 200
PANICS = ("panic: ", "fatal error: ")
# Omitted from a quoted line, so that the same error at two times is one error. CometBFT writes
# `E[2026-11-23|00:00:01.5]`.
TIMESTAMP = re.compile(r"^([A-Z]?\[)?\d{4}[-/]\d\d[-/]\d\d[T |]\d\d:\d\d:\d\d[.,\d]*(Z|[+-]\d\d:?\d\d)?\]?\s+")


@contextmanager
def preferred_threads() -> Iterator[None]:
    """Threads that are started within the context run before the nodes, if this user may set that (root may).

    A load generator that waits for a CPU behind the nodes it loads would measure its own delay. It gets the lowest
    real-time priority, because niceness has no effect between sessions, and each node has its own session. Processes
    that are started later do not inherit it: the calling thread has it only while the context lasts.
    """
    policy, usual = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, usual)


class RunningProcess(Protocol):
    """One process of a network, on this machine or on another one."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def pid(self) -> int:
        """The process id on its machine."""

    @property
    def is_here(self) -> bool:
        """Whether that is this machine."""

    @property
    def log_path(self) -> Path:
        """Its log on this machine."""

    @property
    def started_ns(self) -> int:
        """When it was started, by the clock of its machine, in ns since the epoch."""

    def signal(self, number: signal.Signals, *, ends: bool = False) -> None:
        """Send a signal; after a signal that should end the process, its exit is not a death."""

    def kill(self) -> None:
        """Kill it, and wait until it has exited; its exit is not a death."""

    def ended(self) -> bool:
        """Whether it has exited."""

    def death(self) -> str | None:
        """How the process ended unexpectedly, or None while it runs or if chainmark stopped it."""

    def last_log_lines(self, count: int = 5) -> str:
        """The end of its log, for an error message."""


class RunningProcesses(Protocol):
    """The processes of one network; leaving the context, however, stops every process."""

    def __enter__(self) -> RunningProcesses: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def start(
        self, name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> RunningProcess:
        """Start one process with its output going to ``log_path``."""

    def check_machines(self) -> None:
        """Check that no machine is lost or full: whatever its nodes do then is not their fault."""

    def deaths(self, *, max_age_s: float = 0.0) -> list[str]:
        """A sentence for every process that ended unexpectedly; those of other machines as known so long ago."""

    def stop(self) -> list[str]:
        """Stop all of them; return the names of those that had to be killed."""

    def fetch_logs(self) -> None:
        """Make sure that the logs of other machines are at their places here, as they are now."""

    def address_of(self, node: str) -> str | None:
        """The address of the machine of that node; None: this one."""

    def round_trips(self, ports: Mapping[str, int]) -> list[float]:
        """The round trips between other machines, s; ``ports`` accept connections, by the machines' addresses."""

    def clocks(self) -> dict[str, ClockOffset]:
        """The clocks of other machines so far, by their addresses."""

    def joined(self, processes: pl.DataFrame, pressure: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """This machine's samples of processes and of itself, with those of other machines."""


@dataclass
class NodeProcess:
    """One running node on this machine."""

    name: str
    log_path: Path
    popen: subprocess.Popen[bytes]
    started_ns: int
    stopping: bool = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    @property
    def is_here(self) -> bool:
        """It is."""
        return True

    def signal(self, number: signal.Signals, *, ends: bool = False) -> None:
        """Send a signal; after a signal that should end the process, its exit is not a death."""
        self.stopping = self.stopping or ends
        self.popen.send_signal(number)

    def kill(self) -> None:
        """Kill it, and wait until it has exited; its exit is not a death."""
        self.stopping = True
        if not self.ended():
            self.popen.kill()
            self.popen.wait()

    def ended(self) -> bool:
        """Whether it has exited."""
        return self.popen.poll() is not None

    def death(self) -> str | None:
        """How the process ended unexpectedly, or None while it runs or if chainmark stopped it."""
        code = self.popen.poll()
        if code is None or self.stopping:
            return None
        if code < 0:
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        lines = [line for raw in self._end_of_log() or () if (line := TIMESTAMP.sub("", raw.strip()))]
        # A panic ends with the stack trace, which is not informative.
        last = [line for line in lines if line.startswith(PANICS)][:1] or lines[-1:]
        return f"{self.name} exited with code {code}" + "".join(f", last line `{line[:LAST_WORDS]}`" for line in last)

    def last_log_lines(self, count: int = 5) -> str:
        """The end of the node's log, for an error message."""
        lines = self._end_of_log()
        if lines is None:
            return "(no log)"
        return "\n".join(f"  {self.name} | {line}" for line in lines[-count:]) or "  (its log is empty)"

    def _end_of_log(self) -> list[str] | None:
        """Its last lines; None if there is no log."""
        try:
            with self.log_path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
                return file.read().decode(errors="replace").splitlines()
        except OSError:
            return None


# The groups whose context is active: another network of the same measurement is not a foreign process.
_groups: dict[int, ProcessGroup] = {}
# Processes of the same measurement that other agents on this machine started.
_neighbours: set[int] = set()


def pids_of_all_networks() -> set[int]:
    """The processes of all networks that this process runs now, and of their neighbours."""
    return _neighbours | {process.pid for group in list(_groups.values()) for process in list(group.processes)}


def add_neighbours(pids: Iterable[int]) -> None:
    """Processes of this machine that belong to the measurement: they do not compete with it."""
    _neighbours.update(pids)


def remove_neighbours(pids: Iterable[int]) -> None:
    """Undo `add_neighbours`."""
    _neighbours.difference_update(pids)


def kernel_of_processes() -> str:
    """Where process IDs are unique: the running kernel, and the namespace of process IDs."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"


@dataclass
class ProcessGroup:
    """The processes of one network. Use as a context manager: leaving it, however, stops every process."""

    processes: list[NodeProcess] = field(default_factory=list)

    def __enter__(self) -> ProcessGroup:
        _groups[id(self)] = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            del _groups[id(self)]

    def start(
        self, name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> NodeProcess:
        """Start one process with its output going to ``log_path``.

        Raises:
            EnvironmentFailure: the program or ``setpriv`` (util-linux) is missing, or the log cannot be written.
        """
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise EnvironmentFailure("`setpriv` was not found", "it is part of util-linux: `apt install util-linux`")
        with storage_errors(log_path), log_path.open("ab") as log:
            popen = subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment) if environment is not None else None,
                start_new_session=True,
            )
        process = NodeProcess(name, log_path, popen, time.time_ns())
        self.processes.append(process)
        return process

    def check_machines(self) -> None:
        """Check the disk of each log.

        Raises:
            EnvironmentFailure: one is full.
        """
        for folder in {process.log_path.parent for process in self.processes}:
            require_space(folder)

    def deaths(self, *, max_age_s: float = 0.0) -> list[str]:
        """A sentence for every process that ended unexpectedly."""
        return [death for process in self.processes if (death := process.death())]

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> list[str]:
        """SIGTERM to all, wait, SIGKILL to the remaining ones.

        Returns:
            The names of the processes that had to be killed.
        """
        running = [process for process in self.processes if process.popen.poll() is None]
        for process in running:
            process.stopping = True
            process.popen.terminate()
            process.popen.send_signal(signal.SIGCONT)  # a paused one would not receive it
        deadline = time.monotonic() + timeout_s
        killed = []
        for process in running:
            try:
                process.popen.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.wait()
                killed.append(process.name)
        return killed

    def fetch_logs(self) -> None:
        """Nothing: the processes write them here."""

    def address_of(self, node: str) -> None:
        """All nodes are on this machine."""

    def round_trips(self, ports: Mapping[str, int]) -> list[float]:
        """None: there is only this machine."""
        return []

    def clocks(self) -> dict[str, ClockOffset]:
        """None: there is only this machine's clock."""
        return {}

    def joined(self, processes: pl.DataFrame, pressure: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The same samples."""
        return processes, pressure
