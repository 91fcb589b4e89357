"""The minimum number of samples for which a centile is reported."""

from __future__ import annotations

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


def test_no_samples_give_no_rank_and_no_bound() -> None:
    assert not has_rank(0, 1.0)
    assert not has_upper_bound(0, 0.5)
