"""What a load test is made of: requests, endpoints, targets, levels, and what one step of load gave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import ValidationError

from chainmark.capacity.access import NOBODY, Access
from chainmark.capacity.engine import GENERATOR_LIMIT, IDLE_CLOSE, UNANSWERED
from chainmark.capacity.measured import Finished
from chainmark.capacity.service_level import Sla
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, InternalError

# Before the path of a socket in the file system.
UNIX = "unix:"
HttpVersion = Literal["1.1", "2"]
HTTP_1: HttpVersion = "1.1"
HTTP_2: HttpVersion = "2"
# A server that has answered nothing for so long may be gone.
SILENCE_S = 2.0


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
    RAMP = "ramp"
    SPIKE = "spike"


class StepOutcome(StrEnum):
    """What a step says about the server."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    GENERATOR_LIMITED = "generator-limited"


class StepCondition(StrEnum):
    """What a step is judged by."""

    P99 = "p99"
    P95 = "p95"
    ERRORS = "errors"
    ACHIEVED = "achieved"
    SAMPLES = "samples"
    GENERATOR = "generator"
    WAITED = "waited"


@dataclass(frozen=True)
class Request:
    """One HTTP request, and what is right as its answer (the engine's `expect`).

    Attributes:
        repeatable: whether the server may be asked twice; None: as HTTP says of its method.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)
    repeatable: bool | None = None


@dataclass(frozen=True)
class MixPart:
    """One endpoint of a mix.

    Attributes:
        weight: how often it is asked, in relation to the others' weights.
        requests: how many of the mix's requests are its own; the parts' lie one after the other.
        sla: what it is held to within the mix.
    """

    id: str
    label: str
    weight: float
    requests: int
    sla: Sla


@dataclass(frozen=True)
class Endpoint:
    """What is measured by itself.

    Attributes:
        id: a metric's first part, `[a-z0-9_]`: "account_balance".
        label: as a report calls it: "/account/balance".
        requests: its corpus, at least one.
        error_pointers: JSON pointers of the members that tell its errors apart.
        parts: of a mix, its endpoints.
        templates: methods and paths with `{names}` for what differs from request to request, where it has such.
    """

    id: str
    label: str
    requests: tuple[Request, ...]
    error_pointers: tuple[str, ...] = ()
    parts: tuple[MixPart, ...] = ()
    templates: tuple[tuple[str, str], ...] = ()

    @property
    def rarest_share(self) -> float:
        """Of its requests, those to the endpoint that is asked least; 1 where it is one."""
        weights = [part.weight for part in self.parts]
        return min(weights) / sum(weights) if weights else 1.0


@dataclass(frozen=True)
class Tls:
    """How the server's certificate is judged."""

    ca_file: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True)
class Target:
    """A server under test.

    Attributes:
        url: without anything secret; ``unix:/path`` of a socket in the file system.
        access: what lets its requests in.
        http_version: what it is asked in.
    """

    name: str
    url: str
    tls: Tls = Tls()
    access: Access = field(default=NOBODY, compare=False, repr=False)
    http_version: HttpVersion = HTTP_1

    @property
    def socket_path(self) -> str:
        """Of a socket in the file system; "" of a host."""
        return self.url.removeprefix(UNIX) if self.url.startswith(UNIX) else ""

    @property
    def connected_url(self) -> str:
        """Where connections go: to the server, or to the proxy before it."""
        return self.access.way.url if self.access.way else self.url

    @property
    def base_url(self) -> str:
        """The URL that a request's path follows; a socket's host is called as curl calls it."""
        return "http://localhost" if self.socket_path else self.url


@dataclass(frozen=True, order=True)
class LoadLevel:
    """So many clients, each with one request under way, or so many requests due per second."""

    kind: LevelKind
    value: float

    def __str__(self) -> str:
        if self.kind is LevelKind.RATE:
            return f"{units.tidy(self.value)}/s"
        return units.plural(round(self.value), "client")


@dataclass(frozen=True)
class GiveUp:
    """When a step need not go on: so many measured requests were slower than `slow_s`, or failed."""

    slow_s: float
    slow: int
    failed: int


