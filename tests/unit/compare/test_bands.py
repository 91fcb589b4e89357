"""Resampled distribution functions, compared with resamples that are computed value by value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.compare.bands import Resampler, band
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.samples import SideSamples
from chainmark.core.metric import Population
from chainmark.stats import replicates
from chainmark.stats.bootstrap import multiplicities
from chainmark.stats.centiles import FloatArray, IntArray, centile
from chainmark.stats.description import MetricDescription, describe_population
from chainmark.stats.knots import Knots, knots_of
from chainmark.stats.replicates import Bundles, Replicates, replicates_of, resampled_counts, resampled_ranks

from tests.unit.compare.metric_cases import loaded_run, metric
from tests.unit.compare.synthetic_runs import run

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
def test_quantiles_are_exact_if_all_values_are_in_the_grid(sizes: list[int], distinct: int, seed: int) -> None:
    """A band that is too narrow would make chance look like a change."""
    rng = np.random.default_rng(seed)
    values, starts = _bundled(rng, sizes, distinct)
    pooled = np.sort(values[np.isfinite(values)])
    if len(pooled) == 0:
        return
    grid = np.unique(pooled)
    weights = _drawn(rng, len(sizes))
    counts = resampled_counts(weights, values, starts, grid)
    ranks = resampled_ranks(np.searchsorted(pooled, grid, side="right"), counts, FRACTIONS)
    expected = np.where(ranks < 0, np.nan, pooled[ranks])
    for own, resample in zip(expected, _written_out(weights, values, starts), strict=True):
        if len(resample) == 0:
            assert np.isnan(own).all()
        else:
            assert own.tolist() == [centile(resample, float(fraction)) for fraction in FRACTIONS]


@pytest.mark.parametrize("size", [3, 40, 600])
def test_all_counting_methods_agree(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting one by one, by lookup and by sorting must differ only in speed."""
    rng = np.random.default_rng(size)
    values, starts = _bundled(rng, [size, 1, 2 * size, size], 500)
    values[-1] = 500.0
    grid = np.array([-1.0, 0.0, 17.0, 17.5, 250.0, 500.0])
    weights = _drawn(rng, 4)
    expected = [np.searchsorted(resample, grid, side="right") for resample in _written_out(weights, values, starts)]
    for few, many in ((10_000, 10_000), (0, 10_000), (0, 0)):
        monkeypatch.setattr(replicates, "_FEW", few)
        monkeypatch.setattr(replicates, "_MANY", many)
        monkeypatch.setattr(replicates, "_CHUNK_ELEMENTS", 20)
        assert resampled_counts(weights, values, starts, grid).tolist() == np.array(expected).tolist()


