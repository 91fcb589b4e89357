"""The qualification of a release of any system: makes the runs of its plan one by one, and can be resumed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentLength, Subject
from chainmark.core.parts import Machines
from chainmark.core.qa_plan import QaPlan, Role, ScenarioKind, ScenarioPlan
from chainmark.core.times import utc_now
from chainmark.core.wording import enumerated
from chainmark.lab.attempts import until_evidence
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.profiles import differing_keys
from chainmark.lab.protocols import QualifiableSystem, StagedSystem
from chainmark.lab.running import Among, Finish, Finisher, Lab, Listener, RunSeries
from chainmark.lab.scenarios import LEAST_ROUNDS, QaRequest, ScenarioMade, prepared
from chainmark.lab.schedules import NOT_JUDGED, PlannedRun, Total
from chainmark.lab.session import finished_runs, new_experiment_id
from chainmark.lab.sweeping import Bisected
from chainmark.network.host import host_facts
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

EXPERIMENT_SCHEMA = 1
# Whether further runs of the baseline and the candidate would not change the result of a scenario.
IsSettled = Callable[[ScenarioPlan, Sequence[SealedRun], Sequence[SealedRun]], bool]
# The kinds of profiles to record of the nodes in one further run per side, which explains the results and is not
# judged; empty if there is nothing to explain.
Explains = Callable[[ScenarioPlan, Sequence[SealedRun], Sequence[SealedRun]], Sequence[str]]
# Runs of scenarios that do not use the whole machine: a failure of the machine costs all of them.
MOST_AT_A_TIME = 4
LOOK_S = 0.2


class _Record(BaseModel):
    """``experiment.json`` of a qualification."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = EXPERIMENT_SCHEMA
    kind: str = "qa"
    system: str
    plan: dict[str, Any]
    baseline: str
    candidate: str
    seed: int
    settings: list[str] = []
    of_version: dict[Role, list[str]] = {}
    started_at: str
    runs: dict[str, list[str]] = {}  # scenario → runs in chronological order
    failures: dict[str, dict[str, str]] = {}  # scenario → side → why it could not be run
    lacking: dict[str, list[str]] = {}
    settled: dict[str, int] = {}  # scenario → rounds after which further runs would not have changed the result
    finished: bool = False


@dataclass(frozen=True)
class QaMade:
    """All runs that were made; with ``interrupted`` some are missing."""

    experiment: str
    order: QaRequest
    subjects: dict[Role, Subject]
    scenarios: list[ScenarioMade]
    interrupted: bool


class QaListener(Listener, Protocol):
    """Receives the progress of a qualification."""

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """A scenario begins, or cannot be run."""

    def again(self, step: PlannedRun, because: str) -> None:
        """A run is repeated: it is invalid, or could not be made."""


@dataclass(frozen=True)
class Qualifier:
    """Makes the runs of plans into one store.

    Attributes:
        is_settled: called after every round of a scenario that continues until it is decided.
        explains: called after every scenario that compares two sides.
        machines: on which the nodes run; None: on this one.
    """

    store: Store
    system: QualifiableSystem
    is_settled: IsSettled = lambda plan, baseline, candidate: False
    explains: Explains = lambda plan, baseline, candidate: ()
    machines: Machines | None = None

    def new_folder(self, order: QaRequest) -> ExperimentFolder:
        """The folder of a new qualification."""
        return experiment_folder(self.store, new_experiment_id(self.system.name, order.plan.name, "qa"))

    def make(self, order: QaRequest, listener: QaListener, folder: ExperimentFolder | None = None) -> QaMade:
        """Begin a qualification and run it to its end, or until it is interrupted.

        Args:
            order: the versions, and what to do with them.
            listener: receives the progress.
            folder: a new one; None: `new_folder`.

        Raises:
            UsageError: a profile or setting of the plan cannot be used; detected before anything is run.
        """
        record = _Record(
            system=self.system.name,
            plan=order.plan.model_dump(mode="json", by_alias=True),
            baseline=order.baseline,
            candidate=order.candidate,
            seed=order.seed,
            settings=list(order.settings),
            of_version={role: list(settings) for role, settings in order.of_version.items()},
            started_at=utc_now(),
        )
        return self._execute(folder or self.new_folder(order), record, order, listener)

    def ordered(self, reference: str) -> QaRequest:
        """The request with which an experiment began.

        Raises:
            UsageError: there is no such experiment.
        """
        return _ordered(self._record(find_experiment(self.store, reference)))

    def resume(self, reference: str, listener: QaListener, *, keep_homes: bool = False) -> QaMade:
        """Resume a qualification: finished runs are kept, the missing ones are made with their seeds and order.

        Raises:
            UsageError: there is no such experiment, or another process works on it.
        """
        folder = find_experiment(self.store, reference)
        record = self._record(folder)
        order = replace(_ordered(record), keep_homes=keep_homes)
        return self._execute(folder, record, order, listener)

    def _record(self, folder: ExperimentFolder) -> _Record:
        return folder.record(_Record, f"a qualification of `{self.system.name}`", self.system.name)

    def _execute(self, folder: ExperimentFolder, record: _Record, order: QaRequest, listener: QaListener) -> QaMade:
        """Make the missing runs."""
        scenarios = [
            prepared(self.system, order, scenario, folder.experiment_id, is_hosted=self.machines is not None)
            for scenario in order.plan.scenarios
        ]
        subjects: dict[Role, Subject] = {
            "baseline": self.system.install(order.baseline),
            "candidate": self.system.install(order.candidate),
        }
        with machine_to_itself(listener), folder.locked():
            record.failures, record.finished = {}, False
            record.lacking = {scenario.plan.id: scenario.lacking for scenario in scenarios if scenario.lacking}
            folder.write(record)
            interrupted = _Work(self, folder, record, order, listener, scenarios).run()
        return QaMade(folder.experiment_id, order, subjects, scenarios, interrupted)


