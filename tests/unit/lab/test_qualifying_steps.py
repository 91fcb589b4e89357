"""The records, messages and runs of a qualification at every step, compared with values worked out by hand.

Runs take no time and have no samples. Tests that depend on time use their own clock.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import Progress
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.lab import machine, qualifying
from chainmark.lab.protocols import ExecutionRequest
from chainmark.lab.qualifying import QaMade, Qualifier, Stoppable
from chainmark.lab.scenarios import QaRequest
from chainmark.lab.schedules import PlannedRun, Standing, SweepLoad, SweepPlan, Total
from chainmark.network.host import host_facts
from chainmark.store.experiments import experiment_folder
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.lab.stand_in import Followed, Profile, Staged, StandIn, two_scenarios

TIMEOUT_S = 60
BY_TWO = "1 more network of this plan"


class Placed(Profile):
    """A profile with a tuple, which a sealed run stores as a list."""

    regions: tuple[str, ...] = ("eu", "us")


@dataclass
class Timed(Staged):
    """A system whose runs are expected to take a minute per unit of their rate."""

    def profile(self, content: Mapping[str, object]) -> Profile:
        """The profile with its regions."""
        return Placed.model_validate(content)

    def expected_seconds(self, profile: BaseModel) -> float:
        """A minute per unit of the rate."""
        assert isinstance(profile, Profile)
        return 60.0 * profile.rate


@dataclass
class Heard(Followed):
    """A listener that stores all its messages, in order."""

    messages: list[tuple[object, ...]] = field(default_factory=list)
    on_update: Callable[[float], None] = lambda _: None

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """Store the scenario."""
        self.messages.append(("scenario", scenario.id, list(lacking)))

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the run's step and number."""
        super().begin(step, number, total, left_s)
        self.messages.append(("begin", step.side, step.position, number))

    def again(self, step: PlannedRun, because: str) -> None:
        """Store the repetition and its reason."""
        super().again(step, because)
        self.messages.append(("again", step.side, because))

    def end(self, run: SealedRun) -> None:
        """Store which run ended."""
        assert run.manifest.experiment is not None
        self.messages.append(("end", run.manifest.experiment.side, run.manifest.experiment.position))

    def stage(self, name: str) -> None:
        """Store the stage."""
        self.messages.append(("stage", name))

    def update(self, fraction: float, detail: str = "") -> None:
        """Store the fraction."""
        self.messages.append(("update", fraction))
        self.on_update(fraction)

    def of(self, *kinds: str) -> list[tuple[object, ...]]:
        """All messages of these kinds."""
        return [event for event in self.messages if event[0] in kinds]


