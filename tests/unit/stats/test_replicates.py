"""The bundles, blocks and knots of a run's resamples, compared with values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from chainmark.core.metric import Population
from chainmark.stats import replicates
from chainmark.stats.bootstrap import multiplicities, optimal_block_length
from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.knots import Knots, knots_of
from chainmark.stats.replicates import (
    BAND_RESAMPLES,
    Bundles,
    Replicates,
    bundles_of,
    instants_of,
    replicates_of,
    resampled_counts,
    resampled_ranks,
)
from chainmark.stats.samples import FrameSamples, OrderedSamples

NAN = math.nan
NO_FRACTIONS = np.empty(0)


def ordered(population: Population, **columns: Any) -> OrderedSamples:
    return OrderedSamples(FrameSamples({population.id: pl.DataFrame(columns)}), population, [])


def of_hosts(**settings: Any) -> Population:
    return Population(id="p", label="p", keys=["host", "time_s"], time_key="time_s", average_over=["host"], **settings)


# --- bundles --------------------------------------------------------------------------------------------------------


def test_rows_of_one_instant_form_one_unit() -> None:
    resampled = instants_of(np.array([0.0, 0.0, 2.5, 7.0, 7.0, 7.0]))
    assert resampled is not None
    assert (resampled.starts.tolist(), resampled.times.tolist(), resampled.rows) == ([0, 2, 3], [0.0, 2.5, 7.0], 6)
    for without in (NAN, math.inf):
        assert instants_of(np.array([0.0, without, 1.0])) is None
    nothing = instants_of(np.empty(0))
    assert nothing is not None
    assert (nothing.starts.tolist(), nothing.rows) == ([], 0)


@pytest.mark.parametrize(
    ("most", "starts", "coarse"),
    [(3, [0, 5, 9, 10], True), (4, [0, 3, 7, 9, 10], True), (7, [0, 2, 3, 5, 7, 8, 9, 10], False)],
)
def test_neighbouring_instants_are_bundled(
    most: int, starts: list[int], *, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven instants of 2, 1, 2, 2, 1, 1 and 1 rows: bundles contain whole instants and equal numbers of them."""
    monkeypatch.setattr(replicates, "MOST_BUNDLES", most)
    times = [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0]
    population = of_hosts()
    samples = ordered(population, host=[f"h{place % 2}" for place in range(10)], time_s=times)
    bundles = bundles_of(samples, population, instants_of(np.array(times)))
    assert (bundles.order, bundles.ordered, bundles.coarse) == (None, True, coarse)
    assert bundles.starts.tolist() == starts


@pytest.mark.parametrize(("most", "starts", "coarse"), [(2, [0, 3, 5], True), (5, [0, 1, 2, 3, 4, 5], False)])
def test_independent_rows_are_bundled_in_row_order(
    most: int, starts: list[int], *, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicates, "MOST_BUNDLES", most)
    for time_key in ("time_s", None):
        population = Population(id="p", label="p", keys=["time_s"], time_key=time_key)
        samples = ordered(population, time_s=[0.0, 0.0, 1.0, 2.0, 3.0])
        bundles = bundles_of(samples, population, instants_of(np.array([0.0, 0.0, 1.0, 2.0, 3.0])))
        assert (bundles.order, bundles.ordered, bundles.coarse) == (None, time_key is not None, coarse)
        assert bundles.starts.tolist() == starts


def test_scattered_rows_of_a_group_are_resampled_together() -> None:
    """Rows of blocks seen by several hosts, ordered by host: a block is resampled with all its rows."""
    population = Population(id="p", label="p", keys=["host", "block"], average_over=["host"])
    samples = ordered(population, host=["a", "a", "a", "b", "b", "b"], block=[1, 2, 3, 1, 2, 3])
    bundles = bundles_of(samples, population, None)
    assert bundles.order is not None
    assert bundles.order.tolist() == [0, 3, 1, 4, 2, 5]
    assert (bundles.starts.tolist(), bundles.ordered, bundles.coarse) == ([0, 2, 4, 6], False, False)


# --- resamples ------------------------------------------------------------------------------------------------------


def wave(rows: int) -> FloatArray:
    """Autocorrelated values."""
    return np.asarray(np.round(np.sin(np.arange(rows) / 9.0), 2), dtype=np.float64)


def drawn_by_hand(values: FloatArray, sizes: IntArray, length: float, knots: FloatArray) -> list[list[int]]:
    rng = np.random.default_rng(5)
    weights = np.concatenate(list(multiplicities(rng, len(sizes), length, BAND_RESAMPLES)))
    of_row = np.repeat(weights, sizes, axis=1)
    return [[int(row[values <= knot].sum()) for knot in knots] for row in of_row]


