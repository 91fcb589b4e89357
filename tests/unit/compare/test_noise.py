"""What a side's runs say together, and what noise an archive shows, each by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from chainmark.compare.estimates import combined
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.noise import Archive
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import Configuration
from chainmark.core.metric import Kind
from chainmark.stats.intervals import Working

from tests.unit.compare.metric_cases import metric, side, stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

LOG, DIFFERENCE = Working.LOG, Working.DIFFERENCE
EMPTY = Catalogue(system="x", title="x", populations=[], tables=[], metrics=[])


@pytest.mark.parametrize(
    ("kind", "values", "value"),
    [
        (Kind.POSITIVE, (2.0, 8.0), 4.0),
        (Kind.POSITIVE, (0.1, 0.4), 0.2),
        (Kind.POSITIVE, (0.0, 0.4), 0.2),  # nothing has the logarithm of 0: their mean
        (Kind.DIFFERENCE, (2.0, 8.0), 5.0),
        (Kind.DIFFERENCE, (-1.0, 4.0), 1.5),
        (Kind.POSITIVE, (), None),
    ],
)
def test_the_value_of_a_side(kind: Kind, values: Sequence[float], value: float | None) -> None:
    assert combined(metric(kind), side(values)) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("kind", [Kind.POSITIVE, Kind.DIFFERENCE])
def test_equal_runs_have_their_value_to_the_last_digit(kind: Kind) -> None:
    """Else a side of equal runs would differ from another one by rounding."""
    assert combined(metric(kind), side([0.1] * 3)) == 0.1


@pytest.mark.parametrize("kind", [Kind.COUNT, Kind.PROPORTION])
def test_rates_of_a_side_are_those_of_all_its_samples(kind: Kind) -> None:
    """Not the mean of the runs' rates: a short run counts less."""
    assert combined(metric(kind), side([0.5, 0.1], total=15.0, exposure=60)) == 0.25
    assert combined(metric(kind), side([0.5], total=0.0, exposure=0)) is None


def noise(runs: Sequence[LoadedRun], working: Working, statistic: str = "mean") -> tuple[float, float, int] | None:
    found = Archive(runs, manifest("v1", 1)).noise("x_s", statistic, working)
    return None if found is None else (found.deviation, found.degrees_of_freedom, found.runs)


def group(version: str, *values: float | None) -> list[LoadedRun]:
    """Runs of one build; None stands for a run that cannot estimate the statistic."""
    runs = []
    for number, value in enumerate(values):
        estimate = Estimate(value=value, standard_error=None, method="stub")
        summary = MetricSummary(metric_id="x_s", distribution=None, estimates={"mean": estimate})
        described = manifest(version, 1, run_id=f"{version}-{number}")
        runs.append(LoadedRun(SyntheticRun(described, EMPTY, {}, {"x_s": summary})))
    return runs


@pytest.mark.parametrize("first", ["v0", "v9"])
def test_a_build_that_has_no_logarithm_is_left_out_and_the_others_are_not(first: str) -> None:
    """Whichever comes first: one run at 0 must not take the noise of a whole archive away."""
    runs = [*group(first, 0.0, 2.0), *group("v5", 1.0, math.e)]
    assert noise(runs, LOG) == pytest.approx((math.sqrt(0.5), 1.0, 2))
    # Their differences are (2² + (e - 1)²) / 2, by one degree of freedom each.
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt((4.0 + (math.e - 1.0) ** 2) / 4.0), 2.0, 4))
    assert noise(group(first, -1.0, 2.0), LOG) is None


@pytest.mark.parametrize("first", ["v0", "v9"])
def test_a_build_with_one_value_says_nothing_and_the_others_do(first: str) -> None:
    runs = [*group(first, 7.0, None), *group("v5", 1.0, 3.0)]
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(2.0), 1.0, 2))
    assert noise(group(first, 7.0, None), DIFFERENCE) is None


def test_a_statistic_or_metric_that_no_run_has_shows_no_noise() -> None:
    assert noise(group("v1", 1.0, 3.0), DIFFERENCE, "p99") is None
    assert Archive(group("v1", 1.0, 3.0), manifest("v1", 1)).noise("y_s", "mean", DIFFERENCE) is None


def test_runs_under_another_configuration_are_no_repetitions() -> None:
    """Their difference is that of the configurations, and would hide a regression as noise."""
    runs = [stub_run("v1", value, number) for number, value in enumerate((1.0, 1.2, 9.0, 9.2))]
    for run in runs[2:]:
        run.manifest.configuration = Configuration(effective={"config.toml": {"mempool.size": 7}})
    assert noise(runs, DIFFERENCE) == pytest.approx((math.sqrt(0.02), 2.0, 4))
