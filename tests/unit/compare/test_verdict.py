"""Families of metrics: gating metrics as one family, Benjamini-Hochberg for the others, simulated error rates."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from chainmark.compare.family import Family, Gated, family_of
from chainmark.compare.judge import Bench, judge
from chainmark.compare.sides import SelectedRuns
from chainmark.compare.verdict import VerdictFinding, adjust, find, is_failure
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.metric import Better, Metric, MetricGroup, Population
from chainmark.core.verdict import Verdict
from chainmark.stats.sequential import Looks

from tests.unit.compare.metric_cases import ALONE, ONE_LOOK, loaded_run, metric, side


def catalogue(metrics: list[Metric]) -> Catalogue:
    populations = [Population(id="block", label="blocks", keys=["height"])]
    return Catalogue(
        system="x", title="X", populations=populations, tables=[MetricGroup(id="all", title="All")], metrics=metrics
    )


def sides(runs: int = 3) -> tuple[SelectedRuns, SelectedRuns]:
    loaded = [loaded_run("v1", 1.0, number) for number in range(runs)]
    return SelectedRuns("baseline", loaded, {}), SelectedRuns("candidate", loaded, {})


Values = Sequence[tuple[Metric, Sequence[float | None], Sequence[float | None]]]


def family_and_judgements(values: Values) -> tuple[Family, list[Judgement]]:
    runs = max(len(a) for _, a, _ in values), max(len(b) for *_, b in values)
    bench = Bench(looks=Looks((runs,), min(runs)))
    judged, gated = [], []
    for entry, a, b in values:
        left, right = side(a), side(b)
        judged.append(judge(entry, "mean", left, right, bench))
        if entry.gating:
            gated.append(Gated(entry, "mean", left, right, judged[-1]))
    family = family_of(gated, bench)
    return family, adjust(judged, family, catalogue([entry for entry, *_ in values]))


def verdict_of(values: Values) -> tuple[VerdictFinding, list[Judgement]]:
    described = catalogue([entry for entry, _, _ in values])
    family, adjusted = family_and_judgements(values)
    return find((adjusted, family), [], sides(), ("A", "B"), described, by_history=False), adjusted


def gating(index: int) -> Metric:
    return metric(id=f"g{index}_s", label=f"gating {index}", gating=True)


def three(ratio: float, deviation: float = 0.02) -> tuple[list[float], list[float]]:
    steps = [math.exp(deviation * step) for step in (-1.0, 0.0, 1.0)]
    return steps, [ratio * step for step in steps]


def test_one_clear_failure_among_equal_metrics_fails() -> None:
    finding, judged = verdict_of([(gating(0), *three(1.4)), *[(gating(i), *three(1.0)) for i in range(1, 7)]])
    assert finding.verdict is Verdict.FAIL
    assert [is_failure(item) for item in judged] == [True] + [False] * 6
    assert finding.sentence.startswith("B is worse than A: gating 0 +40.0 % (90 % interval +35.1 … +45.0 %)")


# Seven unrelated metrics with 2 % noise each. The metrics of `three` are correlated.
APART = 0.02 * np.random.default_rng(5).normal(size=(7, 2, 3))


def seven(worse: float) -> Values:
    """The first of seven unrelated metrics is worse by this ratio, with a p-value of about 1 % at a ratio of 1.16."""
    first = (gating(0), *three(worse))
    others = [(gating(i), np.exp(APART[i, 0]).tolist(), np.exp(APART[i, 1]).tolist()) for i in range(1, 7)]
    return [first, *others]


def test_a_metric_that_is_worse_only_by_itself_leaves_the_verdict_undecided() -> None:
    # +16 %: t = (log 1.16 - log 1.1) / SE = 0.0531 / 0.01633 = 3.25, p = 0.0157 with 4 degrees of freedom.
    finding, judged = verdict_of(seven(1.16))
    first = judged[0]
    assert first.outcome is Outcome.WORSE
    assert first.p_worse == pytest.approx(0.0157, abs=2e-4)
    assert first.p_worse_adjusted is not None
    assert ONE_LOOK < first.p_worse_adjusted <= 7 * 0.0157 + 0.01  # at most the Bonferroni correction
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.reasons[0].startswith("gating 0 is worse on its own, +16.0 %")
    assert "7 gating metrics are judged together" in finding.reasons[0]
    alone, _ = verdict_of([(gating(0), *three(1.16))])
    assert alone.verdict is Verdict.FAIL


def test_correlated_metrics_do_not_multiply_the_chances() -> None:
    """Seven copies of one metric are as much evidence as one, so the p-value is not multiplied by seven."""
    finding, judged = verdict_of([(gating(i), *three(1.16)) for i in range(7)])
    assert finding.verdict is Verdict.FAIL
    for item in judged:
        assert item.p_worse_adjusted == pytest.approx(item.p_worse, abs=0.01)


def test_three_jointly_worse_metrics_fail_although_none_is_worse_alone() -> None:
    """+15.5 % in one of three independent metrics could be chance, but not in all three."""
    noise = np.random.default_rng(0).normal(size=(3, 2, 3))
    noise -= noise.mean(axis=2, keepdims=True)
    noise *= 0.02 / noise.std(axis=2, ddof=1, keepdims=True)
    worse = [(gating(i), np.exp(a).tolist(), (1.155 * np.exp(b)).tolist()) for i, (a, b) in enumerate(noise)]
    finding, judged = verdict_of([*worse, *seven(1.0)[3:]])
    assert [is_failure(item) for item in judged] == [False] * 7
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith("B is worse than A in at least one of ")
    assert finding.reasons[0].startswith("together these are worse than their margins, although none is on its own: ")
    assert all(f"gating {i} " in finding.sentence for i in range(3))


def test_no_metric_is_worse_in_a_family_that_is_not_worse() -> None:
    """At any ratio, a metric is called worse only if the family is worse. Otherwise table and verdict would differ."""
    for step in range(12, 24):
        family, judged = family_and_judgements(seven(1.0 + step / 100))
        assert family.is_worse or not any(is_failure(item) for item in judged)


def test_a_lost_metric_does_not_make_a_failure_easier() -> None:
    whole, _ = family_and_judgements(seven(1.16))
    first = seven(1.16)[0]
    lost, judged = family_and_judgements([first, *((gating(i), [1.0], []) for i in range(1, 7))])
    assert not is_failure(judged[0])
    assert lost.adjusted[1:] == (None,) * 6
    assert judged[1].p_worse_adjusted is None
    assert (lost.adjusted[0] or 0.0) >= (whole.adjusted[0] or 0.0)
    some = [first, *((gating(i), [1.0, 1.0, None], [1.0, 1.0, 1.0]) for i in range(1, 7))]
    assert not is_failure(family_and_judgements(some)[1][0])


def test_single_runs_with_assumed_noise_are_corrected_by_holms_method() -> None:
    """One run per side has no table. The assumed noise is 10 %: p = P(Z > log(1.5 / 1.1) / (0.1 √2)) = 0.0142."""
    values: Values = [(gating(0), [1.0], [1.5]), *((gating(i), [1.0], [1.0]) for i in range(1, 3))]
    family, judged = family_and_judgements(values)
    assert judged[0].p_worse == pytest.approx(0.01416, abs=1e-4)
    assert judged[0].p_worse_adjusted == pytest.approx(3 * (judged[0].p_worse or 0.0))
    assert family.is_worse
    assert family.table is None
    more, _ = family_and_judgements([*values, (gating(3), [1.0], [1.0])])
    assert not more.is_worse


def test_diagnostics_are_corrected_and_small_changes_are_not_listed() -> None:
    def diagnostic(index: int) -> Metric:
        return metric(id=f"d{index}_s", label=f"diagnostic {index}", better=Better.NEITHER)

    _, judged = verdict_of(
        [
            (gating(0), *three(1.0)),
            (diagnostic(1), *three(1.3, 0.002)),  # changed
            (diagnostic(2), *three(1.015, 0.0001)),  # certain, but less than 2 %
            (diagnostic(3), *three(1.05, 0.02)),  # p = 0.04 alone, but not significant among four
            (diagnostic(4), *three(1.0)),
        ]
    )
    judgements = judged[1:]
    assert [item.moved for item in judgements] == [True, False, False, False]
    assert judgements[1].q_different is not None
    assert judgements[1].q_different < 0.05
    assert judgements[2].p_different == pytest.approx(0.0404, abs=1e-3)
    assert judgements[2].q_different == pytest.approx((judgements[2].p_different or 0.0) * 4 / 3)
    assert judged[0].q_different == judged[0].p_different  # gating metrics are corrected separately


def test_a_catalogue_without_gating_metrics_cannot_pass() -> None:
    finding, _ = verdict_of([(metric(), *three(1.0))])
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "no gating metric" in finding.sentence


def test_a_trend_is_named() -> None:
    finding, _ = verdict_of([(gating(0), *three(1.05))])
    assert finding.verdict is Verdict.PASS
    assert finding.sentence == "The only gating metric of B is shown to be within 10 % of A or better"
    assert any("worse by more than noise: +5.0 %" in text for text in finding.reasons)


def simulate(true_ratio: float, comparisons: int, metrics: int = 7, noise: float = 0.02) -> dict[Verdict, float]:
    """Shares of the verdicts on 3 + 3 runs in which the first metric truly changed by this ratio."""
    rng = np.random.default_rng(20)
    tally = dict.fromkeys(Verdict, 0)
    entries = [gating(index) for index in range(metrics)]
    described = catalogue(entries)
    pair = sides()
    for _ in range(comparisons):
        values = np.exp(noise * rng.normal(size=(metrics, 2, 3)))
        values[0, 1] *= true_ratio
        family, judged = family_and_judgements(
            [(e, v[0].tolist(), v[1].tolist()) for e, v in zip(entries, values, strict=True)]
        )
        tally[find((judged, family), [], pair, ("A", "B"), described, by_history=False).verdict] += 1
    return {verdict: count / comparisons for verdict, count in tally.items()}


def test_an_equal_release_practically_never_fails_and_nearly_always_passes() -> None:
    shares = simulate(1.0, 150)
    assert shares[Verdict.FAIL] == 0.0
    assert shares[Verdict.PASS] >= 0.95


def test_a_release_that_is_twenty_percent_worse_never_passes() -> None:
    shares = simulate(1.2, 150)
    assert shares[Verdict.PASS] == 0.0
    assert shares[Verdict.FAIL] >= 0.6


def test_twenty_percent_on_one_metric_is_called_worse() -> None:
    rng = np.random.default_rng(21)
    outcomes = []
    for _ in range(300):
        a, b = np.exp(0.02 * rng.normal(size=(2, 3)))
        outcomes.append(judge(gating(0), "mean", side(a.tolist()), side((1.2 * b).tolist()), ALONE).outcome)
    assert outcomes.count(Outcome.WORSE) / 300 >= 0.95


def test_both_errors_are_rare_at_the_margin_itself() -> None:
    rng = np.random.default_rng(22)
    outcomes = []
    for _ in range(600):
        a, b = np.exp(0.02 * rng.normal(size=(2, 3)))
        outcomes.append(judge(gating(0), "mean", side(a.tolist()), side((1.1 * b).tolist()), ALONE).outcome)
    assert outcomes.count(Outcome.WORSE) / 600 <= 0.07
    assert outcomes.count(Outcome.EQUAL) / 600 <= 0.07
