"""A simulated server whose capacity is known from queueing theory. Tests of the search use it as a reference.

It has several workers and serves requests in the order of arrival. Its results have the format of the load engine's
`finish()`.
"""

from __future__ import annotations

import base64
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chainmark.capacity.engine import RECORD_CLASSES, RIGHT, UNSENT
from chainmark.capacity.model import Endpoint, LevelKind, Request, Step, StepRequest, StepResult, Target
from chainmark.capacity.search import Ask
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge

FloatArray = npt.NDArray[np.float64]
ENDPOINT = Endpoint("block", "/block", (Request("POST", "/block", body="{}"),), ("/code",))
TARGET = Target("here", "http://127.0.0.1:1")


class Latencies:
    """Exact latencies with the interface of the native histogram."""

    def __init__(self, text: str) -> None:
        self.values = np.frombuffer(base64.b64decode(text), dtype=np.float64)

    def count_over(self, seconds: float) -> int:
        """Number of slower latencies."""
        return int((self.values > seconds).sum())

    def quantile(self, fraction: float) -> float:
        """Quantile by nearest rank."""
        rank = max(1, math.ceil(fraction * len(self.values) - 1e-9))
        return float(np.partition(self.values, rank - 1)[rank - 1])


def histogram(values: npt.ArrayLike) -> dict[str, Any]:
    """A histogram in the engine's format."""
    array = np.asarray(values, dtype=np.float64)
    names = {"p50_s": 50, "p90_s": 90, "p95_s": 95, "p99_s": 99, "p999_s": 99.9}
    centiles = np.percentile(array, list(names.values()), method="inverted_cdf") if len(array) else [None] * 5
    return {
        "n": len(array),
        "min_s": float(array.min()) if len(array) else None,
        "mean_s": float(array.mean()) if len(array) else None,
        "max_s": float(array.max()) if len(array) else None,
        **{name: value and float(value) for name, value in zip(names, centiles, strict=True)},
        "hdr": base64.b64encode(array.tobytes()).decode(),
    }


def _series(ok: list[int], slow: list[int]) -> dict[str, Any]:
    nothing, unknown = [0] * len(ok), [None] * len(ok)
    counts = dict.fromkeys(("failed", "in_flight", "queued", "bytes_in", "cpu_s"), nothing)
    times = dict.fromkeys(("p50_s", "p99_s", "max_s", "lag_p99_s", "waited_s", "wake_p99_s"), unknown)
    return {"second": list(range(len(ok))), "started": ok, "ok": ok, "slow": slow, **counts, **times, "errors": {}}


def finished(
    latencies: npt.ArrayLike,
    window_s: float = 10.0,
    failed: int = 0,
    unsent: int = 0,
    *,
    answered: list[int] | None = None,
    slow: list[int] | None = None,
    lag_s: npt.ArrayLike = (),
    cpu_s: float = 0.1,
    ended: str = "time",
) -> dict[str, Any]:
    """The engine's `finish()` of a step with these successful responses.

    Args:
        latencies: of the successful responses, in seconds.
        window_s: length of the measured window.
        failed: number of responses with status 500.
        unsent: number of requests that were never sent.
        answered: successful responses per second from the start of the warm-up; None: the series is empty.
        slow: those of them that exceeded the latency limit, per second; None: 0.
        lag_s: delays of the generator.
        cpu_s: CPU time of the generator, which has one thread.
        ended: reason for the end, as the engine reports it.

    """
    values = np.asarray(latencies, dtype=np.float64)
    ok = len(values)
    counts = {"due": ok + failed + unsent, "sent": ok + failed, "ok": ok, "failed": failed, "unsent": unsent}
    refused = {
        "class": "status", "status": 500, "reported": {"/code": 12}, "detail": "", "example": "", "count": failed,
        "first_s": 1.5,
    }  # fmt: skip
    per_second = answered or []
    return {
        "counts": counts,
        "warm_up": {"due": 0, "sent": 0, "ok": 0, "failed": 0, "unsent": 0},
        "started_ns": 1_700_000_000_000_000_000,
        "window_s": window_s,
        "ended": ended,
        "latency": histogram(values),
        "latency_all": histogram(values),
        "service": histogram(values),
        "lag": histogram(lag_s),
        "wake": histogram(()),
        "classes": [refused] if failed else [],
        "warm_up_classes": [],
        "series": _series(per_second, slow or [0] * len(per_second)),
        "connections": {"opened": 1, "failed": 0, "idle_closed": 0, "goaway_closed": 0, "repeated": 0},
        "bytes_in": 300 * ok,
        "bytes_out": 200 * ok,
        "cpu_s": cpu_s,
        "wall_s": window_s,
        "threads": 1,
        "generators": [{"threads": 1, "cpu_s": cpu_s, "wall_s": window_s, "lost": ""}],
        "protocol": "HTTP/1.1",
        "server": None,
        "parts": [],
        "records": None,
        "records_left_out": ok,
    }


