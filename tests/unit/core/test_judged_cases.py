"""Verdicts in sentences and on badges, and the cases and suites of a document as data for a pipeline."""

from __future__ import annotations

import math

import pytest

from chainmark.core.verdict import Case, Suite, Verdict


@pytest.mark.parametrize(
    ("verdict", "one", "several"),
    [
        (Verdict.FAIL, "fails", "fail"),
        (Verdict.INVALID, "cannot be judged", "cannot be judged"),
        (Verdict.NOT_RUN, "was not run", "were not run"),
        (Verdict.PASS, "passes", "pass"),
        (Verdict.INCONCLUSIVE, "is inconclusive", "are inconclusive"),
        (Verdict.GENERATOR_LIMITED, "is generator-limited", "are generator-limited"),
    ],
)
def test_a_verdict_is_the_verb_of_one_or_several_subjects(verdict: Verdict, one: str, several: str) -> None:
    assert (verdict.predicate(), verdict.predicate(1)) == (one, one)
    assert (verdict.predicate(2), verdict.predicate(3)) == (several, several)


def test_a_badge_has_the_word_of_its_verdict_in_capitals() -> None:
    assert (Verdict.PASS.capitals, Verdict.NOT_RUN.capitals) == ("PASS", "NOT RUN")


def test_a_suite_is_written_with_all_properties_and_the_figures_that_json_can_represent() -> None:
    """Pipelines read these keys. An infinite figure would make the whole file unreadable for many of them."""
    figures: dict[str, float | str] = {"rate, tx/s": 12.5, "limit": "none", "loss, %": 0.0, "mean, s": math.nan}
    late = Case("late", "p99", Verdict.FAIL, "too late", figures={**figures, "p99, s": math.inf}, seconds=1.5)
    suite = Suite("v2", [late], [("commit", "abc")], started_at="2026-01-02", output=["a"], messages=["b"])
    case = {"id": "late", "label": "p99", "verdict": "fail", "gates": True, "reason": "too late", "seconds": 1.5}
    assert late.plain() == case
    assert suite.plain() == {
        "name": "v2",
        "started_at": "2026-01-02",
        "properties": {"commit": "abc"},
        "cases": [{**case, "figures": {"rate, tx/s": 12.5, "limit": "none", "loss, %": 0.0}}],
    }
