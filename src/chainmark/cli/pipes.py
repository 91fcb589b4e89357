"""A reader that closes the pipe: the command ends as usual then, and never with the code of a verdict."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A shell reports this for a command that SIGPIPE ended. The signal itself would end Python without any cleanup.
NOBODY_READS = 128 + signal.SIGPIPE


class _Pipe(io.FileIO):
    """A descriptor whose reader may go away; later output is discarded.

    The libraries for output (typer, rich) turn `BrokenPipeError` into exit code 1, so it must not reach them.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; on the first failure, stdout ends the command, and stderr becomes silent."""
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
    """Prepare stdout and stderr of this process for pipes without a reader, or for being closed."""
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
