"""Work that grows with the input, done part by part: a pure function mapped over parts, wherever they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")
PERIOD_S = 0.1


def _nothing() -> None:
    """The default of what is called now and then."""


def map_parts(
    function: Callable[[Part], Result],
    parts: Sequence[Part],
    executor: Executor,
    *,
    weight: Callable[[Part], float] = lambda _: 0.0,
    watch: Callable[[], None] = _nothing,
    cancel: Callable[[], None] = _nothing,
) -> list[Result]:
    """The function's results, in the order of the parts, whatever the order in which they came about.

    The first failure, and an interruption, ends everything: what has not begun never begins, what runs is told to
    stop and waited for, so that nothing works on when this returns.

    Args:
        function: importable and without side effects beside its result, so that it may run on another machine.
        parts: one piece of work each: one host's logs.
        executor: threads, processes, a cluster's client; the caller closes it.
        weight: how long a part takes, in any unit; the longest begin first.
        watch: called about ten times a second while parts run.
        cancel: tells the running parts to stop.

    Raises:
        Exception: what the first failed part, in the order of the parts, raised.
    """
    heavy_first = sorted(range(len(parts)), key=lambda index: -weight(parts[index]))
    futures: dict[int, Future[Result]] = {}
    try:
        for index in heavy_first:
            futures[index] = executor.submit(function, parts[index])
        _wait(list(futures.values()), watch)
    finally:
        # Without effect where all is done.
        for future in futures.values():
            future.cancel()
        if any(not future.done() for future in futures.values()):
            cancel()
            wait(futures.values())
    ordered = [futures[index] for index in range(len(parts))]
    failed = next((error for future in ordered if not future.cancelled() and (error := future.exception())), None)
    if failed is not None:
        raise failed
    return [future.result() for future in ordered]


def _wait(futures: Sequence[Future[Result]], watch: Callable[[], None]) -> None:
    """Until all are done or one has failed."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=PERIOD_S, return_when=FIRST_EXCEPTION)
        watch()
        if any(future.exception() is not None for future in done):
            return