@pytest.mark.parametrize("absent", [0, 1, 3, 5])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_the_block_length_follows_the_correlation_of_neighbours(*, absent: int, is_ordered: bool) -> None:
    """It uses the means of bundles with a value. Blocks that are too short would make an interval too narrow."""
    values, sizes = wave(120), np.array([2, 1, 3] * 20)
    values[:absent] = NAN
    starts = np.append(0, np.cumsum(sizes))
    knots = knots_of(np.sort(values[np.isfinite(values)]), NO_FRACTIONS)
    bundles = Bundles(None, starts, ordered=is_ordered, coarse=True)
    resampled = replicates_of(values, knots, bundles, np.random.default_rng(5))
    parts = [part[np.isfinite(part)] for part in np.split(values, starts[1:-1])]
    means = np.array([part.mean() for part in parts if len(part)])
    length = optimal_block_length(means) if is_ordered else 1.0
    assert not is_ordered or length > 2.0
    assert resampled.counts.tolist() == drawn_by_hand(values, sizes, length, knots.values)
    assert (resampled.places.tolist(), resampled.coarse) == (list(range(len(knots.values))), True)


@pytest.mark.parametrize(("rows", "is_input"), [(256, True), (257, False)])
@pytest.mark.parametrize("coarse", [True, False])
def test_a_small_run_stores_the_input_of_its_resamples(rows: int, *, is_input: bool, coarse: bool) -> None:
    """At two points, 200 resamples take more space than 2 · 128 rows. The counts are the same in both forms."""
    values = np.append(np.arange(rows - 1) % 2.0, NAN)
    bundles = Bundles(None, np.arange(rows + 1), ordered=False, coarse=coarse)
    resampled = replicates_of(values, knots_of(np.array([0.0, 1.0]), NO_FRACTIONS), bundles, np.random.default_rng(5))
    assert resampled.coarse is coarse
    assert resampled.counts.tolist() == drawn_by_hand(values, np.ones(rows, dtype=int), 1.0, np.array([0.0, 1.0]))
    assert (resampled.drawn is not None) is is_input
    if resampled.drawn is not None:
        assert resampled.drawn.rows.tolist() == [1] * rows
        assert resampled.drawn.cells.tolist() == [*[0, 1] * 127, 0, 2], "a row without a value has the number of points"
        assert resampled.drawn.block_length == 1.0


def test_scattered_rows_are_drawn_with_their_bundle() -> None:
    values = np.array([1.0, 2.0, 3.0, 10.0, 20.0, 30.0])
    bundles = Bundles(np.array([0, 3, 1, 4, 2, 5]), np.array([0, 2, 4, 6]), ordered=False, coarse=False)
    result = replicates_of(values, knots_of(values, NO_FRACTIONS), bundles, np.random.default_rng(5))
    assert (result.counts[:, -1] == 6).all()
    own = np.diff(result.counts, axis=1, prepend=0)
    assert (own[:, :3] == own[:, 3:]).all(), "1 and 10, 2 and 20, 3 and 30 must be drawn equally often"
    assert not result.coarse


