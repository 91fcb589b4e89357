"""An interrupted qualification resumes with the same runs in the same order with the same seeds.

The system is a stand-in: its runs take no time, and it stops at any point or fails on demand.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentLength, HostFacts
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.core.qa_plan import QaPlan, ScenarioKind, ScenarioPlan, SidePlan
from chainmark.lab import attempts
from chainmark.lab.protocols import ExecutionRequest
from chainmark.lab.qa_plans import read_plan
from chainmark.lab.qualifying import QaMade, Qualifier
from chainmark.lab.scenarios import QaRequest, profile_of
from chainmark.lab.schedules import NOT_JUDGED, Total, most_loads_needed
from chainmark.network.host import host_facts
from chainmark.store.experiments import find_experiment
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import qualifiable
from chainmark.systems.cometbft.system import SYSTEM

from tests.unit.lab.stand_in import Followed, Staged, StandIn, two_scenarios

TIMEOUT_S = 60


@pytest.fixture
def plan(tmp_path: Path) -> QaPlan:
    return two_scenarios(tmp_path)


def _order(plan: QaPlan, **changes: object) -> QaRequest:
    return QaRequest(plan, "v1", "v2", seed=10, **changes)  # type: ignore[arg-type]


def _make(tmp_path: Path, system: StandIn, plan: QaPlan, listener: Followed | None = None) -> QaMade:
    return Qualifier(Store(tmp_path / "store"), system).make(_order(plan), listener or Followed())


def _shape(qualification: QaMade) -> list[tuple[str, str, int, int, int, str]]:
    """The properties of all runs that must not depend on the interruptions."""
    return [
        (
            scenario.plan.id,
            place.side,
            place.repetition,
            place.position,
            run.manifest.seed,
            run.manifest.subject.version,
        )
        for scenario in qualification.scenarios
        for run in scenario.runs
        if (place := run.manifest.experiment)
    ]


def _interrupt_at(number: int) -> Callable[[int], None]:
    def on_run(number_of_runs: int) -> None:
        if number_of_runs == number:
            raise KeyboardInterrupt

    return on_run


@pytest.mark.parametrize("stop", range(1, 9))
def test_an_interrupted_and_resumed_qualification_makes_the_same_runs(tmp_path: Path, plan: QaPlan, stop: int) -> None:
    whole = _make(tmp_path / "whole", StandIn(), plan)
    broken = _make(tmp_path / "broken", StandIn(_interrupt_at(stop)), plan)
    assert broken.interrupted
    run_ids = {run.run_id for scenario in broken.scenarios for run in scenario.runs}
    assert len(run_ids) == stop - 1
    system = StandIn()
    store = Store(tmp_path / "broken" / "store")
    resumed = Qualifier(store, system).resume(broken.experiment, Followed())
    assert not resumed.interrupted
    assert len(system.made) == 8 - len(run_ids)
    assert run_ids <= {run.run_id for scenario in resumed.scenarios for run in scenario.runs}
    assert _shape(resumed) == _shape(whole)
    assert store.unfinished() == []


def test_a_run_is_analysed_while_the_next_network_starts_and_never_during_a_load(tmp_path: Path, plan: QaPlan) -> None:
    """The last run of a scenario is analysed before the next step, which may depend on it."""
    began = {number: threading.Event() for number in range(1, 9)}
    analysing: set[int] = set()

    def on_analysis(number: int) -> None:
        analysing.add(number)
        if number not in {4, 8}:
            assert began[number + 1].wait(TIMEOUT_S), "the next network did not start during the analysis"
        analysing.discard(number)

    def on_load(_number: int) -> None:
        assert not analysing

    qualification = _make(
        tmp_path, Staged(lambda number: began[number].set(), on_analysis=on_analysis, on_load=on_load), plan
    )
    undisturbed = _make(tmp_path / "other", StandIn(), plan)
    assert _shape(qualification) == _shape(undisturbed)


@pytest.mark.parametrize("stop", range(1, 9))
def test_runs_measured_before_an_interruption_are_sealed(tmp_path: Path, plan: QaPlan, stop: int) -> None:
    invalid = frozenset({1, 4})
    whole = _make(tmp_path / "whole", Staged(invalid=invalid), plan)
    broken = _make(tmp_path / "broken", Staged(_interrupt_at(stop), invalid=invalid), plan)
    store = Store(tmp_path / "broken" / "store")
    assert broken.interrupted
    assert store.unfinished() == []
    assert sum(len(scenario.runs) for scenario in broken.scenarios) == len(store.sealed()) == stop - 1
    rest = Staged(invalid=frozenset(number - stop + 1 for number in invalid))
    resumed = Qualifier(store, rest).resume(broken.experiment, Followed())
    assert [len(scenario.runs) for scenario in resumed.scenarios] == [
        len(scenario.runs) for scenario in whole.scenarios
    ]
    assert len(store.sealed()) == 10


@pytest.mark.parametrize(
    ("numbers", "runs", "failures"), [({2}, 4, {}), ({2, 4}, 3, {"candidate": "the disk is full"})]
)
def test_a_run_that_cannot_be_sealed_is_repeated_once(
    tmp_path: Path, plan: QaPlan, numbers: set[int], runs: int, failures: dict[str, str]
) -> None:
    """Its failure is known only after the next run was measured."""

    def on_analysis(number: int) -> None:
        if number in numbers:
            raise EnvironmentFailure("the disk is full")

    listener = Followed()
    qualification = _make(tmp_path, Staged(on_analysis=on_analysis), plan, listener)
    assert listener.again_because == ["the disk is full"]
    assert qualification.scenarios[0].failures == failures
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [runs, 4]


@pytest.fixture
def shared(plan: QaPlan, monkeypatch: pytest.MonkeyPatch) -> QaPlan:
    """A plan whose second scenario needs half of this machine."""
    monkeypatch.setattr("chainmark.lab.qualifying.host_facts", lambda: replace_cores(4))
    second = plan.scenarios[1].model_copy(update={"gating": False, "cores": 2})
    return plan.model_copy(update={"scenarios": [plan.scenarios[0], second]})


def replace_cores(cores: int) -> HostFacts:
    """This machine with another number of processors."""
    return host_facts().model_copy(update={"cores": cores})


def test_small_runs_are_made_two_at_a_time(tmp_path: Path, shared: QaPlan) -> None:
    """Both sides of a round run together, in alternating order. The scenario before it uses the whole machine alone."""
    both = threading.Barrier(2, timeout=TIMEOUT_S)
    places: list[tuple[str, int]] = []

    def under_load(order: ExecutionRequest, _progress: Progress) -> None:
        assert bool(order.beside) == (len(places) >= 4)
        if order.beside:
            both.wait()
        places.append((order.version, order.lane))

    listener = Followed()
    qualification = _make(tmp_path, Staged(under_load=under_load), shared, listener)
    assert sorted(places[4:6]) == [("v1", 0), ("v2", 1)]
    assert sorted(places[6:]) == [("v1", 1), ("v2", 0)]
    assert _shape(qualification) == _shape(_make(tmp_path / "other", StandIn(), shared))
    facts = [
        [fact.value for fact in run.manifest.facts] for scenario in qualification.scenarios for run in scenario.runs
    ]
    assert facts == [[]] * 4 + [["1 more network of this plan"]] * 4
    assert listener.steps[0][3] == 4 * 60.0 + 2 * 60.0  # the expected time of four single runs and two pairs


@pytest.mark.parametrize(
    ("cores", "groups"),
    [
        ((4, 1.0, 1.0), [4, 2]),  # the second round of the second scenario
        ((4, 0.5, 2.0), [2, 2, 2]),  # a round that does not fit into the rest of the processors begins the next group
        ((4, 0.1, 0.1), [4, 2]),  # four at most
        ((8, 3.0, 3.0), [2, 2, 2]),
        ((5, 2.0, 3.0), [2, 1, 1, 1, 1]),  # the second scenario does not share the machine
    ],
)
def test_runs_share_the_machine_as_far_as_the_processors_suffice(
    tmp_path: Path, plan: QaPlan, monkeypatch: pytest.MonkeyPatch, cores: tuple[int, float, float], groups: list[int]
) -> None:
    """More would wait for each other, and fewer would take longer than necessary.

    Args:
        cores: of the machine, and those that a run of each of the two scenarios needs.
    """
    monkeypatch.setattr("chainmark.lab.qualifying.host_facts", lambda: replace_cores(cores[0]))
    scenarios = [
        scenario.model_copy(update={"gating": False, "cores": needed, "repetitions": repetitions})
        for scenario, needed, repetitions in zip(plan.scenarios, cores[1:], (1, 2), strict=True)
    ]
    orders: list[ExecutionRequest] = []
    shared = plan.model_copy(update={"scenarios": scenarios})
    _make(tmp_path, Staged(under_load=lambda order, _: orders.append(order)), shared)
    assert sorted(order.lane for order in orders) == sorted(lane for size in groups for lane in range(size))


def test_a_machine_with_too_few_processors_makes_one_run_at_a_time(
    tmp_path: Path, shared: QaPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainmark.lab.qualifying.host_facts", lambda: replace_cores(3))
    orders: list[ExecutionRequest] = []
    _make(tmp_path, Staged(under_load=lambda order, _: orders.append(order)), shared)
    assert [(order.lane, order.beside) for order in orders] == [(0, "")] * 8


def test_a_failed_run_of_a_parallel_pair_is_repeated_alone(tmp_path: Path, shared: QaPlan) -> None:
    """One run of the first pair is invalid, and one run of the second pair cannot be made."""
    alone: list[bool] = []
    tried: list[int] = []

    def stumble(_number: int) -> None:
        tried.append(1)
        if len(tried) == 8:  # the second run of the second pair, after four single runs and one pair
            raise EnvironmentFailure("a port is in use")

    system = Staged(stumble, invalid=frozenset({5}), under_load=lambda order, _: alone.append(not order.beside))
    listener = Followed()
    qualification = _make(tmp_path, system, shared, listener)
    assert alone == [True] * 4 + [False] * 3 + [True] * 2
    assert sorted(listener.again_because) == ["a port is in use", "offered load met: 91 %, but >= 98 % is required"]
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 5]
    assert qualification.scenarios[1].failures == {}
    assert len(qualification.scenarios[1].repeats) == 1


def test_an_interruption_ends_both_parallel_runs(tmp_path: Path, shared: QaPlan) -> None:
    begun = threading.Barrier(3, timeout=TIMEOUT_S)

    def under_load(order: ExecutionRequest, progress: Progress) -> None:
        if order.beside:
            begun.wait()
            while True:
                progress.update(0.0)

    class Interrupting(Followed):
        def update(self, fraction: float, detail: str = "") -> None:
            begun.wait()
            raise KeyboardInterrupt

    broken = _make(tmp_path, Staged(under_load=under_load), shared, Interrupting())
    store = Store(tmp_path / "store")
    assert broken.interrupted
    assert store.unfinished() == []
    assert len(store.sealed()) == 4
    resumed = Qualifier(store, Staged()).resume(broken.experiment, Followed())
    assert _shape(resumed) == _shape(_make(tmp_path / "other", StandIn(), shared))


def test_runs_that_are_judged_by_speed_cannot_share_the_machine(plan: QaPlan) -> None:
    content = plan.scenarios[0].model_dump() | {"cores": 1}
    with pytest.raises(ValueError, match="judges speed, so its runs cannot share the machine"):
        ScenarioPlan.model_validate(content)
    assert ScenarioPlan.model_validate(content | {"judges": ["catch_up_s"]}).cores == 1
    with pytest.raises(ValueError, match="is not a gating comparison: remove `judges`"):
        ScenarioPlan.model_validate(content | {"judges": [], "gating": False})


@pytest.mark.parametrize(("after", "rounds"), [(2, 2), (4, 4), (9, 5)])
def test_parallel_runs_continue_until_they_are_decided(tmp_path: Path, shared: QaPlan, after: int, rounds: int) -> None:
    """After each pair, the results decide whether another one follows."""
    deciding = {"gating": True, "judges": ["block_interval_s"], "repetitions": None, "most_runs": 5}
    second = shared.scenarios[1].model_copy(update=deciding)
    plan = shared.model_copy(update={"scenarios": [shared.scenarios[0], second]})
    decider, orders = _Asked(after), list[ExecutionRequest]()
    system = Staged(under_load=lambda order, _: orders.append(order))
    qualification = Qualifier(Store(tmp_path / "store"), system, decider).make(_order(plan), Followed())
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 2 * rounds]
    assert all(order.beside for order in orders[4:])
    assert decider.requested == [(number, number, 5) for number in range(2, min(rounds, 4) + 1)]


def test_the_parallel_runs_of_a_scenario_follow_one_that_was_decided_early(tmp_path: Path, shared: QaPlan) -> None:
    deciding = {"gating": True, "judges": ["block_interval_s"], "repetitions": None, "most_runs": 5}
    early = shared.scenarios[1].model_copy(update={**deciding, "id": "early"})
    plan = shared.model_copy(update={"scenarios": [early, shared.scenarios[1]]})
    qualifier = Qualifier(Store(tmp_path / "store"), Staged(), _Asked(2))
    qualification = qualifier.make(_order(plan), Followed())
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 4]


def test_a_scenario_without_judged_metrics_makes_a_fixed_number_of_runs(plan: QaPlan) -> None:
    """Further runs would not change what the failed ones show."""
    content = plan.scenarios[0].model_dump() | {"judges": [], "repetitions": None}
    scenario = ScenarioPlan.model_validate(content)
    assert (scenario.goes_on, scenario.planned_runs) == (False, 3)


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path, plan: QaPlan) -> None:
    """A kill -9 leaves a folder without a seal, whose process no longer exists."""
    broken = _make(tmp_path, StandIn(_interrupt_at(2)), plan)
    store = Store(tmp_path / "store")
    left = store.create("cometbft", "short", "v2", {"pid": 2**22 + 1, "experiment": f"{broken.experiment}-first"})
    living = store.create("cometbft", "short", "v2", {"pid": 1, "experiment": "another-first"})
    Qualifier(store, StandIn()).resume(broken.experiment, Followed())
    assert not left.path.exists()
    assert [run.run_id for run in store.unfinished()] == [living.run_id]


def test_a_run_that_was_sealed_but_not_recorded_is_retained(tmp_path: Path, plan: QaPlan) -> None:
    """If the process is killed between sealing and recording, the sealed run counts."""
    broken = _make(tmp_path, StandIn(_interrupt_at(4)), plan)
    store = Store(tmp_path / "store")
    folder = find_experiment(store, broken.experiment)
    content = folder.read()
    content["runs"] = {}
    (folder.path / "experiment.json").write_text(json.dumps(content), encoding="utf-8")
    system = StandIn()
    Qualifier(store, system).resume(broken.experiment, Followed())
    assert len(system.made) == 5


def test_an_invalid_run_is_repeated_once_and_this_is_reported(tmp_path: Path, plan: QaPlan) -> None:
    listener = Followed()
    qualification = _make(tmp_path, StandIn(invalid=frozenset({2, 3})), plan, listener)
    assert listener.again_because == ["offered load met: 91 %, but >= 98 % is required"]
    first = qualification.scenarios[0]
    assert len(first.runs) == 5
    (again, repeated), *others = first.repeats.items()
    assert others == []
    places = {run.run_id: run.manifest.experiment for run in first.runs}
    assert places[again].side == places[repeated].side  # type: ignore[union-attr]
    assert places[again].repetition == places[repeated].repetition  # type: ignore[union-attr]
    # Invalid again: both runs stay, and there is no further attempt.
    resumed = Qualifier(Store(tmp_path / "store"), StandIn()).resume(qualification.experiment, Followed())
    assert _shape(resumed) == _shape(qualification)


def test_the_processors_must_be_free_before_the_only_repetition_of_a_run(
    tmp_path: Path, plan: QaPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same busy machine it would be invalid as well, and a plan takes long."""
    waits: list[object] = []
    monkeypatch.setattr(attempts, "wait_for_processors", waits.append)
    listener, system = Followed(), StandIn(invalid=frozenset({2, 3}))
    _make(tmp_path, system, plan, listener)
    assert waits == [listener]
    assert len(system.made) == 9


