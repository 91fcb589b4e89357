"""The runs of a search among revisions: visits of one revision after the other, each with a run of an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.core.bisect_report import Revision
from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentLength, Status
from chainmark.core.times import utc_now
from chainmark.lab.attempts import failed_measurement
from chainmark.lab.protocols import LaunchableSystem, installed_for
from chainmark.lab.revisions import RevisionLine
from chainmark.lab.running import Lab, Listener, RunSeries
from chainmark.lab.schedules import NOT_JUDGED, Arm, PlannedRun, Total
from chainmark.lab.session import name_of, new_experiment_id
from chainmark.store.experiments import ExperimentFolder, experiment_folder, find_experiment
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

# Maximum number of failed runs of a revision before it is skipped, unless failures are what is searched for.
MOST_FAILURES = 2
GOOD = 0


class Visit(BaseModel):
    """Runs of one revision and of an end, consecutively; the first visit is of both ends."""

    place: int
    position: int  # of its first run


class Built(BaseModel):
    """A revision that can be run: its name in the system from now on, and the hash of its program."""

    version: str
    sha256: str | None = None


class BisectRequest(BaseModel):
    """The parameters of a search.

    Attributes:
        repo: the checkout of the revisions' commits; None: they are published versions.
        metric: to be followed, as given; None: the gating metric that is worse most clearly.
        most_runs: maximum number of runs.
    """

    model_config = ConfigDict(extra="forbid")

    repo: str | None = None
    metric: str | None = None
    most_runs: int
    margins: dict[str, float] = {}
    seed: int = 1
    keep_homes: bool = False


class BisectRecord(BaseModel):
    """``experiment.json`` of a search.

    Attributes:
        listed: how the revisions were listed.
        skipped: by index, why a revision cannot be measured.
        builds: by index, the build.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = 1
    kind: str = "bisect"
    system: str
    profile: dict[str, Any]
    order: BisectRequest
    revisions: list[Revision]
    listed: str
    started_at: str
    visits: list[Visit] = []
    skipped: dict[int, str] = {}
    builds: dict[int, Built] = {}


