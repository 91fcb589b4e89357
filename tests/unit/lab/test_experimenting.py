"""An experiment with two sides: which runs it makes, the position that each run records, and how it resumes.

The system is a stand-in: its runs take no time, and its measurement fails on demand.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentLength, GateKind, Status
from chainmark.core.progress import Progress
from chainmark.lab.experimenting import Experimenter, OpenExperiment, read_record
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.schedules import NOT_JUDGED, Arm, Total
from chainmark.store.experiments import experiment_folder
from chainmark.store.runs import Store
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.lab.stand_in import Followed, Profile, StandIn, two_scenarios

LENGTH = ExperimentLength(most=2, stops_early=True)
ARMS = [
    Arm("baseline", "v1", Profile(system="cometbft", name="quick")),
    Arm("candidate", "v2", Profile(system="cometbft", name="quick", rate=2)),
]


class _Listener(Followed):
    """Stores each run's number and the total. An experiment has no estimate of the time left."""

    def begin(self, step: object, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the number and the total."""
        assert left_s is None
        self.steps.append(("", number, total, 0.0))

    @property
    def messages(self) -> list[tuple[int, int]]:
        """The number of each run and the total."""
        return [(number, total.runs) for _, number, total, _ in self.steps]

    @property
    def bounds(self) -> list[str]:
        """Whether the total is only an upper bound, for each run."""
        return [total.bound for _, _, total, _ in self.steps]


def _begun(tmp_path: Path, system: StandIn, listener: _Listener | None = None) -> OpenExperiment:
    return Experimenter(Store(tmp_path / "store"), system).begin(ARMS, LENGTH, 10, listener or _Listener())


def _resumed(
    tmp_path: Path, experiment: OpenExperiment, more: int, listener: _Listener | None = None
) -> OpenExperiment:
    experiment.folder.path.mkdir(parents=True, exist_ok=True)
    experiment.folder.write(experiment.record)
    return Experimenter(Store(tmp_path / "store"), StandIn()).resume(experiment.id, more, listener or _Listener())


def _places(experiment: OpenExperiment) -> list[tuple[str, int, int, int]]:
    """The side, repetition, position and seed of every run."""
    return [
        (place.side, place.repetition, place.position, run.manifest.seed)
        for run in experiment.runs
        if (place := run.manifest.experiment)
    ]


def test_rounds_alternate_in_order_and_every_run_stores_its_position(tmp_path: Path) -> None:
    listener = _Listener()
    experiment = _begun(tmp_path, StandIn(), listener)
    assert (experiment.rounds, experiment.most, experiment.runs) == (0, 2, [])
    assert experiment.next_round()
    assert (experiment.rounds, experiment.next_round(), experiment.rounds) == (1, True, 2)
    assert _places(experiment) == [
        ("baseline", 1, 0, 10),
        ("candidate", 1, 1, 11),
        ("candidate", 2, 2, 12),
        ("baseline", 2, 3, 13),
    ]
    assert listener.messages == [(1, 4), (2, 4), (3, 4), (4, 4)]
    baseline, candidate = experiment.sides()
    assert [run.manifest.subject.version for run in [*baseline, *candidate]] == ["v1", "v1", "v2", "v2"]
    assert [run.manifest.profile["rate"] for run in [*baseline, *candidate]] == [1, 1, 2, 2]
    lengths = [place.length for run in experiment.runs if (place := run.manifest.experiment)]
    assert lengths == [LENGTH] * 4
    ids = {place.id for run in experiment.runs if (place := run.manifest.experiment)}
    assert ids == {experiment.id}


def test_a_run_that_failed_because_of_the_instrument_is_repeated_in_its_place(tmp_path: Path) -> None:
    """It is not evidence. The repeated run has the same repetition and its own seed."""
    listener = _Listener()
    experiment = _begun(tmp_path, StandIn(invalid=frozenset({2})), listener)
    assert experiment.next_round()
    assert _places(experiment) == [("baseline", 1, 0, 10), ("candidate", 1, 1, 11), ("candidate", 1, 2, 12)]
    assert [run.manifest.is_evidence for run in experiment.runs] == [True, False, True]
    assert experiment.rounds == 1
    assert listener.messages == [(1, 4), (2, 4), (3, 5)]


def test_a_run_that_the_subject_failed_is_not_repeated(tmp_path: Path) -> None:
    """It is evidence. Repeated until it passes, a version that fails every second run would look faultless."""
    experiment = _begun(tmp_path, StandIn(invalid=frozenset({2}), kind=GateKind.SUBJECT))
    assert experiment.next_round()
    assert [place[0] for place in _places(experiment)] == ["baseline", "candidate"]
    assert [run.manifest.status for run in experiment.runs] == [Status.VALID, Status.FAILED]
    assert (experiment.rounds, experiment.runs[1].manifest.is_evidence) == (1, True)


@pytest.mark.parametrize(("invalid", "ends"), [({1, 2}, True), ({1, 2, 3}, False)])
def test_an_instrument_that_fails_three_times_ends_the_experiment(
    tmp_path: Path, invalid: set[int], ends: bool
) -> None:
    experiment = _begun(tmp_path, StandIn(invalid=frozenset(invalid)))
    assert experiment.next_round() is ends
    assert len(experiment.runs) == (4 if ends else 3)
    assert experiment.rounds == int(ends)


def test_an_experiment_resumes_after_the_last_valid_run(tmp_path: Path) -> None:
    """It was interrupted in its second round: a side that has its run of this round makes no further run."""

    def stop(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    experiment = _begun(tmp_path, StandIn(stop))
    assert experiment.next_round()
    with pytest.raises(KeyboardInterrupt):
        experiment.next_round()
    # A kill -9 leaves a folder without a seal, whose process no longer exists.
    left = Store(tmp_path / "store").create("cometbft", "quick", "v2", {"pid": 2**22 + 1, "experiment": experiment.id})
    resumed = _resumed(tmp_path, experiment, 0)
    assert not left.path.exists()
    assert (resumed.rounds, resumed.most) == (1, 2)
    assert resumed.next_round()
    assert _places(resumed)[2:] == [("candidate", 2, 2, 12), ("baseline", 2, 3, 13)]


def test_added_rounds_record_their_bound_and_planned_rounds_keep_their_plan(tmp_path: Path) -> None:
    """The verdict depends on when the runs were evaluated, which is derived from this record."""
    experiment = _begun(tmp_path, StandIn())
    experiment.next_round()
    listener = _Listener()
    resumed = _resumed(tmp_path, experiment, 1, listener)
    assert resumed.most == 3
    assert resumed.next_round()
    assert resumed.next_round()
    lengths = [place.length for run in resumed.runs if (place := run.manifest.experiment)]
    added = ExperimentLength(most=3, stops_early=True)
    assert lengths == [*[LENGTH] * 4, added, added]
    assert listener.messages == [(3, 6), (4, 6), (5, 6), (6, 6)]
    # A decision may end the planned rounds early; added rounds are always completed.
    assert listener.bounds == ["at most", "at most", "", ""]
    again = _resumed(tmp_path, resumed, 2)
    assert (again.most, again.rounds, again.record.more) == (5, 3, 3)


class _Orders(StandIn):
    """Checks that every run is requested with its node homes kept."""

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Check the request and make the run."""
        assert order.keep_homes is True
        return super().execute(profile, order, run, progress)


def test_the_request_is_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    experiment = Experimenter(store, _Orders()).begin(ARMS, LENGTH, 10, _Listener(), keep_homes=True)
    assert experiment.next_round()
    resumed = _resumed(tmp_path, experiment, 0)
    record = resumed.record
    assert (record.system, record.seed, record.keep_homes, record.length) == ("cometbft", 10, True, LENGTH)
    assert (record.schema_version, record.kind, record.more) == (1, "experiment", 0)
    assert record.started_at[:2] == "20"
    assert resumed.arms == ARMS
    assert experiment.id.startswith("cometbft-quick-")
    order_record = _begun(tmp_path, StandIn()).record
    assert not order_record.keep_homes
    assert order_record.margins == {}
    by = {"latency_s": 0.1}
    judged = Experimenter(store, StandIn()).begin(ARMS, LENGTH, 10, _Listener(), by)
    assert judged.record.margins == by, "a resumed experiment would be judged by other margins"
    explained = Experimenter(store, _Orders()).begin(ARMS, LENGTH, 10, _Listener(), keep_homes=True, profiles=["cpu"])
    explained.take_profiles()
    lengths = [place.length for run in explained.runs if (place := run.manifest.experiment)]
    assert lengths == [LENGTH] * 2


def test_a_fixed_number_of_rounds_is_reported_as_planned(tmp_path: Path) -> None:
    listener = _Listener()
    fixed = ExperimentLength(most=1, stops_early=False)
    experiment = Experimenter(Store(tmp_path / "store"), StandIn()).begin(ARMS, fixed, 10, listener)
    assert experiment.next_round()
    assert listener.bounds == ["", ""]


def test_the_cluster_of_an_experiment_is_stored_with_its_document(tmp_path: Path) -> None:
    """An experiment that was interrupted before its first run leaves nothing."""
    store = Store(tmp_path / "store")
    folder = experiment_folder(store, "e1")
    folder.keep_cluster("tcp://10.0.0.1:8786")
    assert not folder.path.exists()
    folder.path.mkdir(parents=True)
    folder.write(two_scenarios(tmp_path))
    assert experiment_folder(store, "e1").cluster() == "tcp://10.0.0.1:8786"
    # Continued on another one, without another document.
    experiment_folder(store, "e1").keep_cluster("tcp://10.0.0.2:8786")
    assert experiment_folder(store, "e1").cluster() == "tcp://10.0.0.2:8786"
    other = experiment_folder(store, "e2")
    other.path.mkdir(parents=True)
    other.write(two_scenarios(tmp_path))
    assert other.cluster() is None


def test_an_experiment_of_another_kind_is_not_resumed(tmp_path: Path) -> None:
    folder = experiment_folder(Store(tmp_path / "store"), "e1")
    folder.path.mkdir(parents=True)
    folder.write(two_scenarios(tmp_path))
    with pytest.raises(UsageError, match="`e1` is not an experiment with two sides") as other:
        read_record(folder)
    assert other.value.hint == "`chainmark qa --resume e1` continues it"
    (folder.path / "experiment.json").write_text('{"kind": "saturation"}', encoding="utf-8")
    with pytest.raises(UsageError) as sweep:
        read_record(folder)
    assert sweep.value.hint == "`chainmark saturation --resume e1` continues it"
    (folder.path / "experiment.json").write_text('{"kind": "load plan"}', encoding="utf-8")
    with pytest.raises(UsageError) as plan:
        read_record(folder)
    assert plan.value.hint == "`chainmark load --resume e1` continues it"


def test_one_additional_run_per_side_has_profiles_and_is_not_judged(tmp_path: Path) -> None:
    """It must not count as a repetition when the experiment is resumed."""
    listener = _Listener()
    store = Store(tmp_path / "store")
    experiment = Experimenter(store, StandIn()).begin(ARMS, LENGTH, 10, listener, profiles=["cpu"])
    assert experiment.next_round()
    assert listener.messages == [(1, 6), (2, 6)]
    experiment.take_profiles()
    experiment.take_profiles()  # a second call adds no run
    assert [run.manifest.profiles for run in experiment.runs] == [[], [], ["cpu"], ["cpu"]]
    assert _places(experiment)[2:] == [("baseline", 2, 2, 12), ("candidate", 2, 3, 13)]
    assert listener.messages[2:] == [(3, 4), (4, 4)]
    assert [total.purpose for _, _, total, _ in listener.steps] == ["", "", NOT_JUDGED, NOT_JUDGED]
    assert experiment.rounds == 1
    assert not any(run.manifest.is_evidence for run in experiment.runs[2:])
    again = _resumed(tmp_path, experiment, 0)
    assert again.record.profiles == ["cpu"]
    assert again.next_round()
    assert (again.rounds, len(again.runs)) == (2, 6)
    again.take_profiles()
    assert len(again.runs) == 6
    # Those of an earlier experiment may be of other settings, and do not explain the result of this one.
    other = Experimenter(store, StandIn()).begin(ARMS, LENGTH, 10, listener, profiles=["cpu"])
    assert other.next_round()
    other.take_profiles()
    assert len(other.runs) == 4


def test_an_experiment_without_profiles_makes_no_additional_run(tmp_path: Path) -> None:
    experiment = _begun(tmp_path, StandIn())
    assert experiment.next_round()
    experiment.take_profiles()
    assert len(experiment.runs) == 2
