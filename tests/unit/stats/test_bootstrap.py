"""The block bootstrap: conservation of rows, determinism, and a comparison with arch."""

import numpy as np
import pytest
from arch.bootstrap import StationaryBootstrap
from arch.bootstrap import optimal_block_length as arch_block_length
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark._native import block_multiplicities
from chainmark.stats import bootstrap
from chainmark.stats.bootstrap import (
    bootstrap_error_of_mean,
    generator,
    multiplicities,
    optimal_block_length,
    resampled_centiles,
    resampled_means,
    standard_error,
)
from chainmark.stats.centiles import FloatArray, centile
from chainmark.stats.units import block_length


def autoregressive(n: int, rho: float, seed: int = 1) -> FloatArray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n)
    values = np.empty(n)
    level = 0.0
    for index in range(n):
        level = rho * level + noise[index]
        values[index] = level
    return values


@given(st.integers(1, 60), st.floats(1.0, 20.0), st.integers(1, 30), st.integers(0, 2**64))
@settings(max_examples=60, deadline=None)
def test_every_resample_draws_the_number_of_units_in_the_sample(
    n: int, length: float, resamples: int, seed: int
) -> None:
    drawn = np.concatenate(list(multiplicities(generator(seed, "test"), n, length, resamples)))
    assert drawn.shape == (resamples, n)
    assert (drawn >= 0).all()
    assert (drawn.sum(axis=1) == n).all()


@pytest.mark.parametrize("length", [1.0, 7.5])
def test_every_unit_is_drawn_equally_often_on_average(length: float) -> None:
    drawn = np.concatenate(list(multiplicities(generator(5, "test"), 40, length, 20_000)))
    assert drawn.mean(axis=0) == pytest.approx(np.ones(40), abs=0.06)


def test_resamples_depend_on_seed_and_purpose() -> None:
    first, again, other = (
        np.concatenate(list(multiplicities(generator(seed, "blocks"), 500, 9.0, 50))) for seed in (3, 3, 4)
    )
    elsewhere = np.concatenate(list(multiplicities(generator(3, "transactions"), 500, 9.0, 50)))
    assert (first == again).all()
    assert (first != other).any()
    assert (first != elsewhere).any()


def test_resamples_of_a_fixed_seed_match_recorded_values() -> None:
    drawn = next(iter(multiplicities(generator(7, "block"), 8, 2.0, 2)))
    assert drawn.tolist() == [[0, 1, 0, 0, 3, 3, 1, 0], [0, 0, 1, 3, 1, 1, 1, 1]]


@given(st.integers(0, 6), st.integers(1, 200), st.integers(1, 5), st.integers(0, 2**32))
def test_weighted_centiles_equal_centiles_of_repeated_values(rows: int, n: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=n))
    weights = rng.integers(0, most, size=(rows, n), dtype=np.int32)
    weights[rng.random(rows) < 0.2] = 0
    centiles = resampled_centiles(weights, values, np.arange(n, dtype=np.uint32), [0.0, 0.5, 0.9, 1.0])
    for own, counts in zip(centiles, weights, strict=True):
        repeated = np.repeat(values, counts)
        if len(repeated) == 0:
            assert np.isnan(own).all()
        else:
            assert own.tolist() == [centile(repeated, fraction) for fraction in (0.0, 0.5, 0.9, 1.0)]


def test_centiles_of_resamples_support_more_draws_than_32_bits() -> None:
    weights, values, units = np.full((3, 4), 2**30, dtype=np.int32), np.arange(4.0), np.arange(4, dtype=np.uint32)
    assert resampled_centiles(weights, values, units, [0.0, 0.5, 1.0]).tolist() == [[0.0, 2.0, 3.0]] * 3


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("n", [300, 2300])
def test_the_block_length_agrees_with_arch(n: int, rho: float) -> None:
    values = autoregressive(n, rho)
    expected = float(arch_block_length(values)["stationary"].iloc[0])
    # arch scales each lag by the norms of its overlap, which can move the cut-off by one lag for a small n.
    assert optimal_block_length(values) == pytest.approx(max(1.0, expected), rel=0.25 if n < 1000 else 0.1, abs=0.5)


def test_a_population_has_the_block_length_of_its_slowest_metric() -> None:
    """Too short blocks would make the error of that metric too small."""
    rng = np.random.default_rng(5)
    fast, slow = rng.normal(size=2000), np.empty(2000)
    slow[0] = 0.0
    for place in range(1, 2000):
        slow[place] = 0.95 * slow[place - 1] + rng.normal()
    counts = np.ones(2000)
    lengths = [optimal_block_length(values) for values in (fast, slow)]
    assert lengths[1] > 5.0 * lengths[0]
    series = [(fast, counts), (slow, counts)]
    for each in (series, series[::-1]):
        assert block_length(each, ordered=True) == lengths[1]
    assert block_length(series, ordered=False) == 1.0


