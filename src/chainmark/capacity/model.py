"""What a load test is made of: requests, endpoints, targets, levels, and what one step of load gave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

from chainmark.core.errors import EnvironmentFailure


class LevelKind(StrEnum):
    """What is raised from step to step."""

    CLIENTS = "clients"
    RATE = "rate"


class Phase(StrEnum):
    """Why a step was run."""

    PROBE = "probe"
    BISECT = "bisect"
    CONFIRM = "confirm"
    FIXED = "fixed"


# The kind of requests that the machine which makes the load had no room for; the server was not asked.
GENERATOR_LIMIT = "generator"


class Outcome(StrEnum):
    """What a step says about the server."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    GENERATOR_LIMITED = "generator-limited"


class Condition(StrEnum):
    """What a step is judged by."""

    P99 = "p99"
    P95 = "p95"
    ERRORS = "errors"
    ACHIEVED = "achieved"
    SAMPLES = "samples"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Request:
    """One HTTP request, and what is right as its answer (the engine's `expect`)."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """What is measured by itself.

    Attributes:
        id: a metric's first part, `[a-z0-9_]`: "account_balance".
        label: as a report calls it: "/account/balance".
        requests: its corpus, at least one.
        error_pointers: JSON pointers of the members that tell its errors apart.
    """

    id: str
    label: str
    requests: tuple[Request, ...]
    error_pointers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tls:
    """How the server's certificate is judged."""

    ca_file: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True)
class Target:
    """A server under test."""

    name: str
    url: str
    tls: Tls = Tls()


@dataclass(frozen=True, order=True)
class Level:
    """So many clients, each with one request under way, or so many requests due per second."""

    kind: LevelKind
    value: float

    def __str__(self) -> str:
        if self.kind is LevelKind.RATE:
            return f"{self.value:,.6g}/s"
        return f"{self.value:,.0f} client{'' if self.value == 1 else 's'}"


@dataclass(frozen=True)
class GiveUp:
    """When a step need not go on: so many measured requests were slower than `slow_s`, or failed."""

    slow_s: float
    slow: int
    failed: int


@dataclass(frozen=True)
class StepOrder:
    """One step, whole; times in seconds, meanings as in the engine's order."""

    target: Target
    endpoint: Endpoint
    level: Level
    warm_up_s: float
    duration_s: float
    drain_s: float = 5.0
    timeout_s: float = 10.0
    schedule: Literal["even", "poisson"] = "even"
    connections: int = 1024
    requests_per_connection: int = 0
    drawing: Literal["sequence", "random"] = "sequence"
    give_up: GiveUp | None = None
    max_records: int = 0
    threads: int = 0
    seed: int = 1

    def to_json(self) -> str:
        """The order as the engine reads it."""
        order = {
            "url": self.target.url,
            "requests": [
                {
                    "method": request.method,
                    "path": request.path,
                    "headers": [list(header) for header in request.headers],
                    "body": request.body,
                    "expect": dict(request.expect),
                }
                for request in self.endpoint.requests
            ],
            "order": self.drawing,
            "mode": self._mode(),
            "error_pointers": list(self.endpoint.error_pointers),
            "give_up": asdict(self.give_up) if self.give_up else None,
            "tls": asdict(self.target.tls),
        }
        same = ("warm_up_s", "duration_s", "drain_s", "timeout_s", "requests_per_connection", "max_records")
        return json.dumps({**order, **{key: getattr(self, key) for key in (*same, "threads", "seed")}})

    def _mode(self) -> dict[str, Any]:
        if self.level.kind is LevelKind.CLIENTS:
            return {"closed": {"clients": round(self.level.value)}}
        return {
            "open": {
                "rate_per_s": self.level.value,
                "schedule": self.schedule,
                "connections": self.connections,
            }
        }


