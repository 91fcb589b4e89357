"""Experiments of two sides: rounds of one run per side until the caller decides that it is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.core.catalogue import NO_MARGINS, Margins
from chainmark.core.manifest import ExperimentLength
from chainmark.core.times import utc_now
from chainmark.lab.protocols import LaunchableSystem
from chainmark.lab.running import Lab, Listener, RunSeries
from chainmark.lab.schedules import NOT_JUDGED, Arm, Bound, PlannedRun, Total, forth_and_back, total_with
from chainmark.lab.session import name_of, new_experiment_id
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun


class ArmRecord(BaseModel):
    """One side as requested."""

    model_config = ConfigDict(extra="forbid")

    version: str
    profile: dict[str, Any]


class ExperimentRecord(BaseModel):
    """``experiment.json`` of an experiment of two sides.

    Attributes:
        more: rounds that were added after the planned ones.
        margins: by metric ID, margins that replace the catalogue's.
        profiles: kinds to record in one further run per side.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = 1
    kind: str = "experiment"
    system: str
    arms: dict[str, ArmRecord]
    seed: int
    keep_homes: bool = False
    length: ExperimentLength
    more: int = 0
    margins: dict[str, float] = {}
    profiles: list[str] = []
    started_at: str

    @property
    def most_rounds(self) -> int:
        """The maximum number of rounds, with those that were added."""
        return self.length.most + self.more


@dataclass
class OpenExperiment:
    """An experiment that can be resumed."""

    series: RunSeries
    folder: ExperimentFolder
    record: ExperimentRecord
    arms: list[Arm]

    @property
    def id(self) -> str:
        """The ID under which its runs are found."""
        return self.series.experiment_id

    @property
    def runs(self) -> list[SealedRun]:
        """All runs so far in order, including those in which the instrument failed."""
        return self.series.in_order()

    @property
    def rounds(self) -> int:
        """Runs per side that are valid evidence about the subject."""
        return min(len(self.series.evidence(arm.side)) for arm in self.arms)

    @property
    def most(self) -> int:
        """The maximum number of rounds."""
        return self.record.most_rounds

    def sides(self) -> list[list[SealedRun]]:
        """The runs of each side."""
        return [self.series.of_side(arm.side) for arm in self.arms]

    def next_round(self) -> bool:
        """Make one more run per side, every second round in reverse order; false if the instrument kept failing."""
        number = self.rounds
        return all(self._one_more(arm, number) for arm in forth_and_back(self.arms, number))

    def _one_more(self, arm: Arm, number: int) -> bool:
        if len(self.series.evidence(arm.side)) > number:
            return True
        length, is_added = self.record.length, number >= self.record.length.most
        made = sum(len(self.series.evidence(arm.side)) for arm in self.arms)
        left = self.most * len(self.arms) + len(self._unprofiled()) - made - 1
        bound: Bound = "at most" if length.stops_early and not is_added else ""
        if is_added:
            length = length.model_copy(update={"most": self.most})
        series = replace(self.series, length=length)
        return series.until_evidence(arm, number + 1, partial(total_with, left=left, bound=bound)).manifest.is_evidence

    def take_profiles(self) -> None:
        """One further run of each side that has none with profiles."""
        series = replace(self.series, length=self.record.length, profiles=tuple(self.record.profiles))
        missing = self._unprofiled()
        total = Total(len(self.runs) + len(missing), purpose=NOT_JUDGED)
        for arm in missing:
            position, repetition = series.next_position, len(series.of_side(arm.side)) + 1
            step = PlannedRun(arm.side, arm.version, arm.profile, repetition, position)
            series.make(step, position + 1, total)

    def _unprofiled(self) -> list[Arm]:
        """The sides of which a run with profiles was requested and is missing."""
        sides = {arm.side: self.series.of_side(arm.side) for arm in self.arms if self.record.profiles}
        missing = self.series.lab.unprofiled(sides, elsewhere=False)
        return [arm for arm in self.arms if arm.side in missing]


@dataclass(frozen=True)
class Experimenter:
    """Begins and resumes experiments of one system in one store."""

    store: Store
    system: LaunchableSystem

    def begin(
        self,
        arms: Sequence[Arm],
        length: ExperimentLength,
        seed: int,
        listener: Listener,
        margins: Margins = NO_MARGINS,
        *,
        keep_homes: bool = False,
        profiles: Sequence[str] = (),
    ) -> OpenExperiment:
        """A new experiment, without a run yet."""
        record = ExperimentRecord(
            system=self.system.name,
            arms={
                arm.side: ArmRecord(version=arm.version, profile=arm.profile.model_dump(mode="json")) for arm in arms
            },
            seed=seed,
            keep_homes=keep_homes,
            length=length,
            margins=dict(margins),
            profiles=list(profiles),
            started_at=utc_now(),
        )
        folder = experiment_folder(self.store, new_experiment_id(self.system.name, name_of(arms[0].profile)))
        return self._open(folder, record, list(arms), listener)

    def resume(self, reference: str, more: int, listener: Listener) -> OpenExperiment:
        """An existing experiment with its runs.

        Args:
            reference: its ID, or a prefix of it.
            more: rounds to add to those planned.
            listener: receives its progress.

        Raises:
            UsageError: there is no such experiment, or it is one of another kind.
        """
        folder = find_experiment(self.store, reference)
        record = read_record(folder)
        record.more += more
        arms = [Arm(side, arm.version, self.system.profile(arm.profile)) for side, arm in record.arms.items()]
        return self._open(folder, record, arms, listener)

    def _open(
        self, folder: ExperimentFolder, record: ExperimentRecord, arms: list[Arm], listener: Listener
    ) -> OpenExperiment:
        lab = Lab(self.store, self.system)
        series = RunSeries.begun(lab, folder.experiment_id, record.seed, record.keep_homes, listener)
        return OpenExperiment(series, folder, record, arms)


def read_record(folder: ExperimentFolder) -> ExperimentRecord:
    """The request of the experiment.

    Raises:
        UsageError: it is not an experiment with two sides.
    """
    return folder.record(ExperimentRecord, "an experiment with two sides")
