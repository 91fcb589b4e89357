"""The result of a load test: how much each endpoint sustains, of which servers, and what stopped the search.

The document of one load test of one or more servers, stored in the run of each, is the only source of all of its
renderings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.former_names import renamed
from chainmark.core.manifest import Fact, Subject

LOAD_REPORT_SCHEMA = 4
StepOutcome = Literal["pass", "fail", "inconclusive", "generator-limited"]
Kind = Literal["clients", "rate"]
CourseUnit = Literal["s", "clients", "req/s"]
LEVEL_UNITS: Mapping[str, CourseUnit] = {"clients": "clients", "rate": "req/s"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceLevel(_Part):
    """The SLA of an endpoint. Shares are fractions; None: no limit."""

    p95_s: float | None
    p99_s: float
    error_share: float
    achieved_share: float
    min_requests: int


class ConditionEntry(_Part):
    """One condition of a step: ``measured`` against ``limit`` in its unit (s, fraction, requests).

    ``low`` and ``high`` are the 95 % interval of the share of requests that ``what`` counts (slower than the limit,
    failed); None without one. ``part`` is the id of the mix's endpoint.
    """

    name: str
    measured: float | None
    limit: float
    outcome: StepOutcome
    low: float | None = None
    high: float | None = None
    note: str = ""
    part: str = ""


class PartEntry(_Part):
    """One endpoint of a mix in one step: its counts, latencies of correct responses, whether it met its own SLA.

    Attributes:
        share: of the requests that were due.
        p99_limit_s: its limit.
        outcome: the worst of its conditions.
    """

    id: str
    label: str
    share: float | None
    due: int
    ok: int
    failed: int
    unsent: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    error_share: float | None
    p99_limit_s: float
    outcome: StepOutcome


class ErrorEntry(_Part):
    """Failed requests of one kind; ``reported`` holds members of the server's response (code, message, retriable)."""

    kind: str
    status: int | None
    reported: Annotated[dict[str, str], renamed("reported", "told")]
    detail: str
    count: int
    first_s: float


class StepFigures(_Part):
    """One step of load: its level, its counts, its latencies in seconds (of all requests that ended), its judgement.

    All reported figures of a step are here, and only here; columns of tables are derived from them.

    Attributes:
        warm_up_s: the part of ``seconds`` before the window.
        closed_idle: of the failed, those whose idle connection the server had closed: not errors of the server.
        repeated: requests that were repeated for that reason.
        wake_p99_s: how late the generator's threads woke.
        generator_lost_share, server_lost_share: share of the time in which their threads wanted to run but others ran;
            None: not known, or the server runs elsewhere. stolen_share: of all processors' time, by the hypervisor.
    """

    kind: Kind
    level: float
    phase: Literal["probe", "bisect", "confirm", "fixed", "ramp", "spike"]
    outcome: StepOutcome
    point_outcome: Annotated[StepOutcome, renamed("point_outcome", "leaning")]
    reason: str | None
    extended: Annotated[bool, renamed("extended", "lengthened")]
    partial: bool
    ended: str
    warm_up_s: float = 0.0
    window_s: float
    due: int
    ok: int
    failed: int
    closed_idle: int = 0
    repeated: int = 0
    wake_p99_s: float | None = None
    generator_lost_share: float | None = None
    server_lost_share: float | None = None
    stolen_share: float | None = None
    unsent: int
    ok_per_s: float
    p50_s: float | None
    p90_s: float | None
    p95_s: float | None
    p99_s: float | None
    max_s: float | None
    lag_p99_s: float | None
    generator_cpu_share: float
    bytes_in: int


class Centile(_Part):
    """A centile of all requests that were due, where those without a correct response are slower than anything.

    Attributes:
        value_s: None if there is none.
        missing: why there is none: too few requests, or too many without a correct response.
    """

    value_s: float | None
    missing: Literal["", "not estimable", "never answered"] = ""


class Centiles(_Part):
    """The centiles of a step for tables and charts."""

    p50: Centile
    p95: Centile
    p99: Centile


class StepEntry(StepFigures):
    """A step with the reasons for its judgement.

    Attributes:
        of_due: centiles of all requests that were due; the latencies of the step are of those that ended.
        number: unique within its endpoint; seconds and requests refer to it.
        parts: of a mix, its endpoints.
        curve: fractions and latencies, the distribution of the step for drawing; empty if nothing ended.
    """

    number: int
    of_due: Centiles
    conditions: list[ConditionEntry]
    errors: list[ErrorEntry]
    parts: list[PartEntry] = []
    curve: list[tuple[float, float]] = []


class SecondEntry(_Part):
    """One second of one step, from the start of its warm-up on.

    Attributes:
        errors: the failed requests by kind ("status", "timeout"); the rest of ``failed`` is of an unknown kind.
    """

    step: int
    second: int
    started: int
    ok: int
    failed: int
    in_flight: int
    queued: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None
    errors: dict[str, int] = {}
    wake_p99_s: float | None = None
    generator_lost_share: float | None = None
    server_lost_share: float | None = None
    stolen_share: float | None = None

    @property
    def failed_otherwise(self) -> int:
        """Failed requests of an unknown kind."""
        return max(0, self.failed - sum(count for count in self.errors.values() if count > 0))


