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
    assert (clock.offset_ns, clock.error_ns) == (3.5, 2.5)
    assert clock.to_here(np.array([EPOCH_NS + 100])).tolist() == [EPOCH_NS + 96]


def test_a_drift_is_found_and_followed() -> None:
    """A clock that is 50 ppm fast gains 30 ms in ten minutes."""
    clock = clock_offset(_exchanges(1.5, 5e-5, [(0.001, 0.001)] * 600))
    assert clock.drift == pytest.approx(5e-5, rel=1e-3)
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


def test_a_clock_that_is_not_known_well_enough_makes_a_run_invalid() -> None:
    near, far = (ClockOffset(0, -0.004 * S, 1e-6, error_s * S, 30) for error_s in (0.001, ERROR_MAX_S * 1.01))
    assert clock_gate({"10.0.0.1": near}).status is GateStatus.PASS
    gate = clock_gate({"10.0.0.1": near, "10.0.0.2": far})
    assert (gate.status, gate.measured) == (GateStatus.FAIL, "to 101 ms (10.0.0.2)")
    (fact,) = clock_facts({"10.0.0.1": near})
    assert (fact.label, fact.value) == ("Clock of 10.0.0.1", "4 ms behind, ± 1 ms, drift 1.0 ppm (30 exchanges)")


def test_a_difference_of_two_clocks_has_both_their_errors_and_that_of_one_clock_none() -> None:
    """Latencies of one machine are exact; between the two worst of several their errors add up."""
    clocks = [ClockOffset(EPOCH_NS, -3.0 * S, 0.0, error_s * S, 10) for error_s in (0.001, 0.004, 0.002)]
    assert greatest_difference_error_s(clocks) == pytest.approx(0.006)
    assert greatest_difference_error_s(clocks[:1]) == greatest_difference_error_s([]) == 0.0


def test_a_time_that_is_used_as_it_was_stamped_is_wrong_by_the_offset_of_its_clock() -> None:
    """The clock may be ahead or behind."""
    clocks = [ClockOffset(EPOCH_NS, offset_s * S, 0.0, 0.001 * S, 10) for offset_s in (0.25, -0.5)]
    assert greatest_reading_error_s(clocks) == pytest.approx(0.501)
    assert greatest_reading_error_s([]) == 0.0
