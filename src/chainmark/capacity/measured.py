"""What the load engine measured in one step, read once and whole: crates/chainmark-load/src/http/result.rs.

A figure that the engine has and this does not, or the other way round, is an error.
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
            raise EnvironmentFailure(f"the load engine's books of {self.due} requests do not add up: {self}")
        return self

    def __add__(self, other: RequestCounts) -> RequestCounts:
        return RequestCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in RequestCounts.model_fields}
        )


NO_REQUESTS = RequestCounts(due=0, sent=0, ok=0, failed=0, unsent=0)


class Latencies(_Measured):
    """A histogram's summary, in seconds, and itself.

    Attributes:
        n: requests in it; without any, the figures are None. Minimum, mean and maximum are exact.
        hdr: the HDR histogram (V2, deflated, base64), from which any share and centile can be had again.
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
    """Failed requests that look the same; what is more than 200 such classes is counted as `others` of its kind.

    Attributes:
        kind: one of the engine's :data:`.engine.FAILURES`.
        status: the HTTP status, if there was one.
        told: the members of the body that tell errors apart, by pointer.
        detail: what else is known.
        example: what the server said to the first of them.
        count: how many.
        first_s: when the first ended, from the step's begin.
    """

    kind: Failure = Field(alias="class")
    status: int | None
    told: dict[str, Any]
    detail: str
    example: str
    count: int
    first_s: float


class StepSeries(_Measured):
    """Columns, one value a second of the step, warm-up and draining included.

    Attributes:
        started: requests that were handed to a connection.
        in_flight, queued: under way, or due but not yet handed to a connection, at the second's end.
        p50_s: latency of what ended in the second, failed or not; of two digits, as are p99_s and lag_p99_s.
        waited_s: seconds for which the generator's threads waited for a processor; None: the kernel does not tell.
        wake_p99_s: how late a thread looked at its clock, which it does every 10 ms.
        errors: by kind; only those that were met.
    """

    second: list[int]
    started: list[int]
    ok: list[int]
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
    """Connections that were opened, and attempts that failed, each address counted.

    Attributes:
        idle_closed: ended by the server while they rested, as the next request on them showed.
        told_to_go: ended by an HTTP/2 server as it had announced (GOAWAY without an error).
        repeated: requests that were sent once more for either.
    """

    opened: int
    failed: int
    idle_closed: int
    told_to_go: int
    repeated: int


class Records(_Measured):
    """Columns of little-endian bytes, one value per measured request, by due time.

    Attributes:
        due_ns: i64, from the step's begin.
        latency_ns: i64, from the due time to the end; -1 if unsent.
        service_ns: i64, from the sending to the end; -1 if unsent.
        request: u32, its place in the order.
        classes: u8, a place in :data:`.engine.RECORD_CLASSES`.
    """

    due_ns: bytes
    latency_ns: bytes
    service_ns: bytes
    request: bytes
    classes: bytes = Field(alias="class")


class SlowRequest(_Measured):
    """One of the slowest measured requests of a step, in nanoseconds from the step's begin.

    Attributes:
        latency_ns: from the due time to the end; what was never sent has none, and is not among them.
        request: its place in the order.
        first_byte_ns: when the first byte of an answer was seen (with HTTP/2 its head); None: none came.
        status: of a complete answer.
        number_of_class: a place in :data:`.engine.RECORD_CLASSES`.
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
    """What became of the window's requests to one endpoint of a mix; ``latency`` of right answers, errors by kind."""

    books: RequestCounts
    latency: Latencies
    errors: dict[Failure, int]

    def failed_by(self, kind: str) -> int:
        """How many failed so."""
        return self.errors.get(kind, 0)


class GeneratorFigures(_Measured):
    """One of the processes that made the load.

    Attributes:
        lost: why nothing is known of its part, which is counted as failed; "": it made it.
    """

    threads: int
    cpu_s: float
    wall_s: float
    lost: str

    @property
    def cpu_share(self) -> float:
        """Processor time of its threads over the time they had."""
        available_s = self.threads * self.wall_s
        return self.cpu_s / available_s if available_s > 0 else 0.0


class Finished(_Measured):
    """The engine's `finish()`; everything is of the window unless said otherwise.

    Attributes:
        warm_up: the books of what was due or started before the window.
        started_ns: the step's begin, wall nanoseconds since 1970.
        window_s: measured seconds that were really run: giving up and stopping shorten it.
        ended: "time", "gave up" or "stopped".
        latency: of right answers; from the start (clients) or from the due time (rate).
        latency_all: of all that ended, failed ones at the time they took.
        service: of right answers, from sending to the last byte, connecting included.
        lag: from the due time until the generator took the request up though a connection was free; empty for clients.
        wake: how late the generator's threads looked at their clock, which they do every 10 ms, whatever the load.
        cpu_s: of the generator's threads, over the whole step.
        generators: those that made the load; one, unless more were asked for.
        protocol: "HTTP/1.1" or "HTTP/2".
        server: what the server calls itself in its answers.
        parts: of a mix, by its endpoints.
        records: of single requests, or None.
        slowest: the slowest requests, the slowest first; as many as were asked for.
    """

    books: RequestCounts
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
