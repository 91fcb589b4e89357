"""Work that grows with the input, done part by part: a pure function mapped over parts, on this or other machines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")
Taken = TypeVar("Taken")
PERIOD_S = 0.1


def _nothing() -> None:
    """The default of an optional callback."""


def anywhere(_: Any) -> Collection[str]:
    """The default place of a part: any machine."""
    return ()


def as_it_is(_: Part, result: Result) -> Any:
    """The default use of a result."""
    return result


def equally_long(_: Any) -> float:
    """The default duration of a part."""
    return 0.0


def unwatched(_: Mapping[int, Any]) -> None:
    """The default use of reports."""


class Machines(Protocol):
    """Other machines that work on parts, such as the workers of a cluster."""

    @property
    def threads(self) -> int:
        """The number of parts that they work on at the same time."""

    def ask_each(self, function: Callable[[Part], Result], question: Part) -> dict[str, Result]:
        """The result of an importable function on each machine, by the machine's address.

        Raises:
            ChainmarkError: an error of the function on one of them, or a machine or the network failed.
        """

    def objects(self, make: Callable[[], Any]) -> AbstractContextManager[dict[str, Callable[..., Any]]]:
        """One object on each machine while the context lasts: how to call it, by the machine's address.

        Later calls use the machines of the first one, so that what is compared ran on the same ones.

        Args:
            make: importable; makes the object where it is called. One thread makes all calls of its method ``call``.

        Raises:
            LostMachineError: a machine of the first call is lost.
            ChainmarkError: an error of the object, or a machine or the network failed.
        """

    def for_load(self) -> frozenset[str]:
        """The addresses of the machines that are reserved for load and observation."""

    def wait_for_replacement(self, worker: str, within_s: float) -> bool:
        """Wait until a worker is no longer among them and its place is filled; whether that happened in time."""

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        at: Callable[[Part], Collection[str]] = anywhere,
        take: Callable[[Part, Result], Taken] = as_it_is,
        weight: Callable[[Part], float] = equally_long,
        watch: Callable[[Mapping[int, Any]], None] = unwatched,
    ) -> list[Taken]:
        """Like `map_parts`, on these machines; a part whose machine is lost is repeated.

        Args:
            function: importable on every machine; reports its progress by `chainmark.cluster.working.watched`.
            parts: one piece of work each.
            at: the addresses of the machines that can do a part; none: any machine can.
            take: called here with every result as it arrives.
            weight: duration of a part, in any unit; the longest begin first.
            watch: called about ten times a second with the last report of each part that has sent any, by its index.

        Raises:
            ChainmarkError: an error of the function, or a machine or the network failed.
        """


def map_parts(
    function: Callable[[Part], Result],
    parts: Sequence[Part],
    executor: Executor,
    *,
    weight: Callable[[Part], float] = equally_long,
    watch: Callable[[], None] = _nothing,
    cancel: Callable[[], None] = _nothing,
    take: Callable[[Part, Result], Taken] = as_it_is,
) -> list[Taken]:
    """The function's results, in the order of the parts, independent of the order of their completion.

    The first failure, or an interrupt, ends everything: waiting parts never start, running parts are
    stopped and waited for, so that nothing is running when this returns.

    Args:
        function: importable and without side effects besides its result, so that it may run on another machine.
        parts: one piece of work each: one host's logs.
        executor: threads, processes, a cluster's client; the caller closes it.
        weight: duration of a part, in any unit; the longest begin first.
        watch: called about ten times a second while parts run.
        cancel: tells the running parts to stop.
        take: called by this thread with every part and its result soon after its completion; its return value replaces
            the part's result, so that nothing large has to wait for the last part.

    Raises:
        Exception: the error of the first failed part, in the order of the parts.
    """
    heavy_first = sorted(range(len(parts)), key=lambda index: -weight(parts[index]))
    futures: dict[int, Future[Result]] = {}
    taken: dict[int, Taken] = {}
    try:
        for index in heavy_first:
            futures[index] = executor.submit(function, parts[index])
        while futures:
            done, _ = wait(futures.values(), timeout=PERIOD_S, return_when=FIRST_EXCEPTION)
            watch()
            if any(future.exception() is not None for future in done):
                break
            for index in [index for index, future in futures.items() if future in done]:
                taken[index] = take(parts[index], futures.pop(index).result())
    finally:
        # No effect if everything is done.
        for future in futures.values():
            future.cancel()
        if any(not future.done() for future in futures.values()):
            cancel()
            wait(futures.values())
    for index in sorted(futures):
        future = futures[index]
        if not future.cancelled() and (error := future.exception()) is not None:
            raise error
    return [taken[index] for index in range(len(parts))]