def test_runs_are_made_on_the_machines_of_the_qualification_one_at_a_time(tmp_path: Path, shared: QaPlan) -> None:
    """Those machines decide by themselves whether they are large enough for a scenario."""
    machines, orders = cast(Machines, object()), list[ExecutionRequest]()
    first = shared.scenarios[0].model_copy(update={"needs": ["cores:100000"]})
    plan = shared.model_copy(update={"scenarios": [first, shared.scenarios[1]]})
    system = Staged(under_load=lambda order, _: orders.append(order))
    Qualifier(Store(tmp_path / "store"), system, machines=machines).make(_order(plan), Followed())
    assert [(order.machines, order.beside) for order in orders] == [(machines, "")] * 8


def _stumbling(*numbers: int) -> Callable[[int], None]:
    """A callback that fails at these attempts to make a run."""
    tried: list[int] = []

    def fail(number: int) -> None:
        tried.append(number)
        if len(tried) in numbers:
            raise EnvironmentFailure("a port is in use")

    return fail


def test_a_run_that_cannot_be_made_is_retried_once(tmp_path: Path, plan: QaPlan) -> None:
    """A machine may fail once an hour. One failure must not cost a scenario."""
    listener = Followed()
    qualification = _make(tmp_path, StandIn(_stumbling(2)), plan, listener)
    assert listener.again_because == ["a port is in use"]
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 4]
    assert qualification.scenarios[0].failures == {}
    undisturbed = Qualifier(Store(tmp_path / "other"), StandIn()).make(_order(plan), Followed())
    assert _shape(qualification) == _shape(undisturbed)


