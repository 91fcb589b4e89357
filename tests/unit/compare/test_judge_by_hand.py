"""Margins, scales and the noise of single runs, computed by hand. A wrong side, root or divisor makes a test fail."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.compare.estimates import SideEstimates
from chainmark.compare.judge import Bench, cannot_be_decided_by_one_pair, effective_margin, judge
from chainmark.core.comparison import Judgement, Outcome, Scale
from chainmark.core.metric import Better, Kind, Metric
from chainmark.stats.intervals import newcombe, poisson_ratio
from chainmark.stats.sequential import Looks, lone_levels

from tests.unit.compare.metric_cases import ALONE, ONE_LOOK, archived, counts, metric, side, spread, stub_run

Z = stats.norm.isf(ONE_LOOK)  # quantile of an interval with known noise
HIGHER, LOWER = Better.HIGHER, Better.LOWER


def judged(entry: Metric, left: SideEstimates, right: SideEstimates, bench: Bench = ALONE) -> Judgement:
    return judge(entry, "mean", left, right, bench)


def number(value: float | None) -> float:
    assert value is not None
    return value


@pytest.mark.parametrize(
    ("better", "ratio", "outcome"),
    [
        (LOWER, 1.099, Outcome.EQUAL),
        (LOWER, 1.101, Outcome.WORSE),
        (LOWER, 1.107, Outcome.WORSE),  # less than 1 / 0.9
        (HIGHER, 0.907, Outcome.EQUAL),  # less than 1 / 1.1
        (HIGHER, 0.901, Outcome.EQUAL),
        (HIGHER, 0.899, Outcome.WORSE),
    ],
)
def test_the_margin_is_ten_percent_in_the_worse_direction(better: Better, ratio: float, outcome: Outcome) -> None:
    """A throughput may fall by 10 %, which on the logarithmic scale is more than a latency's rise by 10 %."""
    judgement = judged(metric(better=better), side(spread(50.0, 1e-6)), side(spread(50.0 * ratio, 1e-6)))
    assert (judgement.outcome, judgement.trend) == (outcome, outcome is Outcome.EQUAL)


@pytest.mark.parametrize(
    ("better", "worst"), [(LOWER, math.log(1.1)), (HIGHER, -math.log(0.9))], ids=["latency", "throughput"]
)
@pytest.mark.parametrize("ratio", [0.85, 1.0, 1.15])
def test_the_p_value_and_the_detectable_change_are_those_of_the_worse_direction(
    better: Better, worst: float, ratio: float
) -> None:
    """3 + 3 runs of 2 %: the p-value of a worsening beyond the margin, and the change that could have been detected."""
    judgement = judged(metric(better=better), side(spread(1.0, 0.02)), side(spread(ratio, 0.02)))
    error = 0.02 * math.sqrt(2.0 / 3.0)
    worsening = math.log(ratio) if better is LOWER else -math.log(ratio)
    assert judgement.p_worse == pytest.approx(stats.t.sf((worsening - worst) / error, 4.0), rel=1e-6)
    reach = worst + (stats.t.isf(ONE_LOOK, 4.0) + stats.t.ppf(0.80, 4.0)) * error
    expected = math.expm1(reach if better is LOWER else -reach)
    assert judgement.detectable == pytest.approx(expected, rel=1e-6)


def test_an_early_look_of_several_detects_less_than_a_single_one() -> None:
    """After 3 of 8 planned runs per side only part of the 5 % is spent, so the detectable change is larger."""
    looks = Looks(((2, 2), (3, 3)), 8)
    level = lone_levels(looks)[-1]
    assert level < 0.5 * ONE_LOOK
    left, right = side(spread(1.0, 0.02)), side(spread(1.0, 0.02))
    early, single = (judge(metric(), "mean", left, right, bench) for bench in (Bench(looks=looks), ALONE))
    reach = math.log(1.1) + (stats.t.isf(level, 4.0) + stats.t.ppf(0.80, 4.0)) * 0.02 * math.sqrt(2.0 / 3.0)
    assert early.detectable == pytest.approx(math.expm1(reach), rel=1e-6)
    assert early.detectable is not None
    assert single.detectable is not None
    assert early.detectable > single.detectable
    # A change is called worse above the margin plus the t quantile times the standard error.
    shift = math.log(1.1) + stats.t.isf(level, 4.0) * 0.02 * math.sqrt(2.0 / 3.0)
    for factor, outcome in ((1.0001, Outcome.WORSE), (0.9999, Outcome.INCONCLUSIVE)):
        changed = judge(metric(), "mean", left, side(spread(math.exp(shift) * factor, 0.02)), Bench(looks=looks))
        assert changed.outcome is outcome


