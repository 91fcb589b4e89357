"""The measurements of the load engine in one step, parsed strictly: crates/chainmark-load/src/http/result.rs.

A figure that only one of the two sides has is an error.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from chainmark.capacity.engine import known_failure
from chainmark.core.errors import EnvironmentFailure


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RequestCounts(_Measured):
    """Every request in one class: due = ok + failed + unsent; sent = ok + failed."""

    due: int
    sent: int
    ok: int
    failed: int
    unsent: int

    @model_validator(mode="after")
    def _adds_up(self) -> RequestCounts:
        ended = self.ok + self.failed
        if self.due != ended + self.unsent or self.sent != ended:
            raise EnvironmentFailure(f"the load engine's counts of {self.due} requests do not add up: {self}")
        return self

    def __add__(self, other: RequestCounts) -> RequestCounts:
        return RequestCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in RequestCounts.model_fields}
        )


NO_REQUESTS = RequestCounts(due=0, sent=0, ok=0, failed=0, unsent=0)


class Latencies(_Measured):
    """A histogram and its summary, in seconds.

    Attributes:
        n: number of requests; if zero, the figures are None. Minimum, mean and maximum are exact.
        hdr: the HDR histogram (V2, deflated, base64), from which any share and centile can be computed.
    """

    n: int
    min_s: float | None
    mean_s: float | None
    max_s: float | None
    p50_s: float | None
    p90_s: float | None
    p95_s: float | None
    p99_s: float | None
    p999_s: float | None
    hdr: str


Failure = Annotated[str, AfterValidator(known_failure)]


class ErrorClass(_Measured):
    """Failed requests of the same class; classes beyond the first 200 are counted as `others` of their kind.

    Attributes:
        kind: one of the engine's :data:`.engine.FAILURES`.
        status: the HTTP status, if there was one.
        reported: the members of the body that distinguish errors, by pointer.
        detail: further details.
        example: the server's response to the first of them.
        count: number of requests.
        first_s: when the first ended, from the step's start.
    """

    kind: Failure = Field(alias="class")
    status: int | None
    reported: dict[str, Any]
    detail: str
    example: str
    count: int
    first_s: float


class StepSeries(_Measured):
    """Columns with one value per second of the step, warm-up and draining included.

    Attributes:
        started: requests that were handed to a connection.
        slow: correct responses that took longer than the limit after which a step gives up; 0 without one.
        in_flight, queued: in flight, or due but not yet handed to a connection, at the end of the second.
        p50_s: latency of the requests that ended in the second, failed or not; two digits, as are p99_s and lag_p99_s.
        waited_s: seconds for which the generator's threads waited for a processor; None: the kernel does not report it.
        wake_p99_s: how late a thread's timer, which fires every 10 ms, woke it.
        errors: by kind; only kinds that occurred.
    """

    second: list[int]
    started: list[int]
    ok: list[int]
    slow: list[int]
    failed: list[int]
    in_flight: list[int]
    queued: list[int]
    p50_s: list[float | None]
    p99_s: list[float | None]
    max_s: list[float | None]
    bytes_in: list[int]
    cpu_s: list[float]
    lag_p99_s: list[float | None]
    waited_s: list[float | None]
    wake_p99_s: list[float | None]
    errors: dict[Failure, list[int]]


class Connections(_Measured):
    """Connections that were opened, and attempts that failed, one per address.

    Attributes:
        idle_closed: closed by the server while idle, as the next request on them showed.
        goaway_closed: closed by an HTTP/2 server as announced (GOAWAY without an error).
        repeated: requests that were repeated for either reason.
    """

    opened: int
    failed: int
    idle_closed: int
    goaway_closed: int
    repeated: int


class Records(_Measured):
    """Columns of little-endian bytes, one value per measured request, by due time.

    Attributes:
        due_ns: i64, from the step's start.
        latency_ns: i64, from the due time to the end; -1 if unsent.
        service_ns: i64, from the sending to the end; -1 if unsent.
        request: u32, its index in the order.
        classes: u8, an index into :data:`.engine.RECORD_CLASSES`.
    """

    due_ns: bytes
    latency_ns: bytes
    service_ns: bytes
    request: bytes
    classes: bytes = Field(alias="class")


class SlowRequest(_Measured):
    """One of the slowest measured requests of a step, in nanoseconds from the step's start.

    Attributes:
        latency_ns: from the due time to the end; requests that were never sent have none and are not included.
        request: its index in the order.
        first_byte_ns: when the first byte of a response arrived (with HTTP/2 its head); None: none arrived.
        status: of a complete response.
        number_of_class: an index into :data:`.engine.RECORD_CLASSES`.
    """

    latency_ns: int
    due_ns: int
    request: int
    sent_ns: int
    first_byte_ns: int | None
    end_ns: int
    status: int | None
    number_of_class: int = Field(alias="class")


class PartFigures(_Measured):
    """The window's requests to one endpoint of a mix; ``latency`` of correct responses, errors by kind."""

    counts: RequestCounts
    latency: Latencies
    errors: dict[Failure, int]

    def failed_by(self, kind: str) -> int:
        """The number of failures of this kind."""
        return self.errors.get(kind, 0)


class GeneratorFigures(_Measured):
    """One of the processes that generated the load.

    Attributes:
        lost: why nothing is known of its part, which is counted as failed; "": it completed it.
    """

    threads: int
    cpu_s: float
    wall_s: float
    lost: str

    @property
    def cpu_share(self) -> float:
        """Processor time of its threads over the time available to them."""
        available_s = self.threads * self.wall_s
        return self.cpu_s / available_s if available_s > 0 else 0.0


class Finished(_Measured):
    """The engine's `finish()`; every value is of the window unless stated otherwise.

    Attributes:
        warm_up: the counts of requests that were due or started before the window.
        started_ns: the step's start, wall nanoseconds since 1970.
        window_s: seconds actually measured: giving up and stopping shorten it.
        ended: "time", "gave up" or "stopped".
        latency: of correct responses; from the start (clients) or from the due time (rate).
        latency_all: of all that ended; failed ones with the time until they failed.
        service: of correct responses, from sending to the last byte, connecting included.
        lag: from the due time until the generator handled the request although a connection was free; empty for
            clients.
        wake: how late the timer of the generator's threads, which fires every 10 ms at any load, woke them.
        cpu_s: of the generator's threads, over the whole step.
        generators: the processes that generated the load; one, unless more were requested.
        protocol: "HTTP/1.1" or "HTTP/2".
        server: the server's name in its responses.
        parts: of a mix, by its endpoints.
        records: of single requests, or None.
        slowest: the slowest requests, the slowest first; as many as were requested.
    """

    counts: RequestCounts
    warm_up: RequestCounts
    started_ns: int
    window_s: float
    ended: str
    latency: Latencies
    latency_all: Latencies
    service: Latencies
    lag: Latencies
    wake: Latencies
    errors: tuple[ErrorClass, ...] = Field(alias="classes")
    warm_up_errors: tuple[ErrorClass, ...] = Field(alias="warm_up_classes")
    series: StepSeries
    connections: Connections
    bytes_in: int
    bytes_out: int
    cpu_s: float
    wall_s: float
    threads: int
    generators: tuple[GeneratorFigures, ...]
    protocol: str
    server: str | None
    parts: tuple[PartFigures, ...]
    records: Records | None
    records_left_out: int
    slowest: tuple[SlowRequest, ...] = ()
