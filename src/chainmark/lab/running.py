"""Runs of real networks: a single one, or all of an experiment in order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

from pydantic import BaseModel

from chainmark.core.manifest import BESIDE, ExperimentLength, ExperimentPlace, Fact
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress, Silent
from chainmark.lab.attempts import MOST_ATTEMPTS, until_evidence
from chainmark.lab.hosts import repeated_if_lost
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.protocols import Execution, ExecutionRequest, LaunchableSystem, StagedSystem
from chainmark.lab.recording import RunRecorder
from chainmark.lab.schedules import EXPLAINING, Arm, PlannedRun, Total, total_with
from chainmark.lab.session import RunContent, Session, finished_runs, name_of, new_experiment_id
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun


class Listener(Progress, Protocol):
    """Receives the progress of runs that are made together."""

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """A run begins: the ``number``-th of ``total``, with the estimated seconds left for all, if known."""

    def end(self, run: SealedRun) -> None:
        """A run was sealed."""


Side = TypeVar("Side")
# Analyses and seals a measured run.
Finish = Callable[[Progress], SealedRun]
_LOWEST_PRIORITY = 19


class Finisher:
    """Analyses and seals runs, one at a time, while the network of the next one starts: never during a load."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "finishing", _give_way)
        self._last: Future[SealedRun] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Seal everything that was measured, however the work ended."""
        self._pool.shutdown()

    def submit(self, finish: Finish) -> Future[SealedRun]:
        """Submit a run for analysis and sealing."""
        self._last = self._pool.submit(finish, Silent())
        return self._last

    def quiet(self) -> None:
        """Wait until nothing is analysed or sealed; the returned futures hold errors."""
        if self._last is not None:
            wait([self._last])


def _give_way() -> None:
    """On Linux each thread has its own priority."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)


@dataclass(frozen=True)
class Lab:
    """Makes runs of one system into one store, with nodes on this machine or on others."""

    store: Store
    system: LaunchableSystem
    machines: Machines | None = None

    def measure(
        self, profile: BaseModel, order: ExecutionRequest, progress: Progress, place: ExperimentPlace | None
    ) -> Finish:
        """Make the part of a run that needs the machine; the returned function does the rest, and must be called."""
        known = {"experiment": place.id} if place else {}
        with machine_to_itself(progress), ExitStack() as stack:
            session = stack.enter_context(
                Session.create(self.store, self.system.name, name_of(profile), order.version, **known)
            )
            with RunRecorder(progress, session.run.path) as shown:
                analyse = _measured(self.system, profile, order, session.run, shown)
            unfinished = stack.pop_all()

        def finish(progress: Progress) -> SealedRun:
            with unfinished:
                return session.seal(self._content(profile, order, analyse(progress), place))

        return finish

    def _content(
        self, profile: BaseModel, order: ExecutionRequest, execution: Execution, place: ExperimentPlace | None
    ) -> RunContent:
        columns = {population: frame.columns for population, frame in execution.samples.items()}
        if order.beside:
            execution.facts.append(Fact(label=BESIDE, value=order.beside))
        return RunContent(
            profile_name=name_of(profile),
            profile=profile.model_dump(mode="json"),
            workload=self.system.workload(profile),
            seed=order.seed,
            findings=execution,
            catalogue=self.system.catalogue().sampled(columns),
            samples=execution.samples,
            place=place,
        )

    def repeat(
        self,
        arm: Arm,
        repetitions: int,
        seed: int,
        listener: Listener,
        *,
        keep_homes: bool,
        profiles: tuple[str, ...] = (),
        attempts: int = 1,
    ) -> list[SealedRun]:
        """Make this number of runs of one arm, with this many attempts for each, if the instrument fails."""
        experiment_id = new_experiment_id(self.system.name, name_of(arm.profile))
        series = RunSeries(self, experiment_id, seed, keep_homes, listener, profiles=profiles)
        with machine_to_itself(listener):
            for repetition in range(1, repetitions + 1):
                total = partial(total_with, left=repetitions - repetition)
                series.until_evidence(arm, repetition, total, most=attempts)
        return series.in_order()

    def unprofiled(self, sides: Mapping[Side, Sequence[SealedRun]], *, elsewhere: bool = True) -> list[Side]:
        """The sides of which no run has profiles.

        Args:
            sides: their runs.
            elsewhere: similar runs in the store count, too.
        """
        return [side for side, runs in sides.items() if not self.store.profiled(runs, elsewhere=elsewhere)]


