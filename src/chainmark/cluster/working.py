"""A function's behaviour while it runs on a worker: it reports its progress, and stops when its result is unwanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Where workers report, and how often they report and check whether they are still wanted.
TOPIC = "chainmark-progress"
PERIOD_S = 0.25


@contextmanager
def watched(cancel: Callable[[], None], report: Callable[[], Any]) -> Iterator[None]:
    """Report from the worker that runs this while the context lasts; on any other machine do nothing.

    Args:
        cancel: called once when the client has cancelled the work, or is gone.
        report: the progress of the work, as numbers; called by another thread.
    """
    worker = _worker()
    if worker is None:
        yield
        return
    key, is_over = worker.get_current_task(), threading.Event()

    def watch() -> None:
        while not is_over.wait(PERIOD_S):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                cancel()
                return
            worker.log_event(TOPIC, {"key": key, "report": report()})

    thread = threading.Thread(target=watch, name="chainmark-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _worker() -> Any:
    """The worker whose thread this is; None on any other machine."""
    try:
        from distributed import get_worker  # noqa: PLC0415 - an extra, which every worker has

        return get_worker()
    except (ImportError, ValueError):
        return None
