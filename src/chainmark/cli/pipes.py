"""A reader that closes the pipe: the command ends as others do then, and never with the code of a verdict."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What a shell reports of a command that SIGPIPE ended. The signal itself would end Python without any clearing up.
NOBODY_READS = 128 + signal.SIGPIPE


class _Pipe(io.FileIO):
    """A descriptor whose reader may go away; what is written afterwards goes nowhere.

    The libraries that print (typer, rich) make exit code 1 of `BrokenPipeError`, so it must not reach them.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; the first time that nobody reads, stdout ends the command, and stderr falls silent."""
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
        if self.fileno() == 1:
            raise SystemExit(NOBODY_READS)
        return memoryview(data).nbytes


def survive_closed_pipes() -> None:
    """Let stdout and stderr of this process be pipes that nobody reads, or not be there at all."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _guarded(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _guarded(sys.stderr, 2)


def _guarded(stream: TextIO | None, descriptor: int) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - a stream of the whole process
    if stream.isatty():
        return stream
    raw = _Pipe(descriptor, "w", closefd=False)
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=descriptor == 2)
