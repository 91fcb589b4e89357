"""The combined values of a side's runs, and the noise in an archive, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from chainmark.compare.estimates import collect, combined, mean_of
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.noise import Archive, build_of, difference_of_noise, differs_less, differs_more
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Distribution, Estimate, MetricSummary
from chainmark.core.manifest import Configuration, Status
from chainmark.core.metric import Kind, MetricGroup, Population, SharedFact, Weighting
from chainmark.stats.intervals import Spread, Working

from tests.unit.compare.metric_cases import metric, side, stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

LOG, DIFFERENCE = Working.LOG, Working.DIFFERENCE
EMPTY = Catalogue(system="x", title="x", populations=[], tables=[], metrics=[])


@pytest.mark.parametrize(
    ("kind", "values", "value"),
    [
        (Kind.POSITIVE, (2.0, 8.0), 4.0),
        (Kind.POSITIVE, (0.1, 0.4), 0.2),
        (Kind.POSITIVE, (0.0, 0.4), 0.2),  # 0 has no logarithm, so the arithmetic mean is used
        (Kind.DIFFERENCE, (2.0, 8.0), 5.0),
        (Kind.DIFFERENCE, (-1.0, 4.0), 1.5),
        (Kind.POSITIVE, (), None),
    ],
)
def test_the_value_of_a_side_depends_on_the_kind_of_its_metric(
    kind: Kind, values: Sequence[float], value: float | None
) -> None:
    assert combined(metric(kind), side(values)) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("kind", [Kind.POSITIVE, Kind.DIFFERENCE])
def test_equal_runs_have_their_exact_value(kind: Kind) -> None:
    """Otherwise rounding would make a side of equal runs differ from another one."""
    assert combined(metric(kind), side([0.1] * 3)) == 0.1


@pytest.mark.parametrize("kind", [Kind.COUNT, Kind.PROPORTION])
def test_rates_of_a_side_are_those_of_all_its_samples(kind: Kind) -> None:
    """The rate is not the mean of the runs' rates, because a short run counts less."""
    assert combined(metric(kind), side([0.5, 0.1], total=15.0, exposure=60)) == 0.25
    assert combined(metric(kind), side([0.5], total=0.0, exposure=0)) is None


def noise(runs: Sequence[SyntheticRun], working: Working, statistic: str = "mean") -> tuple[float, float, int] | None:
    spread = Archive((), manifest("v1", 1), runs).spread("x_s", statistic, working)
    return None if spread is None else (math.sqrt(spread.variance), spread.degrees_of_freedom, spread.runs)


def group(version: str, *values: float | None) -> list[SyntheticRun]:
    """Runs of one build. None is a run that cannot estimate the statistic."""
    runs = []
    for number, value in enumerate(values):
        estimate = Estimate(value=value, standard_error=None, method="stub")
        summary = MetricSummary(metric_id="x_s", distribution=None, estimates={"mean": estimate})
        described = manifest(version, 1, run_id=f"{version}-{number}")
        runs.append(SyntheticRun(described, EMPTY, {}, {"x_s": summary}))
    return runs


@pytest.mark.parametrize("first", ["v0", "v9"])
def test_a_build_without_a_logarithm_is_excluded_and_the_others_are_not(first: str) -> None:
    """The order has no effect. One run at 0 must not remove the noise of a whole archive."""
    runs = [*group(first, 0.0, 2.0), *group("v5", 1.0, math.e)]
    assert noise(runs, LOG) == pytest.approx((math.sqrt(0.5), 1.0, 2))
    # The variance of their differences is (2² + (e - 1)²) / 2, with one degree of freedom each.
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt((4.0 + (math.e - 1.0) ** 2) / 4.0), 2.0, 4))
    assert noise(group(first, -1.0, 2.0), LOG) is None


@pytest.mark.parametrize("first", ["v0", "v9"])
def test_a_build_with_one_value_shows_no_noise_and_the_others_do(first: str) -> None:
    runs = [*group(first, 7.0, None), *group("v5", 1.0, 3.0)]
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(2.0), 1.0, 2))
    assert noise(group(first, 7.0, None), DIFFERENCE) is None


