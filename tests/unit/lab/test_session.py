"""Sessions seal each run with all its data in the manifest, and leave no unwanted files behind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timezone
from pathlib import Path
from typing import Any, cast

import blake3
import polars as pl
import pytest
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import EnvironmentFailure, InvalidRunError, UsageError
from chainmark.core.manifest import (
    Configuration,
    ExperimentPlace,
    Fact,
    Gate,
    GateStatus,
    HostFacts,
    Incident,
    Source,
    Status,
    Subject,
)
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.core.parts import Machines
from chainmark.core.progress import Silent
from chainmark.lab import session as sessions
from chainmark.lab.protocols import Findings
from chainmark.lab.session import (
    RunContent,
    RunOrigin,
    Session,
    StagedSession,
    finished_runs,
    name_of,
    new_experiment_id,
)
from chainmark.stats.description import LAYOUT, Descriptions
from chainmark.stats.summarise import summarise
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

_CATALOGUE = Catalogue(
    system="toy", title="Toy", populations=[Population(id="p", label="seconds", keys=["second"])],
    tables=[MetricGroup(id="t", title="Table")],
    metrics=[
        Metric(
            id="throughput_per_s", label="throughput", unit="tx/s", kind=Kind.POSITIVE, better=Better.HIGHER,
            statistics=["mean"], judged_by=["mean"], table="t", order=1, population="p", description="", source=[],
        )
    ],
)  # fmt: skip
_SAMPLES = {"p": pl.DataFrame({"second": [0, 1, 2], "throughput_per_s": [3.0, 5.0, 4.0]})}
_ORIGIN = RunOrigin(
    started_at="2026-01-01T00:00:00Z",
    ended_at="2026-01-01T00:01:00Z",
    host=HostFacts(cpu_model="stated", cores=0, memory_bytes=0, kernel="", operating_system=""),
    sources=[Source(path="log", size_bytes=1, blake3="00")],
)


def _gate(status: GateStatus) -> Gate:
    return Gate(id="g", label="g", status=status, measured="1", limit="2")


def _findings(*statuses: GateStatus) -> Findings:
    return Findings(
        subject=Subject(system="toy", name="Toy", version="v1"),
        configuration=Configuration(effective={"toml": {"a": 1}}),
        conditions={"c": "d"},
        counts={"lines": {"read": 1}},
        gates=[_gate(status) for status in statuses],
        facts=[Fact(label="Machines", value="52")],
        incidents=[Incident(time_ns=1, what="a node died")],
        warnings=["look"],
    )


def _content(findings: Findings | None = None, **changed: Any) -> RunContent:
    whole: dict[str, Any] = {
        "profile_name": "toy/demo", "profile": {"a": 1}, "workload": {"load": 2}, "seed": 3, "catalogue": _CATALOGUE,
        "findings": findings or _findings(), "samples": _SAMPLES,
    }  # fmt: skip
    return RunContent(**{**whole, **changed})


def _session(store: Store) -> Session:
    return Session.create(store, "toy", "toy/demo", "v1")


def _staged(store: Store, order: str = "a") -> StagedSession:
    return StagedSession.stage(store, {"order": order}, source="/logs")


def _imported(store: Store, order: str = "a", **changed: Any) -> tuple[SealedRun, bool]:
    with _staged(store, order) as session:
        return session.seal(_content(origin=_ORIGIN, **changed)), session.is_new


def test_the_manifest_contains_all_findings(tmp_path: Path) -> None:
    place = ExperimentPlace(id="e", side="baseline", repetition=1, position=0)
    findings = _findings(GateStatus.PASS)
    with _session(Store(tmp_path)) as session:
        (session.run.raw / "log").write_text("line\n")
        run = session.seal(_content(findings, place=place))
    manifest = Store(tmp_path).sealed()[0].manifest
    recorded = {field.name: getattr(manifest, field.name) for field in fields(Findings)}
    assert recorded == {field.name: getattr(findings, field.name) for field in fields(Findings)}
    assert (manifest.profile, manifest.workload, manifest.seed, manifest.experiment) == (
        {"a": 1},
        {"load": 2},
        3,
        place,
    )
    assert [source.path for source in manifest.sources] == ["raw/log"]
    assert manifest.started_at <= manifest.ended_at
    assert run.verify() == []
    assert run.summaries()["throughput_per_s"].estimates["mean"].value == pytest.approx(4.0)


def test_a_run_is_sealed_with_the_data_that_a_comparison_reads(tmp_path: Path) -> None:
    """Otherwise the first comparison reads all samples again."""
    with _session(Store(tmp_path)) as session:
        run = session.seal(_content())
    frame = run.description(LAYOUT)
    assert frame is not None
    assert Descriptions(frame, run.manifest.seed).of("throughput_per_s").knots.ascending().tolist() == [3.0, 4.0, 5.0]
    assert not (tmp_path / "derived").exists()


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((), Status.VALID),
        ((GateStatus.PASS, GateStatus.WARN), Status.VALID),
        ((GateStatus.PASS, GateStatus.FAIL, GateStatus.WARN), Status.INVALID),
    ],
)
def test_failed_gates_determine_the_status_of_a_run(
    tmp_path: Path, statuses: tuple[GateStatus, ...], status: Status
) -> None:
    with _session(Store(tmp_path)) as session:
        manifest = session.seal(_content(_findings(*statuses))).manifest
    assert manifest.status is status
    assert [gate.status for gate in manifest.failed_gates] == [
        status for status in statuses if status is GateStatus.FAIL
    ]


def _break_off(filled: Session | None, error: BaseException, sealed: Session | None = None) -> None:
    """Fail after one session collected data and another one was sealed."""
    if sealed is not None:
        sealed.seal(_content())
    if filled is not None:
        (filled.run.raw / "log").write_text("line\n")
    raise error


_FAILURES = (KeyboardInterrupt(), UsageError("u"), EnvironmentFailure("e"), InvalidRunError("i"), ZeroDivisionError())


@pytest.mark.parametrize("error", _FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("collected", [False, True], ids=["nothing", "something"])
def test_leftovers_of_an_aborted_run(tmp_path: Path, error: BaseException, collected: bool) -> None:
    """After Ctrl-C or a usage error nothing remains; data collected before a failure may explain it."""
    store = Store(tmp_path)
    session = _session(store)
    with pytest.raises(type(error)), session:
        _break_off(session if collected else None, error)
    is_retained = collected and not isinstance(error, KeyboardInterrupt | UsageError)
    assert [run.run_id for run in store.unfinished()] == [session.run.run_id] * is_retained
    assert store.sealed() == []


@pytest.mark.parametrize("error", _FAILURES, ids=lambda error: type(error).__name__)
def test_sealed_runs_of_a_parallel_pair_are_kept(tmp_path: Path, error: BaseException) -> None:
    store = Store(tmp_path)
    first, second = (_session(store) for _ in range(2))
    with pytest.raises(type(error)), first, second:
        _break_off(second, error, sealed=first)
    assert [run.run_id for run in store.sealed()] == [first.run.run_id]
    is_retained = not isinstance(error, KeyboardInterrupt | UsageError)
    assert [run.run_id for run in store.unfinished()] == [second.run.run_id] * is_retained


@pytest.mark.parametrize("error", _FAILURES, ids=lambda error: type(error).__name__)
def test_an_aborted_import_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    store = Store(tmp_path)
    with pytest.raises(type(error)), _staged(store) as session:
        _break_off(session, error)
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_import_is_named_after_its_content(tmp_path: Path) -> None:
    """Equal content is one run, however it was requested; everything that affects the result changes the name."""
    store = Store(tmp_path)
    run, is_new = _imported(store)
    assert is_new
    assert run.run_id.startswith("toy-demo-v1-20260101T000000-")
    assert run.manifest.run_id == run.run_id
    again, is_new = _imported(store, order="b")
    assert (again.run_id, is_new) == (run.run_id, False)
    others: list[dict[str, Any]] = [
        {"options": {"rules": "other"}},
        {"profile": {"a": 2}},
        {"profile_name": "toy/x"},
    ]
    names = {_imported(store, **changed)[0].run_id for changed in others}
    assert len(names | {run.run_id}) == 4
    assert store.unfinished() == []


def test_an_import_of_another_version_or_of_other_files_is_another_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    names = {_imported(store)[0].run_id}
    other = _findings()
    other.subject = other.subject.model_copy(update={"version": "v2"})
    with _staged(store) as session:
        names.add(session.seal(_content(other, origin=_ORIGIN)).run_id)
    files = [source.model_copy(update={"blake3": "01"}) for source in _ORIGIN.sources]
    changed = RunOrigin(_ORIGIN.started_at, _ORIGIN.ended_at, _ORIGIN.host, files)
    with _staged(store) as session:
        names.add(session.seal(_content(origin=changed)).run_id)
    assert len(names) == 3


def test_the_same_import_does_not_run_twice_at_the_same_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with _staged(store) as session:
        with pytest.raises(UsageError, match="is importing the same logs"), _staged(store):
            pass
        session.seal(_content(origin=_ORIGIN))
    assert len(store.sealed()) == 1


def test_samples_already_written_to_the_run_are_summarised_identically(tmp_path: Path) -> None:
    """A large import writes its samples as it runs and holds none of them in memory."""
    store = Store(tmp_path)
    with _session(store) as session:
        run = session.seal(_content())
    with _session(store) as session:
        session.run.write_samples("p", _SAMPLES["p"])
        written = session.seal(_content(samples=None))
    assert (run.path / "metrics.json").read_bytes() == (written.path / "metrics.json").read_bytes()


ENDED = 2**22 + 1  # the id of no process


def test_an_unfinished_run_states_what_it_is_and_which_process_makes_it(tmp_path: Path) -> None:
    """`chainmark runs list` shows it, and whether the process still runs decides whether it can be removed."""
    began = "2026-01-01T00:00:00Z"
    with Session.create(Store(tmp_path), "toy", "toy/demo", "v1", experiment="e-1", started_at=began) as session:
        assert session.run.run_id.startswith("toy-demo-v1-20")
        assert session.run.state() == {
            "pid": os.getpid(), "started_at": began, "version": "v1", "profile": "toy/demo", "experiment": "e-1",
        }  # fmt: skip
        assert session.seal(_content()).manifest.started_at == began
    with _session(Store(tmp_path)) as session:
        assert session.run.maker() == os.getpid()


def test_an_unfinished_import_states_its_source_and_which_process_makes_it(tmp_path: Path) -> None:
    with _staged(Store(tmp_path)) as session:
        assert session.is_new is True
        state = session.run.state()
        assert session.run.maker() == os.getpid()
    assert state == {"pid": os.getpid(), "started_at": state["started_at"], "source": "/logs"}


def test_only_equal_imports_exclude_each_other(tmp_path: Path) -> None:
    """They are equal in whichever order their settings were given."""
    store = Store(tmp_path)
    with StagedSession.stage(store, {"logs": "/a", "rules": "x"}), StagedSession.stage(store, {"logs": "/b"}):
        with pytest.raises(UsageError, match="is importing the same logs"):
            StagedSession.stage(store, {"rules": "x", "logs": "/a"})
        assert len(store.unfinished()) == 2


def test_an_import_has_the_same_name_on_every_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits are those of the hash of exactly these inputs; shared stores would otherwise hold a run twice."""
    monkeypatch.setattr(sessions, "tool_version", lambda: "9.9.9")
    inputs = (
        '{"options": {"rules": "Zürich"}, "profile": {"a": 1}, "sources": [["log", "00"]], "subject": {"binary_sha256":'
        ' null, "build": null, "name": "Toy", "revision": null, "system": "toy", "version": "v1"}, "tool_version":'
        ' "9.9.9"}'
    )
    digits = blake3.blake3(inputs.encode()).hexdigest()[:8]
    run, _ = _imported(Store(tmp_path), options={"rules": "Zürich"})
    assert run.run_id == f"toy-demo-v1-20260101T000000-{digits}"