def _measured(
    system: LaunchableSystem, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
) -> Callable[[Progress], Execution]:
    if isinstance(system, StagedSystem):
        return system.measure(profile, order, run, progress)
    execution = system.execute(profile, order, run, progress)
    return lambda _: execution


@dataclass(frozen=True)
class Among:
    """What happens besides a run, as stated in its `ExecutionRequest`."""

    quiet: Callable[[], None]
    lane: int = 0
    beside: str = ""


@dataclass(frozen=True)
class RunSeries:
    """The runs of one experiment, made one by one.

    Attributes:
        seed: a run's own seed is this plus its position.
        length: of an experiment of two sides, as planned.
        profiles: kinds to record of the nodes; such runs are not judged.
        runs: those so far by position, including the ones in which the instrument failed.
    """

    lab: Lab
    experiment_id: str
    seed: int
    keep_homes: bool
    listener: Listener
    length: ExperimentLength | None = None
    profiles: tuple[str, ...] = ()
    runs: dict[int, SealedRun] = field(default_factory=dict)

    @classmethod
    def begun(cls, lab: Lab, experiment_id: str, seed: int, keep_homes: bool, listener: Listener) -> RunSeries:
        """The series with the runs that were finished before, if it is resumed."""
        runs = finished_runs(lab.store, experiment_id)
        return cls(lab, experiment_id, seed, keep_homes, listener, runs=runs)

    def on(self, machines: Machines | None) -> RunSeries:
        """The same with nodes on these machines; None: on this one."""
        return replace(self, lab=replace(self.lab, machines=machines))

    @property
    def next_position(self) -> int:
        """The position of the next run."""
        return max(self.runs, default=-1) + 1

    def in_order(self) -> list[SealedRun]:
        """The runs so far, sorted by position."""
        return [run for _, run in sorted(self.runs.items())]

    def of_side(self, side: str) -> list[SealedRun]:
        """The runs of one side."""
        return [run for run in self.in_order() if (place := run.manifest.experiment) and place.side == side]

    def evidence(self, side: str) -> list[SealedRun]:
        """The runs of one side that count for it."""
        return [run for run in self.of_side(side) if run.manifest.is_evidence]

    def explaining(self, profiles: Sequence[str]) -> RunSeries:
        """The series of the runs with these profiles, which explain this one: an experiment of its own."""
        name = f"{self.experiment_id}-{EXPLAINING}"
        return replace(self, experiment_id=name, length=None, profiles=tuple(profiles), runs={})

    def until_evidence(
        self, arm: Arm, repetition: int, total: Callable[[int], Total], most: int = MOST_ATTEMPTS
    ) -> SealedRun:
        """Make the next run of an arm, and repeat it while the instrument fails; the last attempt.

        Args:
            arm: its version and profile.
            repetition: of the side, the same for all attempts.
            total: the number of runs, by the position of an attempt.
            most: maximum number of attempts.
        """

        def attempt() -> SealedRun:
            position = self.next_position
            step = PlannedRun(arm.side, arm.version, arm.profile, repetition, position)
            return self.make(step, position + 1, total(position))

        return until_evidence(attempt, self.listener, next(reversed(self.in_order()), None), most)

    def make(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> SealedRun:
        """Make one run; it is reported as the ``number``-th of ``total``."""
        self.listener.begin(step, number, total, left_s)
        run = self.runs[step.position] = self.measure(step, self.listener)(self.listener)
        self.listener.end(run)
        return run

    def measure(self, step: PlannedRun, progress: Progress, among: Among | None = None) -> Finish:
        """Make the part of a run that needs the machine; the caller of the rest reports its begin and end."""
        place = ExperimentPlace(
            id=self.experiment_id,
            side=step.side,
            repetition=step.repetition,
            position=step.position,
            length=self.length,
        )
        order = ExecutionRequest(
            step.version, self.seed + step.position, self.keep_homes, self.profiles, machines=self.lab.machines
        )
        if among is not None:
            order = replace(order, quiet=among.quiet, lane=among.lane, beside=among.beside)
        work = partial(self.lab.measure, step.profile, order, progress, place)
        return repeated_if_lost(work, self.lab.machines, progress)