def test_a_falling_throughput_leaves_more_room_than_a_rising_latency() -> None:
    """5.66 % between 3 + 3 runs gives ±0.1, which is less than -log 0.9 = 0.105 but more than log 1.1 = 0.095."""
    left, right = side(spread(1.0, 0.0566)), side(spread(1.0, 0.0566))
    assert judged(metric(better=HIGHER), left, right).outcome is Outcome.EQUAL
    assert judged(metric(better=LOWER), left, right).outcome is Outcome.INCONCLUSIVE


def test_the_noise_is_pooled_over_all_runs_of_both_sides() -> None:
    """2 + 4 runs of 3 % each: the standard error is 0.03 √(1/2 + 1/4), with 1 + 3 degrees of freedom."""
    pair = [math.exp(0.03 * step / math.sqrt(2.0)) for step in (-1.0, 1.0)]
    four = [math.exp(0.03 * step * math.sqrt(3.0) / 2.0) for step in (-1.0, -1.0, 1.0, 1.0)]
    for left, right, runs in ((pair, four, "2 + 4"), (four, pair, "4 + 2")):
        judgement = judged(metric(), side(left), side(right))
        half = stats.t.isf(ONE_LOOK, 4.0) * 0.03 * math.sqrt(0.75)
        assert (judgement.degrees_of_freedom, judgement.noise) == (4.0, f"between {runs} runs")
        assert judgement.high == pytest.approx(math.expm1(half), rel=1e-6)


def test_two_runs_per_side_show_their_own_noise() -> None:
    judgement = judged(metric(), side([1.0, 1.01]), side([1.0, 1.01]))
    assert judgement.noise == "between 2 + 2 runs"
    assert judgement.degrees_of_freedom == pytest.approx(2.0)


@pytest.mark.parametrize("margin", [1.0, 1.5])
def test_a_margin_of_at_least_100_percent_accepts_any_fall_but_not_any_rise(margin: float) -> None:
    """A latency may then at least double, while a throughput cannot fall by more than 100 %."""
    fallen = judged(metric(better=HIGHER, margin=margin), side(spread(1.0, 0.01)), side(spread(1e-6, 0.01)))
    assert (fallen.outcome, fallen.detectable, fallen.p_worse) == (Outcome.EQUAL, None, 1.0)
    for ratio, outcome in ((0.95 + margin, Outcome.EQUAL), (1.05 + margin, Outcome.WORSE)):
        risen = judged(metric(margin=margin), side(spread(1.0, 0.001)), side(spread(ratio, 0.001)))
        assert risen.outcome is outcome


def test_a_change_of_exactly_the_margin_is_neither_shown_to_be_worse_nor_equal() -> None:
    entry = metric(Kind.DIFFERENCE, floor=0.5)
    assert judged(entry, side([0.0, 0.0]), side([0.5, 0.5])).outcome is Outcome.INCONCLUSIVE
    higher = metric(Kind.DIFFERENCE, HIGHER, floor=0.5)
    assert judged(higher, side([0.0, 0.0]), side([-0.5, -0.5])).outcome is Outcome.INCONCLUSIVE


def test_a_gain_of_exactly_the_floor_is_a_gain() -> None:
    assert judged(metric(floor=0.5), side([1.0, 1.0]), side([0.5, 0.5])).outcome is Outcome.BETTER
    assert judged(metric(floor=0.5), side([1.0, 1.0]), side([0.5001, 0.5001])).outcome is Outcome.EQUAL


