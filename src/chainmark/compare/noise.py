"""The noise between runs that an archive of equal builds shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from chainmark.compare.gates import rules
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.sides import exclusion
from chainmark.core.manifest import Manifest
from chainmark.stats.intervals import Working, mean_and_variance


@dataclass(frozen=True)
class ArchiveNoise:
    """Standard deviation of one run's estimate.

    Attributes:
        deviation: of the logarithm (working scale LOG), or in the metric's unit.
        degrees_of_freedom: sum over the groups of runs of equal builds of (runs - 1).
        runs: how many runs it rests on.
    """

    deviation: float
    degrees_of_freedom: float
    runs: int


def _build(run: LoadedRun) -> str:
    """Runs with the same text are repetitions of one build under one configuration, averaged by the same rules."""
    subject = run.manifest.subject
    effective = run.manifest.configuration.effective
    configuration = sorted((file, sorted(keys.items())) for file, keys in effective.items())
    return repr((subject.version, subject.binary_sha256, configuration, sorted(rules(run.catalogue).items())))


def _place(manifest: Manifest) -> str:
    """Noise of another system, workload or machine says nothing about this comparison."""
    return repr((manifest.subject.system, sorted(manifest.workload.items()), manifest.host.hardware_class))


class Archive:
    """Valid runs like those compared, in groups of equal builds; looked at when their noise is first asked for.

    Args:
        runs: any runs; those of another system, workload or hardware class, and invalid ones, are left out, and a
            run given twice counts once.
        like: the manifest that says what is alike.
        history: more runs, not opened yet.
    """

    def __init__(self, runs: Sequence[LoadedRun], like: Manifest, history: Sequence[RunData] = ()) -> None:
        self._runs, self._like, self._history = runs, like, history

    @cached_property
    def _groups(self) -> list[list[LoadedRun]]:
        runs = [*map(LoadedRun, self._history), *self._runs]
        groups: dict[str, dict[str, LoadedRun]] = {}
        for run in sorted(runs, key=lambda item: item.run_id):
            if exclusion(run.manifest) is None and _place(run.manifest) == _place(self._like):
                groups.setdefault(_build(run), {})[run.run_id] = run
        return [list(groups[key].values()) for key in sorted(groups) if len(groups[key]) > 1]

    def noise(self, metric_id: str, statistic: str, working: Working) -> ArchiveNoise | None:
        """The pooled standard deviation of one statistic; None when no group has two runs with a value.

        Args:
            metric_id: of the metric.
            statistic: "mean", "p99" …
            working: LOG takes logarithms and leaves out groups with a value that has none.
        """
        squares, freedom, runs = 0.0, 0, 0
        for group in self._groups:
            values = [value for run in group if (value := _value(run, metric_id, statistic)) is not None]
            if working is Working.LOG and any(value <= 0.0 for value in values):
                continue
            if len(values) < 2:
                continue
            scaled = [math.log(value) for value in values] if working is Working.LOG else values
            squares += mean_and_variance(scaled)[1] * (len(values) - 1)
            freedom += len(values) - 1
            runs += len(values)
        return ArchiveNoise(math.sqrt(squares / freedom), float(freedom), runs) if freedom else None


def _value(run: LoadedRun, metric_id: str, statistic: str) -> float | None:
    summary = run.summary(metric_id)
    estimate = summary.estimates.get(statistic) if summary else None
    return estimate.value if estimate else None
