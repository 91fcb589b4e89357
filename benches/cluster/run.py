"""Compare an import on the workers of a Dask cluster with one on local threads: speed, CPU time, equal bytes.

``python benches/cluster/run.py [--gigabytes 1] [--hosts 8] [--workers 1 2] [--rounds 5] [--folder DIR]`` writes that
much logs below DIR, starts a scheduler and workers of one thread each on loopback, imports the logs in turn by local
threads and by as many workers, and deletes everything. Decoding is what the workers do; the rest of an import is done
here in any case. With ``--hosts 1``, the workers divide the log of one host. The engine's overhead is the CPU time of
all processes (client, scheduler, workers) over that of the threads, of both the whole import and its decoding. It fails
only if two of the runs differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from distributed import Client

import chainmark as cm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benches.ingest.run import digest, write_logs
from benches.measured import warm

from tests.real.dask_cluster import QUIET

THREAD = "thread"
WORKER = "worker"


@dataclass(frozen=True)
class Cost:
    """The cost of one import: seconds and CPU seconds, of the whole import and of its decoding."""

    seconds: float
    cpu_s: float
    decoding_s: float
    decoding_cpu_s: float
    digest: str


class Stages:
    """The start of each stage of an import, by both clocks."""

    def __init__(self, processes: Sequence[psutil.Process]) -> None:
        self._processes = processes
        self.begun: list[tuple[str, float, float]] = []
        self.stage("begin")

    def stage(self, name: str) -> None:
        """Record the start of a stage."""
        self.begun.append((name, time.perf_counter(), time.process_time() + cpu_seconds(self._processes)))

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore progress within a stage."""

    def cost(self, name: str) -> Cost:
        """The cost, after the end of the last stage."""
        self.stage("end")
        place = next(place for place, (name, _, _) in enumerate(self.begun) if name.startswith("reading"))
        # What workers found in the ranges of a host is put together here.
        after = place + 1 + self.begun[place + 1][0].startswith("putting together")
        (_, first_s, first_cpu_s), (_, last_s, last_cpu_s) = self.begun[0], self.begun[-1]
        (_, begun_s, begun_cpu_s), (_, ended_s, ended_cpu_s) = self.begun[place], self.begun[after]
        return Cost(last_s - first_s, last_cpu_s - first_cpu_s, ended_s - begun_s, ended_cpu_s - begun_cpu_s, name)


@contextmanager
def started(folder: Path, workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start a cluster; return its scheduler's address and its processes."""
    file = folder / f"scheduler-{workers}.json"
    common = ["--no-dashboard", "--scheduler-file", str(file)]
    own = ["--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory", str(folder)]
    commands = [["scheduler", *common, "--host", "127.0.0.1", "--port", "0"]]
    commands += [["worker", *common, *own, "--name", f"w{number}"] for number in range(workers)]
    processes = []
    with (folder / "cluster.log").open("ab") as log:
        try:
            for kind, *arguments in commands:
                command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
                environment = {**os.environ, **QUIET}
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment))
                while not file.exists():
                    time.sleep(0.05)
            yield _ready(file, workers), [psutil.Process(process.pid) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _ready(file: Path, workers: int) -> str:
    address: str = json.loads(file.read_text(encoding="utf-8"))["address"]
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=120)
    return address


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """The CPU time that processes have used so far."""
    return sum(times.user + times.system for times in (process.cpu_times() for process in processes))


def take_in(logs: Path, scratch: Path, on: str | None, threads: int, processes: Sequence[psutil.Process]) -> Cost:
    """Import the logs into a separate store."""
    store = scratch / "store"
    stages = Stages(processes)
    (run,) = cm.ingest("cardano", logs, on=on, threads=threads, store=store, progress=stages)
    cost = stages.cost(digest(run.sealed.path))
    shutil.rmtree(store)
    return cost


def measure(logs: Path, scratch: Path, counts: Sequence[int], rounds: int) -> dict[tuple[str, int], list[Cost]]:
    """Measure the ways in turn, so other load on the machine affects all of them; the first round warms up."""
    costs: dict[tuple[str, int], list[Cost]] = {}
    for count in counts:
        with started(scratch, count) as (address, processes):
            for number in range(rounds + 1):
                by_threads = take_in(logs, scratch, None, count, [])
                by_workers = take_in(logs, scratch, address, count, processes)
                if number:
                    costs.setdefault((THREAD, count), []).append(by_threads)
                    costs.setdefault((WORKER, count), []).append(by_workers)
    return costs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the logs' text")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="where the logs go, and are deleted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="chainmark-bench-") as scratch:
        logs = Path(scratch) / "logs"
        text_bytes = logs_of(logs, arguments.gigabytes, arguments.hosts)
        warm(sorted(logs.glob("node-*/*")))
        print(f"{text_bytes / 1e9:.2f} GB of text, {arguments.hosts} hosts, {os.cpu_count()} cores")
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}\n")
        costs = measure(logs, Path(scratch), arguments.workers, arguments.rounds)
        print(f"{'import by':<10} {'seconds':>8} {'CPU s':>7} {'decoding':>9} {'CPU s':>7}")
        for (name, count), stage_costs in costs.items():
            label = f"{count} {name}" + ("s" if count > 1 else "")
            seconds, cpu_s = least(stage_costs, "seconds"), least(stage_costs, "cpu_s")
            decoding_s, decoding_cpu_s = least(stage_costs, "decoding_s"), least(stage_costs, "decoding_cpu_s")
            print(f"{label:<10} {seconds:>8.2f} {cpu_s:>7.2f} {decoding_s:>9.2f} {decoding_cpu_s:>7.2f}")
        for count in arguments.workers:
            threads, workers = costs[THREAD, count], costs[WORKER, count]
            decoding, whole = (
                least(workers, figure) / least(threads, figure) - 1 for figure in ("decoding_cpu_s", "cpu_s")
            )
            print(f"\noverhead with {count}: {decoding:+.1%} CPU time of decoding, {whole:+.1%} of the import", end="")
        print(f"\nload of the machine after: {os.getloadavg()[0]:.1f}")
    if len({cost.digest for costs in costs.values() for cost in costs}) > 1:
        sys.exit("error: the runs differ with who read the logs")


def logs_of(folder: Path, gigabytes: float, hosts: int) -> int:
    """Write logs; return the bytes of their text. Those of a single host are the first of a cluster of two."""
    if hosts > 1:
        return write_logs(folder, gigabytes, hosts, "none")
    write_logs(folder, 2 * gigabytes, 2, "none")
    shutil.rmtree(folder / "node-1")
    return sum(path.stat().st_size for path in folder.glob("node-0/*"))


def least(costs: Sequence[Cost], name: str) -> float:
    """The minimum of one figure: other load on the machine can only increase it."""
    return min(float(getattr(cost, name)) for cost in costs)


if __name__ == "__main__":
    main()