@pytest.mark.parametrize(
    ("profile", "version", "name"),
    [
        ("toy/X 9", "release_X", "toy-X-9-release_X-"),
        ("toy/9", "-X: <appd>/un  known.", "toy-9-X-appd-un-known-"),
        ("toy/", "9.1+Z", "toy-unnamed-9.1+Z-"),
        ("other/9", "...", "toy-other-9-unnamed-"),
    ],
)
def test_names_of_imports_can_be_typed_whatever_the_logs_contain(
    tmp_path: Path, profile: str, version: str, name: str
) -> None:
    findings = _findings()
    findings.subject = findings.subject.model_copy(update={"version": version})
    run, _ = _imported(Store(tmp_path), findings=findings, profile_name=profile)
    assert re.fullmatch(re.escape(f"{name}20260101T000000-") + "[0-9a-f]{8}", run.run_id)


def test_an_import_of_unknown_time_is_from_now(tmp_path: Path) -> None:
    with _staged(Store(tmp_path)) as session:
        manifest = session.seal(_content()).manifest
    assert (datetime.now(UTC) - datetime.fromisoformat(manifest.started_at)).total_seconds() < 600.0
    assert manifest.run_id.startswith(f"toy-demo-v1-{re.sub('[-:Z]', '', manifest.started_at)}-")


