"""Work mapped over parts: ordered results, heavy parts first, and no work after a failure."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from chainmark.core.parts import map_parts

WAIT_S = 30


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_results_are_in_the_order_of_the_parts(pool: type[ThreadPoolExecutor | ProcessPoolExecutor]) -> None:
    """A result that depends on timing would differ between runs."""
    with pool(2) as executor:
        assert map_parts(square, list(range(20)), executor, weight=float) == [number**2 for number in range(20)]


def test_heavy_parts_begin_first() -> None:
    """If the longest part starts last, all other cores are idle."""
    begun: list[int] = []
    with ThreadPoolExecutor(1) as executor:
        map_parts(begun.append, [2, 9, 5], executor, weight=float)
    assert begun == [9, 5, 2]


def test_a_failure_stops_running_and_waiting_parts() -> None:
    """Otherwise the disk would continue to fill after an error."""
    stop, begun = threading.Event(), []

    def work(part: str) -> str:
        begun.append(part)
        if part == "fails":
            raise ValueError(part)
        assert stop.wait(WAIT_S), "the part was not cancelled"
        return part

    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match="fails"):
        map_parts(work, ["runs", "fails", "waits", "waits too"], executor, cancel=stop.set)
    assert stop.is_set()
    # The free thread may have started one more part before the failure was noticed, but no further one.
    assert "waits too" not in begun


def test_an_interruption_stops_running_parts() -> None:
    stop, running = threading.Event(), threading.Event()

    def work(_: int) -> bool:
        running.set()
        return stop.wait(WAIT_S)

    def interrupt() -> None:
        if running.is_set():
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        map_parts(work, [1, 2], executor, watch=interrupt, cancel=stop.set)
    assert stop.is_set()


def test_the_error_of_the_first_failed_part_is_reported() -> None:
    """If several parts fail, the reported error must not depend on timing."""
    both = threading.Barrier(2)

    def fail(part: int) -> None:
        both.wait(WAIT_S)
        raise ValueError(str(part))

    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match="1"):
        map_parts(fail, [1, 2], executor)


def test_results_are_handed_over_as_they_arrive_and_not_retained() -> None:
    """Tables of 52 hosts must not be held in memory until the slowest host is complete."""
    is_taken = threading.Event()
    taken = []

    def work(part: str) -> list[str]:
        if part == "slow":
            is_taken.wait(60)
        return [part]

    def take(part: str, result: list[str]) -> int:
        taken.append((part, result))
        is_taken.set()
        return len(taken)

    with ThreadPoolExecutor(2) as executor:
        assert map_parts(work, ["slow", "fast"], executor, take=take) == [2, 1]
    assert taken == [("fast", ["fast"]), ("slow", ["slow"])]
