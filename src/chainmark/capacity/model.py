"""The model of a load test: requests, endpoints, targets, levels, and the result of one step of load."""

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
# A server that has not answered for this long may have gone away.
SILENCE_S = 2.0


class LevelKind(StrEnum):
    """The quantity that grows from step to step."""

    CLIENTS = "clients"
    RATE = "rate"


class Phase(StrEnum):
    """The purpose of a step."""

    PROBE = "probe"
    BISECT = "bisect"
    CONFIRM = "confirm"
    FIXED = "fixed"
    RAMP = "ramp"
    SPIKE = "spike"


class StepOutcome(StrEnum):
    """What a step shows about the server."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    GENERATOR_LIMITED = "generator-limited"


class StepCondition(StrEnum):
    """The conditions that judge a step."""

    P99 = "p99"
    P95 = "p95"
    ERRORS = "errors"
    ACHIEVED = "achieved"
    SAMPLES = "samples"
    GENERATOR = "generator"
    WAITED = "waited"


@dataclass(frozen=True)
class Request:
    """One HTTP request and its expected response (the engine's `expect`).

    Attributes:
        repeatable: whether it may be sent twice; None: as HTTP defines for its method.
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
        weight: its frequency, relative to the others' weights.
        requests: the number of its own requests in the mix; the parts' requests are consecutive.
        sla: its SLA within the mix.
    """

    id: str
    label: str
    weight: float
    requests: int
    sla: Sla


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that is measured by itself.

    Attributes:
        id: a metric's first part, `[a-z0-9_]`: "item_history".
        label: its name in reports: "/item/history".
        requests: its corpus, at least one.
        error_pointers: JSON pointers of the members that distinguish its errors.
        parts: of a mix, its endpoints.
        templates: methods and paths with `{names}` for the parts that differ between requests, if there are any.
    """

    id: str
    label: str
    requests: tuple[Request, ...]
    error_pointers: tuple[str, ...] = ()
    parts: tuple[MixPart, ...] = ()
    templates: tuple[tuple[str, str], ...] = ()

    @property
    def rarest_share(self) -> float:
        """The fraction of the requests that the least requested endpoint receives; 1 without a mix."""
        weights = [part.weight for part in self.parts]
        return min(weights) / sum(weights) if weights else 1.0


@dataclass(frozen=True)
class Tls:
    """How the server's certificate is verified."""

    ca_file: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True)
class Target:
    """A server under test.

    Attributes:
        url: without secrets; ``unix:/path`` of a socket in the file system.
        access: the credentials of its requests.
        http_version: the version of its requests.
    """

    name: str
    url: str
    tls: Tls = Tls()
    access: Access = field(default=NOBODY, compare=False, repr=False)
    http_version: HttpVersion = HTTP_1

    @property
    def socket_path(self) -> str:
        """The path of a socket in the file system; "" for a host."""
        return self.url.removeprefix(UNIX) if self.url.startswith(UNIX) else ""

    @property
    def connected_url(self) -> str:
        """Where connections go: to the server, or to its proxy."""
        return self.access.way.url if self.access.way else self.url

    @property
    def base_url(self) -> str:
        """The URL before a request's path; a socket's host is named as in curl."""
        return "http://localhost" if self.socket_path else self.url


@dataclass(frozen=True, order=True)
class LoadLevel:
    """A number of clients with one request in flight each, or a number of requests due per second."""

    kind: LevelKind
    value: float

    def __str__(self) -> str:
        if self.kind is LevelKind.RATE:
            return f"{units.tidy(self.value)}/s"
        return units.plural(round(self.value), "client")


@dataclass(frozen=True)
class GiveUp:
    """When a step may end early: this many measured requests were slower than `slow_s`, or failed."""

    slow_s: float
    slow: int
    failed: int


