"""Halves of single runs, judged by the error within the run.

The number of differing halves matches the stated error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from chainmark.compare.decide import Past
from chainmark.compare.false_alarms import MOST_SPLITS, _distance, _distances, _half, history_check, split_alarms
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate
from chainmark.core.metric import MetricGroup, Population
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of
from chainmark.stats.centiles import FloatArray
from chainmark.stats.summarise import summarise

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

METRICS = [metric(id=f"m{number}_s", population="second", gating=number == 0) for number in range(10)]
CATALOGUE = Catalogue(
    system="cometbft",
    title="CometBFT",
    populations=[Population(id="second", label="seconds", keys=["time_s"], time_key="time_s")],
    tables=[MetricGroup(id="all", title="All")],
    metrics=METRICS,
)
SECONDS = 2000
BLOCK = SECONDS // 20


def drawn(seed: int, memory: float, seconds: int = SECONDS) -> dict[str, FloatArray]:
    """Independent metrics. Each value of a series depends on the previous one by the factor ``memory``."""
    rng = np.random.default_rng(seed)
    by_metric = {}
    for entry in METRICS:
        steps = rng.normal(0.0, 1.0, seconds)
        values = np.empty(seconds)
        values[0] = steps[0]
        for place in range(1, seconds):
            values[place] = memory * values[place - 1] + steps[place]
        by_metric[entry.id] = 100.0 + values
    return by_metric


def run(number: int, columns: dict[str, FloatArray], *, printed: bool = False) -> SyntheticRun:
    described = manifest("v1", 1, seed=number, run_id=f"run-{number}", experiment=None)
    described.printed = printed
    described.gates.clear()
    frames = {"second": pl.DataFrame({"time_s": np.arange(len(columns["m0_s"]), dtype=float), **columns})}
    summaries = {summary.metric_id: summary for summary in summarise(CATALOGUE, frames, number)}
    return SyntheticRun(described, CATALOGUE, frames, summaries)


def runs(seeds: Sequence[int], memory: float) -> list[SyntheticRun]:
    return [run(seed, drawn(seed, memory)) for seed in seeds]


@pytest.mark.parametrize("memory", [0.0, 0.7])
def test_about_one_figure_in_twenty_is_beyond_its_error(memory: float) -> None:
    """There are 160 independent figures. If the error within a run were too small, far more halves would differ."""
    alarms = [split_alarms(runs(range(first, first + 4), memory)) for first in (0, 4, 8, 12)]
    assert sum(alarms.figures for alarms in alarms) == 160
    assert 1 <= sum(alarms.moved for alarms in alarms) <= 16


def test_differing_halves_are_detected() -> None:
    """A check that cannot fail shows nothing. Here every other interval is 1 % higher."""
    columns = drawn(1, 0.0)
    shifted = {name: values + (np.arange(SECONDS) // BLOCK % 2) for name, values in columns.items()}
    alarms = split_alarms([run(1, shifted)])
    assert (alarms.figures, alarms.moved) == (10, 10)


def test_a_half_differs_beyond_1_96_standard_errors() -> None:
    shifted = {name: values + 0.25 * (np.arange(240) // 12 % 2) for name, values in drawn(6, 0.0, 240).items()}
    synthetic = run(6, shifted)
    distances = sorted(map(abs, _distances(synthetic)))
    assert distances[3] < 1.959964 < distances[4] < 2.12 < distances[5]
    assert split_alarms([synthetic]).moved == 6


def test_a_half_has_every_other_time_stretch_and_the_second_half_the_last_sample() -> None:
    frame = pl.DataFrame({"time_s": [*range(201), None]})
    second = [time for time in range(201) if time // 10 % 2 == 1 or time == 200]
    assert _half(frame, "time_s", 1)["time_s"].to_list() == second
    assert _half(frame, "time_s", 0)["time_s"].to_list() == [time for time in range(201) if time not in second]
    assert len(_half(frame[:1], "time_s", 0)) == 1


@pytest.mark.parametrize(("samples", "figures"), [(200, 10), (198, 0)])
def test_a_half_of_fewer_than_a_hundred_samples_shows_nothing(samples: int, figures: int) -> None:
    assert split_alarms([run(1, drawn(1, 0.0, samples))]).figures == figures


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((1.0, 3.0), (6.0, 4.0), 1.0), ((6.0, 3.0), (1.0, 4.0), -1.0), ((None, 3.0), (6.0, 4.0), None),
        ((1.0, 3.0), (None, 4.0), None), ((1.0, None), (6.0, 4.0), None), ((1.0, 3.0), (6.0, None), None),
        ((1.0, 0.0), (6.0, 0.0), None), ((1.0, 0.0), (6.0, 0.5), 10.0),
    ],
)  # fmt: skip
def test_a_distance_is_in_standard_errors_of_both_halves(
    left: tuple[float | None, float | None], right: tuple[float | None, float | None], expected: float | None
) -> None:
    sides = [Estimate(value=value, standard_error=error, method="made up") for value, error in (left, right)]
    assert _distance(*sides) == expected


def test_a_drift_within_the_run_is_in_both_halves() -> None:
    columns = {name: values + np.linspace(0.0, 2.0, SECONDS) for name, values in drawn(2, 0.0).items()}
    assert split_alarms([run(2, columns)]).moved <= 2


def test_the_newest_runs_with_samples_are_split() -> None:
    """Printed runs have no samples, and halves with few samples show nothing."""
    synthetic_runs = [run(seed, drawn(seed, 0.0, 240)) for seed in range(6)]
    synthetic_runs += [run(6, drawn(6, 0.0, 240), printed=True), run(7, drawn(7, 0.0, 150))]
    assert split_alarms(synthetic_runs).runs == ["run-5", "run-4", "run-3", "run-2"]
    assert len(split_alarms(synthetic_runs).runs) == MOST_SPLITS


def test_a_history_without_re_runs_is_checked_by_its_halves() -> None:
    synthetic_runs = runs([1, 2], 0.0)
    check = history_check(synthetic_runs[0], synthetic_runs, Past(), "test")
    assert check.verdict is Verdict.PASS
    assert check.splits.figures == 20
    text = document_of(check).text(140)
    assert "metrics that differ between the halves of a run beyond their 95 % interval" in text
    assert "run-2" in text
    alone = history_check(synthetic_runs[0], synthetic_runs[:1], Past(), "test")
    assert alone.sentence == "no build has re-runs: only splits of single runs were judged"


def test_samples_of_a_very_short_run_are_all_in_a_half() -> None:
    """A run has twenty intervals in any unit of time. The last sample is in the last interval, and no half is empty."""
    columns = drawn(1, 0.0)
    shifted = {name: values + (np.arange(SECONDS) // BLOCK % 2) for name, values in columns.items()}
    short = run(1, shifted)
    short.frames["second"] = short.frames["second"].with_columns(time_s=7.0 + pl.col("time_s") / 4096.0)
    alarms = split_alarms([short])
    assert (alarms.figures, alarms.moved) == (10, 10)