@dataclass
class Clock:
    """A clock that only the test moves."""

    now: float = 1000.0

    def monotonic(self) -> float:
        """The current time of this clock."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own_clock = Clock()
    monkeypatch.setattr(qualifying, "time", own_clock)
    return own_clock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def plan(tmp_path: Path) -> QaPlan:
    return two_scenarios(tmp_path)


Changes = Mapping[str, object]


def _with(plan: QaPlan, first: Changes, second: Changes | None = None) -> QaPlan:
    """The plan with changed scenarios. Without changes for the second scenario, the plan omits it."""
    changed = zip(plan.scenarios, (first, second), strict=True)
    scenarios = [
        ScenarioPlan.model_validate(scenario.model_dump() | dict(to)) for scenario, to in changed if to is not None
    ]
    return plan.model_copy(update={"scenarios": scenarios})


@pytest.fixture
def by_two(plan: QaPlan, monkeypatch: pytest.MonkeyPatch) -> QaPlan:
    """One scenario of three rounds, which makes its runs in pairs."""
    host = host_facts().model_copy(update={"cores": 4})
    monkeypatch.setattr(qualifying, "host_facts", lambda: host)
    return _with(plan, {"gating": False, "cores": 2, "repetitions": 3})


def _order(plan: QaPlan, **changes: Any) -> QaRequest:
    return QaRequest(plan, "v1", "v2", seed=10, **changes)


def _made(store: Store, plan: QaPlan, system: StandIn | None = None, listener: Followed | None = None) -> QaMade:
    return Qualifier(store, system or StandIn()).make(_order(plan), listener or Followed())


def _note(store: Store, qualification: QaMade) -> dict[str, Any]:
    return experiment_folder(store, qualification.experiment).read()


def _rewrite(store: Store, qualification: QaMade, **changes: object) -> None:
    folder = experiment_folder(store, qualification.experiment)
    (folder.path / "experiment.json").write_text(json.dumps(folder.read() | changes), encoding="utf-8")


def _failing(*numbers: int, because: str = "a port is in use") -> Callable[[int], None]:
    """A callback that fails at these attempts to make a run, counted from 1."""
    tried: list[int] = []

    def on_run(_number: int) -> None:
        tried.append(1)
        if len(tried) in numbers:
            raise EnvironmentFailure(because)

    return on_run


def _stopping(number: int) -> Callable[[int], None]:
    def on_run(number_of_runs: int) -> None:
        if number_of_runs == number:
            raise KeyboardInterrupt

    return on_run


def _ids(qualification: QaMade) -> dict[str, list[str]]:
    return {scenario.plan.id: [run.run_id for run in scenario.runs] for scenario in qualification.scenarios}


def test_the_request_and_its_runs_are_recorded_completely(
    store: Store, plan: QaPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process must be able to resume it, and users must see its state."""
    monkeypatch.setattr(qualifying, "utc_now", lambda: "2026-01-02T03:04:05Z")
    plan = _with(plan, {"repetitions": None, "most_runs": 4}, {"repetitions": 3})
    order = _order(plan, settings=("rate=4",), of_version={"candidate": ["rate=5"]})
    qualification = Qualifier(store, StandIn(), lambda *_: True).make(order, Followed())
    assert re.fullmatch(r"cometbft-qa-trial-\d{8}T\d{6}-[0-9a-f]{4}", qualification.experiment)
    assert (qualification.order, qualification.interrupted) == (order, False)
    assert {role: subject.version for role, subject in qualification.subjects.items()} == {
        "baseline": "v1",
        "candidate": "v2",
    }
    assert [len(ids) for ids in _ids(qualification).values()] == [4, 6], (
        "only a scenario that runs until it is decided can end early"
    )
    places = [
        place for scenario in qualification.scenarios for run in scenario.runs if (place := run.manifest.experiment)
    ]
    assert [place.id for place in places] == [f"{qualification.experiment}-first"] * 4 + [
        f"{qualification.experiment}-second"
    ] * 6
    assert _note(store, qualification) == {
        "schema_version": 1,
        "kind": "qa",
        "system": "cometbft",
        "plan": json.loads(plan.model_dump_json(by_alias=True)),
        "baseline": "v1",
        "candidate": "v2",
        "seed": 10,
        "settings": ["rate=4"],
        "of_version": {"candidate": ["rate=5"]},
        "started_at": "2026-01-02T03:04:05Z",
        "runs": _ids(qualification),
        "failures": {},
        "lacking": {},
        "settled": {"first": 2},
        "finished": True,
    }


def test_missing_runs_are_recorded_until_they_are_made(store: Store, plan: QaPlan) -> None:
    """After a side that could not run, unmet requirements or an interruption, the qualification is incomplete."""
    plan = _with(plan, {}, {"needs": ["wings"]})
    qualification = _made(store, plan, StandIn(_failing(1, 2), lacks="wings"))
    note = _note(store, qualification)
    assert note["failures"] == {"first": {"baseline": "a port is in use"}}
    assert note["lacking"] == {"second": ["wings"]}
    assert note["runs"] == {"first": _ids(qualification)["first"]}
    assert not note["finished"]
    system = StandIn(lacks="wings")
    resumed = Qualifier(store, system).resume(qualification.experiment, Followed())
    assert system.made == [("v1", 10), ("v1", 13)]
    note = _note(store, resumed)
    assert (note["failures"], note["finished"]) == ({}, True)
    assert note["runs"] == {"first": _ids(resumed)["first"]}


