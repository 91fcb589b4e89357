"""Runs of real networks: what each is ordered and stores, what an abort leaves, and when measured runs are analysed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from pydantic import BaseModel

from chainmark.core.errors import EnvironmentFailure, LostMachineError, UsageError
from chainmark.core.manifest import BESIDE, ExperimentLength, ExperimentPlace, Fact, Scalar
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress, Silent
from chainmark.lab import attempts, running
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.running import Among, Finish, Finisher, Lab, RunSeries
from chainmark.lab.schedules import Arm, PlannedRun, Total
from chainmark.store.live import LIVE
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.lab.stand_in import Followed, Profile, Staged, StandIn

PROFILE = Profile(system="cometbft", name="quick", rate=7)
ARM = Arm("candidate", "v2", PROFILE)
STEP = PlannedRun("candidate", "v2", PROFILE, repetition=2, position=3)
LENGTH = ExperimentLength(most=4, stops_early=True)


@dataclass
class _Listener(Followed):
    """Stores how runs are announced, the stages, and the runs that ended."""

    announced: list[tuple[int, int, int, float | None]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    ended: list[SealedRun] = field(default_factory=list)

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the position, the run's number, the total and the seconds left."""
        self.announced.append((step.position, number, total.runs, left_s))

    def stage(self, name: str) -> None:
        """Store the stage."""
        self.stages.append(name)

    def end(self, run: SealedRun) -> None:
        """Store the run."""
        self.ended.append(run)


@dataclass
class _Measured(Staged):
    """A system that stores its orders and the states of unfinished runs. ``filled`` runs have raw data at once."""

    orders: list[ExecutionRequest] = field(default_factory=list)
    states: list[dict[str, object]] = field(default_factory=list)
    filled: bool = False
    is_shown: list[bool] = field(default_factory=list)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The rate of the profile."""
        return {"load.rate": Profile.model_validate(profile.model_dump()).rate}

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Make a run with samples of one metric."""
        assert profile is PROFILE
        self.orders.append(order)
        self.states.append(run.state())
        if self.filled:
            (run.raw / "log").write_text("line\n", encoding="utf-8")
        progress.stage("offering")
        self.is_shown.append((run.path / LIVE).exists())
        execution = super().execute(profile, order, run, progress)
        execution.samples["node"] = pl.DataFrame({"node": ["n0"], "peer_count": [3.0]})
        return execution


def _series(folder: Path, system: StandIn, listener: Followed | None = None, **known: object) -> RunSeries:
    series = RunSeries(Lab(Store(folder), system), "x-1", 10, keep_homes=True, listener=listener or _Listener())
    return replace(series, **known)  # type: ignore[arg-type]


def test_a_run_is_ordered_as_its_series_is(tmp_path: Path) -> None:
    """Its seed is that of the series plus its position."""
    system, machines = _Measured(), cast(Machines, object())
    series = _series(tmp_path, system, length=LENGTH, profiles=("cpu",))
    called: list[str] = []
    among = Among(lambda: called.append("quiet"), lane=1, beside="v1")
    finish = series.on(machines).measure(STEP, Silent(), among)
    assert called == ["quiet"]
    manifest = finish(Silent()).manifest
    (order,) = system.orders
    assert order == ExecutionRequest("v2", 13, True, ("cpu",), among.quiet, 1, "v1", machines)
    assert manifest.experiment == ExperimentPlace(id="x-1", side="candidate", repetition=2, position=3, length=LENGTH)
    assert (manifest.seed, manifest.profiles) == (13, ["cpu"])
    assert manifest.facts == [Fact(label=BESIDE, value="v1")]
    series.measure(STEP, Silent())(Silent())
    alone = system.orders[1]
    assert (alone.machines, alone.lane, alone.beside) == (None, 0, "")


