"""The runs of a search: which it makes, how it assigns them to revisions and visits, and what it skips and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel

from chainmark.core.bisect_report import Revision
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import (
    ExperimentLength,
    ExperimentPlace,
    Gate,
    GateKind,
    GateStatus,
    Manifest,
    Status,
    Subject,
)
from chainmark.core.progress import Progress
from chainmark.lab.bisecting import Bisection, Bisector, BisectRequest, Built, Visit, read_search
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.revisions import RevisionLine
from chainmark.lab.schedules import NOT_JUDGED, PlannedRun, Total
from chainmark.store.experiments import experiment_folder
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.compare.synthetic_runs import manifest
from tests.unit.lab.line_system import LineProfile, LineSystem, number_of
from tests.unit.lab.stand_in import Followed, two_scenarios

BAD = 3
LINE = RevisionLine([Revision(version=f"v{place}", label=f"commit{place}") for place in range(BAD + 1)], "by date")
VALID, FAILED, INVALID = Status.VALID, Status.FAILED, Status.INVALID


@dataclass
class _Listener(Followed):
    """Stores how each run and each stage is announced. A search has no estimate of the time left."""

    announced: list[tuple[str, int, int, Total]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the version, the repetition, the run's number and the total."""
        assert left_s is None
        self.announced.append((step.version, step.repetition, number, total))

    def stage(self, name: str) -> None:
        """Store the stages before runs."""
        if name.startswith("preparing"):
            self.stages.append(name)


@dataclass
class _System(LineSystem):
    """A system that builds the program of a profile and gives each build another name: v3 becomes v03."""

    homes_kept: list[bool] = field(default_factory=list)

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """The build of a version of the program of the profile."""
        assert isinstance(profile, LineProfile)
        return self.install(version).model_copy(update={"version": f"v0{number_of(version)}"})

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Make a run, and store whether its nodes' homes are to be kept."""
        self.homes_kept.append(order.keep_homes)
        return super().execute(profile, order, run, progress)


def _begun(folder: Path, system: LineSystem | None = None, listener: Followed | None = None) -> Bisection:
    order = BisectRequest(most_runs=60, seed=10, keep_homes=True, metric="latency_s")
    bisector = Bisector(Store(folder), system or _System())
    return bisector.begin(LineProfile(), LINE, order, listener or _Listener())


@dataclass
class _Run:
    """A run of which only the manifest matters."""

    manifest: Manifest


def _run(place: int | None, status: Status = VALID, gates: Sequence[Gate] = ()) -> SealedRun:
    """A run of this revision, or of no experiment."""
    side = None if place is None else ExperimentPlace(id="x", side=f"commit{place}", repetition=1, position=0)
    described = manifest("v1", 1).model_copy(update={"status": status, "experiment": side, "gates": list(gates)})
    return cast(SealedRun, _Run(described))


def _unmet(label: str, measured: str, kind: GateKind = GateKind.SUBJECT) -> Gate:
    return Gate(id=label, label=label, status=GateStatus.FAIL, measured=measured, limit="", kind=kind)


def _places(runs: Sequence[SealedRun]) -> list[ExperimentPlace | None]:
    return [run.manifest.experiment for run in runs]


def test_runs_belong_to_revisions_and_visits(tmp_path: Path) -> None:
    """Visits began with the runs 0, 2 and 4. The runs were finished in another order."""
    search = _begun(tmp_path)
    search.record.visits += [Visit(place=BAD, position=0), Visit(place=2, position=2), Visit(place=1, position=4)]
    statuses = {5: (0, VALID), 0: (0, VALID), 1: (3, INVALID), 2: (2, FAILED), 4: (1, VALID), 3: (0, VALID)}
    search.series.runs.update({position: _run(*known) for position, known in statuses.items()})
    runs = search.runs
    assert search.last == BAD
    assert [search.place_of(runs[position]) for position in range(6)] == [0, 3, 2, 0, 1, 0]
    assert search.place_of(_run(None)) == 0
    assert [search.visit_of(position) for position in range(6)] == [0, 0, 1, 1, 2, 2]
    assert search.counted() == [(position, runs[position]) for position in (0, 2, 3, 4, 5)]
    assert search.of(0) == [runs[0], runs[3], runs[5]]
    assert [search.of(0, visit) for visit in range(3)] == [[runs[0]], [runs[3]], [runs[5]]]
    assert [search.of(2, visit) for visit in range(3)] == [[], [runs[2]], []]


def test_revisions_of_one_program_are_found(tmp_path: Path) -> None:
    """Between them the change cannot be. Programs of unknown hash are not equal to each other."""
    search = _begun(tmp_path)
    hashes = {5: "a", 0: "a", 1: "b", 2: None, 3: "a", 4: "b", 6: None, 7: "c"}
    search.record.builds = {place: Built(version="", sha256=known) for place, known in hashes.items()}
    assert search.equal == [(0, 3), (0, 5), (1, 4), (3, 5)]


