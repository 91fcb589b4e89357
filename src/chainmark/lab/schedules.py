"""Which runs are made, and in which order. Pure functions, so that an interrupted experiment gets the same order."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile, zip_longest
from typing import Literal, TypeVar

from pydantic import BaseModel

Item = TypeVar("Item")

# On which side of the threshold a load is, by its value; "leans": its interval includes the threshold.
Standing = Literal["kept up", "leans to kept up", "leans to lost", "lost", "no data"]
Bound = Literal["", "at most", "at least"]  # of a number of runs
KEEPING_UP: tuple[Standing, ...] = ("kept up", "leans to kept up")
# The side of runs without another subject to compare with.
LONE_SIDE = "subject"


@dataclass(frozen=True)
class Arm:
    """One side of an experiment: a version and the profile it runs."""

    side: str  # "baseline", "candidate", or LONE_SIDE; of a sweep, the version and the load
    version: str
    profile: BaseModel


@dataclass(frozen=True)
class PlannedRun(Arm):
    """One run to make.

    Attributes:
        repetition: of its side, from 1.
        position: in its experiment, from 0; decides the run's seed.
    """

    repetition: int
    position: int


# Runs that explain others are of an experiment of their own, with this suffix.
EXPLAINING = "profiles"
NOT_JUDGED = "for profiles, not judged"


@dataclass(frozen=True)
class Total:
    """The number of runs, and whether it is a plan or only a bound.

    Attributes:
        bound: "at most" if a decision may end them sooner, "at least" if a search may need more.
        purpose: of a run without a verdict: ``NOT_JUDGED``.
    """

    runs: int
    bound: Bound = ""
    purpose: str = ""


def total_with(position: int, left: int, bound: Bound = "") -> Total:
    """The number of runs if this many follow the one at a position."""
    return Total(position + 1 + left, bound)


@dataclass(frozen=True, order=True)
class SweepLoad:
    """One load of a sweep.

    Attributes:
        key: the numbers that the system sets for it; loads are sorted by it.
        name: its name within a run's side.
        per_s: total offered rate per second.
    """

    key: tuple[int, ...]
    name: str
    per_s: int


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep: a version at a load."""

    version: str
    load: SweepLoad
    repetition: int

    def step(self, profile: BaseModel, position: int) -> PlannedRun:
        """The same as a run to make, with the profile at this load."""
        return PlannedRun(f"{self.version}/{self.load.name}", self.version, profile, self.repetition, position)


@dataclass(frozen=True)
class SweepPlan:
    """The loads of a profile.

    Attributes:
        loads: of the grid.
        search: whether all of them are run, or only those that a bisection needs.
        tolerance: a load is sustained if at least one minus this share of it is processed.
        step: an adaptive search's loads are multiples of it.
        first_load, most_load: the first and the maximum load.
        relative_gap: maximum distance of the two loads around the edge, as a share of the lower one.
        line: what the loads have in common that differ only in the last number of their keys.
    """

    loads: tuple[SweepLoad, ...]
    tolerance: float
    step: int
    first_load: int
    most_load: int
    relative_gap: float
    search: Literal["grid", "bisect"] = "grid"
    line: str = "line of the grid"


def forth_and_back(items: Sequence[Item], turn: int) -> list[Item]:
    """The items in order, and in reverse order every second turn: a slow drift affects all of them equally."""
    return list(items) if turn % 2 == 0 else list(reversed(items))


def interleaved(arms: Sequence[Arm], repetitions: int) -> list[PlannedRun]:
    """The runs of an experiment's sides in alternating order: A B B A A B, or A B C C B A."""
    order = [(arm, turn + 1) for turn in range(repetitions) for arm in forth_and_back(arms, turn)]
    return [
        PlannedRun(arm.side, arm.version, arm.profile, repetition, position)
        for position, (arm, repetition) in enumerate(order)
    ]


def grid_steps(loads: Sequence[SweepLoad], versions: Sequence[str], repetitions: int, seed: int) -> list[SweepRun]:
    """Every load and version, repeated, in an order in which a drift cannot look like a difference."""
    draw = random.Random(seed)  # noqa: S311 - an order, not a secret
    cells: list[SweepRun] = []
    for repetition in range(repetitions):
        shuffled = sorted(set(loads))
        draw.shuffle(shuffled)
        for place, load in enumerate(shuffled):
            cells += [
                SweepRun(version, load, repetition + 1) for version in forth_and_back(versions, repetition + place)
            ]
    return cells


