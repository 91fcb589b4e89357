"""The published rule, computed by hand: a change of more than 10 % in either direction, regardless of noise."""

from __future__ import annotations

import pytest

from chainmark.compare import compare
from chainmark.core.comparison import Comparison, Judgement, Outcome, Scale, SideValue
from chainmark.systems.cometbft.ten_percent_rule.results import RuleConcordance, TenPercentRow
from chainmark.systems.cometbft.ten_percent_rule.rule import ten_percent_rows, ten_percent_verdict

from tests.unit.compare.synthetic_runs import sides


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """A comparison of two equal sides, whose judgements the tests replace."""
    return compare(*sides(seconds=20), tool_version="test")


def judgement(metric_id: str, base: float | None, other: float | None, **changes: object) -> Judgement:
    """A judgement with these values and the resulting change."""
    known = base is not None and other is not None and base != 0.0
    plain = Judgement(
        metric_id=metric_id,
        statistic="mean",
        gating=True,
        baseline=SideValue(value=base, per_run=[base] * 3, samples=30),
        candidate=SideValue(value=other, per_run=[other] * 3, samples=30),
        scale=Scale.RELATIVE,
        change=(other or 0.0) / (base or 1.0) - 1.0 if known else None,
        low=-0.2,
        high=0.4,
        margin_low=-0.1,
        margin_high=0.1,
        outcome=Outcome.INCONCLUSIVE,
    )
    return plain.model_copy(update=changes)


def row_of(comparison: Comparison, item: Judgement) -> TenPercentRow:
    return ten_percent_rows(comparison.model_copy(update={"judgements": [item], "condition_differences": []}))[0]


@pytest.mark.parametrize(
    ("base", "other", "change", "fails"),
    [
        (1.0, 1.11, 0.11, True),
        (1.0, 1.09, 0.09, False),
        (2.0, 1.7, -0.15, True),  # the rule is about a difference, not about a worsening
        (10.0, 10.0, 0.0, False),
        (0.0, 0.0, None, False),
        (0.0, 3.0, None, True),  # a change from 0 exceeds any percentage
        (-2.0, -1.0, -0.5, True),
        (None, 1.0, None, None),
    ],
)
def test_the_ten_percent_rule_matches_hand_computed_values(
    comparison: Comparison, base: float | None, other: float | None, change: float | None, fails: bool | None
) -> None:
    row = row_of(comparison, judgement("gc_pause_s", base, other))
    assert row.old_fails is fails
    assert row.change == (None if change is None else pytest.approx(change))


def test_each_disagreement_has_a_reason(comparison: Comparison) -> None:
    """A reader must see whether noise, the direction or the size makes the old rule wrong."""
    noisy = row_of(comparison, judgement("gc_pause_s", 1.0, 1.14))
    assert noisy.concordance is RuleConcordance.ONLY_OLD_FAILS
    assert "within the noise of 3 + 3 runs" in noisy.why
    close = row_of(comparison, judgement("gc_pause_s", 1.0, 1.14, low=0.05))
    assert "too few runs to decide against its margin of 10 %" in close.why
    better = row_of(comparison, judgement("gc_pause_s", 1.0, 0.5, outcome=Outcome.BETTER))
    assert better.why == "the difference is an improvement"
    more = row_of(comparison, judgement("committed_tx_per_s", 1.0, 2.0, outcome=Outcome.BETTER))
    assert more.why == "the difference is an improvement"
    either = row_of(comparison, judgement("block_size_bytes", 1.0, 2.0))
    assert either.why.startswith("neither direction is better")
    small = row_of(comparison, judgement("rounds_extra_count", 0.01, 0.05))
    assert small.why.startswith("too small to matter")


def test_both_rules_fail_a_clear_regression(comparison: Comparison) -> None:
    worse = judgement("gc_pause_s", 1.0, 1.5, low=0.4, high=0.6, outcome=Outcome.WORSE, p_worse_adjusted=0.001)
    assert row_of(comparison, worse).concordance is RuleConcordance.BOTH_FAIL


def test_our_rule_may_fail_what_the_old_rule_passes(comparison: Comparison) -> None:
    """A committed share that falls from 100 % to 95 % is within 10 %, but exceeds its margin of 1 %."""
    values = {"scale": Scale.ABSOLUTE, "change": -0.05, "low": -0.06, "high": -0.04}
    margins = {"margin_low": -0.01, "margin_high": 0.01, "outcome": Outcome.WORSE, "p_worse_adjusted": 0.001}
    row = row_of(comparison, judgement("committed_share", 1.0, 0.95, **values, **margins))
    assert row.concordance is RuleConcordance.ONLY_OURS_FAILS
    assert "beyond its margin" in row.why


def test_the_counts_of_the_summary_are_correct(comparison: Comparison) -> None:
    rows = [
        row_of(comparison, judgement("gc_pause_s", 1.0, 1.14)),
        row_of(comparison, judgement("gc_pause_s", 1.0, 1.01, outcome=Outcome.EQUAL)),
        row_of(comparison, judgement("gc_pause_s", None, 1.0, change=None, outcome=Outcome.NO_DATA)),
    ]
    verdict = ten_percent_verdict(rows)
    assert (verdict.fails, verdict.judged, verdict.differing, verdict.disagreements) == (True, 2, 1, 1)
    assert ten_percent_verdict([]).fails is False
