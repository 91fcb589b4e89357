"""Sample each second: the resource use of every node's process and of the host, and every node's metrics page.

Raw responses are stored as received and parsed after the run: parsing during the measurement would use CPU time of the
processors under test.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import polars as pl
import psutil

from chainmark._native import ZstdWriter
from chainmark.core.compressed import DamagedFileError, open_zstd
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.storage import storage_errors
from chainmark.network import processor_speed
from chainmark.network.host import pressure_total_us
from chainmark.network.processes import pids_of_all_networks
from chainmark.network.processor_speed import ProcessorSpeed
from chainmark.network.run_queue import Contention, RunQueue

INTERVAL_S = 1.0
SCRAPE_TIMEOUT_S = 0.9
# Threads of this process that generate the load or observe its result.
MEASURING_THREADS = "chainmark-"
SCRAPE_MARK = b"# scraped at ns: "

PROCESS_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "cpu_s": pl.Float64,
    "rss_bytes": pl.Int64,
    "open_files": pl.Int64,
    "threads": pl.Int64,
    "disk_read_bytes": pl.Int64,
    "disk_written_bytes": pl.Int64,
    "ran_s": pl.Float64,
    "waited_s": pl.Float64,
    "contended_s": pl.Float64,
    "reference_cpu_s": pl.Float64,
    "reference_times": pl.Int64,
}
PRESSURE_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "cpu_pressure_us": pl.Int64,
    "io_pressure_us": pl.Int64,
    "memory_pressure_us": pl.Int64,
    "load1": pl.Float64,
    "cpu_busy_s": pl.Float64,
    "cpu_steal_s": pl.Float64,
    "cpu_total_s": pl.Float64,
    "harness_cpu_s": pl.Float64,
    "memory_available_bytes": pl.Int64,
    "nodes_ran_s": pl.Float64,
    "nodes_waited_s": pl.Float64,
    "generator_ran_s": pl.Float64,
    "generator_waited_s": pl.Float64,
    "contended_s": pl.Float64,
    "reference_cpu_s": pl.Float64,
    "reference_times": pl.Int64,
}


class Ticker:
    """Calls a function at a fixed interval, one second by default, on its own thread, until stopped.

    An exception of the function ends the calls and is raised by :meth:`stop`: a sampler must not die unnoticed.
    """

    def __init__(self, action: Callable[[], None], name: str, interval_s: float = INTERVAL_S) -> None:
        self._action = action
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self._action()
            except Exception as error:
                self._error = error
                return
            due = max(due + self._interval_s, time.monotonic() - self._interval_s)
            self._stop.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        """End the calls, wait for the last one, and raise its error, if any."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def error(self) -> Exception | None:
        """The exception that ended the calls early, if any."""
        return self._error


