"""Which runs count for their side, how often a run is repeated, and which sides lack profiles: each rule by itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from chainmark.core.manifest import ExperimentPlace, Gate, GateStatus, Manifest, Status
from chainmark.core.progress import Silent
from chainmark.lab import attempts
from chainmark.lab.attempts import failed_measurement, until_evidence
from chainmark.lab.running import Lab, RunSeries
from chainmark.lab.schedules import Arm, Total
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.compare.synthetic_runs import manifest
from tests.unit.lab.stand_in import Followed, Profile, StandIn

ARM = Arm("candidate", "v2", Profile(system="cometbft", name="quick"))


@dataclass
class _Run:
    """A run of which only the manifest matters."""

    manifest: Manifest


def _run(status: Status, *profiles: str) -> SealedRun:
    described = manifest("v1", 1).model_copy(update={"status": status, "profiles": list(profiles)})
    return cast(SealedRun, _Run(described))


@dataclass
class _Making:
    """Makes runs with these statuses, one after the other, and records the waits for the processors."""

    statuses: list[Status]
    events: list[str] = field(default_factory=list)
    progress: Silent = field(default_factory=Silent)

    def wait(self, progress: object) -> None:
        """Record a wait, which must be reported."""
        assert progress is self.progress
        self.events.append("wait")

    def make(self) -> SealedRun:
        """The next run."""
        self.events.append("run")
        return _run(self.statuses.pop(0))


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> _Making:
    runs = _Making([])
    monkeypatch.setattr(attempts, "wait_for_processors", runs.wait)
    return runs


VALID, FAILED, INVALID = Status.VALID, Status.FAILED, Status.INVALID


@pytest.mark.parametrize(
    ("status", "profiles", "counts"),
    [(VALID, (), True), (FAILED, (), True), (INVALID, (), False), (VALID, ("cpu",), False), (FAILED, ("cpu",), False)],
)
def test_a_run_counts_unless_the_instrument_failed_or_profiles_were_taken(
    status: Status, profiles: tuple[str, ...], counts: bool
) -> None:
    """A failure of the subject is evidence against it; a failure of the measurement says nothing."""
    assert _run(status, *profiles).manifest.is_evidence is counts


@pytest.mark.parametrize(
    ("statuses", "most", "events", "last"),
    [
        ([VALID], 3, ["run"], VALID),
        ([FAILED], 3, ["run"], FAILED),
        ([INVALID, VALID], 3, ["run", "wait", "run"], VALID),
        ([INVALID, INVALID, INVALID, VALID], 3, ["run", "wait", "run", "wait", "run"], INVALID),
        ([INVALID, VALID], 1, ["run"], INVALID),
    ],
)
def test_a_run_is_repeated_while_the_instrument_fails(
    making: _Making, statuses: list[Status], most: int, events: list[str], last: Status
) -> None:
    """Before each repetition the processors must be free. A run that the subject failed is not repeated."""
    making.statuses = list(statuses)
    assert until_evidence(making.make, making.progress, most=most).manifest.status is last
    assert making.events == events


@pytest.mark.parametrize(("before", "events"), [(INVALID, ["wait", "run"]), (VALID, ["run"]), (FAILED, ["run"])])
def test_the_run_after_a_failed_measurement_waits_too(making: _Making, before: Status, events: list[str]) -> None:
    """On the same busy machine it would be invalid as well."""
    making.statuses = [VALID]
    until_evidence(making.make, making.progress, _run(before), most=1)
    assert making.events == events


def test_a_measurement_that_keeps_failing_is_an_error_with_the_cause() -> None:
    gates = [
        Gate(id=label, label=label, status=GateStatus.FAIL, measured=measured, limit="<= 1 s")
        for label, measured in (("lag", "2 s"), ("drift", "3 s"))
    ]
    last = _run(INVALID).manifest.model_copy(update={"gates": gates})
    error = failed_measurement(last, "v1", "x-1")
    causes = "lag: 2 s and drift: 3 s"
    assert error.message == f"the measurement failed in 3 consecutive runs of v1; last failure: {causes}"
    assert error.hint == "stop other work on this machine, then continue with `--resume x-1`"


def test_all_attempts_have_the_repetition_of_the_planned_run_and_their_own_position(tmp_path: Path) -> None:
    """Otherwise a repeated run would look like a further repetition, or use the same random draws."""
    listener = Followed()
    lab = Lab(Store(tmp_path / "store"), StandIn(invalid=frozenset({1})))
    series = RunSeries.begun(lab, "x-1", 10, keep_homes=False, listener=_Quiet())
    run = series.until_evidence(ARM, 4, lambda position: Total(position + 2))
    places = [run.manifest.experiment for run in series.in_order()]
    assert [(place.side, place.repetition, place.position) for place in places if place] == [
        ("candidate", 4, 0), ("candidate", 4, 1),
    ]  # fmt: skip
    assert [run.manifest.seed for run in series.in_order()] == [10, 11]
    assert series.evidence("candidate") == [run]
    assert (series.of_side("baseline"), series.next_position) == ([], 2)
    again = RunSeries.begun(lab, "x-1", 10, keep_homes=False, listener=listener)
    assert [run.run_id for run in again.in_order()] == [run.run_id for run in series.in_order()]


class _Quiet(Followed):
    """A listener without an estimate of the time left."""

    def begin(self, *_: object) -> None:
        """Ignored."""


def test_a_side_lacks_profiles_unless_one_of_its_runs_or_a_similar_run_has_them(tmp_path: Path) -> None:
    """A search need not profile a version again; an experiment explains its result by its own runs."""
    lab = Lab(Store(tmp_path / "store"), StandIn())
    series = RunSeries(lab, "x-1", 1, keep_homes=False, listener=_Quiet())
    for number, side in enumerate(("baseline", "candidate")):
        series.until_evidence(replace(ARM, side=side, version=f"v{number}"), 1, Total)
    sides = {side: series.of_side(side) for side in ("baseline", "candidate")}
    assert lab.unprofiled(sides) == ["baseline", "candidate"]
    profiled = series.explaining(["cpu"]).until_evidence(replace(ARM, version="v1"), 1, Total)
    assert profiled.manifest.experiment == ExperimentPlace(
        id="x-1-profiles", side="candidate", repetition=1, position=0
    )
    assert lab.unprofiled(sides) == ["baseline"]
    assert lab.unprofiled(sides, elsewhere=False) == ["baseline", "candidate"]
    assert lab.unprofiled({"candidate": [*sides["candidate"], profiled]}, elsewhere=False) == []
