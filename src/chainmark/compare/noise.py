"""The noise between runs that an archive of equal builds shows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainmark.compare.gates import rules
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.sides import exclusion
from chainmark.core.manifest import Manifest
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import Spread, Working, is_wider, mean_and_variance
from chainmark.stats.sequential import deviations

# Levels of the test that the runs differ more than the archive's: a strict one while so few runs would notice little,
# and mostly by chance.
CONTRADICTION, EARLY_CONTRADICTION = 0.05, 0.01
FEW = 4.0  # degrees of freedom


def differs_more(own: Spread, archive: Spread) -> bool:
    """Whether these runs differ more than the archive's by more than chance, so that the archive is set aside."""
    return is_wider(own, archive, EARLY_CONTRADICTION if own.degrees_of_freedom < FEW else CONTRADICTION)


def build_of(run: LoadedRun) -> str:
    """Runs with the same text are repetitions of one build under one configuration, averaged by the same rules."""
    subject = run.manifest.subject
    effective = run.manifest.configuration.effective
    configuration = sorted((file, sorted(keys.items())) for file, keys in effective.items())
    version = subject.release or subject.version
    return repr((version, subject.build, subject.binary_sha256, configuration, sorted(rules(run.catalogue).items())))


def _place(manifest: Manifest) -> str:
    """Noise of another system, workload or machine says nothing about this comparison."""
    return repr((manifest.subject.system, sorted(manifest.workload.items()), manifest.host.hardware_class))


# A metric, one of its statistics, and the scale on which it is compared.
Column = tuple[str, str, Working]


@dataclass(frozen=True)
class ArchiveSpread(Spread):
    """The spread of one statistic between runs of equal builds, how many runs show it, and what they are."""

    runs: int
    told: str = ""

    @property
    def source(self) -> str:
        """What shows it, in words."""
        return self.told or f"archive of {self.runs} runs"


class Archive:
    """Valid runs like those compared, in groups of equal builds; looked at when their noise is first asked for.

    Args:
        compared: the ids of the runs that are compared; their own spread counts already.
        like: the manifest that says what is alike.
        history: any runs; those of another system, workload or hardware class, and invalid ones, are left out, and a
            run given twice counts once.
    """

    def __init__(self, compared: Collection[str], like: Manifest, history: Sequence[RunData] = ()) -> None:
        self._compared, self._like, self._history = compared, like, history

    @cached_property
    def _groups(self) -> list[list[LoadedRun]]:
        runs = [run for run in map(LoadedRun, self._history) if run.run_id not in self._compared]
        groups: dict[str, dict[str, LoadedRun]] = {}
        for run in sorted(runs, key=lambda item: item.run_id):
            if exclusion(run.manifest) is None and _place(run.manifest) == _place(self._like):
                groups.setdefault(build_of(run), {})[run.run_id] = run
        return [list(groups[key].values()) for key in sorted(groups) if len(groups[key]) > 1]

    def spread(self, metric_id: str, statistic: str, working: Working) -> ArchiveSpread | None:
        """The spread of one statistic between runs of equal builds; None when no group has two runs with a value.

        Args:
            metric_id: of the metric.
            statistic: "mean", "p99" …
            working: LOG takes logarithms and leaves out groups with a value that has none.
        """
        squares, runs, freedom = 0.0, 0, 0
        for group in self._groups:
            values = [value for run in group if (value := run.value(metric_id, statistic)) is not None]
            if len(values) < 2 or (working is Working.LOG and min(values) <= 0.0):
                continue
            squares += mean_and_variance(scaled(values, working))[1] * (len(values) - 1)
            freedom += len(values) - 1
            runs += len(values)
        return ArchiveSpread(squares, float(freedom), runs) if freedom else None

    def deviations(self, columns: Sequence[Column]) -> FloatArray:
        """The deviations of several statistics together, from the runs that have a value of each.

        Args:
            columns: what to take of every run.

        Returns:
            Shape (degrees of freedom, columns).
        """
        groups = []
        for group in self._groups:
            rows = [[run.value(metric_id, statistic) for metric_id, statistic, _ in columns] for run in group]
            retained = [
                row
                for row in rows
                if all(_has(value, working) for value, (*_, working) in zip(row, columns, strict=True))
            ]
            by_column = [scaled([row[i] or 0.0 for row in retained], columns[i][2]) for i in range(len(columns))]
            groups.append(np.array(by_column).T)
        return deviations(groups).reshape(-1, len(columns))


def scaled(values: Sequence[float], working: Working) -> list[float]:
    """Values of runs on the scale on which they are compared."""
    return [math.log(value) for value in values] if working is Working.LOG else list(values)


def _has(value: float | None, working: Working) -> bool:
    return value is not None and (working is not Working.LOG or value > 0.0)