@dataclass(frozen=True)
class StepRequest:
    """One step, whole; times in seconds, meanings as in the engine's order.

    Attributes:
        course: seconds after the warm-up and the level then, where it changes; ``level`` is the most of it.
    """

    target: Target
    endpoint: Endpoint
    level: LoadLevel
    warm_up_s: float
    duration_s: float
    drain_s: float = 5.0
    timeout_s: float = 10.0
    schedule: Literal["even", "poisson"] = "even"
    connections: int = 1024
    requests_per_connection: int = 0
    streams: int = 1
    request_coding: Literal["gzip", "br"] | None = None
    drawing: Literal["sequence", "random"] = "sequence"
    think_s: float = 0.0
    course: tuple[tuple[float, float], ...] = ()
    give_up: GiveUp | None = None
    max_records: int = 0
    max_slowest: int = 0
    threads: int = 0
    seed: int = 1

    def to_json(self) -> str:
        """The order as the engine reads it."""
        order = {
            "url": self.target.url,
            "headers": [list(header) for header in self.target.access.values()],
            "requests": [
                {
                    "method": request.method,
                    "path": request.path,
                    "headers": [list(header) for header in request.headers],
                    "body": request.body,
                    "repeatable": request.repeatable,
                    "expect": dict(request.expect),
                }
                for request in self.endpoint.requests
            ],
            "parts": [{"weight": part.weight, "requests": part.requests} for part in self.endpoint.parts],
            "protocol": self.target.http_version,
            # Only HTTP/2 shares connections.
            "streams": self.streams if self.target.http_version == HTTP_2 else 1,
            "request_coding": self.request_coding,
            "order": self.drawing,
            "mode": self._mode(),
            "course": [list(point) for point in self.course],
            "error_pointers": list(self.endpoint.error_pointers),
            "give_up": asdict(self.give_up) if self.give_up else None,
            "tls": {**asdict(self.target.tls), **self.target.access.files()},
            "proxy": proxy.to_order() if (proxy := self.target.access.way) else None,
        }
        same = ("warm_up_s", "duration_s", "drain_s", "timeout_s", "requests_per_connection", "max_records")
        return json.dumps({**order, **{key: getattr(self, key) for key in (*same, "max_slowest", "threads", "seed")}})

    def _mode(self) -> dict[str, Any]:
        if self.level.kind is LevelKind.CLIENTS:
            thinks = {"think_s": self.think_s} if self.think_s else {}
            return {"closed": {"clients": round(self.level.value), **thinks}}
        return {
            "open": {
                "rate_per_s": self.level.value,
                "schedule": self.schedule,
                "connections": self.connections,
            }
        }