def recorded(
    due_s: npt.ArrayLike,
    latency_s: npt.ArrayLike,
    kinds: npt.ArrayLike = RIGHT,
    requests: npt.ArrayLike = 0,
    window_s: float = 10.0,
) -> dict[str, Any]:
    """The engine's `finish()` of a step with a record of every request.

    Args:
        due_s: when the requests were due, in seconds from the start of the step.
        latency_s: their latencies, also of failed requests.
        kinds: the class of each request, or of all of them.
        requests: the index of each request in the order, or of all of them.
        window_s: length of the measured window.

    """
    due_ns = np.round(np.asarray(due_s) * 1e9).astype("<i8")
    every, indices = (np.broadcast_to(np.asarray(value), len(due_ns)) for value in (kinds, requests))
    latencies = np.where(every == UNSENT, -1e-9, latency_s)
    latency_ns = np.round(latencies * 1e9).astype("<i8").tobytes()
    counts = Counter(str(kind) for kind in every)
    ok, unsent = counts.pop(RIGHT, 0), counts.pop(UNSENT, 0)
    result = finished(latencies[every == RIGHT], window_s, len(due_ns) - ok - unsent, unsent)
    classes = [
        result["classes"][0] | {"class": kind, "status": 500 if kind == "status" else None, "count": count}
        for kind, count in sorted(counts.items())
    ]
    records = {
        "due_ns": due_ns.tobytes(),
        "latency_ns": latency_ns,
        "service_ns": latency_ns,
        "request": indices.astype("<u4").tobytes(),
        "class": np.array([RECORD_CLASSES.index(kind) for kind in every], "u1").tobytes(),
    }
    return result | {"classes": classes, "records": records, "records_left_out": 0}


Service = Literal["constant", "exponential"]


@dataclass
class Server:
    """A server with k workers, each of which serves one request at a time.

    Attributes:
        workers: k.
        service_s: mean service time.
        service: distribution of the service time.
        schedule: of the arrivals in an open loop.
        stall: share of the steps in which the server stalls for 3 s.

    """

    workers: int
    service_s: float
    service: Service = "constant"
    schedule: Literal["even", "poisson"] = "even"
    stall: float = 0.0
    seed: int = 0
    sla: Sla = field(default_factory=Sla)
    warm_up_s: float = 1.0
    duration_s: float = 10.0
    lengthening: float = 4.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def measure(self, ask: Ask) -> Step:
        """The callback of `search`: measure and judge one step."""
        duration_s = self.duration_s * (self.lengthening if ask.extended else 1.0)
        order = StepRequest(TARGET, ENDPOINT, ask.level, self.warm_up_s, duration_s)
        result = StepResult.of(order, self.run(order))
        return judge(result, self.sla, ask.phase, ask.extended, Latencies)

    def run(self, order: StepRequest) -> dict[str, Any]:
        """The `finish()` of one step."""
        end_s = order.warm_up_s + order.duration_s
        if order.level.kind is LevelKind.RATE:
            starts, ends = self._open(order.level.value, end_s)
        else:
            starts, ends = self._closed(round(order.level.value), end_s)
        if self.stall and self.random.random() < self.stall:
            # Requests that are in progress or arrive during the stall complete after it.
            stood = (starts < 5.0) & (ends > 2.0)
            ends = np.where(stood, np.maximum(ends, 5.0), ends)
        inside = (starts >= order.warm_up_s) & (starts < end_s)
        latencies = (ends - starts)[inside]
        late = (ends < end_s) & (ends - starts > self.sla.p99_s)
        slow = np.bincount(ends[late].astype(int), minlength=math.ceil(end_s))
        answered = np.bincount(ends[ends < end_s].astype(int), minlength=math.ceil(end_s))
        return finished(
            latencies[latencies <= order.timeout_s],
            order.duration_s,
            failed=int((latencies > order.timeout_s).sum()),
            answered=[int(count) for count in answered],
            slow=[int(count) for count in slow],
        )

    def _times(self, n: int) -> FloatArray:
        if self.service == "constant":
            return np.full(n, self.service_s)
        return self.random.exponential(self.service_s, n)

    def _open(self, rate_per_s: float, end_s: float) -> tuple[FloatArray, FloatArray]:
        n = math.ceil(rate_per_s * end_s)
        gaps = np.full(n, 1.0 / rate_per_s)
        if self.schedule == "poisson":
            gaps = self.random.exponential(1.0 / rate_per_s, n)
        due = np.cumsum(gaps) - gaps[0]
        due = due[due < end_s]
        return due, _served(due, self._times(len(due)), self.workers)

    def _closed(self, clients: int, end_s: float) -> tuple[FloatArray, FloatArray]:
        ready, free = [0.0] * clients, [0.0] * self.workers
        starts: list[float] = []
        ends: list[float] = []
        times: Iterator[float] = iter(())
        while ready[0] < end_s:
            service_s = next(times, None)
            if service_s is None:
                times = iter(self._times(4096).tolist())
                service_s = next(times)
            end = max(ready[0], free[0]) + service_s
            starts.append(ready[0])
            ends.append(end)
            heapq.heapreplace(free, end)
            heapq.heapreplace(ready, end)
        return np.array(starts), np.array(ends)


