"""Effect sizes compared with brute force."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.stats import knots
from chainmark.stats.centiles import FloatArray
from chainmark.stats.effects import TwoSamples
from chainmark.stats.knots import Knots, knots_of, pooled

FRACTIONS = np.array([0.1, 0.123, 0.99])
samples = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


def _two(baseline: FloatArray, candidate: FloatArray) -> TwoSamples:
    return TwoSamples(knots_of(baseline, FRACTIONS), knots_of(candidate, FRACTIONS))


@given(samples, samples)
def test_effect_sizes_agree_with_brute_force(left: list[float], right: list[float]) -> None:
    a, b = np.sort(left), np.sort(right)
    both = _two(a, b)
    wins = sum((y > x) + 0.5 * (y == x) for x in left for y in right)
    assert both.probability_larger() == pytest.approx(wins / (len(left) * len(right)))
    gap, at = both.largest_gap()
    gaps = {v: abs(np.mean(a <= v) - np.mean(b <= v)) for v in {*left, *right}}
    assert gap == pytest.approx(max(gaps.values()))
    assert gaps[at] == pytest.approx(gap)
    assert both.wasserstein() == pytest.approx(stats.wasserstein_distance(left, right))


def test_a_shift_is_its_own_wasserstein_distance() -> None:
    values = np.linspace(0.0, 1.0, 50)
    assert _two(values, values + 0.25).wasserstein() == pytest.approx(0.25)


PAIRS: list[Any] = [
    lambda rng, n, m: (np.exp(rng.normal(size=n)), np.exp(0.1 + 1.2 * rng.normal(size=m))),
    lambda rng, n, m: (np.floor(5.0 * rng.random(n)), np.floor(6.0 * rng.random(m))),
    lambda rng, n, m: (np.arange(float(n)), np.arange(float(m)) + 2.0 * n),
    # A third of all samples are equal, and the others are all different.
    lambda rng, n, m: tuple(np.where(rng.random(k) < 1 / 3, 0.5, rng.random(k)) for k in (n, m)),
    # Two distant groups of values, in nearly the same proportions on both sides.
    lambda rng, n, m: tuple((rng.random(k) < part) + 1e-6 * rng.random(k) for k, part in ((n, 0.01), (m, 0.0101))),
]


@pytest.mark.parametrize(("n", "m"), [(50_000, 50_000), (70_001, 33_333), (60_000, 300)])
@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_large_samples_are_compared_by_their_knots(n: int, m: int, pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline, candidate = map(np.sort, PAIRS[pair](np.random.default_rng(n), n, m))
    with monkeypatch.context() as patch:
        patch.setattr(knots, "MOST_DISTINCT", 1_000_000)
        exact = _two(baseline, candidate)
    test = _two(baseline, candidate)
    assert test.probability_larger() == pytest.approx(exact.probability_larger(), abs=2e-4)
    spread = float(np.std(np.concatenate([baseline, candidate])))
    assert test.wasserstein() == pytest.approx(exact.wasserstein(), abs=1e-3 * spread)
    assert test.largest_gap()[0] == pytest.approx(exact.largest_gap()[0], abs=1.0 / knots.EVEN_STEPS)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=300), st.integers(0, 3))
def test_a_reduced_sample_has_exact_ranks_and_shares(whole: list[int], places: int) -> None:
    """The centiles of a report must be elements of the sample at exact ranks, for any sample size."""
    ascending = np.sort(np.array(whole, dtype=float)) / 10.0**places
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knots, "MOST_DISTINCT", 3)
        patch.setattr(knots, "EVEN_STEPS", 5)
        patch.setattr(knots, "_ENDS", 1)
        patch.setattr(knots, "_BEYOND", 1)
        reduced = knots_of(ascending, FRACTIONS)
    assert reduced.n == len(ascending)
    assert reduced.centiles(FRACTIONS).tolist() == [ascending[int(len(ascending) * fraction)] for fraction in FRACTIONS]
    below, at_or_below = reduced.shares(reduced.values)
    assert below.tolist() == np.searchsorted(ascending, reduced.values, side="left").tolist()
    assert at_or_below.tolist() == np.searchsorted(ascending, reduced.values, side="right").tolist()
    ranks = np.arange(len(ascending))
    known = np.isin(ascending, reduced.values)
    assert reduced.at_ranks(ranks)[known].tolist() == ascending[known].tolist()
    assert (np.diff(reduced.at_ranks(ranks)) >= 0.0).all()
    outside = reduced.shares(np.array([ascending[0] - 1.0, ascending[-1] + 1.0]))
    assert [value.tolist() for value in outside] == [[0.0, len(ascending)]] * 2


def test_less_than_one_step_of_the_samples_lies_between_two_knots() -> None:
    ascending = np.sort(np.random.default_rng(1).lognormal(size=100_003))
    reduced = knots_of(ascending, FRACTIONS)
    between = reduced.below - np.append(0, reduced.at_or_below[:-1])
    assert 0 < between.max() < len(ascending) / knots.EVEN_STEPS
    assert len(reduced.values) < 2400


@given(st.lists(st.lists(st.integers(0, 9).map(float), max_size=30), min_size=1, max_size=4))
def test_pooling_complete_samples_equals_one_sample(runs: list[list[float]]) -> None:
    both: Knots = pooled([knots_of(np.sort(np.array(run)), FRACTIONS) for run in runs])
    assert both.is_whole
    assert both.ascending().tolist() == sorted(value for run in runs for value in run)


def test_counts_between_two_knots_are_rounded_to_the_nearest() -> None:
    """Of seven values evenly between 2 and 12, about 6.6 are below 10. Rounding down would bias every pooled sample."""
    reduced = Knots(np.array([2.0, 12.0]), np.array([0, 8]), np.array([1, 9]))
    both = pooled([reduced, Knots(np.array([10.0]), np.array([0]), np.array([2]))])
    assert both.values.tolist() == [2.0, 10.0, 12.0]
    assert both.below.tolist() == [0, 7, 10]
    assert both.at_or_below.tolist() == [1, 9, 11]