def test_a_metric_without_a_direction_is_equal_only_if_its_whole_interval_is_inside_the_band() -> None:
    entry = metric(better=Better.NEITHER)
    for ratio, outcome in ((1.099, Outcome.EQUAL), (1.101, Outcome.INCONCLUSIVE), (0.901, Outcome.EQUAL)):
        judgement = judged(entry, side(spread(1.0, 1e-6)), side(spread(ratio, 1e-6)))
        assert (judgement.outcome, judgement.equivalent) == (outcome, outcome is Outcome.EQUAL)
    fallen = judged(entry, side(spread(1.0, 1e-6)), side(spread(0.899, 1e-6)))
    assert (fallen.outcome, fallen.equivalent) == (Outcome.INCONCLUSIVE, False)
    assert fallen.note == "neither direction is better: only the size of the change is judged"
    # Ratios of 0.93 and 1.07 with 4 % between runs: one end of each interval is inside the band.
    for ratio in (0.93, 1.07):
        assert not judged(entry, side(spread(1.0, 0.04)), side(spread(ratio, 0.04))).equivalent
    # A noisy metric whose interval extends beyond the band on both sides is not equal.
    assert not judged(entry, side(spread(1.0, 0.1)), side(spread(1.0, 0.1))).equivalent


@pytest.mark.parametrize("other", [0.5, -0.5])
def test_a_change_of_exactly_the_margin_is_outside_the_band_in_either_direction(other: float) -> None:
    judgement = judged(metric(Kind.DIFFERENCE, Better.NEITHER, floor=0.5), side([0.0, 0.0]), side([other, other]))
    assert (judgement.outcome, judgement.equivalent) == (Outcome.INCONCLUSIVE, False)


def test_zero_on_both_sides_is_equal_without_a_floor_and_noise_around_zero_is_not() -> None:
    entry = metric(Kind.DIFFERENCE)
    assert judged(entry, side([0.0, 0.0]), side([0.0, 0.0])).outcome is Outcome.EQUAL
    assert judged(entry, side([0.0, 0.0]), side([1.0, 1.0])).outcome is Outcome.WORSE
    floored = metric(Kind.DIFFERENCE, floor=0.5)
    assert judged(floored, side([-5.0, 5.0]), side([-5.0, 5.0])).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("base", "floor", "scale", "margin"),
    [
        (4.0, 0.0, Scale.RELATIVE, 0.10),
        (-4.0, 0.0, Scale.RELATIVE, 0.10),
        (-2.0, 0.5, Scale.RELATIVE, 0.25),
        (4.0, 0.3, Scale.ABSOLUTE, 0.4),
        (-4.0, 0.5, Scale.ABSOLUTE, 0.5),
        (-4.0, 0.0, Scale.ABSOLUTE, 0.4),
        (0.0, 0.5, Scale.ABSOLUTE, 0.5),
    ],
)
def test_the_larger_of_margin_and_floor_counts(base: float, floor: float, scale: Scale, margin: float) -> None:
    assert effective_margin(metric(floor=floor), base, scale) == pytest.approx(margin)


def test_changes_too_large_to_print_are_omitted_and_large_differences_are_not() -> None:
    """e^1381 is not a finite number, but 10,000 s are."""
    judgement = judged(metric(), side(spread(1e-300, 0.01)), side(spread(1e300, 0.01)))
    assert (judgement.outcome, judgement.change, judgement.low, judgement.high) == (Outcome.WORSE, None, None, None)
    assert judged(metric(), side(spread(1e-150, 0.01)), side(spread(1e150, 0.01))).change is not None
    far = judged(metric(Kind.DIFFERENCE), side([0.0, 0.0]), side([1e4, 1e4]))
    assert (far.change, far.low, far.high) == (1e4, 1e4, 1e4)


