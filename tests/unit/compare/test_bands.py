"""Resampled distribution functions against resamples that are written out value by value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.compare import bands
from chainmark.compare.bands import band, resampled_counts, resampled_quantiles
from chainmark.stats.centiles import FloatArray, IntArray, centile

FRACTIONS = np.array([0.0, 0.05, 0.1, 1.0 / 3.0, 0.5, 0.7, 0.9, 0.99, 0.999, 1.0])


def _drawn(rng: np.random.Generator, bundles: int, resamples: int = 12) -> np.ndarray:
    picked = rng.integers(0, bundles, size=(resamples, bundles))
    return np.stack([np.bincount(row, minlength=bundles) for row in picked]).astype(np.int32)


def _bundled(rng: np.random.Generator, sizes: list[int], distinct: int) -> tuple[FloatArray, IntArray]:
    values = rng.integers(0, distinct, size=sum(sizes)).astype(np.float64)
    values[rng.random(len(values)) < 0.1] = np.nan
    return values, np.cumsum([0, *sizes])


def _written_out(weights: np.ndarray, values: FloatArray, starts: IntArray) -> list[FloatArray]:
    per_value = np.repeat(weights, np.diff(starts), axis=1)
    valid = np.isfinite(values)
    return [np.sort(np.repeat(values[valid], row[valid])) for row in per_value]


sizes = st.lists(st.integers(1, 40), min_size=1, max_size=15)


@given(sizes, st.integers(1, 60), st.integers(0, 2**32))
@settings(deadline=None)
def test_quantiles_are_exact_where_all_values_are_in_the_grid(sizes: list[int], distinct: int, seed: int) -> None:
    """A band that is drawn too narrow makes chance look like a change."""
    rng = np.random.default_rng(seed)
    values, starts = _bundled(rng, sizes, distinct)
    pooled = np.sort(values[np.isfinite(values)])
    if len(pooled) == 0:
        return
    grid = np.unique(pooled)
    weights = _drawn(rng, len(sizes))
    counts = resampled_counts(weights, values, starts, grid)
    found = resampled_quantiles(pooled, np.searchsorted(pooled, grid, side="right"), counts, FRACTIONS)
    for own, resample in zip(found, _written_out(weights, values, starts), strict=True):
        if len(resample) == 0:
            assert np.isnan(own).all()
        else:
            assert own.tolist() == [centile(resample, float(fraction)) for fraction in FRACTIONS]


@pytest.mark.parametrize("size", [3, 40, 600])
def test_counts_are_the_same_however_they_are_made(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, looked up and sorted: which one is chosen is a matter of speed alone."""
    rng = np.random.default_rng(size)
    values, starts = _bundled(rng, [size, 1, 2 * size, size], 500)
    values[-1] = 500.0
    grid = np.array([-1.0, 0.0, 17.0, 17.5, 250.0, 500.0])
    weights = _drawn(rng, 4)
    expected = [np.searchsorted(resample, grid, side="right") for resample in _written_out(weights, values, starts)]
    for few, many in ((10_000, 10_000), (0, 10_000), (0, 0)):
        monkeypatch.setattr(bands, "_FEW", few)
        monkeypatch.setattr(bands, "_MANY", many)
        monkeypatch.setattr(bands, "_CHUNK_ELEMENTS", 20)
        assert resampled_counts(weights, values, starts, grid).tolist() == np.array(expected).tolist()


def test_quantiles_between_the_grids_values_are_near_the_exact_ones() -> None:
    rng = np.random.default_rng(7)
    values = np.exp(rng.normal(size=20_000))
    pooled, starts = np.sort(values), np.arange(0, 20_001, 50)
    grid = bands._grid(pooled)
    assert 400 <= len(grid) <= 528
    weights = _drawn(rng, 400, resamples=100)
    counts = resampled_counts(weights, values, starts, grid)
    found = resampled_quantiles(pooled, np.searchsorted(pooled, grid, side="right"), counts, FRACTIONS)
    resamples = _written_out(weights, values, starts)
    exact = np.array([[centile(resample, float(fraction)) for fraction in FRACTIONS] for resample in resamples])
    errors = np.sqrt(((found - exact) ** 2).mean(axis=0))
    assert (errors[1:-2] < 0.2 * exact.std(axis=0)[1:-2]).all()
    assert found[:, [0, -2, -1]].tolist() == exact[:, [0, -2, -1]].tolist()


def test_a_resample_without_a_value_is_left_out_of_the_band() -> None:
    """One sample among many units is in two of three resamples; the others may not make an edge that is no number."""
    replicates = np.array([[np.nan, np.nan]] * 70 + [[1.0, 2.0]] * 65 + [[3.0, 4.0]] * 65)
    low, high = band(replicates)
    assert (low.tolist(), high.tolist()) == ([1.0, 2.0], [3.0, 4.0])