def test_a_visit_begins_with_the_next_run_and_is_stored_at_once(tmp_path: Path) -> None:
    """An interrupted search would otherwise assign its next runs to the previous revision."""
    search = _begun(tmp_path)
    search.visit(BAD)
    search.series.runs.update({position: _run(0) for position in range(4)})
    search.visit(1)
    search.visit(1)
    search.visit(BAD)
    visits = [(BAD, 0), (1, 4), (BAD, 4)]
    assert [(visit.place, visit.position) for visit in search.record.visits] == visits
    _, stored = read_search(Store(tmp_path), search.id)
    assert [(visit.place, visit.position) for visit in stored.visits] == visits


def test_a_revision_is_prepared_once_and_skipped_if_it_does_not_build(tmp_path: Path) -> None:
    system, listener = _System(unbuildable=frozenset({1})), _Listener()
    search = _begun(tmp_path, system, listener)
    assert [search.prepare(place) for place in (BAD, 1, 2, BAD)] == [True, False, True, True]
    assert listener.stages == ["preparing commit3", "preparing commit1", "preparing commit2"]
    assert {place: built.version for place, built in search.record.builds.items()} == {3: "v03", 2: "v02"}
    assert all(
        built.sha256 == system.install(f"v{place}").binary_sha256 for place, built in search.record.builds.items()
    )
    reasons = {1: "v1 does not build: main.go:9: undefined: halt"}
    assert search.record.skipped == reasons
    assert read_search(Store(tmp_path), search.id)[1].skipped == reasons, "a resumed search would build it again"


@pytest.mark.parametrize("end", [0, BAD])
def test_an_end_that_does_not_build_is_an_error(tmp_path: Path, end: int) -> None:
    """Without it there is nothing to compare the other revisions with."""
    search = _begun(tmp_path, _System(unbuildable=frozenset({end})))
    with pytest.raises(UsageError, match=f"^v{end} does not build$"):
        search.prepare(end)
    assert search.record.skipped == {}


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (None, "it fails"),
        ("", "it fails"),
        ("install Go", "it fails"),
        ("the last lines:\n main.go:9: undefined \n\n", "it fails: main.go:9: undefined"),
        ("the last lines:\n# line\nmain.go:9: undefined", "it fails: main.go:9: undefined"),
    ],
)
def test_a_skipped_revision_is_reported_with_the_last_line_of_the_compiler(
    tmp_path: Path, hint: str | None, reason: str
) -> None:
    class Refusing(LineSystem):
        """Nothing can be installed."""

        def install(self, version: str) -> Subject:
            """Refuse it."""
            raise UsageError("it fails", hint)

    search = _begun(tmp_path, Refusing())
    assert not search.prepare(1)
    assert search.record.skipped == {1: reason}


def test_runs_of_a_revision_are_repetitions_with_their_own_position_and_seed(tmp_path: Path) -> None:
    """The builds are run, not whatever the revisions' names denote by now."""
    system, listener = _System(), _Listener()
    search = _begun(tmp_path, system, listener)
    length = ExperimentLength(most=3, stops_early=True)
    assert search.prepare(0)
    assert search.prepare(BAD)
    made = [search.make(0, length), search.make(BAD, length), search.make(BAD)]
    assert made == search.series.in_order()
    assert _places(made) == [
        ExperimentPlace(id=search.id, side="commit0", repetition=1, position=0, length=length),
        ExperimentPlace(id=search.id, side="commit3", repetition=1, position=1, length=length),
        ExperimentPlace(id=search.id, side="commit3", repetition=2, position=2),
    ]
    assert [(run.manifest.subject.version, run.manifest.seed) for run in made] == [
        ("v00", 10),
        ("v03", 11),
        ("v03", 12),
    ]
    most = Total(60, "at most")
    assert listener.announced == [("v00", 1, 1, most), ("v03", 1, 2, most), ("v03", 2, 3, most)]
    assert system.homes_kept == [True, True, True]
    assert {run.manifest.profile_name for run in made} == {"line/quick"}


def test_a_measurement_that_keeps_failing_ends_the_search(tmp_path: Path) -> None:
    """The error names the revision as the user knows it, and the search to continue."""
    system = _System(broken=frozenset({1}), failing=frozenset({2}))
    search = _begun(tmp_path, system)
    assert search.prepare(1)
    assert search.prepare(2)
    assert search.make(2).manifest.status is FAILED, "a failure of the revision is evidence against it"
    with pytest.raises(InvalidRunError) as failed:
        search.make(1)
    cause = "generator on time: 1 s late"
    assert failed.value.message == f"the measurement failed in 3 consecutive runs of commit1; last failure: {cause}"
    assert failed.value.hint is not None
    assert failed.value.hint.endswith(f"`--resume {search.id}`")


