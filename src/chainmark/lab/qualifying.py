"""The qualification of a release by any system: its plan executed run by run, and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentLength, Status, Subject
from chainmark.core.qa_plan import QaPlan, Role, ScenarioKind, ScenarioPlan, SidePlan
from chainmark.core.times import utc_now
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import QualifiableSystem, SweptSystem, pinned
from chainmark.lab.running import Lab, Listener, Series
from chainmark.lab.schedules import Arm, Step, Total, grid_steps, interleaved
from chainmark.lab.session import finished_runs, new_experiment_id, remove_dead
from chainmark.network.host import host_facts
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import SealedRun, Store

EXPERIMENT_SCHEMA = 1
# Whether more runs of the baseline and the candidate would change nothing, with so many at most planned of each.
IsSettled = Callable[[Sequence[SealedRun], Sequence[SealedRun], int], bool]
# The kinds of profiles to take of the nodes in one further run a side, which explains what these runs show and is not
# judged; none where there is nothing to explain.
Explains = Callable[[Sequence[SealedRun], Sequence[SealedRun]], Sequence[str]]
# A single pair shows no noise of its own.
LEAST_ROUNDS = 2
# Behind the name of a scenario's experiment: that of the runs that explain it.
EXPLAINING = "profiles"
_CORES = "cores:"
_MEMORY = "memory:"


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
    settled: dict[str, int] = {}  # scenario → rounds after which more would have changed nothing
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
        sides: the profile of each side.
        steps: the runs to make, in their order; none where it lacks something. Where it goes on until it is decided,
            as many as there may be at most.
        rounds: runs of each side after which it was decided; None: not before the last.
        names: by side, what its runs' places call it; of a sweep, with the load.
        done: the sealed runs by position; one that repeats an invalid run stands behind all that were planned.
        failures: by side, why a run of it could not be made, not even at the second try.
    """

    plan: ScenarioPlan
    experiment: str
    lacking: list[str]
    sides: dict[str, BaseModel]
    steps: list[Step] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)
    done: dict[int, SealedRun] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    rounds: int | None = None

    @property
    def wanted(self) -> list[Step]:
        """The runs that are to be made, as far as is known."""
        return [step for step in self.steps if self.rounds is None or step.repetition <= self.rounds]

    @property
    def may_end_sooner(self) -> bool:
        """Whether a decision may make some of the wanted runs needless."""
        if not self.steps or not self.plan.goes_on or self.rounds is not None:
            return False
        last = self.of_round(self.plan.planned_runs)
        return self.plan.planned_runs > LEAST_ROUNDS and not any(step.position in self.done for step in last)

    @property
    def runs(self) -> list[SealedRun]:
        """Valid and invalid ones, in the order of their positions, repetitions of invalid ones last."""
        return [run for _, run in sorted(self.done.items())]

    @property
    def repeats(self) -> dict[str, str]:
        """By the id of a run that repeats an invalid one, the id of that one."""
        planned = len(self.steps)
        return {
            run.run_id: self.done[position - planned].run_id
            for position, run in sorted(self.done.items())
            if position >= planned and position - planned in self.done
        }

    def of_round(self, repetition: int) -> list[Step]:
        """The runs of a round, in their order."""
        return [step for step in self.steps if step.repetition == repetition]

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

    def again(self, step: Step, because: str) -> None:
        """A run is made once more: it is invalid, or could not be made."""


