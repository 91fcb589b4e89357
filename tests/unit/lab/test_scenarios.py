"""What a plan asks for: which runs, of which profiles, and what is missing for them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainmark.compare.inputs import LoadedRun
from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.lab.scenarios import QaOrder, ScenarioMade, prepared, profile_of
from chainmark.lab.sweeping import Bisected
from chainmark.network.host import host_facts
from chainmark.store.runs import SealedRun

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import manifest
from tests.unit.lab.stand_in import Profile, StandIn, two_scenarios


@pytest.fixture
def plan(tmp_path: Path) -> QaPlan:
    return two_scenarios(tmp_path)


def _scenario(plan: QaPlan, **changes: Any) -> ScenarioPlan:
    return ScenarioPlan.model_validate(plan.scenarios[0].model_dump() | changes)


def _made(plan: QaPlan, system: StandIn | None = None, **changes: Any) -> ScenarioMade:
    return prepared(system or StandIn(), QaOrder(plan, "v1", "v2"), _scenario(plan, **changes), "qa-1")


def _done(made: ScenarioMade, *positions: int) -> None:
    """Runs of these positions, on the sides of their steps."""
    for position in positions:
        step = made.steps[position % len(made.steps)]
        run = stub_run(step.version, 1.0, position)
        run.manifest = manifest(step.version, step.repetition, side=step.side, run_id=f"run-{position}")
        made.done[position] = cast(SealedRun, LoadedRun(run))


def test_a_scenario_has_its_runs_in_turn_under_a_name_of_its_own(plan: QaPlan) -> None:
    made = _made(plan)
    assert (made.experiment, made.lacking) == ("qa-1-first", [])
    assert [(one.side, one.version, one.repetition, one.position) for one in made.steps] == [
        ("baseline", "v1", 1, 0), ("candidate", "v2", 1, 1), ("candidate", "v2", 2, 2), ("baseline", "v1", 2, 3),
    ]  # fmt: skip
    assert made.names == {"baseline": {"baseline"}, "candidate": {"candidate"}}
    assert {side: cast(Profile, profile).rate for side, profile in made.sides.items()} == {
        "baseline": 2,
        "candidate": 2,
    }
    assert [one.position for one in made.of_round(2)] == [2, 3]


def test_what_is_set_last_counts_and_stands_for_the_versions(plan: QaPlan) -> None:
    """Settings of the plan, then the order's, then those of the version, then the side's own."""
    sides = [
        {"id": "baseline", "version": "baseline", "settings": ["rate=6"]},
        {"id": "candidate", "version": "candidate"},
    ]
    scenario = _scenario(plan, settings=["rate=3", "name={baseline} and {candidate}"], sides=sides)

    def profile(side: int, **changes: Any) -> Profile:
        order = QaOrder(plan, "v1", "v2", **changes)
        return cast(Profile, profile_of(StandIn(), order, scenario, scenario.sides[side]))

    assert (profile(1).rate, profile(1).name) == (3, "v1 and v2")
    assert profile(1, settings=("rate=4",)).rate == 4
    of_version: Any = {"candidate": ["rate=5"]}
    assert profile(1, settings=("rate=4",), of_version=of_version).rate == 5
    assert profile(0, settings=("rate=4",), of_version=of_version).rate == 6
    with pytest.raises(UsageError, match=r"^the scenario `first` cannot be made: `--set rate` is not `key=value`$"):
        profile(1, settings=("rate",))


def test_what_a_machine_or_a_version_lacks_is_told_and_nothing_is_run(plan: QaPlan) -> None:
    host = host_facts()
    gib = host.memory_bytes // 2**30
    enough = _made(plan, needs=[f"cores:{host.cores}", f"memory:{gib}", "namespaces"])
    assert (enough.lacking, len(enough.steps)) == ([], 4)
    few = _made(plan, StandIn(lacks="namespaces"), needs=[f"cores:{host.cores + 1}", f"memory:{gib + 1}", "other"])
    assert few.lacking[0] == f"{host.cores + 1} processors; this machine has {host.cores}"
    assert few.lacking[1].startswith(f"{gib + 1} GiB of memory; this machine has ")
    assert few.lacking[2] == "namespaces"
    assert (few.steps, few.sides) == ([], {})
    with pytest.raises(UsageError, match=r"^`cores:many` is no need of a scenario$"):
        _made(plan, needs=["cores:many"])


def test_a_sweep_needs_two_versions_and_a_system_that_can_be_swept(plan: QaPlan) -> None:
    one = prepared(StandIn(), QaOrder(plan, "v1", "v1"), _scenario(plan, kind="sweep"), "qa-1")
    assert one.lacking == ["two different versions"]
    with pytest.raises(UsageError, match="chainmark cannot find the saturation of `cometbft`") as refused:
        _made(plan, kind="sweep")
    assert refused.value.hint == "leave the scenario `first` out of the plan"
    assert prepared(StandIn(), QaOrder(plan, "v1", "v1"), _scenario(plan), "qa-1").lacking == []


def test_runs_are_told_apart_by_side_and_those_that_repeat_others_stand_last(plan: QaPlan) -> None:
    made = _made(plan)
    _done(made, 5, 0, 1, 3, 6)
    assert [run.run_id for run in made.runs] == ["run-0", "run-1", "run-3", "run-5", "run-6"]
    assert made.repeats == {"run-5": "run-1"}, "the run at 6 repeats one that is not there"
    assert [run.run_id for run in made.of_side("baseline")] == ["run-0", "run-3"]
    assert [run.run_id for run in made.of_side("candidate")] == ["run-1", "run-5", "run-6"]


def test_a_scenario_that_goes_on_ends_with_its_last_round(plan: QaPlan) -> None:
    made = _made(plan, repetitions=None, most_runs=3)
    assert len(made.wanted) == 6
    assert made.may_end_sooner
    _done(made, *range(5))
    assert not made.may_end_sooner, "a run of the last round was made"
    made.rounds = 2
    assert [step.position for step in made.wanted] == [0, 1, 2, 3]
    assert not _made(plan).may_end_sooner, "its number is fixed"
    assert not _made(plan, repetitions=None, most_runs=2).may_end_sooner, "it is looked at after two rounds first"
    settled = _made(plan, repetitions=None, most_runs=3)
    settled.rounds = 2
    assert not settled.may_end_sooner


def test_of_a_search_no_more_is_wanted_than_it_may_ask_for(plan: QaPlan) -> None:
    made = _made(plan)
    made.search = cast(Bisected, SimpleNamespace(most=3))
    _done(made, 3)
    assert [step.position for step in made.wanted] == [3, 0, 1]
    assert made.may_end_sooner
    _done(made, 0, 1)
    assert not made.may_end_sooner
    _done(made, 2)
    assert [step.position for step in made.wanted] == [0, 1, 2, 3]
