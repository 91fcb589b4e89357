"""Runs of real networks: one, or all of an experiment in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from chainmark.core.manifest import ExperimentLength, ExperimentPlace
from chainmark.core.progress import Progress
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.protocols import LaunchableSystem, Order
from chainmark.lab.schedules import Arm, Step, Total, interleaved
from chainmark.lab.session import Content, Session, name_of, new_experiment_id
from chainmark.store.runs import SealedRun, Store


class Listener(Progress, Protocol):
    """Who follows runs that are made together."""

    def begin(self, step: Step, number: int, total: Total, left_s: float | None = None) -> None:
        """A run begins: the ``number``-th of ``total``, with about so many seconds left for all, if that is known."""

    def end(self, run: SealedRun) -> None:
        """A run was sealed."""


@dataclass(frozen=True)
class Lab:
    """Makes runs of one system into one store."""

    store: Store
    system: LaunchableSystem

    def run(
        self, profile: BaseModel, order: Order, progress: Progress, place: ExperimentPlace | None = None
    ) -> SealedRun:
        """Make one run and seal it; whether it is valid stands in its manifest."""
        known = {"experiment": place.id} if place else {}
        with (
            machine_to_itself(progress),
            Session.create(self.store, self.system.name, name_of(profile), order.version, **known) as session,
        ):
            execution = self.system.execute(profile, order, session.run, progress)
            columns = {population: frame.columns for population, frame in execution.samples.items()}
            content = Content(
                profile_name=name_of(profile),
                profile=profile.model_dump(mode="json"),
                workload=self.system.workload(profile),
                seed=order.seed,
                findings=execution,
                catalogue=self.system.catalogue().sampled(columns),
                samples=execution.samples,
                place=place,
            )
            return session.seal(content)

    def repeat(
        self,
        arm: Arm,
        repetitions: int,
        seed: int,
        listener: Listener,
        *,
        keep_homes: bool,
        profiles: tuple[str, ...] = (),
    ) -> list[SealedRun]:
        """Make so many runs of one arm."""
        experiment_id = new_experiment_id(self.system.name, name_of(arm.profile))
        series = Series(self, experiment_id, seed, keep_homes, listener, profiles=profiles)
        steps = interleaved([arm], repetitions)
        with machine_to_itself(listener):
            return [series.make(step, step.position + 1, Total(len(steps))) for step in steps]


@dataclass(frozen=True)
class Series:
    """The runs of one experiment, made one by one.

    Attributes:
        seed: a run's own one is this plus its position.
        length: of an experiment of two sides, as planned.
        profiles: kinds to take of the nodes; such runs are not judged.
    """

    lab: Lab
    experiment_id: str
    seed: int
    keep_homes: bool
    listener: Listener
    length: ExperimentLength | None = None
    profiles: tuple[str, ...] = ()

    def make(self, step: Step, number: int, total: Total, left_s: float | None = None) -> SealedRun:
        """Make one run; it is told of as the ``number``-th of ``total``."""
        place = ExperimentPlace(
            id=self.experiment_id,
            side=step.side,
            repetition=step.repetition,
            position=step.position,
            length=self.length,
        )
        self.listener.begin(step, number, total, left_s)
        order = Order(step.version, self.seed + step.position, self.keep_homes, self.profiles)
        run = self.lab.run(step.profile, order, self.listener, place)
        self.listener.end(run)
        return run
