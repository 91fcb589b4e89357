"""Means that weight times, samples or hosts equally, and their errors compared with resampling by hand."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, Weighting
from chainmark.stats import woodruff
from chainmark.stats.bootstrap import generator, multiplicities
from chainmark.stats.samples import FrameSamples, OrderedSamples, ParquetSamples
from chainmark.stats.summarise import summarise

Row = tuple[int, int, float | None]  # time, host, value


def catalogue(weighting: Weighting, lowest: int | None = None, statistics: Sequence[str] = ("mean",)) -> Catalogue:
    population = Population(
        id="slot_host", label="slots × hosts", keys=["slot", "host", "time_s"], time_key="time_s",
        average_over=["host"], weighting=weighting, lowest_means=lowest,
    )  # fmt: skip
    metric = Metric(
        id="cpu", label="CPU", unit="cores", kind=Kind.POSITIVE, better=Better.LOWER, statistics=list(statistics),
        judged_by=["mean"], table="all", order=1, population="slot_host", description="A test's.", source=["test"],
    )  # fmt: skip
    tables = [MetricGroup(id="all", title="All")]
    return Catalogue(system="test", title="Test", populations=[population], tables=tables, metrics=[metric])


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "slot": [time for time, _, _ in rows],
            "host": [f"h{host}" for _, host, _ in rows],
            "time_s": [float(time) for time, _, _ in rows],
            "cpu": [value for _, _, value in rows],
        },
        schema={"slot": pl.Int64, "host": pl.String, "time_s": pl.Float64, "cpu": pl.Float64},
    )


def summary(entries: Catalogue, rows: Sequence[Row]) -> MetricSummary:
    (metric_summary,) = summarise(entries, {"slot_host": frame(rows)}, 3)
    return metric_summary


def mean_of_means(rows: Sequence[Row], place: int, lowest: int | None = None) -> float:
    """The definition: the mean of each group's mean, over all groups or the lowest ones."""
    groups: dict[int | float | None, list[float]] = {}
    for row in rows:
        if row[2] is not None:
            groups.setdefault(row[place], []).append(row[2])
    means = sorted(math.fsum(values) / len(values) for values in groups.values())[:lowest]
    return math.fsum(means) / len(means)


rows_of_hosts = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 4), st.one_of(st.none(), st.floats(0.01, 100.0))),
    min_size=1, max_size=40, unique_by=lambda row: row[:2],
).filter(lambda rows: any(value is not None for _, _, value in rows))  # fmt: skip


@given(rows_of_hosts)
@settings(max_examples=60, deadline=None)
def test_means_match_their_definitions(rows: list[Row]) -> None:
    values = [value for _, _, value in rows if value is not None]
    expected = [
        (catalogue(Weighting.TIMES), mean_of_means(rows, 0)),
        (catalogue(Weighting.SAMPLES), math.fsum(values) / len(values)),
        (catalogue(Weighting.KEYS), mean_of_means(rows, 1)),
        (catalogue(Weighting.KEYS, 2), mean_of_means(rows, 1, 2)),
    ]
    for entries, mean in expected:
        metric_summary = summary(entries, rows)
        assert metric_summary.estimates["mean"].value == pytest.approx(mean, rel=1e-12)
        assert metric_summary.distribution is not None
        assert metric_summary.distribution.mean == metric_summary.estimates["mean"].value
        assert (metric_summary.distribution.n, metric_summary.distribution.max) == (len(values), max(values))


def uneven_matrix(seed: int, hosts: int = 8, times: int = 600) -> np.ndarray:
    """Hosts × times with autocorrelated common noise, a level per host, and a sampling rate per host."""
    rng = np.random.default_rng(seed)
    common = np.empty(times)
    level = 0.0
    for index, noise in enumerate(rng.normal(size=times)):
        level = 0.6 * level + noise
        common[index] = level
    values = 20.0 + 5.0 * np.arange(hosts)[:, None] + common + rng.normal(size=(hosts, times))
    values[rng.random((hosts, times)) > np.linspace(0.2, 1.0, hosts)[:, None]] = np.nan
    return values


def as_rows(values: np.ndarray) -> list[Row]:
    hosts, times = values.shape
    return [(t, h, float(values[h, t])) for t in range(times) for h in range(hosts) if np.isfinite(values[h, t])]


