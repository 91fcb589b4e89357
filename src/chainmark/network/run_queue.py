"""Whether our own processes waited for a CPU while others had it.

The kernel reports for every thread how long it ran and how long it was ready to run and did not (`schedstat`). Threads
also wait for each other, which does not count. So the time lost to others is at most the CPU time that others had,
without that of low-priority processes (SCHED_IDLE, niceness from 10 on), because the scheduler gives them only spare
time. `docs/concepts/validity.md` has the measurements behind the constants.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

PROC = Path("/proc")
NS = 1e9
# A thread that hardly runs loses little, whatever share of its time that is: the loss is relative to at least this
# share of a CPU. A generator's thread wakes at least a hundred times a second; a tenth of this is half a millisecond
# each time, and longer single waits are judged by how late it woke.
LEAST_BUSY_SHARE = 0.5
# A weight of a tenth of the usual one.
YIELDING_NICE = 10
_SCHED_IDLE = 5
_KERNEL_THREADS = 2
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class RunQueue:
    """How long the threads of some processes ran, and how long they waited for a CPU, since the first reading.

    Args:
        named: only threads whose names have this prefix.
    """

    def __init__(self, named: str = "") -> None:
        self.named = named
        self.ran_s = 0.0
        self.waited_s = 0.0
        self.known = True
        self._before: dict[tuple[int, int], tuple[int, int]] | None = None

    def read(self, pids: Collection[int]) -> None:
        """Add the time since the last reading; a thread that ended in between is omitted from then on."""
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
                if self.named and not (thread / "comm").read_text().startswith(self.named):
                    continue
                text = (thread / "schedstat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                # It has ended, or this kernel has no such accounting.
                self.known = self.known and (PROC / "self" / "schedstat").exists()
                continue
            except OSError:
                self.known = False
                continue
            ran_ns, waited_ns, _ = map(int, text.split())
            yield int(thread.name), (ran_ns, waited_ns)


@dataclass(frozen=True)
class _Process:
    """The content of /proc/PID/stat.

    Attributes:
        ran_s: the process itself; reaped_s: its children that ended, and theirs.
        began: in ticks since boot; a reused process ID has a later one.
    """

    parent: int
    ran_s: float
    reaped_s: float
    nice: int
    policy: int
    began: int
    is_kernel: bool


class Contention:
    """CPU time, in seconds since the first reading, of other processes with normal priority.

    It is summed over the processes, whose accounting is exact. The machine's own CPU accounting may be per tick: on an
    idle machine that was up to twice the use of nodes, which begin their work at a tick.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: tuple[dict[int, _Process], float] | None = None

    def read(self, ours: Collection[int]) -> None:
        """Add the CPU time of others since the last reading."""
        times = psutil.cpu_times()
        busy_s = times.user + times.system + times.irq + times.softirq
        now = dict(_processes())
        if self._before is not None:
            before, busy_before_s = self._before
            took_s = _took(before, now)
            groups = {_autogroup(pid)[0] for pid in ours}
            self.seconds += sum(
                seconds
                for pid, seconds in took_s.items()
                if seconds > 0.0
                and pid not in ours
                and not now[pid].is_kernel
                and not _gives_way(pid, now[pid], groups)
            )
            if not any(process.is_kernel for process in now.values()):
                # In a container other processes are invisible: theirs is the rest of the machine's own accounting.
                self.seconds += max(0.0, busy_s - busy_before_s - sum(took_s.values()))
        self._before = (now, busy_s)


def _took(before: Mapping[int, _Process], now: Mapping[int, _Process]) -> dict[int, float]:
    """The CPU seconds of every process, including those of its children that ended since."""
    ended_s: dict[int, float] = {}
    for pid, process in before.items():
        if pid not in now or now[pid].began != process.began:
            ended_s[process.parent] = ended_s.get(process.parent, 0.0) + process.ran_s + process.reaped_s
    result = {}
    for pid, process in now.items():
        known = before.get(pid)
        same = known if known and known.began == process.began else None
        own_s = process.ran_s - (same.ran_s if same else 0.0)
        # Children's time before the last reading was counted as theirs then.
        reaped_s = process.reaped_s - (same.reaped_s if same else 0.0) - ended_s.get(pid, 0.0)
        result[pid] = own_s + max(0.0, reaped_s)
    return result


def _processes() -> Iterator[tuple[int, _Process]]:
    for pid in psutil.pids():
        try:
            text = (PROC / str(pid) / "stat").read_text()
        except OSError:
            continue
        # Its name is in parentheses and may contain anything; proc(5) numbers the following fields from 3 on.
        fields = [*map(int, text[text.rindex(")") + 2 :].split()[1:])]
        user, system, reaped_user, reaped_system = fields[10:14]
        is_kernel = _KERNEL_THREADS in {fields[0], pid}
        ran_s, reaped_s = (user + system) / _TICKS_PER_S, (reaped_user + reaped_system) / _TICKS_PER_S
        yield pid, _Process(fields[0], ran_s, reaped_s, fields[15], fields[37], fields[18], is_kernel)


def _gives_way(pid: int, process: _Process, groups: Collection[str]) -> bool:
    """Whether the scheduler prefers our processes.

    If sessions are scheduled as groups (autogroup), niceness applies among the processes of one session only; between
    sessions the group's niceness applies.
    """
    group, group_nice = _autogroup(pid)
    if group_nice >= YIELDING_NICE and group not in groups:
        return True
    is_low = process.nice >= YIELDING_NICE or process.policy == _SCHED_IDLE
    return is_low and (not group or set(groups) == {group})


def _autogroup(pid: int) -> tuple[str, int]:
    """Its name and niceness; "" and 0 if processes are not grouped."""
    try:
        if (PROC / "sys/kernel/sched_autogroup_enabled").read_text().strip() != "1":
            return "", 0
        name, _, nice = (PROC / str(pid) / "autogroup").read_text().split()
    except (OSError, ValueError):
        return "", 0
    return name, int(nice)


def lost_share(ran_s: float, waited_s: float, contended_s: float, over_s: float) -> float | None:
    """The share of the time in which processes wanted to run and others ran instead; None: unknown.

    Args:
        ran_s, waited_s: of their threads.
        contended_s: CPU time of the others.
        over_s: duration of the observation.
        Each may be NaN: unknown.
    """
    if not np.isfinite(ran_s + waited_s + contended_s):
        return None
    wanted_s = max(ran_s + waited_s, LEAST_BUSY_SHARE * over_s)
    return float(min(waited_s, contended_s) / wanted_s) if wanted_s > 0.0 else 0.0
