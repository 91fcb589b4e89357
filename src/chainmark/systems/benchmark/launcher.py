"""Runs one command and reports its resource use: a separate small program, so that its memory hides little.

`python -I -S launcher.py FD TIMEOUT_S PROGRAM ARGUMENT…` writes the values of `FIELDS` to the descriptor. It
imports as little as possible: the kernel's count of a process's peak memory begins with that of its launcher.
"""

import ctypes
import os
import select
import signal
import sys
import time

FIELDS = (
    "wall_ns",
    "cpu_us",
    "largest_kib",  # the largest peak of one process, as the kernel counts it
    "together_kib",  # the largest sum over all processes, as sampled
    "own_kib",  # of this launcher
    "preempted",
    "exit_code",  # negative: the signal that ended it
    "timed_out",
    "left",  # processes that still ran when the command had ended
)
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
FIRST_LOOK_MS, LOOK_MS = 1, 10
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class ProcessTree:
    """The descendants of this process. A child whose parent ends becomes this process's child: none can escape."""

    def __init__(self) -> None:
        self.root = os.getpid()
        self.strangers = set(map(int, filter(str.isdigit, os.listdir("/proc"))))  # noqa: PTH208 - pathlib is not small

    def alive(self) -> list[int]:
        """Those that have not ended; processes known not to belong to them are not read again."""
        parents: dict[int, int] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit() and (pid := int(name)) not in self.strangers:
                state, parent = _state_and_parent(pid)
                if state not in "ZX":
                    parents[pid] = parent
        results = {self.root}
        while grown := {pid for pid, parent in parents.items() if parent in results} - results:
            results |= grown
        self.strangers.update(parents.keys() - results)
        return sorted(results - {self.root})

    def resident_kib(self) -> int:
        """Their total resident memory."""
        return sum(map(_resident_kib, self.alive()))


def _state_and_parent(pid: int) -> tuple[str, int]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return "X", 0
    return fields[0].decode(), int(fields[1])


def _resident_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * PAGE_KIB
    except (OSError, IndexError):
        return 0


def _own_peak_kib() -> int:
    with open("/proc/self/status", "rb") as file:  # noqa: PTH123
        return int(file.read().partition(b"VmHWM:")[2].split(maxsplit=1)[0])


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended meanwhile
            continue


def _stop(number: int, frame: object) -> None:
    # The kernel sends the signal of a parent's death once per thread of it: the next would interrupt the clean-up.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


class CommandUsage:
    """The total use of all ended processes."""

    def __init__(self) -> None:
        self.cpu_us = self.largest_kib = self.preempted = 0

    def wait_for(self, pid: int) -> int:
        """Wait for a process, or any (-1), and count it; returns its status."""
        _, status, used = os.wait4(pid, 0)
        self.cpu_us += round((used.ru_utime + used.ru_stime) * 1e6)
        self.largest_kib = max(self.largest_kib, used.ru_maxrss)
        self.preempted += used.ru_nivcsw
        return status

    def wait_for_all(self) -> None:
        """Wait for all remaining children of this process."""
        try:
            while True:
                self.wait_for(-1)
        except ChildProcessError:
            return


def measure(command: list[str], timeout_s: float) -> dict[str, int]:
    """Run the command to its end, and end what it left running."""
    tree, usage, together_kib, timed_out = ProcessTree(), CommandUsage(), 0, False
    try:
        own_kib, began_ns = _own_peak_kib(), time.monotonic_ns()
        # Python ignores these two signals; a command expects the system's default actions.
        pid = os.posix_spawn(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
        ending = select.poll()
        ending.register(os.pidfd_open(pid), select.POLLIN)
        look_ms = FIRST_LOOK_MS
        while not ending.poll(look_ms):
            together_kib, look_ms = max(together_kib, tree.resident_kib()), min(2 * look_ms, LOOK_MS)
            if not timed_out and time.monotonic_ns() - began_ns > timeout_s * 1e9:
                timed_out = True
                _kill([pid])
        wall_ns = time.monotonic_ns() - began_ns
        status = usage.wait_for(pid)
        left = tree.alive()
    finally:
        while remaining := tree.alive():
            _kill(remaining)
            time.sleep(0.001)
        usage.wait_for_all()
    return {
        "wall_ns": wall_ns,
        "cpu_us": usage.cpu_us,
        "largest_kib": usage.largest_kib,
        "together_kib": together_kib,
        "own_kib": own_kib,
        "preempted": usage.preempted,
        "exit_code": os.waitstatus_to_exitcode(status),
        "timed_out": int(timed_out),
        "left": 0 if timed_out else len(left),
    }


def main() -> None:
    """Measure the command of the arguments."""
    descriptor, timeout_s, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGTERM, _stop)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    result = measure(command, timeout_s)
    os.write(descriptor, " ".join(str(result[name]) for name in FIELDS).encode())


if __name__ == "__main__":
    main()
