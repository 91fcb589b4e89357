"""The published rule, computed by hand: a change of more than 10 % in either direction, regardless of noise."""

from __future__ import annotations

import pytest

from chainmark.core.comparison import Comparison, ConditionDifference, Judgement, Outcome, Scale, SideValue
from chainmark.core.metric import SharedFact
from chainmark.systems.cometbft.ten_percent_rule.results import RuleConcordance, TenPercentRow
from chainmark.systems.cometbft.ten_percent_rule.rule import TenPerCent, ten_percent_rows
from chainmark.systems.cometbft.ten_percent_rule.tables import TenPercentVerdict

from tests.unit.compare.synthetic_runs import catalogue
from tests.unit.report.samples import sample


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """A comparison whose judgements the tests replace. With another block time, GC pauses are not comparable."""
    condition = SharedFact(
        id="time_source", label="block time", explanation="It differs.", makes_incomparable=["gc_pause_s"]
    )
    known = catalogue().model_copy(update={"conditions": [condition]})
    return sample().model_copy(update={"catalogue": known})


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


OTHER_TIME = ConditionDifference(
    id="time_source", label="block time", baseline="BFT", candidate="proposer-based", explanation="It differs."
)


def row_of(comparison: Comparison, item: Judgement, *differences: ConditionDifference) -> TenPercentRow:
    return ten_percent_rows(
        comparison.model_copy(update={"judgements": [item], "condition_differences": list(differences)})
    )[0]


@pytest.mark.parametrize(
    ("base", "other", "change", "fails"),
    [
        (1.0, 1.11, 0.11, True),
        (1.0, 1.09, 0.09, False),
        (2.0, 1.7, -0.15, True),  # the rule is about a difference, not about a worsening
        (10.0, 10.0, 0.0, False),
        (10.0, 11.0, 0.1, False),  # exactly 10 % is not more, although the quotient is rounded up
        (10.0, 9.0, -0.1, False),
        (10.0, 11.0000001, 0.10000001, True),
        (0.0, 0.0, None, False),
        (0.0, 3.0, None, True),  # a change from 0 exceeds any percentage
        (-2.0, -1.0, -0.5, True),
        (1e-320, 1e300, None, True),  # the ratio exceeds the largest number
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


NOISE = "+14.0 % (90 % interval −20.0 … +40.0 %)"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, f"within the noise of 3 + 3 runs: {NOISE} includes no change"),
        ({"low": 0.0}, "within the noise of 3 + 3 runs: +14.0 % (90 % interval 0.0 … +40.0 %) includes no change"),
        ({"high": 0.0}, "within the noise of 3 + 3 runs: +14.0 % (90 % interval −20.0 … 0.0 %) includes no change"),
        (
            {"low": 0.05},
            "too few runs to decide against its margin of 10 % (3 + 3 runs): +14.0 % (90 % interval +5.0 … +40.0 %)",
        ),
        (
            {"high": -0.05},
            "too few runs to decide against its margin of 10 % (3 + 3 runs): +14.0 % (90 % interval −20.0 … −5.0 %)",
        ),
        (
            {"low": 0.05, "scale": Scale.ABSOLUTE},
            "too few runs to decide against its margin of 100 ms (3 + 3 runs, judged as a difference): "
            "+0.14 s (90 % interval +0.05 … +0.40 s)",
        ),
        (
            {"low": 0.05, "margin_low": -0.5, "margin_high": 0.5, "outcome": Outcome.EQUAL},
            "+14.0 % (90 % interval +5.0 … +40.0 %) is within its margin of 50 %",
        ),
    ],
)
def test_the_reason_for_not_failing_a_worsening_states_its_figures(
    comparison: Comparison, changes: dict[str, object], why: str
) -> None:
    assert row_of(comparison, judgement("gc_pause_s", 1.0, 1.14, **changes)).why == why


@pytest.mark.parametrize(
    ("metric_id", "base", "other", "reason"),
    [
        ("rounds_extra_count", 0.06, 0.12, "too small to matter: the change is less than 0.1"),
        ("rounds_extra_count", 0.0, 0.1, "within the noise"),  # as large as the floor
        ("rounds_extra_count", 0.0, 0.5, "within the noise"),  # more of them, from none
        ("committed_tx_per_s", 0.5, 0.0, "within the noise"),  # none at all
    ],
)
def test_a_change_from_or_to_nothing_is_a_worsening(
    comparison: Comparison, metric_id: str, base: float, other: float, reason: str
) -> None:
    row = row_of(comparison, judgement(metric_id, base, other, scale=Scale.ABSOLUTE, change=other - base))
    assert (row.concordance, row.why[: len(reason)]) == (RuleConcordance.ONLY_OLD_FAILS, reason)


SHOWN_WORSE = {"outcome": Outcome.WORSE, "p_worse_adjusted": 0.001}