def test_a_side_that_cannot_run_does_not_stop_the_others(tmp_path: Path, plan: QaPlan) -> None:
    qualification = _make(tmp_path, StandIn(_stumbling(1, 2)), plan)
    assert qualification.scenarios[0].failures == {"baseline": "a port is in use"}
    assert [side for side in ("baseline", "candidate") for _ in qualification.scenarios[0].of_side(side)] == [
        "candidate"
    ] * 2
    assert len(qualification.scenarios[1].runs) == 4
    resumed = Qualifier(Store(tmp_path / "store"), StandIn()).resume(qualification.experiment, Followed())
    assert resumed.scenarios[0].failures == {}
    assert len(resumed.scenarios[0].runs) == 4


def test_a_scenario_with_unmet_requirements_is_reported_and_not_run(tmp_path: Path, plan: QaPlan) -> None:
    needing = [scenario.model_copy(update={"needs": ["wings"]}) for scenario in plan.scenarios[:1]]
    changed = plan.model_copy(update={"scenarios": [*needing, plan.scenarios[1]]})
    qualification = _make(tmp_path, StandIn(lacks="wings, which no machine has"), changed)
    assert qualification.scenarios[0].lacking == ["wings, which no machine has"]
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [0, 4]
    huge = [scenario.model_copy(update={"needs": ["cores:100000"]}) for scenario in plan.scenarios[:1]]
    qualification = _make(tmp_path / "huge", StandIn(), plan.model_copy(update={"scenarios": huge}))
    assert qualification.scenarios[0].lacking[0].startswith("100000 processors; this machine has")


