"""Imports on a real cluster: the same run to the byte whatever happens to workers, and errors that state the cause."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import dask
import pytest

import chainmark as cm
from chainmark.core.cluster_report import ClusterReport
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, LostMachineError, UsageError
from chainmark.core.progress import Silent
from chainmark.core.verdict import Verdict
from chainmark.lab.hosts import hosts_on
from chainmark.store.files import json_bytes
from chainmark.systems.cardano import decoding_elsewhere
from chainmark.systems.cardano.simulation import Simulator, simulator_on

from tests.examples import NEED_A_CLUSTER, execute
from tests.real.dask_cluster import ROOT, LocalCluster, local_cluster, processing, wait_for_workers, watching
from tests.support import wait_until
from tests.unit.systems.cardano.clusters import make_cluster
from tests.unit.systems.cardano.made_up import profile


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a cluster with unreadable lines, in several files per host."""
    folder = tmp_path_factory.mktemp("logs") / "cluster"
    return make_cluster(folder, hosts=5, faults=("corrupt:node-1=1%", "restart:node-2@60-70"), rotation="4000")


@pytest.fixture(scope="module")
def expected(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The run imported by this machine alone."""
    return imported(logs, tmp_path_factory.mktemp("here"), None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster with one worker. Every test restores it to this state."""
    with local_cluster() as dask_cluster:
        dask_cluster.start_worker(2)
        with watching(dask_cluster) as seen:
            wait_for_workers(seen, {"w2"})
        yield dask_cluster


def imported(logs: Path, store: Path, on: str | None, **options: object) -> dict[str, bytes]:
    """Every file of a run by its name."""
    (run,) = cm.ingest("cardano", logs, store=store, on=on, **options)  # type: ignore[arg-type]
    folder = run.sealed.path
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_run_is_identical_on_one_two_and_four_machines_and_after_the_loss_of_a_machine(
    cluster: LocalCluster, logs: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    with watching(cluster) as seen:
        assert imported(logs, tmp_path / "1", cluster.address) == expected
        for number in (3, 4, 5):
            cluster.start_worker(number)
        wait_for_workers(seen, {"w2", "w3", "w4", "w5"})
        assert imported(logs, tmp_path / "4", cluster.address) == expected
        for name in ("w4", "w5"):
            cluster.kill(name)
        wait_for_workers(seen, {"w2", "w3"})
        assert imported(logs, tmp_path / "2", cluster.address) == expected

        assert _imported_while_a_worker_hangs(cluster, logs, tmp_path / "killed", is_killed=True) == expected
        cluster.start_worker(3)
        wait_for_workers(seen, {"w2", "w3"})
        assert _imported_while_a_worker_hangs(cluster, logs, tmp_path / "hangs", is_killed=False) == expected
        wait_for_workers(seen, {"w2"})


def test_one_hosts_logs_are_divided_among_the_machines(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is killed while it reads a range is replaced by the others."""
    logs = make_cluster(tmp_path / "logs", hosts=2, slots=600)
    shutil.rmtree(logs / "node-1")
    expected = imported(logs, tmp_path / "here", None)
    monkeypatch.setattr(decoding_elsewhere, "LEAST_RANGE_BYTES", 1 << 16)
    with watching(cluster) as seen:
        cluster.start_worker(3)
        wait_for_workers(seen, {"w2", "w3"})
        assert imported(logs, tmp_path / "2", cluster.address) == expected
        assert _imported_while_a_worker_hangs(cluster, logs, tmp_path / "killed", is_killed=True) == expected
        wait_for_workers(seen, {"w2"})


def test_the_resamples_of_a_large_run_are_divided_among_the_machines(
    cluster: LocalCluster, logs: Path, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cluster's slots they take seconds. A worker that is killed meanwhile is replaced by the others."""
    monkeypatch.setattr("chainmark.stats.summarise._DIVIDED_FROM_S", 0.0)
    with watching(cluster) as seen:
        cluster.start_worker(3)
        wait_for_workers(seen, {"w2", "w3"})
        store = tmp_path / "killed"
        killed = _imported_while_a_worker_hangs(cluster, logs, store, is_killed=True, stage="summarising")
        assert killed == expected
        wait_for_workers(seen, {"w2"})


def test_a_part_of_many_megabytes_is_sent_without_a_warning(cluster: LocalCluster) -> None:
    """Those of resamples are as large. A user cannot follow the engine's advice to send them in another way."""
    with watching(cluster) as seen, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seen.map(len, [bytes(20_000_000)]) == [20_000_000]


def _imported_while_a_worker_hangs(
    cluster: LocalCluster, logs: Path, store: Path, *, is_killed: bool, stage: str = "reading"
) -> dict[str, bytes]:
    """The worker w3 hangs during its part of the work, and may then be killed."""
    is_given = threading.Event()
    stopper = Stopper(cluster, "w3", is_given, stage)
    contents: list[dict[str, bytes]] = []
    work = threading.Thread(target=lambda: contents.append(imported(logs, store, cluster.address, progress=stopper)))
    work.start()
    is_given.wait()
    with watching(cluster) as seen:
        wait_until(processing(seen, "127.0.0.3"), "a part for the worker that hangs")
    if is_killed:
        cluster.kill("w3")
    work.join()
    return contents[0]


def test_predictions_and_explanations_do_not_depend_on_where_batches_are_simulated(cluster: LocalCluster) -> None:
    here, there = (
        cm.predict("cardano/value", [("rtt", "+20%")], blocks=64, seed=3, on=on) for on in (None, cluster.address)
    )
    assert json_bytes(there.result) == json_bytes(here.result)
    with pytest.raises(EnvironmentFailure, match="cannot be reached"):
        cm.predict("cardano/value", blocks=64, on="tcp://127.0.0.1:1")
    # An impossible request gives the same error wherever it runs.
    alone = profile().network.cluster().model_copy(update={"hosts": 1})
    with watching(cluster) as seen, pytest.raises(UsageError, match="a cluster of 1 host has nobody to send a block"):
        Simulator(32, simulate=simulator_on(seen)).run(profile().scenario(1).model_copy(update={"cluster": alone}))


def test_a_comparison_is_identical_on_machines_without_the_runs(
    cluster: LocalCluster, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is lost during the comparison. A short comparison does not use them."""
    store = tmp_path / "store"
    for version in ("1.0", "2.0"):
        cm.ingest("cardano", logs, version=version, store=store)
    here = json_bytes(cm.compare("1.0", "2.0", store=store).result)
    spoken = Spoken()
    cm.compare("1.0", "2.0", store=store, on="tcp://127.0.0.1:1", progress=spoken)
    assert spoken.texts == ["this comparison takes less than a second: the cluster at tcp://127.0.0.1:1 is not used"]
    monkeypatch.setattr("chainmark.api.comparing._DESCRIBED_BYTES_PER_S", 1)
    with watching(cluster) as seen:
        cluster.start_worker(3)
        wait_for_workers(seen, {"w2", "w3"})
        stopper = Stopper(cluster, "w3", threading.Event(), "comparing on")
        documents: list[bytes] = []

        def compared() -> None:
            document = cm.compare("1.0", "2.0", store=store, on=cluster.address, progress=stopper)
            documents.append(json_bytes(document.result))

        work = threading.Thread(target=compared)
        work.start()
        wait_until(processing(seen, "127.0.0.3"), "a part for the worker that hangs")
        assert documents == []
        cluster.kill("w3")
        work.join()
        assert documents == [here]
        wait_for_workers(seen, {"w2"})


class Spoken(Silent):
    """Records the messages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def say(self, text: str) -> None:
        """Record one."""
        self.texts.append(text)


class Stopper:
    """Stops a worker when a stage of the work begins."""

    def __init__(self, cluster: LocalCluster, name: str, is_done: threading.Event, begins: str = "reading") -> None:
        self._cluster, self._name, self._is_done, self._begins = cluster, name, is_done, begins

    def stage(self, name: str) -> None:
        """Stop the worker if this is the stage."""
        if name.startswith(self._begins):
            self._cluster.stop(self._name)
            self._is_done.set()

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore progress within a stage."""


def test_a_worker_of_another_version_is_reported_and_not_used(
    cluster: LocalCluster, logs: Path, tmp_path: Path
) -> None:
    """Another version may compute a different run from the same logs, and the origin of each part would be unknown."""
    code = 'from chainmark.core import tool\ntool.VERSION = "9.9"\n'
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    with watching(cluster) as seen:
        before = {worker.name for worker in seen.workers()}
        cluster.start_worker(9, environment={"PYTHONPATH": paths})
        wait_for_workers(seen, before | {"w9"})
        document = cm.cluster_check(cluster.address)
        with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.9:\d+ has chainmark 9\.9, but this machine has"):
            cm.ingest("cardano", logs, store=tmp_path / "store", on=cluster.address)
        cluster.kill("w9")
        wait_for_workers(seen, before)
        for name in NEED_A_CLUSTER:
            execute(name, scheduler=cluster.address)
    report = document.result
    assert isinstance(report, ClusterReport)
    assert document.verdict is Verdict.FAIL
    assert [case.label for case in document.cases if case.verdict is Verdict.FAIL] == ["w9"]
    # All workers on one machine share a clock: a measured offset is at most the measurement's error.
    assert {clock.machine for clock in report.clocks} == {"127.0.0.9", "this machine"}
    assert all(abs(clock.offset_s) <= clock.error_s < 1.0 for clock in report.clocks)
    assert {(link.source, link.target) for link in report.links} == {
        (worker.address, other.address) for worker in report.workers for other in report.workers if worker != other
    }
    assert all(link.bytes_per_s and link.round_trip_s for link in report.links)
    assert "w9 has chainmark 9.9" in document.text()


WITHOUT_CHAINMARK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "chainmark":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def test_a_worker_without_chainmark_is_reported_and_still_runs_after_the_check(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """A cluster that others use, too: Dask ends a worker that receives a task of a program that it does not have."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_CHAINMARK, encoding="utf-8")
    with watching(cluster) as seen:
        cluster.start_worker(9, environment={"PYTHONPATH": str(tmp_path)})
        wait_for_workers(seen, {"w2", "w9"})
        before = {worker.address for worker in seen.workers()}
        for document in (cm.cluster_check(cluster.address), cm.cluster_check(cluster.address)):
            failed = [case for case in document.cases if case.verdict is Verdict.FAIL]
            assert [case.label for case in failed] == ["w9"]
            assert failed[0].reason.startswith("has no chainmark or an older version (")
            assert "No module named 'chainmark'" in failed[0].reason
        with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.9:\d+ has no chainmark or an older one"):
            cm.predict("cardano/value", blocks=64, on=cluster.address)
        assert {worker.address for worker in seen.workers()} == before
        cluster.kill("w9")
        wait_for_workers(seen, {"w2"})


def test_a_worker_stops_its_work_when_the_client_is_killed(cluster: LocalCluster, tmp_path: Path) -> None:
    """A client that has exited must not leave work behind on other people's machines."""
    client = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from tests.real.dask_work import until_cancelled as work\n"
            "from chainmark.cluster.connection import connected\n"
            "with connected(sys.argv[1]) as cluster:\n"
            "    cluster.map(work, [sys.argv[2]], at=lambda _: [], take=lambda _, made: made, weight=lambda _: 0.0,"
            " watch=lambda _: None)",
            cluster.address,
            str(tmp_path),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    wait_until((tmp_path / "begun").exists, "the work")
    client.kill()
    client.wait()
    wait_until((tmp_path / "cancelled").exists, "the end of the work")


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("openssl"),
    reason="only root may give a process a disk of its own; openssl makes certificates",
)
def test_logs_are_read_in_place_and_over_tls(logs: Path, tmp_path: Path) -> None:
    """Each machine has the logs of some hosts under the same path. On the client this folder is empty."""
    hosts = sorted(path.name for path in logs.glob("node-*"))
    place = tmp_path / "cluster"
    shutil.copytree(logs, place)
    expected = imported(place, tmp_path / "here", None)
    for child in place.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    files = own_certificate(tmp_path)
    options = ["--protocol", "tls", *(text for name, path in files.items() for text in (f"--tls-{name}", str(path)))]
    with local_cluster(options) as dask_cluster:
        for number, absent in ((2, hosts[:2]), (3, hosts[2:])):
            view = tmp_path / f"view-{number}"
            shutil.copytree(logs, view, ignore=shutil.ignore_patterns(*absent))
            mount = f"mount --bind '{view}' '{place}' && exec \"$@\""
            dask_cluster.start_worker(number, before=["unshare", "--mount", "sh", "-c", mount, "sh"])
        with pytest.raises(UsageError, match="uses TLS, but no certificates are configured"):
            cm.cluster_check(dask_cluster.address)
        with trusted(files), watching(dask_cluster) as seen:
            wait_for_workers(seen, {"w2", "w3"})
            assert imported(place, tmp_path / "there", dask_cluster.address) == expected


def own_certificate(folder: Path) -> dict[str, Path]:
    """A certificate that is its own authority, as Dask's options."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=cluster"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return {"ca-file": certificate, "cert": certificate, "key": key}


def trusted(files: dict[str, Path]) -> AbstractContextManager[object]:
    """Dask's own configuration of certificates."""
    keys = {f"distributed.comm.tls.client.{name}": str(files[name]) for name in ("cert", "key")}
    keys["distributed.comm.tls.ca-file"] = str(files["ca-file"])
    setting: AbstractContextManager[object] = dask.config.set(keys)
    return setting


def test_a_scheduler_that_exited_or_has_no_workers_ends_an_import_without_leftovers(logs: Path, tmp_path: Path) -> None:
    with local_cluster() as dask_cluster:
        with pytest.raises(EnvironmentFailure, match="has no workers") as nobody:
            imported(logs, tmp_path, dask_cluster.address)
        assert "dask worker" in str(nobody.value.hint)
        dask_cluster.start_worker(2)
        with watching(dask_cluster) as seen:
            wait_for_workers(seen, {"w2"})
        is_given = threading.Event()
        failed: list[ChainmarkError] = []

        def work() -> None:
            try:
                imported(logs, tmp_path, dask_cluster.address, progress=Stopper(dask_cluster, "w2", is_given))
            except ChainmarkError as error:
                failed.append(error)

        importing = threading.Thread(target=work)
        importing.start()
        is_given.wait()
        dask_cluster.scheduler.kill()
        importing.join()
    assert [str(error.message) for error in failed if "is gone" in error.message]
    assert cm.runs(store=tmp_path).is_empty()


def test_the_networks_of_a_command_stay_on_the_machines_of_the_first_one() -> None:
    """Otherwise a release would be compared on three machines with another one on two or four."""
    with local_cluster() as own, watching(own) as seen, watching(own) as cluster:
        own.start_worker(2)
        own.start_worker(3)
        own.start_worker(4, for_load=True)
        wait_for_workers(seen, {"w2", "w3", "w4"})

        def machines() -> list[str]:
            with hosts_on(cluster) as hosts:
                found = [f"{host.address[-1]}{'+' if host.measures else ''}" for host in hosts]
                for host in hosts:
                    host.call("close")
            return found

        assert machines() == ["2", "3", "4+"]
        own.start_worker(5)
        wait_for_workers(seen, {"w2", "w3", "w4", "w5"})
        assert machines() == ["2", "3", "4+"]
        own.kill("w4")
        wait_for_workers(seen, {"w2", "w3", "w5"})
        with pytest.raises(LostMachineError, match=r"127\.0\.0\.4 is lost"):
            machines()
        assert not cluster.wait_for_replacement("", 0.1), "a machine for nodes does not replace one for load"
        own.start_worker(6, for_load=True)
        own.kill("w2")
        wait_for_workers(seen, {"w3", "w5", "w6"})
        assert cluster.wait_for_replacement("", 30.0)
        assert machines() == ["3", "5", "6+"]
