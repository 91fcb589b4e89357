"""The outcome of a step by the service level agreement.

docs/concepts/capacity.md gives the reason for every rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainmark.capacity.clustering import of_part, slow_effect
from chainmark.capacity.engine import GENERATOR_LIMIT, IDLE_CLOSE, Histogram, ReadHistogram, native_histogram
from chainmark.capacity.measured import PartFigures, RequestCounts
from chainmark.capacity.model import (
    ConditionResult,
    LevelKind,
    MixPart,
    Phase,
    Step,
    StepCondition,
    StepOutcome,
    StepResult,
    Waits,
)
from chainmark.capacity.service_level import Sla
from chainmark.stats import special
from chainmark.stats.estimable import RISK, has_upper_bound

_NORMAL = special.normal_quantile(1.0 - RISK / 2.0)
# Lateness of the generator that is indistinguishable from the server's: 0.1 ms is due to a busy scheduler.
LAG_FLOOR_S = 0.001
LAG_SHARE = 0.05
# A closed loop has no due times; its lateness is measured by the timer.
WAKE_FLOOR_S = 0.005
# Of the time in which generator or server wanted to run: on an idle machine they lose about one per cent, next to a
# busy process on every processor from a seventh on (docs/concepts/validity.md).
WAITED_SHARE = 0.1
# Above this share a thread's own queue begins to show in the latencies.
CPU_SHARE = 0.85


def share_interval(count: float, n: float, effect: float = 1.0) -> tuple[float, float]:
    """Exact 95 % interval of a share; one-sided if none or all counted, because then only one side is open.

    Args:
        count: 0 to n.
        n: 0 gives (0, 1).
        effect: variance over that of independent requests: so many show what one of these shows.

    Source: Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
    binomial".
    """
    if n == 0:
        return 0.0, 1.0
    if count == 0:
        return 0.0, float(1.0 - RISK ** (1.0 / n))
    if count == n:
        return float(RISK ** (1.0 / n)), 1.0
    count, n = count / effect, n / effect
    low = special.beta_quantile(RISK / 2.0, count, n - count + 1.0)
    high = special.beta_quantile(1.0 - RISK / 2.0, count + 1.0, n - count)
    return low, high


@dataclass(frozen=True)
class _Evidence:
    """The data that the conditions are computed from."""

    result: StepResult
    latency: Histogram
    sla: Sla

    @property
    def clustering(self) -> float:
        """The design effect of the slow requests."""
        return slow_effect(self.result)

    @property
    def open_loop(self) -> bool:
        return self.result.level.kind is LevelKind.RATE

    def slower(self, limit_s: float) -> int:
        """Requests not answered in time, which include failed and unsent ones."""
        return self.latency.count_over(limit_s) + self.never_answered

    @property
    def counts(self) -> RequestCounts:
        return self.result.counts

    @property
    def closed_idle(self) -> int:
        return self.result.closed_idle

    @property
    def generator_limited(self) -> int:
        return self.result.generator_limited

    @property
    def counted(self) -> int:
        """Requests that count: all but those whose connection had closed before the server received them."""
        return self.counts.due - self.closed_idle

    @property
    def never_answered(self) -> int:
        """Counted requests that failed or were never sent."""
        return self.counted - self.counts.ok


@dataclass(frozen=True)
class _PartEvidence(_Evidence):
    """The evidence for one endpoint of a mix."""

    part: PartFigures

    @property
    def clustering(self) -> float:
        """That of the part."""
        return of_part(super().clustering, self.counts.due, self.result.counts.due)

    @property
    def counts(self) -> RequestCounts:
        return self.part.counts

    @property
    def closed_idle(self) -> int:
        return self.part.failed_by(IDLE_CLOSE)

    @property
    def generator_limited(self) -> int:
        return self.part.failed_by(GENERATOR_LIMIT)


def judge(
    result: StepResult,
    sla: Sla,
    phase: Phase,
    extended: bool = False,
    read_histogram: ReadHistogram = native_histogram,
    *,
    waits: Waits | None = None,
    parts: Sequence[MixPart] = (),
) -> Step:
    """Judge a step by the SLA.

    Args:
        result: the measurements.
        sla: the SLA.
        phase: the purpose of the step.
        extended: whether it was longer than others, because those had been inconclusive.
        read_histogram: decodes a stored histogram.
        waits: observed waits for processors.
        parts: of a mix, its endpoints, each of which must meet its own SLA.
    """
    evidence = _Evidence(result, read_histogram(result.latency.hdr), sla)
    limits = _conditions(evidence) + _of_parts(result, parts, read_histogram) + _waited(waits)
    generator = next(limit for limit in limits if limit.name is StepCondition.GENERATOR)
    judged = [limit for limit in limits if limit.name not in {StepCondition.GENERATOR, StepCondition.WAITED}]
    shown = [limit.name for limit in judged if limit.outcome is StepOutcome.FAIL]
    missed = [limit.name for limit in judged if not limit.met]
    waited = any(limit.name is StepCondition.WAITED and not limit.met for limit in limits)
    if waited and StepCondition.ERRORS not in shown:
        outcome = point_outcome = StepOutcome.GENERATOR_LIMITED
    elif shown:
        outcome = point_outcome = _blame(shown, generator)
    else:
        undecided = any(limit.outcome is StepOutcome.INCONCLUSIVE for limit in judged)
        point_outcome = _blame(missed, generator) if missed else StepOutcome.PASS
        outcome = StepOutcome.INCONCLUSIVE if undecided else StepOutcome.PASS
    partial = result.ended == "stopped"
    reason, reason_part = None, ""
    if point_outcome is not StepOutcome.PASS:
        limited = waited and outcome is StepOutcome.GENERATOR_LIMITED
        reason = StepCondition.WAITED if limited else _reason(shown or missed, evidence)
        decided = [
            condition
            for condition in judged
            if condition.name is reason and (condition.outcome is StepOutcome.FAIL if shown else not condition.met)
        ]
        reason_part = next((condition.part for condition in decided if condition.part), "")
    return Step(result, phase, limits, outcome, point_outcome, reason, extended, partial, waits, reason_part)


def _of_parts(
    result: StepResult, parts: Sequence[MixPart], read_histogram: ReadHistogram
) -> tuple[ConditionResult, ...]:
    """Latencies and errors of each endpoint of a mix; one without requests decides nothing."""
    conditions: list[ConditionResult] = []
    for part, figures in zip(parts, result.parts, strict=True) if parts else ():
        evidence = _PartEvidence(result, read_histogram(figures.latency.hdr), part.sla, figures)
        limits = [_centile(evidence, StepCondition.P99, 0.99, part.sla.p99_s), _errors(evidence)]
        if part.sla.p95_s is not None:
            limits.insert(1, _centile(evidence, StepCondition.P95, 0.95, part.sla.p95_s))
        conditions += [replace(limit, part=part.id, met=limit.met or not evidence.counted) for limit in limits]
    return tuple(conditions)


def _waited(waits: Waits | None) -> tuple[ConditionResult, ...]:
    """Whether others had processor time that the generator or the server needed; empty if it was not observed."""
    if waits is None:
        return ()
    worst = waits.worst()
    if worst is None:
        note = "this kernel does not tell"
        return (ConditionResult(StepCondition.WAITED, None, WAITED_SHARE, StepOutcome.PASS, met=True, note=note),)
    share, waiting = worst
    met = share <= WAITED_SHARE
    note = f"share of the time in which they wanted to run: {waiting}"
    outcome = StepOutcome.PASS if met else StepOutcome.FAIL
    return (ConditionResult(StepCondition.WAITED, share, WAITED_SHARE, outcome, met=met, note=note),)


def _blame(against: list[StepCondition], generator: ConditionResult) -> StepOutcome:
    """Errors are the server's; lateness is not, if the generator itself was late."""
    if generator.met or StepCondition.ERRORS in against:
        return StepOutcome.FAIL
    return StepOutcome.GENERATOR_LIMITED