@dataclass(frozen=True)
class StepRequest:
    """The configuration of one step; times in seconds, meanings as in the engine's order.

    Attributes:
        course: seconds after the warm-up and the level then, if it changes; ``level`` is its maximum.
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
        """The order in the engine's format."""
        order = {
            "url": self.target.url,
            "headers": self.target.access.values(),
            "requests": [
                {
                    "method": request.method,
                    "path": request.path,
                    "headers": request.headers,
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
            "course": self.course,
            "error_pointers": self.endpoint.error_pointers,
            "give_up": asdict(self.give_up) if self.give_up else None,
            "tls": {**asdict(self.target.tls), **self.target.access.files()},
            "proxy": proxy.to_engine_request() if (proxy := self.target.access.way) else None,
        }
        same = ("warm_up_s", "duration_s", "drain_s", "timeout_s", "requests_per_connection", "max_records")
        return json.dumps({**order, **{key: getattr(self, key) for key in (*same, "max_slowest", "threads", "seed")}})

    def _mode(self) -> dict[str, Any]:
        if self.level.kind is LevelKind.CLIENTS:
            options = {"think_s": self.think_s} if self.think_s else {}
            return {"closed": {"clients": round(self.level.value), **options}}
        return {
            "open": {
                "rate_per_s": self.level.value,
                "schedule": self.schedule,
                "connections": self.connections,
            }
        }


class StepResult(Finished):
    """The result of one step: the measurements of the engine and the request for them."""

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
        request = {"endpoint": order.endpoint.id, "level": order.level, "warm_up_s": order.warm_up_s}
        # A server may repeat parts of the request in its errors.
        repeated = ("classes", "warm_up_classes", "server")
        reported = {key: order.target.access.hide_in(finished[key]) for key in repeated}
        try:
            result = cls.model_validate({**finished, **reported, **request})
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in first["loc"])
            raise InternalError(f"the load engine's result is not as expected at `{path}` ({first['msg']})") from error
        result._check()
        return result

    def _check(self) -> None:
        for counts, errors in ((self.counts, self.errors), (self.warm_up, self.warm_up_errors)):
            classed = sum(error.count for error in errors)
            if classed != counts.failed:
                raise EnvironmentFailure(
                    f"the load engine classed {classed} of {counts.failed} failed requests at {self.level}"
                )
        if self.latency.n != self.counts.ok:
            raise EnvironmentFailure(
                f"the load engine's histogram holds {self.latency.n} of {self.counts.ok} right answers at {self.level}"
            )

    @property
    def generator_limited(self) -> int:
        """Failed requests that met a limit of the generator's machine, not of the server."""
        return self._failed_by(GENERATOR_LIMIT)

    @property
    def closed_idle(self) -> int:
        """Failed requests whose idle connection the server had closed: not errors of the server."""
        return self._failed_by(IDLE_CLOSE)

    def _failed_by(self, kind: str) -> int:
        return sum(error.count for error in self.errors if error.kind == kind)

    def silence(self) -> float | None:
        """The second of the step after which the server no longer answered, if some requests went unanswered.

        None: it answered until the last seconds, or every request.
        """
        series = self.series
        met = {error.kind for error in (*self.errors, *self.warm_up_errors)}
        if not met & UNANSWERED:
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
        """Correct responses per second of the window."""
        return self.counts.ok / self.window_s if self.window_s > 0 else 0.0

    @property
    def due_per_s(self) -> float:
        """Requests due (rate) or started (clients) per second of the window."""
        return self.counts.due / self.window_s if self.window_s > 0 else 0.0

    @property
    def generator_cpu_share(self) -> float:
        """Processor time of the generator's threads over the time available; of the busiest of several generators."""
        return max((generator.cpu_share for generator in self.generators), default=0.0)

    def whole_seconds(self) -> list[int]:
        """The positions in the series of the seconds that the window holds whole."""
        end_s = self.warm_up_s + self.window_s
        seconds = enumerate(self.series.second)
        return [at for at, second in seconds if second >= self.warm_up_s and second + 1 <= end_s + 1e-9]

    def achieved_share(self) -> float | None:
        """Responses in the window's whole seconds over the requests due in as many; None if none were due.

        Responses while draining do not count: an overloaded server works off its backlog after the window.
        A window without a whole second is judged by its counts: all that was sent.
        """
        if not self.counts.due:
            return None
        whole = self.whole_seconds()
        if not whole:
            return (self.counts.ok + self.counts.failed) / self.counts.due
        answered = sum(self.series.ok[i] + self.series.failed[i] for i in whole)
        return float(answered) / (self.due_per_s * len(whole))


@dataclass(frozen=True)
class ConditionResult:
    """One condition of a step.

    Attributes:
        measured: in the condition's unit (seconds, share, requests); None if it is not estimable.
        limit: the limit, in the same unit.
        count: requests that violate it: slower than the limit, failed.
        n: total number of requests.
        low: the 95 % interval of the share (of the slower, the failed, the achieved), if there is one.
        high: likewise.
        effect: the variance of that share over that of independent requests; see :mod:`.clustering`.
        outcome: pass, fail or inconclusive.
        met: the result by the point estimate alone.
        note: why there is no figure, or which of two limits applied.
        part: the id of the mix's endpoint; "": the whole.
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
    effect: float = 1.0
    note: str = ""
    part: str = ""

    @property
    def share(self) -> float | None:
        """The share of the requests that violate it."""
        return self.count / self.n if self.count is not None and self.n else None


@dataclass(frozen=True)
class Waits:
    """Share of the time in which processes wanted to run but others ran instead; None: not known.

    Attributes:
        generator: of its threads, in the window; server: of its processes, if they are known.
        stolen: of all processors' time, by the hypervisor.
    """

    generator: float | None
    server: float | None
    stolen: float | None
    generator_by_second: tuple[float | None, ...] = ()
    server_by_second: tuple[float | None, ...] = ()
    stolen_by_second: tuple[float | None, ...] = ()

    def worst(self) -> tuple[float, str] | None:
        """The largest share, and who lost it."""
        messages = [
            (self.generator, "the generator's threads"),
            (self.server, "the server's processes"),
            (self.stolen, "the whole machine, by its hypervisor"),
        ]
        return max(((share, waiting) for share, waiting in messages if share is not None), default=None)


@dataclass(frozen=True)
class Gone:
    """A server that went away while it was measured, or a generator of its load.

    Attributes:
        server: the server's name.
        at_ns: wall time of the first moment without any sign of it.
        why: the symptom, as a clause: "it refuses connections".
        generator: which one, if it is not the server: "load generator 2 of 2".
    """

    server: str
    at_ns: int
    why: str
    generator: str = ""


@dataclass(frozen=True)
class Step:
    """A step of load and its judgement.

    Attributes:
        outcome: what could be shown.
        point_outcome: the outcome, or the result by the point estimates if it is inconclusive.
        reason: the condition that ended it, if it did not pass.
        reason_part: the id of the mix's endpoint that missed it; "": no single one.
        extended: it was longer because a shorter one had been inconclusive.
        partial: it was interrupted, and decides nothing.
        waits: observed waits for processors; None: not observed.
    """

    result: StepResult
    phase: Phase
    limits: tuple[ConditionResult, ...]
    outcome: StepOutcome
    point_outcome: StepOutcome
    reason: StepCondition | None
    extended: bool = False
    partial: bool = False
    waits: Waits | None = None
    reason_part: str = ""

    @property
    def waited(self) -> bool:
        """Whether others had too much of the processor time that it needed: then it shows nothing about the server."""
        waited = self.condition(StepCondition.WAITED)
        return waited is not None and not waited.met

    @property
    def level(self) -> LoadLevel:
        """The level of load on the server."""
        return self.result.level

    @property
    def endpoint(self) -> str:
        """The endpoint of the step."""
        return self.result.endpoint

    def condition(self, name: StepCondition) -> ConditionResult | None:
        """The condition with this name of the whole, if the SLA has it."""
        return next((limit for limit in self.limits if limit.name is name and not limit.part), None)
