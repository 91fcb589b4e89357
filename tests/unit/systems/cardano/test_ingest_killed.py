"""An import that is killed at any moment leaves nothing that the next import does not remove."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support import Lab, wait_until
from tests.unit.systems.cardano.clusters import ingest, make_cluster

STAGED = "importing-*"
TRIES = 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs that take long enough to read for a signal to arrive during the import."""
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=4, slots=400)


@pytest.fixture(scope="module")
def undisturbed(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The run of an uninterrupted import: its name, and the hashes of all its files."""
    run = ingest(tmp_path_factory.mktemp("store"), cluster).run
    return run.run_id, (run.path / "SEALED").read_bytes()


def left_behind(lab: Lab) -> list[str]:
    runs = lab.store_path / "runs"
    return sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []


@pytest.mark.parametrize(
    "moment",
    [
        "unfinished.json",  # the folder has just been created
        "decoded/*.parquet*",  # a host is being read
        "samples/*",  # the analysis writes its tables
        "manifest.json",  # the run is being sealed
    ],
)
def test_a_killed_import_can_be_repeated_with_the_same_result(
    lab: Lab, cluster: Path, undisturbed: tuple[str, bytes], moment: str
) -> None:
    started = lab.start("ingest", "cardano", str(cluster), "--threads", "1")
    runs = lab.store_path / "runs"
    wait_until(lambda: any(runs.glob(f"{STAGED}/{moment}")) or started.process.poll() is not None, moment)
    started.process.send_signal(signal.SIGKILL)
    started.finish()
    if left_behind(lab) != [undisturbed[0]]:
        assert len(left_behind(lab)) == 1
        assert lab.store.sealed() == []
        assert [run.run_id for run in lab.store.unfinished()] == left_behind(lab)
    run = ingest(lab.store_path, cluster).run
    assert left_behind(lab) == [undisturbed[0]]
    assert (run.path / "SEALED").read_bytes() == undisturbed[1]
    assert run.verify() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_leaves_nothing(lab: Lab, cluster: Path, number: signal.Signals) -> None:
    for _ in range(TRIES):
        started = lab.start("ingest", "cardano", str(cluster), "--threads", "1")
        wait_until(lambda: "reading 4 hosts" in started.errors(), "the reading")  # noqa: B023 - waited for at once
        started.process.send_signal(number)
        ended = started.finish()
        if ended.returncode != 0:
            break
        # The import finished before this process was scheduled.
        lab.run("runs", "remove", lab.store.sealed()[0].run_id)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert left_behind(lab) == []


def test_two_concurrent_imports_do_not_disturb_each_other(
    lab: Lab, cluster: Path, undisturbed: tuple[str, bytes]
) -> None:
    """The second import reports that the first is running. The folder of the first is not touched."""
    first = lab.start("ingest", "cardano", str(cluster), "--threads", "1")
    wait_until(lambda: "searching for logs" in first.errors(), "the first import")
    first.process.send_signal(signal.SIGSTOP)
    try:
        error_output = lab.run("ingest", "cardano", str(cluster), code=2).stderr
        assert f"process {first.process.pid} is importing the same logs" in error_output
        ingest(lab.store_path, cluster, version="10.6.2")
    finally:
        first.process.send_signal(signal.SIGCONT)
    assert first.finish().returncode == 0
    assert undisturbed[0] in left_behind(lab)
    assert len(left_behind(lab)) == 2
