"""The qualification of a release by any system: its plan executed run by run, and gone on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

import psutil
from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentPlace, Subject
from chainmark.core.qa_plan import QaPlan, Role, ScenarioKind, ScenarioPlan, SidePlan
from chainmark.network.host import host_facts
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import Order
from chainmark.systems.profiles import read_profile
from chainmark.systems.qa_plans import QualifiableSystem
from chainmark.systems.runner import Lab, Listener, failed_gates, new_experiment_id, utc_now
from chainmark.systems.sweeping import grid_steps, swept

EXPERIMENT_SCHEMA = 1
_CORES = "cores:"
_MEMORY = "memory:"


def in_turn(sides: int, repetitions: int) -> list[int]:
    """The order of the sides' runs: forth and back (A B C C B A …), so that a slow drift hits all alike."""
    order: list[int] = []
    for repetition in range(repetitions):
        forth = range(sides)
        order += forth if repetition % 2 == 0 else reversed(forth)
    return order


@dataclass(frozen=True)
class Step:
    """One run to make.

    Attributes:
        position: in its scenario; decides the run's seed.
    """

    scenario: ScenarioPlan
    side: str
    version: str
    profile: BaseModel
    repetition: int
    position: int


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
    runs: dict[str, list[str]] = {}  # scenario → runs in the order in which they were made
    failures: dict[str, dict[str, str]] = {}  # scenario → side → why it could not be made
    lacking: dict[str, list[str]] = {}
    finished: bool = False


@dataclass(frozen=True)
class QaOrder:
    """One qualification to make.

    Attributes:
        settings: of every scenario's profile, as `--set` takes them; of_version: of the sides that run that version.
    """

    plan: QaPlan
    baseline: str
    candidate: str
    seed: int = 1
    settings: tuple[str, ...] = ()
    of_version: Mapping[Role, Sequence[str]] = field(default_factory=dict)
    keep_homes: bool = False

    def version(self, role: Role) -> str:
        """The version that plays a role."""
        return self.baseline if role == "baseline" else self.candidate


@dataclass
class ScenarioMade:
    """What was made of a scenario.

    Attributes:
        lacking: clauses on what it needs and does not get; if there are any it was not run.
        runs: valid and invalid ones, in the order of their positions, repetitions of invalid ones last.
        repeats: by the id of a run that repeats an invalid one, the id of that one.
        failures: by side, why a run of it could not be made, not even at the second try.
        sides: the profile of each side.
        names: by side, what its runs' places call it; of a sweep, with the load.
    """

    plan: ScenarioPlan
    experiment: str
    lacking: list[str] = field(default_factory=list)
    runs: list[SealedRun] = field(default_factory=list)
    repeats: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    sides: dict[str, BaseModel] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)

    def of_side(self, side: str) -> list[SealedRun]:
        """The runs of one side; of a sweep at all loads."""
        return [run for run in self.runs if (place := run.manifest.experiment) and place.side in self.names[side]]


@dataclass(frozen=True)
class QaMade:
    """All that was made; with ``interrupted`` runs are missing."""

    experiment: str
    order: QaOrder
    subjects: dict[Role, Subject]
    scenarios: list[ScenarioMade]
    interrupted: bool


class QaListener(Listener, Protocol):
    """Who follows a qualification."""

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """A scenario begins, or cannot be run."""

    def step(self, step: Step, number: int, total: int, left_s: float) -> None:
        """A run begins: the ``number``-th of ``total``, with about so many seconds left for all."""

    def again(self, step: Step, because: str) -> None:
        """An invalid run is made once more."""