def bisected_cells(loads: Sequence[SweepLoad], versions: Sequence[str], repetitions: int) -> list[SweepRun]:
    """All runs that a bisection may need, with fixed positions: one repetition more than planned.

    Args:
        loads: of the grid.
        versions: each once.
        repetitions: of a load that contradicts no other load.
    """
    return [
        SweepRun(version, load, repetition + 1)
        for repetition in range(repetitions + 1)
        for place, load in enumerate(sorted(set(loads)))
        for version in forth_and_back(versions, repetition + place)
    ]


def next_cells(
    cells: Sequence[SweepRun],
    made: Collection[SweepRun],
    versions: Mapping[str, Sequence[Mapping[SweepLoad, Standing]]],
) -> list[SweepRun]:
    """The next runs of a bisection; empty if every edge is known.

    Loads that contradict each other are repeated; if they still do, there is no edge, and the rest of the grid is run.
    So are loads that one version sustains and another does not, as one unusual run would make a difference of them.
    A load that one version needs is run with every version, so that versions are compared under the same loads in turn.

    Args:
        cells: those of `bisected_cells`.
        made: those that were run, whatever their outcome.
        versions: per version and measure, the main one first: the standings of the loads that were run.
    """
    last = cells[-1].repetition
    loads = sorted({cell.load for cell in cells})
    begun = {(cell.load, cell.repetition == last) for cell in made}
    rest = [cell for cell in cells if cell not in made and (cell.load, cell.repetition == last) in begun]
    if rest:
        return rest
    ran = {version: {cell.load for cell in made if cell.version == version} for version in versions}
    result: list[dict[SweepLoad, Standing]] = [
        {load: standings.get(load, "no data") for load in ran[version]}
        for version, measures in versions.items()
        for standings in measures or [{}]
    ]
    doubtful = [load for standings in result for load in contradicting(standings)]
    wanted = next((load for standings in result if (load := bisected_load(loads, standings))), None)
    if wanted is None and not doubtful:
        wanted = next((load for standings in result if (load := _bounding_load(loads, standings))), None)
    if wanted is not None:
        return [cell for cell in cells if cell.load == wanted and cell.repetition < last]
    differing = [load for load in loads if _differs(load, versions)]
    if again := [load for load in [*doubtful, *differing] if (load, True) not in begun]:
        return [cell for cell in cells if cell.load == again[0] and cell.repetition == last]
    missing = [load for load in loads if doubtful and (load, False) not in begun]
    return [cell for cell in cells if cell.load in missing[:1] and cell.repetition < last]


def _differs(load: SweepLoad, versions: Mapping[str, Sequence[Mapping[SweepLoad, Standing]]]) -> bool:
    """Whether one version clearly sustains a load by a measure, and another one clearly does not."""
    return any(
        {"kept up", "lost"} <= {standings.get(load) for standings in measure}
        for measure in zip_longest(*versions.values(), fillvalue={})
    )


