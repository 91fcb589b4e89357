"""The minimum number of samples for which a centile is reported."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.stats.estimable import fewest_for_upper_bound, has_rank, has_upper_bound

FRACTIONS = st.sampled_from([0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999])
RISKS = st.sampled_from([0.01, 0.05, 0.1, 0.25])


@pytest.mark.parametrize(("fraction", "n"), [(0.99, 299), (0.95, 59), (0.5, 5)])
def test_the_minimum_number_of_requests_of_a_centile(fraction: float, n: int) -> None:
    """The smallest n with ``fraction^n`` of at most 5 %, e.g. 299 for a p99 as in the specification."""
    assert fewest_for_upper_bound(fraction) == n
    assert has_upper_bound(n, fraction)
    assert not has_upper_bound(n - 1, fraction)


@given(FRACTIONS, RISKS)
def test_the_minimum_is_the_smallest_n_with_a_bound(fraction: float, risk: float) -> None:
    """Also for risks that are a power of the fraction (0.25 of 0.5), where a logarithm's last digit decides."""
    n = fewest_for_upper_bound(fraction, risk)
    assert Fraction(fraction) ** n <= Fraction(risk) < Fraction(fraction) ** (n - 1)


@given(st.integers(0, 5000), FRACTIONS, RISKS)
def test_estimability_is_monotone_in_the_number_of_samples(n: int, fraction: float, risk: float) -> None:
    assert not has_upper_bound(n, fraction, risk) or has_upper_bound(n + 1, fraction, risk)
    assert not has_rank(n, fraction) or has_rank(n + 1, fraction)


@given(st.integers(0, 5000), st.sampled_from([0.9, 0.95, 0.99, 0.999]))
def test_every_centile_with_a_bound_has_a_rank(n: int, fraction: float) -> None:
    """A bound needs more samples than a value: a p99 has a value from 100 samples on, and a bound from 299 on."""
    assert has_rank(n, fraction) or not has_upper_bound(n, fraction)


@pytest.mark.parametrize(
    ("fraction", "n"), [(0.0, 1), (0.01, 100), (0.1, 10), (0.5, 2), (0.9, 10), (0.99, 100), (0.999, 1000), (1.0, 1)]
)
def test_the_minimum_number_of_samples_of_a_centile(fraction: float, n: int) -> None:
    """One sample is expected on either side. A report would omit a p90 of ten samples, or contain a p99 of nine."""
    assert has_rank(n, fraction)
    assert not has_rank(n - 1, fraction)


@pytest.mark.parametrize(("fraction", "n"), [(0.9, 4), (0.75, 3), (0.85, 2), (0.95, 5), (0.5, 2), (0.1, 2)])
def test_the_last_digit_of_a_logarithm_does_not_change_the_minimum(fraction: float, n: int) -> None:
    """The quotient of the logarithms may be above n for the risk itself, and n for the next smaller risk."""
    risk = fraction**n
    assert fewest_for_upper_bound(fraction, risk) == n
    assert fewest_for_upper_bound(fraction, math.nextafter(risk, 0.0)) == n + 1


def test_no_samples_give_no_rank_and_no_bound() -> None:
    assert not has_rank(0, 1.0)
    assert not has_upper_bound(0, 0.5)
    assert has_upper_bound(1, 0.04), "one sample is above the p4 with a probability of 96 %"
