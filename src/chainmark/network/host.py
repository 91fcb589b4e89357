"""Facts about the machine and its load: a result without them is worthless."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from chainmark.core.manifest import HostFacts

PRESSURE = Path("/proc/pressure")


def host_facts() -> HostFacts:
    """The machine as a reader must know it."""
    return HostFacts(
        cpu_model=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        operating_system=_operating_system(),
    )


def pressure_total_us(resource: str) -> int | None:
    """Microseconds since boot in which some task waited for "cpu", "io" or "memory"; None if unknown."""
    try:
        first = (PRESSURE / resource).read_text(encoding="ascii").splitlines()[0]
        return int(first.rsplit("total=", 1)[1])
    except (OSError, IndexError, ValueError):
        return None


@dataclass(frozen=True)
class PressureMark:
    """A starting point for the CPU pressure.

    Attributes:
        total_us: the value of :func:`pressure_total_us` then.
        began_s: by the monotonic clock.
    """

    total_us: int | None
    began_s: float

    @classmethod
    def now(cls) -> Self:
        """This moment."""
        return cls(pressure_total_us("cpu"), time.monotonic())

    def share(self) -> float | None:
        """The share of the time since then in which some task waited for a CPU, at most 1; None if unknown."""
        total_us = pressure_total_us("cpu")
        if self.total_us is None or total_us is None:
            return None
        return min(1.0, (total_us - self.total_us) / 1e6 / max(1e-9, time.monotonic() - self.began_s))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
