"""Logs in an object store: the same run as from the folder, wherever they are decoded, and errors with their cause."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3fs import S3FileSystem

import chainmark as cm
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.store.objects import RANGE_BYTES, listed_files
from chainmark.systems.cardano import decoding_elsewhere
from chainmark.systems.cardano.decoders import HostPart, HostReader

from tests.real.dask_cluster import local_cluster, wait_for_workers, watching
from tests.real.object_store import BUCKET, object_store
from tests.unit.systems.cardano.clusters import make_cluster

ADDRESS = f"s3://{BUCKET}/cluster"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder behind the bucket: a cluster with several, partly compressed, files per host, and one of one host."""
    folder = tmp_path_factory.mktemp("bucket")
    make_cluster(folder / "cluster", hosts=4, faults=("corrupt:node-1=1%",), rotation="4000", compression="gzip")
    shutil.rmtree(make_cluster(folder / "one", hosts=2) / "node-1")
    return folder


@pytest.fixture(scope="module")
def server(bucket: Path) -> Iterator[dict[str, str]]:
    """The variables of a process that reads the bucket, which are also set here."""
    with object_store(bucket) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        S3FileSystem.clear_instance_cache()
        yield environment


def imported(source: Path | str, store: Path, on: str | None = None, genesis: Path | None = None) -> dict[str, bytes]:
    """Every file of a run by its name."""
    (run,) = cm.ingest("cardano", source, store=store, on=on, genesis=genesis)
    folder = run.sealed.path
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_run_is_that_of_the_folder_wherever_it_is_decoded(
    bucket: Path, server: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    expected = imported(bucket / "cluster", tmp_path / "folder")
    assert imported(ADDRESS, tmp_path / "here") == expected
    assert imported(f"file://{bucket}/cluster", tmp_path / "file") == expected
    assert list(scratch.iterdir()) == [], "no copy of a log remains"
    with local_cluster() as cluster, watching(cluster) as seen:
        for number in (2, 3):
            cluster.start_worker(number, environment=server)
        wait_for_workers(seen, {"w2", "w3"})
        assert imported(ADDRESS, tmp_path / "workers", cluster.address) == expected
        # Of a log that is most of the work each worker copies the ranges that it reads.
        one = imported(bucket / "one", tmp_path / "one")
        monkeypatch.setattr(decoding_elsewhere, "LEAST_RANGE_BYTES", 1 << 16)
        assert imported(f"s3://{BUCKET}/one", tmp_path / "ranges", cluster.address) == one


@pytest.mark.usefixtures("server")
def test_one_log_is_read_like_one_of_this_machine(bucket: Path, tmp_path: Path) -> None:
    log = min(path.relative_to(bucket) for path in (bucket / "cluster" / "node-0").iterdir())
    genesis = bucket / "cluster" / "genesis" / "genesis.shelley.json"
    expected = imported(bucket / log, tmp_path / "folder", genesis=genesis)
    assert imported(f"s3://{BUCKET}/{log}", tmp_path / "object", genesis=genesis) == expected


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        (f"s3://{BUCKET}/nothing", UsageError, "there is nothing at s3://logs/nothing"),
        (f"s3://{BUCKET}/cluster/genesis", UsageError, "`s3://logs/cluster/genesis` contains no logs of Cardano nodes"),
        ("s4://logs/cluster", UsageError, "s4://logs/cluster cannot be read: Protocol not known"),
        ("gs://logs/cluster", UsageError, "gs://logs/cluster cannot be read without a library: .*gcsfs"),
    ],
)
@pytest.mark.usefixtures("server")
def test_what_cannot_be_read_is_named(address: str, kind: type[ChainmarkError], message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        cm.ingest("cardano", address, store=tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.parquet"))


@pytest.mark.usefixtures("server")
def test_a_server_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(EnvironmentFailure, match=f"{ADDRESS} cannot be read: Could not connect"):
        cm.ingest("cardano", ADDRESS, store=tmp_path / "store")
    S3FileSystem.clear_instance_cache()


def test_a_log_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Its head was of another file than its end, and no hash of it would be true."""
    log = tmp_path / "stdout"
    for changed, message in ((b"y" * 20, "was changed while it was read"), (b"y" * 10, "ends at 10 bytes")):
        log.write_bytes(b"x" * 20)
        _, (file,) = listed_files(f"file://{log}", 1)
        assert file.beginning(5) == b"xxxxx"
        log.write_bytes(changed)
        with pytest.raises(EnvironmentFailure, match=message):
            file.copy(tmp_path / "copy")


def test_a_log_that_is_gone_and_a_full_disk_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_bytes(b"x" * 20)
    _, (file,) = listed_files(f"file://{log}", 1)
    with pytest.raises(EnvironmentFailure, match="/dev/full"):
        file.copy(Path("/dev/full"))
    log.unlink()
    with pytest.raises(UsageError, match=f"there is nothing at file://{log}"):
        file.copy(tmp_path / "copy")


def test_a_copy_consists_of_all_ranges_and_ends_when_nobody_wants_it(tmp_path: Path) -> None:
    log = tmp_path / "node-0" / "stdout"
    log.parent.mkdir()
    content = b"".join(number.to_bytes(8, "big") for number in range(RANGE_BYTES // 8 + 5))
    log.write_bytes(content)
    _, (file,) = listed_files(f"file://{tmp_path}", 3)
    assert (file.name, file.size_bytes) == ("node-0/stdout", len(content))
    file.copy(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    file.copy(tmp_path / "copy", begin=9, end=21)  # also the byte before it, and the rest of the line that it ends in
    copied = (tmp_path / "copy").read_bytes()
    assert copied == bytes(8) + content[8 : len(copied)]
    assert content.index(b"\n", 21) < len(copied) < len(content)
    file.copy(tmp_path / "copy", lambda: True)
    assert (tmp_path / "copy").read_bytes() == b""
    reader = HostReader(HostPart("node-0", '{"files": []}', len(content), stored=(file,), copies=""))
    reader.cancel()
    assert reader.progress() == (0, 0)
