"""What benchmarks of whole processes share: seconds, and the peak memory of a process with all that it starts."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_S = 0.02


@dataclass(frozen=True)
class Ran:
    """A process that has ended: what it printed, how long it and its tree's processors took, and their most memory."""

    output: str
    seconds: float
    cpu_s: float
    peak_mib: float


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path, accepted: Collection[int] = (0,)) -> Ran:
    """Run a command to its end and watch its memory; its output goes through a file in ``folder``.

    Args:
        command: with its arguments.
        environment: of the process.
        folder: for what it prints.
        accepted: exit codes that are no failure: a verdict has one of its own.

    Raises:
        RuntimeError: it failed; the message ends with what it said.
    """
    output, errors = folder / "stdout", folder / "stderr"
    begin, cpu = time.perf_counter(), _cpu_s()
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(command, env=dict(environment), stdout=out, stderr=err)
        try:
            peak = _watch(process)
        except BaseException:
            process.kill()
            process.wait()
            raise
    seconds = time.perf_counter() - begin
    if process.returncode not in accepted:
        error_lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise RuntimeError(error_lines[-1] if error_lines else f"exit {process.returncode}")
    return Ran(output.read_text(encoding="utf-8"), seconds, _cpu_s() - cpu, peak / 2**20)


def _cpu_s() -> float:
    """Processor time of the children that have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(process: subprocess.Popen[bytes]) -> int:
    """The peak of the resident memory of a process and its descendants, in bytes, until it ends."""
    root = psutil.Process(process.pid)
    peak = 0
    while True:
        now = 0
        with contextlib.suppress(psutil.Error):
            for child in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    now += child.memory_info().rss
        peak = max(peak, now)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAMPLE_S)
            return peak


def warm(files: Sequence[Path]) -> int:
    """Read files so that they lie in the page cache; their size in bytes."""
    total = 0
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(1 << 24):
                total += len(chunk)
    return total