@dataclass(frozen=True)
class Qualifier:
    """Makes the runs of plans into one store."""

    store: Store
    system: QualifiableSystem

    def make(self, order: QaOrder, listener: QaListener) -> QaMade:
        """Begin a qualification and make it to its end, or until it is interrupted.

        Raises:
            UsageError: a profile or setting of the plan cannot be used; found before anything is run.
        """
        name = f"qa-{order.plan.name}"
        experiment_id = new_experiment_id(self.system, _Named(name=name))
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
        return self._execute(experiment_folder(self.store, experiment_id), record, order, listener)

    def ordered(self, reference: str) -> QaOrder:
        """What was ordered when an experiment began.

        Raises:
            UsageError: there is no such experiment.
        """
        record = self._record(find_experiment(self.store, reference))
        return _ordered(record)

    def resume(self, reference: str, listener: QaListener, *, keep_homes: bool = False) -> QaMade:
        """Go on with a qualification: finished runs are kept, the missing ones made with their seeds and order.

        Raises:
            UsageError: there is no such experiment, or another process works on it.
        """
        folder = find_experiment(self.store, reference)
        record = self._record(folder)
        order = replace(_ordered(record), keep_homes=keep_homes)
        return self._execute(folder, record, order, listener)

    def _record(self, folder: ExperimentFolder) -> _Record:
        content = folder.read()
        if content.get("kind") != "qa" or content.get("system") != self.system.name:
            raise UsageError(f"`{folder.experiment_id}` is not a qualification of `{self.system.name}`")
        return _Record.model_validate(content)

    def _execute(self, folder: ExperimentFolder, record: _Record, order: QaOrder, listener: QaListener) -> QaMade:
        """Make what is missing."""
        made = [self._prepared(order, scenario, folder.experiment_id) for scenario in order.plan.scenarios]
        subjects: dict[Role, Subject] = {
            "baseline": self.system.install(order.baseline),
            "candidate": self.system.install(order.candidate),
        }
        with folder.locked():
            self._remove_dead(folder.experiment_id)
            record.failures, record.finished = {}, False
            record.lacking = {one.plan.id: one.lacking for one in made if one.lacking}
            folder.write(record)
            work = _Work(self, folder, record, order, listener, made)
            interrupted = work.run()
        return QaMade(folder.experiment_id, order, subjects, made, interrupted)

    def _prepared(self, order: QaOrder, scenario: ScenarioPlan, experiment_id: str) -> ScenarioMade:
        """A scenario with its profiles checked, and what it lacks."""
        lacking = [text for need in scenario.needs if (text := self._lack(need, order, scenario))]
        if scenario.kind is ScenarioKind.SWEEP and order.baseline == order.candidate:
            lacking.append("two different versions")
        made = ScenarioMade(scenario, f"{experiment_id}-{scenario.id}", lacking)
        if not lacking:
            made.sides = {side.id: self.profile_of(order, scenario, side) for side in scenario.sides}
        return made

    def profile_of(self, order: QaOrder, scenario: ScenarioPlan, side: SidePlan) -> BaseModel:
        """The profile that a side runs, checked."""
        versions = {"baseline": order.baseline, "candidate": order.candidate}
        given = [*scenario.settings, *order.settings, *order.of_version.get(side.version, ()), *side.settings]
        settings = [_filled(text, versions) for text in given]
        try:
            return self.system.profile(read_profile(scenario.profile, settings))
        except UsageError as error:
            error.message = f"the scenario `{scenario.id}` cannot be made: {error.message}"
            raise

    def _lack(self, need: str, order: QaOrder, scenario: ScenarioPlan) -> str:
        """What of a need is not there; "" if nothing."""
        host = host_facts()
        if need.startswith(_CORES):
            wanted = _amount(need, _CORES)
            return "" if host.cores >= wanted else f"{wanted} processors; this machine has {host.cores}"
        if need.startswith(_MEMORY):
            wanted = _amount(need, _MEMORY)
            found = host.memory_bytes / 2**30
            return "" if found >= wanted else f"{wanted} GiB of memory; this machine has {found:.1f}"
        versions = dict.fromkeys(order.version(side.version) for side in scenario.sides)
        return self.system.lacking(need, tuple(versions))

    def _remove_dead(self, experiment_id: str) -> None:
        """Remove what a killed process of this experiment left half made."""
        for run in self.store.unfinished():
            state = run.state()
            mine = str(state.get("experiment", "")).startswith(f"{experiment_id}-")
            if mine and not psutil.pid_exists(int(state.get("pid", 0))):
                self.store.remove(run)

    def steps_of(self, made: ScenarioMade, order: QaOrder) -> list[Step]:
        """The runs of a scenario in their order; none where it lacks something."""
        made.names = {side.id: {side.id} for side in made.plan.sides}
        if made.lacking:
            return []
        if made.plan.kind is ScenarioKind.SWEEP:
            return self._sweep_steps(made, order)
        scenario = made.plan
        count = dict.fromkeys(made.sides, 0)
        steps = []
        for position, index in enumerate(in_turn(len(scenario.sides), scenario.repetitions)):
            side = scenario.sides[index]
            count[side.id] += 1
            version = order.version(side.version)
            steps.append(Step(scenario, side.id, version, made.sides[side.id], count[side.id], position))
        return steps

    def _sweep_steps(self, made: ScenarioMade, order: QaOrder) -> list[Step]:
        """Every load with both versions, in the order and under the names of a saturation test."""
        system = swept(self.system)
        profile = made.sides["baseline"]
        versions = (order.baseline, order.candidate)
        grid = grid_steps(system.sweep_plan(profile).loads, versions, made.plan.repetitions, order.seed)
        steps = []
        for position, cell in enumerate(grid):
            name = f"{cell.version}/{cell.load.name}"
            side = "baseline" if cell.version == order.baseline else "candidate"
            made.names[side].add(name)
            resolved = system.at_load(made.sides[side], cell.load)
            steps.append(Step(made.plan, name, cell.version, resolved, cell.repetition, position))
        return steps