def test_only_revisions_without_profiles_run_once_more_for_them(tmp_path: Path) -> None:
    """These runs are of an experiment of their own, so that a resumed search does not count them."""
    listener = _Listener()
    search = _begun(tmp_path, listener=listener)
    for place in (0, 1, 2):
        assert search.prepare(place)
        search.make(place)
    listener.announced.clear()
    search.take_profiles([1], ["heap"])
    search.take_profiles([2, 1, 0], ["cpu", "heap"])
    alone, both = Total(4, purpose=NOT_JUDGED), Total(5, purpose=NOT_JUDGED)
    assert listener.announced == [("v01", 1, 4, alone), ("v02", 1, 4, both), ("v00", 1, 5, both)]
    assert sorted(search.runs) == [0, 1, 2]
    profiled = {
        run.manifest.subject.version: run.manifest for run in Store(tmp_path).members([f"{search.id}-profiles"])
    }
    assert {version: described.profiles for version, described in profiled.items()} == {
        "v01": ["heap"], "v02": ["cpu", "heap"], "v00": ["cpu", "heap"],
    }  # fmt: skip
    assert profiled["v02"].experiment == ExperimentPlace(
        id=f"{search.id}-profiles", side="commit2", repetition=1, position=2
    )


@pytest.mark.parametrize(
    ("statuses", "fails"),
    [
        ([], False),
        ([FAILED], False),
        ([FAILED, INVALID], False),
        ([FAILED, VALID], False),
        ([VALID, FAILED, FAILED], False),
        ([FAILED, FAILED], True),
        ([FAILED, INVALID, FAILED], True),
    ],
)
def test_a_revision_fails_again_if_two_runs_and_no_other_evidence_show_it(
    tmp_path: Path, statuses: list[Status], fails: bool
) -> None:
    """A revision that only sometimes fails can be measured; a failed measurement is not evidence."""
    search = _begun(tmp_path)
    search.series.runs.update({position: _run(1, status) for position, status in enumerate(statuses)})
    search.series.runs.update({position: _run(2, FAILED) for position in (10, 11)})
    assert search.fails_again(1) == ("its runs fail" if fails else "")


def test_a_revision_that_fails_again_is_reported_with_all_causes_of_its_last_run(tmp_path: Path) -> None:
    """A late generator is not among them: it may be late because a node died."""
    search = _begun(tmp_path)
    died, lagged = _unmet("no node died", "node0 died"), _unmet("no fork", "2 forks")
    late = _unmet("generator on time", "1 s late", GateKind.INSTRUMENT)
    known = [[died], [lagged], [died, late, lagged]]
    search.series.runs.update({position: _run(1, FAILED, gates) for position, gates in enumerate(known)})
    assert search.fails_again(1) == "no node died: node0 died; no fork: 2 forks"


def test_a_search_is_stored_with_all_that_is_needed_to_continue_it(tmp_path: Path) -> None:
    system, listener = _System(), _Listener()
    search = _begun(tmp_path, system, listener)
    assert search.id.startswith("line-bisect-quick-20")
    record = search.record
    assert (record.system, record.profile, record.listed) == ("line", LineProfile().model_dump(), "by date")
    assert (record.order.most_runs, record.order.metric, record.revisions) == (60, "latency_s", LINE.revisions)
    assert record.started_at.startswith("20")
    search.visit(BAD)
    assert search.prepare(0)
    search.make(0)
    folder, stored = read_search(Store(tmp_path), search.id[:-2])
    assert (folder.experiment_id, stored.order) == (search.id, record.order)
    resumed = Bisector(Store(tmp_path), system).resume(folder, stored, listener)
    assert (resumed.id, resumed.record, resumed.profile) == (search.id, stored, LineProfile())
    assert [run.run_id for run in resumed.runs.values()] == [run.run_id for run in search.runs.values()]
    assert resumed.prepare(0)
    assert (resumed.make(0).manifest.seed, system.homes_kept) == (11, [True, True])
    assert resumed.folder.path == search.folder.path


class _Dated(LineProfile):
    """A profile with a value that is not plain data."""

    since: date = date(2026, 1, 2)


def test_the_profile_of_a_search_is_stored_as_plain_data(tmp_path: Path) -> None:
    search = Bisector(Store(tmp_path), _System()).begin(_Dated(), LINE, BisectRequest(most_runs=60), _Listener())
    assert search.record.profile == {"system": "line", "name": "line/quick", "since": "2026-01-02"}


def test_an_experiment_of_another_kind_is_not_a_search(tmp_path: Path) -> None:
    folder = experiment_folder(Store(tmp_path), "e1")
    folder.path.mkdir(parents=True)
    folder.write(two_scenarios(tmp_path))
    with pytest.raises(UsageError, match=r"^`e1` is not a bisection$"):
        read_search(Store(tmp_path), "e1")
