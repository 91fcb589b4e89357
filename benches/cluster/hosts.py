"""What a network of many machines costs the client: messages and programs per host.

``python -m benches.cluster.hosts [--hosts 4 8 16]`` starts a scheduler and as many workers on loopback, opens an agent
on each, and measures the client: seconds and CPU time of an exchange of times with every host, the CPU time of
watching a network with a process on every host, seconds of one call and of a program of 70 MB to one host, and the
memory of a worker with an agent.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median

import psutil

from chainmark.lab.hosts import hosts_on
from chainmark.network.remote import RemoteHost, RemoteProcesses
from chainmark.systems.cometbft.workload import DEATHS_AGE_S, POLL_S

from tests.real.dask_cluster import local_cluster, wait_for_workers, watching

ROUNDS = 20
PROGRAM_BYTES = 70 << 20
WATCHED_S = 10.0


@dataclass(frozen=True)
class HostCosts:
    """The client's costs with that many hosts."""

    hosts: int
    ping_s: float
    ping_cpu_s: float
    program_s: float
    program_cpu_s: float
    call_s: float
    watching_cores: float
    worker_bytes: int


def _timed(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median seconds and the mean CPU seconds of this process."""
    seconds, began_cpu_s = [], time.process_time()
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return median(seconds), (time.process_time() - began_cpu_s) / rounds


def _watching_cores(hosts: Sequence[RemoteHost]) -> float:
    """This process's CPU time, per second, while it watches a process on every host as during a load."""
    program = Path(shutil.which("sleep") or "/bin/sleep")
    with (
        tempfile.TemporaryDirectory(prefix="chainmark-bench-") as folder,
        RemoteProcesses({f"node{number}": host for number, host in enumerate(hosts)}) as processes,
    ):
        started = []
        for name in processes.host_of:
            home = Path(folder) / name
            home.mkdir()
            (home / "key").touch()
            started.append(processes.start(name, [str(program), "600"], home / "node.log"))
        end = time.monotonic() + WATCHED_S
        began_cpu_s = time.process_time()
        while time.monotonic() < end:
            if processes.deaths(max_age_s=DEATHS_AGE_S) or any(process.ended() for process in started):
                raise RuntimeError("a process ended")
            time.sleep(POLL_S)
        return (time.process_time() - began_cpu_s) / WATCHED_S


def measure(count: int) -> HostCosts:
    """Start that many workers, and measure."""
    with local_cluster() as cluster, watching(cluster) as machines:
        for number in range(2, count + 2):
            cluster.start_worker(number)
        wait_for_workers(machines, {f"w{number}" for number in range(2, count + 2)})
        with hosts_on(machines) as hosts, ThreadPoolExecutor(count) as pool:
            ping_s, ping_cpu_s = _timed(lambda: list(pool.map(RemoteHost.ask_time, hosts)), ROUNDS)
            program = os.urandom(PROGRAM_BYTES)
            digest = sha256(program).hexdigest()
            program_s, program_cpu_s = _timed(lambda: hosts[0].call("take_program", digest, program), 3)
            call_s, _ = _timed(lambda: hosts[0].call("now_ns"), ROUNDS)
            worker_bytes = max(psutil.Process(worker.pid).memory_info().rss for worker in cluster.workers.values())
            watching_cores = _watching_cores(hosts)
    return HostCosts(count, ping_s, ping_cpu_s, program_s, program_cpu_s, call_s, watching_cores, worker_bytes)


def main(counts: Sequence[int]) -> None:
    """Print a row per number of hosts."""
    print(f"load average {psutil.getloadavg()[0]:.1f}")
    print(
        f"{'hosts':>6} {'all asked':>10} {'CPU':>8} {'CPU/host':>9} {'watching':>11} {'one call':>9} "
        f"{'program':>9} {'CPU':>7} {'worker':>8}"
    )
    for count in counts:
        cost = measure(count)
        print(
            f"{cost.hosts:6} {1e3 * cost.ping_s:7.1f} ms {1e3 * cost.ping_cpu_s:5.1f} ms "
            f"{1e3 * cost.ping_cpu_s / cost.hosts:6.2f} ms "
            f"{1e3 * cost.watching_cores / cost.hosts:6.2f} ms/s {1e3 * cost.call_s:6.2f} ms {cost.program_s:7.2f} s "
            f"{cost.program_cpu_s:5.2f} s {cost.worker_bytes >> 20:4} MiB",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 8, 16])
    main(parser.parse_args().hosts)