@pytest.mark.parametrize(
    ("metric_id", "other", "changes", "results"),
    [
        ("gc_pause_s", 1.01, {"outcome": Outcome.EQUAL}, (False, RuleConcordance.BOTH_PASS)),
        ("gc_pause_s", 1.01, {}, (False, RuleConcordance.UNDECIDED)),
        ("block_size_bytes", 1.01, {}, (False, RuleConcordance.BOTH_PASS)),  # no direction is worse
        ("gc_pause_s", 1.01, {"change": None, "outcome": Outcome.NO_DATA}, (False, RuleConcordance.NOT_JUDGED)),
        ("gc_pause_s", None, {"outcome": Outcome.NO_DATA}, (False, RuleConcordance.NO_DATA)),
        ("gc_pause_s", 1.5, SHOWN_WORSE, (True, RuleConcordance.BOTH_FAIL)),
        # Worse by itself, but neither gating nor shown together with the others: a reader sees it as worse.
        ("gc_pause_s", 1.5, {"outcome": Outcome.WORSE, "gating": False}, (True, RuleConcordance.BOTH_FAIL)),
    ],
)
def test_each_pair_of_results_has_its_name(
    comparison: Comparison,
    metric_id: str,
    other: float | None,
    changes: dict[str, object],
    results: tuple[bool, RuleConcordance],
) -> None:
    row = row_of(comparison, judgement(metric_id, 1.0, other, **changes))
    assert (row.ours_fails, row.concordance) == results
    assert (row.why == "") is (row.concordance is not RuleConcordance.UNDECIDED)


@pytest.mark.parametrize(
    ("other", "changes", "ours", "concordance"),
    [
        (1.5, {"outcome": Outcome.WORSE}, False, RuleConcordance.NOT_COMPARABLE),
        (1.5, SHOWN_WORSE, True, RuleConcordance.NOT_COMPARABLE),  # it was judged all the same
        (None, {"outcome": Outcome.NO_DATA}, False, RuleConcordance.NO_DATA),
    ],
)
def test_a_metric_of_another_meaning_is_not_comparable(
    comparison: Comparison,
    other: float | None,
    changes: dict[str, object],
    ours: bool,
    concordance: RuleConcordance,
) -> None:
    row = row_of(comparison, judgement("gc_pause_s", 1.0, other, **changes), OTHER_TIME)
    assert (row.ours_fails, row.concordance) == (ours, concordance)
    assert row.why == ("" if other is None else "not comparable: block time differs (BFT against proposer-based)")


def test_a_row_has_the_names_and_values_of_its_judgement(comparison: Comparison) -> None:
    assert row_of(comparison, judgement("gc_pause_s", 2.0, 2.0, outcome=Outcome.EQUAL)) == TenPercentRow(
        metric_id="gc_pause_s", statistic="mean", label="GC pause", unit="s", gating=True, baseline=2.0, candidate=2.0,
        change=0.0, old_fails=False, outcome="equal", ours_fails=False, concordance=RuleConcordance.BOTH_PASS, why="",
    )  # fmt: skip


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


DIFFERING = judgement("gc_pause_s", 1.0, 1.14)
CLOSE = judgement("gc_pause_s", 1.0, 1.01, outcome=Outcome.EQUAL)
ABSENT = judgement("gc_pause_s", None, 1.0, outcome=Outcome.NO_DATA)


@pytest.mark.parametrize(
    ("items", "differences", "verdict"),
    [
        ([ABSENT], [], TenPercentVerdict(fails=False, judged=0, differing=0, disagreements=0,
         sentence="There were no figures to judge.")),
        ([CLOSE, CLOSE, ABSENT], [], TenPercentVerdict(fails=False, judged=2, differing=0, disagreements=0,
         sentence="0 of 2 judged figures differ by more than 10 %, so by the rule of the published reports the release "
         "passes; the two rules disagree on 0 figures.")),
        ([DIFFERING, CLOSE, ABSENT], [], TenPercentVerdict(fails=True, judged=2, differing=1, disagreements=1,
         sentence="1 of 2 judged figures differs by more than 10 %, so by the rule of the published reports the "
         "release fails; the two rules disagree on 1 figure.")),
        ([DIFFERING, CLOSE], [OTHER_TIME], TenPercentVerdict(fails=True, judged=2, differing=1, disagreements=0,
         sentence="1 of 2 judged figures differs by more than 10 %, so by the rule of the published reports the "
         "release fails; the two rules disagree on 0 figures, and 1 of the differing figures cannot be compared.")),
    ],
)  # fmt: skip
def test_the_summary_counts_figures_and_disagreements(
    comparison: Comparison,
    items: list[Judgement],
    differences: list[ConditionDifference],
    verdict: TenPercentVerdict,
) -> None:
    rule = TenPerCent()
    judged = comparison.model_copy(update={"judgements": items, "condition_differences": differences})
    assert rule.verdict(rule.rows(judged)) == verdict
