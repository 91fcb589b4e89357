"""Errors from resampled shares, compared with resampling of every row, on autocorrelated series."""

import math

import numpy as np
import polars as pl
import pytest

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.stats import threads, woodruff
from chainmark.stats.bootstrap import generator, multiplicities
from chainmark.stats.centiles import FloatArray
from chainmark.stats.summarise import summarise
from chainmark.stats.units import UnitMean, Units, unit_mean

from tests.unit.stats.test_bootstrap import autoregressive

STATISTICS = ["mean", "p10", "p50", "p90", "p99"]


def catalogue() -> Catalogue:
    population = Population(id="block", label="blocks", keys=["height"], time_key="height")
    metric = Metric(
        id="x_s", label="x", unit="s", kind=Kind.POSITIVE, better=Better.LOWER, statistics=STATISTICS,
        judged_by=["mean"], table="all", order=1, population="block", description="A test's.", source=["test"],
    )  # fmt: skip
    tables = [MetricGroup(id="all", title="All")]
    return Catalogue(system="test", title="Test", populations=[population], tables=tables, metrics=[metric])


def estimates(values: FloatArray, seed: int = 1) -> dict[str, Estimate]:
    frame = pl.DataFrame({"height": np.arange(len(values)), "x_s": values})
    return summarise(catalogue(), {"block": frame}, seed)[0].estimates


