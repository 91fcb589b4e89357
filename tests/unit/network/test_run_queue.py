"""What our processes lost to others, with real processes on this machine's own scheduler."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chainmark.network.run_queue import Contention, RunQueue, lost_share

BUSY = "while True: pass"


@contextmanager
def busy(*prefix: str, cpu: int = 0) -> Iterator[int]:
    """A process that wants all of one processor."""
    process = subprocess.Popen([*prefix, sys.executable, "-c", BUSY])
    try:
        os.sched_setaffinity(process.pid, {cpu})
        yield process.pid
    finally:
        process.kill()
        process.wait()


def until(seconds: float) -> None:
    """Others run meanwhile; what is looked at is their own account."""
    time.sleep(seconds)


def test_two_that_share_a_processor_wait_for_each_other() -> None:
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
    assert contention.seconds > 0.1, "the other one has its share, and does not give way"


def test_ours_that_wait_for_each_other_lose_nothing_to_them() -> None:
    with busy() as pid, busy() as other:
        ours, whole, without = {pid, other}, Contention(), Contention()
        for contention, known in ((whole, ours), (without, {pid})):
            contention.read(known)
        until(1.0)
        whole.read(ours)
        without.read({pid})
    assert whole.seconds < without.seconds


@pytest.mark.parametrize("prefix", [("nice", "-n", "19"), ("chrt", "-i", "0")], ids=["nice 19", "SCHED_IDLE"])
def test_what_gives_way_is_no_contention(prefix: tuple[str, ...]) -> None:
    """It was enough that somebody compiled at low priority for a run to be invalid."""
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
    # Between both readings of a crowded machine others go on; what gives way would be up to a second.
    assert all_others.seconds == pytest.approx(others_but_it.seconds, abs=0.3)


@pytest.mark.parametrize(("prefix", "least", "most"), [((), 0.3, 3.0), (("nice", "-n", "19"), -0.1, 0.3)])
def test_what_ended_between_two_readings_counts_as_the_process_that_began_it(
    prefix: tuple[str, ...], least: float, most: float
) -> None:
    """A compiler starts hundreds of processes that live for less than a second."""
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


def test_a_process_that_ends_or_is_not_there_is_no_error() -> None:
    queue = RunQueue()
    with busy() as pid:
        queue.read([pid])
    queue.read([pid])
    assert (queue.ran_s, queue.waited_s) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "contended_s", "lost"),
    [
        (0.9, 0.1, 2.0, 0.1),
        (0.9, 0.1, 0.0, 0.0),  # they waited for each other
        (0.01, 0.01, 2.0, 0.02),  # a hundred short waits of who hardly runs
        (0.0, 0.0, 2.0, 0.0),
        (math.nan, math.nan, 2.0, None),
    ],
)
def test_what_is_lost(ran_s: float, waited_s: float, contended_s: float, lost: float | None) -> None:
    assert lost_share(ran_s, waited_s, contended_s, 1.0) == (None if lost is None else pytest.approx(lost))
