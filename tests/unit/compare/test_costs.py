"""The costs of a deliberate change: what became more and what less, without a judgement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainmark.compare.costs import costs_of
from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.verdict import VerdictFinding
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.metric import Better
from chainmark.core.verdict import Verdict

from tests.unit.compare.test_past import noisy
from tests.unit.compare.test_releases import run
from tests.unit.compare.test_verdict_words import described, item

UP, DOWN = {"change": 0.05, "low": 0.03, "high": 0.07}, {"change": -0.2, "low": -0.25, "high": -0.15}
MORE, LESS = "+5.0 % (90 % interval +3.0 … +7.0 %)", "−20.0 % (90 % interval −25.0 … −15.0 %)"


def _decided(items: list[Judgement], better: Better = Better.LOWER) -> Decided:
    """Two sides with these judgements."""
    catalogue: Catalogue = described([item.metric_id.removesuffix("_s") for item in items], better=better)
    decided = decide([run("v1", 0, [1.0] * 6)], [run("v2", 1, [1.0] * 6)])
    return replace(decided, judgements=items, catalogue=catalogue, labels=("A", "B"))


def _item(name: str, beyond_noise: bool | None, **changes: Any) -> Judgement:
    return item(name, Outcome.WORSE, beyond_noise=beyond_noise, **changes)


UNMOVED = "1 gating metric moved no more than re-runs do"
NONE_UNMOVED = "0 gating metrics moved no more than re-runs do"


@pytest.mark.parametrize(
    ("items", "better", "expected"),
    [
        (
            [_item("a", True, **UP), _item("b", True, **DOWN), _item("c", False)],
            Better.LOWER,
            f"more: metric a {MORE}; less: metric b {LESS}; {UNMOVED}",
        ),
        (
            [_item("a", True, **UP), _item("b", True, **DOWN), _item("c", False)],
            Better.HIGHER,  # a lower throughput is a cost
            f"more: metric b {LESS}; less: metric a {MORE}; {UNMOVED}",
        ),
        ([_item("a", True, **UP), _item("b", True, **UP)], Better.LOWER,
         f"more: metric a {MORE} and metric b {MORE}; {NONE_UNMOVED}"),
        ([_item("a", True, **DOWN)], Better.LOWER, f"less: metric a {LESS}; {NONE_UNMOVED}"),
        ([_item("a", False, **UP), _item("b", False, **DOWN)], Better.LOWER,
         "2 gating metrics moved no more than re-runs do"),
        ([_item("a", True, gating=False), _item("b", False, gating=False), _item("c", False)], Better.LOWER, UNMOVED),
    ],
)  # fmt: skip
def test_changes_beyond_noise_are_listed_as_more_or_less_cost(
    items: list[Judgement], better: Better, expected: str
) -> None:
    finding = costs_of(_decided(items, better))
    assert finding == VerdictFinding(Verdict.INFORMATIONAL, f"cost of B against A: {expected}", [], [])


def test_gating_metrics_without_figures_have_unknown_costs() -> None:
    items = [_item("a", None), _item("b", False), _item("c", None), _item("d", None, gating=False)]
    finding = costs_of(_decided(items))
    assert finding.sentence == f"cost of B against A: {UNMOVED}"
    assert finding.reasons == ["the cost in 2 gating metrics is unknown"]


def test_costs_of_sides_that_must_not_be_compared_are_unknown() -> None:
    decided = _decided([_item("a", True)])
    invalid = VerdictFinding(Verdict.INVALID, "the loads differ", ["why"], ["what next"])
    assert costs_of(replace(decided, finding=invalid)) == invalid


def test_noise_from_earlier_releases_is_reported_before_unknown_costs() -> None:
    runs = noisy()
    decided = decide([runs[-1]], [run("v1.99", 99, [1.0] * 6)], runs, Past())
    first, *others = decided.judgements
    unknown_first = first.model_copy(update={"beyond_noise": None})
    noise, unknown = costs_of(replace(decided, judgements=[unknown_first, *others])).reasons
    assert noise in decided.finding.reasons
    assert noise.startswith("noise between runs: history of 11 builds")
    assert unknown == "the cost in 1 gating metric is unknown"
