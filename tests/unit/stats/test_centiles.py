"""Centiles compared with the definition in exact arithmetic, and distributions compared with numpy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.stats.centiles import (
    centile,
    centile_index,
    centile_indices,
    centile_with_limits,
    centiles,
    distribution,
    distribution_of_sorted,
    estimable_centile,
    finite,
    fraction_of,
)
from chainmark.stats.estimable import has_rank

finite_floats = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.integers(1, 100_000), st.sampled_from(STANDARD_CENTILES))
def test_the_index_is_the_floor_of_the_product_rounded_to_a_double(n: int, fraction: float) -> None:
    product = float(n * Fraction(fraction))
    assert centile_index(n, fraction) == min(n - 1, math.floor(product))


@pytest.mark.parametrize(
    ("n", "fraction", "index"), [(52, 0.5, 26), (52, 0.92, 47), (52, 1.0, 51), (90, 0.7, 62), (100, 0.29, 28)]
)
def test_centile_elements_match_the_published_analysis(n: int, fraction: float, index: int) -> None:
    """If this fails, a centile is the neighbour of the value in the published reports."""
    assert centile_index(n, fraction) == index


@given(st.integers(1, 100_000), st.sampled_from(STANDARD_CENTILES))
def test_a_centile_is_estimable_when_a_sample_is_expected_on_either_side(n: int, fraction: float) -> None:
    exact = Fraction(str(fraction))
    expected = exact in {0, 1} or (n * (1 - exact) >= 1 and n * exact >= 1)
    assert has_rank(n, fraction) == expected


@given(st.lists(finite_floats, min_size=1, max_size=300), st.sampled_from(STANDARD_CENTILES))
def test_at_most_the_fraction_of_samples_lies_below_a_centile(values: list[float], fraction: float) -> None:
    centile_found = centile(np.sort(values), fraction)
    assert centile_found in values
    assert sum(value < centile_found for value in values) <= len(values) * fraction + 1e-6


def test_p99_of_ten_samples_is_not_estimable() -> None:
    values = np.arange(10.0)
    assert estimable_centile(values, 0.99) is None
    assert estimable_centile(values, 0.9) == 9.0
    assert estimable_centile(values, 1.0) == 9.0
    assert estimable_centile(np.empty(0), 0.5) is None


@pytest.mark.parametrize(
    ("known", "n", "fraction", "expected"),
    [
        # The count below a median of 100 is 50 with a standard deviation of 5: the limits are 9.8 ranks away.
        (100, 100, 0.5, (50.0, 40.0, 60.0)),
        # The count below a p90 of 400 is 360 with a standard deviation of 6: 360 - 11.76 and 360 + 11.76.
        (400, 400, 0.9, (360.0, 348.0, 372.0)),
        (365, 400, 0.9, (360.0, 348.0, 365.0)),
        (360, 400, 0.9, (360.0, 348.0, 360.0)),
        (359, 400, 0.9, None),
        # 247.5 plus and minus 3.08: above it, no value is large enough.
        (250, 250, 0.99, (248.0, 244.0, 250.0)),
    ],
)
def test_limits_of_a_centile_are_ranks_among_all_values(
    known: int, n: int, fraction: float, expected: tuple[float, float, float] | None
) -> None:
    """The values are their ranks; failed requests have none. Otherwise failures would shorten the p99 of a load."""
    assert centile_with_limits(np.arange(1.0, known + 1.0), n, fraction) == expected


@pytest.mark.parametrize(("n", "fraction"), [(0, 0.5), (3, -0.1), (3, 1.1)])
def test_an_undefined_centile_is_refused(n: int, fraction: float) -> None:
    with pytest.raises(ValueError, match=r"defined|outside"):
        centile_index(n, fraction)


def test_names_of_statistics_are_exact_fractions() -> None:
    assert fraction_of("mean") is None
    assert [fraction_of(name) for name in ("min", "p50", "p99", "p99.9", "max")] == [0.0, 0.5, 0.99, 0.999, 1.0]


@given(st.lists(finite_floats, min_size=2, max_size=200), st.integers(0, 5))
def test_a_distribution_agrees_with_numpy(values: list[float], n_null: int) -> None:
    bars = distribution([*values, float("nan")], n_null)
    assert bars is not None
    assert (bars.n, bars.n_null) == (len(values), n_null + 1)
    assert bars.mean == pytest.approx(np.mean(values), abs=1e-3, rel=1e-9)
    assert bars.sd == pytest.approx(np.std(values, ddof=1), abs=1e-3, rel=1e-6)
    assert (bars.min, bars.max) == (min(values), max(values))
    assert [fraction for fraction, _ in bars.centiles] == list(STANDARD_CENTILES)


def test_distributions_of_one_sample_and_of_no_samples() -> None:
    bars = distribution([3.5])
    assert bars is not None
    assert (bars.mean, bars.sd, bars.min, bars.max) == (3.5, None, 3.5, 3.5)
    assert dict(bars.centiles)[0.5] is None
    assert distribution([float("nan"), float("inf")]) is None


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=5), st.lists(st.sampled_from(STANDARD_CENTILES), min_size=1))
def test_centiles_computed_together_equal_those_computed_separately(sizes: list[int], fractions: list[float]) -> None:
    indices = centile_indices(np.array([0, *sizes]), np.array(fractions))
    assert indices.tolist() == [
        [-1] * len(fractions),
        *([centile_index(n, fraction) for fraction in fractions] for n in sizes),
    ]
    values = np.sqrt(np.arange(float(sizes[0])))
    assert centiles(values, np.array(fractions)).tolist() == [centile(values, fraction) for fraction in fractions]


def test_a_distribution_matches_hand_computed_values() -> None:
    """2, 4, 4, 6 in any order: mean 4, sum of squares 8, divided by 3. Values that are not finite count as missing."""
    bars = distribution([6.0, math.inf, 4.0, 2.0, math.nan, 4.0], fractions=(0.25, 0.5))
    assert bars is not None
    assert (bars.n, bars.n_null, bars.mean, bars.sd) == (4, 2, 4.0, math.sqrt(8.0 / 3.0))
    assert (bars.min, bars.max, bars.centiles) == (2.0, 6.0, [(0.25, 4.0), (0.5, 4.0)])
    whole = distribution([3, 1])
    assert whole is not None
    assert (whole.n, whole.n_null, whole.mean) == (2, 0, 2.0)
    assert finite([1, 2]).dtype == np.float64
    assert finite([1.0, math.inf, -math.inf, math.nan, 2.0]).tolist() == [1.0, 2.0]


def test_a_given_mean_does_not_change_the_standard_deviation() -> None:
    bars = distribution_of_sorted(np.array([2.0, 4.0]), 3, mean=2.5)
    assert bars is not None
    assert (bars.n_null, bars.mean, bars.sd) == (3, 2.5, math.sqrt(2.0))
    assert distribution_of_sorted(np.empty(0), 3) is None


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e300 / 3])
def test_the_mean_of_equal_values_is_exact(value: float) -> None:
    """The rounded quotient of sum and count may exceed the maximum, which would make readers doubt the whole table."""
    bars = distribution([value] * 3)
    assert bars is not None
    assert (bars.mean, bars.sd) == (value, 0.0)