class JoinedSeconds(_Part):
    """The seconds of all steps of one kind of load, if they are too many to draw each: ``size`` of them in one.

    Attributes:
        seconds: the first of each; their median p50, the maximum of their other latencies, threads, queues and lost
            shares, the sum of their requests.
    """

    kind: Kind
    size: int
    seconds: list[SecondEntry]


class LevelFigures(_Part):
    """The medians of the centiles of all due requests over the steps at one level; None: no step has the centile."""

    kind: Kind
    level: float
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


class ContestedLevel(_Part):
    """A level that most of its measurements passed, but not all."""

    level: float
    passed: int
    measured: int


class CapacityEntry(_Part):
    """The result of one search.

    Attributes:
        capacity: clients or requests per second; 0 if the lowest level failed, None if nothing was decided. For a
            contested level, the next lower one that passed every time.
        low, high: up to ``low`` every measurement passed clearly, from ``high`` on every one failed clearly.
        stopped_by: "p99", "p95", "errors", "achieved", "ladder end", "generator-limited", "waited", "first step",
            "budget", "interrupted", "server gone", "generator gone".
        condition: the condition that the first fail missed; condition_part: the label of the mix's endpoint that missed
            it.
        best_step, fail_step: numbers of the steps that represent the result.
    """

    kind: Kind
    capacity: float | None
    low: float
    high: float | None
    stopped_by: str
    condition: str | None
    condition_part: str = ""
    finding: Literal["found", "lower bound", "nothing passed", "not confirmed", "unsettled"]
    confirmed: bool
    contested: ContestedLevel | None = None
    best_step: int | None
    fail_step: int | None


class FixedLevel(_Part):
    """The measurements at one fixed level, of all complete steps together.

    Attributes:
        measured: number of steps.
        p50, p99: medians of the steps' centiles of all due requests; not estimable if one of them is not.
        error_share: failed requests as a fraction of those that reached the server; None if none did.
    """

    kind: Kind
    level: float
    measured: int
    p50: Centile
    p99: Centile
    error_share: float | None


class DriftEntry(_Part):
    """The change of a figure of a long step from its start to its end.

    Attributes:
        begin: seconds, a share of the requests, or bytes; None with the others: not estimable.
        rise: latencies and memory as a share of the initial value, errors as a share of the requests; low, high: its
            95 % interval.
        limit: largest permitted rise; None: it is not judged.
    """

    what: Literal["p50", "p99", "errors", "memory"]
    kind: Kind
    level: float
    window_s: float
    begin: float | None
    rise: float | None
    low: float | None
    high: float | None
    limit: float | None
    outcome: StepOutcome


class CourseEntry(_Part):
    """A load that changed while it ran, and its result.

    Attributes:
        what: a ramp rises linearly; a spike is a steady load, much more for a short time, and the steady load again.
        first, last: levels: a ramp's start and end, a spike's before and at its peak.
        step: of the whole course; its level is the maximum.
        unit: of ``measured``, its interval and its limit: seconds for a spike, the unit of its levels for a ramp.
        measured: of a spike, the time until the server was as before; of a ramp, the level from which on the SLA
            was missed. None: never, or not known; low, high: its 95 % interval, None: open.
        before_s, peak_s: of a spike, the p99 before it and at its peak.
        limit: the longest permitted recovery, or the ramp's last level; is_asked: the SLA defines it.
        note: why there is no result.
    """

    what: Literal["ramp", "spike"]
    kind: Kind
    first: float
    last: float
    step: StepEntry
    seconds: list[SecondEntry] = []
    joined: list[JoinedSeconds] = []
    unit: CourseUnit
    measured: float | None
    low: float | None
    high: float | None
    before_s: float | None = None
    peak_s: float | None = None
    limit: float
    is_asked: bool = False
    outcome: StepOutcome
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _with_unit(cls, reported: Any) -> Any:
        """Older runs have no stored unit, but the same ones."""
        if not isinstance(reported, Mapping) or "unit" in reported:
            return reported
        return {
            **reported,
            "unit": "s" if reported.get("what") == "spike" else LEVEL_UNITS.get(reported.get("kind", "")),
        }


class UseEntry(_Part):
    """A step's use of a resource.

    Attributes:
        step: its number.
        mean, highest: over the step, in the resource's unit.
        limit: the available amount; None: not known.
        share: of the limit; for processors, of what others left of it.
    """

    step: int
    mean: float
    highest: float
    limit: float | None = None
    share: float | None = None


class LevelUse(_Part):
    """The use of a resource at one level: the medians over its complete steps of their means and shares."""

    kind: Kind
    level: float
    mean: float
    share: float | None = None