@pytest.mark.parametrize(
    ("kind", "left", "right", "notes"),
    [
        (Kind.POSITIVE, side([1.0, 1.1]), side([1.0, 1.1]), ""),
        (
            *(Kind.POSITIVE, side([1.0, 0.0]), side([1.0, 1.1])),
            "a run's value is 0 or below, so the difference is compared instead of the ratio",
        ),
        (Kind.DIFFERENCE, side([1.0, 0.0]), side([1.0, 1.1]), ""),
        (Kind.COUNT, counts([50, 51]), counts([50, 51]), ""),
        (
            *(Kind.COUNT, counts([0, 0]), counts([1, 0])),
            "the baseline has no events, so the difference is compared instead of the ratio",
        ),
        (Kind.PROPORTION, counts([50, 51]), counts([50, 51]), ""),
        (
            *(Kind.POSITIVE, side([1.0, None, 1.1]), side([1.0, 1.1, None, None])),
            "estimable in 2 of 3 runs of the baseline; estimable in 2 of 4 runs of the candidate",
        ),
    ],
)
def test_notes_state_only_what_a_reader_must_know(
    kind: Kind, left: SideEstimates, right: SideEstimates, notes: str
) -> None:
    assert judged(metric(kind), left, right).note == notes


def test_rare_counts_are_noted_with_the_floor() -> None:
    judgement = judged(metric(Kind.COUNT, floor=0.005), counts([1, 1]), counts([1, 1]))
    assert judgement.note == "the floor is the margin, so the difference is compared instead of the ratio"


def test_sides_without_values_are_both_named() -> None:
    judgement = judged(metric(), side([None]), side([]))
    assert judgement.note == "baseline: no samples; candidate: no samples"


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        (Kind.POSITIVE, Scale.RELATIVE),
        (Kind.COUNT, Scale.RELATIVE),
        (Kind.DIFFERENCE, Scale.ABSOLUTE),
        (Kind.PROPORTION, Scale.ABSOLUTE),
    ],
)
def test_a_metric_without_data_has_the_scale_of_its_kind(kind: Kind, scale: Scale) -> None:
    assert judged(metric(kind), side([None]), side([1.0])).scale is scale


@pytest.mark.parametrize(
    ("floor", "scale"), [(0.0499, Scale.RELATIVE), (0.0501, Scale.ABSOLUTE), (0.0, Scale.RELATIVE)]
)
def test_counts_are_rare_if_the_floor_exceeds_the_margin_of_the_baseline(floor: float, scale: Scale) -> None:
    """500 of 1,000 samples: a margin of 10 % is 0.05 per sample. The candidate's count has no effect."""
    left = side([0.5, 0.5], total=500.0, exposure=1000)
    right = side([0.001, 0.001], total=200.0, exposure=200_000)
    for other in (left, right):
        assert judged(metric(Kind.COUNT, floor=floor), left, other).scale is scale


def test_a_floor_that_equals_the_margin_changes_nothing() -> None:
    exact = side([0.5, 0.5], total=512.0, exposure=1024)
    assert judged(metric(Kind.COUNT, margin=0.25, floor=0.125), exact, exact).scale is Scale.RELATIVE


def test_a_single_count_of_the_baseline_makes_a_ratio() -> None:
    judgement = judged(metric(Kind.COUNT), counts([1, 0]), counts([3, 0]))
    assert judgement.scale is Scale.RELATIVE
    assert judgement.change == pytest.approx(2.0)


def test_counts_and_shares_are_pooled_per_side() -> None:
    """All runs of a side are pooled. Weighted totals are rounded, because there are no 0.4 events."""
    left, right = side([0.02] * 2, total=19.6, exposure=1000), side([0.02] * 2, total=30.4, exposure=1500)
    judgement, exact = judged(metric(Kind.COUNT), left, right), poisson_ratio(20, 1000.0, 30, 1500.0, ONE_LOOK)
    assert [judgement.change, judgement.low, judgement.high] == pytest.approx([exact.change, exact.low, exact.high])
    assert judgement.noise == "Poisson on the pooled totals, wider than between 2 + 2 runs (Welch)"
    left, right = side([0.6] * 2, total=47.6, exposure=80), side([0.8] * 2, total=56.4, exposure=70)
    judgement, shares = judged(metric(Kind.PROPORTION), left, right), newcombe(48, 80.0, 56, 70.0, ONE_LOOK)
    assert [judgement.change, judgement.low, judgement.high] == pytest.approx([shares.change, shares.low, shares.high])
    assert judgement.noise == "binomial (Newcombe) on the pooled totals, wider than between 2 + 2 runs"


