"""Experiments of two sides: rounds of one run per side until the caller decides that it is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.core.catalogue import NO_MARGINS, Margins
from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentLength, Manifest, Status
from chainmark.core.times import utc_now
from chainmark.lab.processors import wait_for_processors
from chainmark.lab.protocols import LaunchableSystem
from chainmark.lab.running import Lab, Listener, RunSeries
from chainmark.lab.schedules import NOT_JUDGED, Arm, PlannedRun, Total, forth_and_back
from chainmark.lab.session import finished_runs, name_of, new_experiment_id, remove_dead
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import SealedRun, Store

KIND = "experiment"
# Runs of one side in one round: the planned one, and repetitions of those in which the instrument failed.
MOST_TRIES = 3


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
    kind: str = KIND
    system: str
    arms: dict[str, ArmRecord]
    seed: int
    keep_homes: bool = False
    length: ExperimentLength
    more: int = 0
    margins: dict[str, float] = {}
    profiles: list[str] = []
    started_at: str


def is_evidence(manifest: Manifest) -> bool:
    """Whether a run counts: not if the instrument failed, or if profiles were recorded."""
    return manifest.status is not Status.INVALID and not manifest.profiles


@dataclass
class OpenExperiment:
    """An experiment that can be resumed.

    Attributes:
        runs: all runs so far in order, including those in which the instrument failed.
    """

    lab: Lab
    folder: ExperimentFolder
    record: ExperimentRecord
    arms: list[Arm]
    listener: Listener
    runs: list[SealedRun] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The ID under which its runs are found."""
        return self.folder.experiment_id

    @property
    def rounds(self) -> int:
        """Runs per side that are valid evidence about the subject."""
        return min(len(self._counted(arm.side)) for arm in self.arms)

    @property
    def most(self) -> int:
        """The maximum number of rounds."""
        return self.record.length.most + self.record.more

    def sides(self) -> list[list[SealedRun]]:
        """The runs of each side."""
        return [self._of_side(arm.side) for arm in self.arms]

    def next_round(self) -> bool:
        """Make one more run per side, every second round in reverse order; false if the instrument kept failing."""
        number = self.rounds
        return all(self._one_more(arm, number) for arm in forth_and_back(self.arms, number))

    def _one_more(self, arm: Arm, number: int) -> bool:
        tries = 0
        while len(self._counted(arm.side)) <= number:
            if tries == MOST_TRIES:
                return False
            if tries:
                wait_for_processors(self.listener)
            tries += 1
            position = self._next_position()
            step = PlannedRun(arm.side, arm.version, arm.profile, number + 1, position)
            is_added = number >= self.record.length.most
            length = self.record.length.model_copy(update={"most": self.most}) if is_added else self.record.length
            repeated = sum(not is_evidence(run.manifest) for run in self.runs)
            may_end = self.record.length.stops_early and not is_added
            further = len(self._without_profiles()) if self.record.profiles else 0
            total = Total(self.most * len(self.arms) + repeated + further, "at most" if may_end else "")
            self.runs.append(self._series(length).make(step, position + 1, total))
        return True

    def take_profiles(self) -> None:
        """One further run of each side that has none with profiles."""
        if not self.record.profiles:
            return
        series = self._series(self.record.length, self.record.profiles)
        for arm in self._without_profiles():
            position = self._next_position()
            step = PlannedRun(arm.side, arm.version, arm.profile, len(self._of_side(arm.side)) + 1, position)
            total = Total(len(self.runs) + len(self._without_profiles()), purpose=NOT_JUDGED)
            self.runs.append(series.make(step, len(self.runs) + 1, total))

    def _series(self, length: ExperimentLength, profiles: Sequence[str] = ()) -> RunSeries:
        record = self.record
        return RunSeries(self.lab, self.id, record.seed, record.keep_homes, self.listener, length, tuple(profiles))

    def _without_profiles(self) -> list[Arm]:
        return [arm for arm in self.arms if not any(run.manifest.profiles for run in self._of_side(arm.side))]

    def _next_position(self) -> int:
        places = [place.position for run in self.runs if (place := run.manifest.experiment)]
        return max(places, default=-1) + 1

    def _of_side(self, side: str) -> list[SealedRun]:
        return [run for run in self.runs if (place := run.manifest.experiment) and place.side == side]

    def _counted(self, side: str) -> list[SealedRun]:
        return [run for run in self._of_side(side) if is_evidence(run.manifest)]


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
        return OpenExperiment(Lab(self.store, self.system), folder, record, list(arms), listener)

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
        remove_dead(self.store, folder.experiment_id)
        result = finished_runs(self.store, folder.experiment_id)
        runs = [run for _, run in sorted(result.items())]
        return OpenExperiment(Lab(self.store, self.system), folder, record, arms, listener, runs)


def read_record(folder: ExperimentFolder) -> ExperimentRecord:
    """The request of the experiment.

    Raises:
        UsageError: it is not an experiment with two sides.
    """
    content = folder.read()
    if content.get("kind") != KIND:
        raise UsageError(
            f"`{folder.experiment_id}` is not an experiment with two sides",
            f"`chainmark {content.get('kind', 'qa')} --resume {folder.experiment_id}` continues it",
        )
    return ExperimentRecord.model_validate(content)