def test_an_interruption_is_recorded_with_the_finished_runs(store: Store, plan: QaPlan) -> None:
    broken = _made(store, plan, Staged(_stopping(3)))
    note = _note(store, broken)
    assert broken.interrupted
    assert not note["finished"]
    assert note["runs"] == {"first": _ids(broken)["first"]}
    assert len(note["runs"]["first"]) == 2
    # A finished qualification that is interrupted when it starts again is unfinished, if runs are missing.
    _rewrite(store, broken, finished=True)
    again = Qualifier(store, Staged(_stopping(1))).resume(broken.experiment, Followed())
    assert not _note(store, again)["finished"]


def test_a_lost_run_of_a_decided_scenario_is_repeated(store: Store, plan: QaPlan) -> None:
    """The decision was based on it; no run of a later round is added."""
    qualification = Qualifier(store, StandIn(), lambda *_: True).make(
        _order(_with(plan, {"repetitions": None, "most_runs": 4})), Followed()
    )
    store.remove(qualification.scenarios[0].done[2])
    system = StandIn()
    Qualifier(store, system).resume(qualification.experiment, Followed())
    assert system.made == [("v2", 12)]


def test_only_a_qualification_of_the_same_system_is_resumed(store: Store, plan: QaPlan) -> None:
    qualification = _made(store, plan)
    known = Qualifier(store, StandIn())
    for changes in ({"kind": "experiment"}, {"kind": "qa", "system": "cardano"}):
        _rewrite(store, qualification, **changes)
        for ask in (known.ordered, lambda reference: known.resume(reference, Followed())):
            with pytest.raises(
                UsageError, match=f"^`{qualification.experiment}` is not a qualification of `cometbft`$"
            ):
                ask(qualification.experiment)


def test_node_homes_are_kept_on_request(store: Store, plan: QaPlan) -> None:
    """They are large, so a resumed qualification keeps them only if it is requested again."""
    are_homes_retained: list[bool] = []
    system = Staged(under_load=lambda order, _: are_homes_retained.append(order.keep_homes))
    plan = _with(plan, {"repetitions": 1})
    qualification = Qualifier(store, system).make(_order(plan, keep_homes=True), Followed())
    for run in store.sealed():
        store.remove(run)
    Qualifier(store, system).resume(qualification.experiment, Followed())
    for run in store.sealed():
        store.remove(run)
    Qualifier(store, system).resume(qualification.experiment, Followed(), keep_homes=True)
    assert are_homes_retained == [True, True, False, False, True, True]


def _loading(_order: ExecutionRequest, progress: Progress) -> None:
    progress.stage("loading")


def test_every_scenario_and_run_is_reported_once_and_in_order(store: Store, plan: QaPlan) -> None:
    plan = _with(plan, {"needs": ["wings"]}, {"repetitions": 1})
    listener = Heard()
    _made(store, plan, Staged(lacks="wings", under_load=_loading), listener)
    assert listener.of("scenario", "begin", "stage") == [
        ("scenario", "first", ["wings"]),
        ("scenario", "second", []),
        ("begin", "baseline", 0, 1),
        ("stage", "loading"),
        ("begin", "candidate", 1, 2),
        ("stage", "loading"),
    ]
    assert listener.of("end") == [("end", "baseline", 0), ("end", "candidate", 1)]