def test_rates_that_differ_between_runs_are_compared_by_welchs_test() -> None:
    """Runs of 1 and 3 against 4 and 8 per sample: a ratio of 3, SE² = (2/2 · 3² + 8/2) / 2² = 3.25, ν = 1.7423."""
    left = side([1.0, 3.0], total=4e6, exposure=2_000_000)
    right = side([4.0, 8.0], total=12e6, exposure=2_000_000)
    judgement = judged(metric(Kind.COUNT), left, right)
    assert judgement.noise == "between 2 + 2 runs (Welch), wider than Poisson on the pooled totals"
    freedom = 3.25**2 / (2.25**2 + 1.0**2)
    assert judgement.degrees_of_freedom == pytest.approx(freedom)
    assert judgement.change == pytest.approx(2.0)
    assert judgement.high == pytest.approx(2.0 + stats.t.isf(ONE_LOOK, freedom) * math.sqrt(3.25))
    assert judgement.low == -1.0  # a rate is never negative


SINGLE = [
    # Change and standard error. The noise is 10 % of the larger side (assumed), or the error within the runs.
    ("a ratio", Kind.POSITIVE, (4.0, 0.0), (5.0, 0.0), math.log(1.25), 0.10 * math.sqrt(2.0)),
    ("unsure runs", Kind.POSITIVE, (4.0, 0.4), (5.0, 0.6), math.log(1.25), math.hypot(0.1, 0.12)),
    ("a difference", Kind.DIFFERENCE, (-4.0, 0.0), (-2.0, 0.0), 2.0, 0.4 * math.sqrt(2.0)),
    ("a difference back", Kind.DIFFERENCE, (-2.0, 0.0), (-4.0, 0.0), -2.0, 0.4 * math.sqrt(2.0)),
    ("an unsure difference", Kind.DIFFERENCE, (-4.0, 0.5), (-2.0, 1.2), 2.0, 1.3),
    ("from nothing", Kind.DIFFERENCE, (0.0, 0.0), (5.0, 0.0), 5.0, 0.5 * math.sqrt(2.0)),
    ("to nothing", Kind.DIFFERENCE, (5.0, 0.0), (0.0, 0.0), -5.0, 0.5 * math.sqrt(2.0)),
    # Rates of 2 and 6: the baseline's error counts threefold, and all figures are relative to the baseline.
    ("a rate", Kind.COUNT, (2.0, 0.0), (6.0, 0.0), 2.0, math.hypot(3.0 * 0.6, 0.6) / 2.0),
    ("an unsure rate", Kind.COUNT, (2.0, 0.8), (6.0, 0.9), 2.0, math.hypot(3.0 * 0.8, 0.9) / 2.0),
]


@pytest.mark.parametrize(
    ("kind", "left", "right", "change", "error"), [case[1:] for case in SINGLE], ids=[case[0] for case in SINGLE]
)
def test_single_runs_are_judged_as_computed_by_hand(
    kind: Kind, left: tuple[float, float], right: tuple[float, float], change: float, error: float
) -> None:
    exposure = 10**7  # makes the pooled counts more certain than the runs
    first, second = (side([value], own, total=value * exposure, exposure=exposure) for value, own in (left, right))
    judgement = judged(metric(kind), first, second)
    shown = math.expm1 if kind is Kind.POSITIVE else float
    assert judgement.change == pytest.approx(shown(change))
    assert judgement.low == pytest.approx(shown(change - Z * error), rel=1e-6)
    assert judgement.high == pytest.approx(shown(change + Z * error), rel=1e-6)
    text = "assumed noise, 10 % between runs"
    unsure = left[1] > 0.0
    assert judgement.noise.startswith(f"within-run error, which is larger than the {text}" if unsure else text)
    assert judgement.degrees_of_freedom is None


