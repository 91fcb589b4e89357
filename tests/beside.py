"""Run a command with low priority beside tests that measure times: ``python -m tests.beside COMMAND …``.

The kernel divides the processors among sessions before it considers the priorities of processes. Whatever the command
starts may begin a session, so every session below the command gets the lowest priority, again and again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

LOWEST = 19
PERIOD_S = 0.2


def lower_sessions(pid: int) -> None:
    """Give the lowest priority to the sessions of a process and of its descendants.

    Kernels without priorities of sessions (`CONFIG_SCHED_AUTOGROUP`) use those of processes alone.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            session = Path(f"/proc/{each.pid}/autogroup")
            with suppress(OSError):  # it ended, or the kernel accepts ten changes a second
                if not session.read_text(encoding="ascii").endswith(f" nice {LOWEST}\n"):
                    session.write_text(str(LOWEST), encoding="ascii")


def main() -> None:
    """Run the command; end with its exit code. SIGINT and SIGTERM end it.

    The handler only notes the signal. An exception may be raised anywhere: before the command is known, so that it
    would be left running, or while `Popen` has its lock, for which the clean-up would then wait forever.
    """
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: received.append(number))
    os.nice(LOWEST)
    process = subprocess.Popen(sys.argv[1:], start_new_session=True)
    while process.poll() is None:
        lower_sessions(process.pid)
        if received:
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PERIOD_S)
    sys.exit(128 + received[0] if received else process.returncode)


if __name__ == "__main__":
    main()
