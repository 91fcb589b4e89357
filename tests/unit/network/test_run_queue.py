"""Processor time that the measured processes lost to others."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from chainmark.network import run_queue
from chainmark.network.run_queue import Contention, RunQueue, lost_share

CpuTimes = namedtuple("CpuTimes", "user system irq softirq")
TICKS_PER_S = run_queue._TICKS_PER_S
KTHREADD = 2


@dataclass
class _Machine:
    """A machine's /proc with these processes.

    Attributes:
        busy_s: its processors' user, system, interrupt and soft interrupt time.
    """

    proc: Path
    pids: list[int] = field(default_factory=list)
    busy_s: CpuTimes = field(default_factory=lambda: CpuTimes(0.0, 0.0, 0.0, 0.0))

    def runs(
        self,
        pid: int,
        cpu_s: float,
        *,
        parent: int = 1,
        reaped_s: float = 0.0,
        nice: int = 0,
        policy: int = 0,
        began: int = 7,
        group: str = "/autogroup-1 nice 0",
    ) -> None:
        """A process with this processor time, half of it for the system."""
        if pid not in self.pids:
            self.pids.append(pid)
        half, reaped = (round(seconds * TICKS_PER_S / 2) for seconds in (cpu_s, reaped_s))
        fields = [parent, *[0] * 9, half, half, reaped, reaped, 20, nice, 1, 0, began, *[0] * 18, policy, 0, 0]
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(f"{pid} (a) b) (c) S {' '.join(map(str, fields))}\n")
        (folder / "autogroup").write_text(group + "\n")

    def ends(self, pid: int) -> None:
        """A process ends."""
        self.pids.remove(pid)

    def groups(self) -> None:
        """Sessions are scheduled as groups."""
        folder = self.proc / "sys" / "kernel"
        folder.mkdir(parents=True)
        (folder / "sched_autogroup_enabled").write_text("1\n")

    def thread(self, pid: int, thread: int, ran_ns: int, waited_ns: int, name: str = "main") -> Path:
        """A thread with these times."""
        folder = self.proc / str(pid) / "task" / str(thread)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "comm").write_text(f"{name}\n")
        (folder / "schedstat").write_text(f"{ran_ns} {waited_ns} 3\n")
        return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Machine:
    """A machine whose only processes are the kernel's."""
    made = _Machine(tmp_path)
    monkeypatch.setattr(run_queue, "PROC", tmp_path)
    monkeypatch.setattr(psutil, "pids", lambda: list(made.pids))
    monkeypatch.setattr(psutil, "cpu_times", lambda: made.busy_s)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "schedstat").write_text("1 1 1\n")
    made.runs(KTHREADD, 1.0, parent=0)
    return made


OURS, OTHER = 10, 20


def test_the_processor_time_of_others_is_counted_and_neither_ours_nor_the_kernels(machine: _Machine) -> None:
    for pid in (OURS, OTHER):
        machine.runs(pid, 100.0)
    machine.runs(31, 4.0, parent=KTHREADD)
    contention = Contention()
    contention.read([OURS])
    assert contention.seconds == 0.0, "what was used before the first reading does not count"
    machine.runs(OURS, 105.0)
    machine.runs(OTHER, 103.0)
    machine.runs(31, 9.0, parent=KTHREADD)
    machine.runs(KTHREADD, 3.0, parent=0)
    machine.pids.append(35)  # ended before it could be read
    machine.runs(40, 2.0, reaped_s=0.5)  # began since
    contention.read([OURS])
    assert contention.seconds == pytest.approx(5.5)
    machine.runs(OTHER, 104.0)
    contention.read([OURS])
    assert contention.seconds == pytest.approx(6.5), "the readings add up"


@pytest.mark.parametrize(
    ("nice", "policy", "counts"), [(9, 0, True), (10, 0, False), (19, 0, False), (0, 5, False), (0, 1, True)]
)
def test_processes_of_low_priority_only_get_spare_time(machine: _Machine, nice: int, policy: int, counts: bool) -> None:
    contention = Contention()
    for cpu_s in (1.0, 3.0):
        machine.runs(OURS, 0.0)
        machine.runs(OTHER, cpu_s, nice=nice, policy=policy)
        contention.read([OURS])
    assert contention.seconds == (2.0 if counts else 0.0)


