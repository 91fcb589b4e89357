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


def test_where_a_counter_ends_only_half_a_step_is_added() -> None:
    assert _rate([1, 2, 3, 4], [1001, 1002, 1003, 1004], 20) == pytest.approx((3 + 1 + 0.5) / 20)


def test_a_counter_is_not_extrapolated_below_zero() -> None:
    assert _rate([5, 10, 15, 20], [1, 11, 21, 31], 20) == pytest.approx(30 * (15 + 0.5) / 15 / 20)


def test_a_decrease_is_a_counter_reset() -> None:
    assert _rate([0, 10, 20], [100, 5, 15], 20) == pytest.approx((5 + 10) / 20)


def test_fewer_than_two_samples_give_no_rate() -> None:
    assert np.isnan(_rate([10], [1], 20))
    assert np.isnan(_rate([], [], 20))
    assert np.isnan(_rate([1, 2, 3], [1, 2, 3], 100))
