"""The state of a running experiment as OpenMetrics, for a Prometheus server to scrape and a dashboard to show.

Nothing is computed until a scrape. Names follow the conventions of Prometheus: a prefix, the unit last, `_total` for
counters. Counts restart with each run, like the counters of a restarted process.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Status
from chainmark.core.progress import LiveFigures, LiveSource
from chainmark.network.host import pressure_total_us

DEFAULT_HOST = "127.0.0.1"
PORT_MAX = 65_535
PREFIX = "chainmark_"
_PLACE = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]*):)?(?P<port>\d+)")
_GATES = ("pass", "warn", "unknown", "fail")


def parse_place(text: str) -> tuple[str, int]:
    """`127.0.0.1:9464`, `[::1]:9464`, or a port on this machine alone: `9464`.

    Raises:
        UsageError: it is neither.
    """
    match = _PLACE.fullmatch(text)
    if match is None or int(match["port"]) > PORT_MAX:
        raise UsageError(
            f"`--expose {text}` is not a valid address to listen on", "for example `--expose 127.0.0.1:9464`"
        )
    return (match["host"] or DEFAULT_HOST).strip("[]"), int(match["port"])


@dataclass(eq=False)
class ExperimentState(Collector):
    """The progress of an experiment; written by its runner, read by scrapes, from any thread."""

    version: str
    stage_name: str = ""
    progress: float = 0.0
    run: dict[str, str] = field(default_factory=dict)
    position: int = 0
    total: int = 0
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    gates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_GATES, 0))
    _sources: list[LiveSource] = field(default_factory=list)
    _last: LiveFigures = field(default_factory=LiveFigures)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def begin(self, version: str, side: str, position: int, total: int) -> None:
        """A run begins: the ``position``-th of ``total``, counted from 1."""
        with self._lock:
            self.run = {"version": version, "side": side}
            self.position, self.total = position, total
            self._last = LiveFigures()

    def end(self, status: str, gates: Mapping[str, int]) -> None:
        """A run was sealed: whether it is valid, and how many of its gates passed, warned and failed."""
        with self._lock:
            self.finished[status] = self.finished.get(status, 0) + 1
            for name, amount in gates.items():
                self.gates[name] = self.gates.get(name, 0) + amount

    def stage(self, name: str) -> None:
        """A new stage begins."""
        with self._lock:
            self.stage_name, self.progress = name, 0.0

    def update(self, fraction: float) -> None:
        """The stage's progress is ``fraction``."""
        with self._lock:
            self.progress = min(1.0, max(0.0, fraction))

    @contextmanager
    def live(self, source: LiveSource) -> Iterator[None]:
        """Serve the figures while the context lasts; afterwards keep the last ones."""
        with self._lock:
            self._sources.append(source)
        try:
            yield
        finally:
            # No scrape may query the load while it is taken down.
            with self._lock:
                self._last = source()
                self._sources.remove(source)

    def collect(self) -> Iterator[Metric]:
        """The complete current state."""
        with self._lock:
            yield from self._where()
            figures = self._sources[-1]() if self._sources else self._last
        yield from _load(figures)
        yield from _host()

    def describe(self) -> list[Metric]:
        """Nothing: prevents a scrape by the registry at registration."""
        return []

    def _where(self) -> Iterator[Metric]:
        yield InfoMetricFamily(PREFIX + "build", "Version of the running chainmark.", {"version": self.version})
        yield InfoMetricFamily(PREFIX + "stage", "Current stage.", {"stage": self.stage_name})
        if self.run:
            yield InfoMetricFamily(PREFIX + "run", "Current run.", self.run)
        yield _gauge("stage_progress_ratio", "Progress of the current stage.", self.progress)
        yield _gauge("run_position", "Number of the current run among the planned ones, from 1.", self.position)
        yield _gauge(
            "runs_planned", "Planned runs of the experiment; the maximum if a decision may end it sooner.", self.total
        )
        yield _labelled(CounterMetricFamily, "runs_finished", "Sealed runs.", "status", self.finished)
        yield _labelled(CounterMetricFamily, "gates", "Gates of the sealed runs.", "status", self.gates)


def _gauge(name: str, reported: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, reported, value=value)


def _labelled(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    reported: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    metric = family(PREFIX + name, reported, labels=[label])
    for key, value in values.items():
        metric.add_metric([key], value)
    return metric


def _load(figures: LiveFigures) -> Iterator[Metric]:
    """Unknown values are omitted: a zero would be a claim."""
    counters = {
        "load_offered": ("Transactions or requests due so far in this run or step.", figures.offered),
        "load_sent": ("Transactions or requests sent.", figures.sent),
        "load_accepted": ("Transactions or requests with a correct response.", figures.accepted),
        "load_failed": ("Transactions or requests that were refused or had an incorrect response.", figures.failed),
        "committed_transactions": ("Transactions in the chain's blocks.", figures.committed),
    }
    gauges = {
        "load_in_flight": ("Transactions or requests without a response so far.", figures.in_flight),
        "load_schedule_lag_seconds": (
            "Time to send the transactions or requests that are due.",
            figures.schedule_lag_s,
        ),
    }
    for name, (counter, value) in counters.items():
        if value is not None:
            yield CounterMetricFamily(PREFIX + name, counter, value=value)
    for name, (counter, amount) in gauges.items():
        if amount is not None:
            yield _gauge(name, counter, amount)
    for name, counter, values in (
        ("node_height_blocks", "Height of a node's last block.", figures.heights),
        ("node_mempool_transactions", "Transactions in a node's mempool.", figures.waiting),
    ):
        if values:
            yield _labelled(GaugeMetricFamily, name, counter, "node", values)


def _host() -> Iterator[Metric]:
    pressure = {item: total / 1e6 for item in ("cpu", "io", "memory") if (total := pressure_total_us(item)) is not None}
    if pressure:
        text = "Time in which at least one task waited for a resource, since the machine started."
        yield _labelled(CounterMetricFamily, "host_pressure_seconds", text, "resource", pressure)
    yield _gauge("host_load1", "Load average of the machine over one minute.", os.getloadavg()[0])


@contextmanager
def exposed(state: ExperimentState, place: str) -> Iterator[str]:
    """Serve a state and the resource use of this process while the context lasts; returns the URL of the page.

    Scrapers that request OpenMetrics get it, others the older text format.

    Raises:
        UsageError: ``place`` is not an address.
        EnvironmentFailure: the address cannot be bound, for example because it is in use.
    """
    host, port = parse_place(place)
    registry = CollectorRegistry()
    registry.register(state)
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise EnvironmentFailure(
            f"the state cannot be exposed on {host}:{port} ({error.strerror or error})",
            "another program may use it; choose another port, e.g. `--expose 127.0.0.1:9465`",
        ) from error
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
