"""Descriptions of a run compared with values worked out by hand, computed and as stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.stats import description, knots, replicates, tracks
from chainmark.stats.centiles import FloatArray
from chainmark.stats.description import (
    SCHEMA,
    Descriptions,
    Extreme,
    MetricDescription,
    curve_fractions,
    describe,
    joined_key,
    rounded,
    to_frame,
)
from chainmark.stats.keyed_means import Means
from chainmark.stats.tracks import dots_of, track_of

SEED = 7
ALL_CHARTS = (ChartKind.CDF, ChartKind.SERIES, ChartKind.SCATTER)
POPULATION = Population(
    id="seen", label="seen", keys=["time_s", "slot", "fork", "host"], time_key="time_s", average_over=["host"],
    breakdowns=["host"],
)  # fmt: skip
TRAIL: dict[str, Any] = {"populations": ["seen"], "key": ["slot", "fork"], "place": "site"}
SAMPLES = pl.DataFrame(
    {
        "time_s": [0.0, 0.0, 2.0, 2.0, 4.0, 4.0],
        "slot": [1, 1, 2, 2, 3, 3],
        "fork": [0, 0, 1, 1, 1, 1],
        "host": ["a", "b", "a", "b", "a", "b"],
        "site": ["north", "south", None, "south", "north", "south"],
        "x_s": [1.0, 3.0, 2.0, None, 7.1234567, 5.0],
        "once_s": [None, None, 4.0, None, None, None],
        "never_s": [None, np.nan, None, np.inf, None, None],
    },
    schema_overrides={"once_s": pl.Float64, "never_s": pl.Float64},
)


def metric(identifier: str, better: Better = Better.LOWER, charts: Sequence[ChartKind] = ALL_CHARTS) -> Metric:
    return Metric(
        id=identifier, label=identifier, unit="s", kind=Kind.POSITIVE, better=better, statistics=["mean"],
        judged_by=["mean"], table="all", order=1, population="seen", charts=list(charts), description="A test's.",
        source=["test"],
    )  # fmt: skip


def described(
    *metrics: Metric, samples: pl.DataFrame = SAMPLES, population: Population = POPULATION
) -> Mapping[str, MetricDescription]:
    catalogue = Catalogue(
        system="test", title="Test", populations=[population], tables=[MetricGroup(id="all", title="All")],
        trails=[TRAIL], metrics=list(metrics),
    )  # fmt: skip
    return {item.metric_id: item for item in describe(catalogue, {"seen": samples}, SEED)}


def stored(item: MetricDescription) -> MetricDescription:
    return Descriptions(to_frame([MetricDescription("other_s", 3), item]), SEED).of(item.metric_id)


def lists(part: object) -> dict[str, Any]:
    """The attributes, with lists instead of arrays."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(part).items()}


