"""Profiles of two sides against each other: the functions that changed, their intervals, and the tree of calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from chainmark.compare.estimates import mean_of
from chainmark.compare.inputs import RunData
from chainmark.compare.sides import BASELINE, CANDIDATE
from chainmark.core import units
from chainmark.core.manifest import Status
from chainmark.core.profiled import Frame, FunctionChange, ProfileChange, ProfileCost, Profiled
from chainmark.core.profiles import DOCUMENT, EVENTS, KINDS, ProfilesRecord
from chainmark.core.wording import enumerated
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import LEVEL, Working, pooled, welch
from chainmark.stats.special import t_quantile

MOST_FUNCTIONS = 20
MOST_FRAMES = 400
# Fraction of the whole graph: narrower frames are illegible and merged with similar ones.
LEAST_WIDTH = 0.003
REST = "(rest)"
_DIGITS = 12
_BEGIN, _END = "begin", "end"


@runtime_checkable
class KeepsProfiles(Protocol):
    """A run that may contain profiles; runs in memory do not."""

    def events(self, name: str) -> pl.DataFrame:
        """The typed events of one kind."""

    def document(self, name: str) -> Mapping[str, object] | None:
        """The document with this name; None if there is none."""


@dataclass(frozen=True)
class RunProfiles:
    """The profiles of one run, with the run."""

    run: RunData
    record: ProfilesRecord
    stacks: pl.DataFrame

    def hosts(self, kind: str) -> list[str]:
        """The nodes with a profile of that kind."""
        return sorted(self.stacks.filter(kind=kind)["host"].unique())

    def of(self, kind: str, moment: str = _END) -> pl.DataFrame:
        """Stacks of one kind: host, stack, owner and value, per unit of work if the kind has one."""
        frame = self.stacks.filter(kind=kind, moment=moment)
        return frame.with_columns(pl.col("value") / self.record.work) if self._is_per_work(kind) else frame

    def _is_per_work(self, kind: str) -> bool:
        return KINDS[kind].per_work and self.record.work > 0.0


def profiles_of(run: RunData) -> RunProfiles | None:
    """The profiles of a run; None if it has none, for example because its network never ran."""
    content = run.document(DOCUMENT) if isinstance(run, KeepsProfiles) and run.manifest.profiles else None
    if content is None or not isinstance(run, KeepsProfiles):
        return None
    return RunProfiles(run, ProfilesRecord.model_validate(content), run.events(EVENTS))


def profiled(
    baseline: Sequence[RunData], candidate: Sequence[RunData], plain: Sequence[Sequence[RunData]], *, is_asked: bool
) -> Profiled | None:
    """The comparison of two sides' profiles; None if a side has none, unless the profiles were requested.

    Args:
        baseline: runs with profiles.
        candidate: likewise.
        plain: runs without profiles, of both sides: they show the cost of profiling.
        is_asked: profiles are shown whatever the verdict is.
    """
    sides = [[profiles for run in runs if (profiles := profiles_of(run))] for runs in (baseline, candidate)]
    if not all(sides):
        return Profiled(runs={}, changes=[], is_asked=True) if is_asked else None
    names = (BASELINE, CANDIDATE)
    notes = [note for name, side in zip(names, sides, strict=True) for note in _notes(name, side)]
    changes = [change for kind in KINDS if (change := _change(kind, sides))]
    costs = [_cost(*each) for each in zip(names, sides, plain, strict=True)]
    return Profiled(
        runs={name: [item.run.manifest.run_id for item in side] for name, side in zip(names, sides, strict=True)},
        changes=changes,
        costs=[cost for cost in costs if cost],
        notes=notes,
        is_asked=is_asked,
    )


def _notes(name: str, side: Sequence[RunProfiles]) -> list[str]:
    results = [f"{name}: {sentence}" for item in side for sentence in item.record.missing]
    for profiles in side:
        if profiles.run.manifest.status is not Status.VALID:
            gates = enumerated([f"{gate.label}: {gate.measured}" for gate in profiles.run.manifest.deciding_gates])
            results.append(f"{name}: the run with profiles is {profiles.run.manifest.status.value} ({gates})")
    if empty := sorted({kind for item in side for kind in item.record.empty}):
        kinds = enumerated([f"`{kind}`" for kind in empty])
        results.append(f"{name}: the profiles {kinds} are empty: they record data only if the program enables them")
    return list(dict.fromkeys(results))


# ---- functions ------------------------------------------------------------------------------------------------------
def _change(kind: str, sides: Sequence[Sequence[RunProfiles]]) -> ProfileChange | None:
    """One kind; None if a side has no profile of it."""
    profiles = [[item for item in side if item.hosts(kind)] for side in sides]
    if not all(profiles):
        return None
    about = KINDS[kind]
    owners = _Values.of(profiles, kind, "owner")
    intervals, basis = owners.intervals()
    # The name of a place is no function's, so nothing else calls it.
    within = None if about.is_waiting else _Values.of(profiles, kind, "within")
    grown = None if about.per_work or about.is_waiting else _Values.of(profiles, kind, "owner", grown=True)
    functions = [
        FunctionChange(
            function=name,
            baseline=owners.mean(0, name),
            candidate=owners.mean(1, name),
            low=low,
            high=high,
            within_baseline=within.mean(0, name) if within else 0.0,
            within_candidate=within.mean(1, name) if within else 0.0,
            grown_baseline=grown.mean(0, name) if grown else None,
            grown_candidate=grown.mean(1, name) if grown else None,
        )
        for name, (low, high) in intervals.items()
    ]
    work = next((item.record.work_label for side in profiles for item in side), "")
    tree = _tree(profiles, kind)
    return ProfileChange(
        kind=kind,
        label=about.label,
        unit=about.unit,
        per=f"{work} and node" if about.per_work and work else "node",
        # Sums of equal values in another order differ in their last digits.
        baseline=units.rounded(tree.baseline, _DIGITS),
        candidate=units.rounded(tree.candidate, _DIGITS),
        functions=sorted(functions, key=_clearest_first)[:MOST_FUNCTIONS],
        functions_in_all=len(functions),
        basis=basis,
        frames=_frames(tree),
    )


def _clearest_first(change: FunctionChange) -> tuple[float, float, str]:
    """Sort key: the lower bound of the change, then, for changes that may be zero, the change."""
    least = 0.0 if change.low is None or change.high is None else max(0.0, change.low, -change.high)
    return -least, -abs(change.change), change.function


@dataclass(frozen=True)
class _Values:
    """By side and run, each function's value for each node: hosts as rows, in the functions' order."""

    functions: Mapping[str, int]
    hosts: Sequence[Sequence[Sequence[str]]]
    values: Sequence[Sequence[FloatArray]]

    @classmethod
    def of(cls, sides: Sequence[Sequence[RunProfiles]], kind: str, by: str, *, grown: bool = False) -> _Values:
        tables = [[_by_function(profiles, kind, by, grown=grown) for profiles in side] for side in sides]
        names = sorted({name for side in tables for table in side for name in table["function"]})
        places = {name: index for index, name in enumerate(names)}
        hosts = [[profiles.hosts(kind) for profiles in side] for side in sides]
        values = [
            [_matrix(table, own, places) for table, own in zip(side, side_hosts, strict=True)]
            for side, side_hosts in zip(tables, hosts, strict=True)
        ]
        return cls(places, hosts, values)

    def mean(self, side: int, name: str) -> float:
        """The mean over the nodes of each run, then over the runs; 0 if the function does not occur."""
        if (place := self.functions.get(name)) is None:
            return 0.0
        return float(np.mean([run[:, place].mean() for run in self.values[side]]))

    def intervals(self) -> tuple[dict[str, tuple[float | None, float | None]], str]:
        """By function the 90 % interval of the change, and the source of the intervals."""
        runs = [len(side) for side in self.values]
        if min(runs) > 1:
            means = [np.array([run.mean(axis=0) for run in side]) for side in self.values]
            results: dict[str, tuple[float | None, float | None]] = {}
            for name, place in self.functions.items():
                contrast = welch(means[0][:, place].tolist(), means[1][:, place].tolist(), Working.DIFFERENCE)
                results[name] = (contrast.low, contrast.high)
            return results, f"between {runs[0]} + {runs[1]} runs"
        shared = sorted(set(self.hosts[0][0]) & set(self.hosts[1][0]))
        if len(shared) < 2:
            return dict.fromkeys(self.functions, (None, None)), "one node per side: no interval"
        picked = [run[[own.index(host) for host in shared]] for run, own in zip(
            (self.values[0][0], self.values[1][0]), (self.hosts[0][0], self.hosts[1][0]), strict=True
        )]  # fmt: skip
        basis = f"between {len(shared)} nodes of one run per side, without the noise between runs"
        return self._paired(picked[1] - picked[0]), basis

    def _paired(self, differences: FloatArray) -> dict[str, tuple[float | None, float | None]]:
        """Student's interval of the mean of the nodes' differences: a node has the same role on both sides."""
        n = len(differences)
        mean = differences.mean(axis=0)
        half = t_quantile(1.0 - LEVEL, n - 1) * differences.std(axis=0, ddof=1) / math.sqrt(n)
        return {name: (float(mean[at] - half[at]), float(mean[at] + half[at])) for name, at in self.functions.items()}


def _by_function(profiles: RunProfiles, kind: str, by: str, *, grown: bool) -> pl.DataFrame:
    """host, function and value: by the function that owns a stack, or by every function in it."""
    frame = profiles.of(kind)
    if grown:
        frame = pl.concat([frame, profiles.of(kind, _BEGIN).with_columns(value=-pl.col("value"))])
    if KINDS[kind].is_waiting and by == "owner":
        named = _place()
    else:
        named = pl.col("owner") if by == "owner" else pl.col("stack").list.unique()
    table = frame.select("host", "value", function=named)
    if by != "owner":
        table = table.explode("function")
    return table.group_by("host", "function").agg(pl.col("value").sum())


def _place() -> pl.Expr:
    """The start of what waits, and its innermost function in its own module."""
    began, owner = pl.col("stack").list.first(), pl.col("owner")
    return pl.when(began == owner).then(owner).otherwise(pl.concat_str(began, pl.lit(" … "), owner))


def _matrix(table: pl.DataFrame, hosts: Sequence[str], places: Mapping[str, int]) -> FloatArray:
    rows = {host: row for row, host in enumerate(hosts)}
    matrix = np.zeros((len(hosts), len(places)))
    for host, name, value in table.select("host", "function", "value").iter_rows():
        if host in rows:
            matrix[rows[host], places[name]] = value
    return matrix


# ---- the tree of calls ----------------------------------------------------------------------------------------------
@dataclass
class _Call:
    """A call of a function, with the value of it and of all its callees on both sides."""

    function: str
    values: list[float] = field(default_factory=lambda: [0.0, 0.0])
    calls: dict[str, _Call] = field(default_factory=dict)
    is_rest: bool = False

    @property
    def baseline(self) -> float:
        return self.values[0]

    @property
    def candidate(self) -> float:
        return self.values[1]

    @property
    def width(self) -> float:
        """The mean of both sides, so that a function that only one side has is visible."""
        return (self.values[0] + self.values[1]) / 2.0


def _tree(sides: Sequence[Sequence[RunProfiles]], kind: str) -> _Call:
    """All stacks of all nodes as one tree; values for each node, the mean of the side's runs."""
    root = _Call("all")
    for index, side in enumerate(sides):
        for profiles in side:
            share = 1.0 / (len(side) * len(profiles.hosts(kind)))
            stacks = profiles.of(kind).group_by("stack").agg(pl.col("value").sum()).sort("stack")
            for stack, value in stacks.iter_rows():
                _add(root, stack, index, value * share)
    return root


