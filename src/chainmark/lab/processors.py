"""Wait until this machine's processors are free, after a run during which other processes used them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from chainmark.core import units
from chainmark.core.progress import Progress
from chainmark.lab.machine import is_shared
from chainmark.network.run_queue import lost_share
from chainmark.network.witness import Witness

# Maximum loss in two seconds of work on every processor, in four consecutive probes.
LOST_MAX = 0.05
PROBE_S, PAUSE_S, FREE_PROBES = 2.0, 3.0, 4
LONGEST_WAIT_S = 600.0
# Hashing this much releases the interpreter lock, and takes about a millisecond.
_BLOCK = bytes(1 << 20)


@dataclass(frozen=True)
class Probing:
    """How the processors are probed.

    Attributes:
        lost: works on every processor for a while; returns the share of their time that others used.
        pause: waits this number of seconds.
        now_s: a clock.
    """

    lost: Callable[[], float]
    pause: Callable[[float], None] = time.sleep
    now_s: Callable[[], float] = time.monotonic


def wait_for_processors(progress: Progress, probing: Probing | None = None) -> bool:
    """Wait until work on all processors gets them, at most ten minutes.

    An idle machine does not show that its host gives the processors to other machines: only work on them does. So this
    function loads them from time to time.

    Args:
        progress: receives the current loss.
        probing: by default, of this machine; nothing is probed if `CHAINMARK_MACHINE` is `shared`.

    Returns:
        Whether the processors are free.
    """
    if probing is None:
        if is_shared():
            return True
        probing = Probing(probe)
    began_s, free = probing.now_s(), 0
    progress.stage("waiting until this machine's processors are free")
    while free < FREE_PROBES:
        lost = probing.lost()
        free = free + 1 if lost < LOST_MAX else 0
        waited_s = probing.now_s() - began_s
        detail = f"other processes use {units.plain_percent(lost)}, waited {units.duration(round(waited_s))}"
        progress.update(min(1.0, waited_s / LONGEST_WAIT_S), detail)
        if waited_s >= LONGEST_WAIT_S:
            return False
        if free < FREE_PROBES:
            probing.pause(PAUSE_S)
    return True


def probe(seconds: float = PROBE_S) -> float:
    """Work on every processor, one thread each; return the share of the time that the host or other processes used."""
    witness, threads = Witness(lambda: {os.getpid()}), len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(threads, "probe") as pool:
        # Threads are counted from the first reading that includes them.
        list(pool.map(_work, [PROBE_S / 100] * threads))
        witness.look()
        begin_ns = time.time_ns()
        list(pool.map(_work, [seconds] * threads))
        end_ns = time.time_ns()
        witness.look()
    seen = witness.between(np.array([begin_ns, end_ns]))
    over_s = (end_ns - begin_ns) / 1e9
    waited = lost_share(seen.ran[0], seen.waited[0], seen.contended[0], over_s)
    return float(max(waited or 0.0, seen.stolen[0]))


def _work(seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        hashlib.sha256(_BLOCK).digest()
