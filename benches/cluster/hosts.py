"""What a network of many machines costs the client: messages, programs and pages.

``python -m benches.cluster.hosts [--hosts 4 50 200] [--nodes 1]`` starts a scheduler and as many workers, each at its
own address on loopback, up to 25 of them in one process, and opens an agent on each. It measures the client: seconds
and CPU time of an exchange of times with every host, the CPU time of watching every host and of reading the metrics
pages of so many nodes on each, every second, and seconds of one call and of a program of 70 MB to one host. There are
no nodes: their pages come from one server. Two cores are enough for 200 hosts, not for 500. The CPU time of the client
is that of its own process, but the seconds include waiting for the others.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import logging
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import dask.config
import distributed
import psutil

from chainmark.lab.hosts import hosts_on
from chainmark.network.remote import REPORT_AGE_S, RemoteHost, RemoteProcesses
from chainmark.network.sampling import Scraper, Ticker
from chainmark.systems.cometbft.current import heights
from chainmark.systems.cometbft.workload import POLL_S, STALL_LOOK_S

from tests.real.dask_cluster import QUIET, local_cluster, watching
from tests.support import wait_until

ROUNDS = 20
PROGRAM_BYTES = 70 << 20
WATCHED_S = 10.0
WORKERS_PER_PROCESS = 25
# Those of a validator of v1.0.1 in a network of four.
PAGE_LINES = 520
STARTED_WITHIN_S = 120.0


@dataclass(frozen=True)
class HostCosts:
    """The client's costs with that many hosts; cores are its CPU time per second."""

    hosts: int
    ping_s: float
    ping_cpu_s: float
    watching_cores: float
    scraping_cores: float
    pages_missed: int
    call_s: float
    program_s: float


def _timed(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median seconds and the mean CPU seconds of this process."""
    seconds, began_cpu_s = [], time.process_time()
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return median(seconds), (time.process_time() - began_cpu_s) / rounds


def _page() -> bytes:
    """A metrics page of the usual length."""
    values = random.Random(1)
    lines = ['cometbft_consensus_latest_block_height{chain_id="bench"} 17']
    lines += [
        f'cometbft_p2p_message_receive_bytes_total{{chain_id="bench",message_type="{values.choice("abc")}",'
        f'peer_id="{values.randbytes(20).hex()}"}} {values.randrange(10**6)}'
        for _ in range(PAGE_LINES)
    ]
    return "\n".join([*lines, ""]).encode()


def _serve_pages(answer: Connection) -> None:
    page = _page()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    answer.send(server.server_port)
    server.serve_forever()


def _run_workers(scheduler: str, addresses: Sequence[str]) -> None:
    async def run() -> None:
        workers = [
            distributed.Worker(scheduler, host=address, nthreads=1, name=address, silence_logs=logging.CRITICAL)
            for address in addresses
        ]
        await asyncio.gather(*workers)
        await asyncio.gather(*(worker.finished() for worker in workers))

    os.environ |= QUIET
    dask.config.refresh()
    asyncio.run(run())


@contextmanager
def _workers(scheduler: str, count: int) -> Iterator[None]:
    addresses = [f"127.0.{number // 250}.{number % 250 + 2}" for number in range(count)]
    parts = [addresses[first : first + WORKERS_PER_PROCESS] for first in range(0, count, WORKERS_PER_PROCESS)]
    spawn = get_context("spawn")
    processes = [spawn.Process(target=_run_workers, args=(scheduler, part), daemon=True) for part in parts]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


@contextmanager
def _page_server() -> Iterator[str]:
    spawn = get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve_pages, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/metrics"
    finally:
        process.kill()
        process.join()


def _watching_cores(processes: RemoteProcesses) -> float:
    """The client's CPU time per second while it watches the network as during a load."""
    end = time.monotonic() + WATCHED_S
    began_cpu_s = time.process_time()
    while time.monotonic() < end:
        if deaths := processes.deaths(max_age_s=REPORT_AGE_S):
            raise RuntimeError(deaths[0])
        time.sleep(POLL_S)
    return (time.process_time() - began_cpu_s) / WATCHED_S


def _scraping_cores(nodes: int, url: str, folder: Path) -> tuple[float, int]:
    """The client's CPU time per second while it reads so many pages each second, and how many it did not get."""
    scraper = Scraper({f"node{number}": url for number in range(nodes)}, folder)
    began_cpu_s = time.process_time()
    tickers = [
        Ticker(scraper.scrape, "scrape"),
        Ticker(lambda: _forget(heights(scraper.last_pages)), "heights", STALL_LOOK_S),
    ]
    time.sleep(WATCHED_S)
    for ticker in tickers:
        ticker.stop()
    cores = (time.process_time() - began_cpu_s) / WATCHED_S
    scraper.close()
    return cores, sum(scraper.missed.values())


def _forget(_value: object) -> None:
    """Do nothing."""


def measure(count: int, nodes: int) -> HostCosts:
    """Start that many workers, and measure."""
    with (
        tempfile.TemporaryDirectory(prefix="chainmark-bench-") as name,
        local_cluster() as cluster,
        watching(cluster) as machines,
        _workers(cluster.address, count),
    ):
        folder = Path(name)
        wait_until(lambda: len(machines.workers()) == count, "the workers", STARTED_WITHIN_S)
        with hosts_on(machines) as hosts, ThreadPoolExecutor(count) as pool:
            ping_s, ping_cpu_s = _timed(lambda: list(pool.map(RemoteHost.ask_time, hosts)), ROUNDS)
            program = os.urandom(PROGRAM_BYTES)
            key = f"{sha256(program).hexdigest()}/node"
            program_s, _ = _timed(lambda: hosts[0].call("take_program", key, program), 3)
            call_s, _ = _timed(lambda: hosts[0].call("now_ns"), ROUNDS)
            with RemoteProcesses({host.address: host for host in hosts}) as processes:
                watching_cores = _watching_cores(processes)
        with _page_server() as url:
            scraping_cores, missed = _scraping_cores(nodes * count, url, folder / "scrapes")
    return HostCosts(count, ping_s, ping_cpu_s, watching_cores, scraping_cores, missed, call_s, program_s)


def main(counts: Sequence[int], nodes: int) -> None:
    """Print a row per number of hosts."""
    print(f"load average {psutil.getloadavg()[0]:.1f}; CPU time of the client")
    print(
        f"{'hosts':>6} {'nodes':>6} {'all asked':>10} {'CPU/host':>9} {'watching':>11} {'pages':>11} {'missed':>7} "
        f"{'one call':>9} {'program':>9}"
    )
    for count in counts:
        cost = measure(count, nodes)
        print(
            f"{cost.hosts:6} {nodes * cost.hosts:6} {1e3 * cost.ping_s:7.1f} ms "
            f"{1e3 * cost.ping_cpu_s / cost.hosts:6.2f} ms {cost.watching_cores:5.2f} cores "
            f"{cost.scraping_cores:5.2f} cores {cost.pages_missed:7} {1e3 * cost.call_s:6.2f} ms "
            f"{cost.program_s:7.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 50, 200])
    parser.add_argument("--nodes", type=int, default=1, help="nodes on each host")
    options = parser.parse_args()
    main(options.hosts, options.nodes)