def _reason(against: list[StepCondition], evidence: _Evidence) -> StepCondition:
    """The first missed condition by their order; errors, if the responses alone would have been fast enough."""
    if StepCondition.ERRORS in against:
        slow = evidence.latency.count_over(evidence.sla.p99_s)
        if slow <= 0.01 * evidence.result.counts.due:
            return StepCondition.ERRORS
    return against[0]


def _conditions(evidence: _Evidence) -> tuple[ConditionResult, ...]:
    sla = evidence.sla
    conditions = [_centile(evidence, StepCondition.P99, 0.99, sla.p99_s)]
    if sla.p95_s is not None:
        conditions.append(_centile(evidence, StepCondition.P95, 0.95, sla.p95_s))
    conditions.append(_errors(evidence))
    if evidence.open_loop:
        conditions.append(_achieved(evidence))
    return (*conditions, _samples(evidence), _generator(evidence))


def _separated(low: float, high: float, limit: float) -> StepOutcome:
    if low > limit:
        return StepOutcome.FAIL
    return StepOutcome.PASS if high <= limit else StepOutcome.INCONCLUSIVE


def _centile(evidence: _Evidence, name: StepCondition, fraction: float, limit_s: float) -> ConditionResult:
    """p99 is within the limit if and only if at most 1 % are slower than it."""
    count, n, effect = evidence.slower(limit_s), evidence.counted, evidence.clustering
    low, high = share_interval(count, n, effect)
    tolerated = 1.0 - fraction
    measured, note = _centile_value(evidence, fraction)
    return ConditionResult(
        name=name,
        measured=measured,
        limit=limit_s,
        outcome=_separated(low, high, tolerated),
        met=n > 0 and count <= tolerated * n * (1.0 + 1e-9),
        count=count,
        n=n,
        low=low,
        high=high,
        effect=effect,
        note=note,
    )