def test_a_run_stores_its_profile_its_workload_and_only_what_was_sampled(tmp_path: Path) -> None:
    """A metric that the run was not set up to measure would be reported as missing."""
    run = _series(tmp_path, _Measured()).measure(STEP, Silent())(Silent())
    manifest = run.manifest
    assert (manifest.profile_name, manifest.profile) == ("quick", PROFILE.model_dump())
    assert (manifest.workload, manifest.facts, manifest.subject.version) == ({"load.rate": 7}, [], "v2")
    assert run.run_id.startswith("cometbft-quick-v2-")
    assert [metric.id for metric in run.catalogue.metrics] == ["peer_count"]
    assert run.summaries()["peer_count"].estimates["mean"].value == 3.0


def test_an_unfinished_run_names_its_experiment(tmp_path: Path) -> None:
    """When the experiment is resumed, the rest of a killed run is removed, but not that of a single run."""
    system = _Measured()
    series = _series(tmp_path, system)
    series.measure(STEP, Silent())(Silent())
    run = series.lab.measure(PROFILE, ExecutionRequest("v3", 1, keep_homes=False), Silent(), None)(Silent())
    assert run.manifest.experiment is None
    first, second = system.states
    assert (first["experiment"], first["version"], first["profile"]) == ("x-1", "v2", "quick")
    assert "experiment" not in second