@pytest.mark.parametrize("large_rows", [0, 1_000_000])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_description_matches_hand_computed_values(
    large_rows: int, *, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed, and read from what is stored. A comparison would show other values than the run has."""
    monkeypatch.setattr(description, "_LARGE_ROWS", large_rows)
    computed = described(metric("x_s"), samples=SAMPLES if in_order else SAMPLES.reverse())["x_s"]
    values = [1.0, 2.0, 3.0, 5.0, 7.1234567]
    mean = sum(values) / 5.0
    of_a = 10.1234567 / 3.0
    for item in (computed, stored(computed)):
        assert (item.metric_id, item.rows) == ("x_s", 6)
        assert item.mean == pytest.approx(mean)
        assert item.squares == pytest.approx(sum((value - mean) ** 2 for value in values))
        assert item.knots.values.tolist() == values
        assert (item.knots.below.tolist(), item.knots.at_or_below.tolist()) == ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
        assert item.track is not None
        assert lists(item.track) == {
            "time": [0.0, 2.0, 4.0], "value": [2.0, 2.0, 6.06173], "low": [1.0, 2.0, 5.0], "high": [3.0, 2.0, 7.12346],
            "step": 1,
        }  # fmt: skip
        assert item.dots is not None
        assert lists(item.dots) == {
            "time": [0.0, 0.0, 2.0, 4.0, 4.0], "value": [1.0, 3.0, 2.0, 7.12346, 5.0], "step": 1
        }  # fmt: skip
        assert list(item.means) == ["host"]
        means: Means = item.means["host"]
        assert means.of == {"a": (pytest.approx(of_a), 3), "b": (4.0, 2)}
        squares_of_a = (1.0 - of_a) ** 2 + (2.0 - of_a) ** 2 + (7.1234567 - of_a) ** 2
        assert means.squares == {"a": pytest.approx(squares_of_a), "b": 2.0}
        assert means.freedom == 3
        assert item.tail == [Extreme("3-1", "north", 7.12346), Extreme("1-0", "south", 3.0), Extreme("2-1", "", 2.0)]
    rising = described(metric("x_s", Better.HIGHER))["x_s"]
    assert rising.tail == [Extreme("1-0", "north", 1.0), Extreme("2-1", "", 2.0), Extreme("3-1", "south", 5.0)]


@pytest.mark.parametrize(("few_rows", "most_bundles"), [(0, 4096), (128, 4096), (0, 2), (128, 2)])
def test_resamples_are_the_same_after_reading_them(
    few_rows: int, most_bundles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they or their input are stored. The band of a chart would otherwise change with the second view."""
    monkeypatch.setattr(replicates, "_FEW_ROWS", few_rows)
    monkeypatch.setattr(replicates, "MOST_BUNDLES", most_bundles)
    computed = described(metric("x_s"))["x_s"]
    read = stored(computed).replicates
    assert computed.replicates is not None
    assert read is not None
    assert read.places.tolist() == computed.replicates.places.tolist() == [0, 1, 2, 3, 4]
    assert read.counts.tolist() == computed.replicates.counts.tolist()
    assert read.coarse is computed.replicates.coarse is (most_bundles == 2)
    for result in (computed.replicates, read):
        assert (result.drawn is not None) is (few_rows == 128)
        if result.drawn is not None:
            assert result.drawn.rows.tolist() == ([4, 2] if result.coarse else [2, 2, 2])
            assert result.drawn.cells.tolist() == [0, 2, 1, 5, 4, 3]
    other = described(metric("x_s"), metric("y_s"), samples=SAMPLES.with_columns(y_s="x_s"))["y_s"].replicates
    assert other is not None
    assert other.counts.tolist() != read.counts.tolist(), "each metric has its own draws"


def test_a_metric_without_a_value_has_only_rows() -> None:
    """Of one value there is a description; a column without a finite one, or no column, gives none."""
    results = described(metric("x_s"), metric("once_s"), metric("never_s"), metric("absent_s"))
    assert [(name, item.rows, item.knots.n) for name, item in results.items()] == [
        ("x_s", 6, 5), ("once_s", 6, 1), ("never_s", 6, 0), ("absent_s", 6, 0),
    ]  # fmt: skip
    assert (results["once_s"].mean, results["once_s"].squares) == (4.0, 0.0)
    assert [item.metric_id for item in map(stored, results.values())] == list(results)


@pytest.mark.parametrize("samples", [SAMPLES, SAMPLES.clear()])
def test_a_population_without_a_value_has_no_rows(samples: pl.DataFrame) -> None:
    results = described(metric("never_s"), metric("absent_s"), samples=samples)
    assert [(name, item.rows, item.knots.n) for name, item in results.items()] == [
        ("never_s", 0, 0), ("absent_s", 0, 0)
    ]  # fmt: skip


def test_only_what_is_drawn_is_described() -> None:
    """A metric without charts does not decide here, so neither hosts nor extremes are listed."""
    item = described(metric("x_s", charts=()))["x_s"]
    assert (item.replicates, item.track, item.dots, dict(item.means), list(item.tail)) == (None, None, None, {}, [])
    assert item.knots.n == 5
    without_time = POPULATION.model_copy(update={"time_key": None})
    item = described(metric("x_s"), population=without_time)["x_s"]
    assert (item.track, item.dots) == (None, None)
    assert item.replicates is not None


def test_rows_with_equal_keys_are_ordered_by_their_values() -> None:
    """Otherwise a run that is stored again in another order would be drawn differently."""
    samples = SAMPLES.with_columns(time_s=0.0, slot=1, fork=0, host=pl.lit("a"))
    for rows in (samples, samples.reverse()):
        dots = described(metric("x_s"), samples=rows)["x_s"].dots
        assert dots is not None
        assert dots.value.tolist() == [1.0, 2.0, 3.0, 5.0, 7.12346]


def test_centiles_that_are_drawn_are_exact_in_a_large_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knots, "MOST_DISTINCT", 100)
    monkeypatch.setattr(knots, "EVEN_STEPS", 2)
    n = 3000
    values = np.sqrt(np.random.default_rng(1).permutation(n))
    samples = pl.DataFrame({"time_s": np.arange(float(n)), "x_s": values})
    computed = described(metric("x_s"), samples=samples)["x_s"]
    fractions = np.append(curve_fractions(398), [0.01, 0.07, 0.98])
    for item in (computed, stored(computed)):
        assert 500 < len(item.knots.values) < 1500
        exact = np.sort(values)[np.minimum(n - 1, np.floor(n * fractions).astype(int))]
        assert item.knots.centiles(fractions).tolist() == exact.tolist()


