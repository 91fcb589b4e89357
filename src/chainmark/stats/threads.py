"""Threads for numeric work that lets go of the interpreter."""

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
_FEW_ROWS = 1024  # threads that hand the interpreter to each other take longer than what is done with so many
_Result = TypeVar("_Result")
_allowed: ContextVar[int] = ContextVar("allowed", default=_MOST_THREADS)

# Polars loads its numpy when it first needs it, and fails where two threads do so at once: here there is one thread.
pl.Series(np.empty(0))


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Pools that are made in this context have so many threads at most; 0 means any number.

    Polars has a pool of its own, as large as `POLARS_MAX_THREADS` said when it was loaded.
    """
    token = _allowed.set(threads or _MOST_THREADS)
    try:
        yield
    finally:
        _allowed.reset(token)


class _Caller(ThreadPoolExecutor):
    """A pool whose only thread is the one that asks."""

    def map(
        self, fn: Callable[..., _Result], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[_Result]:
        """One call after another, each when its result is asked for."""
        return map(fn, *iterables)


def worker_threads(rows: int | None = None) -> ThreadPoolExecutor:
    """A pool of as many threads as the memory of large populations allows.

    Args:
        rows: of the columns that are worked on; None: many.
    """
    if rows is not None and rows <= _FEW_ROWS:
        return _Caller(1)
    return ThreadPoolExecutor(min(_MOST_THREADS, _allowed.get(), os.cpu_count() or 1))


def product_threads() -> ThreadPoolExecutor:
    """The same for products of matrices; a single one where BLAS may have threads of its own.

    Those wait for each other by spinning: beside ours, or on a busy machine, that takes longer than the product.
    """
    return worker_threads() if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else ThreadPoolExecutor(1)