def test_the_rate_of_a_single_run_cannot_fall_below_zero() -> None:
    entry = metric(Kind.COUNT, default_noise=0.4)
    left, right = (side([value], total=value * 1e7, exposure=10**7) for value in (2.0, 0.1))
    judgement = judged(entry, left, right)
    assert judgement.low == -1.0
    assert judgement.change == pytest.approx(-0.95)
    # A difference may fall by more than 100 %.
    other = metric(Kind.DIFFERENCE, default_noise=0.4)
    assert number(judged(other, side([2.0]), side([0.1])).low) < -2.0


@pytest.mark.parametrize("flipped", [False, True])
def test_one_run_against_three_has_the_noise_of_the_three(*, flipped: bool) -> None:
    """0.02² (1 + 1/3) with 2 degrees of freedom. With errors within the runs, 0.1² + (0.1² + 0.2² + 0.2²) / 3²."""
    estimates, three = side([1.0]), side(spread(1.0, 0.02))
    judgement = judged(metric(), *((three, estimates) if flipped else (estimates, three)))
    half = stats.t.isf(ONE_LOOK, 2.0) * 0.02 * math.sqrt(4.0 / 3.0)
    assert judgement.high == pytest.approx(math.expm1(half), rel=1e-6)
    assert judgement.noise == ("noise between 3 + 1 runs" if flipped else "noise between 1 + 3 runs")
    unsure = SideEstimates([1.0] * 3, [1.0] * 3, [9.0] * 3, [0.1, 0.2, 0.2], 0.0, 100, "")
    alone = SideEstimates([1.0], [1.0], [9.0], [0.1], 0.0, 100, "")
    wide = judged(metric(), *((unsure, alone) if flipped else (alone, unsure)))
    error = math.sqrt(0.01 + 0.09 / 9.0)
    assert wide.high == pytest.approx(math.expm1(stats.t.isf(ONE_LOOK, 2.0) * error), rel=1e-6)


@pytest.mark.parametrize("flipped", [False, True])
def test_a_rate_of_one_run_against_three_has_the_noise_of_each_sides_mean(*, flipped: bool) -> None:
    """Rates of 1 against 2: the baseline's noise counts twofold, and that of three runs is divided by √3."""
    ratio = 0.5 if flipped else 2.0
    one, three = side([1.0], total=1e7, exposure=10**7), side([1.96, 2.0, 2.04], total=6e7, exposure=3 * 10**7)
    judgement = judged(metric(Kind.COUNT), *((three, one) if flipped else (one, three)))
    noise = math.hypot(ratio * 0.04 / math.sqrt(3.0), 0.04) if flipped else math.hypot(ratio * 0.04, 0.04 / 3**0.5)
    base = 2.0 if flipped else 1.0
    half = stats.t.isf(ONE_LOOK, 2.0) * noise / base
    assert judgement.high == pytest.approx(ratio - 1.0 + half, rel=1e-6)


# Two archived runs with values of 1 and e^0.02: a deviation of 1.414 % with one degree of freedom.
ARCHIVE = archived([stub_run("v1", math.exp(0.02 * place), place) for place in (0, 1)])


