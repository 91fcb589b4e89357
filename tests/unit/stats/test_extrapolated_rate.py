"""The extrapolated rate of Prometheus by its definition. Another test compares it with a real server."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.times import NS
from chainmark.stats.extrapolated_rate import extrapolated_rate

WINDOW_NS = 20 * NS


def _rate(times_s: list[float], values: list[float], at_s: float) -> float:
    times = np.array([round(time_s * NS) for time_s in times_s], dtype=np.int64)
    at_ns = np.array([round(at_s * NS)], dtype=np.int64)
    return float(extrapolated_rate(times, np.array(values, dtype=float), at_ns, WINDOW_NS)[0])


@given(slope=st.floats(0.01, 1e6), phase=st.floats(0, 0.99), step=st.sampled_from([1, 2, 5]))
def test_the_rate_of_a_steady_counter_is_its_slope(slope: float, phase: float, step: int) -> None:
    times = [phase + step * index for index in range(40)]
    assert _rate(times, [1e9 + slope * time for time in times], 30) == pytest.approx(slope, rel=1e-4)


def test_scrapes_every_5_s_are_extrapolated_to_the_windows_edges() -> None:
    # Scrapes at 3, 8, 13 and 18 s in (0, 20]: 30 in 15 s, and both edges are closer than one interval.
    assert _rate([3, 8, 13, 18], [100, 110, 120, 130], 20) == pytest.approx(40 / 20)


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([1, 2, 3, 4], 3 + 1 + 0.5),  # 1 s before and half of a step after: 16 s are too far
        ([16, 17, 18, 19], 0.5 + 3 + 1),
        ([5.5, 10.5, 15.5], 5 * 0.5 + 10 + 4.5),  # exactly 1.1 steps of 5 s are too far
        ([4.5, 9.5, 14.5], 4.5 + 10 + 5 * 0.5),
    ],
)
def test_where_a_counter_begins_or_ends_only_half_a_step_is_added(times_s: list[float], expected: float) -> None:
    assert _rate(times_s, [1000 + time_s for time_s in times_s], 20) == pytest.approx(expected / 20)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 11, 21, 31], 30 * (15 + 0.5) / 15),  # it was zero half a second before
        ([0.01, 0.11, 0.21, 0.31], 0.3 * (15 + 0.5) / 15),
        ([0, 10, 20, 30], 30),  # it is zero at the first sample
        ([0.5, 10.5, 20.5, 30.5], 30 * (15 + 0.25) / 15),
        ([-10, 0, 10, 20], 30 * (15 + 5) / 15),  # no counter, so the extrapolation has no such limit
        ([7, 7, 7, 7], 0),
        ([0, 0, 0, 0], 0),
    ],
)
def test_a_counter_is_not_extrapolated_below_zero(values: list[float], expected: float) -> None:
    assert _rate([5, 10, 15, 20], values, 20) == pytest.approx(expected / 20)


@pytest.mark.parametrize(
    ("times_s", "values", "expected"),
    [
        ([0, 10, 20], [100, 5, 15], 5 + 10),
        ([0, 10, 20], [100, 130, 15], 30 + 15),
        ([0, 10, 20], [100, 100, 130], 30),  # no decrease
        ([-20, -10, 0, 10, 20], [50, 200, 3, 13, 23], 20),  # the window does not contain the reset
    ],
)
def test_a_decrease_is_a_counter_reset(times_s: list[float], values: list[float], expected: float) -> None:
    assert _rate(times_s, values, 20) == pytest.approx(expected / 20)


def test_fewer_than_two_samples_give_no_rate() -> None:
    assert np.isnan(_rate([10], [1], 20))
    assert np.isnan(_rate([], [], 20))
    assert np.isnan(_rate([1, 2, 3], [1, 2, 3], 100))
