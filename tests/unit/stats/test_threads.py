"""Threads of numeric work: as many as somebody asked for, at most."""

from __future__ import annotations

from chainmark.stats.threads import at_most, product_threads, worker_threads


def test_who_asks_for_one_thread_gets_one() -> None:
    """`--threads 1` on a shared machine must leave its other processors alone."""
    most = worker_threads()._max_workers
    with at_most(1):
        assert worker_threads()._max_workers == product_threads()._max_workers == 1
        with at_most(0):
            assert worker_threads()._max_workers == most
        assert worker_threads()._max_workers == 1
    assert worker_threads()._max_workers == most