@pytest.mark.parametrize("kind", [StandIn, Timed])
def test_the_time_left_is_estimated_from_finished_runs(
    store: Store, plan: QaPlan, clock: Clock, kind: type[StandIn]
) -> None:
    """A run that is measured but not sealed counts as finished; the profile states the expected duration."""

    def on_run(_number: int) -> None:
        clock.now += 30.0

    plan = _with(plan, {"repetitions": 1}, {"repetitions": 1, "settings": ["rate=3"]})
    listener = Heard()
    _made(store, plan, kind(on_run), listener)
    left = [seconds for *_, seconds in listener.steps]
    if kind is StandIn:
        assert left == [240.0, 180.0 / 2, 120.0 / 2, 60.0 / 2]
    else:  # two runs of 120 s, then two runs of 180 s
        assert left == [600.0, 480.0 / 4, 360.0 / 4, 180.0 * 90 / 420]
    assert [(number, total) for _, number, total, _ in listener.steps] == [(n, Total(4)) for n in range(1, 5)]


def test_a_run_that_takes_no_time_counts_as_a_second(store: Store, plan: QaPlan, clock: Clock) -> None:
    """With a duration of 0 s the estimated time left would be zero. A longer run counts with its duration."""
    listener = Heard()
    _made(store, plan, StandIn(), listener)
    assert [seconds for *_, seconds in listener.steps][:3] == [480.0, 7.0, 6.0]


def test_a_pair_that_takes_no_time_counts_as_a_second(store: Store, by_two: QaPlan, clock: Clock) -> None:
    listener = Heard()
    _made(store, by_two, Staged(), listener)
    assert [seconds for *_, seconds in listener.steps] == [180.0, 180.0, 2.0, 2.0, 1.0, 1.0]


def test_a_repeated_run_is_counted_with_the_planned_runs(store: Store, plan: QaPlan) -> None:
    listener = Heard()
    _made(store, _with(plan, {}), StandIn(invalid=frozenset({1, 4})), listener)
    assert [(number, total) for _, number, total, _ in listener.steps] == [
        (1, Total(4)), (2, Total(4)), (3, Total(5)), (4, Total(5)), (5, Total(5)), (6, Total(6)),
    ]  # fmt: skip
    assert listener.of("begin", "again") == [
        ("begin", "baseline", 0, 1),
        ("again", "baseline", "offered load met: 91 %, but >= 98 % is required"),
        ("begin", "baseline", 4, 2),
        ("begin", "candidate", 1, 3),
        ("begin", "candidate", 2, 4),
        ("again", "candidate", "offered load met: 91 %, but >= 98 % is required"),
        ("begin", "candidate", 6, 5),
        ("begin", "baseline", 3, 6),
    ]


def test_a_run_that_cannot_be_made_is_reported_with_its_side(store: Store, plan: QaPlan) -> None:
    listener = Heard()
    _made(store, _with(plan, {"repetitions": 1}), StandIn(_failing(2)), listener)
    assert listener.of("again") == [("again", "candidate", "a port is in use")]


def test_a_run_that_cannot_be_sealed_is_reported_with_its_side(store: Store, plan: QaPlan) -> None:
    def on_analysis(number: int) -> None:
        if number == 1:
            raise EnvironmentFailure("the disk is full")

    listener = Heard()
    qualification = _made(store, _with(plan, {"repetitions": 1}), Staged(on_analysis=on_analysis), listener)
    assert listener.of("again") == [("again", "baseline", "the disk is full")]
    assert sorted(listener.of("end")) == [("end", "baseline", 0), ("end", "candidate", 1)]
    assert [run.manifest.seed for run in qualification.scenarios[0].runs] == [10, 11]


def test_runs_with_another_set_up_are_refused_with_the_difference(store: Store, plan: QaPlan) -> None:
    """The version or the profile differs: the runs of one side are compared as equals."""
    broken = _made(store, _with(plan, {}), StandIn(_stopping(4)))
    (run,) = broken.scenarios[0].of_side("baseline")
    _rewrite(store, broken, baseline="v0")
    with pytest.raises(UsageError) as refused:
        Qualifier(store, StandIn()).resume(broken.experiment, Followed())
    assert refused.value.message == (
        f"{run.run_id} of `{broken.experiment}` does not match: it differs by the version v1 instead of v0"
    )
    assert refused.value.hint == "the profile has changed; start a new qualification"
    store.remove(broken.scenarios[0].done[2])  # the next run is the candidate's, and is checked as well
    for changes, difference in (
        ({"candidate": "v0"}, "the version v2 instead of v0"),
        ({"candidate": "v2", "settings": ["rate=7"]}, "the setting `rate`"),
    ):
        _rewrite(store, broken, baseline="v1", **changes)
        with pytest.raises(UsageError, match=f"differs by {difference}$"):
            Qualifier(store, StandIn()).resume(broken.experiment, Followed())