@pytest.mark.parametrize(
    ("nice", "group", "counts"),
    [
        pytest.param(0, "/autogroup-9 nice 10", False, id="a session of low priority"),
        pytest.param(0, "/autogroup-9 nice 9", True, id="a session of almost low priority"),
        pytest.param(19, "/autogroup-9 nice 0", True, id="niceness applies only within a session"),
        pytest.param(19, "/autogroup-1 nice 0", False, id="a nice process of our session"),
        pytest.param(0, "/autogroup-1 nice 19", True, id="our own session is of low priority as well"),
    ],
)
def test_between_sessions_the_priority_of_the_session_counts(
    machine: _Machine, nice: int, group: str, counts: bool
) -> None:
    """Kernels with autogroups give each session the same share, however nice the processes in it are."""
    machine.groups()
    contention = Contention()
    for cpu_s in (1.0, 3.0):
        machine.runs(OURS, 0.0)
        machine.runs(OTHER, cpu_s, nice=nice, group=group)
        contention.read([OURS])
    assert contention.seconds == (2.0 if counts else 0.0)


def test_a_nice_process_of_one_of_our_sessions_does_not_give_way_to_the_other(machine: _Machine) -> None:
    machine.groups()
    contention = Contention()
    for cpu_s in (1.0, 3.0):
        machine.runs(OURS, 0.0)
        machine.runs(11, 0.0, group="/autogroup-2 nice 0")
        machine.runs(OTHER, cpu_s, nice=19)
        contention.read([OURS, 11])
    assert contention.seconds == 2.0


def test_the_time_of_a_child_that_ended_is_counted_once(machine: _Machine) -> None:
    """Its parent is charged with all of it when it ends, of which the last reading has counted a part."""
    machine.runs(OURS, 0.0)
    machine.runs(OTHER, 1.0)
    machine.runs(30, 2.0, parent=OTHER, reaped_s=0.5)
    machine.runs(31, 4.0, parent=OTHER)
    machine.runs(32, 8.0, parent=OTHER)
    contention = Contention()
    contention.read([OURS])
    machine.ends(30)
    machine.ends(31)
    machine.runs(OTHER, 1.2, reaped_s=7.0)
    contention.read([OURS])
    assert contention.seconds == pytest.approx(0.2 + 7.0 - 6.5), "two of its children ended, and one did not"
    machine.runs(OTHER, 1.2, reaped_s=8.0)  # a child that began and ended since
    contention.read([OURS])
    assert contention.seconds == pytest.approx(1.7)


def test_a_process_id_that_was_given_again_is_another_process(machine: _Machine) -> None:
    machine.runs(OURS, 0.0)
    machine.runs(OTHER, 5.0, began=7)
    contention = Contention()
    contention.read([OURS])
    machine.runs(OTHER, 1.0, began=8)
    contention.read([OURS])
    assert contention.seconds == pytest.approx(1.0)


def test_in_a_container_the_rest_of_the_machines_time_is_that_of_others(machine: _Machine) -> None:
    """Its /proc shows neither the kernel's threads nor the processes of others."""
    machine.ends(KTHREADD)
    machine.runs(OURS, 10.0)
    machine.runs(OTHER, 1.0)
    machine.busy_s = CpuTimes(100.0, 50.0, 1.0, 2.0)
    contention = Contention()
    contention.read([OURS])
    machine.runs(OURS, 12.0)
    machine.runs(OTHER, 1.5)
    machine.busy_s = CpuTimes(103.0, 52.0, 1.5, 2.5)  # 6 s, of which 2.5 are those of visible processes
    contention.read([OURS])
    assert contention.seconds == pytest.approx(0.5 + 3.5)
    machine.runs(OURS, 14.0)  # the machine's accounting is by ticks, and may lag behind
    contention.read([OURS])
    assert contention.seconds == pytest.approx(4.0)


