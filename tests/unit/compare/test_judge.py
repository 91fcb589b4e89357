"""Judgement of one metric: every outcome computed by hand, direction, scales, and edge cases of every kind."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.compare.estimates import SideEstimates
from chainmark.compare.judge import Bench, judge
from chainmark.core.comparison import Judgement, Outcome, Scale
from chainmark.core.metric import Better, Kind, Metric

from tests.unit.compare.metric_cases import ALONE, ONE_LOOK, archived, counts, metric, side, spread, stub_run


def judged(entry: Metric, left: SideEstimates, right: SideEstimates, bench: Bench = ALONE) -> Judgement:
    return judge(entry, "mean", left, right, bench)


# With 3 + 3 runs of deviation s: SE = s * sqrt(2/3), 4 degrees of freedom, half-width 2.165 SE.
@pytest.mark.parametrize(
    ("ratio", "deviation", "outcome", "trend"),
    [
        (1.20, 0.02, Outcome.WORSE, False),
        (0.95, 0.02, Outcome.BETTER, False),
        (1.00, 0.02, Outcome.EQUAL, False),
        (1.05, 0.02, Outcome.EQUAL, True),
        (1.10, 0.02, Outcome.INCONCLUSIVE, False),
        (1.00, 0.06, Outcome.INCONCLUSIVE, False),
    ],
)
def test_each_outcome_by_hand(ratio: float, deviation: float, outcome: Outcome, *, trend: bool) -> None:
    judgement = judged(metric(), side(spread(1.0, deviation)), side(spread(ratio, deviation)))
    half = stats.t.isf(ONE_LOOK, 4.0) * deviation * math.sqrt(2.0 / 3.0)
    assert (judgement.outcome, judgement.trend) == (outcome, trend)
    assert judgement.change == pytest.approx(ratio - 1.0)
    assert judgement.low == pytest.approx(math.expm1(math.log(ratio) - half), rel=1e-5)
    assert judgement.high == pytest.approx(math.expm1(math.log(ratio) + half), rel=1e-5)
    assert judgement.degrees_of_freedom == pytest.approx(4.0)
    assert judgement.noise == "between 3 + 3 runs"
    assert (judgement.margin_low, judgement.margin_high) == (-0.10, 0.10)


@given(st.floats(0.5, 2.0), st.floats(0.001, 0.2))
def test_the_direction_is_right_for_both_kinds_of_metric(ratio: float, deviation: float) -> None:
    left, right = side(spread(1.0, deviation)), side(spread(ratio, deviation))
    lower = judged(metric(better=Better.LOWER), left, right)
    higher = judged(metric(better=Better.HIGHER), left, right)
    assert lower.change == higher.change
    if lower.outcome is Outcome.WORSE:
        assert ratio > 1.1
        assert higher.outcome is Outcome.BETTER
    if higher.outcome is Outcome.WORSE:
        assert ratio < 0.9
        assert lower.outcome is Outcome.BETTER
    assert lower.detectable is not None
    assert lower.detectable > 0.0
    assert higher.detectable is not None
    assert higher.detectable < 0.0


def test_throughput_that_falls_is_worse_and_latency_that_falls_is_better() -> None:
    left, right = side(spread(200.0, 0.01)), side(spread(150.0, 0.01))
    assert judged(metric(better=Better.HIGHER), left, right).outcome is Outcome.WORSE
    assert judged(metric(better=Better.LOWER), left, right).outcome is Outcome.BETTER
    assert judged(metric(better=Better.HIGHER), right, left).outcome is Outcome.BETTER
    assert judged(metric(better=Better.LOWER), right, left).outcome is Outcome.WORSE


@given(st.floats(1e-6, 1e6), st.floats(0.7, 1.4))
def test_the_unit_of_a_positive_metric_does_not_matter(scale: float, ratio: float) -> None:
    judgement = judged(metric(), side(spread(1.0, 0.03)), side(spread(ratio, 0.02)))
    other = judged(metric(), side(spread(scale, 0.03)), side(spread(scale * ratio, 0.02)))
    assert other.outcome is judgement.outcome
    for name in ("change", "low", "high", "p_worse", "p_different", "detectable"):
        assert getattr(other, name) == pytest.approx(getattr(judgement, name), rel=1e-6, abs=1e-9)


def test_a_floor_widens_the_margin() -> None:
    left, right = side(spread(0.00625, 0.02)), side(spread(0.00814, 0.0001))
    assert judged(metric(), left, right).outcome is Outcome.WORSE
    judgement = judged(metric(floor=0.002), left, right)
    assert judgement.margin_high == pytest.approx(0.32, rel=1e-3)
    assert judgement.outcome is not Outcome.WORSE


def test_a_gain_below_the_floor_is_equal() -> None:
    left, right = side(spread(1.0, 0.001)), side(spread(0.97, 0.001))
    assert judged(metric(floor=0.02), left, right).outcome is Outcome.BETTER
    assert judged(metric(floor=0.05), left, right).outcome is Outcome.EQUAL


@pytest.mark.filterwarnings("error")
def test_runs_without_any_spread_have_an_interval_of_zero_width() -> None:
    same = judged(metric(better=Better.HIGHER), side([200.0] * 3), side([200.0] * 3))
    assert (same.change, same.low, same.high, same.outcome) == (0.0, 0.0, 0.0, Outcome.EQUAL)
    fallen = judged(metric(better=Better.HIGHER), side([200.0] * 3), side([100.0] * 3))
    assert (fallen.outcome, fallen.p_worse) == (Outcome.WORSE, 0.0)


def test_a_positive_metric_with_a_zero_is_compared_by_its_difference() -> None:
    judgement = judged(metric(floor=0.5), side([0.0, 1.0, 1.0]), side([1.0, 1.0, 1.0]))
    assert judgement.scale is Scale.ABSOLUTE
    assert "0 or below" in judgement.note


def test_a_difference_is_judged_in_its_unit() -> None:
    entry = metric(Kind.DIFFERENCE, floor=0.5)
    judgement = judged(entry, side([0.0, 0.1, -0.1]), side([0.0, 0.1, -0.1]))
    assert (judgement.scale, judgement.margin_high, judgement.outcome) == (Scale.ABSOLUTE, 0.5, Outcome.EQUAL)
    assert judged(entry, side([0.0, 0.1, -0.1]), side([2.0, 2.1, 1.9])).outcome is Outcome.WORSE


def test_no_data_on_either_side_is_no_data() -> None:
    for left, right in ((side([None]), side([1.0])), (side([1.0]), side([None]))):
        judgement = judged(metric(), left, right)
        assert judgement.outcome is Outcome.NO_DATA
        assert "no samples" in judgement.note
        assert judgement.change is None


def test_a_statistic_that_some_runs_cannot_estimate_is_judged_by_the_others() -> None:
    judgement = judged(metric(), side([1.0, 1.01, None]), side([1.0, 1.01, 1.0]))
    assert judgement.noise == "between 2 + 3 runs"
    assert "estimable in 2 of 3 runs of the baseline" in judgement.note


def test_a_metric_without_a_direction_is_equal_inside_the_band_and_never_worse() -> None:
    entry = metric(better=Better.NEITHER)
    assert judged(entry, side(spread(1.0, 0.01)), side(spread(1.0, 0.01))).outcome is Outcome.EQUAL
    for ratio in (0.5, 2.0):
        judgement = judged(entry, side(spread(1.0, 0.01)), side(spread(ratio, 0.01)))
        assert judgement.outcome is Outcome.INCONCLUSIVE
        assert (judgement.p_worse, judgement.detectable) == (None, None)


def test_single_runs_without_an_archive_assume_noise() -> None:
    judgement = judged(metric(), side([1.0], 0.001), side([1.01], 0.001))
    assert judgement.noise == "assumed noise, 10 % between runs"
    half = stats.norm.isf(ONE_LOOK) * 0.10 * math.sqrt(2.0)
    assert judgement.low == pytest.approx(math.expm1(math.log(1.01) - half), rel=1e-6)
    assert judgement.degrees_of_freedom is None
    noisy = judged(metric(default_noise=0.18), side([1.0]), side([1.0]))
    assert noisy.noise == "assumed noise, 18 % between runs"
    wide = judged(metric(), side([1.0], 0.2), side([1.0], 0.2))
    assert wide.noise == "within-run error, which is larger than the assumed noise, 10 % between runs"
    assert wide.high == pytest.approx(math.expm1(stats.norm.isf(ONE_LOOK) * 0.2 * math.sqrt(2.0)), rel=1e-6)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("better", list(Better))
@pytest.mark.filterwarnings("error")
def test_every_kind_gives_only_finite_numbers(kind: Kind, better: Better) -> None:
    for left in ([0.0], [0.0, 0.0], [1.0, 1.0], [0.2, 0.7, 0.0]):
        for right in ([0.0], [0.0, 0.0], [1.0, 1.0], [0.2, 0.7, 0.0], [1.0, 0.9]):
            sides = [side(values, 0.01, total=100 * float(np.mean(values))) for values in (left, right)]
            for floor in (0.0, 0.1):
                judgement = judged(metric(kind, better, floor=floor), sides[0], sides[1])
                numbers = [value for value in judgement.model_dump().values() if isinstance(value, float)]
                assert all(math.isfinite(value) for value in numbers), judgement


def test_counts_use_the_wider_of_poisson_and_between_runs() -> None:
    entry = metric(Kind.COUNT)
    calm = judged(entry, counts([100, 100, 100]), counts([101, 100, 99]))
    assert calm.noise == "Poisson on the pooled totals, wider than between 3 + 3 runs (Welch)"
    wild = judged(entry, counts([10, 100, 190]), counts([300, 20, 100]))
    assert wild.noise == "between 3 + 3 runs (Welch), wider than Poisson on the pooled totals"
    assert calm.scale is Scale.RELATIVE
    assert judged(entry, counts([100, 100, 100]), counts([300, 305, 299])).outcome is Outcome.WORSE
    assert wild.low is not None
    assert wild.low >= -1.0


def test_counts_of_0_in_the_baseline_are_compared_by_difference() -> None:
    entry = metric(Kind.COUNT, floor=0.005)
    judgement = judged(entry, counts([0, 0, 0]), counts([0, 1, 0]))
    assert (judgement.scale, judgement.margin_high, judgement.outcome) == (Scale.ABSOLUTE, 0.005, Outcome.EQUAL)
    assert "has no events" in judgement.note
    assert judged(entry, counts([0, 0, 0]), counts([50, 49, 51])).outcome is Outcome.WORSE
    rare = judged(entry, counts([1, 0, 1]), counts([2, 1, 2]))
    assert (rare.scale, rare.margin_high, rare.outcome) == (Scale.ABSOLUTE, 0.005, Outcome.EQUAL)
    assert "the floor is the margin" in rare.note
    none = judged(metric(Kind.COUNT), counts([0, 0]), counts([0, 0]))
    assert none.outcome is Outcome.EQUAL
    assert none.note.endswith(
        "; 0 on both sides without a floor: the interval shows how large an undetected change could be"
    )


def test_proportions_are_judged_in_points() -> None:
    entry = metric(Kind.PROPORTION, Better.HIGHER, margin=0.01)
    judgement = judged(entry, counts([999, 1000, 998]), counts([999, 999, 999]))
    assert judgement.scale is Scale.ABSOLUTE
    assert judgement.margin_high == pytest.approx(0.00999, rel=1e-6)
    assert judgement.outcome is Outcome.EQUAL
    assert judged(entry, counts([999, 1000, 998]), counts([900, 910, 905])).outcome is Outcome.WORSE


def test_the_archive_pools_groups_of_equal_builds() -> None:
    first = [stub_run("v1", value, n) for n, value in enumerate(spread(1.0, 0.02))]
    second = [stub_run("v2", value, n) for n, value in enumerate(spread(5.0, 0.04))]
    alone = [stub_run("v3", 9.0, 1)]
    elsewhere = [stub_run("v1", value, 10 + n, workload={"rate": 7}) for n, value in enumerate((1.0, 9.0))]
    history = archived([*first, *second, *alone, *elsewhere, first[0]])
    judgement = judged(metric(), side([1.0]), side([1.0]), history)
    deviation = math.sqrt((2 * 0.02**2 + 2 * 0.04**2) / 4)
    assert judgement.noise == "archive of 6 runs"
    assert judgement.degrees_of_freedom == 4.0
    assert judgement.high == pytest.approx(
        math.expm1(stats.t.isf(ONE_LOOK, 4.0) * deviation * math.sqrt(2.0)), rel=1e-5
    )
