"""Summaries of frames: row order does not matter, nulls are counted, and fixed hosts are averaged first."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.stats.summarise import summarise

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