def _two(version: str, *values: tuple[float | None, float | None]) -> list[SyntheticRun]:
    """Runs of one build with two metrics."""
    runs = group(version, *(first for first, _ in values))
    for run, (_, second) in zip(runs, values, strict=True):
        estimate = Estimate(value=second, standard_error=None, method="stub")
        run.summaries()["y_s"] = MetricSummary(metric_id="y_s", distribution=None, estimates={"mean": estimate})
    return runs


@pytest.mark.parametrize("first", ["v0", "v9"])
def test_metrics_deviate_together_as_they_did_in_the_runs_that_have_both(first: str) -> None:
    """Deviations are relative to each build's own mean. The joint deviation of two metrics is their cross product."""
    runs = [
        *_two(first, (1.0, 5.0), (math.e, 0.0), (math.e**2, 7.0), (9.0, None), (0.0, 5.0), (None, 5.0)),
        *_two("v5", (1.0, 2.0), (math.e, 4.0)),
        *_two("v6", (1.0, 2.0), (2.0, None)),  # a single remaining run has no deviation
        *_two("v7", (None, 2.0), (2.0, None)),
    ]
    columns = [("x_s", "mean", LOG), ("y_s", "mean", DIFFERENCE)]
    deviations = Archive((), manifest("v1", 1), runs).deviations(columns)
    assert deviations.shape == (3, 2)
    own, other = np.array([[-1.0, 1.0], [0.0, -4.0], [1.0, 3.0]]), np.array([[-0.5, -1.0], [0.5, 1.0]])
    assert deviations.T @ deviations == pytest.approx(own.T @ own + other.T @ other)
    small = _two(first, (0.25, -1.0), (0.25 * math.e, 1.0))
    alone = Archive((), manifest("v1", 1), small).deviations(columns)
    assert alone.T @ alone == pytest.approx(np.array([[0.5, 1.0], [1.0, 2.0]]))
    assert Archive((), manifest("v1", 1), []).deviations(columns).shape == (0, 2)


def test_two_versions_are_two_builds_even_if_their_binaries_are_unknown() -> None:
    """Otherwise a change of a release would count as noise. Runs with one version name are one build."""
    runs = [*group("v1", 1.0, 3.0), *group("v2", 101.0, 103.0), *group("v2-rerun", 102.0)]
    for run in runs:
        run.manifest.subject = run.manifest.subject.model_copy(update={"binary_sha256": None, "build": None})
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(2.0), 2.0, 4))
    runs[4].manifest.subject = runs[4].manifest.subject.model_copy(update={"release": "v2"})
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(4.0 / 3.0), 3.0, 5))


def test_a_statistic_or_metric_that_no_run_has_shows_no_noise() -> None:
    assert noise(group("v1", 1.0, 3.0), DIFFERENCE, "p99") is None
    assert Archive((), manifest("v1", 1), group("v1", 1.0, 3.0)).spread("y_s", "mean", DIFFERENCE) is None


def test_runs_with_another_configuration_are_not_repetitions() -> None:
    """Otherwise the difference between configurations would count as noise and hide a regression."""
    runs = [stub_run("v1", value, number) for number, value in enumerate((1.0, 1.2, 9.0, 9.2))]
    for run in runs[2:]:
        run.manifest.configuration = Configuration(effective={"config.toml": {"mempool.size": 7}})
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(0.02), 2.0, 4))


def test_runs_whose_figures_have_another_meaning_are_not_repetitions() -> None:
    """Otherwise the difference between two definitions of a metric would count as noise and hide a regression."""
    runs = group("v1", 1.0, 1.2, 9.0, 9.2)
    fact = SharedFact(id="clock", label="clock", explanation="", makes_incomparable=["x_s"])
    for run in runs[2:]:
        run.manifest = run.manifest.model_copy(update={"conditions": {"clock": "another", "weather": "bad"}})
    assert noise(runs, DIFFERENCE) == noise(group("v1", 1.0, 1.2, 9.0, 9.2), DIFFERENCE)
    for run in runs:
        run.catalogue = run.catalogue.model_copy(update={"conditions": [fact]})
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(0.02), 2.0, 4))


