"""Running steps: start the engine, watch it, end it early where possible, judge the result."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from chainmark.capacity.advice import clients_for_enough, extended_seconds, give_up, rate_for_enough, step_seconds
from chainmark.capacity.engine import (
    UNANSWERED,
    Engine,
    MakeEngine,
    ReadHistogram,
    native_engine,
    native_histogram,
)
from chainmark.capacity.generators import GeneratorGone
from chainmark.capacity.model import (
    Endpoint,
    Gone,
    LevelKind,
    LoadLevel,
    Phase,
    Step,
    StepOutcome,
    StepRequest,
    StepResult,
    Target,
    Waits,
)
from chainmark.capacity.plan import SearchPlan, rounded
from chainmark.capacity.presence import Presence, takes_connections
from chainmark.capacity.recovery import LOOK_REQUESTS, LOOK_S, HealthProbes, Recovery, WaitPlan, median_s
from chainmark.capacity.search import Ask, Interrupted
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.witness import Watching
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import LiveFigures, Progress, Silent, begin_step, live_figures

_LOOK_EVERY_S = 0.1
# A check takes a few milliseconds.
_COUNT_EVERY_S = 0.005
# Twice the clients, or a higher rate, at most double the throughput.
_MORE_THAN_BEFORE = 2.0
_WARM_UP_LONGEST_S = 10.0
_TIMEOUT_SHORTEST_S = 10.0
_WHO_ARE_YOU = 401
# Steps that run to their end, and whose single requests are recorded.
_RECORDED = frozenset({Phase.FIXED, Phase.RAMP, Phase.SPIKE})
# Number of each step's requests that are kept with their stages.
SLOWEST = 20


@dataclass(frozen=True)
class StepSettings:
    """The common settings of all steps of a load test; times in seconds.

    Attributes:
        duration_s: window of a usual step.
        longest_s: window of an extended step, or of one at a slow endpoint.
        warm_up_s: None: the SLA's p99, from 1 to 10 s, so that the queue reaches its usual length.
        timeout_s: None: twice the SLA's p99, at least 10 s, so that slow and failed differ.
        cool_down_s: pause after each step, always made.
        recovery_longest_s: longest wait after each step until the server is as fast as before; 0: no wait.
        end_hopeless: end a step early once it has failed whatever follows.
        think_s: mean time of a client between a response and its next request.
        records: number of requests of a step at a fixed level that are recorded one by one.
    """

    duration_s: float = 10.0
    longest_s: float = 120.0
    warm_up_s: float | None = None
    drain_s: float = 5.0
    timeout_s: float | None = None
    cool_down_s: float = 0.0
    recovery_longest_s: float = 0.0
    schedule: Literal["even", "poisson"] = "even"
    connections: int = 1024
    requests_per_connection: int = 0
    streams: int = 1
    request_coding: Literal["gzip", "br"] | None = None
    drawing: Literal["sequence", "random"] = "random"
    think_s: float = 0.0
    end_hopeless: bool = True
    records: int = 0
    threads: int = 0
    seed: int = 1


def run_step(
    order: StepRequest,
    progress: Progress | None = None,
    make_engine: MakeEngine = native_engine,
    pause: Callable[[float], None] = time.sleep,
    presence: Presence | None = None,
) -> StepResult:
    """Run one step. Ctrl-C ends it early: requests in flight are waited for, and the result has ended "stopped".

    A server that has gone away ends it, too, with the result "gave up".

    Raises:
        UsageError: the order is not valid.
        EnvironmentFailure: the host's name does not resolve, or the sums do not add up.
    """
    engine = _started(order, make_engine)
    try:
        listener = progress or Silent()
        with live_figures(listener, lambda: _figures(engine)):
            _watch(engine, listener, pause, presence)
        finished = engine.finish()
    except KeyboardInterrupt:
        engine.stop()
        return _result(order, {**engine.finish(), "ended": "stopped"})
    if finished["ended"] == "stopped":
        # Nothing but the watcher has stopped it.
        finished["ended"] = "gave up"
    return _result(order, finished)


def _result(order: StepRequest, finished: Mapping[str, Any]) -> StepResult:
    """The measurements; after a 401 response the headers are renewed before the next step."""
    result = StepResult.of(order, finished)
    if any(error.status == _WHO_ARE_YOU for error in result.errors):
        order.target.access.outdate()
    return result


def _started(order: StepRequest, make_engine: MakeEngine) -> Engine:
    try:
        engine = make_engine(order.to_json())
        engine.start()
    except GeneratorGone as gone:
        raise Interrupted(gone=Gone(order.target.name, time.time_ns(), gone.why, gone.which)) from gone
    except ValueError as error:
        raise UsageError.from_native(error) from error
    except OSError as error:
        raise EnvironmentFailure.from_native(error) from error
    return engine


def _figures(engine: Engine) -> LiveFigures:
    parsed = json.loads(engine.progress())
    started, under_way, failed = parsed["started"], parsed["in_flight"], parsed["failed"]
    offered = started + parsed["queued"]
    is_warm = parsed["phase"] == "window"
    return LiveFigures(
        offered=offered, sent=started, accepted=parsed["ok"], failed=failed, in_flight=under_way,
        p50_s=parsed.get("p50_s") if is_warm else None, p99_s=parsed.get("p99_s") if is_warm else None,
    )  # fmt: skip


def _watch(
    engine: Engine, progress: Progress, pause: Callable[[float], None], presence: Presence | None = None
) -> None:
    if presence:
        presence.begin()
    while engine.running():
        parsed = json.loads(engine.progress())
        if presence and presence.is_lost(parsed):
            engine.stop()
            presence = None
        text = f"{parsed['phase']}, {units.count(parsed['ok'])} answered"
        failed = f", {units.count(parsed['failed'])} failed" if parsed["failed"] else ""
        progress.update(min(1.0, parsed["elapsed_s"] / parsed["planned_s"]), text + failed)
        pause(_LOOK_EVERY_S)


def timeout_of(stated_s: float | None, sla: Sla) -> float:
    """The timeout of a response: from the profile, or long enough that slow and failed differ."""
    return max(_TIMEOUT_SHORTEST_S, 2.0 * sla.p99_s) if stated_s is None else stated_s


def _is_silent(result: StepResult) -> bool:
    """Whether no request was answered."""
    unanswered = sum(error.count for error in result.errors if error.kind in UNANSWERED)
    return 0 < result.counts.due == unanswered


@dataclass
class StepRunner:
    """Measures the levels of a search at one endpoint; `measure` is the callback that `search` needs."""

    target: Target
    endpoint: Endpoint
    sla: Sla
    settings: StepSettings = field(default_factory=StepSettings)
    progress: Progress = field(default_factory=Silent)
    make_engine: MakeEngine = native_engine
    read_histogram: ReadHistogram = native_histogram
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    done: list[Step] = field(default_factory=list)
    looks: HealthProbes = field(default_factory=HealthProbes)
    recovery: Recovery = field(default_factory=Recovery)
    listens: Callable[[str], bool] = takes_connections
    watching: Callable[[], Watching] | None = None

    def __post_init__(self) -> None:
        self._presence = Presence(self.target, self.pause, self.clock, self.listens)

    def measure(self, ask: Ask) -> Step:
        """Run and judge one step.

        Raises:
            Interrupted: by Ctrl-C or by a server that went away, with the part that was measured.
        """
        try:
            self.refer()
            self.recovery.owe(partial(self._rest, ask.level))
            begin_step(self.progress, f"{self.endpoint.label}: {ask.level} ({ask.phase})")
            result, waits = self._watched(self.order(ask))
            step = judge(
                result, self.sla, ask.phase, ask.extended, self.read_histogram, waits=waits, parts=self.endpoint.parts
            )
            self._expect_presence(step)
        except KeyboardInterrupt:
            # Before the step began, or again while it ended: earlier measurements are still worth keeping.
            raise Interrupted from None
        if step.partial:
            raise Interrupted(step)
        self.done.append(step)
        return step

    def _watched(self, order: StepRequest) -> tuple[StepResult, Waits | None]:
        """A step, and the waits for processors observed during it."""
        run = partial(run_step, order, self.progress, self.make_engine, self.pause, self._presence)
        if self.watching is None:
            return run(), None
        with self.watching() as watch:
            result = run()
        return result, watch.waits(result)

    def refer(self) -> None:
        """Measure the server's latency before its first step, unless it is known or not needed.

        Raises:
            Interrupted: the server has gone.
        """
        self.recovery.settle()
        if self.settings.recovery_longest_s > 0.0 and not self.looks.count:
            self.looks.reference_s = self._look(self.settings.drain_s)

    def fitted(self, plan: SearchPlan) -> SearchPlan:
        """The plan, starting where a step of the longest kind has enough responses, estimated from one client.

        Raises:
            Interrupted: the server has gone.
        """
        self.refer()
        reference_s = self.looks.reference_s
        share = self.endpoint.rarest_share
        if plan.kind is LevelKind.RATE and self.endpoint.parts:
            least = rate_for_enough(self.sla, share, self.settings.duration_s)
            return replace(plan, first=min(plan.last, max(plan.first, rounded(least))))
        if plan.kind is LevelKind.RATE or plan.ladder or reference_s is None:
            return plan
        longest_s = max(self.settings.duration_s, self.settings.longest_s)
        fewest = clients_for_enough((reference_s + self.settings.think_s) / share, self.sla, longest_s)
        return replace(plan, first=min(plan.last, max(plan.first, float(fewest))))

    def _expect_presence(self, step: Step) -> None:
        """A step that ended in silence shows nothing about a server that has gone, and is not a failure of it."""
        if step.partial:
            return
        silent_s = step.result.silence()
        if silent_s is None:
            self._expect_connections(step)
            return
        self.progress.stage(f"{self.endpoint.label}: no response; checking whether the server is reachable")
        gone = self._presence.gone(step.result.started_ns + round(silent_s * 1e9), self._is_answered)
        if gone:
            raise Interrupted(replace(step, partial=True), gone)

    def _expect_connections(self, step: Step) -> None:
        """The same for a server that went away just before the step's end."""
        if step.outcome is StepOutcome.FAIL and step.result.counts.failed and self._presence.refuses():
            ended_ns = step.result.started_ns + round((step.result.warm_up_s + step.result.window_s) * 1e9)
            raise Interrupted(
                replace(step, partial=True), Gone(self.target.name, ended_ns, "it accepts no connections")
            )

    def _is_answered(self, longest_s: float) -> bool:
        """Whether one client gets any response within this many seconds."""
        order = replace(self._order_of_look(), drain_s=longest_s, timeout_s=longest_s)
        return not _is_silent(self._looked(order))

    def _rest(self, level: LoadLevel) -> None:
        """After a step at this level: the pause, and the wait until the server is as fast as before."""
        if self.settings.cool_down_s > 0.0:
            self.pause(self.settings.cool_down_s)
        if self.settings.recovery_longest_s <= 0.0:
            return
        begin_step(self.progress, f"{self.endpoint.label}: waiting until it is as quick as before {level}")
        waiting = WaitPlan(self._look, self.settings.recovery_longest_s, self.clock, self.pause, self._report_progress)
        waiting.until_back(self.looks, level)

    def _report_progress(self, fraction: float, p50_s: float | None) -> None:
        latency = "not answered" if p50_s is None else units.duration(p50_s)
        self.progress.update(fraction, f"{latency} at one client")

    def _look(self, longest_s: float) -> float | None:
        """Send requests with one client, always the same ones first; the median, None if most failed.

        Args:
            longest_s: how long to wait for the last response.
        """
        result = self._looked(replace(self._order_of_look(), drain_s=min(self.settings.drain_s, longest_s)))
        if _is_silent(result) and self._presence.refuses():
            raise Interrupted(gone=Gone(self.target.name, result.started_ns, "it accepts no connections"))
        return median_s(result, self.read_histogram)

    def _order_of_look(self) -> StepRequest:
        return replace(
            self.order(Ask(LoadLevel(LevelKind.CLIENTS, 1.0), Phase.PROBE)),
            warm_up_s=0.0,
            duration_s=LOOK_S,
            give_up=None,
            think_s=0.0,
            threads=1,
            seed=self.settings.seed,
        )

    def _looked(self, order: StepRequest) -> StepResult:
        """A check, counted."""
        engine = _started(order, self.make_engine)
        try:
            self._count(engine)
            engine.stop()
            result = _result(order, engine.finish())
        except KeyboardInterrupt:
            # Its requests were sent, and are counted.
            engine.stop()
            self.looks.add(StepResult.of(order, engine.finish()))
            raise
        self.looks.add(result)
        return result

    def _count(self, engine: Engine) -> None:
        """Check until there are enough responses."""
        while engine.running():
            parsed = json.loads(engine.progress())
            if parsed["ok"] + parsed["failed"] >= LOOK_REQUESTS:
                return
            self.pause(_COUNT_EVERY_S)

    def order(self, ask: Ask) -> StepRequest:
        """The configuration for the engine, based on the previous measurements."""
        settings = self.settings
        order = StepRequest(
            target=self.target,
            endpoint=self.endpoint,
            level=ask.level,
            warm_up_s=self._warm_up_s(ask.level),
            duration_s=self._duration_s(ask),
            drain_s=settings.drain_s,
            timeout_s=timeout_of(settings.timeout_s, self.sla),
            schedule=settings.schedule,
            connections=settings.connections,
            requests_per_connection=settings.requests_per_connection,
            streams=settings.streams,
            request_coding=settings.request_coding,
            drawing=settings.drawing,
            think_s=settings.think_s,
            course=ask.course.points if ask.course else (),
            max_records=settings.records if ask.phase in _RECORDED else 0,
            max_slowest=SLOWEST,
            threads=settings.threads,
            seed=settings.seed + len(self.done),
        )
        if not settings.end_hopeless or ask.phase in _RECORDED:
            return order
        return replace(order, give_up=give_up(self.sla, self._requests_at_most(order)))

    def _warm_up_s(self, level: LoadLevel) -> float:
        """A rate's length is in whole seconds, because responses are counted per whole second of the step."""
        usual_s = min(max(1.0, self.sla.p99_s), _WARM_UP_LONGEST_S)
        chosen_s = usual_s if self.settings.warm_up_s is None else self.settings.warm_up_s
        return float(math.ceil(chosen_s)) if level.kind is LevelKind.RATE else chosen_s

    def _duration_s(self, ask: Ask) -> float:
        if ask.course:
            return ask.course.length_s
        usual_s, longest_s = self.settings.duration_s, max(self.settings.duration_s, self.settings.longest_s)
        before = [step for step in self.done if step.level == ask.level]
        if ask.extended and before:
            shortest = min(before, key=lambda step: step.result.window_s)
            return extended_seconds(shortest, self.sla, usual_s, longest_s, self.endpoint.rarest_share)
        expected_per_s = self._expected_per_s(ask.level)
        rarest_per_s = None if expected_per_s is None else expected_per_s * self.endpoint.rarest_share
        return step_seconds(rarest_per_s, self.sla, usual_s, longest_s)

    def _expected_per_s(self, level: LoadLevel) -> float | None:
        """The expected rate: at least the throughput of fewer clients; for a rate, the rate itself."""
        if level.kind is LevelKind.RATE:
            return level.value
        lower = [step.result.due_per_s for step in self.done if step.level <= level]
        if not lower and self.looks.reference_s:
            return level.value / (self.looks.reference_s + self.settings.think_s)
        return max(lower, default=None)

    def _requests_at_most(self, order: StepRequest) -> int:
        if order.level.kind is LevelKind.RATE:
            return int(order.level.value * order.duration_s)
        known = max((step.result.due_per_s for step in self.done), default=0.0)
        return int(_MORE_THAN_BEFORE * known * order.duration_s)
