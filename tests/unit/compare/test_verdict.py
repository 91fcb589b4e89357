"""Families of metrics: Holm over the gating ones, Benjamini-Hochberg over the others; error rates by simulation."""

import math

import numpy as np
import pytest

from chainmark.compare.judge import Judged, judge
from chainmark.compare.sides import SelectedRuns
from chainmark.compare.verdict import Finding, adjust, find, is_failure
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Outcome
from chainmark.core.metric import Better, Metric, Population, Table
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import NO_ARCHIVE, metric, side, stub_run


def catalogue(metrics: list[Metric]) -> Catalogue:
    populations = [Population(id="block", label="blocks", keys=["height"])]
    return Catalogue(
        system="x", title="X", populations=populations, tables=[Table(id="all", title="All")], metrics=metrics
    )


def sides(runs: int = 3) -> tuple[SelectedRuns, SelectedRuns]:
    loaded = [stub_run("v1", 1.0, number) for number in range(runs)]
    return SelectedRuns("baseline", loaded, {}), SelectedRuns("candidate", loaded, {})


def verdict_of(values: list[tuple[Metric, list[float], list[float]]]) -> tuple[Finding, list[Judged]]:
    described = catalogue([entry for entry, _, _ in values])
    judged = [judge(entry, "mean", side(a), side(b), NO_ARCHIVE) for entry, a, b in values]
    adjusted = adjust(judged, described)
    return find(adjusted, [], sides(), ("A", "B"), described), adjusted


def gating(index: int) -> Metric:
    return metric(id=f"g{index}_s", label=f"gating {index}", gating=True)


def three(ratio: float, deviation: float = 0.02) -> tuple[list[float], list[float]]:
    steps = [math.exp(deviation * step) for step in (-1.0, 0.0, 1.0)]
    return steps, [ratio * step for step in steps]


def test_one_clear_failure_among_equal_metrics_fails() -> None:
    found, judged = verdict_of([(gating(0), *three(1.4)), *[(gating(i), *three(1.0)) for i in range(1, 7)]])
    assert found.verdict is Verdict.FAIL
    assert [is_failure(item.judgement) for item in judged] == [True] + [False] * 6
    assert found.sentence.startswith("B is worse than A: gating 0 +40.0 % (90 % interval +35.2 … +45.0 %)")


def test_a_metric_that_is_worse_only_before_holm_leaves_the_verdict_open() -> None:
    # +16 %: t = (log 1.16 - log 1.1) / SE = 0.0531 / 0.01633 = 3.25, p = 0.0157 with 4 degrees; times 7 is 0.11.
    found, judged = verdict_of([(gating(0), *three(1.16)), *[(gating(i), *three(1.0)) for i in range(1, 7)]])
    first = judged[0].judgement
    assert first.outcome is Outcome.WORSE
    assert first.p_worse == pytest.approx(0.0157, abs=2e-4)
    assert first.p_worse_holm == pytest.approx(7 * (first.p_worse or 0.0))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "looks worse" in found.reasons[0]
    assert "7 gating metrics are judged together" in found.reasons[0]
    assert any("confirm or refute" in text for text in found.advice)
    alone, _ = verdict_of([(gating(0), *three(1.16))])
    assert alone.verdict is Verdict.FAIL


def test_a_lost_metric_does_not_make_a_failure_easier() -> None:
    values = [(gating(0), *three(1.16)), *[(gating(i), [1.0], []) for i in range(1, 7)]]
    described = catalogue([entry for entry, _, _ in values])
    judged = [judge(e, "mean", side(a), side(b), NO_ARCHIVE) for e, a, b in values]
    adjusted = adjust(judged, described)
    assert not is_failure(adjusted[0].judgement)
    assert adjusted[1].judgement.p_worse_holm is None