@pytest.mark.parametrize("changes", [{"status": Status.INVALID}, {"status": Status.FAILED}, {"profiles": ["cpu"]}])
def test_runs_that_are_not_judged_do_not_count_as_noise(changes: dict[str, object]) -> None:
    """Otherwise one broken run in the archive would be so much noise that no regression is found."""
    runs = group("v1", 1.0, 3.0, 101.0)
    runs[2].manifest = runs[2].manifest.model_copy(update=changes)
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(2.0), 1.0, 2))
    assert Archive((), manifest("v1", 1), runs).deviations([("x_s", "mean", DIFFERENCE)]).shape == (1, 1)


def test_the_compared_runs_are_not_noise_of_their_own() -> None:
    """A store contains them. Counted twice, their noise would look better known than it is."""
    runs = group("v1", 1.0, 3.0, 101.0)
    archive = Archive({"v1-2"}, manifest("v1", 1), runs)
    spread = archive.spread("x_s", "mean", DIFFERENCE)
    assert spread is not None
    assert [spread.variance, spread.degrees_of_freedom, spread.runs] == pytest.approx([2.0, 1.0, 2])


def distribution(n: int, mean: float) -> Distribution:
    return Distribution(n=n, n_null=0, mean=mean, sd=None, min=mean, max=mean, centiles=[])


def summary(
    value: float | None,
    *,
    n: int = 0,
    total: float | None = None,
    error: float | None = None,
    log_error: float | None = None,
    mean: float = 9.0,
) -> MetricSummary:
    """The summary of ``x_s`` in a run: an estimate of its mean, and its samples if there are any."""
    estimate = Estimate(value=value, standard_error=error, log_standard_error=log_error, method="stub")
    samples = distribution(n, mean) if n else None
    return MetricSummary(metric_id="x_s", distribution=samples, estimates={"mean": estimate}, total=total)


def holding(
    *summaries: MetricSummary | None, weighting: Weighting = Weighting.TIMES, known: bool = True
) -> list[LoadedRun]:
    """Runs with these summaries. None is a run without the metric."""
    blocks = Population(id="block", label="blocks", keys=["height"], average_over=["height"], weighting=weighting)
    tables = [MetricGroup(id="all", title="All")]
    metrics = [metric()] if known else []
    described = Catalogue(system="x", title="X", populations=[blocks], tables=tables, metrics=metrics)
    return [
        LoadedRun(
            SyntheticRun(
                manifest("v1", 1, run_id=f"r{number}"),
                described,
                {},
                {"x_s": metric_summary} if metric_summary else {"y_s": summary(1)},
            )
        )
        for number, metric_summary in enumerate(summaries)
    ]


def test_builds_whose_means_are_of_different_rules_are_different_ones() -> None:
    """A mean over samples and one over blocks are two figures: their difference is no noise."""
    runs = [holding(summary(1.0), weighting=weighting)[0] for weighting in (Weighting.TIMES, Weighting.KEYS)]
    again = holding(summary(2.0), weighting=Weighting.KEYS)[0]
    assert build_of(runs[0]) != build_of(runs[1]) == build_of(again)


def test_a_side_has_one_value_per_run_and_the_sums_of_all_runs() -> None:
    """A run whose statistic cannot be estimated still has samples, which count in the rate of the side."""
    runs = holding(
        summary(1.5, n=10, total=15.0, error=0.1, log_error=0.2),
        summary(None, n=4, total=2.0),
        None,
        summary(math.inf, n=1, total=1.0),
        summary(2.5, n=20),
    )
    estimates = collect(runs, metric(), "mean")
    assert estimates.per_run == [1.5, None, None, None, 2.5]
    assert (estimates.values, estimates.runs) == ([1.5, 2.5], 2)
    assert (estimates.standard_errors, estimates.log_standard_errors) == ([0.1, 0.0], [0.2, 0.0])
    assert (estimates.total, estimates.exposure, estimates.absence) == (18.0, 35, "")