def _resampled(values: FloatArray, rows: int) -> tuple[Knots, Replicates, np.ndarray]:
    """A sample's description, its resamples in bundles of ``rows``, and the weights of the same resamples."""
    knots = knots_of(np.sort(values), FRACTIONS)
    bundles = Bundles(None, np.arange(0, len(values) + 1, rows), ordered=False, coarse=False)
    drawn = replicates_of(values, knots, bundles, np.random.default_rng(3))
    chunks = multiplicities(np.random.default_rng(3), len(values) // rows, 1.0, replicates.BAND_RESAMPLES)
    return knots, drawn, np.concatenate(list(chunks))


def test_quantiles_between_known_values_are_close_to_the_exact_ones() -> None:
    values = np.exp(np.random.default_rng(7).normal(size=20_000))
    knots, drawn, weights = _resampled(values, 50)
    assert len(drawn.places) < 150
    ranks = resampled_ranks(knots.at_or_below[drawn.places], drawn.counts, FRACTIONS)
    quantiles = knots.at_ranks(ranks.ravel()).reshape(ranks.shape)
    resamples = _written_out(weights, values, np.arange(0, 20_001, 50))
    exact = np.array([[centile(resample, float(fraction)) for fraction in FRACTIONS] for resample in resamples])
    errors = np.sqrt(((quantiles - exact) ** 2).mean(axis=0))
    assert (errors[1:-2] < 0.3 * exact.std(axis=0)[1:-2]).all()
    (low, high), (lowest, highest) = band(quantiles), band(exact)
    assert ((high - low) / (highest - lowest))[1:-1] == pytest.approx(1.0, abs=0.12)
    assert quantiles[:, [0, -1]].tolist() == exact[:, [0, -1]].tolist()


@pytest.mark.parametrize(("distinct", "error"), [(300, 0.0), (None, 0.004)])
def test_resamples_are_known_at_the_values_of_other_runs(distinct: int | None, error: float) -> None:
    """A band of several runs is evaluated at the values of each of them."""
    rng = np.random.default_rng(11)
    values = rng.normal(size=20_000) if distinct is None else rng.integers(0, distinct, 20_000).astype(float)
    knots, drawn, weights = _resampled(values, 50)
    others = np.concatenate([[-1e9], np.sort(rng.choice(values, 70)), [1e9]])
    exact = [
        np.searchsorted(resample, others, side="right")
        for resample in _written_out(weights, values, np.arange(0, 20_001, 50))
    ]
    assert np.abs(drawn.at(knots, others) - np.array(exact)).max() <= error * len(values)


def test_a_resample_without_a_value_is_excluded_from_the_band() -> None:
    """A single sample among many units is in two of three resamples. The others must not result in a NaN edge."""
    replicates = np.array([[np.nan, np.nan]] * 70 + [[1.0, 2.0]] * 65 + [[3.0, 4.0]] * 65)
    low, high = band(replicates)
    assert (low.tolist(), high.tolist()) == ([1.0, 2.0], [3.0, 4.0])


def test_the_edges_of_a_band_are_the_5th_and_95th_centile() -> None:
    low, high = band(np.arange(200.0)[::-1, None])
    assert (low.tolist(), high.tolist()) == ([10.0], [189.0])


def _resampler(monkeypatch: pytest.MonkeyPatch, counts: IntArray, *, coarse: bool = False) -> Resampler:
    """The values 3 and 5 of one run, and how many values of each resample are at or below them."""
    described = MetricDescription(
        "x_s",
        2,
        knots=knots_of(np.array([3.0, 5.0]), FRACTIONS),
        replicates=Replicates(np.array([0, 1]), counts, coarse=coarse),
    )
    alone = loaded_run("v1", 1.0, 1)
    monkeypatch.setattr(alone, "described", lambda *_: described)
    side = SideSamples([alone], metric(), Population(id="block", label="blocks", keys=["height"]))
    return Resampler(side, "baseline", "x_s", 1)


def test_a_resample_without_a_value_has_no_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.zeros((replicates.BAND_RESAMPLES, 2), dtype=np.int64)
    counts[1::2] = [1, 2]
    resampler = _resampler(monkeypatch, counts)
    assert resampler.runs == 1
    quantiles = resampler.quantiles(np.array([0.0, 1.0]))
    empty = np.isnan(quantiles)
    assert empty.sum(axis=0).tolist() == [replicates.BAND_RESAMPLES // 2] * 2
    assert {tuple(row) for row in quantiles[~empty[:, 0]].tolist()} == {(3.0, 5.0)}


def test_the_band_of_a_quantile_is_that_of_the_resamples_with_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the resamples have no value, a tenth of the others twice 3, and the rest 3 and 5."""
    counts = np.zeros((replicates.BAND_RESAMPLES, 2), dtype=np.int64)
    counts[100:110] = [2, 2]
    counts[110:] = [1, 2]
    low, high = _resampler(monkeypatch, counts).band(np.array([0.0, 1.0]))
    assert (low.tolist(), high.tolist()) == ([3.0, 3.0], [3.0, 5.0])


@pytest.mark.parametrize("coarse", [True, False])
def test_a_band_states_whether_its_resamples_are_of_several_units(
    monkeypatch: pytest.MonkeyPatch, *, coarse: bool
) -> None:
    counts = np.ones((replicates.BAND_RESAMPLES, 2), dtype=np.int64)
    assert _resampler(monkeypatch, counts, coarse=coarse).in_bundles is coarse


def test_two_runs_of_one_seed_vary_independently() -> None:
    """Their blocks are drawn alike, so the resamples are combined randomly. Otherwise a second run would add nothing.

    Half of the resamples take both runs, with half the variance. The others take one of them twice.
    """
    drawn_run = LoadedRun(run("v1", seed=7, drawn=True))
    metric = drawn_run.catalogue.metric("tx_latency_s")
    population = drawn_run.catalogue.population(metric.population)
    fractions = np.linspace(0.2, 0.8, 13)
    one, two = (
        Resampler(SideSamples([drawn_run] * runs, metric, population), "baseline", metric.id, 1).quantiles(fractions)
        for runs in (1, 2)
    )
    assert (two.var(axis=0) / one.var(axis=0)).mean() == pytest.approx(0.75, abs=0.1)


def test_a_run_is_resampled_by_its_own_seed() -> None:
    """The stored description contains only the input of the resamples. Another seed would give another band."""
    drawn_run = LoadedRun(run("v1", seed=7, drawn=True))
    metric = drawn_run.catalogue.metric("tx_latency_s")
    population = drawn_run.catalogue.population(metric.population)
    (described,) = describe_population(drawn_run.catalogue, population, [metric], drawn_run, seed=7)
    unpacked = drawn_run.described(metric, population)
    assert described.replicates is not None
    assert unpacked.replicates is not None
    assert unpacked.replicates.counts.tolist() == described.replicates.counts.tolist()