@dataclass(frozen=True)
class Qualifier:
    """Makes the runs of plans into one store.

    Attributes:
        is_settled: asked after every round of a scenario that goes on until it is decided.
        explains: asked after every scenario in which two sides are compared.
    """

    store: Store
    system: QualifiableSystem
    is_settled: IsSettled = lambda baseline, candidate, most: False
    explains: Explains = lambda baseline, candidate: ()

    def make(self, order: QaOrder, listener: QaListener) -> QaMade:
        """Begin a qualification and make it to its end, or until it is interrupted.

        Raises:
            UsageError: a profile or setting of the plan cannot be used; found before anything is run.
        """
        experiment_id = new_experiment_id(self.system.name, f"qa-{order.plan.name}")
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
        return _ordered(self._record(find_experiment(self.store, reference)))

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
        with machine_to_itself(listener), folder.locked():
            remove_dead(self.store, f"{folder.experiment_id}-")
            record.failures, record.finished = {}, False
            record.lacking = {one.plan.id: one.lacking for one in made if one.lacking}
            folder.write(record)
            interrupted = _Work(self, folder, record, order, listener, made).run()
        return QaMade(folder.experiment_id, order, subjects, made, interrupted)

    def _prepared(self, order: QaOrder, scenario: ScenarioPlan, experiment_id: str) -> ScenarioMade:
        """A scenario with its profiles checked, and what it lacks."""
        lacking = [text for need in scenario.needs if (text := self._lack(need, order, scenario))]
        if scenario.kind is ScenarioKind.SWEEP and order.baseline == order.candidate:
            lacking.append("two different versions")
        sides = {} if lacking else {side.id: self.profile_of(order, scenario, side) for side in scenario.sides}
        made = ScenarioMade(scenario, f"{experiment_id}-{scenario.id}", lacking, sides)
        made.names = {side.id: {side.id} for side in scenario.sides}
        if scenario.kind is ScenarioKind.SWEEP and not lacking:
            self._schedule_sweep(made, order)
        elif not lacking:
            arms = [Arm(side.id, order.version(side.version), sides[side.id]) for side in scenario.sides]
            made.steps = interleaved(arms, scenario.planned_runs)
        return made

    def profile_of(self, order: QaOrder, scenario: ScenarioPlan, side: SidePlan) -> BaseModel:
        """The profile that a side runs, checked."""
        versions = {"baseline": order.baseline, "candidate": order.candidate}
        given = [*scenario.settings, *order.settings, *order.of_version.get(side.version, ()), *side.settings]
        settings = [_filled(text, versions) for text in given]
        try:
            return pinned(self.system, self.system.profile(read_profile(scenario.profile, settings)))
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
            return "" if found >= wanted else f"{wanted} GiB of memory; this machine has {units.number(found, 1)}"
        versions = dict.fromkeys(order.version(side.version) for side in scenario.sides)
        return self.system.lacking(need, tuple(versions))

    def _schedule_sweep(self, made: ScenarioMade, order: QaOrder) -> None:
        """Every load with both versions, in the order and under the names of a saturation test."""
        system = self.system
        if not isinstance(system, SweptSystem):
            raise UsageError(
                f"chainmark cannot find the saturation of `{system.name}`",
                f"leave the scenario `{made.plan.id}` out of the plan",
            )
        roles: dict[str, Role] = {order.candidate: "candidate", order.baseline: "baseline"}
        loads = system.sweep_plan(made.sides["baseline"]).loads
        cells = grid_steps(loads, (order.baseline, order.candidate), made.plan.planned_runs, order.seed)
        for position, cell in enumerate(cells):
            side = roles[cell.version]
            made.steps.append(cell.step(system.at_load(made.sides[side], cell.load), position))
            made.names[side].add(made.steps[-1].side)


def _ordered(record: _Record) -> QaOrder:
    plan = QaPlan.model_validate(record.plan)
    return QaOrder(plan, record.baseline, record.candidate, record.seed, tuple(record.settings), record.of_version)


def _amount(need: str, prefix: str) -> int:
    text = need.removeprefix(prefix)
    if not text.isdigit():
        raise UsageError(f"`{need}` is no need of a scenario", "for example `cores:4` or `memory:8` (GiB)")
    return int(text)


def _filled(text: str, versions: Mapping[str, str]) -> str:
    for name, version in versions.items():
        text = text.replace(f"{{{name}}}", version)
    return text