@pytest.mark.parametrize(("cores", "lacking", "is_shared"), [(2, [], True), (3, [], False), (2, ["wings"], False)])
def test_runs_are_made_two_at_a_time_if_the_machine_is_large_enough(
    store: Store, by_two: QaPlan, cores: int, lacking: list[str], is_shared: bool
) -> None:
    plan = _with_first(by_two, cores=cores, needs=lacking, repetitions=1)
    beside: list[str] = []
    system = Staged(under_load=lambda order, _: beside.append(order.beside), lacks="wings")
    listener = Heard()
    _made(store, plan, system, listener)
    assert beside == ([] if lacking else [BY_TWO if is_shared else ""] * 2)
    assert listener.of("scenario") == [("scenario", "first", lacking)]


def _with_first(plan: QaPlan, **changes: object) -> QaPlan:
    return plan.model_copy(update={"scenarios": [plan.scenarios[0].model_copy(update=changes)]})


def test_parallel_runs_are_each_counted_and_timed(store: Store, by_two: QaPlan, clock: Clock) -> None:
    """Each pair takes as long as one run: 45 s, which is half of the expected mean of its two runs."""
    both = threading.Barrier(2, lambda: setattr(clock, "now", clock.now + 45.0), timeout=TIMEOUT_S)

    def under_load(_order: ExecutionRequest, _progress: Progress) -> None:
        both.wait()

    order = _order(by_two, of_version={"baseline": ["rate=1"]})
    listener = Heard()
    Qualifier(store, Timed(under_load=under_load)).make(order, listener)
    assert [event[1:] for event in listener.of("begin")] == [
        ("baseline", 0, 1), ("candidate", 1, 2), ("candidate", 2, 3),
        ("baseline", 3, 4), ("baseline", 4, 5), ("candidate", 5, 6),
    ]  # fmt: skip
    left = [seconds for *_, seconds in listener.steps]
    assert left == [270.0, 270.0, 180.0 / 2, 180.0 / 2, 90.0 / 2, 90.0 / 2]
    assert listener.of("stage") == [("stage", "2 networks in parallel")] * 3


