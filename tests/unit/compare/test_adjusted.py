"""Means adjusted to equal conditions, computed by hand: the adjustment, its additional error, and its limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from chainmark.compare import adjusted
from chainmark.compare.adjusted import Sides, sides_of
from chainmark.compare.decide import decide
from chainmark.compare.estimates import SideEstimates, collect
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Outcome
from chainmark.core.metric import Better, Covariate, CovariateKind, Kind, Metric, MetricGroup, Population
from chainmark.stats.centiles import FloatArray
from chainmark.stats.covariates import adjusted_means, day_waves

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

DELAY = metric(id="delay_s", statistics=["mean", "p50"], judged_by=["mean"], adjusted_for=["lag_s"])
NOON = metric(id="noon_s", adjusted_for=["lag_s", "day_s"])
ERRORS = metric(Kind.COUNT, id="errors", adjusted_for=["lag_s"])
PLAIN = metric(id="plain_s")
COVARIATES = [
    Covariate(column="lag_s", label="header lag"),
    Covariate(column="day_s", label="time of day", kind=CovariateKind.DAY),
]


def _catalogue(time_key: str | None = "time_s") -> Catalogue:
    population = Population(
        id="block",
        label="blocks",
        keys=["block", "time_s", "lag_s", "day_s"],
        time_key=time_key,
        covariates=COVARIATES,
    )
    return Catalogue(
        system="x",
        title="X",
        populations=[population],
        tables=[MetricGroup(id="all", title="All")],
        metrics=[DELAY, NOON, ERRORS, PLAIN],
    )


CATALOGUE = _catalogue()
SAMPLES = 200


def _frame(seed: int, lag_s: float, effect_s: float, *, first_hour: int = 8, hours: int = 4) -> pl.DataFrame:
    """Blocks 10 s apart. Each second of header lag delays a block by half a second."""
    rng = np.random.default_rng(seed)
    lag = lag_s + rng.uniform(0.0, 1.0, SAMPLES)
    times = 10.0 * np.arange(SAMPLES)
    day = 3600.0 * (first_hour + hours * np.arange(SAMPLES) / SAMPLES)
    delay = 1.0 + effect_s + 0.5 * lag + rng.normal(0.0, 0.05, SAMPLES)
    columns = {"block": np.arange(SAMPLES), "time_s": times, "lag_s": lag, "day_s": day, "delay_s": delay}
    return pl.DataFrame({**columns, "noon_s": delay, "errors": np.round(10.0 * delay), "plain_s": delay})


def _runs(*frames: pl.DataFrame, catalogue: Catalogue = CATALOGUE, number: int = 0) -> list[LoadedRun]:
    return [
        LoadedRun(SyntheticRun(manifest("v1", 1, run_id=f"run-{number}-{place}"), catalogue, {"block": frame}))
        for place, frame in enumerate(frames)
    ]


BEFORE = [_frame(1, 0.0, 0.0), _frame(2, 0.1, 0.0)]
AFTER = [_frame(3, 1.0, 0.2), _frame(4, 0.9, 0.2), _frame(5, 1.1, 0.2)]


def _sides(
    metric: Metric,
    before: Sequence[pl.DataFrame] = BEFORE,
    after: Sequence[pl.DataFrame] = AFTER,
    statistic: str = "mean",
    catalogue: Catalogue = CATALOGUE,
) -> Sides:
    return sides_of(
        catalogue,
        metric,
        statistic,
        _runs(*before, catalogue=catalogue),
        _runs(*after, catalogue=catalogue, number=1),
    )


def _clusters(frames: Sequence[pl.DataFrame]) -> FloatArray:
    """Cluster of each block: twentieths of each run's 1,990 s. The last block of a run is in a cluster of its own."""
    return np.concatenate([21 * place + frame["time_s"].to_numpy() // 99.5 for place, frame in enumerate(frames)])


def _by_hand(frames: Sequence[pl.DataFrame], column: str, design: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Adjusted means and their errors, with two baseline and three candidate runs."""
    values = np.concatenate([frame[column].to_numpy() for frame in frames]).astype(np.float64)
    groups = np.repeat(np.arange(len(frames)), SAMPLES)
    means = adjusted_means(values, groups, design, _clusters(frames).astype(np.int64))
    assert means is not None
    weights = np.array([-1.0 / 2.0] * 2 + [1.0 / 3.0] * 3)
    exact = weights @ means.covariance @ weights
    apart = weights**2 @ np.diag(means.covariance)
    return means.means, np.sqrt(np.diag(means.covariance) * max(1.0, exact / apart))


def _column(frames: Sequence[pl.DataFrame], name: str) -> FloatArray:
    return np.concatenate([frame[name].to_numpy() for frame in frames])


def test_a_mean_is_judged_at_equal_conditions_with_the_additional_error() -> None:
    """As measured, the release is slower by a third, mostly because its headers arrived later."""
    sides = _sides(DELAY)
    means, errors = _by_hand([*BEFORE, *AFTER], "delay_s", _column([*BEFORE, *AFTER], "lag_s")[:, None])
    assert [*sides.baseline.values, *sides.candidate.values] == pytest.approx(list(means))
    assert [*sides.baseline.per_run, *sides.candidate.per_run] == pytest.approx(list(means))
    assert [*sides.baseline.standard_errors, *sides.candidate.standard_errors] == pytest.approx(list(errors))
    logs = [*sides.baseline.log_standard_errors, *sides.candidate.log_standard_errors]
    assert logs == pytest.approx(list(errors / means))
    assert np.mean(sides.candidate.values) - np.mean(sides.baseline.values) == pytest.approx(0.2, abs=0.02)
    raw = collect(_runs(*BEFORE), DELAY, "mean"), collect(_runs(*AFTER), DELAY, "mean")
    before, after = (float(np.exp(np.mean(np.log(side.values)))) for side in raw)
    assert sides.note == f"at equal header lag, unadjusted {units.percent(after / before - 1.0)}"
    assert sides.unlike == ""
    # Different conditions make the errors of the sides anticorrelated. Treated as independent they would be too small.
    plain = _by_hand([*BEFORE, *BEFORE, BEFORE[0]], "delay_s", _column([*BEFORE, *BEFORE, BEFORE[0]], "lag_s")[:, None])
    assert errors[0] > 1.5 * plain[1][0]


def test_the_time_of_day_is_removed_by_its_harmonics() -> None:
    frames = [*BEFORE, *AFTER]
    design = np.concatenate([_column(frames, "lag_s")[:, None], day_waves(_column(frames, "day_s"))], axis=1)
    means, errors = _by_hand(frames, "noon_s", design)
    sides = _sides(NOON)
    assert [*sides.baseline.values, *sides.candidate.values] == pytest.approx(list(means))
    assert [*sides.baseline.standard_errors, *sides.candidate.standard_errors] == pytest.approx(list(errors))
    assert sides.note.startswith("at equal header lag and time of day, unadjusted")


def test_the_total_of_a_count_is_that_of_its_adjusted_rate() -> None:
    """The pooled interval counts events: the number that would have occurred at equal conditions."""
    sides, plain = _sides(ERRORS), collect(_runs(*AFTER), ERRORS, "mean")
    assert sides.candidate.total == pytest.approx(float(np.mean(sides.candidate.values)) * 3 * SAMPLES)
    assert sides.candidate.total != pytest.approx(plain.total, rel=0.01)
    assert sides.candidate.exposure == 3 * SAMPLES
    assert _sides(DELAY).candidate.total == collect(_runs(*AFTER), DELAY, "mean").total


def test_blocks_without_a_time_order_are_treated_as_independent() -> None:
    frames, catalogue = [*BEFORE, *AFTER], _catalogue(time_key=None)
    sides = _sides(DELAY, catalogue=catalogue)
    groups = np.repeat(np.arange(5), SAMPLES)
    expected = adjusted_means(
        _column(frames, "delay_s"), groups, _column(frames, "lag_s")[:, None], np.arange(5 * SAMPLES)
    )
    assert expected is not None
    assert [*sides.baseline.values, *sides.candidate.values] == pytest.approx(list(expected.means))
    least = np.sqrt(np.diag(expected.covariance))
    ratios = np.array([*sides.baseline.standard_errors, *sides.candidate.standard_errors]) / least
    assert ratios.min() >= 1.0
    assert ratios == pytest.approx(np.full(5, ratios[0]))


def test_samples_of_long_runs_are_correlated_for_an_hour() -> None:
    """Their clusters are an hour long, not a twentieth of a run of several days."""
    days = [frame.with_columns(time_s=pl.col("time_s") * 100.0) for frame in [*BEFORE, *AFTER]]
    clusters = np.concatenate([1000 * place + frame["time_s"].to_numpy() // 3600.0 for place, frame in enumerate(days)])
    means = adjusted_means(
        _column(days, "delay_s"),
        np.repeat(np.arange(5), SAMPLES),
        _column(days, "lag_s")[:, None],
        clusters.astype(np.int64),
    )
    assert means is not None
    weights = np.array([-1.0 / 2.0] * 2 + [1.0 / 3.0] * 3)
    factor = weights @ means.covariance @ weights / (weights**2 @ np.diag(means.covariance))
    expected = np.sqrt(np.diag(means.covariance) * max(1.0, factor))
    sides = _sides(DELAY, days[:2], days[2:])
    assert [*sides.baseline.standard_errors, *sides.candidate.standard_errors] == pytest.approx(list(expected))


def _errors(sides: Sides) -> list[float]:
    return [*sides.baseline.standard_errors, *sides.candidate.standard_errors]


@pytest.mark.parametrize(("factor", "begin_s"), [(1.0, 12_345.0), (1.0 / 1024.0, 0.0)])
def test_the_start_and_length_of_short_runs_do_not_change_the_error(factor: float, begin_s: float) -> None:
    """Clusters are a twentieth of a run, whether it lasts an hour or two seconds."""
    moved = [frame.with_columns(time_s=pl.col("time_s") * factor + begin_s) for frame in [*BEFORE, *AFTER]]
    assert _errors(_sides(DELAY, moved[:2], moved[2:])) == pytest.approx(_errors(_sides(DELAY)))


def test_equal_conditions_add_no_error() -> None:
    after = [_frame(seed, 0.05, 0.2) for seed in (3, 4, 5)]
    groups, frames = np.repeat(np.arange(5), SAMPLES), [*BEFORE, *after]
    lag = _column(frames, "lag_s")[:, None]
    means = adjusted_means(_column(frames, "delay_s"), groups, lag, _clusters(frames).astype(np.int64))
    assert means is not None
    assert _errors(_sides(DELAY, after=after)) == pytest.approx(list(np.sqrt(np.diag(means.covariance))), rel=0.1)


def test_an_event_that_never_happened_has_no_error_and_no_change() -> None:
    before, after = ([frame.with_columns(errors=pl.lit(0.0)) for frame in side] for side in (BEFORE, AFTER))
    sides = _sides(ERRORS, before, after)
    assert [*sides.baseline.values, *sides.candidate.values] == [0.0] * 5
    assert _errors(sides) == [*sides.baseline.log_standard_errors, *sides.candidate.log_standard_errors] == [0.0] * 5
    assert sides.note == "at equal header lag"
    assert _sides(ERRORS, before, AFTER).note == "at equal header lag", "a change from zero has no ratio to report"


def test_samples_without_a_known_condition_do_not_count() -> None:
    holes = AFTER[2].with_columns(
        lag_s=pl.when(pl.col("block") == 3).then(None).otherwise("lag_s"),
        delay_s=pl.when(pl.col("block") == 4)
        .then(float("nan"))
        .when(pl.col("block") == 5)
        .then(None)
        .otherwise("delay_s"),
    )
    frame = AFTER[2].filter(~pl.col("block").is_in([3, 4, 5]))
    with_holes, without = (_sides(DELAY, BEFORE, [*AFTER[:2], last]) for last in (holes, frame))
    assert with_holes.candidate.values == pytest.approx(without.candidate.values)


@pytest.mark.parametrize(
    ("hours", "unlike"),
    [
        ((8, 4, 9, 4), ""),
        ((8, 3, 9, 3), ""),  # two of four hours are shared
        ((8, 4, 10, 4), "the sides share 2 of 6 hours of the day: the version and the time of day cannot be separated"),
        ((8, 2, 20, 2), "the sides share 0 of 4 hours of the day: the version and the time of day cannot be separated"),
    ],
)
def test_sides_that_share_less_than_half_of_the_hours_are_not_judged(
    hours: tuple[int, int, int, int], unlike: str
) -> None:
    before = [_frame(1, 0.0, 0.0, first_hour=hours[0], hours=hours[1])]
    after = [_frame(3, 0.2, 0.2, first_hour=hours[2], hours=hours[3])]
    sides = _sides(NOON, before, after)
    assert sides.unlike == unlike
    if unlike:
        assert sides.note == ""
        assert sides.baseline == collect(_runs(*before), NOON, "mean")
    assert _sides(DELAY, before, after).unlike == "", "a metric that does not depend on the time of day is judged"


def test_the_hours_are_those_of_all_runs_of_a_side() -> None:
    before = [_frame(2, 0.0, 0.0, first_hour=14, hours=2), _frame(1, 0.0, 0.0, first_hour=8, hours=2)]
    after = [_frame(3, 0.2, 0.2, first_hour=9, hours=2), _frame(4, 0.2, 0.2, first_hour=14, hours=2)]
    assert _sides(NOON, before, after).unlike == ""


def test_a_condition_that_separates_the_sides_is_named() -> None:
    before = [BEFORE[0].with_columns(lag_s=pl.lit(0.0))]
    after = [AFTER[0].with_columns(lag_s=pl.lit(1.0))]
    sides = _sides(DELAY, before, after)
    assert sides.unlike == "too few samples to separate the version from header lag"
    assert (sides.baseline, sides.note) == (collect(_runs(*before), DELAY, "mean"), "")


def test_a_verdict_states_which_conditions_were_adjusted_and_which_cannot_be() -> None:
    """The incomparable metric is shown as measured, and no verdict is based on it."""
    before, after = ([run.data for run in _runs(*frames, number=n)] for n, frames in enumerate((BEFORE, AFTER)))
    by_id = {item.metric_id: item for item in decide(before, _renamed(after)).judgements}
    assert by_id["delay_s"].note.startswith("at equal header lag, unadjusted +")
    assert by_id["delay_s"].change == pytest.approx(0.2 / 1.25, abs=0.05)
    assert by_id["plain_s"].note == ""
    night = [frame.with_columns(day_s=pl.col("day_s") + 8 * 3600.0) for frame in AFTER]
    late = decide(before, _renamed([run.data for run in _runs(*night, number=1)]))
    noon = next(item for item in late.judgements if item.metric_id == "noon_s")
    assert (noon.outcome, noon.statistic, noon.change) == (Outcome.INCONCLUSIVE, "mean", None)
    assert noon.note.startswith("the sides share 0 of ")
    plain = collect(_runs(*BEFORE), NOON, "mean"), collect(_runs(*night), NOON, "mean")
    assert [noon.baseline.per_run, noon.candidate.per_run] == [side.per_run for side in plain]


def test_the_note_on_the_adjustment_follows_that_of_the_metric() -> None:
    neither = DELAY.model_copy(update={"better": Better.NEITHER})
    described = CATALOGUE.model_copy(update={"metrics": [neither]})
    before, after = (
        [run.data for run in _runs(*frames, catalogue=described, number=n)] for n, frames in enumerate((BEFORE, AFTER))
    )
    (delay,) = decide(before, _renamed(after)).judgements
    assert delay.note.startswith(
        "neither direction is better: only the size of the change is judged; at equal header lag, unadjusted +"
    )


def _renamed(runs: Sequence[RunData]) -> list[RunData]:
    """The runs with another version."""
    for run in runs:
        run.manifest.subject = run.manifest.subject.model_copy(update={"version": "v2"})
    return list(runs)


@pytest.mark.parametrize(("metric", "statistic"), [(PLAIN, "mean"), (DELAY, "p50")])
def test_an_unadjusted_metric_is_shown_as_measured(metric: Metric, statistic: str) -> None:
    sides = _sides(metric, statistic=statistic)
    assert sides == Sides(collect(_runs(*BEFORE), metric, statistic), collect(_runs(*AFTER), metric, statistic))


def test_a_side_without_samples_is_not_adjusted() -> None:
    """Missing samples must be reported as such, not as a regression from zero."""
    empty = AFTER[0].clear()
    for before, after in ((BEFORE, [empty]), ([empty], AFTER), (BEFORE, [AFTER[0], empty])):
        sides = _sides(DELAY, before, after)
        assert sides == Sides(collect(_runs(*before), DELAY, "mean"), collect(_runs(*after), DELAY, "mean"))


def test_an_error_is_relative_to_any_mean_above_0() -> None:
    plain = SideEstimates([1.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3, 0.0, 100, "")
    side = adjusted._side(plain, DELAY, np.array([0.5, 2.0, 0.0]), np.array([0.1, 0.1, 0.1]))
    assert side.values == [0.5, 2.0, 0.0]
    assert side.log_standard_errors == pytest.approx([0.2, 0.05, 0.0])
