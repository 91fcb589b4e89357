"""Runs of real networks: a single one, or all of an experiment in order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from pydantic import BaseModel

from chainmark.core.manifest import BESIDE, ExperimentLength, ExperimentPlace, Fact, Status
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress, Silent
from chainmark.lab.hosts import repeated_if_lost
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.processors import wait_for_processors
from chainmark.lab.protocols import Execution, ExecutionRequest, LaunchableSystem, StagedSystem
from chainmark.lab.recording import RunRecorder
from chainmark.lab.schedules import Arm, PlannedRun, Total
from chainmark.lab.session import RunContent, Session, name_of, new_experiment_id
from chainmark.store.runs import SealedRun, Store, UnfinishedRun


class Listener(Progress, Protocol):
    """Receives the progress of runs that are made together."""

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """A run begins: the ``number``-th of ``total``, with the estimated seconds left for all, if known."""

    def end(self, run: SealedRun) -> None:
        """A run was sealed."""


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
        tries: int = 1,
    ) -> list[SealedRun]:
        """Make this number of runs of one arm.

        Args:
            tries: average number of attempts allowed per run, if the instrument fails in some.
        """
        experiment_id = new_experiment_id(self.system.name, name_of(arm.profile))
        series = RunSeries(self, experiment_id, seed, keep_homes, listener, profiles=profiles)
        runs: list[SealedRun] = []
        with machine_to_itself(listener):
            while len(runs) < (total := repetitions + min(_invalid(runs), (tries - 1) * repetitions)):
                if runs and runs[-1].manifest.status is Status.INVALID:
                    wait_for_processors(listener)
                step = PlannedRun(arm.side, arm.version, arm.profile, len(runs) + 1, len(runs))
                runs.append(series.make(step, step.position + 1, Total(total)))
        return runs


def _invalid(runs: Sequence[SealedRun]) -> int:
    return sum(run.manifest.status is Status.INVALID for run in runs)


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
    """

    lab: Lab
    experiment_id: str
    seed: int
    keep_homes: bool
    listener: Listener
    length: ExperimentLength | None = None
    profiles: tuple[str, ...] = ()

    def make(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> SealedRun:
        """Make one run; it is reported as the ``number``-th of ``total``."""
        self.listener.begin(step, number, total, left_s)
        run = self.measure(step, self.listener)(self.listener)
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