def test_one_row_of_the_table_is_the_description_of_one_metric() -> None:
    results = described(metric("once_s"), metric("x_s"))
    frame = to_frame(results.values())
    descriptions = Descriptions(frame, SEED)
    assert descriptions.row("x_s").equals(frame[1])
    assert descriptions.tail("x_s") == list(results["x_s"].tail)
    assert dict(to_frame([]).schema) == dict(SCHEMA)


def test_coordinates_have_six_digits_and_curves_have_both_ends_and_the_tail() -> None:
    assert rounded(np.array([1.23456789, 0.0, -123456.7])).tolist() == [1.23457, 0.0, -123457.0]
    assert curve_fractions(5).tolist() == [0.0, 0.25, 0.5, 0.75, 0.999, 1.0]


def test_a_name_consists_of_all_key_columns() -> None:
    keys = pl.DataFrame({"slot": [0, 12], "fork": [1234, 5]})
    assert keys.select(joined_key(["slot", "fork"], "block")).to_dict(as_series=False) == {"block": ["0-1234", "12-5"]}


# --- the most extreme rows ------------------------------------------------------------------------------------------


def test_equal_extremes_are_in_the_order_of_items_then_of_places() -> None:
    """By slot, then fork, then place, of which none comes first: a page must not change when it is loaded again."""
    slots, forks = pl.Series([1, 1, 2, 2, 1]), pl.Series(["b", "a", "a", "a", "b"])
    places = pl.Series(["B", "A", "C", None, "A"])
    assert description._tail_rows(np.full(5, 4.0), [slots, forks], places, lowest=False) == [1, 4, 3]


