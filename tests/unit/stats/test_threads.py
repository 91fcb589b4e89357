"""Threads of numeric work: as many as somebody asked for, at most."""

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


def test_who_asks_for_one_thread_gets_one() -> None:
    """`--threads 1` on a shared machine must leave its other processors alone."""
    most = worker_threads()._max_workers
    with at_most(1):
        assert worker_threads()._max_workers == product_threads()._max_workers == 1
        with at_most(0):
            assert worker_threads()._max_workers == most
        assert worker_threads()._max_workers == 1
    assert worker_threads()._max_workers == most


def test_few_rows_are_worked_on_by_the_thread_that_asks() -> None:
    """Threads that hand the interpreter to each other take a quarter longer over a small run."""
    with worker_threads(10) as pool:
        assert list(pool.map(lambda _: get_ident(), range(3))) == [get_ident()] * 3


@pytest.mark.parametrize("module", ["chainmark.stats.threads", "chainmark.lab.importing", "chainmark.lab.running"])
def test_polars_has_its_numpy_before_there_are_threads(module: str) -> None:
    """Two threads that looked for it at the same time ended an import of logs with a TypeError, once in many."""
    process = subprocess.run([sys.executable, "-c", FOUND, module], capture_output=True, text=True, check=True)
    assert process.stdout == "True\n"
