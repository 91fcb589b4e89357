"""Rendering engines of reports in separate processes: each holds some 100 MB for the lifetime of its process."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys

from chainmark.core.errors import EnvironmentFailure, InternalError

_LARGE_BYTES = 128 * 1024  # glibc returns larger blocks to the system at once


def start_apart(program: str) -> subprocess.Popen[bytes]:
    """Start a program of this package, which reads its task from standard input.

    Args:
        program: the file of a module that imports nothing of the package.
    """
    # Without the script's folder on its path, where some modules have names of the standard library.
    command = [sys.executable, "-P", program]
    # glibc would keep an arena for each of the engine's threads, and put large blocks into it once one was freed: 65 MB
    # for Typst.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(_LARGE_BYTES)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)


def finish_apart(started: subprocess.Popen[bytes], task: bytes, doing: str) -> bytes:
    """Hand a task to a started program, and return its standard output.

    Args:
        started: by `start_apart`.
        task: its standard input.
        doing: the activity, for errors: "drawing the charts".

    Raises:
        EnvironmentFailure: the system ended the process.
        InternalError: the program failed; the message contains its standard error.
    """
    _give_memory_back()
    with started:
        try:
            output, errors = started.communicate(task)
        except BaseException:
            started.kill()
            raise
    if started.returncode < 0:
        raise EnvironmentFailure(
            f"the operating system ended the process that was {doing} (signal {-started.returncode})",
            "it needs 200 MB of memory: free some memory, or omit the PDF",
        )
    if started.returncode != 0:
        # An engine writes its own trace after the error message.
        named = re.findall(r"(?m)^\S*(?:Error|Exception).*$", errors.decode(errors="replace"))
        raise InternalError(f"{doing} failed: {' '.join(named) if named else f'exit {started.returncode}'}")
    return output


def _give_memory_back() -> None:
    """Return the pages that glibc keeps for later to the system: 20 MB for a long document."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
