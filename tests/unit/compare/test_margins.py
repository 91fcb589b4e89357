"""Margins that a user sets: they decide, the verdict names them, and mistyped ones are rejected."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chainmark.api.context import as_margins
from chainmark.compare import compare
from chainmark.compare.decide import of_measured
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.errors import UsageError

from tests.unit.compare.synthetic_runs import sides

LATENCY = "tx_latency_s"
SET = "margins set for this comparison: "


def _compared(margins: Mapping[str, float]) -> Comparison:
    """A comparison with a candidate that has 15 % more latency."""
    both_sides = sides({LATENCY: 1.15}, run_noise=0.005)
    return compare(*both_sides, margins=margins, tool_version="test")


def _outcomes(comparison: Comparison) -> set[Outcome]:
    return {item.outcome for item in comparison.judgements if item.metric_id == LATENCY}


@pytest.mark.parametrize(
    ("margin", "outcome", "verdict"), [(0.05, Outcome.WORSE, "fail"), (0.30, Outcome.EQUAL, "pass")]
)
def test_a_margin_decides_and_is_named(margin: float, outcome: Outcome, verdict: str) -> None:
    compared = _compared({LATENCY: margin})
    assert _outcomes(compared) == {outcome}
    assert compared.verdict == verdict
    named = [reason for reason in compared.reasons if reason.startswith(SET)]
    assert len(named) == 1
    assert named[0].count(f"{margin * 100:g} %") == len(_outcomes(compared)) * 2  # for its median and its tail
    assert not [reason for reason in _compared({}).reasons if reason.startswith(SET)]


def test_the_stored_comparison_has_the_margin_it_was_judged_by() -> None:
    """A document that is read from its JSON must show the margin that decided."""
    again = Comparison.model_validate_json(_compared({LATENCY: 0.3}).model_dump_json())
    assert again.catalogue.metric(LATENCY).margin == 0.3
    assert {item.margin_high for item in again.judgements if item.metric_id == LATENCY} == {0.3}


@pytest.mark.parametrize("margins", [{"tx_latncy_s": 0.2}, {LATENCY: 0.0}, {LATENCY: -0.1}, {LATENCY: float("inf")}])
def test_an_unusable_margin_is_rejected(margins: Mapping[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(margins))):
        _compared(margins)


def test_margins_of_metrics_that_a_scenario_does_not_measure_apply_to_other_scenarios() -> None:
    runs = sides()[0]
    assert of_measured({LATENCY: 0.2, "blocks_behind": 0.3}, runs) == {LATENCY: 0.2}


@pytest.mark.parametrize("text", [f"{LATENCY}=20%", f"{LATENCY} = 20 %", f"{LATENCY}=20.0%"])
def test_margins_are_percentages(text: str) -> None:
    assert as_margins([text]) == {LATENCY: 0.2}


@pytest.mark.parametrize("text", [f"{LATENCY}=0.2", LATENCY, "=20%", f"{LATENCY}=-20%", f"{LATENCY}=twenty%"])
def test_a_margin_without_a_percent_sign_is_rejected(text: str) -> None:
    """0.2 could mean 20 % or 0.2 %."""
    with pytest.raises(UsageError, match="is not a margin"):
        as_margins([text])
