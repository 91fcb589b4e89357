"""Node profiles that explain a change: when and where they are shown, and a flame graph that can be zoomed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import vl_convert

from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.profiled import Frame, FunctionChange, ProfileChange, ProfileCost, Profiled
from chainmark.report.chart import Chart
from chainmark.report.flame import flame_graph
from chainmark.report.layouts import document_of
from chainmark.report.profile_parts import TITLE
from chainmark.report.vega import with_data

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.samples import sample

SLOW = "github.com/a/b/consensus.(*State).finalize"
CHANGE = ProfileChange(
    kind="cpu",
    label="CPU time",
    unit="s",
    per="transaction and node",
    baseline=2e-4,
    candidate=3e-4,
    functions=[
        FunctionChange(
            function=SLOW,
            baseline=1e-5,
            candidate=9e-5,
            low=7e-5,
            high=9e-5,
            within_baseline=2e-5,
            within_candidate=2e-4,
        ),
        FunctionChange(function="x/c.run", baseline=4e-5, candidate=5e-5, low=-1e-5, high=3e-5),
        FunctionChange(function="y/c.run", baseline=0.0, candidate=1e-6),
    ],
    functions_in_all=30,
    basis="between 4 nodes of one run per side",
    frames=[
        Frame(function="all", depth=0, begin=0.0, end=2.5e-4, baseline=2e-4, candidate=3e-4),
        Frame(function=SLOW, depth=1, begin=0.0, end=5e-5, baseline=1e-5, candidate=9e-5),
        Frame(function="gone", depth=1, begin=5e-5, end=1e-4, baseline=1e-4, candidate=0.0),
        Frame(function="(rest)", depth=1, begin=1e-4, end=1.1e-4, baseline=1e-5, candidate=1e-5, is_rest=True),
    ],
)
COST = ProfileCost(
    side="candidate", metric_id="goroutines", profiled=3.3, plain=3.0, low=None, high=None, n_profiled=1, n_plain=1
)


def _comparison(*, is_asked: bool = False, worse: bool = False, profiled: bool = True) -> Comparison:
    comparison = sample()
    outcome = Outcome.WORSE if worse else Outcome.EQUAL
    judged = [
        judgement.model_copy(update={"outcome": outcome}) if judgement.gating else judgement
        for judgement in comparison.judgements
    ]
    runs = {"baseline": ["run-7"], "candidate": ["run-8"]}
    why = Profiled(runs=runs, changes=[CHANGE], costs=[COST], notes=["candidate: a note"], is_asked=is_asked)
    return comparison.model_copy(update={"judgements": judged, "profiled": why if profiled else None})


def test_the_function_is_named_in_every_medium_if_a_metric_is_worse() -> None:
    document = document_of(_comparison(worse=True))
    for text in (document.markdown(), document.html(), document.text()):
        assert "consensus.(" in text
        assert "+80" in text
    shown = document.markdown()
    assert "the clearest change is in consensus.(\\*State).finalize (+80.0 µs)" in shown
    assert "x/c.run" in shown  # two functions with the same short name are distinguished
    assert "one run: no interval; 1 run with profiles, 1 without" in shown
    assert "A note." in shown or "Candidate: a note." in shown


def test_a_goroutine_that_waits_longer_is_named_although_their_number_is_unchanged() -> None:
    places = [
        FunctionChange(function="state.run", baseline=0.9, candidate=0.6, low=-0.4, high=-0.2),
        FunctionChange(function="state.run … state.apply", baseline=0.0, candidate=0.29, low=0.2, high=0.38),
    ]
    waiting = CHANGE.model_copy(
        update={"kind": "goroutine", "label": "goroutines", "unit": "", "per": "node", "baseline": 0.9,
                "candidate": 0.89, "functions": places}
    )  # fmt: skip
    comparison = _comparison(worse=True)
    assert comparison.profiled
    profiled = comparison.profiled.model_copy(update={"changes": [waiting]})
    shown = document_of(comparison.model_copy(update={"profiled": profiled})).markdown()
    assert "the clearest change is in state.run … state.apply (+0.290)" in shown
    assert "including callees" not in shown


def test_if_nothing_is_worse_only_the_existence_of_profiles_is_reported_unless_requested() -> None:
    passed = document_of(_comparison()).markdown().replace("\\", "")
    assert "Profiles of both sides are available: `--why` shows them (runs run-7 and run-8)." in passed
    assert "finalize" not in passed
    assert "finalize" in document_of(_comparison(is_asked=True)).markdown()
    assert TITLE not in document_of(_comparison(profiled=False)).markdown()


def test_a_comparison_without_profiles_has_no_fields_for_them() -> None:
    assert "profiled" not in json.loads(_comparison(profiled=False).model_dump_json())
    again = Comparison.model_validate_json(_comparison(worse=True).model_dump_json())
    assert again.profiled is not None
    assert again.profiled.changes == [CHANGE]


def test_colours_show_which_side_uses_more() -> None:
    rows = flame_graph(CHANGE, ("v0", "v1")).data["frames"]
    inks = dict(zip(rows["function"], rows["ink"], strict=True))
    assert inks["gone"] == "#56b4e9"  # the function is completely gone
    red, _, blue = (int(inks[SLOW][place : place + 2], 16) for place in (1, 3, 5))
    assert red > blue
    assert inks["(rest)"] == "#f5f5f5"


@pytest.mark.parametrize("interactive", [False, True])
def test_the_graph_is_a_valid_chart_specification(interactive: bool) -> None:
    spec = with_data(flame_graph(CHANGE, ("v0", "v1")), interactive=interactive)
    drawn = vl_convert.vegalite_to_svg({**spec, "width": 600})
    assert "consensus.(*Sta" in drawn
    assert ("focus" in json.dumps(spec)) is interactive


def test_the_graph_is_on_the_page_and_not_in_the_pdf(tmp_path: Path) -> None:
    document = document_of(_comparison(worse=True))
    page = page_without_complaints(document.html(), tmp_path)
    assert 'data-chart="flame-cpu"' in page
    paper = [block for section in document.sections if "pdf" in section.media for block in section.blocks]
    assert not any(isinstance(block, Chart) and block.id.startswith("flame") for block in paper)
