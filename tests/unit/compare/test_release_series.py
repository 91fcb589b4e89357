"""A series of releases, computed by hand: its runs, the steps and re-runs that show noise, and the level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.judge import Bench
from chainmark.compare.noise import Archive
from chainmark.compare.releases import LEAST_SETUP, Releases
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.epoch import Epoch
from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.core.metric import Kind, Metric, MetricGroup, Population
from chainmark.stats.intervals import Working
from chainmark.stats.level import level_of
from chainmark.stats.moderated import STEP_FREEDOM, RepeatedMetric, moderated, prior_of, step_variance

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

LOG, DIFFERENCE = Working.LOG, Working.DIFFERENCE
METRICS = [
    *(metric(id=f"m{number}_s", order=number) for number in range(4)),
    metric(Kind.DIFFERENCE, id="shift_s", order=8),
    metric(Kind.COUNT, id="errors", order=9),
]
CATALOGUE = Catalogue(
    system="cometbft",
    title="CometBFT",
    populations=[Population(id="block", label="blocks", keys=["height", "host"], average_over=["host"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=METRICS,
)
# The values of each metric, run by run.
Values = Mapping[str, Sequence[float | None]]


def _summary(metric_id: str, value: float | None) -> MetricSummary:
    estimates = {} if value is None else {"mean": Estimate(value=value, standard_error=None, method="stub")}
    return MetricSummary(metric_id=metric_id, distribution=None, estimates=estimates)


def _run(
    version: str, month: int, values: Mapping[str, float | None], catalogue: Catalogue = CATALOGUE
) -> SyntheticRun:
    described = manifest(version, 1, run_id=f"run-{month:02}", experiment=None)
    described.started_at = f"2020-{month:02}-01T00:00:00Z"
    return SyntheticRun(described, catalogue, {}, {name: _summary(name, value) for name, value in values.items()})


# v1.2 was run twice in a row, and v1.5 again after another release.
VERSIONS = ["v1.1", "v1.2", "v1.2", "v1.3", "v1.4", "v1.5", "v1.6", "v1.5", "v1.7", "v1.8", "v1.9", "v1.10"]
STEPS_WITHOUT = {(1, 2)}  # two runs of one build are not a step
BUILDS = len(set(VERSIONS))


def _values(seed: int = 1, noise: float = 0.02) -> dict[str, list[float | None]]:
    rng = np.random.default_rng(seed)
    drawn = {metric.id: list(np.exp(rng.normal(0.0, noise, len(VERSIONS)))) for metric in METRICS}
    drawn["shift_s"] = [value - 1.0 for value in drawn["shift_s"]]
    return {name: [float(value) for value in series_values] for name, series_values in drawn.items()}


def _series(values: Values, catalogue: Catalogue = CATALOGUE) -> list[SyntheticRun]:
    return [
        _run(version, place + 1, {name: series_values[place] for name, series_values in values.items()}, catalogue)
        for place, version in enumerate(VERSIONS)
    ]


def _like() -> LoadedRun:
    return LoadedRun(_run("v1.99", 12, {metric.id: 1.0 for metric in METRICS}))


def _releases(runs: Sequence[SyntheticRun], epochs: Sequence[Epoch] = ()) -> Releases:
    like = _like()
    like.manifest.run_id = "compared"
    return Releases([like], runs, epochs)


def _repeated(series_values: Sequence[float | None], without: set[tuple[int, int]] = STEPS_WITHOUT) -> RepeatedMetric:
    """The expected noise on any scale: both pairs of re-runs, and all steps between neighbouring builds."""
    values = [0.0 if value is None else value for value in series_values]
    steps = [values[b] - values[a] for a, b in pairwise(range(len(values))) if (a, b) not in without]
    squares = (values[1] - values[2]) ** 2 / 2.0 + (values[5] - values[7]) ** 2 / 2.0
    return RepeatedMetric(squares, 2.0, step_variance(steps), STEP_FREEDOM * len(steps))


def _logs(values: Sequence[float | None]) -> list[float]:
    return [math.log(value) for value in values if value is not None]


def _expected(values: Values) -> dict[str, RepeatedMetric]:
    """The expected noise by metric: on the scale of differences for ``shift_s``, otherwise on the logarithmic scale."""
    return {name: _repeated(values[name] if name == "shift_s" else _logs(values[name])) for name in values}


def test_the_spread_of_a_run_uses_re_runs_and_steps_moderated_over_all_metrics() -> None:
    """A count has its own error, so its noise is not reported and does not affect the prior."""
    values = _values()
    releases = _releases(_series(values))
    # The prior is fitted to plain differences, with one variance per metric.
    witnesses = [_repeated(values[metric.id]) for metric in METRICS if metric.kind is not Kind.COUNT]
    for entry in METRICS:
        working = DIFFERENCE if entry.kind is Kind.DIFFERENCE else LOG
        spread = releases.spread(entry.id, "mean", working)
        if entry.kind is Kind.COUNT:
            assert spread is None
            continue
        variance, freedom = moderated(_expected(values)[entry.id], prior_of(witnesses))
        assert spread is not None
        assert (spread.variance, spread.degrees_of_freedom) == pytest.approx((variance, freedom))
        source = f"history of {BUILDS} builds (2 re-runs, 10 release-to-release changes)"
        assert (spread.runs, spread.source) == (12, source)
    assert releases.spread("shift_s", "mean", LOG) is None
    assert releases.spread("m0_s", "p99", LOG) is None
    assert releases.spread("m0_s", "mean", DIFFERENCE) is not None


def test_a_metric_with_a_value_of_0_or_below_has_no_ratio() -> None:
    values = _values()
    values["m0_s"][3] = 0.0
    releases = _releases(_series(values))
    assert releases.spread("m0_s", "mean", LOG) is None
    assert releases.spread("m0_s", "mean", DIFFERENCE) is not None


def test_a_run_without_a_value_is_skipped() -> None:
    values = _values()
    values["m0_s"][3] = None
    spread = _releases(_series(values)).spread("m0_s", "mean", LOG)
    assert spread is not None
    assert spread.source == f"history of {BUILDS} builds (2 re-runs, 9 release-to-release changes)"


def test_a_metric_that_never_changes_shows_no_noise() -> None:
    """An interval of zero width would call any change worse."""
    still: Values = {**_values(), "m0_s": [1.0] * len(VERSIONS)}
    assert _releases(_series(still)).spread("m0_s", "mean", LOG) is None


# --- comparable runs -------------------------------------------------------------------------------------------------


def _other_system(run: SyntheticRun) -> None:
    run.manifest.subject = run.manifest.subject.model_copy(update={"system": "other"})


def _failed(run: SyntheticRun) -> None:
    run.manifest.status = Status.INVALID
    run.manifest.gates = [Gate(id="x", label="x", status=GateStatus.FAIL, measured="1", limit="2")]


def _other_machine(run: SyntheticRun) -> None:
    run.manifest.host = run.manifest.host.model_copy(update={"cores": 64})


def _other_workload(run: SyntheticRun) -> None:
    run.manifest.workload = {**run.manifest.workload, "load.rate_tx_per_s": 1}


def _other_rules(run: SyntheticRun) -> None:
    population = Population(id="block", label="blocks", keys=["height", "host"], average_over=["height"])
    run.catalogue = run.catalogue.model_copy(update={"populations": [population]})


@pytest.mark.parametrize("change", [_other_system, _failed, _other_machine, _other_workload, _other_rules])
def test_runs_that_are_not_comparable_are_not_in_the_series(change: Callable[[SyntheticRun], None]) -> None:
    """Otherwise the noise of another machine would decide what is a regression on this one."""
    runs = _series(_values())
    for run in runs[:2]:
        change(run)
    releases = _releases(runs)
    assert [run.run_id for run in releases.runs] == [run.manifest.run_id for run in runs[2:]]
    assert releases.builds == BUILDS - 1


def test_rules_of_a_population_that_only_one_run_has_do_not_differ() -> None:
    runs = _series(_values())
    runs[0].catalogue = runs[0].catalogue.model_copy(update={"populations": []})
    assert len(_releases(runs).runs) == len(runs)


def test_a_series_is_in_chronological_order_with_each_run_once() -> None:
    runs = _series(_values())
    releases = _releases([*runs[::-1], runs[3]])
    assert [run.run_id for run in releases.runs] == [f"run-{month:02}" for month in range(1, 13)]


def test_a_published_run_is_one_run_whatever_its_name() -> None:
    """Otherwise a report that was imported twice would look like a re-run without any noise."""
    runs = _series(_values())
    for number, run in enumerate(runs):
        run.manifest.identity = f"report {number}"
    again = _series(_values())[4]
    again.manifest.identity, again.manifest.run_id = "report 4", "another name"
    assert len(_releases([*runs, again]).runs) == len(runs)
    compared = Releases([LoadedRun(again)], runs)
    assert [run.manifest.identity for run in compared.runs] == [f"report {n}" for n in range(12) if n != 4]
    assert len(Releases([LoadedRun(again)], runs, leave_out=False).runs) == len(runs)


def test_eight_builds_show_the_noise_and_seven_do_not() -> None:
    runs = [run for run in _series(_values()) if run.manifest.subject.version in {*VERSIONS[:9], "v1.8"}]
    assert {run.manifest.subject.version for run in runs} == {f"v1.{number}" for number in range(1, 9)}
    assert _releases(runs).are_enough
    assert not _releases(runs[:-1]).are_enough
    assert _releases(runs[:-1]).spread("m0_s", "mean", LOG) is None


# --- changes of the set-up -------------------------------------------------------------------------------------------


def _epoch(month: int, *metrics: str, system: str = "cometbft") -> Epoch:
    return Epoch(system=system, since=f"2020-{month:02}-01T00:00:00Z", text="new disks", metrics=metrics)


def test_no_step_or_re_run_spans_a_noted_change_of_its_metric() -> None:
    """v1.5 was run before and after the change, so these two runs are not re-runs."""
    runs = _series(_values())
    releases = _releases(runs, [_epoch(7, "m0_s")])
    spreads = {name: releases.spread(name, "mean", LOG) for name in ("m0_s", "m1_s")}
    sources = {name: spread.source for name, spread in spreads.items() if spread is not None}
    assert sources["m0_s"] == f"history of {BUILDS} builds (1 re-run, 9 release-to-release changes)"
    assert sources["m1_s"] == f"history of {BUILDS} builds (2 re-runs, 10 release-to-release changes)"
    elsewhere = _releases(runs, [_epoch(7, system="other")])
    assert elsewhere.spread("m0_s", "mean", LOG) == _releases(runs).spread("m0_s", "mean", LOG)


def test_a_metric_with_too_few_remaining_steps_shows_no_noise() -> None:
    """Seven steps are enough. The change of the set-up removes one of them from one metric."""
    runs = [run for run in _series(_values()) if run.manifest.subject.version in {*VERSIONS[:9], "v1.8"}][:10]
    runs = [run for place, run in enumerate(runs) if place != 7]
    assert len(runs) == 9
    releases = _releases(runs, [_epoch(5, "m0_s")])
    assert releases.are_enough
    assert releases.spread("m0_s", "mean", LOG) is None
    left = releases.spread("m1_s", "mean", LOG)
    assert left is not None
    assert left.source == "history of 8 builds (1 re-run, 7 release-to-release changes)"


def _apart(values: Values, by: float, metric_id: str = "m0_s") -> dict[str, list[float | None]]:
    """The values with the second run of v1.5 moved by ``by`` in one metric."""
    values_of_metric = [*values[metric_id]]
    first = values_of_metric[5] or 0.0
    values_of_metric[7] = first + by if metric_id == "shift_s" else first * math.exp(by)
    return {**{name: [*column] for name, column in values.items()}, metric_id: values_of_metric}


def test_two_distant_runs_of_one_build_show_a_change_of_the_set_up() -> None:
    """The change is reported once, as a ratio, with the runs before and after it. It is not noise."""
    releases = _releases(_series(_apart(_values(noise=0.01), -0.4)))
    (change,) = releases.setup_changes
    assert (change.metric_id, change.working) == ("m0_s", LOG)
    assert (change.before, change.after, change.started) == ("v1.5", "v1.5", "2020-08-01T00:00:00Z")
    assert change.change == pytest.approx(-0.4)
    spread = releases.spread("m0_s", "mean", LOG)
    assert spread is not None
    assert spread.source == f"history of {BUILDS} builds (1 re-run, 10 release-to-release changes)"
    assert math.sqrt(spread.variance) < 0.03


def test_a_metric_without_a_ratio_is_reported_by_its_difference() -> None:
    (change,) = _releases(_series(_apart(_values(noise=0.01), 0.4, "shift_s"))).setup_changes
    assert (change.metric_id, change.working) == ("shift_s", DIFFERENCE)
    assert change.change == pytest.approx(0.4)


@pytest.mark.parametrize(("by", "changes"), [(0.9 * LEAST_SETUP, 0), (1.1 * LEAST_SETUP, 1)])
def test_the_effect_of_re_running_months_later_is_not_a_change_of_the_set_up(by: float, changes: int) -> None:
    """This holds however quiet the other runs of the series are."""
    for sign in (1.0, -1.0):
        values = _apart(_values(noise=0.001), sign * by)
        values["m0_s"] = [7.0 * (value or 0.0) for value in values["m0_s"]]
        releases = _releases(_series(values))
        by_metric = [change for change in releases.setup_changes if change.working is LOG]
        assert len(by_metric) == changes
        noise = releases.spread("m0_s", "mean", LOG)
        assert noise is not None
        assert f"{2 - changes} re-run" in noise.source


def test_a_change_as_large_as_steps_between_releases_is_not_a_change_of_the_set_up() -> None:
    """The limit is six standard deviations of a difference, which are a tenth each in this series."""
    assert _releases(_series(_apart(_values(noise=0.1), 0.4))).setup_changes == []


def test_a_noted_change_is_not_reported_again() -> None:
    runs = _series(_apart(_values(noise=0.01), -0.4))
    assert _releases(runs, [_epoch(7)]).setup_changes == []
    assert len(_releases(runs, [_epoch(9)]).setup_changes) == 1


def test_the_runs_after_a_change_are_compared_with_each_other() -> None:
    """Three runs of one build, the last two on new machines: the last two are re-runs."""
    values = _apart(_values(noise=0.01), -0.4)
    runs = _series(values)
    late = _run("v1.5", 9, {name: column[7] for name, column in values.items()})
    late.manifest.run_id = "again"
    spread = _releases([*runs, late]).spread("m0_s", "mean", LOG)
    assert spread is not None
    assert "2 re-runs" in spread.source
    assert len(_releases([*runs, late]).setup_changes) == 1


def test_a_noted_change_between_the_compared_runs_is_found_for_its_metrics() -> None:
    runs = [LoadedRun(run) for run in _series(_values())]
    epoch = _epoch(7, "m0_s")
    releases = _releases(_series(_values()), [_epoch(2, "m1_s"), epoch])
    assert releases.noted_between("m0_s", runs[0], runs[11]) == epoch
    assert releases.noted_between("m0_s", runs[7], runs[11]) is None
    assert releases.noted_between("m2_s", runs[0], runs[11]) is None


# --- the level ---------------------------------------------------------------------------------------------------


def _baseline(month: int, value: float) -> LoadedRun:
    run = _run("v1.98", month, {metric.id: value for metric in METRICS})
    run.manifest.run_id = "run-00"  # sorts before all other runs of the same time
    return LoadedRun(run)


def test_the_level_is_that_of_the_baseline_and_earlier_releases() -> None:
    values = _values()
    releases = _releases(_series(values))
    spread = releases.spread("m0_s", "mean", LOG)
    assert spread is not None
    series = [*_logs(values["m0_s"])[:8], math.log(1.01)]
    expected = level_of(series, spread.variance, _expected(values)["m0_s"].bound)
    assert releases.level(("m0_s", "mean", LOG), _baseline(9, 1.01)) == expected
    assert expected.runs > 5


def test_a_level_starts_after_a_change_of_the_set_up() -> None:
    values = _values()
    releases = _releases(_series(values), [_epoch(4, "m0_s")])
    level = releases.level(("m0_s", "mean", LOG), _baseline(9, 1.01))
    assert level is not None
    assert level.runs <= 6
    spread = releases.spread("m0_s", "mean", LOG)
    assert spread is not None
    bound = _repeated(_logs(values["m0_s"]), {*STEPS_WITHOUT, (2, 3)}).bound
    assert level == level_of([*_logs(values["m0_s"])[3:8], math.log(1.01)], spread.variance, bound)


def test_a_metric_missing_from_the_series_or_the_baseline_has_no_level() -> None:
    releases = _releases(_series(_values()))
    assert releases.level(("errors", "mean", LOG), _baseline(9, 1.0)) is None
    silent = _run("v1.98", 9, {"m1_s": 1.0})
    assert releases.level(("m0_s", "mean", LOG), LoadedRun(silent)) is None
    assert releases.level(("m0_s", "mean", LOG), _baseline(9, 0.0)) is None
    shift = releases.level(("shift_s", "mean", DIFFERENCE), _baseline(9, 0.0))
    assert shift is not None, "a difference of 0 is a valid value"


def test_the_metrics_are_those_of_the_printed_run_if_there_is_one() -> None:
    """A report prints means, so a current run that is judged by its median is compared with the printed mean."""
    by_median = [_by_median(metric) for metric in METRICS]
    logs = _run(
        "v1.99", 12, {metric.id: 1.0 for metric in METRICS}, CATALOGUE.model_copy(update={"metrics": by_median})
    )
    report = _run("v1.98", 12, {metric.id: 1.0 for metric in METRICS})
    report.manifest.printed = True
    report.manifest.run_id = "report"
    runs = _series(_values())
    assert Releases([LoadedRun(logs)], runs).spread("m0_s", "mean", LOG) is None
    assert Releases([LoadedRun(logs), LoadedRun(report)], runs).spread("m0_s", "mean", LOG) is not None


def _by_median(metric: Metric) -> Metric:
    """The metric, judged by its median."""
    return metric.model_copy(update={"statistics": ["p50"], "judged_by": ["p50"]})


def test_a_series_of_releases_takes_precedence_over_an_archive_if_it_shows_the_noise() -> None:
    runs = _series(_values())
    archive = Archive((), runs[0].manifest, runs)
    bench = Bench(archive, releases=_releases(runs))
    spread = bench.spread(METRICS[0], "mean", LOG)
    assert spread is not None
    assert spread == _releases(runs).spread("m0_s", "mean", LOG)
    errors = next(metric for metric in METRICS if metric.kind is Kind.COUNT)
    assert bench.spread(errors, "mean", DIFFERENCE) == archive.spread("errors", "mean", DIFFERENCE)
    assert archive.spread("errors", "mean", DIFFERENCE) is not None
    assert bench.spread(METRICS[0], "p99", LOG) is None


def test_three_runs_of_a_build_are_two_re_runs_around_their_mean() -> None:
    values = {name: [*metric_values, metric_values[5]] for name, metric_values in _values().items()}
    values["m0_s"][12] = (values["m0_s"][5] or 0.0) * 1.03
    late = _run("v1.5", 12, {name: column[12] for name, column in values.items()})
    late.manifest.run_id = "third"
    releases = _releases([*_series(values), late])
    filled = {
        metric.id: [value or 0.0 for value in values[metric.id]] for metric in METRICS if metric.kind is not Kind.COUNT
    }
    seen = {name: _repeated(column) for name, column in filled.items()}
    seen = {
        name: RepeatedMetric(
            (column[1] - column[2]) ** 2 / 2.0 + _squares(column, 5, 7, 12), 3.0, repeated.bound, repeated.bound_freedom
        )
        for (name, column), repeated in zip(filled.items(), seen.values(), strict=True)
    }
    spread = releases.spread("m0_s", "mean", DIFFERENCE)
    assert spread is not None
    variance, freedom = moderated(seen["m0_s"], prior_of(list(seen.values())))
    assert (spread.variance, spread.degrees_of_freedom) == pytest.approx((variance, freedom))


def _squares(column: Sequence[float], *places: int) -> float:
    chosen = [column[place] for place in places]
    return sum((value - sum(chosen) / len(chosen)) ** 2 for value in chosen)


@pytest.mark.parametrize(("factor", "changes"), [(0.97, 0), (1.03, 1)])
def test_six_deviations_of_a_difference_are_a_change_of_the_set_up(factor: float, changes: int) -> None:
    """The steps to and from the outlier are the largest in each direction, so the median step is unchanged."""
    bound = _repeated(_apart(_values(), 0.4, "shift_s")["shift_s"]).bound
    apart = _apart(_values(), factor * 6.0 * math.sqrt(2.0 * bound), "shift_s")
    assert _repeated(apart["shift_s"]).bound == bound
    assert len(_releases(_series(apart)).setup_changes) == changes


def test_a_metric_that_changed_only_once_has_no_noise_to_compare_with() -> None:
    still: Values = {**_values(), "m0_s": [1.0] * len(VERSIONS)}
    assert _releases(_series(_apart(still, 0.4))).setup_changes == []
