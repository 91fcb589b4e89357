"""Ctrl-C and similar signals end a command cleanly: by KeyboardInterrupt, where that can be raised."""

from __future__ import annotations

import signal
import subprocess
from types import FrameType

RETRY_S = 0.005
# They end at once, and an exception in them would lose a process that has begun, or leave its lock closed.
BRIEF = (subprocess.Popen.__init__.__code__, subprocess.Popen.poll.__code__)


def handle_interrupts() -> None:
    """Make SIGTERM and SIGHUP end a command as SIGINT does; SIGALRM repeats it if it could not be raised."""
    signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if the shell ignores it
        signals.append(signal.SIGINT)
    for number in signals:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or postpone it where it would do harm."""
    while frame is not None:
        if _must_not_end(frame):
            signal.setitimer(signal.ITIMER_REAL, RETRY_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _must_not_end(frame: FrameType) -> bool:
    """Whether a function must not end by an interrupt.

    Python that polars has called: the interrupt would become polars' panic or error. A wait for a process with a
    timeout that has closed the process's lock: the next wait for that process would last forever.
    """
    if str(frame.f_globals.get("__name__")).startswith("polars.") or frame.f_code in BRIEF:
        return True
    waits = frame.f_globals.get("__name__") == "subprocess" and frame.f_code.co_name == "_wait"
    return waits and frame.f_locals["timeout"] is not None and frame.f_locals["self"]._waitpid_lock.locked()