def test_block_length_of_a_constant_or_short_series_is_one() -> None:
    assert optimal_block_length(np.full(1000, 200.0)) == 1.0
    assert optimal_block_length(np.full(1000, 0.1)) == 1.0
    assert optimal_block_length([1.0, 2.0, 3.0]) == 1.0
    assert optimal_block_length([]) == 1.0


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("fraction", [None, 0.5, 0.9])
def test_standard_errors_agree_with_arch(rho: float, fraction: float | None) -> None:
    values = np.exp(0.3 * autoregressive(1500, rho))
    length = optimal_block_length(values)

    def statistic(sample: FloatArray) -> float:
        return float(sample.mean()) if fraction is None else centile(np.sort(sample), fraction)

    drawn = StationaryBootstrap(round(length), values, seed=2).apply(statistic, 1000)
    expected = float(np.std(drawn, ddof=1))
    replicates = []
    order = np.argsort(values).astype(np.uint32)
    for weights in multiplicities(generator(1, "oracle"), len(values), length):
        if fraction is None:
            replicates.append(resampled_means(weights.astype(float), values, np.ones(len(values))))
        else:
            replicates.append(resampled_centiles(weights, values[order], order, [fraction])[:, 0])
    assert standard_error(np.concatenate(replicates)) == pytest.approx(expected, rel=0.12)


def test_the_mean_of_a_correlated_series_has_its_long_run_standard_error() -> None:
    rho, n = 0.7, 4000
    errors = []
    for seed in range(12):
        values = autoregressive(n, rho, seed)
        length = optimal_block_length(values)
        means = [
            resampled_means(w.astype(float), values, np.ones(n))
            for w in multiplicities(generator(seed), n, length, 400)
        ]
        errors.append(standard_error(np.concatenate(means)) or 0.0)
    assert np.mean(errors) == pytest.approx(1.0 / (1.0 - rho) / np.sqrt(n), rel=0.1)


def test_the_standard_error_ignores_resamples_without_a_value() -> None:
    assert standard_error(np.array([np.nan, 1.0, 3.0])) == pytest.approx(np.sqrt(2.0))
    assert standard_error(np.array([np.nan, 1.0])) is None
    assert standard_error(np.array([0.1, 0.1, 0.1])) == 0.0


def test_standard_error_ignores_rounding_differences_between_replicates() -> None:
    sums = np.array([0.1 + 0.2, 0.3, np.nextafter(0.3, 0.0)])
    assert len(set(sums)) == 3
    assert standard_error(sums) == 0.0
    assert (standard_error(sums * (1.0 + np.array([0.0, 1e-9, 0.0]))) or 0.0) > 0.0


def test_the_chunks_do_not_change_with_the_number_of_resamples_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_CHUNK_ELEMENTS", 1)
    drawn = list(multiplicities(generator(1), 30, 4.0, 5))
    assert [len(chunk) for chunk in drawn] == [1] * 5


@given(st.integers(1, 40), st.floats(1.0, 30.0), st.integers(1, 8), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_multiplicities_count_the_units_of_all_blocks(n: int, length: float, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(1.0 / length, size=(rows, n))
    first = rng.integers(0, n, size=(rows, n))
    drawn = np.empty((rows, n), dtype=np.int32)
    block_multiplicities(lengths, first, drawn)
    for row in range(rows):
        units = [
            (start + step) % n for start, size in zip(first[row], lengths[row], strict=True) for step in range(size)
        ]
        assert drawn[row].tolist() == np.bincount(units[:n], minlength=n).tolist()


@given(st.integers(1, 200), st.floats(0.0, 0.95), st.floats(1.0, 40.0), st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test_the_error_of_a_mean_is_that_of_many_resamples(n: int, rho: float, length: float, seed: int) -> None:
    """Of 4,000 resamples the spread is known to 1.1 %; nearly normal means are assumed."""
    series = autoregressive(n, rho, seed) + 3.0
    drawn = multiplicities(generator(seed, "test"), n, length, 4000)
    simulated = np.concatenate([(chunk * series).sum(axis=1) / n for chunk in drawn]).std()
    assert bootstrap_error_of_mean(series, length) == pytest.approx(simulated, rel=0.06, abs=1e-9)


def test_the_error_of_a_mean_by_hand() -> None:
    # Independent draws of 1 and 3: the variance is 1, that of the mean of two 1 / 2.
    assert bootstrap_error_of_mean(np.array([1.0, 3.0]), 1.0) == pytest.approx(np.sqrt(0.5))
    # The second draw continues the block with probability 1 / 2 and is then the other value: its covariance is -1.
    assert bootstrap_error_of_mean(np.array([1.0, 3.0]), 2.0) == pytest.approx(np.sqrt((1.0 - 2.0 * 0.5 * 0.5) / 2.0))
    assert bootstrap_error_of_mean(np.full(7, 1e9 / 3.0), 2.0) == 0.0
    assert bootstrap_error_of_mean(np.empty(0), 1.0) == 0.0
