"""Threads for numeric work that lets go of the interpreter."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

_MOST_THREADS = 2  # each holds a few columns of a large population


def worker_threads() -> ThreadPoolExecutor:
    """A pool of as many threads as the memory of large populations allows."""
    return ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1))


def product_threads() -> ThreadPoolExecutor:
    """The same for products of matrices; a single one where BLAS may have threads of its own.

    Those wait for each other by spinning: beside ours, or on a busy machine, that takes longer than the product.
    """
    return worker_threads() if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else ThreadPoolExecutor(1)
