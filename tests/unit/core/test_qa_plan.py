"""The plan of a qualification: the mistakes that are rejected, and the runs that its scenarios make."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chainmark.core.qa_plan import QaPlan, ScenarioPlan

BASE: dict[str, Any] = {"id": "one", "title": "One", "question": "Is it?", "method": "So.", "profile": "cometbft/demo"}
BASELINE, CANDIDATE = {"id": "baseline", "version": "baseline"}, {"id": "candidate", "version": "candidate"}
FAR = {"id": "far", "version": "candidate"}
SHOWN: dict[str, Any] = {"kind": "informational", "gating": False}
PLOTS = [{"id": name, "title": name, "metric": "x_s", "y_label": "s"} for name in ("memory", "latency", "rate")]


def _scenario(**changes: object) -> ScenarioPlan:
    return ScenarioPlan.model_validate({**BASE, **changes})


def _plan(*scenarios: dict[str, Any]) -> QaPlan:
    return QaPlan.model_validate({
        "system": "cometbft", "name": "n", "title": "T", "description": "D.", "plot": PLOTS,
        "scenario": [{**BASE, **scenario} for scenario in scenarios],
    })  # fmt: skip


TWO_SIDES = "the scenario `one` is judged, so its sides are `baseline` and `candidate`"
NO_JUDGES = "the scenario `one` is not a gating comparison: remove `judges`"
NO_CORES = (
    "the scenario `one` judges speed, so its runs cannot share the machine: remove `cores`, or list in `judges` what "
    "it judges"
)
NO_LIMIT = (
    "`most_runs` does not apply to the scenario `one`: only a gating comparison without `repetitions` runs until it "
    "is decided"
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({**SHOWN, "sides": [FAR, FAR]}, "the scenario `one` has two sides with the same id"),
        ({**SHOWN, "sides": [FAR, BASELINE]}, None),
        ({**SHOWN, "sides": [FAR]}, None),
        ({"sides": [BASELINE, CANDIDATE]}, None),
        ({"sides": [CANDIDATE, BASELINE]}, TWO_SIDES),
        ({"sides": [BASELINE]}, TWO_SIDES),
        ({"sides": [BASELINE, FAR], "gating": False}, TWO_SIDES),
        ({"sides": [FAR], "kind": "sweep"}, TWO_SIDES),
        ({"kind": "informational"}, "the scenario `one` is informational, so it must have `gating = false`"),
        ({"kind": "sweep"}, None),
        ({"judges": ["x_s"]}, None),
        ({"judges": []}, None),
        ({"judges": ["x_s"], "gating": False}, NO_JUDGES),
        ({"judges": [], "gating": False}, NO_JUDGES),
        ({"judges": ["x_s"], "kind": "sweep"}, NO_JUDGES),
        ({"judges": [], **SHOWN}, NO_JUDGES),
        ({"cores": 0.5}, NO_CORES),
        ({"cores": 0.5, "kind": "sweep", "gating": False}, NO_CORES),
        ({"cores": 0.5, "kind": "sweep"}, NO_CORES),
        ({"cores": 0.5, "judges": []}, None),
        ({"cores": 0.5, "judges": ["x_s"]}, None),
        ({"cores": 0.5, "gating": False}, None),
        ({"cores": 0.5, **SHOWN}, None),
        ({"most_runs": 5}, None),
        ({"most_runs": 5, "judges": ["x_s"]}, None),
        ({"most_runs": 5, "judges": []}, NO_LIMIT),
        ({"most_runs": 5, "gating": False}, NO_LIMIT),
        ({"most_runs": 5, "kind": "sweep"}, NO_LIMIT),
        ({"most_runs": 5, "repetitions": 5}, NO_LIMIT),
    ],
)  # fmt: skip
def test_contradictions_in_a_scenario_are_rejected(changes: dict[str, Any], problem: str | None) -> None:
    if problem is None:
        _scenario(**changes)
        return
    with pytest.raises(ValidationError) as caught:
        _scenario(**changes)
    assert [error["msg"] for error in caught.value.errors()] == [f"Value error, {problem}"]


@pytest.mark.parametrize(
    ("changes", "goes_on", "runs"),
    [
        ({}, True, 8),
        ({"most_runs": 5}, True, 5),
        ({"judges": ["x_s"]}, True, 8),
        ({"judges": []}, False, 3),
        ({"gating": False}, False, 3),
        ({"kind": "sweep"}, False, 3),
        (SHOWN, False, 3),
        ({"repetitions": 5}, False, 5),
        ({"repetitions": 1, "kind": "sweep"}, False, 1),
    ],
)
def test_only_gating_comparisons_by_metrics_go_on_until_they_are_decided(
    changes: dict[str, Any], goes_on: bool, runs: int
) -> None:
    scenario = _scenario(**changes)
    assert (scenario.goes_on, scenario.planned_runs) == (goes_on, runs)


@pytest.mark.parametrize(
    ("scenarios", "problem"),
    [
        ([{}, {"id": "two"}, {"id": "two"}], "two scenarios are called `two`"),
        ([{}, {"id": "two", "plots": ["rate", "nothing"]}], "the scenario `two` uses the unknown plot `nothing`"),
        ([{"beside": "one"}], "the scenario `one` refers to `one` in `beside`, which must come before it"),
        ([{"beside": "two"}, {"id": "two"}],
         "the scenario `one` refers to `two` in `beside`, which must come before it"),
        ([{}, {"id": "two", "beside": "other"}],
         "the scenario `two` refers to `other` in `beside`, which must come before it"),
    ],
)  # fmt: skip
def test_references_to_other_parts_of_a_plan_are_checked(scenarios: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _plan(*scenarios)
    assert [error["msg"] for error in caught.value.errors()] == [f"Value error, {problem}"]


def test_a_plan_limits_only_runs_of_scenarios_that_go_on_and_finds_scenarios_and_plots() -> None:
    plan = _plan({"plots": ["rate", "memory"]}, {"id": "two", "repetitions": 4}, {"id": "three", "beside": "two"})
    limited = plan.with_most_runs(6)
    assert [scenario.most_runs for scenario in limited.scenarios] == [6, None, 6]
    assert [scenario.planned_runs for scenario in limited.scenarios] == [6, 4, 6]
    assert limited.plots == plan.plots
    assert plan.scenario("two") == plan.scenarios[1]
    assert [plot.id for plot in plan.plots_of(plan.scenario("one"))] == ["rate", "memory"]
    assert plan.plots_of(plan.scenario("two")) == []
