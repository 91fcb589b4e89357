"""Noise and level from a series of releases: one run per release suffices if there are many releases.

Three sources show how much a run deviates: re-runs of one build, which are few; steps between neighbouring releases,
which are many and include true changes, so that a robust estimate bounds the noise from above; and the error within
a run, which bounds it from below. The weight of the steps is fitted over all metrics
(`chainmark.stats.moderated`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from chainmark.compare.gates import rules, same_workload
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.noise import ArchiveSpread, Column, build_of, scaled
from chainmark.compare.sides import exclusion
from chainmark.core import units
from chainmark.core.epoch import Epoch
from chainmark.core.metric import Kind, Metric
from chainmark.stats.intervals import Working, mean_and_variance
from chainmark.stats.level import Level, level_of
from chainmark.stats.moderated import STEP_FREEDOM, Prior, RepeatedMetric, moderated, prior_of, step_variance
from chainmark.store.index import MANY_BUILDS

# Two runs of one build that differ by this many standard deviations of a difference have different set-ups.
NEW_SETUP = 6.0
# And by this much on the scale of logarithms: smaller differences occur when re-running months later.
LEAST_SETUP = 0.15


@dataclass(frozen=True)
class SetupChange:
    """An unrecorded change of the set-up: two runs of one build that differ by more than noise."""

    metric_id: str
    before: str
    after: str
    started: str
    change: float
    working: Working


@dataclass(frozen=True)
class _Seen:
    """One statistic in the series: the evidence of its re-runs and steps."""

    repeated: RepeatedMetric
    reruns: int
    steps: int
    changes: tuple[SetupChange, ...]


class Releases:
    """Valid runs of one workload on one kind of machine, in order of execution, without the compared ones.

    Args:
        compared: the compared runs.
        history: any runs, which may include the compared ones.
        epochs: recorded changes of the set-up.
        leave_out: false if nothing is compared, and those runs only define what is alike.
    """

    def __init__(
        self,
        compared: Sequence[LoadedRun],
        history: Sequence[RunData],
        epochs: Sequence[Epoch] = (),
        *,
        leave_out: bool = True,
    ) -> None:
        self._like = compared[0]
        # The statistics of imported runs are used to judge all of the compared runs.
        self._catalogue = next((run.catalogue for run in compared if run.manifest.printed), compared[0].catalogue)
        system = self._like.manifest.subject.system
        self._epochs = [epoch for epoch in epochs if epoch.system == system]
        self._compared = {_name(run) for run in compared} if leave_out else set()
        self._history = history

    @cached_property
    def runs(self) -> list[LoadedRun]:
        """The series."""
        result = {_name(run): run for run in map(LoadedRun, self._history) if self._is_alike(run)}
        loaded_runs = [run for name, run in result.items() if name not in self._compared]
        return sorted(loaded_runs, key=_moment)

    def _is_alike(self, run: LoadedRun) -> bool:
        like = self._like
        return (
            run.manifest.subject.system == like.manifest.subject.system
            and exclusion(run.manifest) is None
            and run.manifest.host.hardware_class == like.manifest.host.hardware_class
            and same_workload(run.manifest, like.manifest)
            and _same_rules(run, like)
        )

    @cached_property
    def _build(self) -> Mapping[str, str]:
        """The values of every run, by its id."""
        return {run.run_id: build_of(run) for run in self.runs}

    @property
    def builds(self) -> int:
        """The number of builds."""
        return len(set(self._build.values()))

    @property
    def are_enough(self) -> bool:
        """Whether there are enough builds for an estimate."""
        return self.builds >= MANY_BUILDS

    @cached_property
    def _seen(self) -> Mapping[Column, _Seen]:
        """The evidence for every judged statistic except counts, which have an error of their own."""
        columns: dict[Column, _Seen] = {}
        for metric in self._catalogue.ordered():
            if metric.kind in {Kind.POSITIVE, Kind.DIFFERENCE}:
                for statistic in metric.judged_by:
                    columns.update(self._look(metric, statistic))
        return columns

    def _look(self, metric: Metric, statistic: str) -> Iterator[tuple[Column, _Seen]]:
        messages = [(run, value) for run in self.runs if (value := run.value(metric.id, statistic)) is not None]
        is_positive = metric.kind is Kind.POSITIVE and all(value > 0.0 for _, value in messages)
        for working in (Working.LOG, Working.DIFFERENCE) if is_positive else (Working.DIFFERENCE,):
            runs = [run for run, _ in messages]
            values = scaled([value for _, value in messages], working)
            seen = self._seen_of(metric.id, runs, values, working)
            if seen is not None:
                yield (metric.id, statistic, working), seen

    def _seen_of(self, metric_id: str, runs: list[LoadedRun], values: list[float], working: Working) -> _Seen | None:
        reported = list(zip(runs, values, strict=True))
        steps = [
            later - earlier
            for (item, earlier), (other, later) in pairwise(reported)
            if self._build[item.run_id] != self._build[other.run_id] and not self._is_divided(metric_id, item, other)
        ]
        if len(steps) < MANY_BUILDS - 1:
            return None
        bound = step_variance(steps)
        groups: dict[str, list[tuple[LoadedRun, float]]] = {}
        for run, value in reported:
            groups.setdefault(self._build[run.run_id], []).append((run, value))
        squares, freedom, changes = 0.0, 0, []
        for group in groups.values():
            parts, result = self._parts(metric_id, group, bound, working)
            changes += result
            for part in parts:
                squares += mean_and_variance(part)[1] * (len(part) - 1)
                freedom += len(part) - 1
        repeated = RepeatedMetric(squares, float(freedom), bound, STEP_FREEDOM * len(steps))
        return _Seen(repeated, freedom, len(steps), tuple(changes))

    def _is_divided(self, metric_id: str, *runs: LoadedRun) -> bool:
        started = [run.manifest.started_at for run in runs]
        return any(epoch.divides(metric_id, *started) for epoch in self._epochs)

    def _parts(
        self, metric_id: str, group: list[tuple[LoadedRun, float]], bound: float, working: Working
    ) -> tuple[list[list[float]], list[SetupChange]]:
        """The runs of one build, split where the set-up changed; and the unrecorded splits."""
        parts, changes = [[group[0][1]]], []
        for (run, earlier), (other, later) in pairwise(group):
            noted = self._is_divided(metric_id, run, other)
            proposed = bound > 0.0 and abs(later - earlier) > NEW_SETUP * math.sqrt(2.0 * bound)
            proposed = proposed and (working is not Working.LOG or abs(later - earlier) > LEAST_SETUP)
            if proposed and not noted:
                names = (run.manifest.subject.version, other.manifest.subject.version)
                changes.append(SetupChange(metric_id, *names, other.manifest.started_at, later - earlier, working))
            if noted or proposed:
                parts.append([])
            parts[-1].append(later)
        return parts, changes

    @cached_property
    def _prior(self) -> Prior:
        """One statistic per metric: its scales are not independent evidence."""
        by_statistic = {(metric, statistic): reading.repeated for (metric, statistic, _), reading in self._seen.items()}
        return prior_of(list(by_statistic.values()))

    def spread(self, metric_id: str, statistic: str, working: Working) -> ArchiveSpread | None:
        """The spread of one statistic between runs of one build; None if the series does not show it."""
        seen = self._seen.get((metric_id, statistic, working)) if self.are_enough else None
        if seen is None:
            return None
        variance, freedom = moderated(seen.repeated, self._prior)
        text = (
            f"history of {self.builds} builds ({units.plural(seen.reruns, 're-run')}, "
            f"{units.plural(seen.steps, 'release-to-release change')})"
        )
        return ArchiveSpread(variance * freedom, freedom, len(self.runs), text) if variance > 0.0 else None

    def level(self, column: Column, baseline: LoadedRun) -> Level | None:
        """The joint level of the releases up to the baseline; None if the series or the baseline does not show it.

        Args:
            column: a statistic and its scale.
            baseline: the last of them.
        """
        metric_id, statistic, working = column
        spread, own = self.spread(*column), baseline.value(metric_id, statistic)
        if spread is None or own is None:
            return None
        before = [run for run in self.runs if _moment(run) < _moment(baseline)]
        before = [run for run in before if not self._is_divided(metric_id, run, baseline)]
        values = [value for run in before if (value := run.value(metric_id, statistic)) is not None]
        if working is Working.LOG and min([*values, own]) <= 0.0:
            return None
        return level_of(scaled([*values, own], working), spread.variance, self._seen[column].repeated.bound)

    @cached_property
    def setup_changes(self) -> list[SetupChange]:
        """Unrecorded changes of the set-up; they count neither as noise nor as changes of a release."""
        relative = {(metric, statistic) for metric, statistic, working in self._seen if working is Working.LOG}
        return [
            change
            for (metric, statistic, working), reading in self._seen.items()
            if working is Working.LOG or (metric, statistic) not in relative
            for change in reading.changes
        ]

    def noted_between(self, metric_id: str, *runs: LoadedRun) -> Epoch | None:
        """A recorded change of the set-up between runs that changed a metric."""
        started = [run.manifest.started_at for run in runs]
        return next((epoch for epoch in self._epochs if epoch.divides(metric_id, *started)), None)


def _name(run: LoadedRun) -> str:
    """Key of a run: an imported one is the same run under any name."""
    return run.manifest.identity or run.run_id


def _moment(run: LoadedRun) -> tuple[str, str]:
    return run.manifest.started_at, run.run_id


def _same_rules(run: LoadedRun, other: LoadedRun) -> bool:
    left, right = rules(run.catalogue), rules(other.catalogue)
    return all(left[key] == right[key] for key in left.keys() & right.keys())