def _add(root: _Call, stack: Sequence[str], place: int, value: float) -> None:
    call = root
    call.values[place] += value
    for name in stack:
        call = call.calls.setdefault(name, _Call(name))
        call.values[place] += value


def _frames(root: _Call) -> list[Frame]:
    """The tree as rectangles, without illegibly narrow ones, which are merged with similar ones."""
    if root.width <= 0.0:
        return []
    least = LEAST_WIDTH
    while len(frames := list(_laid(root, 0, 0.0, least * root.width))) > MOST_FRAMES:
        least *= 1.25
    return sorted(frames, key=lambda frame: (frame.depth, frame.begin))


def _laid(call: _Call, depth: int, begin: float, least: float) -> Iterator[Frame]:
    yield Frame(
        function=call.function,
        depth=depth,
        begin=units.rounded(begin),
        end=units.rounded(begin + call.width),
        baseline=units.rounded(call.baseline),
        candidate=units.rounded(call.candidate),
        is_rest=call.is_rest,
    )
    for child in _wide_calls(call, least):
        yield from _laid(child, depth + 1, begin, least)
        begin += child.width


def _wide_calls(call: _Call, least: float) -> list[_Call]:
    """The calls that are wide enough, by name, and the rest merged if that is wide enough."""
    wide = [child for _, child in sorted(call.calls.items()) if child.width >= least]
    narrow = [child for child in call.calls.values() if child.width < least]
    rest = _Call(REST, [math.fsum(child.values[side] for child in narrow) for side in (0, 1)], is_rest=True)
    return [*wide, rest] if narrow and rest.width >= least else wide


# ---- cost of profiling ----------------------------------------------------------------------------------------------
def _cost(name: str, side: Sequence[RunProfiles], plain: Sequence[RunData]) -> ProfileCost | None:
    """A metric of the runs with profiles against those without; None if it has no value."""
    metric_id = next((profiles.record.cost_metric for profiles in side), "")
    values = [_means([profiles.run for profiles in side], metric_id), _means(plain, metric_id)]
    if not all(values):
        return None
    low = high = None
    if sum(map(len, values)) > 2:
        contrast = pooled(values[1], values[0], Working.DIFFERENCE)
        low, high = contrast.low, contrast.high
    means = [math.fsum(run_values) / len(run_values) for run_values in values]
    return ProfileCost(
        side=name,
        metric_id=metric_id,
        profiled=means[0],
        plain=means[1],
        low=low,
        high=high,
        n_profiled=len(values[0]),
        n_plain=len(values[1]),
    )


def _means(runs: Sequence[RunData], metric_id: str) -> list[float]:
    metric_summaries = [run.summaries().get(metric_id) for run in runs]
    return [
        mean
        for metric_summary in metric_summaries
        if metric_summary is not None and (mean := mean_of(metric_summary)) is not None
    ]
