"""Numeric work uses at most the requested number of threads."""

from __future__ import annotations

import subprocess
import sys
from threading import get_ident

import pytest

from chainmark.stats.threads import at_most, product_threads, worker_threads

FOUND = (
    "import importlib, sys, polars.series.series as series; importlib.import_module(sys.argv[1]); "
    "print('ndarray' in vars(series.np))"
)


def test_one_requested_thread_means_one_thread() -> None:
    """`--threads 1` on a shared machine must leave its other processors free."""
    most = worker_threads()._max_workers
    with at_most(1):
        assert worker_threads()._max_workers == product_threads()._max_workers == 1
        with at_most(0):
            assert worker_threads()._max_workers == most
        assert worker_threads()._max_workers == 1
    assert worker_threads()._max_workers == most


def test_few_rows_are_processed_by_the_calling_thread() -> None:
    """Threads that compete for the interpreter lock make a small run 25 % slower."""
    with worker_threads(10) as pool:
        assert list(pool.map(lambda _: get_ident(), range(3))) == [get_ident()] * 3


@pytest.mark.parametrize("module", ["chainmark.stats.threads", "chainmark.lab.importing", "chainmark.lab.running"])
def test_polars_loads_numpy_before_threads_start(module: str) -> None:
    """If two threads imported it at the same time, an import of logs occasionally failed with a TypeError."""
    process = subprocess.run([sys.executable, "-c", FOUND, module], capture_output=True, text=True, check=True)
    assert process.stdout == "True\n"
