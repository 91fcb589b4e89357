"""A column with a changed name or type is detected when its frame leaves a module, not by its absence in a report."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import ExitCode, InternalError
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.store.runs import Store
from chainmark.store.schema import check_samples

STATED = {"time_ns": pl.Int64, "host": pl.String}
CATALOGUE = Catalogue(
    system="toy",
    title="Toy",
    populations=[Population(id="request", label="requests", keys=["host", "time_s"], time_key="time_s")],
    tables=[MetricGroup(id="main", title="Main")],
    metrics=[
        Metric(
            id=name, label=name, unit="s", kind=Kind.POSITIVE, better=Better.LOWER, statistics=["mean"],
            judged_by=["mean"], table="main", order=1, population="request", floor=0.0, gating=True,
            description="a time", source=["requests"],
        )
        for name in ("latency_s", "service_s")
    ],
)  # fmt: skip
SAMPLES = pl.DataFrame({"host": ["a"], "time_s": [0.5], "latency_s": [0.1]})


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pl.DataFrame({"time_ns": [1]}), "the events of `seen` lack the column `host`"),
        (
            pl.DataFrame({"time_ns": [1.0], "host": ["a"]}),
            "the column `time_ns` of the events of `seen` is Float64, not Int64",
        ),
        (
            pl.DataFrame({"time_ns": [1], "host": ["a"], "peer": ["b"]}),
            "the events of `seen` have the column `peer`, which is not in the schema",
        ),
    ],
)
def test_events_that_violate_the_schema_are_refused_with_the_column(
    tmp_path: Path, frame: pl.DataFrame, expected: str
) -> None:
    run = Store(tmp_path).create("toy", "toy/demo", "v1", {})
    with pytest.raises(InternalError) as caught:
        run.write_events("seen", frame, STATED)
    assert (caught.value.message, caught.value.exit_code) == (expected, ExitCode.ENVIRONMENT)
    assert "report it" in (caught.value.hint or "")
    assert not (run.path / "events").exists()


def test_events_may_come_in_any_order_of_columns(tmp_path: Path) -> None:
    run = Store(tmp_path).create("toy", "toy/demo", "v1", {})
    run.write_events("seen", pl.DataFrame({"host": ["a"], "time_ns": [1]}), STATED)
    assert (run.path / "events" / "seen.parquet").is_file()


@pytest.mark.parametrize(
    "frame",
    [
        SAMPLES,  # metrics that were not measured have no column
        SAMPLES.with_columns(service_s=pl.lit(None, dtype=pl.Float64)),
        SAMPLES.with_columns(pl.col("host").cast(pl.Enum(["a", "b"]))),
        SAMPLES.with_columns(host=pl.lit(1)),
    ],
)
def test_samples_consist_of_keys_and_metrics(frame: pl.DataFrame) -> None:
    check_samples(CATALOGUE, "request", frame.schema)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (SAMPLES.drop("host"), "the key `host` of the samples of `request` is missing, not an integer or a text"),
        (SAMPLES.with_columns(host=pl.lit(1.5)), "the key `host` of the samples of `request` is Float64"),
        (SAMPLES.drop("time_s"), "the samples of `request` lack the column `time_s`"),
        (SAMPLES.rename({"latency_s": "latency"}), "`latency`, which is neither a key nor a metric of the population"),
        (SAMPLES.with_columns(latency_s=pl.lit(1)), "the column `latency_s` of the samples of `request` is Int32"),
        (SAMPLES.with_columns(latency_s=pl.lit(None)), "the column `latency_s` of the samples of `request` is Null"),
    ],
)
def test_samples_unknown_to_the_catalogue_are_refused(frame: pl.DataFrame, expected: str) -> None:
    with pytest.raises(InternalError) as caught:
        check_samples(CATALOGUE, "request", frame.schema)
    assert expected in caught.value.message


def test_samples_of_an_unknown_population_are_refused() -> None:
    with pytest.raises(InternalError, match="`requests`, but the catalogue of toy has no such population"):
        check_samples(CATALOGUE, "requests", SAMPLES.schema)