@dataclass
class _Work:
    """One go at the missing runs of a plan.

    Attributes:
        taken: expected and real seconds of the runs of this go.
    """

    qualifier: Qualifier
    folder: ExperimentFolder
    record: _Record
    order: QaOrder
    listener: QaListener
    made: list[ScenarioMade]
    taken: list[tuple[float, float]] = field(default_factory=list)

    def run(self) -> bool:
        """Make everything that is missing; whether it was interrupted."""
        finished = finished_runs(self.qualifier.store, *(one.experiment for one in self.made))
        for one in self.made:
            one.done = {
                position: run for (experiment, position), run in finished.items() if experiment == one.experiment
            }
            one.rounds = self.record.settled.get(one.plan.id)
        interrupted = False
        try:
            for one in self.made:
                self.listener.scenario(one.plan, one.lacking)
                self._scenario(one)
                self._explain(one)
            self.record.finished = not any(one.failures for one in self.made)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._write()
        return interrupted

    def _scenario(self, one: ScenarioMade) -> None:
        """Make the missing runs; where one side's network cannot be run, the other sides are made all the same."""
        for step in one.steps:
            if one.rounds is not None and step.repetition > one.rounds:
                return
            if step.side not in one.failures:
                self._step(one, step)
            if one.plan.goes_on and one.rounds is None and step is one.of_round(step.repetition)[-1]:
                self._look(one, step.repetition)

    def _step(self, one: ScenarioMade, step: Step) -> None:
        """Make a run, or note why it cannot be made."""
        try:
            run = self._tried(one, step)
            if run.manifest.status is Status.INVALID:  # what the subject failed is evidence, and stays
                self._again(one, step, run)
        except EnvironmentFailure as error:
            one.failures[step.side] = error.message
            self.record.failures.setdefault(one.plan.id, {})[step.side] = error.message
            self._write()

    def _look(self, one: ScenarioMade, rounds: int) -> None:
        """After a round: note if more would change nothing. One that was gone on from was looked at then."""
        is_later = any(step.position in one.done for step in one.steps if step.repetition > rounds)
        if is_later or rounds < LEAST_ROUNDS or rounds == one.plan.planned_runs:
            return
        # A side that cannot be made leaves the scenario undecided, whatever the other one shows.
        sides = one.of_side("baseline"), one.of_side("candidate")
        if one.failures or self.qualifier.is_settled(*sides, one.plan.planned_runs):
            one.rounds = rounds
        if one.rounds is not None and not one.failures:
            self.record.settled[one.plan.id] = rounds
            self._write()

    def _explain(self, one: ScenarioMade) -> None:
        """Take profiles where the scenario asks for an explanation; what keeps them from being made is no failure."""
        if one.plan.kind is not ScenarioKind.COMPARISON or one.lacking or one.failures:
            return
        sides = {side.id: one.of_side(side.id) for side in one.plan.sides}
        kinds = tuple(self.qualifier.explains(sides["baseline"], sides["candidate"])) if all(sides.values()) else ()
        missing = [side for side, runs in sides.items() if kinds and not self.qualifier.store.profiled(runs)]
        number = sum(len(scenario.done) for scenario in self.made)
        for place, step in enumerate(step for step in one.of_round(1) if step.side in missing):
            series = self._series(f"{one.experiment}-{EXPLAINING}", None, kinds)
            self.listener.again(step, "its nodes' profiles explain what became worse")
            try:
                series.make(step, number + place + 1, self._total(number + len(missing)), self._left_s())
            except EnvironmentFailure as error:
                self.listener.again(step, f"no profiles were taken: {error.message}")
                return

    def _series(self, experiment: str, length: ExperimentLength | None, profiles: tuple[str, ...] = ()) -> Series:
        lab = Lab(self.qualifier.store, self.qualifier.system)
        return Series(lab, experiment, self.order.seed, self.order.keep_homes, self.listener, length, profiles)

    def _tried(self, one: ScenarioMade, step: Step) -> SealedRun:
        """The planned run, tried once more where it cannot be made at first: a machine may stumble once."""
        try:
            return self._made(one, step)
        except EnvironmentFailure as error:
            self.listener.again(step, error.message)
            return self._made(one, step)

    def _again(self, one: ScenarioMade, step: Step, run: SealedRun) -> None:
        """Repeat an invalid run once; that it was is told in the report."""
        repeated = replace(step, position=len(one.steps) + step.position)
        if repeated.position not in one.done:
            gate = run.manifest.deciding_gates[0]
            self.listener.again(step, f"{gate.label}: {gate.measured}, but {gate.limit} is required")
        self._made(one, repeated)

    def _made(self, one: ScenarioMade, step: Step) -> SealedRun:
        if step.position not in one.done:
            self._check_others(one, step)
            most = one.plan.planned_runs if one.plan.goes_on else None
            length = ExperimentLength(most=most, stops_early=True) if most else None
            series = self._series(one.experiment, length)
            number = sum(len(scenario.done) for scenario in self.made) + 1
            run = series.make(step, number, self._total(number), self._left_s())
            one.done[step.position] = run
            self.taken.append((self._expected_s(step), _seconds(run)))
            self._write()
        return one.done[step.position]

    def _check_others(self, one: ScenarioMade, step: Step) -> None:
        """A finished run that was made of something else must not stand beside the missing ones."""
        for run in one.done.values():
            place, manifest = run.manifest.experiment, run.manifest
            if place is None or place.side != step.side:
                continue
            same = manifest.profile == step.profile.model_dump(mode="json")
            if not same or manifest.subject.version != step.version:
                raise UsageError(
                    f"`{self.folder.experiment_id}` was made with another profile: {run.run_id} does not fit",
                    "the profile was changed since; start the qualification anew",
                )

    def _total(self, number: int) -> Total:
        """Planned runs, at most where a decision may end them sooner, and the repetitions needed."""
        repeated = sum(position >= len(one.steps) for one in self.made for position in one.done)
        may_end = any(one.may_end_sooner for one in self.made)
        runs = sum(len(one.wanted) for one in self.made) + repeated
        return Total(max(number, runs), "at most" if may_end else "")

    def _expected_s(self, step: Step) -> float:
        return self.qualifier.system.expected_seconds(step.profile)

    def _left_s(self) -> float:
        """Seconds that the missing runs take, by what the system expects and how long those of this go took."""
        missing = [step for one in self.made for step in one.wanted if step.position not in one.done]
        expected = sum(self._expected_s(step) for step in missing)
        hoped = sum(hope for hope, _ in self.taken)
        return expected * (sum(real for _, real in self.taken) / hoped if hoped else 1.0)

    def _write(self) -> None:
        self.record.runs = {one.plan.id: [run.run_id for run in one.runs] for one in self.made if one.done}
        self.folder.write(self.record)


def _seconds(run: SealedRun) -> float:
    begin, end = (datetime.fromisoformat(text) for text in (run.manifest.started_at, run.manifest.ended_at))
    return max(1.0, (end - begin).total_seconds())
