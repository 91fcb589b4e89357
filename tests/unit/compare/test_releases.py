"""Noise and level from a series of releases: re-runs, steps, changes of the set-up, and the compared runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.judge import LEVEL_STATED
from chainmark.compare.noise import ArchiveSpread
from chainmark.compare.releases import Releases
from chainmark.core.catalogue import Bounds, Catalogue
from chainmark.core.comparison import Outcome
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.epoch import Epoch
from chainmark.core.manifest import Status
from chainmark.core.metric import Kind, MetricGroup, Population
from chainmark.core.question import BaselineKind
from chainmark.core.verdict import Verdict
from chainmark.stats.intervals import Working

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

LOG = Working.LOG
METRICS = [metric(id=f"m{number}_s", label=f"metric {number}", gating=number < 3) for number in range(6)]
CATALOGUE = Catalogue(
    system="cometbft",
    title="CometBFT",
    populations=[Population(id="block", label="blocks", keys=["height"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=METRICS,
)


def run(version: str, month: int, values: Iterable[float]) -> SyntheticRun:
    """One run of a release, without samples."""
    year, rest = divmod(month, 12)
    described = manifest(version, 1, run_id=f"run-{month:03}")
    described.experiment = None
    described.started_at = f"{2020 + year}-{rest + 1:02}-01T00:00:00Z"
    summaries = {
        metric.id: MetricSummary(
            metric_id=metric.id,
            distribution=None,
            estimates={"mean": Estimate(value=float(value), standard_error=None, method="stub")},
        )
        for metric, value in zip(METRICS, values, strict=True)
    }
    return SyntheticRun(described, CATALOGUE, {}, summaries)


def history(noise: float = 0.02, releases: int = 24, reruns: int = 3, seed: int = 1) -> list[SyntheticRun]:
    """A history of equal releases, some of which were run twice."""
    rng = np.random.default_rng(seed)
    versions = [f"v1.{number}" for number in range(releases)]
    for number in range(reruns):
        versions.insert(4 * number + 2, versions[4 * number + 1])
    return [run(version, month, np.exp(rng.normal(0.0, noise, 6))) for month, version in enumerate(versions)]


def spread(runs: Sequence[SyntheticRun], id_: str = "m0_s", epochs: Sequence[Epoch] = ()) -> ArchiveSpread | None:
    compared = LoadedRun(run("v1.99", 99, [1.0] * 6))
    return Releases([compared], runs, epochs).spread(id_, "mean", LOG)


def test_noise_is_estimated_from_re_runs_and_steps() -> None:
    spreads = [spread(history(seed=seed), metric.id) for seed in range(8) for metric in METRICS]
    deviations = [math.sqrt(spread.variance) for spread in spreads if spread is not None]
    assert len(deviations) == len(spreads)
    assert np.mean(deviations) == pytest.approx(0.02, rel=0.1)
    assert np.std(deviations) < 0.006
    assert spreads[0] is not None
    assert spreads[0].source == "history of 24 builds (3 re-runs, 23 release-to-release changes)"
    assert 3.0 < spreads[0].degrees_of_freedom < 10.0


def test_few_releases_show_no_noise() -> None:
    """The steps between a few releases may be changes as well as noise."""
    assert spread(history(releases=7, reruns=0)) is None
    assert spread(history(releases=8, reruns=0)) is not None


def test_other_workloads_machines_and_failed_runs_do_not_count() -> None:
    runs = history(releases=12, reruns=0)
    for synthetic in runs[:6]:
        synthetic.manifest.workload = {"load.rate_tx_per_s": 1}
    assert spread(runs) is None


def test_the_compared_runs_are_not_evidence_of_their_own_noise() -> None:
    """Otherwise a regression would widen the interval by which it is judged."""
    runs = history(releases=12, reruns=0)
    far = run("v1.99", 99, [9.0] * 6)
    compared = [LoadedRun(runs[3]), LoadedRun(far)]
    with_them, without = (
        Releases(compared, runs).spread("m0_s", "mean", LOG) for runs in ([*runs, far], [*runs[:3], *runs[4:]])
    )
    assert with_them == without


def stepped(noise: float = 0.01) -> list[SyntheticRun]:
    """A history in which new machines halve all values. One build was run before and after their introduction."""
    rng = np.random.default_rng(5)
    versions = [*(f"v1.{number}" for number in range(10)), "v1.9", *(f"v1.{number}" for number in range(10, 18))]
    return [
        run(version, month, np.exp(rng.normal(0.0, noise, 6)) * (0.5 if month > 9 else 1.0))
        for month, version in enumerate(versions)
    ]


def test_an_unnoted_change_of_the_set_up_is_proposed_and_is_not_noise() -> None:
    """RSS that fell by a third on new hosts is not evidence about the noise of runs."""
    compared = LoadedRun(run("v1.99", 99, [0.5] * 6))
    releases = Releases([compared], stepped())
    noise = releases.spread("m0_s", "mean", LOG)
    assert noise is not None
    assert math.sqrt(noise.variance) < 0.02
    change = releases.setup_changes[0]
    assert (change.before, change.after, change.started[:10]) == ("v1.9", "v1.9", "2020-11-01")
    assert change.change == pytest.approx(math.log(0.5), abs=0.05)


def test_a_noted_change_is_not_proposed_again_and_its_metrics_are_not_compared_across_it() -> None:
    epoch = Epoch(system="cometbft", since="2020-11-01T00:00:00Z", text="new hosts", metrics=("m0_s",))
    runs = stepped()
    releases = Releases([LoadedRun(run("v1.99", 99, [0.5] * 6))], runs, [epoch])
    assert "m0_s" not in {change.metric_id for change in releases.setup_changes}
    decided = decide([runs[8]], [runs[12]], runs, Past([epoch]))
    outcomes = {item.metric_id: item for item in decided.judgements}
    assert outcomes["m0_s"].outcome is Outcome.NOT_COMPARABLE
    assert "the set-up changed on 2020-11-01 (new hosts)" in outcomes["m0_s"].note
    assert outcomes["m1_s"].outcome is Outcome.BETTER


def test_an_equal_release_passes_and_a_slower_one_fails_with_one_run_per_side() -> None:
    for kind in BaselineKind:
        equal = decide([history()[-1]], [run("v1.99", 99, [1.0] * 6)], history(), Past(baseline=kind))
        slower = decide([history()[-1]], [run("v1.99", 99, [1.25, *[1.0] * 5])], history(), Past(baseline=kind))
        assert (equal.finding.verdict, slower.finding.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert any(text.startswith("noise between runs: history of") for text in equal.finding.reasons)


def test_the_level_compensates_for_one_outlier_of_the_baseline() -> None:
    """The named run is 4 % low. Alone it would make an equal candidate look slower by as much."""
    runs = [*history(), run("v1.98", 98, [0.96] * 6)]
    changes = {}
    for kind in BaselineKind:
        decided = decide([runs[-1]], [run("v1.99", 99, [1.0] * 6)], runs, Past(baseline=kind))
        item = decided.judgements[0]
        assert item.change is not None
        assert item.high is not None
        changes[kind] = (item.change, item.high)
    assert changes[BaselineKind.RUN][0] == pytest.approx(1.0 / 0.96 - 1.0)
    assert changes[BaselineKind.HISTORY][0] < 0.03
    assert changes[BaselineKind.HISTORY][1] < changes[BaselineKind.RUN][1]


def test_releases_after_the_baseline_are_not_part_of_its_level() -> None:
    """Two releases after it every metric became 20 % slower, and the candidate is as slow."""
    later = [run(f"v1.{number}", number, [1.2] * 6) for number in range(91, 96)]
    runs = [*history(), run("v1.90", 90, [1.0] * 6), *later]
    past = Past(baseline=BaselineKind.HISTORY)
    decided = decide([runs[-6]], [run("v1.99", 99, [1.2] * 6)], runs, past)
    assert decided.judgements[0].change == pytest.approx(0.2, abs=0.02)
    assert "the baseline is the level of" in decided.judgements[0].noise


def test_the_level_of_a_metric_compared_by_its_difference_is_in_its_unit() -> None:
    """All releases have a value of about 1, and the named run is 0.04 low."""
    differences = [metric(Kind.DIFFERENCE, id=item.id, label=item.label, floor=0.1) for item in METRICS]
    runs = [*history(), run("v1.98", 98, [0.96] * 6), run("v1.99", 99, [1.0] * 6)]
    for synthetic in runs:
        synthetic.catalogue = CATALOGUE.model_copy(update={"metrics": differences})
    item = decide([runs[-2]], [runs[-1]], runs, Past(baseline=BaselineKind.HISTORY)).judgements[0]
    assert LEVEL_STATED in item.noise
    assert item.baseline.value == pytest.approx(0.99, abs=0.02)
    assert item.change == pytest.approx(0.01, abs=0.02)


@pytest.mark.parametrize(
    ("earlier", "baselines"),
    [
        ([1.0], [1.5]),  # a release that changed the metric begins a new level
        ([0.0], [0.96]),  # of which there is no logarithm, so that the releases have no level
        ([1.0], [0.96, 0.96]),  # several runs have their own mean
    ],
)
def test_without_a_level_the_baseline_is_its_own_runs(earlier: Sequence[float], baselines: Sequence[float]) -> None:
    runs = [*history(), *(run("v1.97", 95, [value] * 6) for value in earlier)]
    named = [run("v1.98", 96 + number, [value] * 6) for number, value in enumerate(baselines)]
    decided = decide(named, [run("v1.99", 99, [1.0] * 6)], runs, Past(baseline=BaselineKind.HISTORY))
    assert decided.releases is not None
    assert decided.judgements[0].baseline.value == pytest.approx(baselines[0])
    assert LEVEL_STATED not in decided.judgements[0].noise


def test_a_metric_that_the_candidate_lost_is_shown_with_the_baselines_own_value() -> None:
    runs = [*history(), run("v1.98", 98, [0.96] * 6)]
    candidate = run("v1.99", 99, [1.0] * 6)
    del candidate._summaries["m0_s"]
    lost, present, *_ = decide([runs[-1]], [candidate], runs, Past(baseline=BaselineKind.HISTORY)).judgements
    assert (lost.outcome, lost.baseline.value) == (Outcome.NO_DATA, 0.96)
    assert LEVEL_STATED in present.noise


def test_a_verdict_uses_a_series_only_of_enough_releases() -> None:
    for releases, is_shown in ((7, False), (8, True)):
        decided = decide([run("v1.98", 98, [1.0] * 6)], [run("v1.99", 99, [1.0] * 6)], history(0.02, releases, 0))
        assert (decided.releases is not None) == is_shown


@pytest.mark.parametrize("place", [0, 1])
def test_an_excluded_report_does_not_decide_by_which_statistic_metrics_are_judged(place: int) -> None:
    """It prints only the maximum. The means of the valid runs are judged, by the noise of earlier means."""
    both, tails = (
        CATALOGUE.model_copy(
            update={
                "metrics": [
                    metric.model_copy(update={"statistics": names, "judged_by": names[:1]}) for metric in METRICS
                ]
            }
        )
        for names in (["mean", "max"], ["max"])
    )
    pair = [run("v1.98", 98, [1.0] * 6)], [run("v1.99", 99, [1.0] * 6)]
    for (synthetic,) in pair:
        synthetic.catalogue = both
    report = run(pair[place][0].manifest.subject.version, 97, [1.0] * 6)
    report.catalogue = tails
    report.manifest.printed = True
    report.manifest.status = Status.INVALID
    pair[place].insert(0, report)
    decided = decide(*pair, history())
    assert list(decided.baseline.excluded | decided.candidate.excluded) == ["run-097"]
    assert {item.statistic for item in decided.judgements} == {"mean"}
    assert all("history of 24 builds" in item.noise for item in decided.judgements)


def test_several_runs_per_side_show_their_own_noise_and_not_that_of_releases() -> None:
    pairs = [[run(version, month, [1.0 + 0.01 * month] * 6) for month in (98, 99)] for version in ("v1.98", "v1.99")]
    for number, each in enumerate(pairs[0] + pairs[1]):
        each.manifest.run_id = f"run-{200 + number}"
    decided = decide(pairs[0], pairs[1], history())
    assert decided.releases is None
    assert decided.judgements[0].noise == "between 2 + 2 runs and 6 of the archive"
    assert decide(pairs[0], pairs[1][:1], history()).releases is not None


def test_false_alarms_stay_below_the_stated_error() -> None:
    """Equal releases are judged against their predecessors. Few metrics are called worse, and most are decided."""
    outcomes: list[Outcome] = []
    for seed in range(12):
        runs = history(noise=0.025, releases=20, seed=seed)
        for sooner, later in zip(runs[-6:], runs[-5:], strict=False):
            decided = decide([sooner], [later], runs, Past(baseline=BaselineKind.HISTORY))
            outcomes += [item.outcome for item in decided.judgements]
    assert outcomes.count(Outcome.WORSE) / len(outcomes) < 0.01
    assert sum(outcome in {Outcome.EQUAL, Outcome.BETTER} for outcome in outcomes) / len(outcomes) > 0.85


NOISY = 0.06  # too noisy to show that 10 % is equal with one run per side
ALL_GATING = CATALOGUE.model_copy(
    update={"metrics": [metric(id=f"m{number}_s", label=f"metric {number}", gating=True) for number in range(6)]}
)


def judged(values: Sequence[float], past: Past | None = None, seed: int = 1) -> Decided:
    """The decision on a candidate with these values and a baseline of 1. Re-runs differ by 8 %."""
    runs = [*history(NOISY, seed=seed), run("v1.98", 98, [1.0] * 6), run("v1.99", 99, values)]
    for synthetic in runs:
        synthetic.catalogue = ALL_GATING
    return decide([runs[-2]], [runs[-1]], runs, past)


def test_margins_that_re_runs_exceed_are_widened_with_a_note() -> None:
    decision = judged([1.0] * 6)
    assert {item.outcome for item in decision.judgements} == {Outcome.EQUAL}
    assert all(0.10 < (item.margin_high or 0.0) <= 0.20 and item.worse_beyond == 0.10 for item in decision.judgements)
    assert decision.finding.verdict is Verdict.PASS
    assert "6 widened to re-run noise" in decision.finding.sentence
    own = judged([1.0] * 6, Past(widest=None))
    assert {item.outcome for item in own.judgements} == {Outcome.INCONCLUSIVE}


def test_a_change_beyond_the_catalogues_margin_fails_however_wide_the_margin_is() -> None:
    for past in (Past(), Past(widest=None), Past(widest=0.9)):
        decision = judged([1.45, *[1.0] * 5], past)
        assert decision.judgements[0].outcome is Outcome.WORSE
        assert decision.finding.verdict is Verdict.FAIL


def test_a_configured_margin_is_not_widened() -> None:
    runs = [*history(NOISY), run("v1.98", 98, [1.0] * 6), run("v1.99", 99, [1.0] * 6)]
    decision = decide([runs[-2]], [runs[-1]], runs, margins={"m0_s": 0.07})
    assert (decision.judgements[0].margin_high, decision.judgements[0].worse_beyond) == (0.07, None)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.08, *[1.0] * 5], Verdict.PASS),  # one of six metrics may differ by chance
        ([1.08, 1.08, *[1.0] * 4], Verdict.INCONCLUSIVE),  # two of six may not
        ([1.12, *[1.0] * 5], Verdict.INCONCLUSIVE),  # beyond its own margin
    ],
)
def test_one_metric_within_noise_does_not_block_a_release_and_is_named(
    values: Sequence[float], verdict: Verdict
) -> None:
    decision = judged(values)
    assert {item.outcome for item in decision.judgements[: sum(value > 1.0 for value in values)]} == {
        Outcome.INCONCLUSIVE
    }
    assert decision.finding.verdict is verdict
    is_within_noise = "undecided within re-run noise: metric 0" in decision.finding.sentence
    assert is_within_noise == (verdict is Verdict.PASS)
    assert "metric 0 is undecided" in " ".join(decision.finding.reasons)


def test_one_metric_that_is_worse_beyond_noise_blocks_a_release() -> None:
    """A change that is larger than that of re-runs is not excused by the metric's own margin."""
    quiet = [*history(0.02), run("v1.98", 98, [1.0] * 6), run("v1.99", 99, [1.09, *[1.0] * 5])]
    for synthetic in quiet:
        synthetic.catalogue = ALL_GATING
    decision = decide([quiet[-2]], [quiet[-1]], quiet)
    assert decision.judgements[0].outcome is Outcome.INCONCLUSIVE
    assert (decision.judgements[0].low or 0.0) > 0.0
    assert decision.finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("printed_first", [True, False])
