"""A real Dask cluster on loopback: a scheduler and workers, each with an address like a separate machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chainmark.cluster.connection import Cluster, connected

from tests.support import wait_until

ROOT = Path(__file__).resolve().parents[2]
# As the guide recommends: without the profiler, without waking fifty times a second, and with an early end of waiting.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
}


@dataclass
class LocalCluster:
    """The processes of the cluster. A test may kill each of them.

    Attributes:
        options: command line options of every process, for certificates.
        workers: the worker processes by name; `w2` is at 127.0.0.2.
    """

    folder: Path
    options: Sequence[str] = ()
    scheduler: subprocess.Popen[bytes] = field(init=False)
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        address: str = json.loads((self.folder / "scheduler.json").read_text(encoding="utf-8"))["address"]
        return address

    def start_scheduler(self, host: str = "127.0.0.1") -> None:
        """Start the scheduler, and wait until it has written its address."""
        file = self.folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", host, "--port", "0", "--scheduler-file", str(file))
        wait_until(lambda: file.exists() or self.scheduler.poll() is not None, "the scheduler")
        assert file.exists(), (self.folder / "scheduler.log").read_text(encoding="utf-8")

    def start_worker(
        self,
        number: int,
        *,
        host: str | None = None,
        before: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        for_load: bool = False,
    ) -> str:
        """Start a worker at an address, 127.0.0.NUMBER if none is given, and return its name."""
        name = f"w{number}"
        address = host or f"127.0.0.{number}"
        arguments = ["--scheduler-file", str(self.folder / "scheduler.json"), "--host", address]
        arguments += ["--name", name, "--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder)]
        arguments += ["--resources", "load=1"] if for_load else []
        self.workers[name] = self._start("worker", *arguments, before=before, environment=environment)
        return name

    def _start(
        self, kind: str, *arguments: str, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        # The kernel kills it with this process, so that nothing is left of a test or demonstration that was killed.
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            *before,
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--no-dashboard",
        ]
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        with (self.folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, *arguments, *self.options],
                cwd=self.folder,
                env={**os.environ, **QUIET, "PYTHONPATH": paths, **(environment or {})},
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """Kill a worker at once, in whatever state it is."""
        process = self.workers.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """Stop a worker's process: it does nothing from now on, but still appears connected."""
        self.workers[name].send_signal(signal.SIGSTOP)

    def close(self) -> None:
        """Kill all processes."""
        for name in list(self.workers):
            self.kill(name)
        self.scheduler.kill()
        self.scheduler.wait()


@contextmanager
def local_cluster(options: Sequence[str] = (), host: str = "127.0.0.1") -> Iterator[LocalCluster]:
    """A scheduler without workers."""
    with tempfile.TemporaryDirectory(prefix="dask-") as folder:
        cluster = LocalCluster(Path(folder), options)
        cluster.start_scheduler(host)
        try:
            yield cluster
        finally:
            cluster.close()


@contextmanager
def watching(dask_cluster: LocalCluster) -> Iterator[Cluster]:
    """A separate connection for a test."""
    with connected(dask_cluster.address) as cluster:
        yield cluster


def wait_for_workers(cluster: Cluster, names: set[str]) -> None:
    """Wait until the scheduler knows exactly these workers."""
    wait_until(lambda: {worker.name for worker in cluster.workers()} == names, f"the workers {sorted(names)}")


def processing(cluster: Cluster, machine: str) -> Callable[[], bool]:
    """Whether the scheduler has assigned a task to the worker of a machine."""

    def is_busy() -> bool:
        processing_tasks = cluster.client.processing()
        return any(keys for address, keys in processing_tasks.items() if f"//{machine}:" in address)

    return is_busy