class _Stages(Silent):
    """Records the stages."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str) -> None:
        """Record it."""
        self.names.append(name)


def test_the_summary_of_a_run_is_shared_by_other_machines_and_its_stages_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines, shown = cast(Machines, object()), _Stages()

    def summarised(
        catalogue: Catalogue, samples: Mapping[str, pl.DataFrame], seed: int, on: Machines | None = None
    ) -> Sequence[MetricSummary]:
        assert on is machines
        return summarise(catalogue, samples, seed)

    monkeypatch.setattr(sessions, "summarise", summarised)
    with _session(Store(tmp_path)) as session:
        session.seal(_content(), shown, machines)
    assert shown.names == ["summarising", "sealing"]


class _Named(BaseModel):
    name: str = "toy/demo"


class _Nameless(BaseModel):
    rate: int = 1


def test_a_profile_without_a_name_is_called_a_profile() -> None:
    assert (name_of(_Named()), name_of(_Nameless())) == ("toy/demo", "profile")


class _Noon:
    """A clock that has stopped at noon UTC."""

    @staticmethod
    def now(zone: timezone) -> datetime:
        """That time."""
        assert zone is UTC, "experiments of machines in several zones would not be in order"
        return datetime(2026, 1, 2, 12, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (("toy", "toy/demo"), "toy-demo"),
        (("toy", "demo", "qa"), "toy-qa-demo"),
        (("toy", "other/toy/demo"), "toy-other-toy-demo"),
        (("toy", "demo/toy/"), "toy-demo-toy-"),
    ],
)
def test_an_experiment_is_named_after_its_plan_and_its_time(
    known: tuple[str, ...], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is a folder's, so it contains no slash."""
    monkeypatch.setattr(sessions, "datetime", _Noon)
    assert re.fullmatch(f"{name}-20260102T120005-[0-9a-f]{{4}}", new_experiment_id(*known))