def test_the_machine_is_reserved_until_a_run_is_measured_and_its_progress_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The analysis needs no machine to itself, and is shown to whoever waits for it."""
    shown, waiting = _Listener(), _Listener()
    events: list[str] = []

    @contextmanager
    def reserved(progress: Progress) -> Iterator[None]:
        assert progress is shown
        events.append("reserved")
        yield
        events.append("free")

    monkeypatch.setattr(running, "machine_to_itself", reserved)
    system = _Measured(on_load=lambda _: events.append("load"), on_analysis=lambda _: events.append("analysis"))
    finish = _series(tmp_path, system).measure(STEP, shown)
    assert events == ["reserved", "load", "free"]
    run = finish(waiting)
    assert events[3:] == ["analysis"]
    assert (shown.stages, waiting.stages) == (["offering"], [])
    assert system.is_shown == [True]
    assert not (run.path / LIVE).exists()


def test_the_analysis_reports_to_whoever_waits_for_it(tmp_path: Path) -> None:
    received: list[Progress] = []

    class Reporting(_Measured):
        """Reports its analysis."""

        def measure(
            self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
        ) -> Callable[[Progress], Execution]:
            """Measure a run and return its analysis."""
            analyse = super().measure(profile, order, run, progress)

            def reported(progress: Progress) -> Execution:
                received.append(progress)
                return analyse(progress)

            return reported

    waiting, listener = Silent(), _Listener()
    series = _series(tmp_path, Reporting(), listener)
    series.measure(STEP, Silent())(waiting)
    series.make(STEP, 1, Total(1))
    assert received == [waiting, listener]


def test_a_system_without_a_separate_analysis_makes_the_whole_run(tmp_path: Path) -> None:
    class Plain(StandIn):
        """Writes raw data and reports a stage."""

        def execute(
            self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
        ) -> Execution:
            """Make a run."""
            assert profile is PROFILE
            (run.raw / order.version).write_text("line\n", encoding="utf-8")
            progress.stage("offering")
            return super().execute(profile, order, run, progress)

    shown = _Listener()
    run = _series(tmp_path, Plain()).measure(STEP, shown)(Silent())
    assert [source.path for source in run.manifest.sources] == ["raw/v2"]
    assert shown.stages == ["offering"]


def _fail(error: BaseException) -> Callable[[int], None]:
    def stop(_: int) -> None:
        raise error

    return stop


@pytest.mark.parametrize("during", ["on_load", "on_analysis"])
@pytest.mark.parametrize(
    ("error", "filled", "kept"),
    [
        (EnvironmentFailure("full disk"), True, 1),
        (EnvironmentFailure("full disk"), False, 0),
        (UsageError("no such key"), True, 0),
        (KeyboardInterrupt(), True, 0),
    ],
)
def test_an_aborted_run_is_kept_if_its_data_may_explain_the_failure(
    tmp_path: Path, during: str, error: BaseException, filled: bool, kept: int
) -> None:
    """Also if the failure is one of the analysis, after the machine was free again."""
    system = _Measured(filled=filled)
    setattr(system, during, _fail(error))
    series = _series(tmp_path, system)
    with pytest.raises(type(error)):
        series.make(STEP, 1, Total(1))
    assert len(Store(tmp_path).unfinished()) == kept
    assert (Store(tmp_path).sealed(), series.runs) == ([], {})


@dataclass
class _Replaced:
    """Machines of which a lost one is replaced."""

    lost: list[str] = field(default_factory=list)

    def wait_for_replacement(self, worker: str, within_s: float) -> bool:
        """Store the lost worker."""
        self.lost.append(worker)
        return True


def test_a_run_is_made_again_if_a_lost_machine_is_replaced(tmp_path: Path) -> None:
    def lose(number: int) -> None:
        if not machines.lost:
            raise LostMachineError("the worker on 10.0.0.9 is lost", "", "tcp://10.0.0.9:1")

    machines, listener = _Replaced(), _Listener()
    lab = Lab(Store(tmp_path), StandIn(lose), cast(Machines, machines))
    run = replace(_series(tmp_path, StandIn()), lab=lab).measure(STEP, listener)(Silent())
    assert machines.lost == ["tcp://10.0.0.9:1"]
    assert listener.stages == ["the worker on 10.0.0.9 is lost; waiting for its replacement"]
    assert run.manifest.experiment is not None
    assert run.manifest.experiment.position == 3


def test_a_run_is_announced_with_its_number_and_the_time_left(tmp_path: Path) -> None:
    listener = _Listener()
    series = _series(tmp_path, StandIn(), listener)
    run = series.make(STEP, 2, Total(5), 30.0)
    assert listener.announced == [(3, 2, 5, 30.0)]
    assert listener.ended == [run]
    assert (series.runs, series.next_position) == ({3: run}, 4)
    other = series.make(replace(STEP, position=1, side="baseline"), 3, Total(5))
    assert listener.announced[1:] == [(1, 3, 5, None)]
    assert series.in_order() == [other, run]
    assert (series.of_side("baseline"), series.of_side("candidate")) == ([other], [run])


def test_positions_begin_at_zero_and_the_runs_that_explain_are_numbered_by_themselves(tmp_path: Path) -> None:
    """They are of another experiment, but on the same machines and with the same seeds as the explained ones."""
    listener = _Listener()
    series = _series(tmp_path, _Measured(), listener, length=LENGTH)
    assert series.next_position == 0
    series.until_evidence(ARM, 1, lambda position: Total(position + 9))
    explaining = series.explaining(["cpu", "heap"])
    run = explaining.until_evidence(ARM, 1, lambda position: Total(position + 5))
    assert listener.announced == [(0, 1, 9, None), (0, 1, 5, None)]
    assert run.manifest.experiment == ExperimentPlace(id="x-1-profiles", side="candidate", repetition=1, position=0)
    assert (run.manifest.seed, run.manifest.profiles) == (10, ["cpu", "heap"])
    assert len(series.runs) == 1
    assert (explaining.lab, explaining.keep_homes, explaining.listener) == (series.lab, True, listener)


@dataclass(frozen=True)
class _Repeated:
    """What three repetitions become if the second and the third run fail because of the instrument.

    Attributes:
        options: of the request.
        places: the repetition and the position of each run.
        totals: the number of runs that is announced with each.
        waits: how often the processors are waited for, before a run that follows a failed one.
    """

    options: dict[str, Any]
    places: list[tuple[int, int]]
    totals: list[int]
    waits: int


@pytest.mark.parametrize(
    "expected",
    [
        _Repeated({}, [(1, 0), (2, 1), (3, 2)], [3, 3, 3], 1),
        _Repeated({"attempts": 2}, [(1, 0), (2, 1), (2, 2), (3, 3)], [3, 3, 4, 4], 2),
        _Repeated({"attempts": 3, "profiles": ("cpu",)}, [(1, 0), (2, 1), (2, 2), (2, 3), (3, 4)], [3, 3, 4, 5, 5], 2),
    ],
    ids=["once", "twice", "thrice"],
)
def test_runs_of_one_version_are_repeated_as_often_as_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: _Repeated
) -> None:
    """Every repeated run is one more of the total, and no other measurement may begin between two runs."""
    listener, system = _Listener(), _Measured(invalid=frozenset({2, 3}))
    reserved: list[Progress] = []
    waits: list[Progress] = []

    @contextmanager
    def reserve(progress: Progress) -> Iterator[None]:
        reserved.append(progress)
        yield

    monkeypatch.setattr(running, "machine_to_itself", reserve)
    monkeypatch.setattr(attempts, "wait_for_processors", waits.append)
    runs = Lab(Store(tmp_path), system).repeat(ARM, 3, 20, listener, keep_homes=True, **expected.options)
    stands = [place for run in runs if (place := run.manifest.experiment)]
    assert [(place.repetition, place.position) for place in stands] == expected.places
    assert [run.manifest.seed for run in runs] == [20 + place.position for place in stands]
    assert listener.announced == [
        (position, position + 1, total, None) for position, total in enumerate(expected.totals)
    ]
    assert {place.side for place in stands} == {"candidate"}
    (experiment_id,) = {place.id for place in stands}
    assert experiment_id.startswith("cometbft-quick-20")
    kinds = expected.options.get("profiles", ())
    assert {(order.keep_homes, order.profiles) for order in system.orders} == {(True, kinds)}
    assert reserved[0] is listener
    assert waits == [listener] * expected.waits


def test_a_series_has_the_runs_that_were_finished_before(tmp_path: Path) -> None:
    lab, listener = Lab(Store(tmp_path), StandIn()), _Listener()
    run = _series(tmp_path, StandIn()).make(STEP, 1, Total(1))
    series = RunSeries.begun(lab, "x-1", 5, True, listener)
    assert (series.lab, series.experiment_id, series.seed, series.keep_homes) == (lab, "x-1", 5, True)
    assert series.listener is listener
    assert {position: known.run_id for position, known in series.runs.items()} == {3: run.run_id}


def test_measured_runs_are_analysed_one_after_the_other_with_the_lowest_priority() -> None:
    """Two at a time, or one that takes processors from the network that starts meanwhile, would disturb it."""
    release = threading.Event()

    def finish(progress: Progress) -> SealedRun:
        assert isinstance(progress, Silent)
        release.wait(60)
        thread = threading.current_thread()
        priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        return cast(SealedRun, (thread.name, threading.get_native_id(), priority))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    with Finisher() as finisher:
        both = [finisher.submit(cast(Finish, finish)) for _ in range(2)]
        release.set()
    first, second = (future.result() for future in both)
    assert first == second
    assert cast(object, first) == ("finishing_0", cast(tuple[str, int, int], first)[1], 19)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_a_load_begins_only_when_nothing_is_analysed_any_more() -> None:
    """An error of the analysis is raised where its result is needed, not by the next run."""
    release = threading.Event()

    def fail(_: Progress) -> SealedRun:
        release.wait(60)
        raise EnvironmentFailure("the disk is full")

    with Finisher() as finisher:
        finisher.quiet()
        failed = finisher.submit(fail)
        waiting = threading.Thread(target=finisher.quiet)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        release.set()
        waiting.join(60)
        assert not waiting.is_alive()
        assert isinstance(failed.exception(), EnvironmentFailure)


def test_measured_runs_are_sealed_however_the_work_ends() -> None:
    sealed: list[str] = []

    def interrupted() -> None:
        with Finisher() as finisher:
            finisher.submit(lambda _: cast(SealedRun, sealed.append("first")))
            finisher.submit(lambda _: cast(SealedRun, sealed.append("second")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sealed == ["first", "second"]