def bisected_load(loads: Sequence[SweepLoad], standings: Mapping[SweepLoad, Standing]) -> SweepLoad | None:
    """The middle one of the open loads; None if none is open.

    Loads that differ only in the last number of their keys form a line. The open loads of a line are those between the
    clearly sustained and the clearly unsustained ones, so that a lower or higher load could not change what is certain.
    A line begins next to the edge of the previous one.

    Args:
        loads: sorted.
        standings: those of the loads that were run.
    """
    edge: int | None = None
    for _, group in groupby(loads, key=lambda load: load.key[:-1]):
        line = _known(group, standings)
        if between := _open(line, standings):
            adjacent = [] if edge is None else _beside(line, edge)
            return next((load for load in adjacent if load in between), between[(len(between) - 1) // 2])
        edge = max((load.per_s for load in line if standings.get(load) in KEEPING_UP), default=0)
    return None


def _bounding_load(loads: Sequence[SweepLoad], standings: Mapping[SweepLoad, Standing]) -> SweepLoad | None:
    """Loads that bound the range of the edge if the edges of the lines do not.

    A load that is clearly lost in one line bounds nothing if another line is doubtful at the same load.
    """
    doubtful = [load.per_s for load, standing in standings.items() if standing in {"leans to kept up", "leans to lost"}]
    if not doubtful:
        return None
    least, most = min(doubtful), max(doubtful)
    is_lost_above = any(standing == "lost" and load.per_s > most for load, standing in standings.items())
    is_sustained_below = any(standing == "kept up" and load.per_s < least for load, standing in standings.items())
    left = [load for load in loads if load not in standings]
    above = [load for load in left if load.per_s > most and not is_lost_above]
    below = [load for load in left if load.per_s < least and not is_sustained_below]
    return min(above, key=lambda load: load.per_s, default=None) or max(
        below, key=lambda load: load.per_s, default=None
    )


def most_loads_needed(loads: Sequence[SweepLoad], findings: Iterable[Mapping[SweepLoad, Standing]]) -> int:
    """The maximum number of loads that a bisection still needs, if no two contradict each other.

    Args:
        loads: of the grid.
        findings: per version and measure: the standings of the loads that were run.
    """
    lines = [list(group) for _, group in groupby(sorted(set(loads)), key=lambda load: load.key[:-1])]
    findings = list(findings)
    open_ = {tuple(tuple(_open(_known(line, finding), finding)) for line in lines) for finding in findings}
    halved = sum(
        min(len(line), len(line).bit_length() + bool(place)) for lines in open_ for place, line in enumerate(lines)
    )
    bounding = {load for finding in findings if (load := _bounding_load(loads, finding))}
    return max(min(halved, len({load for lines in open_ for line in lines for load in line})), len(bounding))


def _known(line: Iterable[SweepLoad], standings: Mapping[SweepLoad, Standing]) -> list[SweepLoad]:
    return [load for load in line if standings.get(load) != "no data"]


def _open(line: Sequence[SweepLoad], standings: Mapping[SweepLoad, Standing]) -> list[SweepLoad]:
    ran = [load for load in line if load in standings]
    sweep_loads = list(takewhile(lambda load: standings[load] == "kept up", ran))
    lost = list(takewhile(lambda load: standings[load] == "lost", reversed(ran)))
    first = line.index(sweep_loads[-1]) + 1 if sweep_loads else 0
    end = line.index(lost[-1]) if lost else len(line)
    return [load for load in line[first:end] if load not in standings]


def _beside(line: Sequence[SweepLoad], edge: int) -> list[SweepLoad]:
    """The greatest load up to an edge, and the next one."""
    below = [load for load in line if load.per_s <= edge]
    return [*below[-1:], *line[len(below) :][:1]]


def contradicting(standings: Mapping[SweepLoad, Standing]) -> list[SweepLoad]:
    """The loads that are not sustained although an equal or higher one is, and the loads that contradict them."""
    sweep_loads = [load for load, standing in standings.items() if standing in KEEPING_UP]
    lost = [load for load, standing in standings.items() if standing not in {*KEEPING_UP, "no data"}]
    least, most = (
        min((load.per_s for load in lost), default=None),
        max((load.per_s for load in sweep_loads), default=None),
    )
    if least is None or most is None:
        return []
    return sorted([load for load in sweep_loads if load.per_s >= least] + [load for load in lost if load.per_s <= most])


def wanted_load(versions: Iterable[Iterable[Mapping[SweepLoad, Standing]]], plan: SweepPlan) -> int | None:
    """The first load that any version's search needs; every version runs it, so that all can be compared.

    Args:
        versions: per version and measure, the main one first: the standings of the loads that were run.
        plan: the search's limits.
    """
    for measures in versions:
        for measure in measures or [{}]:
            sustained = {load.per_s: standing in KEEPING_UP for load, standing in measure.items()}
            if (load := next_load(sustained, plan)) is not None:
                return load
    return None


def next_load(sustained: Mapping[int, bool], plan: SweepPlan) -> int | None:
    """The next load of one version's adaptive search; None if its edge is known with the requested precision.

    Args:
        sustained: by load, whether it is sustained.
        plan: its limits.
    """
    step = plan.step
    if not sustained:
        return _whole(plan.first_load, step)
    lowest, highest = min(sustained), max(sustained)
    failed = sorted(load for load, is_sustained in sustained.items() if not is_sustained)
    if not failed:
        return highest * 2 if highest * 2 <= plan.most_load else None
    if failed[0] == lowest:
        return _whole(lowest // 2, step) if lowest >= 2 * step else None
    if failed[0] == highest and highest * 2 <= plan.most_load:
        return highest * 2  # beyond the edge: that a higher load does not increase throughput
    low = max(load for load in sustained if load < failed[0])
    middle = _whole((low + failed[0]) // 2, step)
    close = failed[0] - low <= plan.relative_gap * low
    return None if close or not low < middle < failed[0] else middle


def _whole(load: int, step: int) -> int:
    return max(step, load // step * step)