class ResourceEntry(_Part):
    """A resource of a server that was used while an endpoint was loaded.

    Attributes:
        source, series: its source: "process", "postgres" or a page of metrics, and its name there.
        label: its name in a sentence: "the server's CPU".
        sort: "waiting" for a count of what waits for it; a "counter" is reported as its rate per second.
        limit_is: the source of its limit; "" without one.
        limit: the median over its steps; None: not known.
    """

    source: str
    series: str
    label: str
    unit: str
    sort: Literal["gauge", "counter", "waiting"]
    limit_is: str = ""
    is_cpu: bool = False
    limit: float | None = None
    uses: list[UseEntry]
    levels: list[LevelUse] = []


class StatementEntry(_Part):
    """A statement that used a database's time during a step.

    Attributes:
        text: without values.
        busy: seconds per second, over all sessions.
    """

    step: int
    text: str
    busy: float
    calls_per_s: float


class ExhaustedEntry(_Part):
    """The resource of a server that was exhausted first under one kind of load.

    Attributes:
        finding: it reached its known limit; much of the load waited for it; it stayed constant while the load grew;
            no observed resource was exhausted; or the generator was the limit.
        resource: its label; level: from which on.
        sentence: a clause about it.
    """

    kind: Kind
    finding: Literal["exhausted", "waiting", "flat", "nothing", "generator"]
    resource: str | None = None
    level: float | None = None
    sentence: str


class SourceEntry(_Part):
    """A data source about a server: how often it responded and how often not, and the last error."""

    name: str
    what: str
    read: int
    missed: int
    why: str = ""


class EndpointEntry(_Part):
    """One endpoint of one server: its SLA, the load, the results.

    Attributes:
        sizes: the smallest and the largest counts in the responses before the load: "bytes", or the system's own.
        levels: the steps' latencies by kind of load and level, in that order.
        joined: the seconds for drawing, of each kind of load with too many.
        resources: the server's resource use meanwhile; series_left_out: further series that only the run's tables have.
        exhausted: the resource that was exhausted first, one per kind of load.
    """

    id: str
    label: str
    requests: int
    strata: dict[str, int] = {}
    sizes: dict[str, tuple[int, int]] = {}
    sla: Annotated[ServiceLevel, renamed("sla", "agreement")]
    capacities: list[CapacityEntry]
    steps: list[StepEntry]
    levels: list[LevelFigures] = []
    fixed: list[FixedLevel] = []
    drifts: list[DriftEntry] = []
    courses: list[CourseEntry] = []
    seconds: list[SecondEntry] = []
    joined: list[JoinedSeconds] = []
    resources: list[ResourceEntry] = []
    series_left_out: int = 0
    statements: list[StatementEntry] = []
    exhausted: Annotated[list[ExhaustedEntry], renamed("exhausted", "bent")] = []
    notes: list[str] = []

    @property
    def met(self) -> bool | None:
        """Whether it sustains any load within its SLA; None if nothing was decided."""
        decided = [capacity.capacity for capacity in self.capacities if capacity.capacity is not None]
        if not decided:
            return None
        return all(value > 0 for value in decided)


class Departure(_Part):
    """When a server or a generator went away (ISO time), and the symptom, as a clause.

    Attributes:
        generator: which generator; empty: the server.
    """

    at: str
    why: str
    generator: str = ""


class TargetEntry(_Part):
    """One server.

    Attributes:
        skipped: endpoints that were not measured, by id, with the reason.
        interrupted: the test ended early.
        gone: set if the server or a generator went away.
        sources: data sources about it during the load.
    """

    name: str
    url: str
    subject: Subject
    run_id: str
    facts: list[Fact]
    endpoints: list[EndpointEntry]
    skipped: dict[str, str] = {}
    interrupted: bool = False
    gone: Departure | None = None
    sources: list[SourceEntry] = []
    warnings: list[str] = []

    def endpoint(self, id_: str) -> EndpointEntry | None:
        """The endpoint of that id; None if this server has none."""
        return next((endpoint for endpoint in self.endpoints if endpoint.id == id_), None)


class CapacityChange(_Part):
    """The relative change of a capacity from the first server to another one, and its bounds; None: open.

    Attributes:
        target: index of the other server.
        endpoint: its id.
    """

    target: int
    endpoint: str
    kind: Kind
    point: float | None
    low: float | None
    high: float | None


class LoadReport(_Part):
    """``load.json``: one load test.

    Attributes:
        scenario: the special property of the servers or the data ("huge address", "pruning on"); "" if none.
        machine: facts about the machine that generated the load, read from it.
        corpus_hash: BLAKE3 of the stored corpus, None without one.
        required: required capacities, by endpoint id and kind ("block.clients"); they gate.
        changes: of the capacities, for every further server.
    """

    schema_version: int = LOAD_REPORT_SCHEMA
    title: str
    system: str
    profile_name: str
    scenario: str
    started_at: str
    tool_version: str
    machine: list[Fact]
    corpus_hash: str | None
    required: dict[str, float] = {}
    targets: list[TargetEntry]
    changes: list[CapacityChange] = []
    caveats: CaveatsField = Caveats()
