"""Saturation tests of a system: which runs they make in which order, how they are announced, and how they resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentPlace, Manifest, Scalar
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab import sweeping
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.schedules import PlannedRun, Standing, SweepLoad, SweepPlan, Total, grid_steps
from chainmark.lab.sweeping import ADAPTIVE_ORDER, GRID_ORDER, Bisected, Sweep, Sweeper, SweepRequest, order_description
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.compare.synthetic_runs import manifest
from tests.unit.lab.stand_in import Followed, Profile, StandIn

CAPACITY, TOLERANCE = 250, 0.1


def _load(per_s: int) -> SweepLoad:
    return SweepLoad((1, per_s), f"r{per_s}", per_s)


LOADS = tuple(map(_load, (100, 200, 400, 800)))
PLAN = SweepPlan(LOADS, TOLERANCE, step=50, first_load=100, most_load=400, relative_gap=0.5, line="number of nodes")
BISECTED = replace(PLAN, search="bisect")


class _Dated(Profile):
    """A profile with a value that is not plain data."""

    since: date = date(2026, 1, 2)


PROFILE = _Dated(system="cometbft", name="quick")


@dataclass
class _Swept(StandIn):
    """Versions that sustain the loads up to their capacity."""

    plan: SweepPlan = PLAN
    orders: list[ExecutionRequest] = field(default_factory=list)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The rate of the profile."""
        return {"rate": _Dated.model_validate(profile.model_dump()).rate}

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Store the order and make the run."""
        self.orders.append(order)
        return super().execute(profile, order, run, progress)

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The plan of the test."""
        assert isinstance(profile, _Dated)
        return self.plan

    def load_of(self, plan: SweepPlan, per_s: int) -> SweepLoad:
        """Any load can be offered."""
        assert plan is self.plan
        return _load(per_s)

    def at_load(self, profile: BaseModel, load: SweepLoad) -> BaseModel:
        """The profile at this rate."""
        return profile.model_copy(update={"rate": load.per_s})

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """By one measure, every load up to the capacity is sustained."""
        assert tolerance == TOLERANCE
        rates = [cast(int, run.manifest.workload["rate"]) for run in runs]
        return [{_load(rate): "kept up" if rate <= CAPACITY else "lost" for rate in rates}]


@dataclass
class _Listener(Followed):
    """Stores how each run is announced."""

    announced: list[tuple[PlannedRun, int, Total]] = field(default_factory=list)

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the run, its number and the total."""
        assert left_s is None
        self.announced.append((step, number, total))

    @property
    def steps_made(self) -> list[tuple[str, int, int]]:
        """The side, the repetition and the position of every run."""
        return [(step.side, step.repetition, step.position) for step, _, _ in self.announced]

    @property
    def numbers(self) -> list[int]:
        """The number of every run."""
        return [number for _, number, _ in self.announced]

    @property
    def totals(self) -> list[Total]:
        """The total that was announced with each run."""
        return [total for _, _, total in self.announced]


TWICE = SweepRequest(("a", "b"), 2, seed=7)
ONCE = SweepRequest(("a", "b"), 1, seed=7)


def _swept(folder: Path, order: SweepRequest, system: _Swept | None = None, listener: _Listener | None = None) -> Sweep:
    return Sweeper(Store(folder), system or _Swept()).make(PROFILE, order, listener or _Listener())


def _stops_at(run: int, error: BaseException) -> Callable[[int], None]:
    def stop(number: int) -> None:
        if number == run:
            raise error

    return stop


def test_a_grid_is_run_in_its_order_and_announced_with_its_whole_number(tmp_path: Path) -> None:
    """A run's seed is that of the test plus its position."""
    system, listener, machines = _Swept(), _Listener(), cast(Machines, object())
    order = replace(TWICE, keep_homes=True)
    sweep = Sweeper(Store(tmp_path), system, machines).make(PROFILE, order, listener)
    cells = grid_steps(LOADS, ("a", "b"), 2, 7)
    assert listener.steps_made == [
        (f"{cell.version}/{cell.load.name}", cell.repetition, position) for position, cell in enumerate(cells)
    ]
    assert listener.numbers == list(range(1, 17))
    assert listener.totals == [Total(16)] * 16
    runs = sweep.all_runs()
    assert [run.manifest.seed for run in runs] == list(range(7, 23))
    assert [run.manifest.workload["rate"] for run in runs] == [cell.load.per_s for cell in cells]
    assert {version: len(its) for version, its in sweep.runs.items()} == {"a": 8, "b": 8}
    assert all(run.manifest.subject.version == version for version, its in sweep.runs.items() for run in its)
    assert {(order.keep_homes, order.machines) for order in system.orders} == {(True, machines)}
    assert sweep.interrupted is False
    assert sweep.experiment_id.startswith("cometbft-quick-20")
    assert {place.id for run in runs if (place := run.manifest.experiment)} == {sweep.experiment_id}


