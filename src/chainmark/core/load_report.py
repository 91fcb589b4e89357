"""What a load test found: how much each endpoint takes, of which servers, and what stopped it.

The document of one load test over one or more servers, stored in the run of each. It is the only source of every
rendering of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.manifest import Fact, Subject

LOAD_REPORT_SCHEMA = 3
StepOutcome = Literal["pass", "fail", "inconclusive", "generator-limited"]
Kind = Literal["clients", "rate"]
CourseUnit = Literal["s", "clients", "req/s"]
LEVEL_UNITS: Mapping[str, CourseUnit] = {"clients": "clients", "rate": "req/s"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceLevel(_Part):
    """The service level that an endpoint is held to. Shares are fractions; a limit of None is not asked for."""

    p95_s: float | None
    p99_s: float
    error_share: float
    achieved_share: float
    min_requests: int


class ConditionEntry(_Part):
    """One condition of a step: ``measured`` against ``limit`` in its unit (s, fraction, requests).

    ``low`` and ``high`` are the 95 % interval of the share of requests that ``what`` counts (slower than the limit,
    failed); None where there is none. ``part`` is the id of the mix's endpoint that it is about.
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
    """One endpoint of a mix in one step: its books, latencies of right answers, whether it kept to its own.

    Attributes:
        share: of the requests that were due.
        p99_limit_s: what it is held to.
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
    """Failed requests of one kind; ``told`` holds what the server's body said (code, message, retriable)."""

    kind: str
    status: int | None
    told: dict[str, str]
    detail: str
    count: int
    first_s: float


class StepFigures(_Part):
    """One step of load: its level, its books, its latencies in seconds (of all requests that ended), its judgement.

    Every figure of a step that is told stands here, and only here; columns of tables follow from it.

    Attributes:
        warm_up_s: what of ``seconds`` comes before the window.
        closed_idle: of the failed, those whose connection the server had ended while it rested: no errors of its.
        repeated: requests that were sent once more because of that.
        wake_p99_s: how late the generator's threads woke.
        generator_lost_share, server_lost_share: of the time in which their threads wanted to run, what others had;
            None: not known, or the server runs elsewhere. stolen_share: of all processors' time, by the hypervisor.
    """

    kind: Kind
    level: float
    phase: Literal["probe", "bisect", "confirm", "fixed", "ramp", "spike"]
    outcome: StepOutcome
    leaning: StepOutcome
    reason: str | None
    lengthened: bool
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
    """A centile of all requests that were due, of which those that had no right answer are slower than anything.

    Attributes:
        value_s: None where there is none.
        missing: why there is none: too few requests, or more than the rest were never answered rightly.
    """

    value_s: float | None
    missing: Literal["", "not estimable", "never answered"] = ""


class Centiles(_Part):
    """The centiles of a step that its tables and charts tell."""

    p50: Centile
    p95: Centile
    p99: Centile


class StepEntry(StepFigures):
    """A step with why it was judged so.

    Attributes:
        of_due: centiles of all that was due; the figures above them are of what ended.
        number: of its endpoint, by which seconds and answers name it: no two steps of an endpoint share one.
        parts: of a mix, its endpoints.
        curve: fractions and latencies, the distribution of the step for drawing; empty where nothing ended.
    """

    number: int
    of_due: Centiles
    conditions: list[ConditionEntry]
    errors: list[ErrorEntry]
    parts: list[PartEntry] = []
    curve: list[tuple[float, float]] = []


class SecondEntry(_Part):
    """What happened in one second of one step, from the begin of its warm-up on.

    Attributes:
        errors: the failed requests by kind ("status", "timeout"); what they lack of ``failed`` is of no known kind.
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


class ContestedLevel(_Part):
    """A level that most of its measurements passed, but not all."""

    level: float
    passed: int
    measured: int


class CapacityEntry(_Part):
    """The answer of one search.

    Attributes:
        capacity: clients or requests per second; 0 if the lowest level failed, None if nothing was decided. Of a
            level that is contested, the next lower one that passed every time.
        low, high: up to ``low`` every measurement passed clearly, from ``high`` on every one failed clearly.
        stopped_by: "p99", "p95", "errors", "achieved", "ladder end", "generator-limited", "waited", "first step",
            "budget", "interrupted", "server gone".
        condition: what the first fail missed; condition_part: the label of the mix's endpoint that missed it.
        best_step, fail_step: numbers of the steps that stand for the answer.
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
    """What was measured at one fixed level, of all steps that ran to their end together.

    Attributes:
        measured: how many steps.
        p50, p99: medians of the steps' centiles of all that was due; not estimable where one of them is not.
        error_share: failed requests of those that were sent; None if none was.
    """

    kind: Kind
    level: float
    measured: int
    p50: Centile
    p99: Centile
    error_share: float | None


