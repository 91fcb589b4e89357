"""A metric whose meaning depends on a condition is shown but not judged if the condition differs."""

from __future__ import annotations

import pytest

from chainmark.compare import compare
from chainmark.core.comparison import Comparison, Judgement, Outcome
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of

from tests.unit.compare.synthetic_runs import SyntheticRun, run, sides

BECAUSE = "not comparable: block time differs (BFT against proposer-based)"


def _compared(
    metric_ids: list[str], baseline: list[SyntheticRun], candidate: list[SyntheticRun]
) -> tuple[Comparison, dict[str, Judgement]]:
    for synthetic in [*baseline, *candidate]:
        (condition,) = synthetic.catalogue.conditions
        changed = condition.model_copy(update={"makes_incomparable": metric_ids})
        synthetic.catalogue = synthetic.catalogue.model_copy(update={"conditions": [changed]})
    comparison = compare(baseline, candidate, tool_version="test")
    return comparison, {item.metric_id: item for item in comparison.judgements}


def test_a_diagnostic_with_a_different_meaning_is_shown_and_not_judged() -> None:
    comparison, judgements = _compared(["proposal_delay_s"], *sides({"proposal_delay_s": 2.5, "goroutines_count": 0.7}))
    delay = judgements["proposal_delay_s"]
    assert (delay.outcome, delay.note) == (Outcome.NOT_COMPARABLE, BECAUSE)
    assert (delay.change, delay.p_different, delay.moved) == (None, None, False)
    # Both values are still shown, and the other metrics are judged as usual.
    assert delay.baseline.value is not None
    assert delay.candidate.value == pytest.approx(2.5 * delay.baseline.value, rel=0.1)
    assert judgements["goroutines_count"].moved
    assert comparison.verdict is Verdict.PASS
    assert "not comparable" in document_of(comparison).markdown()


def test_a_gating_metric_with_a_different_meaning_is_neither_a_failure_nor_a_pass() -> None:
    comparison, judgements = _compared(["block_interval_s"], *sides({"block_interval_s": 1.5}))
    assert judgements["block_interval_s"].outcome is Outcome.NOT_COMPARABLE
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert f"block interval is {BECAUSE}" in comparison.reasons


def test_the_metric_is_judged_if_both_sides_share_the_condition() -> None:
    baseline = [run("v1.0.0", number, seed=number) for number in (1, 2, 3)]
    candidate = [run("v1.0.1", number, side="candidate", seed=10 + number) for number in (1, 2, 3)]
    comparison, judgements = _compared(["proposal_delay_s"], baseline, candidate)
    assert comparison.condition_differences == []
    assert judgements["proposal_delay_s"].outcome is not Outcome.NOT_COMPARABLE
    assert judgements["proposal_delay_s"].change is not None