class StepResult(Finished):
    """What one step gave: what the engine measured, with what it was asked for."""

    endpoint: str
    level: LoadLevel
    warm_up_s: float

    @classmethod
    def of(cls, order: StepRequest, finished: Mapping[str, Any]) -> Self:
        """From the engine's `finish()`.

        Raises:
            EnvironmentFailure: its sums do not add up.
            InternalError: it holds other figures than :class:`.measured.Finished`.
        """
        asked = {"endpoint": order.endpoint.id, "level": order.level, "warm_up_s": order.warm_up_s}
        # A server may repeat what it was asked with in its errors.
        repeated = ("classes", "warm_up_classes", "server")
        reported = {key: order.target.access.hide_in(finished[key]) for key in repeated}
        try:
            result = cls.model_validate({**finished, **reported, **asked})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InternalError(f"the load engine's result is not as expected at `{place}` ({first['msg']})") from error
        result._check()
        return result

    def _check(self) -> None:
        for books, errors in ((self.books, self.errors), (self.warm_up, self.warm_up_errors)):
            classed = sum(error.count for error in errors)
            if classed != books.failed:
                raise EnvironmentFailure(
                    f"the load engine classed {classed} of {books.failed} failed requests at {self.level}"
                )
        if self.latency.n != self.books.ok:
            raise EnvironmentFailure(
                f"the load engine's histogram holds {self.latency.n} of {self.books.ok} right answers at {self.level}"
            )

    @property
    def not_asked(self) -> int:
        """Failed requests that met a limit of the generator's machine, and not the server."""
        return self._failed_by(GENERATOR_LIMIT)

    @property
    def closed_idle(self) -> int:
        """Failed requests whose connection the server had ended while it rested: no errors of the server."""
        return self._failed_by(IDLE_CLOSE)

    def _failed_by(self, kind: str) -> int:
        return sum(error.count for error in self.errors if error.kind == kind)

    def silence(self) -> float | None:
        """After how many seconds of the step the server said nothing more, where some requests went unanswered.

        None: it answered until the last seconds, or whatever it was asked.
        """
        series = self.series
        met = {error.kind for error in (*self.errors, *self.warm_up_errors)}
        if not series.second or not met & UNANSWERED:
            return None
        unanswered = [series.errors[kind] for kind in UNANSWERED & series.errors.keys()]
        answers = [
            ok + failed - sum(counts[at] for counts in unanswered)
            for at, (ok, failed) in enumerate(zip(series.ok, series.failed, strict=True))
        ]
        since = 1 + max((at for at, count in enumerate(answers) if count), default=-1)
        return float(since) if len(answers) - since >= SILENCE_S else None

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
        """Processor time of the generator's threads over the time they had; of the busiest of several generators."""
        return max((generator.cpu_share for generator in self.generators), default=0.0)

    def achieved_share(self) -> float | None:
        """What was answered in the window's whole seconds over what was due in as many; None if nothing was due.

        Answers that came while draining do not count: an overloaded server works its backlog off after the window.
        A window without a whole second is judged by its books: all that was sent.
        """
        if not self.books.due:
            return None
        seconds = self.series.second
        end_s = self.warm_up_s + self.window_s
        whole = [i for i, second in enumerate(seconds) if second >= self.warm_up_s and second + 1 <= end_s + 1e-9]
        if not whole:
            return (self.books.ok + self.books.failed) / self.books.due
        answered = sum(self.series.ok[i] + self.series.failed[i] for i in whole)
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
        part: the id of the mix's endpoint that it is about; "": the whole.
    """

    name: StepCondition
    measured: float | None
    limit: float
    outcome: StepOutcome
    met: bool
    count: int | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    part: str = ""

    @property
    def share(self) -> float | None:
        """Of the requests that speak against it."""
        return self.count / self.n if self.count is not None and self.n else None


@dataclass(frozen=True)
class Waits:
    """Of the time in which processes wanted to run, the share that others had instead; None: not known.

    Attributes:
        generator: of its threads, in the window; server: of its processes, where they are known.
        stolen: of all processors' time, by the hypervisor.
    """

    generator: float | None
    server: float | None
    stolen: float | None
    generator_by_second: tuple[float | None, ...] = ()
    server_by_second: tuple[float | None, ...] = ()
    stolen_by_second: tuple[float | None, ...] = ()

    def worst(self) -> tuple[float, str] | None:
        """The largest share, and whose it is."""
        messages = [
            (self.generator, "the generator's threads"),
            (self.server, "the server's processes"),
            (self.stolen, "the whole machine, by its hypervisor"),
        ]
        return max(((share, whose) for share, whose in messages if share is not None), default=None)


@dataclass(frozen=True)
class Gone:
    """A server that went away while it was measured.

    Attributes:
        server: its name.
        at_ns: wall time of the first moment at which nothing came from it any more.
        why: how that showed, as a clause: "it refuses connections".
    """

    server: str
    at_ns: int
    why: str


@dataclass(frozen=True)
class Step:
    """A step of load and its judgement.

    Attributes:
        outcome: what could be shown.
        leaning: what the point estimates say where nothing could be shown; otherwise the outcome. Never inconclusive.
        reason: the condition that ended it, if it did not pass.
        reason_part: the id of the mix's endpoint that missed it; "": no single one.
        lengthened: it was run longer because a shorter one had been inconclusive.
        partial: it was interrupted, and decides nothing.
        waits: what the machine was seen to do; None: nobody looked.
    """

    result: StepResult
    phase: Phase
    limits: tuple[ConditionResult, ...]
    outcome: StepOutcome
    leaning: StepOutcome
    reason: StepCondition | None
    lengthened: bool = False
    partial: bool = False
    waits: Waits | None = None
    reason_part: str = ""

    @property
    def waited(self) -> bool:
        """Whether others had too much of the processor time that it needed: then it says nothing about the server."""
        waited = self.condition(StepCondition.WAITED)
        return waited is not None and not waited.met

    @property
    def level(self) -> LoadLevel:
        """What was asked of the server."""
        return self.result.level

    @property
    def endpoint(self) -> str:
        """Whose step it is."""
        return self.result.endpoint

    def condition(self, name: StepCondition) -> ConditionResult | None:
        """The named condition of the whole, if the SLA has it."""
        return next((limit for limit in self.limits if limit.name is name and not limit.part), None)