@pytest.mark.parametrize("lowest", [None, 3])
def test_the_error_of_equally_weighted_hosts_matches_resampling_the_matrix(lowest: int | None) -> None:
    values = uneven_matrix(1)
    estimate = summary(catalogue(Weighting.KEYS, lowest), as_rows(values)).estimates["mean"]
    length = float(estimate.method.split("mean block ")[1].split()[0])
    present = np.isfinite(values)
    chosen = np.argsort(np.nanmean(values, axis=1))[:lowest]
    drawn = []
    for weights in multiplicities(generator(9, "by hand"), values.shape[1], length, 2000):
        sums = weights @ np.where(present, values, 0.0).T
        drawn.append((sums / (weights @ present.T))[:, chosen].mean(axis=1))
    assert estimate.standard_error == pytest.approx(float(np.concatenate(drawn).std(ddof=1)), rel=0.08)


def test_an_intermittent_host_does_not_widen_the_error_by_its_level() -> None:
    values = np.full((4, 400), 10.0) + 0.1 * np.random.default_rng(2).normal(size=(4, 400))
    values[3] += 1000.0  # always the same level, but present only half of the time
    values[3, 100:300] = np.nan
    error = {which: summary(catalogue(which), as_rows(values)).estimates["mean"].standard_error for which in Weighting}
    assert error[Weighting.KEYS] == pytest.approx(0.1 / math.sqrt(4 * 400), rel=0.4)
    assert (error[Weighting.SAMPLES] or 0.0) > 1.0


@pytest.mark.parametrize("weighting", list(Weighting))
@pytest.mark.parametrize("rows_at_least", [0, 10**9])
def test_a_folder_and_unordered_frames_give_the_same_bytes(
    weighting: Weighting, rows_at_least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(woodruff, "LARGE_ROWS", rows_at_least)
    entries = catalogue(weighting, statistics=["mean", "p50", "p90", "max"])
    ordered = frame(as_rows(uneven_matrix(3, hosts=4, times=80)))
    ordered = ordered.with_columns(
        pl.when(pl.col("slot") < 9).then(0).otherwise("time_s").cast(pl.Float64).alias("time_s")
    )
    twice = pl.concat([ordered, ordered.head(5).with_columns(pl.col("cpu") + 1.0)])  # rows with equal keys
    expected = summarise(entries, {"slot_host": twice}, 5)[0].model_dump_json()
    for seed in (1, 2):
        shuffled = twice.sample(fraction=1.0, shuffle=True, seed=seed)
        shuffled.write_parquet(tmp_path / "slot_host.parquet")
        assert summarise(entries, ParquetSamples(tmp_path), 5)[0].model_dump_json() == expected
    assert "NaN" not in expected


def test_only_unordered_rows_are_sorted() -> None:
    population = catalogue(Weighting.KEYS).populations[0]
    ordered = frame([(0, 0, 1.0), (0, 1, 2.0), (1, 0, None), (1, 1, 4.0)])
    for rows in (ordered, ordered.reverse()):
        samples = OrderedSamples(FrameSamples({"slot_host": rows}), population, ["cpu"])
        assert samples.keys().columns == ["time_s", "slot", "host"]
        assert samples.keys()["host"].to_list() == ["h0", "h1", "h0", "h1"]
        values = samples.column("cpu")
        assert values is not None
        assert values.tolist()[:2] == [1.0, 2.0]
        assert math.isnan(values[2])
    assert samples.column("absent") is None
    assert samples.height == 4


@pytest.mark.parametrize(("silent_counts", "expected"), [(False, 3.0), (True, 2.0)])
def test_a_silent_host_counts_as_0_only_if_the_catalogue_requires_it(silent_counts: bool, expected: float) -> None:
    """If this fails, a published mean omits silent hosts, or an exact mean counts a silent host as 0."""
    entries = catalogue(Weighting.KEYS)
    population = entries.populations[0].model_copy(update={"silent_keys_are_zero": silent_counts})
    entries = entries.model_copy(update={"populations": [population]})
    metric_summary = summary(entries, [(0, 0, 2.0), (1, 0, 2.0), (0, 1, 4.0), (0, 2, None), (1, 2, None)])
    assert metric_summary.estimates["mean"].value == pytest.approx(expected)
    assert metric_summary.distribution is not None
    assert metric_summary.distribution.n == 3
