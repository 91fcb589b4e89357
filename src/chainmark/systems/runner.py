"""Runs and experiments of any system: create, execute, summarise, seal."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as package_version
from typing import Protocol

from pydantic import BaseModel

from chainmark.core.errors import ChainmarkError, UsageError
from chainmark.core.manifest import ExperimentPlace, Gate, GateStatus, Manifest, Status
from chainmark.core.progress import Progress
from chainmark.network.host import host_facts
from chainmark.stats.summarise import summarise
from chainmark.store.runs import SealedRun, Store, UnfinishedRun
from chainmark.systems.base import Execution, LaunchableSystem, Order, System

# The side of runs that were made without another subject to compare with.
LONE_SIDE = "subject"


@dataclass(frozen=True)
class Arm:
    """One side of an experiment: a version and the profile it runs."""

    side: str  # "baseline", "candidate", or LONE_SIDE
    version: str
    profile: BaseModel


def tool_version() -> str:
    """The version of chainmark itself."""
    return package_version("chainmark")


def utc_now() -> str:
    """Now, as manifests write it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class ExperimentPlan:
    """Runs made together: one or two arms, each run ``repetitions`` times, from seeds counted up from ``seed``."""

    arms: list[Arm]
    repetitions: int
    seed: int
    keep_homes: bool = False


@dataclass(frozen=True)
class Repetition:
    """What is about to be run, for whoever shows it."""

    arm: Arm
    repetition: int
    position: int
    total: int


class Listener(Progress, Protocol):
    """Who follows an experiment."""

    def begin(self, repetition: Repetition) -> None:
        """A run begins."""

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
        """Make one run and seal it; whether it is valid stands in its manifest.

        An interruption (Ctrl-C) and a mistake of the user remove the unfinished run, and so does a failure before
        anything was collected. Any other failure leaves it, with all that was collected: it is listed as unfinished,
        never compared, and removed on request.
        """
        started_at = utc_now()
        state = {"pid": os.getpid(), "started_at": started_at, "version": order.version, "profile": _name(profile)}
        state |= {"experiment": place.id} if place else {}
        unfinished = self.store.create(self.system.name, _name(profile), order.version, state)
        try:
            execution = self.system.execute(profile, order, unfinished, progress)
            manifest = self._manifest(unfinished, profile, order, execution, started_at)
            for population, frame in execution.samples.items():
                unfinished.write_samples(population, frame)
            columns = {population: frame.columns for population, frame in execution.samples.items()}
            catalogue = self.system.catalogue().sampled(columns)
            summaries = summarise(catalogue, execution.samples, order.seed)
            return unfinished.seal(manifest.model_copy(update={"experiment": place}), catalogue, summaries)
        except (KeyboardInterrupt, UsageError):
            self.store.remove(unfinished)
            raise
        except ChainmarkError:
            if unfinished.is_empty():
                self.store.remove(unfinished)
            raise

    def _manifest(
        self, run: UnfinishedRun, profile: BaseModel, order: Order, execution: Execution, started_at: str
    ) -> Manifest:
        failed = any(gate.status is GateStatus.FAIL for gate in execution.gates)
        return Manifest(
            run_id=run.run_id,
            subject=execution.subject,
            profile_name=_name(profile),
            profile=profile.model_dump(mode="json"),
            workload=self.system.workload(profile),
            conditions=execution.conditions,
            configuration=execution.configuration,
            tool_version=tool_version(),
            seed=order.seed,
            started_at=started_at,
            ended_at=utc_now(),
            host=host_facts(),
            counts=execution.counts,
            gates=execution.gates,
            incidents=execution.incidents,
            warnings=execution.warnings,
            sources=run.sources(),
            status=Status.INVALID if failed else Status.VALID,
        )

    def experiment(self, plan: ExperimentPlan, listener: Listener) -> list[SealedRun]:
        """Make all runs of an experiment, interleaved where it has two arms."""
        sequence = interleaved(plan.repetitions) if len(plan.arms) == 2 else [0] * plan.repetitions
        experiment_id = new_experiment_id(self.system, plan.arms[0].profile)
        made = {arm.side: 0 for arm in plan.arms}
        runs = []
        for position, index in enumerate(sequence):
            arm = plan.arms[index]
            made[arm.side] += 1
            place = ExperimentPlace(id=experiment_id, side=arm.side, repetition=made[arm.side], position=position)
            listener.begin(Repetition(arm, made[arm.side], position, len(sequence)))
            order = Order(arm.version, plan.seed + position, plan.keep_homes)
            runs.append(self.run(arm.profile, order, listener, place))
            listener.end(runs[-1])
        return runs


def _name(profile: BaseModel) -> str:
    return str(getattr(profile, "name", "profile"))


def failed_gates(run: SealedRun) -> list[Gate]:
    """The gates that a run did not meet."""
    return [gate for gate in run.manifest.gates if gate.status is GateStatus.FAIL]


def interleaved(repetitions: int) -> list[int]:
    """The order of two sides' runs, as indices of the side: A B B A A B …: a slow drift hits both sides alike."""
    order: list[int] = []
    for repetition in range(repetitions):
        order += [0, 1] if repetition % 2 == 0 else [1, 0]
    return order


def new_experiment_id(system: System, profile: BaseModel) -> str:
    """A name for an experiment: the system, the profile, the time, four random digits."""
    name = _name(profile).removeprefix(f"{system.name}/").replace("/", "-")
    return f"{system.name}-{name}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