def test_the_noise_of_the_archive_is_pooled_with_that_of_the_runs() -> None:
    """3 + 3 runs of 2 %: squares of 4 · 0.02² and 0.0002, with 5 degrees of freedom."""
    judgement = judged(metric(), side(spread(1.0, 0.02)), side(spread(1.0, 0.02)), ARCHIVE)
    error = math.sqrt((4 * 0.02**2 + 0.0002) / 5 * 2 / 3)
    assert (judgement.degrees_of_freedom, judgement.noise) == (5.0, "between 3 + 3 runs and 2 of the archive")
    assert judgement.high == pytest.approx(math.expm1(stats.t.isf(ONE_LOOK, 5.0) * error), rel=1e-6)
    by_archive = judged(metric(), side(spread(1.0, 0.02)), side([1.0]), ARCHIVE)
    error = math.sqrt((2 * 0.02**2 + 0.0002) / 3 * 4 / 3)
    assert (by_archive.degrees_of_freedom, by_archive.noise) == (3.0, "noise between 3 + 1 runs and 2 of the archive")
    assert by_archive.high == pytest.approx(math.expm1(stats.t.isf(ONE_LOOK, 3.0) * error), rel=1e-6)


def test_an_archive_that_is_quieter_than_chance_allows_is_not_used() -> None:
    """Nine archived runs of 1 %: variances with a ratio of 3, with 4 and 8 degrees of freedom, have p = 8.7 %."""
    calm = archived([stub_run("v1", math.exp(0.01 * step), place) for place, step in enumerate([-1, 0, 1] * 3)])
    share = 6 * 0.01**2 / 8
    for ratio, is_joined in ((3.0, True), (5.0, False)):
        assert (stats.f.sf(ratio, 4, 8) > 0.05) == is_joined
        runs = side(spread(1.0, math.sqrt(ratio * share)))
        judgement = judged(metric(), runs, runs, calm)
        words = " and 9 of the archive" if is_joined else ", which differ more than the archive's"
        assert judgement.noise == f"between 3 + 3 runs{words}"
        assert judgement.degrees_of_freedom == (12.0 if is_joined else 4.0)


def test_an_archive_of_a_noisier_time_is_not_used() -> None:
    """Nine archived runs of 10 %: variances with a ratio of 1/20, with 4 and 8 degrees of freedom, have p = 1.1 %.

    Two stalls in earlier runs would otherwise leave every later release undecided.
    """
    noisy = archived([stub_run("v1", math.exp(0.1 * step), place) for place, step in enumerate([-1, 0, 1] * 3)])
    share = 6 * 0.1**2 / 8
    for ratio, is_joined in ((20.0, True), (40.0, False)):
        assert (stats.f.sf(ratio, 8, 4) > 0.005) == is_joined
        runs = side(spread(1.0, math.sqrt(share / ratio)))
        judgement = judged(metric(), runs, runs, noisy)
        words = " and 9 of the archive" if is_joined else ", which differ less than the archive's"
        assert judgement.noise == f"between 3 + 3 runs{words}"
        assert judgement.degrees_of_freedom == (12.0 if is_joined else 4.0)
        assert (judgement.outcome is Outcome.EQUAL) == (not is_joined)


def test_the_runs_of_one_side_replace_an_archive_of_a_noisier_time() -> None:
    """One run is compared with five: their noise of 0.5 % counts, and not the 10 % of the archive."""
    noisy = archived([stub_run("v1", math.exp(0.1 * step), place) for place, step in enumerate([-1, 0, 1] * 3)])
    five = side([math.exp(0.005 * step) for step in (-1, -1, 0, 1, 1)])
    judgement = judged(metric(), five, side([1.0]), noisy)
    assert judgement.noise == "noise between 5 + 1 runs, which differ less than the archive's"
    assert (judgement.degrees_of_freedom, judgement.outcome) == (4.0, Outcome.EQUAL)


def test_a_later_look_requires_more() -> None:
    """The same runs at the second of seven planned looks: the interval is wider than at a single look."""
    looks = Looks(((2, 2), (3, 3)), 8)
    once, again = (
        judged(metric(), side(spread(1.0, 0.02)), side(spread(1.0, 0.02)), bench)
        for bench in (ALONE, Bench(looks=looks))
    )
    assert number(again.high) > 1.2 * number(once.high)
    assert again.p_worse == once.p_worse