def test_resuming_removes_only_what_ended_processes_left_of_the_experiment(tmp_path: Path) -> None:
    """Another experiment may still be examined, and another process may still make a run of this one."""
    store = Store(tmp_path)
    for position in (3, 1):
        with _session(store) as session:
            session.seal(_content(place=ExperimentPlace(id="e-1", side="s", repetition=1, position=position)))
    with _session(store) as session:
        session.seal(_content(place=ExperimentPlace(id="f-1", side="s", repetition=1, position=7)))
    left: list[dict[str, object]] = [
        {"pid": ENDED, "experiment": "e-1"},
        {"pid": ENDED, "experiment": "e-1-profiles"},
        {"pid": os.getpid(), "experiment": "e-1"},
        {"pid": ENDED, "experiment": "f-1"},
        {"pid": ENDED, "experiment": "e-10"},
        {"pid": ENDED, "experiment": "e-1-load"},
        {"pid": ENDED},
    ]
    for state in left:
        store.create("toy", "demo", "v1", state)
    places = {position: run.manifest.experiment for position, run in finished_runs(store, "e-1").items()}
    assert {position: place.id for position, place in places.items() if place} == {1: "e-1", 3: "e-1"}
    assert {position: place.position for position, place in places.items() if place} == {1: 1, 3: 3}
    kept = sorted(json.dumps(run.state(), sort_keys=True) for run in store.unfinished())
    assert kept == sorted(json.dumps(state, sort_keys=True) for state in left[2:])
