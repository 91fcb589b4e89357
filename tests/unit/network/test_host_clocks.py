"""The clock of another machine is known within its stated error, whatever the delays of the exchanges are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.manifest import GateStatus
from chainmark.network.clocks import (
    ERROR_MAX_S,
    ClockOffset,
    Exchange,
    clock_facts,
    clock_gate,
    clock_offset,
    greatest_difference_error_s,
    greatest_reading_error_s,
)

EPOCH_NS = 1_790_000_000 * 10**9
S = 10**9


def _there(at_ns: float, ahead_s: float, drift: float) -> int:
    return round(at_ns + ahead_s * S + drift * (at_ns - EPOCH_NS))


def _exchanges(
    ahead_s: float, drift: float, delays_s: list[tuple[float, float]], every_s: float = 1.0
) -> list[Exchange]:
    """Exchanges with these delays there and back, one after the other."""
    results = []
    for number, (there_s, back_s) in enumerate(delays_s):
        sent_ns = EPOCH_NS + round(number * every_s * S)
        read_ns = sent_ns + there_s * S
        results.append(Exchange(sent_ns, _there(read_ns, ahead_s, drift), round(read_ns + back_s * S)))
    return results


_DELAY = st.floats(0.0001, 0.3)


@given(st.floats(-3600.0, 3600.0), st.floats(-2e-4, 2e-4), st.lists(st.tuples(_DELAY, _DELAY), min_size=1, max_size=60))
def test_times_are_converted_within_the_stated_error(
    ahead_s: float, drift: float, delays_s: list[tuple[float, float]]
) -> None:
    """Delays may be asymmetric: the error covers the worst case at every exchange."""
    exchanges = _exchanges(ahead_s, drift, delays_s)
    clock = clock_offset(exchanges)
    used = [each for each in exchanges if each.error_ns <= 2.0 * min(other.error_ns for other in exchanges)]
    assert clock.exchanges == len(used)
    if clock.drift:
        true_ns = np.array([round(each.at_ns) for each in used], dtype=np.int64)
    else:
        best = min(used, key=lambda each: each.error_ns)
        true_ns = np.array([round(best.at_ns)], dtype=np.int64)
    there_ns = np.array([_there(at_ns, ahead_s, drift) for at_ns in true_ns.tolist()], dtype=np.int64)
    assert np.abs(clock.to_here(there_ns) - true_ns).max() <= clock.error_ns * (1.0 + 1e-3) + 1000.0


def test_offsets_are_exact_to_the_nanosecond() -> None:
    """As a float, a time since 1970 is known to 256 ns: more than an exchange within a machine takes."""
    clock = clock_offset([Exchange(EPOCH_NS + 1, EPOCH_NS + 7, EPOCH_NS + 6)])
    assert (clock.at_ns, clock.offset_ns, clock.error_ns) == (EPOCH_NS + 3, 3.5, 2.5)
    assert isinstance(clock.at_ns, int)
    assert clock.to_here(np.array([EPOCH_NS + 100])).tolist() == [EPOCH_NS + 96]


def test_a_drift_is_found_and_followed() -> None:
    """A clock that is 50 ppm fast gains 30 ms in ten minutes."""
    clock = clock_offset(_exchanges(1.5, 5e-5, [(0.001, 0.001)] * 600))
    assert clock.drift == pytest.approx(5e-5, rel=1e-3)
    assert clock.error_ns == pytest.approx(1e6, rel=1e-2), "no exchange contradicts the line"
    late_ns = EPOCH_NS + 590 * S
    (here_ns,) = clock.to_here(np.array([_there(late_ns, 1.5, 5e-5)], dtype=np.int64)).tolist()
    assert here_ns == pytest.approx(late_ns, abs=2_000)
    assert abs(clock.to_there(here_ns) - _there(late_ns, 1.5, 5e-5)) <= 1_000, "the inverse"


def test_a_few_exchanges_show_no_drift() -> None:
    """Over three seconds, a difference of half a millisecond would be taken for 170 ppm."""
    clock = clock_offset(_exchanges(0.0, 0.0, [(0.001, 0.002), (0.002, 0.001), (0.001, 0.001), (0.002, 0.001)]))
    assert clock.drift == 0.0
    assert clock.error_ns == pytest.approx(1e6, rel=1e-3)


def test_delayed_exchanges_are_not_used() -> None:
    clock = clock_offset(_exchanges(0.02, 0.0, [(0.001, 0.001)] * 20 + [(0.5, 0.001)] * 20))
    assert clock.exchanges == 20
    assert clock.offset_ns == pytest.approx(0.02 * S, abs=1000)


@pytest.mark.parametrize("fast", [3, 20])
def test_a_clock_that_is_set_is_not_known_even_if_only_slow_exchanges_follow(fast: int) -> None:
    """Without them, the error would be that of the time before: 0.3 ms."""
    before = _exchanges(0.0, 1e-5, [(0.0003, 0.0003)] * fast)
    late = [
        Exchange(each.sent_ns + 20 * S, each.there_ns + 20 * S, each.received_ns + 20 * S)
        for each in _exchanges(0.8, 1e-5, [(0.003, 0.001)] * 20)
    ]
    assert clock_offset(before).error_ns < 0.001 * S
    clock = clock_offset([*before, *late])
    assert clock.exchanges == fast
    assert clock.error_ns == pytest.approx(0.8 * S, abs=0.005 * S)
    assert clock_gate({"host-1": clock}).status is GateStatus.FAIL


def test_a_clock_that_is_not_known_well_enough_makes_a_run_invalid() -> None:
    near, far = (ClockOffset(0, -0.004 * S, 1e-6, error_s * S, 30) for error_s in (0.001, ERROR_MAX_S * 1.01))
    assert clock_gate({"10.0.0.1": near}).status is GateStatus.PASS
    gate = clock_gate({"10.0.0.1": near, "10.0.0.2": far})
    assert (gate.status, gate.measured) == (GateStatus.FAIL, "to 101 ms (10.0.0.2)")
    (fact,) = clock_facts({"10.0.0.1": near})
    assert (fact.label, fact.value) == ("Clock of 10.0.0.1", "4 ms behind, ± 1 ms, drift 1.0 ppm (30 exchanges)")


def test_the_error_contains_the_distance_of_each_exchange_from_the_line() -> None:
    """One of twelve answers came at once, so its offset is 1 ms too large and its own error 1 ms."""
    exchanges = _exchanges(0.25, 1e-4, [(0.001, 0.001)] * 8 + [(0.002, 0.0)] + [(0.001, 0.001)] * 3)
    clock = clock_offset(exchanges)
    assert clock.exchanges == 12
    assert clock.drift == pytest.approx(1e-4, abs=5e-5)
    assert 0.0017 < clock.error_ns / S < 0.002


@pytest.mark.parametrize(("number", "every_s", "is_fitted"), [(5, 2.5, True), (4, 5.0, False), (5, 2.2, False)])
def test_a_drift_needs_five_exchanges_over_ten_seconds(number: int, every_s: float, *, is_fitted: bool) -> None:
    """Over a shorter time, or through fewer points, it would be noise of the exchanges."""
    clock = clock_offset(_exchanges(0.0, 1e-4, [(0.001, 0.001)] * number, every_s))
    assert (clock.drift != 0.0) is is_fitted
    assert clock.exchanges == number


def test_an_exchange_that_took_twice_as_long_as_the_shortest_is_used() -> None:
    assert clock_offset(_exchanges(0.0, 0.0, [(0.001, 0.001), (0.002, 0.002), (0.002, 0.0021)])).exchanges == 2


def test_the_host_whose_clock_is_known_worst_is_named() -> None:
    clocks = {
        host: ClockOffset(EPOCH_NS, 0.0, 0.0, error_s * S, 10)
        for host, error_s in (("host-2", 0.001), ("host-1", ERROR_MAX_S), ("host-9", 0.002))
    }
    gate = clock_gate(clocks)
    assert (gate.label, gate.measured) == ("the hosts' clocks are known", "to 100 ms (host-1)")
    assert gate.status is GateStatus.PASS


@pytest.mark.parametrize(
    ("offset_ns", "drift", "words"),
    [
        (0.25 * S, 2e-5, "250 ms ahead, ± 1 ms, drift 20.0 ppm (12 exchanges)"),
        (-0.25 * S, 0.0, "250 ms behind, ± 1 ms (12 exchanges)"),
        (0.0, 0.0, "0 s ahead, ± 1 ms (12 exchanges)"),
        (0.5, 1.0, "0.5 ns ahead, ± 1 ms, drift 1,000,000.0 ppm (12 exchanges)"),
    ],
)
def test_a_clock_is_described_by_its_offset_error_and_drift(offset_ns: float, drift: float, words: str) -> None:
    (fact,) = clock_facts({"host-1": ClockOffset(EPOCH_NS, offset_ns, drift, 0.001 * S, 12)})
    assert (fact.label, fact.value) == ("Clock of host-1", words)


def test_a_difference_of_two_clocks_has_both_their_errors_and_that_of_one_clock_none() -> None:
    """Latencies of one machine are exact; between the two worst of several their errors add up."""
    clocks = [ClockOffset(EPOCH_NS, -3.0 * S, 0.0, error_s * S, 10) for error_s in (0.001, 0.004, 0.002)]
    assert greatest_difference_error_s(clocks) == pytest.approx(0.006)
    assert greatest_difference_error_s(clocks[:2]) == pytest.approx(0.005)
    assert greatest_difference_error_s(clocks[:1]) == greatest_difference_error_s([]) == 0.0


def test_a_time_that_is_used_as_it_was_stamped_is_wrong_by_the_offset_of_its_clock() -> None:
    """The clock may be ahead or behind."""
    clocks = [ClockOffset(EPOCH_NS, offset_s * S, 0.0, 0.001 * S, 10) for offset_s in (0.25, -0.5)]
    assert greatest_reading_error_s(clocks) == pytest.approx(0.501)
    assert greatest_reading_error_s([]) == 0.0