@dataclass(frozen=True)
class Books:
    """Every request in one class: due = ok + failed + unsent."""

    due: int
    sent: int
    ok: int
    failed: int
    unsent: int

    @classmethod
    def of(cls, entry: Mapping[str, int]) -> Self:
        """From the engine's entry.

        Raises:
            EnvironmentFailure: they do not add up.
        """
        books = cls(**{key: int(entry[key]) for key in ("due", "sent", "ok", "failed", "unsent")})
        if books.due != books.ok + books.failed + books.unsent:
            raise EnvironmentFailure(f"the load engine's books of {books.due} requests do not add up: {books}")
        return books

    def __add__(self, other: Books) -> Books:
        return Books(
            due=self.due + other.due,
            sent=self.sent + other.sent,
            ok=self.ok + other.ok,
            failed=self.failed + other.failed,
            unsent=self.unsent + other.unsent,
        )


NO_REQUESTS = Books(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Latencies:
    """A histogram's summary, in seconds, and itself.

    Attributes:
        n: requests in it; without any, the figures are None.
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

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """From the engine's entry; the figures of no requests are none, whatever stands there."""
        n = int(entry["n"])
        names = ("min_s", "mean_s", "max_s", "p50_s", "p90_s", "p95_s", "p99_s", "p999_s")
        figures = {name: float(entry[name]) if n and entry.get(name) is not None else None for name in names}
        return cls(n=n, hdr=str(entry["hdr"]), **figures)


@dataclass(frozen=True)
class ErrorClass:
    """Failed requests of one kind.

    Attributes:
        kind: "status", "answer", "connect", "reset", "closed", "timeout", "protocol", "tls", "wrong answer", or
            "generator": the machine that makes the load had no room for another connection.
        status: the HTTP status, if there was one.
        told: the members of the body that tell errors apart, by pointer.
        detail: what else is known.
        example: what the server said to the first of them.
        count: how many.
        first_s: when the first ended, from the step's begin.
    """

    kind: str
    status: int | None
    told: Mapping[str, Any]
    detail: str
    example: str
    count: int
    first_s: float

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """From the engine's entry."""
        return cls(
            kind=str(entry["class"]),
            status=entry.get("status"),
            told=dict(entry.get("told") or {}),
            detail=str(entry.get("detail") or ""),
            example=str(entry.get("example") or ""),
            count=int(entry["count"]),
            first_s=float(entry["first_s"]),
        )


@dataclass(frozen=True)
class StepResult:
    """What one step gave: the engine's `finish()` with the order it belongs to.

    Attributes:
        warm_up: the books of what was due or started before the window.
        window_s: measured seconds that were really run.
        ended: "time", "gave up" or "stopped".
        latency: of right answers; from the start (clients) or from the due time (rate).
        latency_all: of all that ended, failed ones at the time they took.
        service: from sending to the last byte.
        lag: from the due time until the generator took the request up; empty for clients.
        series: columns by name, one entry a second, from the begin of the warm-up on.
        records: columns of single requests, or None.
    """

    endpoint: str
    level: Level
    started_ns: int
    warm_up_s: float
    window_s: float
    ended: str
    books: Books
    warm_up: Books
    latency: Latencies
    latency_all: Latencies
    service: Latencies
    lag: Latencies
    errors: tuple[ErrorClass, ...]
    series: Mapping[str, Any]
    connections: Mapping[str, int]
    bytes_in: int
    bytes_out: int
    cpu_s: float
    wall_s: float
    threads: int
    records: Mapping[str, bytes] | None = None
    records_left_out: int = 0

    @classmethod
    def of(cls, order: StepOrder, finished: Mapping[str, Any]) -> Self:
        """From the engine's `finish()`.

        Raises:
            EnvironmentFailure: its sums do not add up.
        """
        result = cls(
            endpoint=order.endpoint.id,
            level=order.level,
            started_ns=int(finished["started_ns"]),
            warm_up_s=order.warm_up_s,
            window_s=float(finished["window_s"]),
            ended=str(finished["ended"]),
            books=Books.of(finished["books"]),
            warm_up=Books.of(finished["warm_up"]),
            latency=Latencies.of(finished["latency"]),
            latency_all=Latencies.of(finished["latency_all"]),
            service=Latencies.of(finished["service"]),
            lag=Latencies.of(finished["lag"]),
            errors=tuple(ErrorClass.of(entry) for entry in finished["classes"]),
            series=finished["series"],
            connections=finished["connections"],
            bytes_in=int(finished["bytes_in"]),
            bytes_out=int(finished["bytes_out"]),
            cpu_s=float(finished["cpu_s"]),
            wall_s=float(finished["wall_s"]),
            threads=int(finished["threads"]),
            records=finished.get("records"),
            records_left_out=int(finished.get("records_left_out") or 0),
        )
        result._check()
        return result

    def _check(self) -> None:
        classed = sum(error.count for error in self.errors)
        if classed != self.books.failed:
            raise EnvironmentFailure(
                f"the load engine classed {classed} of {self.books.failed} failed requests at {self.level}"
            )
        if self.latency.n != self.books.ok:
            raise EnvironmentFailure(
                f"the load engine's histogram holds {self.latency.n} of {self.books.ok} right answers at {self.level}"
            )

    @property
    def not_asked(self) -> int:
        """Failed requests that met a limit of the generator's machine, and not the server."""
        return sum(error.count for error in self.errors if error.kind == GENERATOR_LIMIT)

    @property
    def ok_per_s(self) -> float:
        """Right answers per second of the window."""
        return self.books.ok / self.window_s if self.window_s > 0 else 0.0

    @property
    def due_per_s(self) -> float:
        """Requests due (rate) or started (clients) per second of the window."""
        return self.books.due / self.window_s if self.window_s > 0 else 0.0

    @property
    def generator_cpu_share(self) -> float:
        """Processor time of the generator's threads over the time they had."""
        available_s = self.threads * self.wall_s
        return self.cpu_s / available_s if available_s > 0 else 0.0

    def achieved_share(self) -> float | None:
        """What was answered in the window's whole seconds over what was due in as many; None if nothing was due.

        Answers that came while draining do not count: an overloaded server works its backlog off after the window.
        A window without a whole second is judged by its books: all that was sent.
        """
        if not self.books.due:
            return None
        seconds: Sequence[int] = self.series.get("second", ())
        end_s = self.warm_up_s + self.window_s
        whole = [i for i, second in enumerate(seconds) if second >= self.warm_up_s and second + 1 <= end_s + 1e-9]
        if not whole:
            return (self.books.ok + self.books.failed) / self.books.due
        answered = sum(self.series["ok"][i] + self.series["failed"][i] for i in whole)
        return float(answered) / (self.due_per_s * len(whole))


@dataclass(frozen=True)
class ConditionResult:
    """One condition of a step.

    Attributes:
        measured: in the condition's unit (seconds, share, requests); None where it is not estimable.
        limit: what it is held against, in the same unit.
        count: requests that speak against it: slower than the limit, failed.
        n: of so many.
        low: the 95 % interval of the share (of the slower, the failed, the achieved), where there is one.
        high: likewise.
        outcome: pass, fail or inconclusive.
        met: what the point estimate alone says.
        note: why there is no figure, or which of two limits it was.
    """

    name: Condition
    measured: float | None
    limit: float
    outcome: Outcome
    met: bool
    count: int | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def share(self) -> float | None:
        """Of the requests that speak against it."""
        return self.count / self.n if self.count is not None and self.n else None


@dataclass(frozen=True)
class Step:
    """A step of load and its judgement.

    Attributes:
        outcome: what could be shown.
        leaning: what the point estimates say where nothing could be shown; otherwise the outcome. Never inconclusive.
        reason: the condition that ended it, if it did not pass.
        lengthened: it was run longer because a shorter one had been inconclusive.
        partial: it was interrupted, and decides nothing.
    """

    result: StepResult
    phase: Phase
    limits: tuple[ConditionResult, ...]
    outcome: Outcome
    leaning: Outcome
    reason: Condition | None
    lengthened: bool = False
    partial: bool = False

    @property
    def level(self) -> Level:
        """What was asked of the server."""
        return self.result.level

    @property
    def endpoint(self) -> str:
        """Whose step it is."""
        return self.result.endpoint

    def condition(self, name: Condition) -> ConditionResult | None:
        """The named condition, if the agreement has it."""
        return next((limit for limit in self.limits if limit.name is name), None)