def test_a_bisection_runs_the_middle_of_the_open_loads(tmp_path: Path) -> None:
    """Of four open loads the second is run, then the first of the two above it: three loads at most, of four runs."""
    listener = _Listener()
    _swept(tmp_path, TWICE, _Swept(plan=BISECTED), listener)
    assert listener.steps_made == [
        ("b/r200", 1, 2), ("a/r200", 1, 3), ("a/r200", 2, 10), ("b/r200", 2, 11),
        ("a/r400", 1, 4), ("b/r400", 1, 5), ("b/r400", 2, 12), ("a/r400", 2, 13),
    ]  # fmt: skip
    assert listener.numbers == list(range(1, 9))
    assert listener.totals == [Total(12, "at most")] * 8


def test_before_its_first_run_a_bisection_knows_how_many_runs_it_may_need() -> None:
    """Three of the four loads, with three runs of two versions each."""
    assert Bisected(_Swept(plan=BISECTED), BISECTED, ["a", "b"], 3).most == 18


def test_an_adaptive_search_doubles_the_load_and_then_halves_the_gap(tmp_path: Path) -> None:
    """From 100 to 400, and to 300, where the gap to 200 is half of it. How many loads follow is not known before."""
    listener = _Listener()
    _swept(tmp_path, replace(TWICE, adaptive=True), _Swept(plan=BISECTED), listener)
    turns = [("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    sides = [(f"{version}/r{load}", repetition) for load in (100, 200, 400, 300) for version, repetition in turns]
    assert listener.steps_made == [(side, repetition, place) for place, (side, repetition) in enumerate(sides)]
    assert listener.totals == [Total(runs, "at least") for runs in (4, 8, 12, 16) for _ in range(4)]


def test_all_versions_take_turns_with_an_odd_number_of_runs_too(tmp_path: Path) -> None:
    listener = _Listener()
    _swept(tmp_path, replace(ONCE, adaptive=True), _Swept(), listener)
    sides = ["a/r100", "b/r100", "b/r200", "a/r200", "a/r400", "b/r400", "b/r300", "a/r300"]
    assert [side for side, _, _ in listener.steps_made] == sides
    assert {repetition for _, repetition, _ in listener.steps_made} == {1}


def test_the_order_of_the_runs_is_explained_as_it_was() -> None:
    assert order_description(PLAN) == GRID_ORDER
    assert order_description(PLAN, adaptive=True) == order_description(BISECTED, adaptive=True) == ADAPTIVE_ORDER
    bisected = order_description(BISECTED)
    assert "are run: for each number of nodes, the middle one of the loads" in bisected
    assert "The next number of nodes begins next to the edge" in bisected


@dataclass
class _Run:
    """A run of which only the manifest matters."""

    manifest: Manifest


def _placed(position: int | None) -> SealedRun:
    place = None if position is None else ExperimentPlace(id="x", side="a", repetition=1, position=position)
    return cast(SealedRun, _Run(manifest("v1", 1).model_copy(update={"experiment": place})))


def test_the_runs_of_all_versions_are_sorted_by_position() -> None:
    """Runs of no experiment, such as published ones, come first."""
    runs = {position: _placed(position) for position in (3, 1, 2, None)}
    sweep = Sweep("x", {"a": [runs[3], runs[1]], "b": [runs[2], runs[None]]}, interrupted=False)
    assert sweep.all_runs() == [runs[None], runs[1], runs[2], runs[3]]


def test_the_machine_is_reserved_for_the_whole_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two runs another measurement could otherwise begin, and this one would wait for it."""
    listener, reserved = _Listener(), list[Progress]()

    @contextmanager
    def reserve(progress: Progress) -> Iterator[None]:
        reserved.append(progress)
        yield

    monkeypatch.setattr(sweeping, "machine_to_itself", reserve)
    _swept(tmp_path, ONCE, listener=listener)
    assert [item is listener for item in reserved] == [True]


@pytest.mark.parametrize("plan", [PLAN, BISECTED], ids=["grid", "bisection"])
def test_an_interrupted_test_continues_with_the_next_run(tmp_path: Path, plan: SweepPlan) -> None:
    """The finished runs are not repeated, and the numbers of the others are those that they would have had."""
    whole, listener = _Listener(), _Listener()
    _swept(tmp_path / "whole", ONCE, _Swept(plan=plan), whole)
    part = _swept(tmp_path, ONCE, _Swept(_stops_at(3, KeyboardInterrupt()), plan=plan))
    assert part.interrupted is True
    before = part.all_runs()
    assert len(before) == 2
    rest = _swept(tmp_path, replace(ONCE, resume=part.experiment_id), _Swept(plan=plan), listener)
    assert (rest.experiment_id, rest.interrupted) == (part.experiment_id, False)
    assert [run.run_id for run in rest.all_runs() if run.run_id in {run.run_id for run in before}] == [
        run.run_id for run in before
    ]
    assert listener.announced == whole.announced[2:]
    assert listener.numbers[0] == 3


def test_a_test_that_is_interrupted_in_its_first_run_is_over(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _swept(tmp_path, ONCE, _Swept(_stops_at(1, KeyboardInterrupt())))


@pytest.mark.parametrize("hint", ["free some space", None])
def test_a_failure_says_how_to_continue_if_runs_were_finished(tmp_path: Path, hint: str | None) -> None:
    with pytest.raises(EnvironmentFailure) as at_once:
        _swept(tmp_path / "first", ONCE, _Swept(_stops_at(1, EnvironmentFailure("the disk is full", hint))))
    assert at_once.value.hint == hint
    with pytest.raises(EnvironmentFailure) as later:
        _swept(tmp_path, ONCE, _Swept(_stops_at(2, EnvironmentFailure("the disk is full", hint))))
    (run,) = Store(tmp_path).sealed()
    assert run.manifest.experiment is not None
    resume = f"the finished runs are kept: continue with `--resume {run.manifest.experiment.id}`"
    assert later.value.hint == (f"{hint}; {resume}" if hint else resume)


# The first run is of version a.
FIRST = grid_steps(LOADS, ("a", "b"), 1, 7)[0].load.name


@pytest.mark.parametrize(
    ("profile", "changed", "difference"),
    [
        ({}, {"seed": 8}, "the seed 7 instead of 8"),
        ({"name": "slow"}, {"seed": 8, "versions": ("b", "a")}, "the seed 7 instead of 8"),
        ({"name": "slow"}, {}, "the setting `name`"),
        ({}, {"versions": ("b", "a")}, f"the place a/{FIRST} instead of b/{FIRST}"),
        (
            {"name": "slow", "since": date(2026, 1, 3)},
            {"versions": ("b", "a")},
            f"the setting `name`, the setting `since` and the place a/{FIRST} instead of b/{FIRST}",
        ),
    ],
)
def test_another_test_is_not_continued(
    tmp_path: Path, profile: dict[str, Any], changed: dict[str, Any], difference: str
) -> None:
    """Its runs would be compared as if they were of one test. Of another seed everything else may follow."""
    part = _swept(tmp_path, ONCE, _Swept(_stops_at(3, KeyboardInterrupt())))
    first = part.all_runs()[0].run_id
    order = replace(ONCE, resume=part.experiment_id, **changed)
    with pytest.raises(UsageError) as refused:
        Sweeper(Store(tmp_path), _Swept()).make(PROFILE.model_copy(update=profile), order, _Listener())
    beginning = f"{first} of `{part.experiment_id}` does not match: it differs by "
    assert refused.value.message.removeprefix(beginning) == difference
    assert refused.value.hint == "resume it with the same command, or omit `--resume`"


@pytest.mark.parametrize(
    ("order", "message", "hint"),
    [
        (
            SweepRequest(("a", "b", "c", "b"), 1, 7),
            "the version `b` is given twice",
            "use `--repeat` for more runs of a version",
        ),
        (
            replace(ONCE, resume="e-1"),
            "the store has no runs of an experiment `e-1`",
            "`chainmark runs list` lists all runs",
        ),
    ],
)
def test_an_impossible_test_is_refused_before_any_run(
    tmp_path: Path, order: SweepRequest, message: str, hint: str
) -> None:
    system = _Swept()
    with pytest.raises(UsageError) as refused:
        _swept(tmp_path, order, system)
    assert (refused.value.message, refused.value.hint, system.made) == (message, hint, [])