def test_progress_counts_to_the_total_and_estimates_the_time_left(tmp_path: Path, plan: QaPlan) -> None:
    listener = Followed()
    _make(tmp_path, StandIn(), plan, listener)
    assert [(number, total) for _, number, total, _ in listener.steps] == [(n, Total(8)) for n in range(1, 9)]
    left = [seconds for *_, seconds in listener.steps]
    assert left[0] == 8 * 60.0  # the duration that the system expects
    assert left[1:] == sorted(left[1:], reverse=True)
    assert left[-1] < 60.0  # by then, the finished runs show that a run takes less than a minute


def test_two_processes_cannot_run_the_same_experiment(tmp_path: Path, plan: QaPlan) -> None:
    broken = _make(tmp_path, StandIn(_interrupt_at(2)), plan)
    store = Store(tmp_path / "store")
    with find_experiment(store, broken.experiment).locked(), pytest.raises(UsageError, match="another process"):
        Qualifier(store, StandIn()).resume(broken.experiment, Followed())


def test_a_profile_changed_since_the_interruption_is_refused(tmp_path: Path, plan: QaPlan) -> None:
    broken = _make(tmp_path, StandIn(_interrupt_at(3)), plan)
    Path(plan.scenarios[0].profile).write_text('system = "cometbft"\nrate = 3\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"differs by the setting `rate`$"):
        Qualifier(Store(tmp_path / "store"), StandIn()).resume(broken.experiment, Followed())


def test_a_resumed_qualification_uses_the_original_request(tmp_path: Path, plan: QaPlan) -> None:
    """Runs with other settings than the earlier ones would be refused, or compared as if nothing had changed."""
    order = _order(plan, settings=("rate=4",), of_version={"candidate": ["rate=5"]})
    store = Store(tmp_path / "store")
    broken = Qualifier(store, StandIn(_interrupt_at(2))).make(order, Followed())
    known = Qualifier(store, StandIn())
    assert known.ordered(broken.experiment) == order
    resumed = known.resume(broken.experiment, Followed(), keep_homes=True)
    assert resumed.order.keep_homes
    rates = [(place.side, run.manifest.profile["rate"]) for scenario in resumed.scenarios for run in scenario.runs
             if (place := run.manifest.experiment)]  # fmt: skip
    assert set(rates) == {("baseline", 4), ("candidate", 5)}


@pytest.mark.parametrize("name", SYSTEM.qa_plans())
def test_the_shipped_plans_can_be_read_and_run(name: str) -> None:
    """A mistake in a profile, setting, plot or requirement must be found here, not after half an hour of runs."""
    system = qualifiable(SYSTEM)
    plan = read_plan(system, name)
    order = QaRequest(plan, "v0.38.17", "v1.0.1")
    for scenario in plan.scenarios:
        for side in scenario.sides:
            assert system.expected_seconds(profile_of(system, order, scenario, side)) > 0.0


def test_an_unusable_plan_is_reported_in_one_sentence(tmp_path: Path) -> None:
    system = qualifiable(SYSTEM)
    with pytest.raises(UsageError, match="there is no plan `slow`"):
        read_plan(system, "slow")
    path = tmp_path / "own.toml"
    scenario = '[[scenario]]\nid="a"\ntitle="A"\nquestion="q"\nmethod="m"\nprofile="cometbft/demo"\n'
    head = 'system="cometbft"\ntitle="t"\ndescription="d"\n'
    path.write_text(head + scenario + 'plots=["nothing"]\n', encoding="utf-8")
    with pytest.raises(UsageError, match="uses the unknown plot `nothing`"):
        read_plan(system, str(path))
    path.write_text(head + scenario + 'headline=["nothing_s"]\n', encoding="utf-8")
    with pytest.raises(UsageError, match="the scenario `a` reports `nothing_s`"):
        read_plan(system, str(path))
    path.write_text(head + scenario + scenario, encoding="utf-8")
    with pytest.raises(UsageError, match="two scenarios are called `a`"):
        read_plan(system, str(path))
    path.write_text(head + scenario + 'beside="later"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="which must come before it"):
        read_plan(system, str(path))


def _until_decided(plan: QaPlan, most: int) -> QaPlan:
    """The first scenario runs until it is decided; the second still has two runs per side."""
    first = plan.scenarios[0].model_copy(update={"repetitions": None, "most_runs": most})
    return plan.model_copy(update={"scenarios": [first, plan.scenarios[1]]})


@dataclass
class _Asked:
    """A decision that is settled after a number of runs per side, and that stores its arguments."""

    after: int
    requested: list[tuple[int, int, int]] = field(default_factory=list)

    def __call__(self, plan: ScenarioPlan, baseline: Sequence[SealedRun], candidate: Sequence[SealedRun]) -> bool:
        self.requested.append((len(baseline), len(candidate), plan.planned_runs))
        return len(baseline) >= self.after


def _decided(folder: Path, plan: QaPlan, decider: _Asked, system: StandIn | None = None) -> QaMade:
    qualifier = Qualifier(Store(folder / "store"), system or StandIn(), decider)
    return qualifier.make(_order(_until_decided(plan, 5)), Followed())


@pytest.mark.parametrize(("after", "rounds"), [(1, 2), (2, 2), (4, 4), (9, 5)])
def test_a_gating_scenario_continues_until_it_is_decided(tmp_path: Path, plan: QaPlan, after: int, rounds: int) -> None:
    """It makes at least two runs per side, because one run shows no noise, and at most the planned number."""
    decider = _Asked(after)
    qualification = _decided(tmp_path, plan, decider)
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [2 * rounds, 4]
    assert decider.requested == [(number, number, 5) for number in range(2, min(rounds, 4) + 1)]
    lengths = [
        place.length
        for scenario in qualification.scenarios
        for run in scenario.runs
        if (place := run.manifest.experiment)
    ]
    assert lengths == [ExperimentLength(most=5, stops_early=True)] * 2 * rounds + [None] * 4


@pytest.mark.parametrize("stop", range(1, 11))
def test_a_sequential_scenario_is_resumed_where_it_stopped(tmp_path: Path, plan: QaPlan, stop: int) -> None:
    whole = _decided(tmp_path / "whole", plan, _Asked(3))
    broken = _decided(tmp_path / "broken", plan, _Asked(3), StandIn(_interrupt_at(stop)))
    assert broken.interrupted
    store = Store(tmp_path / "broken" / "store")
    resumed = Qualifier(store, StandIn(), _Asked(3)).resume(broken.experiment, Followed())
    assert _shape(resumed) == _shape(whole)


def test_a_decision_is_final_even_if_it_would_differ_today(tmp_path: Path, plan: QaPlan) -> None:
    """The archive has grown since then, but no run may be added to a finished qualification."""
    qualification = _decided(tmp_path, plan, _Asked(2))
    system = StandIn()
    again = Qualifier(Store(tmp_path / "store"), system, _Asked(9)).resume(qualification.experiment, Followed())
    assert system.made == []
    assert _shape(again) == _shape(qualification)


def test_a_round_that_was_continued_is_not_evaluated_again(tmp_path: Path, plan: QaPlan) -> None:
    """A different decision today must not discard the run that followed it."""
    broken = _decided(tmp_path, plan, _Asked(9), StandIn(_interrupt_at(6)))
    decider = _Asked(1)
    resumed = Qualifier(Store(tmp_path / "store"), StandIn(), decider).resume(broken.experiment, Followed())
    assert decider.requested == [(3, 3, 5)]
    assert [len(scenario.runs) for scenario in resumed.scenarios] == [6, 4]


def test_the_total_shrinks_when_a_scenario_is_decided_early(tmp_path: Path, plan: QaPlan) -> None:
    listener = Followed()
    qualifier = Qualifier(Store(tmp_path / "store"), StandIn(), _Asked(2))
    qualifier.make(_order(_until_decided(plan, 5)), listener)
    assert [(number, total) for _, number, total, _ in listener.steps] == [
        *((number, Total(14, "at most")) for number in range(1, 5)),
        *((number, Total(8)) for number in range(5, 9)),
    ]


def test_a_side_that_cannot_run_ends_the_rounds(tmp_path: Path, plan: QaPlan) -> None:
    """Without this side nothing can be decided. The side is tried again when the qualification is resumed."""
    qualification = _decided(tmp_path, plan, _Asked(9), StandIn(_stumbling(1, 2)))
    assert qualification.scenarios[0].failures == {"baseline": "a port is in use"}
    assert [run.manifest.subject.version for run in qualification.scenarios[0].runs] == ["v2", "v2"]
    resumed = Qualifier(Store(tmp_path / "store"), StandIn(), _Asked(3)).resume(qualification.experiment, Followed())
    assert len(resumed.scenarios[0].runs) == 6


def test_only_sequential_scenarios_have_a_maximum_number_of_runs(plan: QaPlan) -> None:
    content = plan.scenarios[0].model_dump() | {"repetitions": 2, "most_runs": 4}
    with pytest.raises(ValueError, match="only a gating comparison without `repetitions`"):
        ScenarioPlan.model_validate(content)
    content |= {"repetitions": None}
    assert ScenarioPlan.model_validate(content).planned_runs == 4
    assert ScenarioPlan.model_validate(content | {"most_runs": None}).planned_runs == 8


def test_the_standard_plan_takes_no_longer_than_25_minutes_on_two_processors() -> None:
    """Every user runs this plan. The limit holds even if nothing is decided before the maximum number of runs."""
    system = qualifiable(SYSTEM)
    order = QaRequest(read_plan(system, "standard"), "v0.38.17", "v1.0.1")
    seconds = 0.0
    for scenario in order.plan.scenarios:
        profiles = [profile_of(system, order, scenario, side) for side in scenario.sides]
        is_sweep = scenario.kind is ScenarioKind.SWEEP
        loads = most_loads_needed(SYSTEM.sweep_plan(profiles[0]).loads, [{}]) if is_sweep else 1
        at_a_time = int(2 // scenario.cores) if scenario.cores else 1
        seconds += sum(map(system.expected_seconds, profiles)) * scenario.planned_runs * loads / at_a_time
    assert seconds <= 23 * 60


def test_a_regression_is_explained_by_one_additional_unjudged_run_per_side(tmp_path: Path, plan: QaPlan) -> None:
    store, listener, system = Store(tmp_path / "store"), Followed(), StandIn()
    qualifier = Qualifier(store, system, explains=lambda *_: ("cpu",))
    qualification = qualifier.make(_order(plan), listener)
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 4]
    explaining = [run for run in store.sealed() if run.manifest.profiles]
    places = [(place.id, place.side) for run in explaining if (place := run.manifest.experiment)]
    assert places == [(f"{qualification.experiment}-first-profiles", side) for side in ("baseline", "candidate")]
    assert listener.again_because == ["node profiles help to explain what became worse"] * 2
    assert listener.again_of == ["v1", "v2"]
    numbers = [(number, total.runs, bool(total.purpose)) for _, number, total, _ in listener.steps]
    planned, explained = [(number, 8, False) for number in range(1, 5)], [(5, 10, True), (6, 10, True)]
    assert numbers == [*planned, *explained, *((number, 10, False) for number in range(7, 11))]
    # The second scenario ran the same versions under the same load, so the same profiles explain it.
    (run,) = store.profiled(qualification.scenarios[1].of_side("candidate"))
    assert run.run_id == explaining[1].run_id
    Qualifier(store, system, explains=qualifier.explains).resume(qualification.experiment, Followed())
    assert len(system.made) == 10


def test_runs_that_explain_several_scenarios_are_all_counted(tmp_path: Path, plan: QaPlan) -> None:
    """Otherwise the progress would show "run 12 of 10"."""
    (tmp_path / "long.toml").write_text('system = "cometbft"\nrate = 3\n', encoding="utf-8")
    other = plan.scenarios[1].model_copy(update={"profile": str(tmp_path / "long.toml")})
    both = plan.model_copy(update={"scenarios": [plan.scenarios[0], other]})
    listener = Followed()
    Qualifier(Store(tmp_path / "store"), StandIn(), explains=lambda *_: ("cpu",)).make(_order(both), listener)
    assert [(number, total.runs) for _, number, total, _ in listener.steps][-2:] == [(11, 12), (12, 12)]


def test_a_plan_with_one_run_per_side_is_explained_in_its_order(tmp_path: Path, plan: QaPlan) -> None:
    """It has no second round whose profile and sides could replace those of the first."""
    only = plan.model_copy(update={"scenarios": [plan.scenarios[0].model_copy(update={"repetitions": 1})]})
    listener = Followed()
    Qualifier(Store(tmp_path / "store"), StandIn(), explains=lambda *_: ("cpu",)).make(_order(only), listener)
    assert [(version, number, total) for version, number, total, _ in listener.steps] == [
        ("v1", 1, Total(2)), ("v2", 2, Total(2)),
        ("v1", 3, Total(4, purpose=NOT_JUDGED)), ("v2", 4, Total(4, purpose=NOT_JUDGED)),
    ]  # fmt: skip


def test_explanations_compare_the_baseline_with_the_candidate(tmp_path: Path, plan: QaPlan) -> None:
    """If the sides were swapped, a regression would look like an improvement and would get no node profiles."""
    versions: list[list[str]] = []

    scenarios: list[ScenarioPlan] = []

    def explains(scenario: ScenarioPlan, *sides: Sequence[SealedRun]) -> tuple[str, ...]:
        scenarios.append(scenario)
        versions.append([run.manifest.subject.version for side in sides for run in side])
        return ()

    Qualifier(Store(tmp_path / "store"), StandIn(), explains=explains).make(_order(plan), Followed())
    assert versions == [["v1", "v1", "v2", "v2"]] * 2
    assert scenarios == plan.scenarios


def test_only_compared_scenarios_are_explained(tmp_path: Path, plan: QaPlan) -> None:
    """An informational scenario has other sides, and a scenario that did not run has nothing to explain."""
    shown = {"kind": ScenarioKind.INFORMATIONAL, "gating": False, "sides": [SidePlan(id="new", version="candidate")]}
    scenarios = [plan.scenarios[0].model_copy(update={"needs": ["wings"]}), plan.scenarios[1].model_copy(update=shown)]
    store, system = Store(tmp_path / "store"), StandIn(lacks="wings")
    qualifier = Qualifier(store, system, explains=lambda *_: ("cpu",))
    qualification = qualifier.make(_order(plan.model_copy(update={"scenarios": scenarios})), Followed())
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [0, 2]
    assert len(store.sealed()) == 2


def test_a_failure_to_take_profiles_does_not_change_the_result(tmp_path: Path, plan: QaPlan) -> None:
    tried: list[int] = []

    def refuse(number_of_runs: int) -> None:
        tried.append(number_of_runs)
        if len(tried) == 5:
            raise EnvironmentFailure("no profile")

    store, listener = Store(tmp_path / "store"), Followed()
    qualification = Qualifier(store, StandIn(refuse), explains=lambda *_: ("cpu",)).make(_order(plan), listener)
    assert [len(scenario.runs) for scenario in qualification.scenarios] == [4, 4]
    assert [scenario.failures for scenario in qualification.scenarios] == [{}, {}]
    assert "no node profiles were collected: no profile" in listener.again_because
