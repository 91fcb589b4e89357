"""Judgements with known noise from a series of releases or an archive, and with assumed noise without them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from chainmark.compare.judge import Bench, accepted_band, contrast_of, judge
from chainmark.core.metric import Better, Kind
from chainmark.stats.intervals import Working
from chainmark.stats.level import Level
from chainmark.stats.sequential import Looks, lone_levels
from chainmark.stats.special import t_quantile

from tests.unit.compare.metric_cases import ALONE, archived, counts, metric, side, spread, stub_run

# A later look. Its error depends on the number of degrees of freedom that the archive adds.
LATER = Looks(((2, 2), (4, 4)), 8)
ARCHIVE = [stub_run("v1.0", value, number) for number, value in enumerate([1.0, 1.1, 0.9, 1.05])]


def _at(looks: Looks, archive: int) -> float:
    return lone_levels(replace(looks, archive=archive))[-1]


def test_an_interval_has_the_width_of_its_look() -> None:
    """The archive's degrees of freedom count only if the archive contributes to the interval."""
    positive, errors = metric(), metric(Kind.COUNT)
    three = side([1.0, 1.05, 1.1])
    with_archive = replace(archived(ARCHIVE), looks=LATER)
    assert len({_at(LATER, archive) for archive in (0, 1, 3)}) == 3
    assert contrast_of(positive, "mean", three, three, with_archive).level == _at(LATER, 3)
    alone = Bench(looks=LATER)
    assert contrast_of(positive, "mean", three, three, alone).level == _at(LATER, 0)
    assert contrast_of(positive, "mean", side([1.0]), side([1.1]), with_archive).level == _at(LATER, 0)
    assert contrast_of(errors, "mean", counts([900.0, 300.0]), counts([200.0, 900.0]), alone).level == _at(LATER, 0)
    pooled = contrast_of(errors, "mean", counts([500.0, 500.0]), counts([500.0, 500.0]), alone)
    assert pooled.noise.startswith("Poisson")
    assert pooled.level == _at(LATER, 0)


def test_the_assumed_noise_of_a_share_is_relative_to_the_rarer_outcome() -> None:
    """It is a tenth of the share of failures. A tenth of 95 % of successes would accept any loss."""
    share = metric(Kind.PROPORTION, Better.HIGHER)
    many = 10**9
    before, after = (side([value], total=value * many, exposure=many) for value in (0.95, 0.93))
    noted = contrast_of(share, "mean", before, after, ALONE)
    assert noted.noise.startswith("assumed noise, 10 % between runs")
    assert noted.contrast.standard_error == pytest.approx(math.sqrt(2.0) * 0.1 * 0.07)
    rare = [side([value], total=value * many, exposure=many) for value in (0.2, 0.1)]
    assert contrast_of(share, "mean", rare[0], rare[1], ALONE).contrast.standard_error == pytest.approx(
        math.sqrt(2.0) * 0.1 * 0.2
    )
    shift = contrast_of(metric(Kind.DIFFERENCE), "mean", side([0.95]), side([0.93]), ALONE)
    assert shift.contrast.standard_error == pytest.approx(math.sqrt(2.0) * 0.1 * 0.95)


def test_a_level_of_releases_replaces_the_baselines_run_with_its_own_error() -> None:
    """The level has no error within a run. The candidate has both errors."""
    level = Level(0.0, 0.0009, 5)
    baseline, candidate = replace(side([1.0], error=0.5), level=level), side([1.1], error=0.001)
    noted = contrast_of(metric(), "mean", baseline, candidate, archived(ARCHIVE))
    known = archived(ARCHIVE).spread(metric(), "mean", Working.LOG)
    assert known is not None
    assert noted.contrast.standard_error == pytest.approx(math.sqrt(level.variance + known.variance))
    assert noted.noise == "archive of 4 runs; the baseline is the level of 5 releases"
    alone = contrast_of(metric(), "mean", replace(baseline, level=Level(0.0, 0.0009, 1)), candidate, archived(ARCHIVE))
    assert alone.noise.endswith("the baseline is the level of 1 release")


def test_a_zero_error_within_runs_is_not_larger_than_a_zero_error_between_them() -> None:
    noted = contrast_of(metric(), "mean", side([1.0, 1.0]), side([1.1]), ALONE)
    assert (noted.noise, noted.contrast.standard_error) == ("noise between 2 + 1 runs", 0.0)


def test_the_accepted_change_of_a_difference_is_in_the_unit() -> None:
    """The accepted change of a ratio is a share, whatever the value."""
    shift = metric(Kind.DIFFERENCE, margin=0.1, floor=0.3)
    assert accepted_band(shift, 2.0, Working.DIFFERENCE) == (-0.3, 0.3)
    assert accepted_band(shift, -5.0, Working.DIFFERENCE) == (-0.5, 0.5)
    assert accepted_band(shift, 2.0, Working.RATIO) == (-0.15, 0.15)
    assert accepted_band(shift, 2.0, Working.LOG) == pytest.approx((math.log(0.85), math.log(1.15)))


@pytest.mark.parametrize("better", [Better.LOWER, Better.HIGHER])
@pytest.mark.parametrize("change", [0.5, 1.0, 2.0])
def test_a_margin_is_inside_the_noise_if_an_unchanged_release_cannot_be_shown_equal(
    better: Better, change: float
) -> None:
    """This holds whatever the release changed: half of the interval's width counts, and not its position."""
    some_metric = metric(better=better)
    assert judge(some_metric, "mean", side([1.0]), side([change]), ALONE).inside_noise
    quiet, other = side(spread(1.0, 0.01)), side(spread(change, 0.01))
    assert not judge(some_metric, "mean", quiet, other, ALONE).inside_noise
    # Just inside and just outside the noise. The margin is 10 % in the worse direction.
    margin = -math.log1p(-0.1) if better is Better.HIGHER else math.log1p(0.1)
    deviation = margin / (t_quantile(1.0 - ALONE.level(), 4.0) * math.sqrt(2.0 / 3.0))
    for factor, inside in ((0.99, False), (1.01, True)):
        runs = [side(spread(value, factor * deviation)) for value in (1.0, change)]
        assert judge(some_metric, "mean", runs[0], runs[1], ALONE).inside_noise is inside


def test_a_metric_without_a_margin_is_not_reported_as_inside_the_noise() -> None:
    """With 0 on both sides and no floor, there is no margin that could be too narrow."""
    some_metric = metric(Kind.DIFFERENCE, floor=0.0)
    assert not judge(some_metric, "mean", side([0.0, 0.0]), side([0.0, 0.0]), ALONE).inside_noise


def test_a_baseline_that_counted_a_single_event_counted_one() -> None:
    judgement = judge(metric(Kind.COUNT, floor=0.5), "mean", counts([1.0]), counts([2.0]), ALONE)
    assert judgement.note == "the floor is the margin, so the difference is compared instead of the ratio"
    none = judge(metric(Kind.COUNT, floor=0.5), "mean", counts([0.0]), counts([2.0]), ALONE)
    assert none.note == "the baseline has no events, so the difference is compared instead of the ratio"