@dataclass
class Bisection:
    """A search that can be resumed."""

    series: RunSeries
    folder: ExperimentFolder
    record: BisectRecord
    profile: BaseModel

    @property
    def id(self) -> str:
        """The ID under which its runs are found."""
        return self.series.experiment_id

    @property
    def runs(self) -> dict[int, SealedRun]:
        """All runs so far, by position."""
        return self.series.runs

    @property
    def last(self) -> int:
        """The index of the bad revision."""
        return len(self.record.revisions) - 1

    @property
    def equal(self) -> list[tuple[int, int]]:
        """Indices that turned out to be one program."""
        builds = sorted((place, built.sha256) for place, built in self.record.builds.items() if built.sha256)
        return [(low, high) for low, build in builds for high, other in builds if low < high and build == other]

    def place_of(self, run: SealedRun) -> int:
        """The index of the run's revision."""
        place = run.manifest.experiment
        labels = [revision.label for revision in self.record.revisions]
        return labels.index(place.side) if place else GOOD

    def visit_of(self, position: int) -> int:
        """Which visit a run belongs to."""
        return sum(visit.position <= position for visit in self.record.visits) - 1

    def counted(self) -> list[tuple[int, SealedRun]]:
        """The runs that are valid evidence about their subject, with their positions."""
        return [(position, run) for position, run in sorted(self.runs.items()) if run.manifest.is_evidence]

    def of(self, place: int, visit: int | None = None) -> list[SealedRun]:
        """The runs of a revision, all or those of one visit."""
        return [
            run
            for position, run in sorted(self.runs.items())
            if self.place_of(run) == place and visit in (None, self.visit_of(position))
        ]

    def visit(self, place: int) -> None:
        """Begin to measure a revision, unless it is the current one."""
        if self.record.visits and self.record.visits[-1].place == place:
            return
        self.record.visits.append(Visit(place=place, position=self.series.next_position))
        self.folder.write(self.record)

    def prepare(self, place: int) -> bool:
        """Ensure that a revision can be run; if it cannot, it is skipped from now on.

        Raises:
            UsageError: it is an end of the line.
        """
        if place in self.record.builds:
            return True
        revision = self.record.revisions[place]
        self.series.listener.stage(f"preparing {revision.label}")
        try:
            subject = installed_for(self.series.lab.system, revision.version, self.profile)
        except UsageError as error:
            if place in (GOOD, self.last):
                raise
            self.skip(place, _whole(error))
            return False
        self.record.builds[place] = Built(version=subject.version, sha256=subject.binary_sha256)
        return True

    def skip(self, place: int, reason: str) -> None:
        """Skip a revision that is not an end, and record why."""
        self.record.skipped[place] = reason
        self.folder.write(self.record)

    def make(self, place: int, length: ExperimentLength | None = None) -> SealedRun:
        """Make one run of a prepared revision that is valid evidence about it.

        Args:
            place: of the revision.
            length: planned number of runs for the comparison of both ends.

        Raises:
            InvalidRunError: the measurement failed repeatedly.
        """
        arm, most = self._arm(place), Total(self.record.order.most_runs, "at most")
        series = replace(self.series, length=length)
        run = series.until_evidence(arm, len(series.evidence(arm.side)) + 1, lambda _: most)
        if not run.manifest.is_evidence:
            raise failed_measurement(run.manifest, arm.side, self.id)
        return run

    def take_profiles(self, places: Sequence[int], kinds: Sequence[str]) -> None:
        """One further run of each of these revisions that has none with profiles; it is no part of the search."""
        missing = self.series.lab.unprofiled({place: self.of(place) for place in places})
        series, total = self.series.explaining(kinds), Total(len(self.runs) + len(missing), purpose=NOT_JUDGED)
        for number, place in enumerate(missing, start=len(self.runs) + 1):
            series.make(PlannedRun(**vars(self._arm(place)), repetition=1, position=place), number, total)

    def _arm(self, place: int) -> Arm:
        return Arm(self.record.revisions[place].label, self.record.builds[place].version, self.profile)

    def fails_again(self, place: int) -> str:
        """Why a revision only fails its runs; "" if it does not, or not often enough."""
        runs = [run.manifest for run in self.of(place) if run.manifest.is_evidence]
        if len(runs) < MOST_FAILURES or any(run.status is Status.VALID for run in runs):
            return ""
        return "; ".join(f"{gate.label}: {gate.measured}" for gate in runs[-1].deciding_gates) or "its runs fail"


def _whole(error: UsageError) -> str:
    """The sentence, with the last line of a longer quotation in the hint: the compiler's final error."""
    _, *quoted = [line.strip() for line in (error.hint or "").splitlines() if line.strip()] or [""]
    return f"{error.message}: {quoted[-1]}" if quoted else error.message


@dataclass(frozen=True)
class Bisector:
    """Begins and resumes searches of one system in one store."""

    store: Store
    system: LaunchableSystem

    def begin(self, profile: BaseModel, line: RevisionLine, order: BisectRequest, listener: Listener) -> Bisection:
        """A new search, without a run yet."""
        record = BisectRecord(
            system=self.system.name,
            profile=profile.model_dump(mode="json"),
            order=order,
            revisions=list(line.revisions),
            listed=line.order,
            started_at=utc_now(),
        )
        folder = experiment_folder(self.store, new_experiment_id(self.system.name, name_of(profile), record.kind))
        return self._open(folder, record, profile, listener)

    def resume(self, folder: ExperimentFolder, record: BisectRecord, listener: Listener) -> Bisection:
        """A search with the runs that it has."""
        return self._open(folder, record, self.system.profile(record.profile), listener)

    def _open(
        self, folder: ExperimentFolder, record: BisectRecord, profile: BaseModel, listener: Listener
    ) -> Bisection:
        lab, order = Lab(self.store, self.system), record.order
        series = RunSeries.begun(lab, folder.experiment_id, order.seed, order.keep_homes, listener)
        return Bisection(series, folder, record, profile)


def read_search(store: Store, reference: str) -> tuple[ExperimentFolder, BisectRecord]:
    """The request of a search, and its progress.

    Args:
        store: where it is.
        reference: its ID, or a prefix of it.

    Raises:
        UsageError: there is none, or it is of another kind.
    """
    folder = find_experiment(store, reference)
    return folder, folder.record(BisectRecord, "a bisection")
