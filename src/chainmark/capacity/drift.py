"""Whether a server's latencies and errors change over a long step, from its start to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from chainmark.capacity.model import LoadLevel, Phase, Step, StepOutcome
from chainmark.capacity.service_level import Sla
from chainmark.network.server_series import Readings
from chainmark.stats.trend import Trend, trend_of

# Steps at a fixed level of at least this length are examined, in this number of stretches.
SHORTEST_S = 600.0
STRETCHES = 60
_NS = 1e9


class Drifting(StrEnum):
    """The figures that may drift."""

    P50 = "p50"
    P99 = "p99"
    ERRORS = "errors"
    MEMORY = "memory"


@dataclass(frozen=True)
class Drift:
    """How one figure of a step changed from its start to its end.

    Attributes:
        started_ns: when the step began, wall ns, which distinguishes it from the others at its level.
        begin: seconds, a share of the requests, or bytes; None, like the others: a stretch of the step had no response.
        rise: latencies and memory as a share of the initial value, errors as a share of the requests; low, high: its
            95 % interval.
        limit: largest permitted rise; None: it is not judged.
    """

    what: Drifting
    level: LoadLevel
    started_ns: int
    window_s: float
    begin: float | None
    rise: float | None
    low: float | None
    high: float | None
    limit: float | None
    outcome: StepOutcome


def drifts_of(steps: Sequence[Step], sla: Sla) -> list[Drift]:
    """The drifts of every long step at a fixed level that ran to its end."""
    return [drift for step in _long(steps) for drift in _of_step(step, sla)]


def memory_drifts_of(steps: Sequence[Step], sla: Sla, memory: Readings) -> list[Drift]:
    """The drift of the memory that a server's processes used meanwhile; empty for a step that was not observed."""
    return [drift for step in _long(steps) if (drift := _of_memory(step, sla, memory))]


def _long(steps: Sequence[Step]) -> list[Step]:
    long = [step for step in steps if step.phase is Phase.FIXED and step.result.window_s >= SHORTEST_S]
    return [step for step in long if not (step.partial or step.waited)]


def _of_memory(step: Step, sla: Sla, memory: Readings) -> Drift | None:
    begin_ns = step.result.started_ns + step.result.warm_up_s * _NS
    stretch_ns = step.result.window_s * _NS / STRETCHES
    stretches = [(begin_ns + number * stretch_ns, begin_ns + (number + 1) * stretch_ns) for number in range(STRETCHES)]
    readings = [value for stretch in stretches if (value := memory.mean(*stretch)) is not None]
    if not readings:
        return None
    trend = trend_of(readings) if len(readings) == STRETCHES else None
    return _relative(Drifting.MEMORY, step, trend, sla.memory_drift_share)


def _of_step(step: Step, sla: Sla) -> Iterator[Drift]:
    series = step.result.series
    stretches = _stretches(step)
    for drifting, column in ((Drifting.P50, series.p50_s), (Drifting.P99, series.p99_s)):
        readings = [[value for at in seconds if (value := column[at]) is not None] for seconds in stretches]
        trend = trend_of([median(values) for values in readings]) if all(readings) else None
        yield _relative(drifting, step, trend, sla.drift_share)
    counts = [sum(series.ok[at] + series.failed[at] for at in seconds) for seconds in stretches]
    failed = [sum(series.failed[at] for at in seconds) for seconds in stretches]
    shares = [item / whole for item, whole in zip(failed, counts, strict=True) if whole]
    trend = trend_of(shares) if len(shares) == len(stretches) else None
    limit = None if sla.drift_share is None else sla.error_share
    yield _drift(Drifting.ERRORS, step, trend, 1.0, limit)


def _stretches(step: Step) -> list[list[int]]:
    """The positions of the window's whole seconds in the series, in stretches of equal length."""
    result = step.result
    end_s = result.warm_up_s + result.window_s
    seconds = result.series.second
    inside = [at for at, second in enumerate(seconds) if second >= result.warm_up_s and second + 1 <= end_s + 1e-9]
    size = max(1, len(inside) // STRETCHES)
    return [inside[begin : begin + size] for begin in range(0, size * STRETCHES, size) if inside[begin : begin + size]]


def _relative(what: Drifting, step: Step, trend: Trend | None, limit: float | None) -> Drift:
    """The rise as a share of the initial value; None where the initial value is zero."""
    if trend is not None and trend.begin <= 0.0:
        trend = None
    return _drift(what, step, trend, trend.begin if trend else 1.0, limit)


def _drift(what: Drifting, step: Step, trend: Trend | None, unit: float, limit: float | None) -> Drift:
    of_step = (what, step.level, step.result.started_ns, step.result.window_s)
    if trend is None:
        outcome = StepOutcome.PASS if limit is None else StepOutcome.INCONCLUSIVE
        return Drift(*of_step, None, None, None, None, limit, outcome)
    low, high = (end / unit for end in trend.rise_interval)
    outcome = StepOutcome.PASS
    if limit is not None and high > limit:
        outcome = StepOutcome.FAIL if low > limit else StepOutcome.INCONCLUSIVE
    return Drift(*of_step, trend.begin, trend.rise / unit, low, high, limit, outcome)
