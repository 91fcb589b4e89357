"""The gate on round trips: the deviations that pass, and the message for those that fail."""

from __future__ import annotations

import pytest

from chainmark.core.manifest import GateStatus
from chainmark.network.round_trips import RoundTrip, round_trip_frame, round_trip_gate


def _pair(intended_ms: float, median_ms: float | None, name: str = "b") -> RoundTrip:
    median_s = None if median_ms is None else median_ms / 1e3
    return RoundTrip("a", name, intended_ms / 1e3, median_s, median_s, 0 if median_ms is None else 10, 10)


@pytest.mark.parametrize(
    ("intended_ms", "median_ms", "status"),
    [
        (0, 1.9, GateStatus.PASS),
        (0, 2.1, GateStatus.FAIL),
        (10, 11.9, GateStatus.PASS),
        (10, 7.9, GateStatus.FAIL),
        (100, 109, GateStatus.PASS),
        (100, 111, GateStatus.FAIL),
        (100, 89, GateStatus.FAIL),
        (100, None, GateStatus.FAIL),
    ],
)
def test_a_pair_may_deviate_by_ten_percent_or_two_milliseconds(
    intended_ms: float, median_ms: float | None, status: GateStatus
) -> None:
    assert round_trip_gate([_pair(50, 50), _pair(intended_ms, median_ms, "c")]).status is status


def test_the_worst_pairs_are_listed_with_their_figures() -> None:
    measured = [_pair(100, 120 + index, f"n{index}") for index in range(5)]
    gate = round_trip_gate(measured)
    assert gate.measured == "largest deviation a–n4: 124 ms (median, n = 10), intended 100 ms"
    assert gate.limit == "each pair's median within 10 % or 2 ms"
    assert gate.detail.startswith("a–n4: 124 ms")
    assert gate.detail.endswith("; and 2 more")


def test_an_unanswered_pair_is_reported() -> None:
    assert round_trip_gate([_pair(5, None)]).measured == "a–b: none of 10 pings were answered"


def test_a_single_node_passes_without_pairs() -> None:
    assert round_trip_gate([]).status is GateStatus.PASS


def test_the_frame_contains_every_pair_in_order() -> None:
    frame = round_trip_frame([_pair(10, 11), _pair(10, None, "c")])
    assert frame["destination"].to_list() == ["b", "c"]
    assert frame["median_s"].to_list() == [0.011, None]
    assert frame["answered"].to_list() == [10, 0]
