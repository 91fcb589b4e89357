"""Ctrl-C and similar signals end a command cleanly: by KeyboardInterrupt, where that can be raised."""

from __future__ import annotations

import signal
from types import FrameType

RETRY_S = 0.005


def handle_interrupts() -> None:
    """Make SIGTERM and SIGHUP end a command as SIGINT does; SIGALRM repeats it if it could not be raised."""
    signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if the shell ignores it
        signals.append(signal.SIGINT)
    for number in signals:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not in Python that polars has called: it would become polars' panic or error."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("polars."):
            signal.setitimer(signal.ITIMER_REAL, RETRY_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt
