"""Means per key value, such as a host, compared with values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from chainmark.stats.keyed_means import Coded, Means, coded, means_of

NAN = math.nan


def test_the_error_of_a_mean_uses_the_larger_of_own_and_pooled_spread() -> None:
    """A host with few samples that agree by chance must not become an outlier."""
    means = Means({"calm": (1.0, 4), "wild": (2.0, 5), "once": (3.0, 1)}, {"calm": 3.0, "wild": 39.0, "once": 0.0}, 7)
    # The pooled sum of squares is 42 with 7 degrees of freedom: 6. Calm alone has 3 / 3 = 1, wild alone 39 / 4.
    assert means.standard_error("calm") == pytest.approx(math.sqrt(6.0 / 4))
    assert means.standard_error("wild") == pytest.approx(math.sqrt(39.0 / 4 / 5))
    assert means.standard_error("once") == pytest.approx(math.sqrt(6.0))
    calm = Means({"a": (1.0, 5), "once": (3.0, 1)}, {"a": 0.04, "once": 0.0}, 4)
    assert calm.standard_error("once") == pytest.approx(0.1)
    assert Means({"two": (1.0, 2)}, {"two": 50.0}, 10).standard_error("two") == pytest.approx(5.0)


def test_one_sample_per_host_gives_no_error() -> None:
    assert Means({"a": (1.0, 1), "b": (2.0, 1)}, {"a": 0.0, "b": 0.0}).standard_error("a") == 0.0
    assert Means({"a": (1.0, 3)}, {}, 2).standard_error("a") == 0.0


def test_rows_without_a_host_are_ignored() -> None:
    """They count neither for the means, nor for the spread or its degrees of freedom."""
    column = coded(pl.Series(["b", None, "a", "b", "b", None, "c", "a"]))
    values = np.array([1.0, 100.0, 7.0, NAN, 4.0, 300.0, NAN, math.inf])
    values_with_gaps = values.copy()
    means = means_of(column, values)
    assert means == Means({"a": (7.0, 1), "b": (2.5, 2)}, {"a": 0.0, "b": 4.5}, 1)
    assert np.array_equal(values, values_with_gaps, equal_nan=True), "the samples must not change"
    whole = means_of(column, np.arange(8.0))
    assert whole.of == {"a": (4.5, 2), "b": (7.0 / 3.0, 3), "c": (6.0, 1)}
    assert whole.squares == pytest.approx({"a": 12.5, "b": 26.0 / 3.0, "c": 0.0})
    assert whole.freedom == 3


def test_a_sample_without_any_value_or_host_has_no_means() -> None:
    for names, values in ((["a", "b"], [NAN, NAN]), ([None, None], [1.0, 2.0])):
        means = means_of(coded(pl.Series(names, dtype=pl.String)), np.array(values))
        assert means == Means({}, {}, 0)


@pytest.mark.parametrize(
    ("column", "names", "codes"),
    [
        (pl.Series(["b", None, "a", "b"]), ["a", "b"], [1, 2, 0, 1]),
        (pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["x", "b", "y", "a"])), ["a", "b"], [1, 2, 0, 1]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ["a", "b"], [1, 0]),
        (pl.Series([10, 9, None, 10]), ["10", "9"], [0, 1, 2, 0]),
        (pl.Series([None, None], dtype=pl.String), [], [0, 0]),
        (pl.Series([], dtype=pl.String), [], []),
    ],
    ids=["text", "enum", "categories", "numbers", "nothing", "no rows"],
)
def test_key_values_are_numbered_in_order_of_name(column: pl.Series, names: list[str], codes: list[int]) -> None:
    """The order does not depend on the type of the key. A value without rows is omitted."""
    factors: Coded = coded(column)
    assert factors.names == names
    assert factors.codes.tolist() == codes
    assert factors.codes.dtype == np.int32
