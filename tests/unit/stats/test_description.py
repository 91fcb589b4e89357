"""The data of a run that is cached for all metrics of a comparison."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from chainmark.stats.keyed_means import coded
from chainmark.stats.replicates import instants_of


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_instants_of_selected_rows_are_the_instants_of_those_rows(rows: list[tuple[int, bool]]) -> None:
    """Otherwise a curve over time would have values at the wrong second."""
    times = np.array(sorted(time for time, _ in rows), dtype=float)
    present = np.array([held for _, held in rows])
    whole = instants_of(times)
    assert whole is not None
    instants = whole.of(present)
    present_times = times[present]
    assert instants.times.tolist() == sorted(set(present_times.tolist()))
    assert instants.starts.tolist() == [present_times.tolist().index(time) for time in instants.times]
    assert instants.rows == len(present_times)


def test_rows_without_a_time_have_no_instants() -> None:
    assert instants_of(np.array([0.0, np.nan])) is None


def test_keys_of_any_type_are_numbered_in_order_of_name() -> None:
    """Otherwise hosts would swap between two runs that name them in different orders."""
    names = ["b", None, "a", "b"]
    for column in (pl.Series(names), pl.Series(names, dtype=pl.Enum(["c", "b", "a"]))):
        factors = coded(column)
        assert factors.names == ["a", "b"]
        assert factors.codes.tolist() == [1, 2, 0, 1]
    assert coded(pl.Series([10, 9, None])).names == ["10", "9"]