@pytest.mark.parametrize(
    ("runs", "statistic", "absence"),
    [
        (holding(summary(None, n=3), summary(None, n=4)), "mean", "mean is not estimable from 7 samples"),
        (holding(summary(1.0, n=3)), "p99", "p99 is not estimable from 3 samples"),
        (holding(summary(None), None), "mean", "no samples"),
        ([], "mean", "no samples"),
        (holding(None, known=False), "mean", "not in the catalogue"),
        ([*holding(None, known=False), *holding(None)], "mean", "no samples"),
        ([*holding(None), *holding(None, known=False)], "mean", "no samples"),
    ],
)
def test_a_side_without_a_value_has_a_reason(runs: list[LoadedRun], statistic: str, absence: str) -> None:
    """A metric that a version does not have is distinguished from a metric whose data was lost."""
    assert collect(runs, metric(), statistic).absence == absence


@pytest.mark.parametrize(
    ("weighting", "metric_summary", "total"),
    [
        (Weighting.TIMES, summary(0.5, n=10, total=8.0), 8.0),
        (Weighting.KEYS, summary(0.5, n=10, total=8.0), 5.0),  # as many as 10 samples of 0.5 each
        (Weighting.KEYS, summary(None, n=10, total=8.0, mean=0.25), 2.5),
        (Weighting.KEYS, summary(0.5, n=10), 0.0),  # the metric is not a count
        (Weighting.KEYS, summary(0.5, total=8.0), 0.0),  # without samples it does not contribute to the rate
    ],
)
def test_a_mean_by_keys_counts_as_many_events_as_its_samples_would_hold(
    weighting: Weighting, metric_summary: MetricSummary, total: float
) -> None:
    assert collect(holding(metric_summary, weighting=weighting), metric(), "mean").total == total


def test_the_mean_of_a_run_is_estimated_or_that_of_its_samples() -> None:
    assert mean_of(summary(0.5, n=3)) == 0.5
    assert mean_of(summary(None, n=3)) == 9.0
    assert mean_of(summary(None)) is None
    assert mean_of(MetricSummary(metric_id="x_s", distribution=distribution(2, 4.0), estimates={})) == 4.0


@pytest.mark.parametrize(("freedom", "p_value", "expected"), [
    (2.0, 0.02, False), (2.0, 0.009, True), (3.0, 0.011, False), (4.0, 0.04, True), (4.0, 0.06, False),
])  # fmt: skip
def test_few_runs_exclude_an_archive_only_on_strong_evidence(freedom: float, p_value: float, expected: bool) -> None:
    """Otherwise two runs per side with five metrics would lose the archive by chance in one experiment of five."""
    archive = Spread(10.0, 10.0)
    own = Spread(float(stats.f.isf(p_value, freedom, 10.0)) * freedom, freedom)
    assert differs_more(own, archive) is expected


@pytest.mark.parametrize(("freedom", "p_value", "expected"), [
    (4.0, 0.004, True), (4.0, 0.006, False), (3.0, 0.001, False), (10.0, 0.004, True), (10.0, 0.5, False),
])  # fmt: skip
def test_quiet_runs_exclude_an_archive_only_on_strong_evidence(freedom: float, p_value: float, expected: bool) -> None:
    """Otherwise runs that agree by chance would make the verdict too certain."""
    archive = Spread(float(stats.f.isf(p_value, 10.0, freedom)) * 10.0, 10.0)
    own = Spread(freedom, freedom)
    assert differs_less(own, archive) is expected
    assert difference_of_noise(own, archive) == ("which differ less than the archive's" if expected else "")


def test_runs_with_one_value_keep_the_noise_of_the_archive() -> None:
    """Their equality may come from rounding."""
    assert not differs_less(Spread(0.0, 10.0), Spread(10.0, 10.0))
    assert difference_of_noise(Spread(0.0, 10.0), Spread(10.0, 10.0)) == ""