@pytest.mark.parametrize("few_rows", [2, 3])
@pytest.mark.parametrize(
    ("values", "items", "rows"),
    [
        ([9.0, 8.0, 7.0, 3.0, 2.0, 1.0, 0.0], "aaabcde", [0, 3, 4, 5, 6]),
        # Rows without a value are never listed, even if there are fewer than five items.
        ([1.0, np.nan, 2.0, 3.0, np.nan, np.nan, np.nan], "abaacde", [3]),
        ([1.0, np.nan, 3.0, 2.0], "abac", [2, 3]),
        ([1.0, 3.0, 2.0], "aac", [1, 2]),
    ],
)
def test_the_most_extreme_items_are_found_beyond_the_first_rows(
    values: list[float], items: str, rows: list[int], few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the first rows are all of one item, the others must be searched for the next items."""
    monkeypatch.setattr(description, "_FEW_ROWS", few_rows)
    column: FloatArray = np.array(values)
    assert description._tail_rows(column, [pl.Series(list(items))], None, lowest=False) == rows
    assert description._tail_rows(-column, [pl.Series(list(items))], None, lowest=True) == rows


# --- over time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (3, {"time": [1.0, 4.0, 6.0], "value": [3.0, 6.0, 2.0], "low": [1.0, 4.0, 2.0], "high": [5.0, 10.0, 2.0]}),
        (
            4,
            {
                "time": [0.5, 2.5, 4.5, 6.0],
                "value": [3.0, 3.5, 7.0, 2.0],
                "low": [1.0, 3.0, 4.0, 2.0],
                "high": [5.0, 4.0, 10.0, 2.0],
            },
        ),
    ],
)
def test_long_series_are_averaged_and_keep_their_range(
    points: int, expected: dict[str, Any], *, averaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven samples on at most three points are averaged by three, and on at most four by two."""
    monkeypatch.setattr(tracks, "_SERIES_POINTS", points)
    values, times = np.array([1.0, 5.0, 3.0, 4.0, 4.0, 10.0, 2.0]), np.arange(7.0)
    track = track_of(values, times, replicates.instants_of(times), averaged=averaged)
    assert track is not None
    assert lists(track) == expected | {"step": 6 - points}
    monkeypatch.setattr(tracks, "_SERIES_POINTS", 7)
    track = track_of(values, times, None, averaged=averaged)
    assert track is not None
    assert (track.value.tolist(), track.step) == (values.tolist(), 1)


@pytest.mark.parametrize("has_instants", [True, False])
def test_values_of_one_time_are_averaged_and_rows_without_either_are_omitted(*, has_instants: bool) -> None:
    """The time is exact: the mean of three times of 0.1 would not be."""
    values = np.array([np.nan, 2.0, 4.0, np.nan, 3.0, 6.0, 1.0])
    times = np.array([0.05, 0.1, 0.1, 0.1, 0.1, 3.5, 3.5 if has_instants else np.nan])
    instants = replicates.instants_of(times)
    track = track_of(values, times, instants, averaged=True)
    assert track is not None
    last = (3.5, 1.0, 6.0) if has_instants else (6.0, 6.0, 6.0)
    assert lists(track) == {
        "time": [0.1, 3.5], "value": [3.0, last[0]], "low": [2.0, last[1]], "high": [4.0, last[2]], "step": 1
    }  # fmt: skip
    single = track_of(values, times, instants, averaged=False)
    assert single is not None
    assert single.value.tolist() == values[np.isfinite(values) & np.isfinite(times)].tolist()
    for averaged in (False, True):
        assert track_of(np.full(7, np.nan), times, instants, averaged=averaged) is None


def test_many_dots_are_thinned_without_losing_the_extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten dots at most six remain: every third, the lowest at 4 and the highest at 7."""
    monkeypatch.setattr(tracks, "_SCATTER_POINTS", 6)
    values, times = np.array([5.0, 5.0, 5.0, 5.0, 1.0, 5.0, 5.0, 9.0, 5.0, 5.0, np.nan]), np.arange(11.0) + 0.5
    dots = dots_of(values, times)
    assert lists(dots) == {
        "time": [0.5, 3.5, 4.5, 6.5, 7.5, 9.5], "value": [5.0, 5.0, 1.0, 5.0, 9.0, 5.0], "step": 3
    }  # fmt: skip
    assert lists(dots_of(values[-7:], times[-7:])) == {
        "time": [4.5, 5.5, 6.5, 7.5, 8.5, 9.5], "value": [1.0, 5.0, 5.0, 9.0, 5.0, 5.0], "step": 1
    }  # fmt: skip
