"""Packed numbers are unpacked without any loss."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from chainmark.stats.packed import packed, packed_floats, unpacked, unpacked_floats


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_survive_packing(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    assert unpacked(packed(values)).tolist() == numbers


@example([-0.0])
@example([-0.0, 0.0, 0.5])
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False))
    | st.lists(st.integers(-(10**12), 10**12).map(lambda number: number / 1e9))
)
def test_floats_survive_packing(numbers: list[float]) -> None:
    values = np.sort(np.array(numbers, dtype=np.float64))
    assert unpacked_floats(packed_floats(values)).tobytes() == values.tobytes()


def test_times_in_nanoseconds_take_few_bytes() -> None:
    times = np.arange(1000) * 1_000 / 1e9
    assert len(packed_floats(times)) < 2100
    assert len(packed_floats(np.sqrt(times))) < 8100