@pytest.mark.parametrize("most_units", [10**6, 1500])
def test_errors_match_resampling_of_rows(most_units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios: dict[str, list[float]] = {name: [] for name in STATISTICS}
    for seed in range(4):
        values = np.exp(0.4 * autoregressive(6000, 0.6, seed))
        values[::17] = np.nan
        exact = estimates(values)
        with monkeypatch.context() as patch:
            patch.setattr(woodruff, "LARGE_ROWS", 100)
            patch.setattr(woodruff, "MOST_UNITS", most_units)
            by_statistic = estimates(values)
        for name in STATISTICS:
            assert by_statistic[name].value == pytest.approx(exact[name].value, rel=1e-12)
            own, other = by_statistic[name].standard_error, exact[name].standard_error
            assert own is not None
            assert other is not None
            ratios[name].append(own / other)
            assert by_statistic[name].log_standard_error == pytest.approx(
                own / (by_statistic[name].value or 1.0), rel=0.1
            )
        assert "Woodruff" in by_statistic["p50"].method
        assert "Woodruff" not in by_statistic["mean"].method
        assert ("bundles of 4 rows" in by_statistic["p50"].method) == (most_units == 1500)
    for name, each in ratios.items():
        assert np.mean(each) == pytest.approx(1.0, abs=0.15), name


def test_intervals_cover_the_true_centile_with_their_nominal_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(woodruff, "LARGE_ROWS", 100)
    monkeypatch.setattr(woodruff, "RESAMPLES", 200)
    rho, held = 0.5, {"p50": 0, "p90": 0}
    spread = 1.0 / math.sqrt(1.0 - rho * rho)
    truth = {"p50": 10.0, "p90": 10.0 + 1.2815515655446004 * spread}
    tries = 120
    for seed in range(tries):
        by_statistic = estimates(10.0 + autoregressive(1000, rho, 1000 + seed), seed)
        for name, value in truth.items():
            error = by_statistic[name].standard_error or 0.0
            held[name] += abs((by_statistic[name].value or 0.0) - value) <= 1.6448536269514722 * error
    for name, times in held.items():
        assert 0.83 <= times / tries <= 0.97, name


def test_a_centile_inside_many_equal_values_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.repeat([1.0, 2.0, 9.0], [1000, 6000, 3000])
    np.random.default_rng(1).shuffle(values)
    monkeypatch.setattr(woodruff, "LARGE_ROWS", 100)
    by_statistic = estimates(values)
    assert (by_statistic["p50"].value, by_statistic["p50"].standard_error) == (2.0, 0.0)
    assert (by_statistic["mean"].standard_error or 0.0) > 0.0


def test_all_sums_are_exact_integers() -> None:
    rng = np.random.default_rng(3)
    values = np.exp(rng.normal(size=5000) * 4.0)
    values[::7] = np.nan
    units = Units(np.arange(5000), 5000, ordered=True, noun="rows")
    mean = unit_mean(values, units)
    ordered = np.sort(values[np.isfinite(values)])
    reduced = woodruff.reduced(values, units, mean, ordered, [0.5, 0.99])
    assert (reduced.columns == np.rint(reduced.columns)).all()
    assert float(np.abs(reduced.columns).max()) * 5000 <= 2.0**52
    sums = np.ones((1, 5000)) @ reduced.columns
    again = reduced.replicates(sums)
    assert again[None] == pytest.approx(mean.value, rel=1e-9)
    assert again[0.5][0] == pytest.approx(ordered[len(ordered) // 2], rel=1e-9)
    for order in (rng.permutation(5000), np.arange(5000)[::-1]):
        assert (np.ones((1, 5000)) @ np.ascontiguousarray(reduced.columns[order]) == sums).all()


@pytest.mark.parametrize("large_rows", [100, 20_000])
def test_the_number_of_threads_does_not_change_the_result(large_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(woodruff, "LARGE_ROWS", large_rows)
    values = np.exp(autoregressive(3000, 0.5))
    estimates_of_threads = []
    for count in (1, 5):
        monkeypatch.setattr(threads, "_MOST_THREADS", count)
        estimates_of_threads.append(estimates(values))
    assert estimates_of_threads[0] == estimates_of_threads[1]


def test_metrics_do_not_affect_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several metrics are multiplied at once. Each must get its own columns, in any combination."""
    metrics = []
    for seed, fractions in enumerate(([0.5, 0.9], [], [0.1], [0.5, 0.9, 0.99])):
        values = np.exp(autoregressive(500, 0.3, seed))
        units = Units(np.arange(500), 500, ordered=True, noun="rows")
        metrics.append(woodruff.reduced(values, units, unit_mean(values, units), np.sort(values), fractions))
    together = woodruff.replicates(metrics, 500, 3.0, generator(1))
    for most in (1, 8):
        monkeypatch.setattr(woodruff, "_STACKED_COLUMNS", most)
        again = woodruff.replicates(metrics, 500, 3.0, generator(1))
        for together_values, other in zip(together, again, strict=True):
            assert together_values.keys() == other.keys()
            assert all((together_values[key] == other[key]).all() for key in together_values)
    for metric, drawn in zip(metrics, together, strict=True):
        assert list(drawn) == [None, *metric.shares]
        alone = woodruff.replicates([metric], 500, 3.0, generator(1))[0]
        assert all((alone[key] == drawn[key]).all() for key in drawn)


@pytest.mark.filterwarnings("error")
def test_a_resample_moves_each_figure_to_its_own_mean_and_rank() -> None:
    """Four values at ranks 0 to 4; the mean's count (of averaged groups) differs from the number of values."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    share = woodruff.Share(index=2, n=5, at_or_below=3, ranks=np.arange(5.0), values=values)
    mean = UnitMean(10.0, np.zeros(1), np.zeros(1))
    reduced = woodruff.Reduced(mean, {0.5: share}, np.zeros((1, 4)), exponent=3)
    # Per resample: the deviations times 2^3, the mean's count, the number of values, those at or below the centile.
    sums = np.array([[16.0, 2.0, 5.0, 2.0], [-8.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 4.0, 5.0, 3.0]])
    drawn = reduced.replicates(sums)
    np.testing.assert_array_equal(drawn[None], [11.0, 9.0, np.nan, 10.0])
    np.testing.assert_array_equal(drawn[0.5], [4.0, 1.0, np.nan, 3.0])


def test_deviations_of_at_most_1_are_scaled_to_whole_numbers_too() -> None:
    """Sums of fractions depend on the number of threads."""
    values = np.array([1.0, 2.25, 2.75, 2.0])
    units = Units(np.arange(4), 4, ordered=True, noun="rows")
    reduced = woodruff.reduced(values, units, unit_mean(values, units), np.sort(values), [])
    assert reduced.columns[:, 0].tolist() == [-(2.0**49), 2.0**47, 3.0 * 2.0**47, 0.0]
    assert reduced.exponent == 49


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_ranks_are_thinned_to_steps_of_2_percent_away_from_a_centile(fraction: float) -> None:
    """Coarser steps would make errors wrong; the extremes are needed for resamples that reach them."""
    n = 100_000
    share = woodruff.share_at(np.arange(float(n)), fraction)
    assert (share.ranks[0], share.ranks[-1]) == (0.0, n - 1.0)
    assert (share.values == share.ranks).all()
    assert (np.diff(share.ranks) > 0.0).all()
    for distances in (share.ranks - share.index, share.index - share.ranks[::-1]):
        away = distances[distances >= 0.0]
        if len(away) > 1:
            assert away[:64].tolist() == list(range(64))
            far = away[away >= 10_000.0]
            steps = np.diff(far) / far[:-1]
            assert steps[:-1] == pytest.approx(0.02, abs=2e-4)
            assert steps[-1] < 0.0202


def test_resamples_depend_only_on_the_seed() -> None:
    """A stored run that is summarised again must give the same errors, including those of many units."""
    values = np.exp(autoregressive(1500, 0.3))
    units = Units(np.arange(1500), 1500, ordered=True, noun="rows")
    metric = woodruff.reduced(values, units, unit_mean(values, units), np.sort(values), [])
    (drawn,) = woodruff.replicates([metric], 1500, 3.0, generator(1))
    weights = np.concatenate(list(multiplicities(generator(1), 1500, 3.0, 1000, 2_000_000)))
    assert drawn[None] == pytest.approx(weights @ values / 1500, rel=1e-12)


def test_narrow_columns_are_multiplied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One product per metric would take twice as long."""
    monkeypatch.setattr(woodruff, "_STACKED_COLUMNS", 8)
    mean, columns = UnitMean(0.0, np.zeros(1), np.zeros(1)), np.arange(18.0).reshape(1, 18)
    metrics = [woodruff.Reduced(mean, {}, part, 0) for part in np.split(columns, [4, 7, 12], axis=1)]
    groups = woodruff._stacked(metrics)
    assert [group.shape for group in groups] == [(1, 7), (1, 5), (1, 6)]
    assert (np.concatenate(groups, axis=1) == columns).all()
