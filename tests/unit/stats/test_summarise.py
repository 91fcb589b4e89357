"""Summaries of frames: row order does not matter, nulls are counted, and fixed hosts are averaged first."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, Weighting
from chainmark.stats import summarise as module
from chainmark.stats import threads, woodruff
from chainmark.stats.bootstrap import generator, multiplicities, optimal_block_length
from chainmark.stats.summarise import summarise
from chainmark.stats.units import Units

POPULATIONS = [
    Population(id="block", label="blocks", keys=["height", "time_s"], time_key="time_s"),
    Population(id="host_second", label="hosts × seconds", keys=["host", "time_s"], time_key="time_s",
               average_over=["host"]),
    Population(id="host", label="hosts", keys=["host"]),
    Population(id="fleet", label="hosts", keys=["host"], average_over=["host"]),
]  # fmt: skip


def metric(identifier: str, population: str, kind: Kind = Kind.POSITIVE, statistics: Sequence[str] = ()) -> Metric:
    return Metric(
        id=identifier, label=identifier, unit="s", kind=kind, better=Better.LOWER,
        statistics=list(statistics) or ["mean"], judged_by=["mean"], table="all", order=1, population=population,
        description="A test's metric.", source=["test"],
    )  # fmt: skip


def catalogue(*metrics: Metric) -> Catalogue:
    tables = [MetricGroup(id="all", title="All")]
    return Catalogue(system="test", title="Test", populations=POPULATIONS, tables=tables, metrics=list(metrics))


def rendered(summaries: Sequence[MetricSummary]) -> str:
    return "\n".join(summary.model_dump_json() for summary in summaries)


def blocks(values: Sequence[float | None]) -> pl.DataFrame:
    heights = list(range(len(values)))
    return pl.DataFrame(
        {"height": heights, "time_s": [1.5 * h for h in heights], "a_s": values},
        schema={"height": pl.Int64, "time_s": pl.Float64, "a_s": pl.Float64},
    )


BLOCK = catalogue(metric("a_s", "block", statistics=["mean", "min", "p50", "p99", "max"]))


@given(
    st.lists(st.one_of(st.none(), st.floats(0.1, 9.0)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
    st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_the_order_of_rows_does_not_change_the_bytes(values: list[float | None], random: object, seed: int) -> None:
    frame = blocks(values)
    order = list(range(frame.height))
    random.shuffle(order)  # type: ignore[attr-defined]
    text = rendered(summarise(BLOCK, {"block": frame}, seed))
    assert text == rendered(summarise(BLOCK, {"block": frame[order]}, seed))
    assert "NaN" not in text
    assert "Infinity" not in text


def test_rows_of_equal_keys_are_ordered_by_their_values() -> None:
    frame = blocks([1.0, 2.0, 3.0, 4.0]).with_columns(height=pl.lit(1), time_s=pl.lit(0.0))
    both = [rendered(summarise(BLOCK, {"block": rows}, 1)) for rows in (frame, frame.reverse())]
    assert both[0] == both[1]


def test_nulls_are_counted_and_omitted() -> None:
    (summary,) = summarise(BLOCK, {"block": blocks([1.0, None, 3.0, float("nan")])}, 1)
    assert summary.distribution is not None
    assert (summary.distribution.n, summary.distribution.n_null) == (2, 2)
    assert summary.estimates["mean"].value == 2.0
    assert summary.estimates["p99"].value is None
    assert "not estimable" in summary.estimates["p99"].method


def test_a_metric_without_samples_is_listed_in_catalogue_order() -> None:
    entries = catalogue(metric("b_s", "host"), metric("a_s", "block"), metric("c_s", "block"))
    summaries = summarise(entries, {"block": blocks([1.0, 2.0])}, 1)
    assert [summary.metric_id for summary in summaries] == ["b_s", "a_s", "c_s"]
    assert [summary.distribution is None for summary in summaries] == [True, False, True]
    assert summaries[0].estimates["mean"].value is None


def host_seconds(values: np.ndarray) -> pl.DataFrame:
    hosts, seconds = values.shape
    return pl.DataFrame(
        {
            "host": np.repeat([f"h{i}" for i in range(hosts)], seconds),
            "time_s": np.tile(np.arange(seconds, dtype=float), hosts),
            "cpu": values.ravel(),
        }
    )


def test_fixed_hosts_are_averaged_before_the_error_is_estimated() -> None:
    rng = np.random.default_rng(1)
    levels = np.array([[1.0], [2.0], [6.0]])  # the hosts differ widely, by constant amounts
    values = levels + 0.1 * rng.normal(size=(3, 400))
    entries = catalogue(metric("cpu", "host_second", statistics=["mean", "p50", "max"]))
    (summary,) = summarise(entries, {"host_second": host_seconds(values)}, 3)
    mean = summary.estimates["mean"]
    assert mean.value == pytest.approx(values.mean())
    assert mean.standard_error == pytest.approx(0.1 / math.sqrt(3 * 400), rel=0.2)
    assert summary.distribution is not None
    assert summary.distribution.n == 1200
    largest = summary.estimates["max"]
    assert largest.value == values.max()
    assert (largest.standard_error, largest.method[:13]) == (None, "extreme value")
    assert "time values" in mean.method


def test_a_host_with_missing_seconds_does_not_shift_the_mean() -> None:
    values = np.array([[1.0, 1.0, 1.0, 1.0], [3.0, np.nan, np.nan, 3.0]])
    (summary,) = summarise(catalogue(metric("cpu", "host_second")), {"host_second": host_seconds(values)}, 3)
    assert summary.estimates["mean"].value == pytest.approx((2.0 + 1.0 + 1.0 + 2.0) / 4)


def test_populations_without_time_are_resampled_independently() -> None:
    frame = pl.DataFrame({"host": [f"h{i:03d}" for i in range(200)], "peers": np.arange(200.0)})
    (summary,) = summarise(catalogue(metric("peers", "host")), {"host": frame}, 1)
    expected = np.arange(200.0).std(ddof=1) / math.sqrt(200)
    assert summary.estimates["mean"].standard_error == pytest.approx(expected, rel=0.1)
    assert summary.estimates["mean"].method.startswith("bootstrap, 1000 resamples")


@pytest.mark.parametrize(("population", "rows"), [("fleet", 5), ("host", 1)])
def test_a_single_unit_has_no_standard_error(population: str, rows: int) -> None:
    frame = pl.DataFrame({"host": [f"h{i}" for i in range(rows)], "x_s": [1.0] * rows})
    (summary,) = summarise(catalogue(metric("x_s", population)), {population: frame}, 1)
    assert summary.estimates["mean"].value == 1.0
    assert summary.estimates["mean"].standard_error is None


@pytest.mark.filterwarnings("error")
def test_a_constant_has_a_standard_error_of_zero() -> None:
    (summary,) = summarise(BLOCK, {"block": blocks([200.0] * 300)}, 1)
    assert summary.estimates["mean"].value == 200.0
    assert summary.estimates["mean"].standard_error == 0.0
    assert summary.estimates["mean"].log_standard_error == 0.0


def test_counts_and_proportions_preserve_their_totals() -> None:
    frame = blocks([1.0, 0.0, 2.0, None])
    (count,) = summarise(catalogue(metric("a_s", "block", Kind.COUNT)), {"block": frame}, 1)
    assert (count.total, count.distribution.n if count.distribution else 0) == (3.0, 3)
    (plain,) = summarise(BLOCK, {"block": frame}, 1)
    assert plain.total is None


def test_the_logarithmic_error_is_the_relative_one_for_small_errors() -> None:
    rng = np.random.default_rng(2)
    (summary,) = summarise(BLOCK, {"block": blocks(list(5.0 + 0.1 * rng.normal(size=500)))}, 1)
    mean = summary.estimates["mean"]
    assert mean.value is not None
    assert mean.standard_error is not None
    assert mean.log_standard_error == pytest.approx(mean.standard_error / mean.value, rel=0.01)


def test_another_seed_changes_the_error_but_not_the_value() -> None:
    frame = blocks([float(value) for value in np.random.default_rng(0).random(200)])
    estimate, other = (summarise(BLOCK, {"block": frame}, seed)[0].estimates["mean"] for seed in (1, 2))
    assert estimate.value == other.value
    assert estimate.standard_error != other.standard_error


def of_hosts(
    values: Sequence[float], kind: Kind = Kind.POSITIVE, statistics: Sequence[str] = ("mean", "p50"), seed: int = 1
) -> dict[str, Estimate]:
    """The estimates of one value per host; hosts are resampled independently."""
    frame = pl.DataFrame({"host": [f"h{i:03d}" for i in range(len(values))], "x": values})
    (summary,) = summarise(catalogue(metric("x", "host", kind, statistics)), {"host": frame}, seed)
    return summary.estimates


def test_resamples_are_determined_by_the_seed_and_the_population() -> None:
    """A stored run that is summarised again must give the same errors."""
    values = np.random.default_rng(5).random(20)
    drawn = np.concatenate(list(multiplicities(generator(7, "summarise", "host"), 20, 1.0))) @ values / 20
    assert of_hosts(values.tolist(), seed=7)["mean"].standard_error == pytest.approx(drawn.std(ddof=1), rel=1e-12)


EXTREME = "extreme value: resampling cannot estimate its error"
BLOCKS_OF_1 = "stationary bootstrap, mean block 1.0 rows, 1000 resamples of 5 rows"


@pytest.mark.parametrize(
    ("values", "large_rows", "methods"),
    [
        (
            [3.0] * 5,
            5,
            {
                "mean": BLOCKS_OF_1,
                "min": EXTREME,
                "p50": BLOCKS_OF_1,
                "p99": "not estimable: too few samples",
                "max": EXTREME,
            },
        ),
        ([3.0] * 5, 4, {"mean": BLOCKS_OF_1, "p50": f"Woodruff's inversion of the share below it: {BLOCKS_OF_1}"}),
        ([3.0], 5, {"mean": "not estimable: a single unit"}),
        ([None] * 5, 5, {"mean": "no samples", "p50": "no samples", "max": "no samples"}),
    ],
    ids=["resampled", "large", "single", "none"],
)
def test_each_estimate_states_how_its_error_was_computed(
    values: list[float | None], large_rows: int, methods: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(woodruff, "LARGE_ROWS", large_rows)
    (summary,) = summarise(BLOCK, {"block": blocks(values)}, 1)
    assert {name: summary.estimates[name].method for name in methods} == methods
    assert all(summary.estimates[name].standard_error is None for name in ("min", "p99", "max"))


def test_blocks_are_as_long_as_the_samples_depend_on_each_other() -> None:
    """Resampling a trend row by row would make its error far too small."""
    values = [1.0 + height for height in range(100)]
    (summary,) = summarise(BLOCK, {"block": blocks(values)}, 1)
    length = optimal_block_length(values)
    assert length > 5.0
    assert f"mean block {length:.1f} rows" in summary.estimates["mean"].method


def test_two_units_have_a_standard_error() -> None:
    """Half of the resamples have both values: the deviation is 1 / sqrt(2)."""
    estimate = of_hosts([1.0, 3.0])["mean"]
    assert estimate.standard_error == pytest.approx(math.sqrt(0.5), rel=0.05)
    assert estimate.method == "bootstrap, 1000 resamples of 2 rows"


@pytest.mark.parametrize(
    ("kind", "values", "statistic", "is_known"),
    [
        (Kind.POSITIVE, [0.2, 0.3, 0.4, 0.5], "mean", True),
        (Kind.DIFFERENCE, [0.2, 0.3, 0.4, 0.5], "mean", False),
        (Kind.POSITIVE, [0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 5.0], "p50", False),
        (Kind.POSITIVE, [-5.0, -4.0, -3.0, -2.0], "mean", False),
    ],
    ids=["below 1", "a difference", "some resamples are 0", "negative"],
)
def test_only_positive_figures_have_a_logarithmic_error(
    kind: Kind, values: list[float], statistic: str, *, is_known: bool
) -> None:
    """Ratios are judged by it; the logarithm of 0 would make it meaningless."""
    estimate = of_hosts(values, kind, ["mean", statistic])[statistic]
    assert estimate.standard_error
    assert (estimate.log_standard_error is not None) == is_known


def test_a_constant_has_no_error_and_its_mean_is_the_constant() -> None:
    """Sums round: 0.1 + 0.1 + 0.1 is more than 0.3, and near 1 the logarithm shows the last digits of a resample."""
    (summary,) = summarise(BLOCK, {"block": blocks([0.1] * 3)}, 1)
    assert summary.distribution is not None
    assert summary.distribution.mean == 0.1
    estimate = of_hosts([1.0000001] * 200)["mean"]
    assert (estimate.standard_error, estimate.log_standard_error) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("keys_apart", "expected"),
    [(True, (3.0, "the median over the keys: no error is estimated")), (False, (9.0, "stationary bootstrap"))],
)
def test_centiles_of_equally_weighted_hosts_are_pooled_unless_the_catalogue_separates_them(
    *, keys_apart: bool, expected: tuple[float, str]
) -> None:
    """Three hosts: two with the values 1, 2, 3, 4 and one with twelve values from 7 on. No p99 has so few values."""
    population = Population(
        id="host_second", label="hosts × seconds", keys=["host", "time_s"], time_key="time_s", average_over=["host"],
        weighting=Weighting.KEYS, keys_apart=keys_apart,
    )  # fmt: skip
    entries = catalogue(metric("cpu", "host_second", statistics=["mean", "p50", "p99"]))
    entries = entries.model_copy(update={"populations": [population]})
    values = np.full((3, 12), np.nan)
    values[:2, :4] = [1.0, 2.0, 3.0, 4.0]
    values[2] = np.arange(7.0, 19.0)
    (summary,) = summarise(entries, {"host_second": host_seconds(values)}, 1)
    median, tail = summary.estimates["p50"], summary.estimates["p99"]
    assert (median.value, median.method[: len(expected[1])]) == expected
    assert (median.standard_error is None) == keys_apart
    assert (tail.value, tail.method) == (None, "not estimable: too few samples")


@pytest.mark.parametrize("is_large", [True, False])
def test_a_large_population_retains_only_sums_for_its_resamples(*, is_large: bool) -> None:
    """Copies of its columns would need the memory of all metrics at once; extremes are not resampled."""
    values, units = np.array([3.0, 1.0, np.nan, 2.0]), Units(np.arange(4), 4, ordered=True, noun="rows")
    entry = metric("a_s", "block", statistics=["mean", "min", "p90", "p50", "max"])
    prepared = module._prepare(entry, values, units, POPULATIONS[0], is_large=is_large)
    assert prepared is not None
    assert prepared.resampled == [0.5, 0.9]
    if is_large:
        assert (prepared.sorted_values, prepared.sorted_units) == (None, None)
        assert prepared.reduced is not None
        assert list(prepared.reduced.shares) == [0.5, 0.9]
    else:
        assert prepared.reduced is None
        assert prepared.sorted_values is not None
        assert prepared.sorted_units is not None
        assert (prepared.sorted_values.tolist(), prepared.sorted_units.tolist()) == ([1.0, 2.0, 3.0], [1, 3, 0])


def test_threads_are_chosen_by_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads make the summary of a small run slower."""
    asked: list[int | None] = []

    def pool(rows: int | None = None) -> ThreadPoolExecutor:
        asked.append(rows)
        return threads.worker_threads(rows)

    monkeypatch.setattr(module, "worker_threads", pool)
    frame = blocks([1.0, None, None, 4.0]).with_columns(b_s=pl.Series([1.0, 2.0, 3.0, None]))
    summarise(catalogue(metric("a_s", "block"), metric("b_s", "block")), {"block": frame}, 1)
    assert asked == [4, 3]  # the rows, and the values of the metric that has the most