def test_noise_is_never_assumed_to_be_less_than_ten_percent() -> None:
    judgement = judged(metric(default_noise=0.01), side([1.0]), side([1.0]))
    assert judgement.noise == "assumed noise, 10 % between runs"
    assert judgement.high == pytest.approx(math.expm1(Z * 0.10 * math.sqrt(2.0)), rel=1e-6)


def test_the_archives_noise_of_a_difference_is_in_its_unit() -> None:
    """Runs of 1 and 3 have a deviation of √2 with one degree of freedom, whatever the compared values are."""
    archive = archived([stub_run("v1", value, place) for place, value in enumerate((1.0, 3.0))])
    judgement = judged(metric(Kind.DIFFERENCE), side([100.0]), side([110.0]), archive)
    assert (judgement.noise, judgement.degrees_of_freedom) == ("archive of 2 runs", 1.0)
    assert judgement.high == pytest.approx(10.0 + stats.t.isf(ONE_LOOK, 1.0) * 2.0)


@given(st.floats(0.2, 5.0), st.floats(0.001, 0.1), st.sampled_from([HIGHER, LOWER]))
def test_the_verdict_on_a_metric_agrees_with_its_p_value(ratio: float, deviation: float, better: Better) -> None:
    """It is worse exactly if the near end of the interval is beyond the margin, which is p < 4.8 % on the same side."""
    judgement = judged(metric(better=better), side(spread(1.0, deviation)), side(spread(ratio, deviation)))
    assert (judgement.outcome is Outcome.WORSE) == (number(judgement.p_worse) < ONE_LOOK)
    near = number(judgement.low) - 0.10 if better is LOWER else -0.10 - number(judgement.high)
    assert (judgement.outcome is Outcome.WORSE) == (near > 0.0)


@pytest.mark.parametrize(
    ("margin", "kind", "hopeless"),
    [(0.10, Kind.POSITIVE, True), (0.25, Kind.POSITIVE, True), (0.30, Kind.POSITIVE, False), (0.10, Kind.COUNT, False)],
)
def test_what_one_run_per_side_cannot_decide_is_known_in_advance(margin: float, kind: Kind, *, hopeless: bool) -> None:
    """A noise of 10 % per run is 14.1 % of a change, and 1.665 times that must fit into the margin: 26.5 %."""
    assert cannot_be_decided_by_one_pair(metric(kind, margin=margin)) is hopeless
    if kind is Kind.POSITIVE:
        equal = judged(metric(kind, margin=margin), side([1.0]), side([1.0]))
        assert (equal.outcome is Outcome.INCONCLUSIVE) is hopeless


@pytest.mark.parametrize(
    ("better", "ratio", "outcome"),
    [
        (LOWER, 1.01, Outcome.EQUAL),
        (LOWER, 1.13, Outcome.INCONCLUSIVE),  # with a margin of 5 % it would be undecided as well, and must not pass
        (LOWER, 1.20, Outcome.WORSE),  # beyond its own margin, although within the widened one
        (HIGHER, 0.99, Outcome.EQUAL),
        (HIGHER, 0.82, Outcome.WORSE),
    ],
)
def test_a_widened_margin_passes_more_and_excuses_no_regression(better: Better, ratio: float, outcome: Outcome) -> None:
    """3 + 3 runs of 5 % have an interval of ±9 %. With a margin of 5 % not even identical values are equal."""
    left, right = side(spread(1.0, 0.05)), side(spread(ratio, 0.05))
    own = metric(better=better, margin=0.05)
    judgement = judged(own.model_copy(update={"widened": 0.22}), left, right)
    assert judged(own, side(spread(1.0, 0.05)), left).outcome is Outcome.INCONCLUSIVE
    assert (judgement.outcome, judgement.margin_high, judgement.worse_beyond) == (outcome, 0.22, 0.05)
    assert judgement.p_worse == judged(own, left, right).p_worse


def test_a_narrower_margin_widens_nothing() -> None:
    judgement = judged(metric(margin=0.1).model_copy(update={"widened": 0.05}), side([1.0, 1.0]), side([1.0, 1.0]))
    assert (judgement.margin_high, judgement.worse_beyond) == (0.1, None)
