"""Saturation tests of any system: a sealed run for each load and version, in scheduled order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from chainmark.core.errors import ChainmarkError, UsageError
from chainmark.core.manifest import Fact
from chainmark.core.parts import Machines
from chainmark.core.wording import enumerated
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.profiles import differing_keys
from chainmark.lab.protocols import SweptSystem
from chainmark.lab.running import Lab, Listener, RunSeries
from chainmark.lab.schedules import (
    PlannedRun,
    SweepPlan,
    SweepRun,
    Total,
    bisected_cells,
    forth_and_back,
    grid_steps,
    most_loads_needed,
    next_cells,
    wanted_load,
)
from chainmark.lab.session import name_of, new_experiment_id
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

GRID_ORDER = (
    "Every repetition runs every load once, in a random order drawn from the seed. At each load the versions run "
    "directly after each other and take turns to be first (A B, B A). A slow drift of the machine affects all equally."
)
ADAPTIVE_ORDER = (
    "The results determine the loads: the load doubles until a version no longer keeps up, doubles again, and is then "
    "bisected between the two loads at the edge, for each share. At each load the versions run directly after each "
    "other and take turns to be first (A B, B A). A drift affects both equally. A drift between loads is not averaged "
    "out."
)
BISECTED_ORDER = (
    "The results determine which loads of the grid are run: for each {line}, the middle one of the "
    "loads between the clearly sustained and the clearly unsustained ones, for each share, until all of these were "
    "run. The next {line} begins next to the edge of the previous one. Loads are run again if they contradict each "
    "other, or if one version sustains them and another does not. If they still contradict each other, the rest of "
    "the grid is run. Loads that were not run are below clearly sustained ones, or above clearly unsustained ones. At "
    "each load the versions run directly after each other and take turns to be first (A B, B A). A drift affects both "
    "equally. A drift between loads is not averaged out."
)


def order_description(plan: SweepPlan, *, adaptive: bool = False) -> str:
    """The order of the runs of a sweep, and its reason."""
    if adaptive:
        return ADAPTIVE_ORDER
    return BISECTED_ORDER.format(line=plan.line) if plan.search == "bisect" else GRID_ORDER


@dataclass(frozen=True)
class SweepRequest:
    """One saturation test to make.

    Attributes:
        versions: each once, the baseline first.
        repetitions: runs per load and version.
        seed: of the order; a run's own seed is this plus its position.
        adaptive: search for the edge, also at loads off the grid, instead of running the grid.
        resume: the experiment whose finished runs are kept.
    """

    versions: tuple[str, ...]
    repetitions: int
    seed: int
    adaptive: bool = False
    keep_homes: bool = False
    resume: str | None = None


@dataclass(frozen=True)
class SweepTest:
    """The facts about a test as a whole for its document.

    Attributes:
        title: "" uses the system's own.
        tolerance: a load is sustained if the share is at least one minus this.
        order: the order in which the runs were made, and why.
        machine: of the runs.
    """

    title: str
    system: str
    profile_name: str
    experiment: str
    started_at: str
    tool_version: str
    seed: int
    tolerance: float
    order: str
    machine: Sequence[Fact] = ()
    notes: Sequence[str] = ()
    interrupted: bool = False


@dataclass(frozen=True)
class Sweep:
    """All runs that were made; with ``interrupted`` some are missing."""

    experiment_id: str
    runs: dict[str, list[SealedRun]]
    interrupted: bool

    def all_runs(self) -> list[SealedRun]:
        """Sorted by position."""
        result = [run for runs in self.runs.values() for run in runs]
        return sorted(result, key=lambda run: run.manifest.experiment.position if run.manifest.experiment else 0)


class Bisected:
    """A bisection among the loads of a grid.

    Attributes:
        cells: all runs that it may need, by position.
        most: maximum number of its runs, as far as known and if no load must be repeated.
    """

    def __init__(self, system: SweptSystem, plan: SweepPlan, versions: Sequence[str], repetitions: int) -> None:
        self.cells = bisected_cells(plan.loads, versions, repetitions)
        self._system = system
        self._plan = plan
        self._runs_a_load = len(versions) * repetitions
        self.most = most_loads_needed(plan.loads, [{}]) * self._runs_a_load

    def next_positions(self, made: Collection[int], runs: Mapping[str, Sequence[SealedRun]]) -> list[int]:
        """The positions of the next runs; empty: it has ended.

        Args:
            made: positions of the runs that were made, or could not be.
            runs: by version.
        """
        result = {version: self._system.standings(its, self._plan.tolerance) for version, its in runs.items()}
        left = most_loads_needed(self._plan.loads, [measure for measures in result.values() for measure in measures])
        cells = next_cells(self.cells, [self.cells[position] for position in made], result)
        self.most = len(made) + max(len(cells), left * self._runs_a_load)
        return [self.cells.index(cell) for cell in cells]


@dataclass(frozen=True)
class Sweeper:
    """Makes saturation tests of one system into one store, with nodes on this machine or on others."""

    store: Store
    system: SweptSystem
    machines: Machines | None = None

    def make(self, profile: BaseModel, order: SweepRequest, listener: Listener) -> Sweep:
        """Make all runs. Ctrl-C ends it early; finished runs are kept, and the test can be resumed.

        Raises:
            UsageError: a version is named twice, a load cannot be offered, or the experiment to be resumed is another.
            EnvironmentFailure: a network could not be run; the hint says how to continue.
        """
        twice = next((version for version in order.versions if order.versions.count(version) > 1), None)
        if twice is not None:
            raise UsageError(f"the version `{twice}` is given twice", "use `--repeat` for more runs of a version")
        experiment_id = order.resume or new_experiment_id(self.system.name, name_of(profile))
        lab = Lab(self.store, self.system, self.machines)
        series = RunSeries.begun(lab, experiment_id, order.seed, order.keep_homes, listener)
        if order.resume and not series.runs:
            raise UsageError(
                f"the store has no runs of an experiment `{experiment_id}`", "`chainmark runs list` lists all runs"
            )
        with machine_to_itself(listener):
            return self._made(profile, order, series)

    def _made(self, profile: BaseModel, order: SweepRequest, series: RunSeries) -> Sweep:
        done = dict(series.runs)
        runs: dict[str, list[SealedRun]] = {version: [] for version in order.versions}
        interrupted = False
        try:
            cells = self._cells(self.system.sweep_plan(profile), order, runs)
            for number, (position, cell, total) in enumerate(cells, 1):
                step = cell.step(self.system.at_load(profile, cell.load), position)
                if position in done:
                    _check(done[position], step, order)
                runs[cell.version].append(done.get(position) or series.make(step, number, total))
        except KeyboardInterrupt:
            if not any(runs.values()):
                raise
            interrupted = True
        except ChainmarkError as error:
            if any(runs.values()) and not isinstance(error, _OtherExperimentError):
                resume = f"the finished runs are kept: continue with `--resume {series.experiment_id}`"
                error.hint = f"{error.hint}; {resume}" if error.hint else resume
            raise
        return Sweep(series.experiment_id, runs, interrupted)

    def _cells(
        self, plan: SweepPlan, order: SweepRequest, runs: Mapping[str, Sequence[SealedRun]]
    ) -> Iterator[tuple[int, SweepRun, Total]]:
        """The runs by position, and their number as far as known."""
        if order.adaptive:
            yield from self._doubled(plan, order, runs)
        elif plan.search == "bisect":
            yield from self._bisected(plan, order, runs)
        else:
            cells = grid_steps(plan.loads, order.versions, order.repetitions, order.seed)
            yield from ((place, cell, Total(len(cells))) for place, cell in enumerate(cells))

    def _bisected(
        self, plan: SweepPlan, order: SweepRequest, runs: Mapping[str, Sequence[SealedRun]]
    ) -> Iterator[tuple[int, SweepRun, Total]]:
        search = Bisected(self.system, plan, order.versions, order.repetitions)
        attempted: list[int] = []
        while positions := search.next_positions(attempted, runs):
            for position in positions:
                yield position, search.cells[position], Total(search.most, "at most")
                attempted.append(position)

    def _doubled(
        self, plan: SweepPlan, order: SweepRequest, runs: Mapping[str, Sequence[SealedRun]]
    ) -> Iterator[tuple[int, SweepRun, Total]]:
        total = turn = position = 0
        while (load := self._wanted(plan, runs)) is not None:
            total += order.repetitions * len(order.versions)
            at = self.system.load_of(plan, load)
            for repetition in range(order.repetitions):
                for version in forth_and_back(order.versions, turn):
                    yield position, SweepRun(version, at, repetition + 1), Total(total, "at least")
                    position += 1
                turn += 1

    def _wanted(self, plan: SweepPlan, runs: Mapping[str, Sequence[SealedRun]]) -> int | None:
        return wanted_load((self.system.standings(run, plan.tolerance) for run in runs.values()), plan)


class _OtherExperimentError(UsageError):
    """The experiment to be resumed is another one."""


def _check(run: SealedRun, step: PlannedRun, order: SweepRequest) -> None:
    """Whether a finished run is the one that would be made at its position."""
    place, manifest = run.manifest.experiment, run.manifest
    profile, seed = step.profile.model_dump(mode="json"), order.seed + step.position
    side = place.side if place else ""
    if manifest.seed != seed:  # all else may follow from it
        differences = [f"the seed {manifest.seed} instead of {seed}"]
    else:
        differences = [f"the setting `{key}`" for key in differing_keys(manifest.profile, profile)]
        differences += [f"the place {side} instead of {step.side}"] if side != step.side else []
    if differences:
        raise _OtherExperimentError(
            f"{run.run_id} of `{order.resume}` does not match: it differs by {enumerated(differences)}",
            "resume it with the same command, or omit `--resume`",
        )
