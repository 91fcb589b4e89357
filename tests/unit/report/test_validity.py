"""What a reader must know before trusting a comparison, each fact once."""

from __future__ import annotations

import pytest

from chainmark.core.build import BuildDifferences
from chainmark.core.comparison import Comparison
from chainmark.report.layouts import document_of
from chainmark.report.validity import concerns

from tests.unit.report.samples import sample


def _warned(*of_each: list[str]) -> list[str]:
    """The warnings on the page if the six runs, baseline first, have these warnings."""
    warned: Comparison = sample()
    sides, rest = [], list(of_each)
    for side in (warned.baseline, warned.candidate):
        runs = [run.model_copy(update={"warnings": rest.pop(0)}) for run in side.runs]
        sides.append(side.model_copy(update={"runs": runs}))
    comparison = warned.model_copy(update={"baseline": sides[0], "candidate": sides[1]})
    without = {item.text for item in concerns(comparison, warnings=False)}
    return [item.text for item in concerns(comparison, warnings=True) if item.text not in without]


@pytest.mark.parametrize(
    ("of_each", "message"),
    [
        ([["hot"]] * 6, ["all 6 runs: hot"]),
        ([["hot"]] * 3 + [[]] * 3, ["all 3 runs of v0.9: hot"]),
        ([[]] * 3 + [["hot", "hot"], ["hot"], ["hot", "wet"]], ["all 3 runs of v1.0: hot", "{5}: wet"]),
        ([["hot"], [], ["hot"], [], [], ["hot"]], ["{0}, {2} and {5}: hot"]),
        ([[], ["3 blocks lost"], ["4 blocks lost"], [], [], []], ["{1} and {2}: 3 to 4 blocks lost"]),
        ([["9 of 10"], ["7 of 12"], [], [], [], []], ["{0}: 9 of 10", "{1}: 7 of 12"]),
        (
            [["9 by node-2"], ["1,200 by node-2"], ["9 by node-3"], [], [], []],
            ["{0} and {1}: 9 to 1,200 by node-2", "{2}: 9 by node-3"],
        ),
        ([["of 10.5.4"], ["of 10.6.4"], [], [], [], []], ["{0}: of 10.5.4", "{1}: of 10.6.4"]),
    ],
)
def test_messages_common_to_several_runs_are_shown_once(of_each: list[list[str]], message: list[str]) -> None:
    """Otherwise the logs of six runs repeat the same sentences eighteen times before the first figure."""
    comparison = sample()
    names = [run.run_id for side in (comparison.baseline, comparison.candidate) for run in side.runs]
    assert _warned(*of_each) == [text.format(*names) for text in message]


def test_only_the_differing_entries_of_a_long_build_list_are_shown() -> None:
    """Go's defaults are thirty settings, and a reader looks for the two that differ."""
    shared = "a=1,b=2,c=3,d=4"
    facts = [("DefaultGODEBUG", f"{shared},old=1", f"new=0,{shared}"), ("compiler", "go1.23.1", "go1.24.0")]
    comparison = sample().model_copy(update={"builds": BuildDifferences(facts=facts)})
    text = document_of(comparison).html()
    assert "DefaultGODEBUG (without 4 equal entries)" in text
    assert "old=1" in text
    assert "new=0" in text
    table = text.split("DefaultGODEBUG (without")[1].split("</table>")[0]
    assert "a=1" not in table
    assert "go1.24.0" in table
