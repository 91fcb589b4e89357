"""Processor time that the measured processes lost to others, tested with real processes on this machine's scheduler."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chainmark.lab.processors import probe
from chainmark.network.run_queue import Contention, RunQueue

# Low-priority processes do not count, and the children of a test have its priority. Unit tests may run at a low one.
pytestmark = pytest.mark.quiet

BUSY = "while True: pass"


@contextmanager
def busy(*prefix: str, cpu: int = 0) -> Iterator[int]:
    """A process that uses one processor completely."""
    process = subprocess.Popen([*prefix, sys.executable, "-c", BUSY])
    try:
        os.sched_setaffinity(process.pid, {cpu})
        yield process.pid
    finally:
        process.kill()
        process.wait()


def until(seconds: float) -> None:
    """Wait. Other load on the machine does not matter, because the kernel accounts for each process."""
    time.sleep(seconds)


def test_two_processes_on_one_processor_wait_for_each_other() -> None:
    queue = RunQueue()
    with busy() as pid, busy() as other:
        queue.read([pid])
        contention = Contention()
        contention.read({pid})
        until(1.0)
        queue.read([pid])
        contention.read({pid})
        assert queue.known
        assert other != pid
    assert queue.waited_s > 0.2
    assert contention.seconds > 0.1, "the other process has normal priority and takes its share"


def test_waiting_among_own_processes_is_not_contention() -> None:
    with busy() as pid, busy() as other:
        ours, whole, without = {pid, other}, Contention(), Contention()
        for contention, known in ((whole, ours), (without, {pid})):
            contention.read(known)
        until(1.0)
        whole.read(ours)
        without.read({pid})
    assert whole.seconds < without.seconds


@pytest.mark.parametrize("prefix", [("nice", "-n", "19"), ("chrt", "-i", "0")], ids=["nice 19", "SCHED_IDLE"])
def test_low_priority_processes_are_not_contention(prefix: tuple[str, ...]) -> None:
    """Otherwise a compiler at low priority would invalidate a run."""
    with busy() as pid, busy(*prefix) as other:
        queue = RunQueue()
        all_others, others_but_it = Contention(), Contention()
        queue.read([pid])
        all_others.read({pid})
        others_but_it.read({pid, other})
        until(1.0)
        queue.read([pid])
        all_others.read({pid})
        others_but_it.read({pid, other})
    # On a busy machine, other processes run between the two readings. Low-priority work would add up to 1 s.
    assert all_others.seconds == pytest.approx(others_but_it.seconds, abs=0.3)


@pytest.mark.parametrize(("prefix", "least", "most"), [((), 0.3, 3.0), (("nice", "-n", "19"), -0.1, 0.3)])
def test_children_that_end_between_readings_count_as_their_parent(
    prefix: tuple[str, ...], least: float, most: float
) -> None:
    """A compiler starts hundreds of processes that end in less than a second."""
    child = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass"
    many = f"import subprocess, sys\nfor _ in range(4): subprocess.run([sys.executable, '-c', {child!r}])\ninput()"
    command = [*prefix, sys.executable, "-u", "-c", f"print()\ninput()\n{many.replace('input()', 'print(); input()')}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        all_others, others_but_it = Contention(), Contention()
        all_others.read({os.getpid()})
        others_but_it.read({os.getpid(), process.pid})
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        all_others.read({os.getpid()})
        others_but_it.read({os.getpid(), process.pid})
        print(file=process.stdin, flush=True)
    assert least < all_others.seconds - others_but_it.seconds < most


@pytest.fixture
def crowd() -> Iterator[None]:
    """Four busy processes per processor."""
    count = 4 * len(os.sched_getaffinity(0))
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("crowd")
def test_time_of_other_processes_is_reported_as_lost() -> None:
    """With equal shares for all processes, the probe gets a fifth."""
    assert probe(1.0) > 0.3
