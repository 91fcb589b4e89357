"""Runs on disk: sealed once, verified by their hashes, and found by the names that users type."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import polars as pl
import pytest

from chainmark.api.runs import Run, remove_run, remove_unfinished
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import ExperimentPlace, HostFacts, Manifest, Source, Status, Subject
from chainmark.core.metric import Metric, MetricGroup, Population
from chainmark.core.times import utc_now
from chainmark.stats.summarise import summarise
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import StagedRun, UnfinishedRun

HOST = HostFacts(cpu_model="c", cores=2, memory_bytes=2**30, kernel="k", operating_system="o")
CATALOGUE = Catalogue(
    system="toy",
    title="Toy",
    populations=[Population(id="request", label="requests", keys=["time_s"], time_key="time_s")],
    tables=[MetricGroup(id="all", title="All")],
    metrics=[
        Metric(
            id="latency_s",
            label="latency",
            unit="s",
            kind="positive",
            better="lower",
            statistics=["mean"],
            judged_by="mean",
            table="all",
            order=1,
            population="request",
            description="d",
            source=["s"],
        )
    ],
)


def _manifest(run_id: str, version: str, place: ExperimentPlace | None, started_at: str) -> Manifest:
    return Manifest(
        run_id=run_id,
        subject=Subject(system="toy", name="Toy", version=version),
        profile_name="toy/demo",
        profile={},
        workload={},
        experiment=place,
        tool_version="0",
        seed=1,
        started_at=started_at,
        ended_at=started_at,
        host=HOST,
        status=Status.VALID,
    )


def _sealed(
    store: Store, version: str = "v1", place: ExperimentPlace | None = None, at: str = "2026-01-01T00:00:00Z"
) -> SealedRun:
    run = store.create("toy", "toy/demo", version, {"pid": 1})
    (run.raw / "log").write_text("line\n")
    samples = {"request": pl.DataFrame({"time_s": [0.0, 1.0, 2.0], "latency_s": [0.1, 0.2, 0.3]})}
    run.write_samples("request", samples["request"])
    return run.seal(_manifest(run.run_id, version, place, at), CATALOGUE, summarise(CATALOGUE, samples, 1))


def test_a_sealed_run_reads_back_without_its_system(tmp_path: Path) -> None:
    run = _sealed(Store(tmp_path))
    again = Store(tmp_path).select(run.run_id)[0]
    assert again.manifest.subject.version == "v1"
    assert again.catalogue == CATALOGUE
    assert again.summaries()["latency_s"].estimates["mean"].value == pytest.approx(0.2)
    assert again.samples("request").height == 3
    assert again.samples("request", ["latency_s", "absent"]).columns == ["latency_s"]
    assert again.verify() == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "metrics.json").write_text("{}"), "metrics.json was changed after sealing"),
        (lambda run: (run / "raw" / "log").unlink(), "raw/log is missing"),
        (lambda run: (run / "raw" / "more").write_text(""), "raw/more was added after sealing"),
    ],
)
def test_verify_lists_changes_since_sealing(tmp_path: Path, damage: object, message: str) -> None:
    run = _sealed(Store(tmp_path))
    assert callable(damage)
    damage(run.path)
    assert run.verify() == [message]


def test_the_same_samples_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (_sealed(Store(tmp_path / name)) for name in ("a", "b"))
    assert (first.path / "metrics.json").read_bytes() == (second.path / "metrics.json").read_bytes()


def test_an_unfinished_run_is_listed_but_never_compared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.create("toy", "toy/demo", "v1", {"pid": 1})
    assert [left.run_id for left in store.unfinished()] == [run.run_id]
    assert store.sealed() == []
    with pytest.raises(InvalidRunError, match="is unfinished and cannot be compared"):
        store.select(run.run_id)
    run_found = store.find(run.run_id)
    assert isinstance(run_found, UnfinishedRun)
    store.remove(run_found)
    assert store.unfinished() == []


def test_selectors(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old = _sealed(store, "v1", at="2026-01-01T00:00:00Z")
    sides = [
        _sealed(store, version, ExperimentPlace(id="exp", side=side, repetition=1, position=position), at)
        for position, (version, side, at) in enumerate(
            [("v1", "baseline", "2026-01-02T00:00:00Z"), ("v2", "candidate", "2026-01-02T00:01:00Z")]
        )
    ]
    ids = [run.run_id for run in sides]
    assert [run.run_id for run in store.select("exp")] == ids
    assert [run.run_id for run in store.select("exp/candidate")] == ids[1:]
    # A version selects the runs made like its newest run. Older experiments may have other conditions.
    assert [run.run_id for run in store.select("v1")] == ids[:1]
    assert [run.run_id for run in store.select("version:v2")] == ids[1:]
    assert [run.run_id for run in store.select(old.run_id)] == [old.run_id]
    with pytest.raises(UsageError, match="no run of version `v3`"):
        store.select("version:v3")
    with pytest.raises(UsageError, match="matches 3 runs"):
        store.select("toy-demo")
    with pytest.raises(UsageError, match="no run matches `nothing`"):
        store.select("nothing")


def test_a_run_of_a_later_release_names_that_release(tmp_path: Path) -> None:
    """The run is not read partially, and its owner learns which release can read it."""
    run = _sealed(Store(tmp_path))
    path = run.path / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"tool_version": "7.0.0", "weather": "rain"}), encoding="utf-8")
    with pytest.raises(InvalidRunError, match=r"was sealed by chainmark 7\.0\.0, and this release .* cannot read"):
        _ = SealedRun(run.path).manifest


def test_a_damaged_run_is_reported_in_one_sentence(tmp_path: Path) -> None:
    run = _sealed(Store(tmp_path))
    (run.path / "manifest.json").write_text("{")
    with pytest.raises(InvalidRunError, match=r"is damaged: manifest\.json cannot be read"):
        _ = SealedRun(run.path).manifest


def _stage(store: Store, name: str = "0") -> StagedRun:
    staged = store.stage(name, {"pid": 1})
    staged.write_samples("request", pl.DataFrame({"time_s": [0.0, 1.0], "latency_s": [0.1, 0.2]}))
    return staged


def test_an_import_is_not_a_run_until_it_has_its_final_name(tmp_path: Path) -> None:
    """An import that is killed between sealing and renaming leaves a finished-looking folder under a temporary name."""
    store = Store(tmp_path)
    staged = _stage(store)
    staged.seal(_manifest("toy-final", "v1", None, "2026-01-01T00:00:00Z"), CATALOGUE, summarise(CATALOGUE, {}, 1))
    assert store.sealed() == []
    assert [run.run_id for run in store.unfinished()] == ["importing-0"]
    with pytest.raises(InvalidRunError, match="is unfinished and cannot be compared"):
        store.select("importing-0")
    run, is_new = staged.settle("toy-final")
    assert is_new
    assert [run.run_id for run in store.sealed()] == ["toy-final"]
    assert store.unfinished() == []
    assert run.verify() == []


def test_repeating_an_import_keeps_the_existing_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    manifest = _manifest("toy-final", "v1", None, "2026-01-01T00:00:00Z")
    for expected_new in (True, False):
        staged = _stage(store)
        staged.seal(manifest, CATALOGUE, summarise(CATALOGUE, {}, 1))
        run, is_new = staged.settle("toy-final")
        assert is_new is expected_new
        assert run.verify() == []
        assert [path.name for path in (tmp_path / "runs").iterdir()] == ["toy-final"]


def test_leftovers_of_dead_imports_are_removed_and_running_imports_stay(tmp_path: Path) -> None:
    """A killed import leaves gigabytes behind; removing the folder of a running one would break it."""
    store = Store(tmp_path)
    living = _stage(store, "living")
    (tmp_path / "runs" / "importing-dead" / "samples").mkdir(parents=True)
    with pytest.raises(UsageError, match="process 1 is importing the same logs"):
        store.stage("living", {"pid": 2})
    other = _stage(store, "other")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["importing-living", "importing-other"]
    living.drop()
    other.drop()
    assert list((tmp_path / "runs").iterdir()) == []


def test_logs_imported_twice_count_as_one_run(tmp_path: Path) -> None:
    """The same measurement counted twice would halve the noise between runs."""
    store = Store(tmp_path)
    for run_id, digest, workload in (("a", "1", 1), ("b", "1", 1), ("c", "2", 1), ("d", "3", 2)):
        source = Source(path="node-0/stdout", size_bytes=1, blake3=digest)
        manifest = _manifest(f"toy-{run_id}", "v1", None, f"2026-01-0{5 - workload}T00:00:00Z")
        manifest = manifest.model_copy(update={"sources": [source], "workload": {"hosts": workload}})
        staged = _stage(store)
        staged.seal(manifest, CATALOGUE, summarise(CATALOGUE, {}, 1))
        staged.settle(manifest.run_id)
    assert [run.run_id for run in store.select("version:v1")] == ["toy-b", "toy-c"]


def test_an_exported_run_is_imported_unchanged(tmp_path: Path) -> None:
    run = _sealed(Store(tmp_path / "a"))
    archive = Run(run).export(tmp_path)
    other = Store(tmp_path / "b")
    taken = other.import_archive(archive)
    assert taken.run_id == run.run_id
    assert taken.verify() == []
    assert other.import_archive(archive).run_id == run.run_id  # a second import changes nothing
    assert other.unfinished() == []


def test_an_archive_of_an_invalid_run_is_refused(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "a"), Store(tmp_path / "b")
    run = _sealed(store)
    (run.path / "raw" / "log").write_text("changed\n")
    with pytest.raises(InvalidRunError, match="changed after sealing"):
        Run(run).export(tmp_path)
    packed = shutil.make_archive(str(tmp_path / "packed"), "tar", run.path.parent, run.run_id)
    with pytest.raises(InvalidRunError, match="changed after sealing"):
        other.import_archive(Path(packed))
    (tmp_path / "text.tar").write_text("no archive")
    with pytest.raises(UsageError, match="not an exported run"):
        other.import_archive(tmp_path / "text.tar")
    with pytest.raises(UsageError, match="there is no file"):
        other.import_archive(tmp_path / "absent.tar")
    assert (other.sealed(), other.unfinished()) == ([], [])


@pytest.mark.parametrize("filtering", [True, False], ids=["filters", "as before 3.11.4"])
@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("run/../../escaped", tarfile.REGTYPE, ""),
        ("run/link", tarfile.SYMTYPE, "/etc"),
        ("run/link", tarfile.LNKTYPE, "/etc/passwd"),
        ("run/null", tarfile.CHRTYPE, ""),
    ],
)
def test_an_archive_with_paths_outside_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: bytes, target: str, *, filtering: bool
) -> None:
    """This holds for any Python: versions before 3.11.4 would follow links and write anywhere."""
    if not filtering:
        monkeypatch.delattr(tarfile, "data_filter")
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    with tarfile.open(tmp_path / "run.tar", "w") as archive:
        archive.addfile(member)
    store = Store(tmp_path / "store")
    with pytest.raises(UsageError, match=f"`{re.escape(name)}` is not a file or folder of a run"):
        store.import_archive(tmp_path / "run.tar")
    assert {path.name for path in tmp_path.iterdir()} <= {"run.tar", "store"}
    assert (store.sealed(), store.unfinished()) == ([], [])


def test_an_unfinished_run_is_removed_if_its_process_id_was_reused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    reused = store.create("toy", "toy/demo", "v1", {"pid": os.getpid(), "started_at": "2020-01-01T00:00:00Z"})
    being_made = store.create("toy", "toy/demo", "v2", {"pid": os.getpid(), "started_at": utc_now()})
    assert (reused.maker(), being_made.maker()) == (None, os.getpid())
    assert remove_unfinished(store) == [reused.run_id]
    assert [run.run_id for run in store.unfinished()] == [being_made.run_id]
    with pytest.raises(UsageError, match="is still in progress in process"):
        remove_run(being_made.run_id, store)


def test_a_version_in_place_of_an_id_is_called_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _sealed(store, "v1.0.1")
    with pytest.raises(UsageError, match=r"no run has the ID `v1\.0\.1`") as caught:
        remove_run("v1.0.1", store)
    assert caught.value.hint == "it is a version: `chainmark runs list v1.0.1` shows the IDs of its runs"


@pytest.mark.parametrize("reference", ["v1.0.11", "version:v1.0.11"])
def test_the_nearest_version_is_suggested_for_a_mistyped_one(tmp_path: Path, reference: str) -> None:
    store = Store(tmp_path)
    _sealed(store, "v1.0.1")
    with pytest.raises(UsageError) as caught:
        store.select(reference)
    assert caught.value.hint == "did you mean `v1.0.1`?"
