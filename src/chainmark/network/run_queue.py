"""Whether our own processes waited for a processor while others had it.

The kernel says of every thread how long it ran and how long it was ready to run and did not (`schedstat`). Threads also
wait for each other, which is their own affair. So what counts as lost to others is at most the processor time that
others had: not that of processes which give way (SCHED_IDLE, niceness from 10 on), because the scheduler gives them
what is left. `docs/concepts/validity.md` has the measurements behind the constants.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

PROC = Path("/proc")
NS = 1e9
# Who hardly runs loses little, whatever share of that it is: what is lost counts against this share of a processor at
# least. A generator's thread wakes at least a hundred times a second; a tenth of this is half a millisecond each time,
# and what single waits are longer is judged by how late it woke.
LEAST_BUSY_SHARE = 0.5
# A weight of a tenth of the usual one.
YIELDING_NICE = 10
_SCHED_IDLE = 5
_KERNEL_THREADS = 2
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class RunQueue:
    """How long the threads of some processes ran, and how long they waited for a processor, since the first reading.

    Args:
        named: only threads whose names begin so.
    """

    def __init__(self, named: str = "") -> None:
        self.named = named
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
                if self.named and not (thread / "comm").read_text().startswith(self.named):
                    continue
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
