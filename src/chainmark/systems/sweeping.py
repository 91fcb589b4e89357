"""Saturation tests of any system: the loads, their order, and a sealed run for each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from chainmark.core.errors import ChainmarkError, UsageError
from chainmark.core.manifest import ExperimentPlace
from chainmark.core.saturation import CellRun, SaturationMetrics, VersionRuns
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import LaunchableSystem, Order, System
from chainmark.systems.runner import Arm, Lab, Listener, Repetition, interleaved, new_experiment_id

GRID_ORDER = (
    "Every repetition holds every load once, in an order drawn anew from the seed; at each load the versions follow "
    "each other directly, in turn first (A B, B A). A slow drift of the machine thus reaches all of them alike."
)
ADAPTIVE_ORDER = (
    "Loads follow from the results: doubled until a version no longer keeps up, once beyond, then halved between the "
    "two loads around the edge, by either share. At each load the versions follow each other directly, in turn first "
    "(A B, B A), so a drift reaches both alike; a drift from load to load is not averaged out."
)
FRESH_NETWORKS = (
    "Every run has a fresh network: no run finds full mempools, longer databases or peers of the run before. The "
    "published tests let one long chain run through all loads, with a pause between them."
)


@dataclass(frozen=True, order=True)
class CellLoad:
    """One load: connections, and transactions per second of each."""

    connections: int
    rate_per_s: int

    @property
    def per_s(self) -> int:
        """Over all connections."""
        return self.connections * self.rate_per_s

    @property
    def name(self) -> str:
        """As a part of a run's side: c2r200."""
        return f"c{self.connections}r{self.rate_per_s}"


@dataclass(frozen=True)
class SweepPlan:
    """What a profile says of the loads.

    Attributes:
        loads: of the grid.
        tolerance: a load is kept up if at least one minus this share is committed.
        connections: of an adaptive search.
        first_load, most_load: where it begins, and what it does not go beyond.
        relative_gap: how near the two loads around the edge must come, as a share of the lower one.
    """

    loads: tuple[CellLoad, ...]
    tolerance: float
    connections: int
    first_load: int
    most_load: int
    relative_gap: float