def test_the_threads_of_all_processes_are_added_up_from_the_first_reading_on(machine: _Machine) -> None:
    machine.thread(OURS, 10, 5_000_000_000, 1_000_000_000)
    machine.thread(11, 11, 2_000_000_000, 0)
    queue = RunQueue()
    queue.read([OURS, 11])
    assert (queue.ran_s, queue.waited_s, queue.known) == (0.0, 0.0, True)
    machine.thread(OURS, 10, 6_000_000_000, 1_500_000_000)
    machine.thread(OURS, 12, 250_000_000, 125_000_000)  # began since
    machine.thread(11, 11, 2_500_000_000, 1_000_000)
    queue.read([OURS, 11])
    exact = pytest.approx([1.75, 0.626], abs=1e-10)
    assert [queue.ran_s, queue.waited_s] == exact
    machine.thread(11, 11, 0, 0)  # another thread with the same number
    queue.read([11])
    assert [queue.ran_s, queue.waited_s] == exact, "times never decrease"


def test_only_threads_with_the_name_are_counted(machine: _Machine) -> None:
    """This process generates the load, and does much else."""
    queue = RunQueue("chainmark-")
    for ran_ns in (0, 1_000_000_000):
        for number in range(10):
            machine.thread(OURS, 100 + number, ran_ns, 0, "python")
            machine.thread(OURS, 200 + number, 2 * ran_ns, ran_ns, "chainmark-load")
        queue.read([OURS])
    assert (queue.ran_s, queue.waited_s) == (20.0, 10.0)


def test_a_thread_that_has_ended_is_no_sign_of_a_kernel_without_this_accounting(machine: _Machine) -> None:
    queue = RunQueue()
    for ran_ns in (0, 1_000_000_000):
        for number in range(10):
            machine.thread(OURS, 100 + number, ran_ns, 0)
            (machine.thread(OURS, 200 + number, 0, 0) / "schedstat").unlink()
        queue.read([OURS])
    assert (queue.known, queue.ran_s) == (True, 10.0)
    (machine.proc / "self" / "schedstat").unlink()
    queue.read([OURS])
    assert not queue.known
    (machine.proc / "self" / "schedstat").write_text("1 1 1\n")
    queue.read([OURS])
    assert not queue.known, "part of the time is unknown"


def test_times_that_may_not_be_read_are_unknown(machine: _Machine) -> None:
    queue = RunQueue()
    for ran_ns in (0, 1_000_000_000):
        for number in range(10):
            machine.thread(OURS, 100 + number, ran_ns, 0)
            (machine.proc / str(OURS) / "task" / str(200 + number) / "schedstat").mkdir(parents=True, exist_ok=True)
        queue.read([OURS])
    assert queue.known is False
    assert queue.ran_s == 10.0, "the others are counted nevertheless"


def test_without_groups_of_sessions_a_process_has_none(machine: _Machine) -> None:
    machine.runs(OTHER, 1.0)
    assert run_queue._autogroup(OTHER) == ("", 0), "the kernel cannot group them"
    machine.groups()
    (machine.proc / "sys" / "kernel" / "sched_autogroup_enabled").write_text("0\n")
    assert run_queue._autogroup(OTHER) == ("", 0), "it does not group them"
    (machine.proc / "sys" / "kernel" / "sched_autogroup_enabled").write_text("1\n")
    assert run_queue._autogroup(OTHER) == ("/autogroup-1", 0)
    assert run_queue._autogroup(OTHER + 1) == ("", 0), "it has ended"


def test_a_missing_or_ended_process_is_not_an_error() -> None:
    queue = RunQueue()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        queue.read([process.pid])
    queue.read([process.pid])
    assert (queue.ran_s, queue.waited_s) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "contended_s", "lost"),
    [
        (0.9, 0.1, 2.0, 0.1),
        (0.9, 0.1, 0.0, 0.0),  # the processes waited for each other
        (0.4, 0.2, 0.1, 0.1 / 0.6),
        (0.01, 0.01, 2.0, 0.02),  # a hundred short waits of a process that hardly runs
        (0.0, 0.0, 2.0, 0.0),
        (math.nan, math.nan, 2.0, None),
        (0.4, 0.2, math.nan, None),  # as zero, an unknown machine would look quiet
    ],
)
def test_the_lost_share_is_computed(ran_s: float, waited_s: float, contended_s: float, lost: float | None) -> None:
    assert lost_share(ran_s, waited_s, contended_s, 1.0) == (None if lost is None else pytest.approx(lost))


def test_the_least_time_is_relative_to_the_observation() -> None:
    assert lost_share(0.1, 0.1, 2.0, 4.0) == pytest.approx(0.05)
    assert lost_share(0.0, 0.0, 0.0, 0.0) == 0.0
