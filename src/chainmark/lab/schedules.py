"""Which runs are made, and in which order: pure functions, so an order that was interrupted is found again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel

Item = TypeVar("Item")

# The side of runs that were made without another subject to compare with.
LONE_SIDE = "subject"


@dataclass(frozen=True)
class Arm:
    """One side of an experiment: a version and the profile it runs."""

    side: str  # "baseline", "candidate", or LONE_SIDE; of a sweep, the version and the load
    version: str
    profile: BaseModel


@dataclass(frozen=True)
class Step(Arm):
    """One run to make.

    Attributes:
        repetition: of its side, from 1.
        position: in its experiment, from 0; decides the run's seed.
    """

    repetition: int
    position: int


@dataclass(frozen=True)
class Total:
    """How many runs there will be, and whether that is a plan, or all that is known of it.

    Attributes:
        bound: "at most" where a decision may end them sooner, "at least" where a search may ask for more.
    """

    runs: int
    bound: Literal["", "at most", "at least"] = ""


@dataclass(frozen=True, order=True)
class SweepLoad:
    """One load of a sweep.

    Attributes:
        key: what the system sets for it, in numbers; loads stand in its order.
        name: as a part of a run's side.
        per_s: what is offered per second in all.
    """

    key: tuple[int, ...]
    name: str
    per_s: int


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: a version at a load."""

    version: str
    load: SweepLoad
    repetition: int

    def step(self, profile: BaseModel, position: int) -> Step:
        """The same as a run to make, with the profile at this load."""
        return Step(f"{self.version}/{self.load.name}", self.version, profile, self.repetition, position)


@dataclass(frozen=True)
class SweepPlan:
    """What a profile says of the loads.

    Attributes:
        loads: of the grid.
        tolerance: a load is kept up if at least one minus this share of it is processed.
        step: an adaptive search's loads are multiples of it.
        first_load, most_load: where it begins, and what it does not go beyond.
        relative_gap: how near the two loads around the edge must come, as a share of the lower one.
    """

    loads: tuple[SweepLoad, ...]
    tolerance: float
    step: int
    first_load: int
    most_load: int
    relative_gap: float


def forth_and_back(items: Sequence[Item], turn: int) -> list[Item]:
    """The items in their order, and in the reverse one every second turn: a slow drift hits all of them alike."""
    return list(items) if turn % 2 == 0 else list(reversed(items))


def interleaved(arms: Sequence[Arm], repetitions: int) -> list[Step]:
    """The runs of an experiment's sides, forth and back: A B B A A B, or A B C C B A."""
    order = [(arm, turn + 1) for turn in range(repetitions) for arm in forth_and_back(arms, turn)]
    return [
        Step(arm.side, arm.version, arm.profile, repetition, position)
        for position, (arm, repetition) in enumerate(order)
    ]


def grid_steps(loads: Sequence[SweepLoad], versions: Sequence[str], repetitions: int, seed: int) -> list[Cell]:
    """Every load and version, so often, in an order that no drift can be taken for a difference in."""
    draw = random.Random(seed)  # noqa: S311 - an order, not a secret
    cells: list[Cell] = []
    for repetition in range(repetitions):
        shuffled = sorted(set(loads))
        draw.shuffle(shuffled)
        for place, load in enumerate(shuffled):
            cells += [Cell(version, load, repetition + 1) for version in forth_and_back(versions, repetition + place)]
    return cells


def wanted_load(versions: Iterable[Iterable[Mapping[int, bool]]], plan: SweepPlan) -> int | None:
    """The first load that some version's search asks for; every version gets it, so that all can be compared.

    Args:
        versions: of each by every measure, the first one first: by load, whether it is kept up.
        plan: the search's limits.
    """
    for measures in versions:
        for kept in measures:
            if (load := next_load(kept, plan)) is not None:
                return load
    return None


def next_load(kept: Mapping[int, bool], plan: SweepPlan) -> int | None:
    """What an adaptive search of one version asks for next; None: its edge is known as well as was asked for.

    Args:
        kept: by load, whether it is kept up.
        plan: its limits.
    """
    step = plan.step
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