def test_a_run_judged_by_its_median_is_compared_with_a_printed_mean(*, printed_first: bool) -> None:
    """Reports print means. Otherwise earlier reports and current logs would have no data in common."""
    past = history(0.01)
    for synthetic in past:
        synthetic.manifest.printed = True
    logs = run("v1.99", 99, [1.0] * 6)
    logs.catalogue = CATALOGUE.model_copy(
        update={
            "metrics": [
                metric.model_copy(update={"statistics": ["mean", "p50", "p90"], "judged_by": judged})
                for metric, judged in zip(METRICS, [["p50"], ["mean", "p90"], *[["mean"]] * 4], strict=True)
            ]
        }
    )
    sides = [past[-1]], [logs]
    decision = decide(*(sides if printed_first else sides[::-1]), past)
    assert [(judgement.metric_id, judgement.statistic) for judgement in decision.judgements] == [
        (metric.id, "mean") for metric in METRICS
    ]
    assert all("history of" in judgement.noise for judgement in decision.judgements)
    assert decision.finding.verdict is Verdict.PASS
    tails = [metric.model_copy(update={"statistics": ["max"], "judged_by": ["max"]}) for metric in METRICS]
    past[-1].catalogue = CATALOGUE.model_copy(update={"metrics": tails})
    nothing = decide([past[-1]], [run("v1.99", 99, [1.0] * 6)]).judgements
    assert [judgement.statistic for judgement in nothing] == ["mean"] * 6, (
        "without common statistics each metric is still listed"
    )
    other = run("v1.98", 98, [1.0] * 6)
    other.catalogue = logs.catalogue
    assert [judgement.statistic for judgement in decide([other], [logs]).judgements[:3]] == ["p50", "mean", "p90"]