@dataclass
class ResourceSampler:
    """Samples the resource use of the nodes and of the host.

    Attributes:
        pids: process IDs of a node by its name, the node's own first; their use is summed.
    """

    pids: Mapping[str, Sequence[int]]
    _process_rows: list[tuple[object, ...]] = field(default_factory=list)
    _pressure_rows: list[tuple[object, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._processes = {name: _processes(pids) for name, pids in self.pids.items()}
        self._harness = psutil.Process()
        self._queues = {name: RunQueue() for name in self.pids}
        self._generator = RunQueue(MEASURING_THREADS)
        self._contention = Contention()
        self._speed = ProcessorSpeed()

    def tickers(self) -> list[Ticker]:
        """Begin to sample, and to measure the speed of the processors, until they are stopped."""
        return [
            Ticker(self._speed.measure, "processor speed", processor_speed.INTERVAL_S),
            Ticker(self.sample, "sample"),
        ]

    def follow(self, name: str, pids: Sequence[int]) -> None:
        """Sample these processes from now on, in place of earlier ones of that name."""
        self._processes[name] = _processes(pids)
        self._queues.setdefault(name, RunQueue())

    def sample(self) -> None:
        """Take one sample of everything, each with its own time: reading fifty processes takes a tenth of a second."""
        processes = dict(self._processes)
        ours = {process.pid for its in processes.values() for process in its} | {self._harness.pid}
        self._contention.read(ours | pids_of_all_networks())
        for name, its in processes.items():
            now_ns = time.time_ns()
            row = _row(its)
            self._queues[name].read([process.pid for process in its])
            if row is not None:
                times_s = _ran_and_waited(self._queues[name])
                self._process_rows.append((now_ns, name, *row, *times_s, *self._others_and_speed()))
        self._generator.read([self._harness.pid])
        now_ns = time.time_ns()
        times = psutil.cpu_times()
        busy_s = sum(times[:3]) + times.irq + times.softirq
        own = self._harness.cpu_times()
        self._pressure_rows.append(
            (
                now_ns,
                *(pressure_total_us(resource) for resource in ("cpu", "io", "memory")),
                psutil.getloadavg()[0],
                busy_s,
                times.steal,
                # Guest time is included in user time.
                sum(times) - times.guest - times.guest_nice,
                own.user + own.system,
                psutil.virtual_memory().available,
                *_ran_and_waited(*self._queues.values()),
                *_ran_and_waited(self._generator),
                *self._others_and_speed(),
            )
        )

    def _others_and_speed(self) -> tuple[float, float, int]:
        return self._contention.seconds, self._speed.cpu_s, self._speed.times

    def processes(self) -> pl.DataFrame:
        """All samples of the processes, in order of time."""
        return pl.DataFrame(self._process_rows, schema=PROCESS_SCHEMA, orient="row")

    def pressure(self) -> pl.DataFrame:
        """All samples of the host, in order of time."""
        return pl.DataFrame(self._pressure_rows, schema=PRESSURE_SCHEMA, orient="row")


def _ran_and_waited(*queues: RunQueue) -> tuple[float | None, float | None]:
    """The sum of all threads; None if the kernel does not report it."""
    if not all(queue.known for queue in queues):
        return None, None
    return sum(queue.ran_s for queue in queues), sum(queue.waited_s for queue in queues)


def _processes(pids: Sequence[int]) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in pids]


def _row(processes: Sequence[psutil.Process]) -> tuple[float, ...] | None:
    """The total use of a node's processes; None if its own is gone."""
    rows = [_process_row(process) for process in processes]
    if rows[0] is None:
        return None
    return tuple(sum(values) for values in zip(*(row for row in rows if row is not None), strict=True))


def _process_row(process: psutil.Process) -> tuple[float, ...] | None:
    """CPU seconds, RSS, open files, threads, bytes read and written; None if the process is gone."""
    try:
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times = process.cpu_times()
            counters = process.io_counters()
            return (
                times.user + times.system,
                process.memory_info().rss,
                process.num_fds(),
                process.num_threads(),
                counters.read_bytes,
                counters.write_bytes,
            )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


class Scraper:
    """Fetches each node's metrics page every second and stores the pages, compressed, one file per node."""

    def __init__(
        self, urls: Mapping[str, str], folder: Path, *, timeout_s: float = SCRAPE_TIMEOUT_S, verify: bool = False
    ) -> None:
        self._urls = dict(urls)
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        # Nodes' pages are plain HTTP on loopback, and requests must not go through a proxy of the environment.
        self._client = httpx.Client(timeout=timeout_s, verify=verify, trust_env=False)
        self._pool = ThreadPoolExecutor(max_workers=max(1, min(16, len(self._urls))), thread_name_prefix="scrape")
        self._files = {name: ZstdWriter(folder / f"{name}.prom.zst") for name in self._urls}
        self.missed: dict[str, int] = dict.fromkeys(self._urls, 0)
        self.stored: dict[str, int] = dict.fromkeys(self._urls, 0)
        self._last_pages: dict[str, bytes] = {}
        self._silent: set[str] = set()

    @property
    def last_pages(self) -> dict[str, bytes]:
        """The newest page of each node, some tens of kilobytes; a copy, because scrapes go on in other threads."""
        return self._last_pages.copy()

    def expect_silence(self, name: str) -> None:
        """Do not query that node until further notice: it was silenced on purpose, and counts no miss."""
        self._silent.add(name)

    def expect_answers(self, name: str) -> None:
        """Query that node again."""
        self._silent.discard(name)

    def scrape(self) -> None:
        """Fetch every node's page once, in parallel; a failed fetch is counted as missed."""
        list(self._pool.map(self._scrape_one, self._urls))

    def _scrape_one(self, name: str) -> None:
        if name in self._silent:
            return
        now_ns = time.time_ns()
        try:
            response = self._client.get(self._urls[name])
            response.raise_for_status()
        except httpx.HTTPError:
            # It may have been silenced, or not yet be back, during the query.
            self.missed[name] += name not in self._silent
            return
        with storage_errors(self._folder / f"{name}.prom.zst"):
            self._files[name].write(SCRAPE_MARK + str(now_ns).encode() + b"\n" + response.content + b"\n")
        self.stored[name] += 1
        self._last_pages[name] = response.content

    def close(self) -> None:
        """Finish the files."""
        self._pool.shutdown()
        self._client.close()
        for name, file in self._files.items():
            with storage_errors(self._folder / f"{name}.prom.zst"):
                file.close()


def read_pages(path: Path) -> list[tuple[int, str]]:
    """The pages of one node as they were scraped: (time in ns, text)."""
    try:
        with open_zstd(path) as file:
            content = file.read()
    except (OSError, DamagedFileError) as error:
        raise EnvironmentFailure(f"the scrapes in {path} cannot be read ({error})") from error
    pages = []
    for part in content.split(SCRAPE_MARK)[1:]:
        stamp, _, text = part.partition(b"\n")
        pages.append((int(stamp), text.decode()))
    return pages
