"""Executions of a command, one after the other, each by its own launcher; and the resulting samples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.store.files import write_bytes
from chainmark.systems.benchmark.launcher import FIELDS
from chainmark.systems.benchmark.profile import CommandWorkload

# A process with little more memory than its launcher cannot be distinguished from it: the kernel's counts are rounded.
_OWN_SHARE = 1.1
_MOST_OUTPUT = 1 << 20
_KIB = 1024
_SCHEMA = {
    "index": pl.UInt32,
    "time_s": pl.Float64,
    "wall_time_s": pl.Float64,
    "cpu_time_s": pl.Float64,
    "peak_memory_bytes": pl.Float64,
    "preempted_count": pl.Float64,
}


@dataclass(frozen=True)
class Invocation:
    """A command, ready to be started.

    Attributes:
        words: the program by its path, then its arguments.
        environment: all of it.
        folder: working directory; None: a new one for each execution.
        exit_codes: the accepted exit codes.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None
    exit_codes: frozenset[int]


@dataclass(frozen=True)
class CommandExecution:
    """The measurements of one execution.

    Attributes:
        began_s: since the first measured one began.
        left: processes that still ran when it had ended.
    """

    began_s: float
    wall_s: float
    cpu_s: float
    peak_bytes: float | None
    preempted: int
    exit_code: int
    timed_out: bool
    left: int


@dataclass(frozen=True)
class Executed:
    """All measured executions of a run.

    Attributes:
        other_share: CPU use of other programs meanwhile, as a share of all CPUs.
        failure: of the execution that ended the run, including warm-up; "" if all succeeded.
    """

    executions: Sequence[CommandExecution]
    other_share: float
    failure: str = ""

    def samples(self) -> pl.DataFrame:
        """One row each; without the column of the memory if it is unknown for all executions."""
        rows = [
            [
                index,
                execution.began_s,
                execution.wall_s,
                execution.cpu_s,
                execution.peak_bytes,
                float(execution.preempted),
            ]
            for index, execution in enumerate(self.executions)
        ]
        frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        return frame if self.has_memory else frame.drop("peak_memory_bytes")

    @property
    def has_memory(self) -> bool:
        """Whether the peak memory of any execution is known."""
        return any(execution.peak_bytes is not None for execution in self.executions)


def execute_all(command: Invocation, work: CommandWorkload, raw: Path, progress: Progress) -> Executed:
    """Execute a command as often as the workload states; the first failure ends it, because the rest would fail alike.

    Args:
        command: the command to start.
        work: the number of executions.
        raw: folder for the command's output: of the last execution, or of the failed one.
        progress: receives a message per execution.

    Raises:
        EnvironmentFailure: the launcher cannot run.
    """
    executions: list[CommandExecution] = []
    began_s, mark = time.monotonic(), _Mark.now()
    total = work.warm_up + work.executions
    progress.stage("executing the command")
    for number in range(total):
        if number == work.warm_up:
            began_s, mark = time.monotonic(), _Mark.now()
        progress.update(number / total, f"execution {number + 1} of {total}")
        command_execution = _execute(command, work.timeout_s, began_s, raw)
        if failure := _failure(command_execution, command, work):
            return Executed(executions, mark.share_of_others(), f"execution {number + 1} of {total} {failure}")
        if number >= work.warm_up:
            executions.append(command_execution)
    return Executed(executions, mark.share_of_others())


def _failure(command_execution: CommandExecution, command: Invocation, work: CommandWorkload) -> str:
    if command_execution.timed_out:
        return f"did not end within {units.duration(work.timeout_s)}"
    if command_execution.exit_code < 0:
        return f"was killed by signal {-command_execution.exit_code}"
    return (
        ""
        if command_execution.exit_code in command.exit_codes
        else f"ended with exit code {command_execution.exit_code}"
    )


def _execute(command: Invocation, timeout_s: float, origin_s: float, raw: Path) -> CommandExecution:
    with tempfile.TemporaryDirectory(prefix="chainmark-", ignore_cleanup_errors=True) as folder:
        empty = Path(folder) / "work"
        empty.mkdir()
        output, errors = Path(folder) / "stdout", Path(folder) / "stderr"
        began_s = time.monotonic()
        fields = _launched(command, timeout_s, command.folder or empty, (output, errors))
        for path in (output, errors):
            with path.open("rb") as file:
                write_bytes(raw / f"{path.name}.txt", file.read(_MOST_OUTPUT))
    peak_kib = max(fields["largest_kib"], fields["together_kib"])
    return CommandExecution(
        began_s=began_s - origin_s,
        wall_s=fields["wall_ns"] / 1e9,
        cpu_s=fields["cpu_us"] / 1e6,
        peak_bytes=float(peak_kib * _KIB) if peak_kib > _OWN_SHARE * fields["own_kib"] else None,
        preempted=fields["preempted"],
        exit_code=fields["exit_code"],
        timed_out=bool(fields["timed_out"]),
        left=fields["left"],
    )


def _launched(command: Invocation, timeout_s: float, folder: Path, outputs: tuple[Path, Path]) -> dict[str, int]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EnvironmentFailure("`setpriv` was not found", "it is part of util-linux: `apt install util-linux`")
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py"))]
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as results, storage_errors(outputs[0]):
        try:
            with outputs[0].open("wb") as output, outputs[1].open("wb") as errors:
                process = subprocess.Popen(
                    [setpriv, "--pdeathsig", "TERM", "--", *launcher, str(writing), str(timeout_s), *command.words],
                    cwd=folder,
                    env=dict(command.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    pass_fds=[writing],
                    start_new_session=True,
                )
        finally:
            os.close(writing)
        try:
            parts = results.read().split()
        except BaseException:
            process.terminate()  # it ends the command first
            raise
        finally:
            process.wait()
    if len(parts) != len(FIELDS):
        lines = outputs[1].read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no message"]
        raise EnvironmentFailure(
            f"`{command.words[0]}` could not be started: {lines[-1]}", "check that it can run on this machine"
        )
    return dict(zip(FIELDS, map(int, parts), strict=True))


@dataclass(frozen=True)
class _Mark:
    """A starting point for the CPU use."""

    at_s: float
    busy_s: float
    own_s: float

    @classmethod
    def now(cls) -> _Mark:
        """This moment."""
        with Path("/proc/stat").open(encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
        ticks = user + nice + system + irq + softirq
        own = os.times()
        own_s = own.user + own.system + own.children_user + own.children_system
        return cls(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), own_s)

    def share_of_others(self) -> float:
        """The share of all CPUs since then that neither chainmark nor the command used."""
        now = _Mark.now()
        others_s = (now.busy_s - self.busy_s) - (now.own_s - self.own_s)
        processors_s = (now.at_s - self.at_s) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, others_s / processors_s))