def test_the_progress_of_a_pair_follows_the_longer_run(
    store: Store, by_two: QaPlan, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never exceeds 1, for runs of any duration."""
    monkeypatch.setattr(qualifying, "LOOK_S", 0.0)
    late = threading.Event()

    def on_update(_fraction: float) -> None:
        clock.now += 30.0
        if clock.now >= 1180.0:
            late.set()

    def under_load(_order: ExecutionRequest, progress: Progress) -> None:
        while not late.wait(0.01):
            progress.update(0.0)  # raises after a failure elsewhere, which ends the loop

    order = _order(_with_first(by_two, repetitions=1), of_version={"baseline": ["rate=1"]})
    listener = Heard(on_update=on_update)
    Qualifier(store, Timed(under_load=under_load)).make(order, listener)
    fractions = [fraction for _, fraction in listener.of("update")]
    assert fractions[:6] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert set(fractions[6:]) <= {1.0}


def test_a_side_of_a_pair_that_fails_again_alone_is_omitted(store: Store, by_two: QaPlan) -> None:
    """The other side makes its runs, each alone on the machine."""
    run_places: list[tuple[str, int, str]] = []

    def under_load(order: ExecutionRequest, _progress: Progress) -> None:
        if order.version == "v2":
            raise EnvironmentFailure("a port is in use")
        run_places.append((order.version, order.seed, order.beside))

    listener = Heard()
    whole = _made(store, by_two, Staged(under_load=under_load), listener)
    assert run_places == [("v1", 10, BY_TWO), ("v1", 13, ""), ("v1", 14, "")]
    assert listener.of("again") == [("again", "candidate", "a port is in use")]
    assert whole.scenarios[0].failures == {"candidate": "a port is in use"}
    assert _note(store, whole)["failures"] == {"first": {"candidate": "a port is in use"}}
    assert [run.manifest.seed for run in whole.scenarios[0].runs] == [10, 13, 14]


def test_a_missing_run_of_a_pair_is_made_alone(store: Store, by_two: QaPlan) -> None:
    """Finished pairs are not repeated, and completely missing pairs are made together."""
    whole = _made(store, by_two, Staged())
    for position in (1, 4, 5):
        store.remove(whole.scenarios[0].done[position])
    run_places: list[tuple[int, str]] = []
    system = Staged(under_load=lambda order, _: run_places.append((order.seed, order.beside)))
    Qualifier(store, system).resume(whole.experiment, Followed())
    assert sorted(run_places) == [(11, ""), (14, BY_TWO), (15, BY_TWO)]
    assert run_places[0] == (11, "")


def test_a_usage_error_in_one_run_of_a_pair_ends_the_work_and_keeps_the_other_run(store: Store, by_two: QaPlan) -> None:
    def under_load(order: ExecutionRequest, _progress: Progress) -> None:
        if order.version == "v2":
            raise UsageError("there is no such node")

    with pytest.raises(UsageError, match="there is no such node"):
        _made(store, by_two, Staged(under_load=under_load))
    assert [run.manifest.subject.version for run in store.sealed()] == ["v1"]
    (path,) = (store.root / "experiments").iterdir()
    note = experiment_folder(store, path.name).read()
    assert note["runs"] == {"first": [run.run_id for run in store.sealed()]}
    assert not note["finished"]


def test_the_lock_is_taken_once_for_all_runs(
    store: Store, by_two: QaPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parallel runs in their own threads do not wait for the lock that their qualification holds."""
    monkeypatch.setattr(machine, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(machine, "LOOK_S", 0.0)
    monkeypatch.setenv(machine.USE, machine.MachineUse.WAIT)
    other = os.open(machine.LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)

    def on_update(_fraction: float) -> None:
        if not freed:
            freed.append(True)
            os.close(other)
            monkeypatch.setenv(machine.USE, machine.MachineUse.REFUSE)

    freed: list[bool] = []
    listener = Heard(on_update=on_update)
    qualification = _made(store, by_two, Staged(under_load=_loading), listener)
    assert listener.of("stage") == [
        ("stage", "waiting for another process, which is measuring on this machine"),
        *[("stage", "2 networks in parallel")] * 3,
    ]
    assert (len(qualification.scenarios[0].runs), listener.of("again")) == (6, [])


def test_a_run_in_another_thread_ends_on_request() -> None:
    stopped = threading.Event()
    progress = Stoppable(stopped)
    progress.stage("loading")
    progress.update(0.5, "half")
    stopped.set()
    with pytest.raises(KeyboardInterrupt):
        progress.stage("loading")
    with pytest.raises(KeyboardInterrupt):
        progress.update(0.5)


def test_explanations_are_reported_under_their_scenario_after_the_pairs(store: Store, by_two: QaPlan) -> None:
    plan = by_two.model_copy(update={"scenarios": [
        by_two.scenarios[0].model_copy(update={"id": name, "repetitions": 1}) for name in ("first", "second")
    ]})  # fmt: skip
    listener = Heard()
    qualifier = Qualifier(store, Staged(), explains=lambda *_: ("cpu",))
    qualifier.make(_order(plan), listener)
    assert [event[1] for event in listener.of("scenario")] == ["first", "second", "first"]


_LOADS = tuple(SweepLoad((per_s,), f"r{per_s}", per_s) for per_s in (10, 20, 30))


@dataclass
class Searched(StandIn):
    """A system that sustains 20 per second, or the given rate per version, with a search by bisection."""

    retained: Mapping[str, int] = field(default_factory=dict)

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """Three loads."""
        assert isinstance(profile, Profile)
        return SweepPlan(_LOADS, 0.05, 10, 10, 30, 0.5, "bisect")

    def load_of(self, _plan: SweepPlan | None, per_s: int) -> SweepLoad:
        """The load with this rate."""
        return next(load for load in _LOADS if load.per_s == per_s)

    def at_load(self, profile: BaseModel, load: SweepLoad) -> BaseModel:
        """The profile at the rate of this load."""
        return profile.model_copy(update={"rate": load.per_s})

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """The standing of each load, from the rates of the valid runs."""
        ran = [
            (int(str(run.manifest.profile["rate"])), self.retained.get(run.manifest.subject.version, 20))
            for run in runs
            if run.manifest.status == "valid"
        ]
        return [{self.load_of(None, rate): "kept up" if rate <= most else "lost" for rate, most in ran}]


def _sides(qualification: QaMade) -> list[tuple[str, int]]:
    return [
        (place.side, place.position) for run in qualification.scenarios[0].runs if (place := run.manifest.experiment)
    ]


@pytest.fixture
def sweep(plan: QaPlan) -> QaPlan:
    return _with(plan, {"kind": "sweep", "repetitions": 1})


def test_a_search_makes_only_the_runs_that_it_needs(store: Store, sweep: QaPlan) -> None:
    """The middle load is first. Both versions sustain it and fail the next higher load, so 10 per second is not run."""
    listener = Heard()
    qualification = _made(store, sweep, Searched(), listener)
    assert [event[1:3] for event in listener.of("begin")] == [
        ("v2/r20", 2),
        ("v1/r20", 3),
        ("v1/r30", 4),
        ("v2/r30", 5),
    ]
    assert not qualification.interrupted
    assert _note(store, qualification)["finished"]
    system = Searched()
    again = Qualifier(store, system).resume(qualification.experiment, Followed())
    assert (system.made, _sides(again)) == ([], _sides(qualification))


def test_a_search_runs_loads_that_either_version_leaves_open(store: Store, sweep: QaPlan) -> None:
    """The baseline sustains 20 per second, so 30 is run. The candidate does not, so 10 is run, and 20 again."""
    qualification = _made(store, sweep, Searched(retained={"v1": 20, "v2": 10}))
    assert sorted(_sides(qualification)) == [
        ("v1/r10", 0), ("v1/r20", 3), ("v1/r20", 8), ("v1/r30", 4),
        ("v2/r10", 1), ("v2/r20", 2), ("v2/r20", 9), ("v2/r30", 5),
    ]  # fmt: skip


def test_a_resumed_search_repeats_invalid_runs_and_continues(store: Store, sweep: QaPlan) -> None:
    broken = _made(store, sweep, Searched(_stopping(3), invalid=frozenset({2})))
    assert broken.interrupted
    listener = Heard()
    Qualifier(store, Searched()).resume(broken.experiment, listener)
    assert listener.of("begin", "again") == [
        ("again", "v1/r20", "offered load met: 91 %, but >= 98 % is required"),
        ("begin", "v1/r20", 15, 3),
        ("begin", "v1/r30", 4, 4),
        ("begin", "v2/r30", 5, 5),
    ]


def test_a_search_continues_when_a_load_cannot_be_run(store: Store, sweep: QaPlan) -> None:
    """The failed load must not be requested again and again."""
    qualification = _made(store, sweep, Searched(_failing(1, 2)))
    assert qualification.scenarios[0].failures == {"v2/r20": "a port is in use"}
    assert ("v1/r20", 3) in _sides(qualification)
    assert ("v2/r20", 2) not in _sides(qualification)
    assert not _note(store, qualification)["finished"]