def _served(due: FloatArray, service: FloatArray, workers: int) -> FloatArray:
    """When each request ends. With constant times every k-th request has the same worker (Lindley's recursion)."""
    if workers == 1 or np.ptp(service) == 0.0:
        ends = np.empty_like(due)
        for first in range(workers):
            mine = slice(first, None, workers)
            done = np.cumsum(service[mine])
            ends[mine] = done + np.maximum.accumulate(due[mine] - done + service[mine])
        return ends
    free = [0.0] * workers
    end_times = []
    for at, length in zip(due.tolist(), service.tolist(), strict=True):
        end = max(at, free[0]) + length
        heapq.heapreplace(free, end)
        end_times.append(end)
    return np.array(end_times)


# Results of queueing theory


def highest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The highest value that satisfies a condition, if the condition holds up to a limit and fails above it."""
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def mm_c_slower(rate: float, workers: int, service_s: float, limit_s: float) -> float:
    """Share of the responses of M/M/c slower than the limit: Erlang C, then exponential wait and service."""
    load = rate * service_s
    if load >= workers:
        return 1.0
    full = load**workers / math.factorial(workers) * workers / (workers - load)
    waits = full / (sum(load**i / math.factorial(i) for i in range(workers)) + full)
    drain, serve = (workers - load) / service_s, 1.0 / service_s
    if math.isclose(drain, serve):
        both = (1.0 + serve * limit_s) * math.exp(-serve * limit_s)
    else:
        both = (drain * math.exp(-serve * limit_s) - serve * math.exp(-drain * limit_s)) / (drain - serve)
    return (1.0 - waits) * math.exp(-serve * limit_s) + waits * both


def md_1_slower(rate: float, service_s: float, limit_s: float) -> float:
    """Share of the responses of M/D/1 slower than the limit, by Erlang's alternating sum (1909)."""
    load = rate * service_s
    if load >= 1.0:
        return 1.0
    wait_s = limit_s - service_s
    with localcontext() as context:
        context.prec = 80
        arrivals, total = Decimal(rate), Decimal(0)
        for turn in range(int(wait_s / service_s + 1e-9) + 1):
            over = arrivals * (Decimal(turn) * Decimal(service_s) - Decimal(wait_s))
            total += (over**turn if turn else Decimal(1)) / math.factorial(turn) * (-over).exp()
        return 1.0 - float((1 - arrivals * Decimal(service_s)) * total)


def closed_exponential_slower(clients: int, workers: int, service_s: float, limit_s: float) -> float:
    """Share of the responses of c clients without pauses slower than the limit.

    A new request finds the other c - 1 requests. It waits until c - k requests of k busy workers end (Erlang), and is
    then served.

    """
    waits = clients - workers
    serve = 1.0 / service_s
    if waits <= 0:
        return math.exp(-serve * limit_s)
    grid = np.linspace(0.0, limit_s, 20_001)
    pace = workers * serve
    log_density = waits * math.log(pace) + (waits - 1) * np.log(np.maximum(grid, 1e-300)) - pace * grid
    density = np.exp(log_density - math.lgamma(waits))
    waited = float(np.trapezoid(density, grid))
    return 1.0 - waited + float(np.trapezoid(density * np.exp(-serve * (limit_s - grid)), grid))