@pytest.mark.parametrize(("few_rows", "stores_input"), [(2, True), (1, False)])
def test_of_the_resamples_and_their_input_the_smaller_is_stored(
    few_rows: int, *, stores_input: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six rows with three knots, at most two or one per knot. The counts are the same."""
    monkeypatch.setattr(replicates, "_FEW_ROWS", few_rows)
    values = np.array([1.0, 2.0, 3.0, 3.0, NAN, 1.0])
    knots = knots_of(np.array([1.0, 1.0, 2.0, 3.0, 3.0]), NO_FRACTIONS)
    bundles = Bundles(None, np.array([0, 1, 3, 6]), ordered=False, coarse=True)
    resampled = replicates_of(values, knots, bundles, np.random.default_rng(5))
    assert resampled.coarse is True
    assert resampled.counts.tolist() == drawn_by_hand(values, np.array([1, 2, 3]), 1.0, knots.values)
    assert (resampled.drawn is not None) is stores_input
    if resampled.drawn is not None:
        assert (resampled.drawn.rows.tolist(), resampled.drawn.block_length) == ([1, 2, 3], 1.0)
        assert resampled.drawn.cells.tolist() == [0, 1, 2, 2, 3, 0]


def test_a_large_distribution_is_resampled_at_its_ends_and_evenly_between() -> None:
    """The knots are the eight lowest and highest values, then values at growing distances of at most a sixty-fourth."""
    n = 3000
    values = np.random.default_rng(9).permutation(n).astype(float)
    knots = knots_of(np.sort(values), NO_FRACTIONS)
    bundles = Bundles(None, np.arange(n + 1), ordered=False, coarse=False)
    places = replicates_of(values, knots, bundles, np.random.default_rng(5)).places
    assert places[:9].tolist() == list(range(9))
    assert places[-9:].tolist() == list(range(n - 9, n))
    assert np.diff(places).max() <= math.ceil(n / 64)
    for tail in (places, n - 1 - places[::-1]):
        beyond = tail[(tail >= 8) & (tail <= n / 64)]
        assert (np.diff(beyond) <= 1.0 + 0.07 * beyond[:-1]).all()
    assert len(places) < 140, "every run stores 200 numbers per knot"
    outermost = places[places < n // 64], (n - 1 - places[::-1])[: np.count_nonzero(places < n // 64)]
    assert outermost[0].tolist() == outermost[1].tolist(), "both tails must have the same knots"
    assert np.isin(np.minimum(n - 1, n * np.arange(65) // 64), places).all()
    few = knots_of(np.arange(400.0), NO_FRACTIONS)
    bundles = Bundles(None, np.arange(401), ordered=False, coarse=False)
    assert len(replicates_of(few.values, few, bundles, np.random.default_rng(5)).places) == 400


def test_a_resample_is_interpolated_between_its_knots() -> None:
    """Ten distinct values, ten times each, with knots at 20, 40 and 100. The resample has 4, 10 and 20 of 20 there."""
    knots = Knots(np.arange(1.0, 11.0) * 10.0, np.arange(0, 100, 10), np.arange(10, 101, 10))
    known = Replicates(np.array([1, 3, 9]), np.array([[4, 10, 20], [0, 0, 20]]), coarse=False)
    at = np.array([5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 70.0, 100.0, 999.0])
    ranks = known.at(knots, at)
    # At 30, halfway from 20 to 40: 4 + 6 / 2. At 50, 10 of the 60 values between 40 and 100: 10 + 10 / 6.
    assert ranks.tolist() == [[0, 2, 4, 7, 10, 11, 15, 20, 20], [0, 0, 0, 0, 0, 3, 10, 20, 20]]
    assert ranks.dtype == np.int64


def test_quantiles_between_known_values_are_interpolated() -> None:
    """A sample of 100 with knots at its 20th, 40th and last value. The resamples have 4, 10, 20 and 0, 0, 8 there."""
    counts = np.array([[4, 10, 20], [0, 0, 0], [0, 0, 8]])
    ranks = resampled_ranks(np.array([20, 40, 100]), counts, np.array([0.0, 0.1, 0.2, 0.5, 0.55, 1.0]))
    # Positions 0, 2, 4, 10, 11 and 19 of 20 values: 2 · 20 / 4; 20; 40; 40 + 60 / 10; 40 + 9 · 60 / 10.
    # Positions 0, 0, 1, 4, 4 and 7 of 8 values, all beyond the 40th: 40 + 60 / 8 and so on, rounded down.
    assert ranks.tolist() == [[0, 10, 20, 40, 46, 94], [-1] * 6, [40, 40, 47, 70, 70, 92]]
    assert resampled_ranks(np.array([20]), np.zeros((2, 1), dtype=int), np.array([0.5])).tolist() == [[-1], [-1]]


@pytest.mark.parametrize("limit", [1, 2**24])
def test_counts_are_integers_in_any_precision(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts too large for single precision use double precision. Otherwise the last sample would be lost."""
    monkeypatch.setattr(replicates, "_EXACT_IN_FLOAT32", limit)
    weights = np.array([[2, 0], [1, 1]], dtype=np.int32)
    values = np.array([*range(50), *range(25), *[NAN] * 25], dtype=float)
    starts = np.array([0, 50, 100])
    counts_found = resampled_counts(weights, values, starts, np.array([-1.0, 9.5, 24.0, 49.0]))
    assert counts_found.tolist() == [[0, 20, 50, 100], [0, 20, 50, 75]]
    assert counts_found.dtype == np.int64


def test_a_count_beyond_single_precision_is_exact() -> None:
    """2²⁴ + 1 cannot be represented in 32 bits."""
    rows = 64
    weights = np.array([[2**18, 1], [1, 0]], dtype=np.int32)
    values = np.zeros(rows + 1)
    counts_found = resampled_counts(
        weights, np.append(values, [1.0] * 60), np.array([0, rows, rows + 61]), np.array([0.0, 1.0])
    )
    assert counts_found.tolist() == [[2**24 + 1, 2**24 + 61], [64, 64]]


def test_counts_of_few_rows_are_integers() -> None:
    """Counts become ranks: a fraction would lie between two values."""
    weights = np.array([[2, 0, 1], [0, 3, 0]], dtype=np.int32)
    counts_found = resampled_counts(weights, np.array([5.0, NAN, 3.0]), np.arange(4), np.array([1.0, 3.0, 5.0]))
    assert counts_found.tolist() == [[0, 1, 3], [0, 0, 0]]
    assert counts_found.dtype == np.int64
