"""Effect sizes against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.stats.effects import largest_gap, probability_larger, wasserstein

samples = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@given(samples, samples)
def test_effect_sizes_agree_with_brute_force(left: list[float], right: list[float]) -> None:
    a, b = np.sort(left), np.sort(right)
    wins = sum((y > x) + 0.5 * (y == x) for x in left for y in right)
    assert probability_larger(a, b) == pytest.approx(wins / (len(left) * len(right)))
    gap, at = largest_gap(a, b)
    gaps = {v: abs(np.mean(a <= v) - np.mean(b <= v)) for v in {*left, *right}}
    assert gap == pytest.approx(max(gaps.values()))
    assert gaps[at] == pytest.approx(gap)


def test_a_shift_is_its_own_wasserstein_distance() -> None:
    values = np.linspace(0.0, 1.0, 50)
    assert wasserstein(values, values + 0.25) == pytest.approx(0.25)
