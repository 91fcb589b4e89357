"""Threads for numeric work that lets go of the interpreter."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

_MOST_THREADS = 2  # each holds a few columns of a large population


def worker_threads() -> ThreadPoolExecutor:
    """A pool of as many threads as the memory of large populations allows."""
    return ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1))
