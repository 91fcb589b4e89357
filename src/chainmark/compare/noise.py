"""The noise between runs from an archive of equal builds."""

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

# Levels of the test that the runs differ more than the archive's: a strict one while few runs would detect little,
# and mostly by chance.
CONTRADICTION, EARLY_CONTRADICTION = 0.05, 0.01
FEW = 4.0  # degrees of freedom
# Level of the test that they differ less: runs that agree by chance would make a verdict too certain.
CLEARLY_LESS = 0.005


def differs_more(own: Spread, archive: Spread) -> bool:
    """Whether these runs differ significantly more than the archive's, so that the archive is not used."""
    return is_wider(own, archive, EARLY_CONTRADICTION if own.degrees_of_freedom < FEW else CONTRADICTION)


def differs_less(own: Spread, archive: Spread) -> bool:
    """Whether these runs differ clearly less than the archive's, so that the archive is not used.

    Few runs cannot show it, nor can runs with one and the same value, which may only be rounded.
    """
    return own.degrees_of_freedom >= FEW and own.squares > 0.0 and is_wider(archive, own, CLEARLY_LESS)


def difference_of_noise(own: Spread, archive: Spread) -> str:
    """How the spread of these runs contradicts the archive's, in words; "" if the archive adds to it."""
    if differs_more(own, archive):
        return "which differ more than the archive's"
    return "which differ less than the archive's" if differs_less(own, archive) else ""


def build_of(run: LoadedRun) -> str:
    """Key of a build: runs with the same key repeat one build with one configuration, and mean the same by a figure."""
    subject = run.manifest.subject
    effective = run.manifest.configuration.effective
    configuration = sorted((file, sorted(keys.items())) for file, keys in effective.items())
    version = subject.release or subject.version
    meanings = [
        (condition.id, run.manifest.conditions.get(condition.id))
        for condition in run.catalogue.conditions
        if condition.makes_incomparable
    ]
    averaging = sorted(rules(run.catalogue).items())
    return repr((version, subject.build, subject.binary_sha256, configuration, averaging, meanings))


def _place(manifest: Manifest) -> str:
    """Key of comparable noise: that of another system, workload or machine is irrelevant to this comparison."""
    return repr((manifest.subject.system, sorted(manifest.workload.items()), manifest.host.hardware_class))


# A metric, one of its statistics, and the scale on which it is compared.
Column = tuple[str, str, Working]


@dataclass(frozen=True)
class ArchiveSpread(Spread):
    """The spread of one statistic between runs of equal builds, the number of runs behind it, and their names."""

    runs: int
    description: str = ""

    @property
    def source(self) -> str:
        """Its source, in words."""
        return self.description or f"archive of {self.runs} runs"


class Archive:
    """Valid runs like the compared ones, in groups of equal builds; evaluated when their noise is first requested.

    Args:
        compared: the ids of the compared runs; their own spread counts already.
        like: the manifest that defines which runs are alike.
        history: any runs; those of another system, workload or hardware class, and invalid ones, are excluded, and a
            run given twice counts once.
    """

    def __init__(self, compared: Collection[str], like: Manifest, history: Sequence[RunData] = ()) -> None:
        self._compared, self._like, self._history = compared, like, history

    @cached_property
    def _groups(self) -> list[list[LoadedRun]]:
        runs = [run for run in map(LoadedRun, self._history) if run.run_id not in self._compared]
        groups: dict[str, dict[str, LoadedRun]] = {}
        place = _place(self._like)
        for run in sorted(runs, key=lambda item: item.run_id):
            if exclusion(run.manifest) is None and _place(run.manifest) == place:
                groups.setdefault(build_of(run), {})[run.run_id] = run
        return [list(groups[key].values()) for key in sorted(groups)]

    def spread(self, metric_id: str, statistic: str, working: Working) -> ArchiveSpread | None:
        """The spread of one statistic between runs of equal builds; None if no group has two runs with a value.

        Args:
            metric_id: of the metric.
            statistic: "mean", "p99" …
            working: LOG uses logarithms and excludes groups with a value that has none.
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
        """The joint deviations of several statistics, from the runs that have a value of each.

        Args:
            columns: the values to read from every run.

        Returns:
            Shape (degrees of freedom, columns).
        """
        groups = []
        for group in self._groups:
            rows = [[run.value(metric_id, statistic) for metric_id, statistic, _ in columns] for run in group]
            complete = [
                row
                for row in rows
                if all(_has(value, working) for value, (*_, working) in zip(row, columns, strict=True))
            ]
            by_column = [scaled([row[i] or 0.0 for row in complete], columns[i][2]) for i in range(len(columns))]
            groups.append(np.array(by_column).T)
        return deviations(groups).reshape(-1, len(columns))


def scaled(values: Sequence[float], working: Working) -> list[float]:
    """Values of runs on the scale on which they are compared."""
    return [math.log(value) for value in values] if working is Working.LOG else list(values)


def _has(value: float | None, working: Working) -> bool:
    return value is not None and (working is not Working.LOG or value > 0.0)
