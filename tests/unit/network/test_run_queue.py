"""Processor time that the measured processes lost to others."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from chainmark.network.run_queue import RunQueue, lost_share


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
        (0.01, 0.01, 2.0, 0.02),  # a hundred short waits of a process that hardly runs
        (0.0, 0.0, 2.0, 0.0),
        (math.nan, math.nan, 2.0, None),
    ],
)
def test_the_lost_share_is_computed(ran_s: float, waited_s: float, contended_s: float, lost: float | None) -> None:
    assert lost_share(ran_s, waited_s, contended_s, 1.0) == (None if lost is None else pytest.approx(lost))
