"""The runs that a plan requests, their profiles, and the requirements that are not met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from pydantic import BaseModel

from chainmark.compare.inputs import LoadedRun
from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.lab.scenarios import QaRequest, ScenarioMade, prepared, profile_of
from chainmark.lab.schedules import Standing, SweepLoad, SweepPlan, grid_steps
from chainmark.lab.sweeping import Bisected
from chainmark.network.host import host_facts
from chainmark.store.sealed import SealedRun

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import manifest
from tests.unit.lab.stand_in import Profile, StandIn, two_scenarios


@pytest.fixture
def plan(tmp_path: Path) -> QaPlan:
    return two_scenarios(tmp_path)


def _scenario(plan: QaPlan, **changes: Any) -> ScenarioPlan:
    return ScenarioPlan.model_validate(plan.scenarios[0].model_dump() | changes)


def _made(plan: QaPlan, system: StandIn | None = None, **changes: Any) -> ScenarioMade:
    return prepared(system or StandIn(), QaRequest(plan, "v1", "v2"), _scenario(plan, **changes), "qa-1")


def _done(scenario: ScenarioMade, *positions: int) -> None:
    """Add finished runs at these positions, on the sides of their steps."""
    for position in positions:
        step = scenario.steps[position % len(scenario.steps)]
        run = stub_run(step.version, 1.0, position)
        run.manifest = manifest(step.version, step.repetition, side=step.side, run_id=f"run-{position}")
        scenario.done[position] = cast(SealedRun, LoadedRun(run))


def test_a_scenario_has_alternating_runs_and_its_own_name(plan: QaPlan) -> None:
    scenario = _made(plan)
    assert (scenario.experiment, scenario.lacking) == ("qa-1-first", [])
    assert [(step.side, step.version, step.repetition, step.position) for step in scenario.steps] == [
        ("baseline", "v1", 1, 0), ("candidate", "v2", 1, 1), ("candidate", "v2", 2, 2), ("baseline", "v1", 2, 3),
    ]  # fmt: skip
    assert scenario.names == {"baseline": {"baseline"}, "candidate": {"candidate"}}
    assert [cast(Profile, scenario.sides[side]).rate for side in ("baseline", "candidate")] == [2, 2]
    assert all(step.profile is scenario.sides[step.side] for step in scenario.steps)
    assert [planned.position for planned in scenario.of_round(2)] == [2, 3]


def test_the_last_setting_wins_and_applies_to_the_versions(plan: QaPlan) -> None:
    """Later settings override earlier ones: first those of the plan, then of the request, the version and the side."""
    sides = [
        {"id": "baseline", "version": "baseline", "settings": ["rate=6"]},
        {"id": "candidate", "version": "candidate"},
    ]
    scenario = _scenario(plan, settings=["rate=3", "name={baseline} and {candidate}"], sides=sides)

    def profile(side: int, **changes: Any) -> Profile:
        order = QaRequest(plan, "v1", "v2", **changes)
        return cast(Profile, profile_of(StandIn(), order, scenario, scenario.sides[side]))

    assert (profile(1).rate, profile(1).name) == (3, "v1 and v2")
    assert profile(1, settings=("rate=4",)).rate == 4
    of_version: Any = {"candidate": ["rate=5"]}
    assert profile(1, settings=("rate=4",), of_version=of_version).rate == 5
    assert profile(0, settings=("rate=4",), of_version=of_version).rate == 6
    with pytest.raises(
        UsageError, match=r"^the scenario `first` cannot be run: `--set rate` is not `key=value`$"
    ) as refused:
        profile(1, settings=("rate",))
    assert refused.value.hint is not None


@dataclass
class Asked(StandIn):
    """A system that stores the queries that it receives, and replaces the rate of a profile."""

    requested: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """Store the query."""
        self.requested.append((need, tuple(versions)))
        return super().lacking(need, versions)

    def pinned(self, profile: BaseModel) -> BaseModel:
        """A profile after the installation of its versions."""
        return profile.model_copy(update={"rate": 17})


def test_unmet_requirements_of_machine_or_version_are_reported_and_nothing_runs(
    plan: QaPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_facts().model_copy(update={"cores": 4, "memory_bytes": 8 * 2**30})
    monkeypatch.setattr("chainmark.lab.scenarios.host_facts", lambda: host)
    system = Asked()
    enough = _made(plan, system, needs=["cores:4", "memory:8", "namespaces"])
    assert (enough.lacking, len(enough.steps)) == ([], 4)
    assert system.requested == [("namespaces", ("v1", "v2"))]
    assert cast(Profile, enough.sides["baseline"]).rate == 17
    few = _made(plan, StandIn(lacks="namespaces"), needs=["cores:5", "memory:9", "other"])
    assert few.lacking == [
        "5 processors; this machine has 4", "9 GiB of memory; this machine has 8.0", "namespaces",
    ]  # fmt: skip
    assert (few.steps, few.sides) == ([], {})
    with pytest.raises(UsageError, match=r"^`cores:many` is not a valid requirement of a scenario$") as refused:
        _made(plan, needs=["cores:many"])
    assert refused.value.hint == "for example `cores:4` or `memory:8` (GiB)"


@pytest.mark.parametrize(
    ("need", "lacking", "runs"),
    [
        ("cores:100000", [], 4),
        ("memory:100000", [], 4),
        ("namespaces", ["all nodes on one machine (namespaces)"], 0),
    ],
)
def test_nodes_on_other_machines_are_not_refused_for_the_size_of_this_one(
    plan: QaPlan, need: str, lacking: list[str], runs: int
) -> None:
    """Their machines check their own size. All other requirements are about nodes on one machine."""
    scenario = _scenario(plan, needs=[need])
    made = prepared(StandIn(), QaRequest(plan, "v1", "v2"), scenario, "qa-1", is_hosted=True)
    assert (made.lacking, len(made.steps)) == (lacking, runs)


@dataclass
class Sweeping(StandIn):
    """A system whose loads are rates, none of which has a result yet."""

    search: Literal["grid", "bisect"] = "grid"

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """Three loads."""
        assert isinstance(profile, Profile)
        loads = tuple(self.load_of(None, per_s) for per_s in (10, 20, 30))
        return SweepPlan(loads, 0.05, 10, 10, 30, 0.5, self.search)

    def load_of(self, _plan: SweepPlan | None, per_s: int) -> SweepLoad:
        """The load with this rate."""
        return SweepLoad((per_s,), f"r{per_s}", per_s)

    def at_load(self, profile: BaseModel, load: SweepLoad) -> BaseModel:
        """The profile at the rate of this load."""
        return profile.model_copy(update={"rate": load.per_s})

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """No load has a result."""
        return [{}]


@pytest.mark.parametrize("search", ["grid", "bisect"])
def test_a_sweep_runs_every_load_with_both_versions(plan: QaPlan, search: Literal["grid", "bisect"]) -> None:
    """Each run records its load, and is found again as a run of its side under the name of the saturation test."""
    system = Sweeping(search=search)
    scenario = _made(plan, system, kind="sweep", repetitions=1)
    assert [step.position for step in scenario.steps] == list(range(6 if search == "grid" else 12))
    wanted = {(version, rate) for version in ("v1", "v2") for rate in (10, 20, 30)}
    assert {(step.version, cast(Profile, step.profile).rate) for step in scenario.steps} == wanted
    assert all(step.side == f"{step.version}/r{cast(Profile, step.profile).rate}" for step in scenario.steps)
    assert scenario.names["baseline"] == {"baseline", "v1/r10", "v1/r20", "v1/r30"}
    assert scenario.names["candidate"] == {"candidate", "v2/r10", "v2/r20", "v2/r30"}
    if search == "grid":
        order = grid_steps(system.sweep_plan(scenario.sides["baseline"]).loads, ("v1", "v2"), 1, 1)
        assert [(step.version, step.side) for step in scenario.steps] == [
            (cell.version, f"{cell.version}/{cell.load.name}") for cell in order
        ]
        assert scenario.search is None
        return
    assert scenario.search is not None
    assert scenario.search.most == Bisected(system, system.sweep_plan(scenario.sides["baseline"]), ("v1", "v2"), 1).most
    assert [cell.version for cell in scenario.search.cells] == [step.version for step in scenario.steps]
    assert scenario.search.next_positions([], {"v1": [], "v2": []})


def test_a_sweep_needs_two_versions_and_a_system_that_can_be_swept(plan: QaPlan) -> None:
    scenario = prepared(StandIn(), QaRequest(plan, "v1", "v1"), _scenario(plan, kind="sweep"), "qa-1")
    assert scenario.lacking == ["two different versions"]
    with pytest.raises(UsageError, match="chainmark cannot find the saturation point of `cometbft`") as refused:
        _made(plan, kind="sweep")
    assert refused.value.hint == "remove the scenario `first` from the plan"
    assert prepared(StandIn(), QaRequest(plan, "v1", "v1"), _scenario(plan), "qa-1").lacking == []


def test_runs_are_grouped_by_side_and_repeats_come_last(plan: QaPlan) -> None:
    scenario = _made(plan)
    _done(scenario, 5, 4, 0, 1, 3, 6)
    assert [run.run_id for run in scenario.runs] == ["run-0", "run-1", "run-3", "run-4", "run-5", "run-6"]
    repeats = {"run-4": "run-0", "run-5": "run-1"}
    assert scenario.repeats == repeats, "the run at position 6 repeats a run that does not exist"
    assert [run.run_id for run in scenario.of_side("baseline")] == ["run-0", "run-3", "run-4"]
    assert [run.run_id for run in scenario.of_side("candidate")] == ["run-1", "run-5", "run-6"]


def test_a_sequential_scenario_ends_with_its_last_round(plan: QaPlan) -> None:
    scenario = _made(plan, repetitions=None, most_runs=3)
    assert len(scenario.wanted) == 6
    assert scenario.may_end_sooner
    _done(scenario, *range(5))
    assert not scenario.may_end_sooner, "a run of the last round exists"
    scenario.rounds = 2
    assert [step.position for step in scenario.wanted] == [0, 1, 2, 3]
    assert not _made(plan, repetitions=3).may_end_sooner, "the number of rounds is fixed"
    lacking = _made(plan, StandIn(lacks="namespaces"), repetitions=None, most_runs=3, needs=["namespaces"])
    assert (lacking.steps, lacking.may_end_sooner) == ([], False), "nothing runs"
    assert not _made(plan, repetitions=None, most_runs=2).may_end_sooner, "the first evaluation is after two rounds"
    settled = _made(plan, repetitions=None, most_runs=3)
    settled.rounds = 2
    assert not settled.may_end_sooner


def test_the_results_are_considered_after_each_round_until_they_decide(plan: QaPlan) -> None:
    scenario = _made(plan, repetitions=None, most_runs=3)
    assert [scenario.looks_after(step) for step in scenario.steps] == [False, True] * 3
    assert not any(scenario.is_over(step) for step in scenario.steps)
    scenario.rounds = 2
    assert not any(scenario.looks_after(step) for step in scenario.steps)
    assert [scenario.is_over(step) for step in scenario.steps] == [False] * 4 + [True] * 2
    assert not any(_made(plan).looks_after(step) for step in scenario.steps), "the number of rounds is fixed"


def test_a_search_does_not_exceed_its_maximum_number_of_runs(plan: QaPlan) -> None:
    scenario = _made(plan)
    scenario.search = cast(Bisected, SimpleNamespace(most=3))
    _done(scenario, 3)
    assert [step.position for step in scenario.wanted] == [3, 0, 1]
    assert scenario.may_end_sooner
    _done(scenario, 0, 1)
    assert not scenario.may_end_sooner
    assert [step.position for step in scenario.wanted] == [0, 1, 3]
    _done(scenario, 2)
    assert [step.position for step in scenario.wanted] == [0, 1, 2, 3]
