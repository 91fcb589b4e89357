"""Effect sizes against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.stats import effects
from chainmark.stats.effects import TwoSamples

samples = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@given(samples, samples)
def test_effect_sizes_agree_with_brute_force(left: list[float], right: list[float]) -> None:
    a, b = np.sort(left), np.sort(right)
    wins = sum((y > x) + 0.5 * (y == x) for x in left for y in right)
    assert TwoSamples(a, b).probability_larger() == pytest.approx(wins / (len(left) * len(right)))
    gap, at = TwoSamples(a, b).largest_gap()
    gaps = {v: abs(np.mean(a <= v) - np.mean(b <= v)) for v in {*left, *right}}
    assert gap == pytest.approx(max(gaps.values()))
    assert gaps[at] == pytest.approx(gap)
    assert TwoSamples(a, b).wasserstein() == pytest.approx(stats.wasserstein_distance(left, right))


def test_a_shift_is_its_own_wasserstein_distance() -> None:
    values = np.linspace(0.0, 1.0, 50)
    assert TwoSamples(values, values + 0.25).wasserstein() == pytest.approx(0.25)


@pytest.mark.parametrize(("n", "m"), [(5000, 5000), (7001, 3333)])
def test_large_samples_are_compared_by_their_quantiles(n: int, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    pairs = [
        (np.exp(rng.normal(size=n)), np.exp(0.1 + 1.2 * rng.normal(size=m))),
        (np.floor(5.0 * rng.random(n)), np.floor(6.0 * rng.random(m))),
        (np.arange(float(n)), np.arange(float(m)) + 2.0 * n),
    ]
    for baseline, candidate in ((np.sort(one), np.sort(other)) for one, other in pairs):
        exact = [TwoSamples(baseline, candidate).probability_larger(), TwoSamples(baseline, candidate).wasserstein()]
        gap, _ = TwoSamples(baseline, candidate).largest_gap()
        with monkeypatch.context() as patch:
            patch.setattr(effects, "LARGE_SAMPLE", 1000)
            patch.setattr(effects, "CELLS", 256)
            assert TwoSamples(baseline, candidate).probability_larger() == pytest.approx(exact[0], abs=1.0 / 512)
            assert TwoSamples(baseline, candidate).wasserstein() == pytest.approx(exact[1], rel=0.03)
            found, at = TwoSamples(baseline, candidate).largest_gap()
        assert gap - 1.0 / 256 <= found <= gap
        shares = [np.searchsorted(sample, at, side="right") / len(sample) for sample in (baseline, candidate)]
        assert found == pytest.approx(abs(shares[0] - shares[1]))