def _centile_value(evidence: _Evidence, fraction: float) -> tuple[float | None, str]:
    """The centile of all due requests, with failures slower than any response."""
    ok, counted = evidence.counts.ok, evidence.counted
    if not has_upper_bound(counted, fraction):
        return None, f"not estimable from {counted} requests"
    within = fraction * counted
    if within > ok:
        return None, f"{evidence.never_answered} of {counted} requests had no correct response"
    return evidence.latency.quantile(within / ok), ""


def _errors(evidence: _Evidence) -> ConditionResult:
    """Counts only requests that reached the server: the others already count as slow and as not achieved."""
    counts, limit = evidence.counts, evidence.sla.error_share
    failed = counts.failed - evidence.generator_limited - evidence.closed_idle
    sent = counts.ok + failed
    low, high = share_interval(failed, sent)
    share = failed / sent if sent else None
    # Zero errors are no evidence against the server, however strict the limit.
    outcome = _separated(low, high, limit) if failed else StepOutcome.PASS
    return ConditionResult(
        name=StepCondition.ERRORS,
        measured=share,
        limit=limit,
        outcome=outcome,
        met=share is None or share <= limit,
        count=failed,
        n=sent,
        low=low,
        high=high,
        note="" if sent else "nothing was sent",
    )


def _achieved(evidence: _Evidence) -> ConditionResult:
    """Responses over due requests, with the noise of the queue lengths at both ends of the window."""
    result, limit = evidence.result, evidence.sla.achieved_share
    share = result.achieved_share()
    if share is None:
        return ConditionResult(
            StepCondition.ACHIEVED, None, limit, StepOutcome.INCONCLUSIVE, met=False, note="nothing was due"
        )
    half = _NORMAL * _queue_noise(result) / result.counts.due
    low, high = share - half, share + half
    # The same decision for the share that was not achieved.
    outcome = _separated(1.0 - high, 1.0 - low, 1.0 - limit)
    return ConditionResult(StepCondition.ACHIEVED, share, limit, outcome, met=share >= limit, low=low, high=high)


def _queue_noise(result: StepResult) -> float:
    """Standard deviation, in requests, of the number in flight at the window's end minus that at its start.

    By Little's law, rate x latency requests are in flight. The number in service varies at most like a Poisson count
    (M/G/oo). The number that waits, as before one server with random arrivals (M/M/1), varies by about its mean. Over a
    time too short for the queue to reach a steady state it is a random walk to which arrivals and responses each add
    their count.
    """
    everything = result.latency_all
    under_way = result.due_per_s * (everything.mean_s or 0.0)
    waiting = result.due_per_s * ((everything.mean_s or 0.0) - (everything.min_s or 0.0))
    return math.sqrt(2.0 * min(under_way + waiting**2, float(result.counts.due)))


def _samples(evidence: _Evidence) -> ConditionResult:
    due, required = evidence.result.counts.due, evidence.sla.min_requests
    outcome = StepOutcome.PASS if due >= required else StepOutcome.INCONCLUSIVE
    return ConditionResult(StepCondition.SAMPLES, float(due), float(required), outcome, met=True)


def _generator(evidence: _Evidence) -> ConditionResult:
    """A limit that its machine met; else the worse of its lateness and its processor time."""
    result = evidence.result
    if result.generator_limited:
        share = result.generator_limited / result.counts.due
        note = f"share of the requests that could not be made: {machine_limits(result)}"
        return ConditionResult(StepCondition.GENERATOR, share, 0.0, StepOutcome.FAIL, met=False, note=note)
    readings = [(result.generator_cpu_share, CPU_SHARE, "share of the generator's processor time")]
    if evidence.open_loop and result.lag.p99_s is not None:
        allowed_s = max(LAG_FLOOR_S, LAG_SHARE * evidence.sla.strictest_latency_s)
        readings.append((result.lag.p99_s, allowed_s, "p99 of the generator's lateness in seconds"))
    if not evidence.open_loop and result.wake.p99_s is not None:
        allowed_s = max(WAKE_FLOOR_S, LAG_SHARE * evidence.sla.strictest_latency_s)
        readings.append((result.wake.p99_s, allowed_s, "p99 of how late the generator's threads woke, in seconds"))
    measured, limit, note = max(readings, key=lambda reading: reading[0] / reading[1])
    met = measured <= limit
    outcome = StepOutcome.PASS if met else StepOutcome.FAIL
    return ConditionResult(StepCondition.GENERATOR, measured, limit, outcome, met=met, note=note)


def machine_limits(result: StepResult) -> str:
    """The limits of the generator's machine that a step met, and what raises them; "" if none."""
    return "; ".join(dict.fromkeys(error.detail for error in result.errors if error.kind == GENERATOR_LIMIT))