def test_diagnostics_are_corrected_and_small_moves_are_not_listed() -> None:
    def diagnostic(index: int) -> Metric:
        return metric(id=f"d{index}_s", label=f"diagnostic {index}", better=Better.NEITHER)

    _, judged = verdict_of(
        [
            (gating(0), *three(1.0)),
            (diagnostic(1), *three(1.3, 0.002)),  # moved
            (diagnostic(2), *three(1.015, 0.0001)),  # certain, but below 2 %
            (diagnostic(3), *three(1.05, 0.02)),  # p = 0.04 alone, but not among four
            (diagnostic(4), *three(1.0)),
        ]
    )
    found = [item.judgement for item in judged[1:]]
    assert [item.moved for item in found] == [True, False, False, False]
    assert found[1].q_different is not None
    assert found[1].q_different < 0.05
    assert found[2].p_different == pytest.approx(0.0404, abs=1e-3)
    assert found[2].q_different == pytest.approx((found[2].p_different or 0.0) * 4 / 3)
    assert judged[0].judgement.q_different is None


def test_a_catalogue_without_gating_metrics_cannot_pass() -> None:
    found, _ = verdict_of([(metric(), *three(1.0))])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "no gating metric" in found.sentence


def test_a_trend_is_named() -> None:
    found, _ = verdict_of([(gating(0), *three(1.05))])
    assert found.verdict is Verdict.PASS
    assert found.sentence == "The only gating metric of B is shown to be within 10 % of A or better"
    assert any("worse by more than noise: +5.0 %" in text for text in found.reasons)


def simulate(true_ratio: float, comparisons: int, metrics: int = 7, noise: float = 0.02) -> dict[Verdict, float]:
    """Shares of the verdicts of 3 + 3 runs whose first metric truly changed by the ratio."""
    rng = np.random.default_rng(20)
    tally = dict.fromkeys(Verdict, 0)
    entries = [gating(index) for index in range(metrics)]
    described = catalogue(entries)
    pair = sides()
    for _ in range(comparisons):
        judged = []
        for index, entry in enumerate(entries):
            a, b = np.exp(noise * rng.normal(size=(2, 3)))
            b = b * (true_ratio if index == 0 else 1.0)
            judged.append(judge(entry, "mean", side(a.tolist()), side(b.tolist()), NO_ARCHIVE))
        tally[find(adjust(judged, described), [], pair, ("A", "B"), described).verdict] += 1
    return {verdict: count / comparisons for verdict, count in tally.items()}


def test_an_equal_release_practically_never_fails_and_nearly_always_passes() -> None:
    shares = simulate(1.0, 150)
    assert shares[Verdict.FAIL] == 0.0
    assert shares[Verdict.PASS] >= 0.95


def test_a_release_that_is_twenty_percent_worse_never_passes() -> None:
    shares = simulate(1.2, 150)
    assert shares[Verdict.PASS] == 0.0
    assert shares[Verdict.FAIL] >= 0.5


def test_twenty_percent_on_one_metric_is_called_worse() -> None:
    rng = np.random.default_rng(21)
    outcomes = []
    for _ in range(300):
        a, b = np.exp(0.02 * rng.normal(size=(2, 3)))
        outcomes.append(
            judge(gating(0), "mean", side(a.tolist()), side((1.2 * b).tolist()), NO_ARCHIVE).judgement.outcome
        )
    assert outcomes.count(Outcome.WORSE) / 300 >= 0.95


def test_at_the_margin_itself_either_error_is_rare() -> None:
    rng = np.random.default_rng(22)
    outcomes = []
    for _ in range(600):
        a, b = np.exp(0.02 * rng.normal(size=(2, 3)))
        outcomes.append(
            judge(gating(0), "mean", side(a.tolist()), side((1.1 * b).tolist()), NO_ARCHIVE).judgement.outcome
        )
    assert outcomes.count(Outcome.WORSE) / 600 <= 0.07
    assert outcomes.count(Outcome.EQUAL) / 600 <= 0.07