def _ordered(record: _Record) -> QaRequest:
    plan = QaPlan.model_validate(record.plan)
    return QaRequest(plan, record.baseline, record.candidate, record.seed, tuple(record.settings), record.of_version)


def _fit(group: Sequence[tuple[ScenarioMade, PlannedRun]], scenario: ScenarioMade, runs: int) -> bool:
    """Whether further runs of a scenario may be made at the same time as a group."""
    needed = sum(item.plan.cores or 0.0 for item, _ in group) + runs * (scenario.plan.cores or 0.0)
    return needed <= host_facts().cores and len(group) + runs <= MOST_AT_A_TIME


class Stoppable:
    """A listener of a run in another thread, which ends the run as Ctrl-C does in the main thread."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped

    def stage(self, name: str) -> None:
        """End the run if requested."""
        if self._stopped.is_set():
            raise KeyboardInterrupt

    def update(self, fraction: float, detail: str = "") -> None:
        """End the run if requested."""
        self.stage("")


@dataclass(frozen=True, eq=False)
class _Open:
    """A run that was measured and is being sealed."""

    scenario: ScenarioMade
    step: PlannedRun
    sealed: Future[SealedRun]


@dataclass
class _Work:
    """One pass over the missing runs of a plan.

    Attributes:
        open: the runs that are not sealed yet, in the order in which they were measured.
        taken: expected and actual seconds of the runs of this pass.
        announced: the scenario that the listener was last informed of.
    """

    qualifier: Qualifier
    folder: ExperimentFolder
    record: _Record
    order: QaRequest
    listener: QaListener
    made: list[ScenarioMade]
    taken: list[tuple[float, float]] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    finisher: Finisher = field(default_factory=Finisher)
    announced: str = ""
    explaining: int = 0  # runs that explain other results; they are counted with all

    def run(self) -> bool:
        """Make all missing runs; return whether it was interrupted."""
        for scenario in self.made:
            scenario.done = finished_runs(self.qualifier.store, scenario.experiment)
            scenario.rounds = self.record.settled.get(scenario.plan.id)
        interrupted = False
        try:
            with self.finisher:
                for is_shared, group in groupby(self.made, self._shares):
                    if is_shared:
                        self._side_by_side(list(group))
                    else:
                        self._in_turn(group)
                self._close()
            self.record.finished = not any(item.failures for item in self.made)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._keep()
            self._write()
        return interrupted

    def _shares(self, scenario: ScenarioMade) -> bool:
        """Whether runs of a scenario may be made at the same time."""
        return self._at_a_time(scenario) > 1

    def _at_a_time(self, scenario: ScenarioMade) -> int:
        """How many runs of a scenario may be made at the same time on this machine."""
        cores = scenario.plan.cores
        # The processors of other machines are not known here.
        if cores is None or self.qualifier.machines is not None or scenario.lacking:
            return 1
        return min(MOST_AT_A_TIME, int(host_facts().cores // cores))

    def _in_turn(self, scenarios: Iterable[ScenarioMade]) -> None:
        for scenario in scenarios:
            self._report_scenario(scenario)
            self._scenario(scenario)
            self._explain(scenario)

    def _report_scenario(self, scenario: ScenarioMade) -> None:
        """Report the scenario of the following runs to the listener, if it has changed."""
        if self.announced != scenario.plan.id:
            self.announced = scenario.plan.id
            self.listener.scenario(scenario.plan, scenario.lacking)

    def _side_by_side(self, scenarios: Sequence[ScenarioMade]) -> None:
        """Make several runs of scenarios at the same time, as many as the processors allow.

        What is left of an interrupted group, and every repetition, has the machine to itself.
        """
        for group in self._groups(scenarios):
            possible = [(item, step) for item, step in group if step.side not in item.failures]
            if len(possible) > 1 and all(step.position not in item.done for item, step in possible):
                self._group(possible)
                continue
            for scenario, step in possible:
                self._step(scenario, step)
        for scenario in scenarios:
            self._explain(scenario)

    def _groups(self, scenarios: Sequence[ScenarioMade]) -> Iterator[Sequence[tuple[ScenarioMade, PlannedRun]]]:
        """The runs to make at the same time: a round of a scenario in one group, if it fits.

        After each round of a scenario, its results decide whether more follow.
        """
        group: list[tuple[ScenarioMade, PlannedRun]] = []
        for scenario in scenarios:
            for repetition, steps in groupby(scenario.steps, lambda step: step.repetition):
                round_steps = list(steps)
                if scenario.is_over(round_steps[0]):
                    break
                if group and not _fit(group, scenario, len(round_steps)):
                    yield group
                    group = []
                for step in round_steps:
                    if group and not _fit(group, scenario, 1):
                        yield group
                        group = []
                    group.append((scenario, step))
                if scenario.looks_after(round_steps[-1]):
                    yield group
                    group = []
                    self._look(scenario, repetition)
        if group:
            yield group

    def _group(self, group: Sequence[tuple[ScenarioMade, PlannedRun]]) -> None:
        """Make runs at the same time; the sides alternate places from round to round as they alternate in order."""
        before, began = list(self.open), time.monotonic()
        stopped = threading.Event()
        neighbours = f"{units.plural(len(group) - 1, 'more network')} of this plan"
        futures: list[Future[Finish]] = []
        try:
            with ThreadPoolExecutor(len(group), "measuring") as pool:
                try:
                    for place, (scenario, step) in enumerate(group):
                        among = Among(self.finisher.quiet, place, neighbours)
                        series = self._announced(scenario, step, place)
                        work = partial(series.measure, step, Stoppable(stopped), among)
                        futures.append(pool.submit(copy_context().run, work))
                    self._follow(futures, max(self._expected_s(step) for _, step in group))
                except BaseException:
                    stopped.set()
                    raise
        finally:
            for (scenario, step), future in zip(group, futures, strict=False):
                if future.exception() is None:
                    self.open.append(_Open(scenario, step, self.finisher.submit(future.result())))
        hoped = sum(self._expected_s(step) for _, step in group) / len(group)
        self.taken.append((hoped, max(1.0, time.monotonic() - began)))
        for (scenario, step), future in zip(group, futures, strict=True):
            error = future.exception()
            if isinstance(error, EnvironmentFailure):
                self.listener.again(step, error.message)
                with self._noting(scenario, step):
                    self._begin(scenario, step)
            elif error is not None:
                raise error
        self._close(before)

    def _follow(self, futures: Sequence[Future[Finish]], expected_s: float) -> None:
        """Report the progress of runs that are made at the same time."""
        self.listener.stage(f"{len(futures)} networks in parallel")
        began = time.monotonic()
        while wait(futures, LOOK_S).not_done:
            self.listener.update(min(1.0, (time.monotonic() - began) / expected_s))

    def _scenario(self, scenario: ScenarioMade) -> None:
        """Make the missing runs; if one side's network cannot be run, the other sides are still run."""
        if scenario.search is not None:
            self._search(scenario, scenario.search)
            return
        for step in scenario.steps:
            if scenario.is_over(step):
                return
            if step.side not in scenario.failures:
                self._step(scenario, step)
            if scenario.looks_after(step):
                self._look(scenario, step.repetition)

    def _search(self, scenario: ScenarioMade, search: Bisected) -> None:
        """Make the runs that a search requests; earlier ones may be invalid and need a repetition."""
        positions = [position for position in range(len(scenario.steps)) if position in scenario.done]
        while True:
            for position in positions:
                self._step(scenario, scenario.steps[position])
            self._close()
            attempted = [
                step.position
                for step in scenario.steps
                if step.position in scenario.done or step.side in scenario.failures
            ]
            runs = {self.order.version(side.version): scenario.of_side(side.id) for side in scenario.plan.sides}
            if not (positions := search.next_positions(attempted, runs)):
                return

    def _step(self, scenario: ScenarioMade, step: PlannedRun) -> None:
        """Make a run, or record why it cannot be made; earlier runs are sealed while its network starts."""
        before = list(self.open)
        with self._noting(scenario, step):
            if step.position in scenario.done:
                self._judged(scenario, step)
            else:
                self._tried(scenario, step)
        if isinstance(self.qualifier.system, StagedSystem):
            self._close(before)
        else:
            self._close()

    @contextmanager
    def _noting(self, scenario: ScenarioMade, step: PlannedRun) -> Iterator[None]:
        """If a run cannot be made, record why and continue."""
        try:
            yield
        except EnvironmentFailure as error:
            scenario.failures[step.side] = error.message
            self.record.failures.setdefault(scenario.plan.id, {})[step.side] = error.message
            self._write()

    def _close(self, opened: Sequence[_Open] | None = None) -> None:
        """Wait until runs are sealed (None: all open ones); repeat those that are invalid or not sealed."""
        for at in list(self.open) if opened is None else opened:
            self.open.remove(at)
            with self._noting(at.scenario, at.step):
                try:
                    self._note(at)
                except EnvironmentFailure as error:
                    self.listener.again(at.step, error.message)
                    self._made(at.scenario, at.step)
                self._judged(at.scenario, at.step)

    def _keep(self) -> None:
        """Record runs that were sealed and no longer awaited."""
        while self.open:
            self._note(self.open.pop())

    def _note(self, at: _Open) -> SealedRun:
        run = at.scenario.done[at.step.position] = at.sealed.result()
        self.listener.end(run)
        self._write()
        return run

    def _judged(self, scenario: ScenarioMade, step: PlannedRun) -> None:
        """Repeat a run once if the instrument failed in it; the report mentions the repetition."""
        run = scenario.done[step.position]
        repeated = replace(step, position=len(scenario.steps) + step.position)
        if run.manifest.is_evidence or repeated.position in scenario.done:
            return
        gate = run.manifest.deciding_gates[0]
        self.listener.again(step, f"{gate.label}: {gate.measured}, but {gate.limit} is required")
        self.finisher.quiet()
        until_evidence(partial(self._made, scenario, repeated), self.listener, run, most=1)

    def _look(self, scenario: ScenarioMade, rounds: int) -> None:
        """After a round: record if further runs would change nothing. A resumed round was checked then."""
        is_later = any(step.position in scenario.done for step in scenario.steps if step.repetition > rounds)
        if is_later or rounds < LEAST_ROUNDS or rounds == scenario.plan.planned_runs:
            return
        self._close()
        # A side that cannot be run leaves the scenario undecided, whatever the other side shows.
        sides = scenario.of_side("baseline"), scenario.of_side("candidate")
        if scenario.failures or self.qualifier.is_settled(scenario.plan, *sides):
            scenario.rounds = rounds
        if scenario.rounds is not None and not scenario.failures:
            self.record.settled[scenario.plan.id] = rounds
            self._write()

    def _explain(self, scenario: ScenarioMade) -> None:
        """Record profiles if the scenario requests an explanation; an obstacle to that is not a failure."""
        if scenario.plan.kind is not ScenarioKind.COMPARISON or scenario.lacking:
            return
        self._close()
        if scenario.failures:
            return
        sides = {side.id: scenario.of_side(side.id) for side in scenario.plan.sides}
        kinds = tuple(self.qualifier.explains(scenario.plan, sides["baseline"], sides["candidate"]))
        series = self._series(scenario).explaining(kinds)
        missing = series.lab.unprofiled(sides) if kinds else []
        first = self._runs_made() + 1
        self.explaining += len(missing)
        total = replace(self._total(first), purpose=NOT_JUDGED)
        for place, step in enumerate(step for step in scenario.of_round(1) if step.side in missing):
            self._report_scenario(scenario)
            self.listener.again(step, "node profiles help to explain what became worse")
            try:
                series.make(step, first + place, total, self._left_s())
            except EnvironmentFailure as error:
                self.listener.again(step, f"no node profiles were collected: {error.message}")
                return

    def _series(self, scenario: ScenarioMade) -> RunSeries:
        lab = Lab(self.qualifier.store, self.qualifier.system, self.qualifier.machines)
        length = ExperimentLength(most=scenario.plan.planned_runs, stops_early=True) if scenario.plan.goes_on else None
        return RunSeries(lab, scenario.experiment, self.order.seed, self.order.keep_homes, self.listener, length)

    def _tried(self, scenario: ScenarioMade, step: PlannedRun) -> None:
        """Begin the planned run; retry once if it cannot be made, since a machine may fail once."""
        try:
            self._begin(scenario, step)
        except EnvironmentFailure as error:
            self.listener.again(step, error.message)
            self._begin(scenario, step)

    def _made(self, scenario: ScenarioMade, step: PlannedRun) -> SealedRun:
        """Make a run and see it sealed."""
        self._begin(scenario, step)
        return self._note(self.open.pop())

    def _begin(self, scenario: ScenarioMade, step: PlannedRun) -> None:
        """Measure; the run is then open until it is sealed."""
        began = time.monotonic()
        finish = self._announced(scenario, step).measure(step, self.listener, Among(self.finisher.quiet))
        self.open.append(_Open(scenario, step, self.finisher.submit(finish)))
        self.taken.append((self._expected_s(step), max(1.0, time.monotonic() - began)))

    def _announced(self, scenario: ScenarioMade, step: PlannedRun, place: int = 0) -> RunSeries:
        """The job of a run that is about to begin, as the ``place``-th of those that begin together."""
        self._check_others(scenario, step)
        self._report_scenario(scenario)
        number = self._runs_made() + len(self.open) + 1 + place
        self.listener.begin(step, number, self._total(number), self._left_s())
        return self._series(scenario)

    def _check_others(self, scenario: ScenarioMade, step: PlannedRun) -> None:
        """A finished run of another subject or profile must not be combined with the missing runs."""
        for run in scenario.done.values():
            place, manifest = run.manifest.experiment, run.manifest
            if place is None or place.side != step.side:
                continue
            keys = differing_keys(manifest.profile, step.profile.model_dump(mode="json"))
            differences = [f"the setting `{key}`" for key in keys]
            if manifest.subject.version != step.version:
                differences.append(f"the version {manifest.subject.version} instead of {step.version}")
            if differences:
                raise UsageError(
                    f"{run.run_id} of `{self.folder.experiment_id}` does not match: "
                    f"it differs by {enumerated(differences)}",
                    "the profile has changed; start a new qualification",
                )

    def _runs_made(self) -> int:
        return sum(len(scenario.done) for scenario in self.made) + self.explaining

    def _total(self, number: int) -> Total:
        """Planned runs, an upper bound if a decision may end them sooner, plus repetitions and explanations."""
        repeated = sum(position >= len(scenario.steps) for scenario in self.made for position in scenario.done)
        may_end = any(scenario.may_end_sooner for scenario in self.made)
        runs = sum(len(scenario.wanted) for scenario in self.made) + repeated + self.explaining
        return Total(max(number, runs), "at most" if may_end else "")

    def _expected_s(self, step: PlannedRun) -> float:
        return self.qualifier.system.expected_seconds(step.profile)

    def _left_s(self) -> float:
        """Seconds that the missing runs take, from the system's estimate and the actual durations of this pass."""
        begun = {(at.scenario.plan.id, at.step.position) for at in self.open}
        expected = sum(
            self._expected_s(step) / self._at_a_time(scenario)
            for scenario in self.made
            for step in scenario.wanted
            if step.position not in scenario.done and (scenario.plan.id, step.position) not in begun
        )
        hoped = sum(hope for hope, _ in self.taken)
        return expected * (sum(real for _, real in self.taken) / hoped if hoped else 1.0)

    def _write(self) -> None:
        self.record.runs = {
            scenario.plan.id: [run.run_id for run in scenario.runs] for scenario in self.made if scenario.done
        }
        self.folder.write(self.record)
