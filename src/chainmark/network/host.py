"""Facts about the machine and the pressure it is under: a result without them is worthless."""

from __future__ import annotations

import os
import platform
from pathlib import Path

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
    """Microseconds since boot in which some task waited for "cpu", "io" or "memory"; None if it is not told."""
    try:
        first = (PRESSURE / resource).read_text(encoding="ascii").splitlines()[0]
        return int(first.rsplit("total=", 1)[1])
    except (OSError, IndexError, ValueError):
        return None


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