def test_margins_are_learnt_from_releases_on_request_and_configured_ones_are_unchanged() -> None:
    """The margin is three standard deviations of a difference of single runs, within a team's bounds."""
    runs, wide = history(noise=0.03), Bounds(0.01, 0.5)
    candidate = [run("v1.99", 99, [1.0] * 6)]
    plain = decide([runs[-1]], candidate, runs, Past(widest=None))
    assert {metric.accepted for metric in plain.catalogue.metrics} == {0.1}
    assert plain.own_margins.learnt == frozenset()
    decided = decide([runs[-1]], candidate, runs, Past(learnt=wide, widest=None), {"m0_s": 0.3, "m1_s": 0.04})
    learnt = decided.catalogue
    assert decided.own_margins.ordered == {"m0_s", "m1_s"}
    assert learnt.metric("m0_s").margin == 0.3, "configured margins take precedence over learnt ones"
    assert decided.own_margins.learnt == {"m2_s"}, "only gating metrics without a configured margin"
    decided = decide([runs[-1]], candidate, runs, Past(learnt=wide, widest=None), {"m1_s": 0.04})
    learnt = decided.catalogue
    assert decided.own_margins.ordered == {"m1_s"}
    assert learnt.metric("m1_s").margin == 0.04
    assert decided.own_margins.learnt == {"m0_s", "m2_s"}, "only gating metrics"
    for learnt_metric in (learnt.metric("m0_s"), learnt.metric("m2_s")):
        known = spread(runs[:-1], learnt_metric.id)
        assert known is not None
        assert learnt_metric.margin == pytest.approx(math.expm1(3.0 * math.sqrt(2.0 * known.variance)), rel=0.2)
    narrow = decide([runs[-1]], candidate, runs, Past(learnt=Bounds(0.2, 0.25), widest=None)).catalogue
    assert 0.2 <= narrow.metric("m0_s").margin <= 0.25
