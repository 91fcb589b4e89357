"""Leftovers of a killed experiment: removed at the next start.

The kernel removes namespaces, devices and processes with the process that made them. What may remain is a process whose
parent was killed while starting it, and what that process holds.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil

from chainmark.core.errors import EnvironmentFailure
from chainmark.network.namespaces import OWNER_VARIABLE, network_of_device, required_tool, start_ticks, try_lock

_DEVICES = Path("/sys/class/net")
_WAIT_S = 5.0


def remove_leftovers() -> list[str]:
    """End processes in namespaces whose owner is gone, and remove devices of networks without a claim.

    Returns:
        A sentence for each removed item.

    Raises:
        EnvironmentFailure: an item cannot be removed.
    """
    return [*_end_orphans(), *_remove_devices()]


def _end_orphans() -> list[str]:
    orphans = []
    for process in psutil.process_iter():
        try:
            owner = process.environ().get(OWNER_VARIABLE)
        except (psutil.Error, OSError):
            continue
        if owner is not None and process.pid != os.getpid() and not _is_running(owner):
            orphans.append(process)
    messages = []
    for process in orphans:
        try:
            name = process.name()
            process.kill()
            process.wait(_WAIT_S)
        except psutil.NoSuchProcess:
            continue
        except psutil.Error as error:
            raise EnvironmentFailure(
                f"process {process.pid}, left over from a killed experiment, cannot be stopped",
                f"`kill -9 {process.pid}`",
            ) from error
        messages.append(f"process {process.pid} ({name}), left over from a killed experiment, was stopped")
    return messages


def _is_running(owner: str) -> bool:
    """Whether the process in ``OWNER_VARIABLE`` still runs; unreadable ones are left alone."""
    pid, _, ticks = owner.partition("-")
    if not (pid.isdigit() and ticks.isdigit()):
        return True
    return start_ticks(int(pid)) == int(ticks)


def _remove_devices() -> list[str]:
    messages = []
    for name in sorted(path.name for path in _DEVICES.iterdir()):
        network = network_of_device(name)
        lock = None if network is None else try_lock(network)
        if lock is None:
            continue
        with lock:
            removed = subprocess.run(
                [required_tool("ip"), "link", "delete", name], capture_output=True, text=True, check=False
            )
        if removed.returncode == 0:
            messages.append(f"the network device {name}, left over from a killed experiment, was removed")
        elif (_DEVICES / name).exists():
            raise EnvironmentFailure(
                f"the network device {name}, left over from a killed experiment, cannot be removed",
                f"`sudo ip link delete {name}`",
            )
    return messages