class DriftEntry(_Part):
    """How a figure of a long step changed from its begin to its end.

    Attributes:
        begin: seconds, a share of the requests, or bytes; None with the others: not estimable.
        rise: latencies and memory as a share of the begin, errors as a share of the requests; low, high: its 95 %
            interval.
        limit: how far it may rise; None: it is not judged.
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
    """A load that changed while it ran, and what that shows.

    Attributes:
        what: a ramp rises linearly; a spike is a steady load, much more for a short time, and the steady load again.
        first, last: levels: a ramp's begin and end, a spike's before and at its peak.
        step: of the whole course; its level is the most of it.
        unit: of what was measured, its interval and its limit: seconds of a spike, of a ramp that of its levels.
        measured: of a spike, the time until the server was as before; of a ramp, the level from which on the SLA
            was missed. None: never, or not known; low, high: its 95 % interval, None is open.
        before_s, peak_s: of a spike, the p99 before it and at its peak.
        limit: the time that a recovery may take, or the ramp's last level; is_asked: the SLA names it.
        note: why nothing is known.
    """

    what: Literal["ramp", "spike"]
    kind: Kind
    first: float
    last: float
    step: StepEntry
    seconds: list[SecondEntry] = []
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
        """Runs that were sealed before the unit was named have the same ones."""
        if not isinstance(reported, Mapping) or "unit" in reported:
            return reported
        return {
            **reported,
            "unit": "s" if reported.get("what") == "spike" else LEVEL_UNITS.get(reported.get("kind", "")),
        }


class UseEntry(_Part):
    """What a step used of a resource.

    Attributes:
        step: its number.
        mean, highest: over the step, in the resource's unit.
        limit: how much there was; None: not known.
        share: of the limit, of processors of what others left of it.
    """

    step: int
    mean: float
    highest: float
    limit: float | None = None
    share: float | None = None


class ResourceEntry(_Part):
    """Something that a server used while an endpoint was loaded.

    Attributes:
        source, series: where it is read: "process", "postgres" or a page of metrics, and its name there.
        label: as a sentence calls it: "the server's CPU".
        sort: "waiting" counts what waits for it; of a "counter" the rate per second is told.
        limit_is: where its limit is from; "" without one.
    """

    source: str
    series: str
    label: str
    unit: str
    sort: Literal["gauge", "counter", "waiting"]
    limit_is: str = ""
    is_cpu: bool = False
    uses: list[UseEntry]


class StatementEntry(_Part):
    """A statement that a database spent time on during a step.

    Attributes:
        text: without values.
        busy: seconds per second, over all sessions.
    """

    step: int
    text: str
    busy: float
    calls_per_s: float


class BentEntry(_Part):
    """What of a server was exhausted first under one kind of load.

    Attributes:
        finding: it reached its known limit; much of the load waited for it; it stayed as it was while the load grew;
            nothing that was watched was exhausted; or the generator was the limit.
        resource: its label; level: from which on.
        sentence: a clause that says it.
    """

    kind: Kind
    finding: Literal["exhausted", "waiting", "flat", "nothing", "generator"]
    resource: str | None = None
    level: float | None = None
    sentence: str


class SourceEntry(_Part):
    """What was read of a server: how often it answered and how often not, and why not the last time."""

    name: str
    what: str
    read: int
    missed: int
    why: str = ""


class EndpointEntry(_Part):
    """One endpoint of one server: its SLA, what was asked, what was found.

    Attributes:
        sizes: the least and the most of what was counted in the answers before the load ("bytes", "coins").
        resources: what the server used meanwhile; series_left_out: further series that only the run's tables have.
        bent: what was exhausted first, a kind of load each.
    """

    id: str
    label: str
    requests: int
    strata: dict[str, int] = {}
    sizes: dict[str, tuple[int, int]] = {}
    agreement: ServiceLevel
    capacities: list[CapacityEntry]
    steps: list[StepEntry]
    fixed: list[FixedLevel] = []
    drifts: list[DriftEntry] = []
    courses: list[CourseEntry] = []
    seconds: list[SecondEntry] = []
    resources: list[ResourceEntry] = []
    series_left_out: int = 0
    statements: list[StatementEntry] = []
    bent: list[BentEntry] = []
    notes: list[str] = []

    @property
    def met(self) -> bool | None:
        """Whether it takes any load within its SLA; None where nothing was decided."""
        decided = [capacity.capacity for capacity in self.capacities if capacity.capacity is not None]
        if not decided:
            return None
        return all(value > 0 for value in decided)


class Departure(_Part):
    """When a server went away (ISO time), and how that showed, as a clause."""

    at: str
    why: str


class TargetEntry(_Part):
    """One server.

    Attributes:
        skipped: what was not measured, by its id, and why.
        interrupted: the test ended before its end.
        gone: set where the server's going was why.
        sources: what was read of it while it was loaded.
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


class LoadReport(_Part):
    """``load.json``: one load test.

    Attributes:
        scenario: what was special about the servers or the data ("huge address", "pruning on"); "" if nothing.
        machine: facts of the machine that made the load, read from it.
        corpus_hash: BLAKE3 of the pinned corpus, None where there is none.
        required: capacities that were asked for, by endpoint id and kind ("block.clients"); they gate.
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
    caveats: CaveatsField = Caveats()