@runtime_checkable
class SweptSystem(LaunchableSystem, Protocol):
    """A system whose saturation chainmark can find."""

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The loads of a profile."""

    def at_load(self, profile: BaseModel, load: CellLoad) -> BaseModel:
        """The same profile at one load.

        Raises:
            UsageError: it cannot be offered.
        """

    def cell_run(self, run: SealedRun) -> CellRun:
        """What one run says of its load."""

    def swept_version(self, label: str, runs: Sequence[SealedRun]) -> VersionRuns:
        """All runs of one version."""

    def sweep_metrics(self) -> SaturationMetrics:
        """What versions are compared by."""

    def published_sweep(self, path: Path, label: str | None) -> VersionRuns:
        """A published table of a saturation test.

        Raises:
            UsageError: it is none.
        """


def swept(system: System) -> SweptSystem:
    """The same system as one whose saturation can be found.

    Raises:
        UsageError: it cannot.
    """
    if isinstance(system, SweptSystem):
        return system
    raise UsageError(
        f"chainmark cannot find the saturation of `{system.name}`",
        f"`chainmark metrics {system.name}` shows what it measures",
    )


@dataclass(frozen=True)
class SweepOrder:
    """One saturation test to make.

    Attributes:
        versions: each once, the baseline first.
        repetitions: runs at each load and version.
        seed: of the order; a run's own seed is this plus its place.
        adaptive: look for the edge instead of running the grid.
        resume: the experiment whose finished runs are kept.
    """

    versions: tuple[str, ...]
    repetitions: int
    seed: int
    adaptive: bool = False
    keep_homes: bool = False
    resume: str | None = None


@dataclass(frozen=True)
class Sweep:
    """What was made; with ``interrupted`` runs are missing."""

    experiment_id: str
    runs: dict[str, list[SealedRun]]
    interrupted: bool

    def all_runs(self) -> list[SealedRun]:
        """In the order in which they were made."""
        found = [run for runs in self.runs.values() for run in runs]
        return sorted(found, key=lambda run: run.manifest.experiment.position if run.manifest.experiment else 0)


@dataclass(frozen=True)
class _Step:
    """One run to make."""

    version: str
    load: CellLoad
    repetition: int


def grid_steps(loads: Sequence[CellLoad], versions: Sequence[str], repetitions: int, seed: int) -> list[_Step]:
    """Every load and version, so often, in an order that no drift can be taken for a difference in."""
    draw = random.Random(seed)  # noqa: S311 - an order, not a secret
    steps: list[_Step] = []
    for repetition in range(repetitions):
        shuffled = sorted(set(loads))
        draw.shuffle(shuffled)
        for place, load in enumerate(shuffled):
            steps += [_Step(version, load, repetition + 1) for version in _in_turn(versions, repetition + place)]
    return steps


def _in_turn(versions: Sequence[str], turn: int) -> list[str]:
    """The versions, in their order and in the reverse one in turn."""
    if len(versions) == 2:
        pair = interleaved(turn % 2 + 1)[-2:]
        return [versions[index] for index in pair]
    return list(versions) if turn % 2 == 0 else list(reversed(versions))


def next_load(kept: Mapping[int, bool], plan: SweepPlan) -> int | None:
    """What an adaptive search of one version asks for next; None: its edge is known as well as was asked for.

    Args:
        kept: by load, whether it is kept up.
        plan: its limits.
    """
    step = plan.connections  # loads are whole rates of so many connections
    if not kept:
        return _whole(plan.first_load, step)
    lowest, highest = min(kept), max(kept)
    failed = sorted(load for load, is_kept in kept.items() if not is_kept)
    if not failed:
        return highest * 2 if highest * 2 <= plan.most_load else None
    if failed[0] == lowest:
        return _whole(lowest // 2, step) if lowest >= 2 * step else None
    if failed[0] == highest and highest * 2 <= plan.most_load:
        return highest * 2  # beyond the edge: that more load does not bring more
    low = max(load for load in kept if load < failed[0])
    middle = _whole((low + failed[0]) // 2, step)
    close = failed[0] - low <= plan.relative_gap * low
    return None if close or not low < middle < failed[0] else middle


def _whole(load: int, step: int) -> int:
    return max(step, load // step * step)


@dataclass
class Sweeper:
    """Makes saturation tests of one system into one store."""

    store: Store
    system: SweptSystem

    def make(self, profile: BaseModel, order: SweepOrder, listener: Listener) -> Sweep:
        """Make all runs. Ctrl-C ends it early; what was measured is kept, and can be resumed.

        Raises:
            UsageError: a version is named twice, a load cannot be offered, or the experiment to be resumed is another.
            EnvironmentFailure: a network could not be run; the hint says how to go on.
        """
        twice = next((one for one in order.versions if order.versions.count(one) > 1), None)
        if twice is not None:
            raise UsageError(f"the version `{twice}` is named twice", "`--repeat` makes more runs of it")
        done = self._done(order.resume)
        experiment_id = order.resume or new_experiment_id(self.system, profile)
        runs: dict[str, list[SealedRun]] = {version: [] for version in order.versions}
        plan = self.system.sweep_plan(profile)
        interrupted = False
        try:
            for position, (step, total) in enumerate(self._steps(plan, order, runs)):
                resolved = self.system.at_load(profile, step.load)
                side = f"{step.version}/{step.load.name}"
                if position in done:
                    self._check(done[position], resolved, side, order)
                    runs[step.version].append(done[position])
                    continue
                place = ExperimentPlace(id=experiment_id, side=side, repetition=step.repetition, position=position)
                listener.begin(Repetition(Arm(side, step.version, resolved), step.repetition, position, total))
                one = Order(step.version, order.seed + position, order.keep_homes)
                runs[step.version].append(Lab(self.store, self.system).run(resolved, one, listener, place))
                listener.end(runs[step.version][-1])
        except KeyboardInterrupt:
            if not any(runs.values()):
                raise
            interrupted = True
        except ChainmarkError as error:
            if any(runs.values()):
                resume = f"the finished runs are kept: go on with `--resume {experiment_id}`"
                error.hint = f"{error.hint}; {resume}" if error.hint else resume
            raise
        return Sweep(experiment_id, runs, interrupted)

    def _steps(
        self, plan: SweepPlan, order: SweepOrder, runs: Mapping[str, Sequence[SealedRun]]
    ) -> Iterator[tuple[_Step, int]]:
        """What to run, and how many runs there are as far as is known."""
        if not order.adaptive:
            steps = grid_steps(plan.loads, order.versions, order.repetitions, order.seed)
            yield from ((step, len(steps)) for step in steps)
            return
        made = turn = 0
        while (load := self._wanted(plan, runs)) is not None:
            made += order.repetitions * len(order.versions)
            cell = CellLoad(plan.connections, load // plan.connections)
            for repetition in range(order.repetitions):
                for version in _in_turn(order.versions, turn):
                    yield _Step(version, cell, repetition + 1), made
                turn += 1

    def _wanted(self, plan: SweepPlan, runs: Mapping[str, Sequence[SealedRun]]) -> int | None:
        """The first load that some version's search asks for; every version gets it, so that all can be compared.

        The edge is looked for by what is committed in the end, and then by what is committed within the window.
        """
        for found in runs.values():
            cells = [self.system.cell_run(run) for run in found]
            for share in (_efficiency, _pace):
                if (load := next_load(kept_up(cells, plan.tolerance, share), plan)) is not None:
                    return load
        return None

    def _done(self, experiment_id: str | None) -> dict[int, SealedRun]:
        """The runs of an experiment by their places."""
        if experiment_id is None:
            return {}
        found = {
            place.position: run
            for run in self.store.sealed()
            if (place := run.manifest.experiment) and place.id == experiment_id
        }
        if not found:
            raise UsageError(f"there is no run of an experiment `{experiment_id}`", "`chainmark runs list` shows all")
        return found

    def _check(self, run: SealedRun, profile: BaseModel, side: str, order: SweepOrder) -> None:
        """Whether a finished run is the one that would be made in its place."""
        place = run.manifest.experiment
        same = (
            place is not None
            and place.side == side
            and run.manifest.profile == profile.model_dump(mode="json")
            and run.manifest.seed == order.seed + place.position
        )
        if not same:
            raise UsageError(
                f"`{order.resume}` was made with other versions, loads, settings or seed: {run.run_id} does not fit",
                "resume it with the same command, or leave out `--resume`",
            )


def _efficiency(cell: CellRun) -> float:
    return cell.efficiency


def _pace(cell: CellRun) -> float:
    return cell.efficiency if cell.pace is None else cell.pace.value


def kept_up(
    cells: Sequence[CellRun], tolerance: float, share: Callable[[CellRun], float] = _efficiency
) -> dict[int, bool]:
    """By load, whether the mean share of the runs reaches the threshold; a load without a valid run does not."""
    by_load: dict[int, list[float]] = {}
    for cell in cells:
        found = by_load.setdefault(cell.connections * cell.rate_per_s, [])
        if not cell.excluded:
            found.append(share(cell))
    return {
        load: bool(shares) and sum(shares) / len(shares) >= 1.0 - tolerance for load, shares in sorted(by_load.items())
    }
