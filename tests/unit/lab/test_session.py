"""Sessions seal each run with all its data in the manifest, and leave no unwanted files behind."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from chainmark.core.catalogue import Catalogue
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
from chainmark.lab.protocols import Findings
from chainmark.lab.session import RunContent, RunOrigin, Session, StagedSession
from chainmark.stats.description import LAYOUT, Descriptions
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
