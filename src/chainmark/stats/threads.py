"""Threads for numeric work that releases the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import polars as pl

_MOST_THREADS = 2  # each holds a few columns of a large population
_FEW_ROWS = 1024  # for fewer rows, threads that pass the interpreter lock to each other take longer than the work
_Result = TypeVar("_Result")
_allowed: ContextVar[int] = ContextVar("allowed", default=_MOST_THREADS)

# Polars imports numpy on first use, and fails if two threads do so at once: here there is only one thread.
pl.Series(np.empty(0))


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit the threads of pools that are created in this context; 0 means no limit.

    Polars has its own pool, with the size of `POLARS_MAX_THREADS` at import.
    """
    token = _allowed.set(threads or _MOST_THREADS)
    try:
        yield
    finally:
        _allowed.reset(token)


class _Caller(ThreadPoolExecutor):
    """A pool that runs its work in the calling thread."""

    def map(
        self, fn: Callable[..., _Result], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[_Result]:
        """One call after another, each when its result is requested."""
        return map(fn, *iterables)


def worker_threads(rows: int | None = None) -> ThreadPoolExecutor:
    """A pool of as many threads as the memory of large populations allows.

    Args:
        rows: of the columns in use; None: many.
    """
    if rows is not None and rows <= _FEW_ROWS:
        return _Caller(1)
    return ThreadPoolExecutor(min(_MOST_THREADS, _allowed.get(), os.cpu_count() or 1))


def product_threads() -> ThreadPoolExecutor:
    """The same for products of matrices; a single thread if BLAS may have its own threads.

    Those wait for each other by spinning: with other threads, or on a busy machine, that takes longer than the product.
    """
    return worker_threads() if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else ThreadPoolExecutor(1)