def _ordered(record: _Record) -> QaOrder:
    plan = QaPlan.model_validate(record.plan)
    return QaOrder(plan, record.baseline, record.candidate, record.seed, tuple(record.settings), record.of_version)


class _Named(BaseModel):
    name: str


def _amount(need: str, prefix: str) -> int:
    text = need.removeprefix(prefix)
    if not text.isdigit():
        raise UsageError(f"`{need}` is no need of a scenario", "for example `cores:4` or `memory:8` (GiB)")
    return int(text)


def _filled(text: str, versions: Mapping[str, str]) -> str:
    for name, version in versions.items():
        text = text.replace(f"{{{name}}}", version)
    return text


class _Work:
    """One go at the missing runs of a plan."""

    def __init__(  # noqa: PLR0917 - the parts of one go, made in one place
        self,
        qualifier: Qualifier,
        folder: ExperimentFolder,
        record: _Record,
        order: QaOrder,
        listener: QaListener,
        made: list[ScenarioMade],
    ) -> None:
        self.qualifier, self.folder, self.record = qualifier, folder, record
        self.order, self.listener, self.made = order, listener, made
        self.lab = Lab(qualifier.store, qualifier.system)
        self.steps = {one.plan.id: qualifier.steps_of(one, order) for one in made}
        self.done = self._found()
        self._taken: list[tuple[float, float]] = []  # expected and real seconds of the runs of this go

    def _found(self) -> dict[tuple[str, int], SealedRun]:
        """The finished runs of the experiment by scenario's experiment and position."""
        experiments = {one.experiment for one in self.made}
        return {
            (place.id, place.position): run
            for run in self.qualifier.store.sealed()
            if (place := run.manifest.experiment) and place.id in experiments
        }

    def run(self) -> bool:
        """Make everything that is missing; whether it was interrupted."""
        interrupted = False
        try:
            for one in self.made:
                self.listener.scenario(one.plan, one.lacking)
                self._scenario(one)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for one in self.made:
                self._collect(one)
            self.record.finished = not interrupted and not any(one.failures for one in self.made)
            self._write()
        return interrupted

    def _scenario(self, one: ScenarioMade) -> None:
        """Make the missing runs; where one side's network cannot be run, the other sides are made all the same."""
        steps = self.steps[one.plan.id]
        for step in steps:
            if step.side in one.failures:
                continue
            try:
                run = self._tried(one, step)
                if failed_gates(run):
                    self._again(one, step, run, len(steps) + step.position)
            except EnvironmentFailure as error:
                one.failures[step.side] = error.message
                self.record.failures.setdefault(one.plan.id, {})[step.side] = error.message
                self._write()

    def _tried(self, one: ScenarioMade, step: Step) -> SealedRun:
        """The planned run, tried once more where it cannot be made at first: a machine may stumble once."""
        try:
            return self._made(one, step, step.position)
        except EnvironmentFailure as error:
            self.listener.again(step, error.message)
            return self._made(one, step, step.position)

    def _again(self, one: ScenarioMade, step: Step, run: SealedRun, position: int) -> None:
        """Repeat an invalid run once; that it was is told in the report."""
        if (one.experiment, position) not in self.done:
            gate = failed_gates(run)[0]
            self.listener.again(step, f"{gate.label}: {gate.measured}, but {gate.limit} is required")
        self._made(one, step, position)

    def _made(self, one: ScenarioMade, step: Step, position: int) -> SealedRun:
        key = (one.experiment, position)
        if key not in self.done:
            self._check_others(one, step)
            number = len(self.done) + 1
            self.listener.step(step, number, max(number, self._total()), self._left_s())
            place = ExperimentPlace(id=one.experiment, side=step.side, repetition=step.repetition, position=position)
            order = Order(step.version, self.order.seed + position, self.order.keep_homes)
            self.done[key] = self.lab.run(step.profile, order, self.listener, place)
            self._learn(step, self.done[key])
            self.listener.end(self.done[key])
            self._write()
        return self.done[key]

    def _check_others(self, one: ScenarioMade, step: Step) -> None:
        """A finished run that was made of something else must not stand beside the missing ones."""
        for (experiment, _), run in self.done.items():
            place = run.manifest.experiment
            if experiment != one.experiment or place is None or place.side != step.side:
                continue
            same = run.manifest.profile == step.profile.model_dump(mode="json")
            if not same or run.manifest.subject.version != step.version:
                raise UsageError(
                    f"`{self.folder.experiment_id}` was made with another profile: {run.run_id} does not fit",
                    "the profile was changed since; start the qualification anew",
                )

    def _total(self) -> int:
        """Runs as far as is known: those planned, and the repetitions that were needed."""
        planned = sum(len(steps) for steps in self.steps.values())
        repeated = sum(
            1
            for one in self.made
            for (experiment, position) in self.done
            if experiment == one.experiment and position >= len(self.steps[one.plan.id])
        )
        return planned + repeated

    def _learn(self, step: Step, run: SealedRun) -> None:
        expected = self.qualifier.system.expected_seconds(step.profile)
        self._taken.append((expected, _seconds(run)))

    def _left_s(self) -> float:
        """Seconds that the missing runs take, by what the system expects and how long those of this go took."""
        expected = sum(
            self.qualifier.system.expected_seconds(step.profile)
            for one in self.made
            for step in self.steps[one.plan.id]
            if (one.experiment, step.position) not in self.done
        )
        hoped = sum(hope for hope, _ in self._taken)
        return expected * (sum(real for _, real in self._taken) / hoped if hoped else 1.0)

    def _collect(self, one: ScenarioMade) -> None:
        """The finished runs of a scenario, and which of them repeat which."""
        mine = {place: run for (experiment, place), run in self.done.items() if experiment == one.experiment}
        found = sorted(mine.items())
        one.runs = [run for _, run in found]
        planned = len(self.steps[one.plan.id])
        by_position = dict(found)
        one.repeats = {
            run.run_id: by_position[position - planned].run_id
            for position, run in found
            if position >= planned and position - planned in by_position
        }

    def _write(self) -> None:
        self.record.runs = {}
        names = {one.experiment: one.plan.id for one in self.made}
        for (experiment, _), run in sorted(self.done.items()):
            self.record.runs.setdefault(names[experiment], []).append(run.run_id)
        self.folder.write(self.record)


def _seconds(run: SealedRun) -> float:
    begin, end = (datetime.fromisoformat(text) for text in (run.manifest.started_at, run.manifest.ended_at))
    return max(1.0, (end - begin).total_seconds())
