"""Engines of reports in processes of their own: each holds some 100 MB for as long as its process lives."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys

from chainmark.core.errors import EnvironmentFailure, InternalError

_LARGE_BYTES = 128 * 1024  # of a block whose memory goes back to the system at once, where glibc begins


def run_apart(program: str, task: bytes, doing: str) -> bytes:
    """What a program of this package makes of its standard input.

    Args:
        program: the file of a module that imports nothing of the package.
        task: what it reads.
        doing: what is done, as an error says it: "drawing the charts".

    Raises:
        EnvironmentFailure: the system ended the process.
        InternalError: the program failed; the message has what it wrote of errors.
    """
    _give_memory_back()
    # Without the script's folder on its path, where modules are called as some of the standard library are.
    command = [sys.executable, "-P", program]
    # glibc would keep an arena for each of the engine's threads, and put large blocks into it after the first that was
    # freed: 65 MB of Typst's.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(_LARGE_BYTES)}
    ran = subprocess.run(command, input=task, capture_output=True, check=False, env=environment)
    if ran.returncode < 0:
        raise EnvironmentFailure(
            f"{doing} was ended by the system (signal {-ran.returncode})",
            "it takes 200 MB of memory: free some, or leave the PDF out",
        )
    if ran.returncode != 0:
        # An engine writes its own trace below the lines that say what is wrong.
        named = re.findall(r"(?m)^\S*(?:Error|Exception).*$", ran.stderr.decode(errors="replace"))
        raise InternalError(f"{doing} failed: {' '.join(named) if named else f'exit {ran.returncode}'}")
    return ran.stdout


def _give_memory_back() -> None:
    """Free pages that glibc keeps for later go back to the system: 20 MB of a long document's."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
