"""Summaries of many steps for reports: medians, changes between servers, joined seconds, failures of a kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from chainmark.capacity.engine import GENERATOR_LIMIT
from chainmark.core.load_report import CapacityEntry, EndpointEntry, ErrorEntry, Kind, SecondEntry, StepEntry

MOST_BINS = 400  # per time line: more cannot be distinguished


def non_2xx(step: StepEntry) -> int:
    """Requests that failed by their HTTP status."""
    return sum(error.count for error in step.errors if error.status is not None and not 200 <= error.status < 300)


def error_share(*steps: StepEntry) -> float | None:
    """Failed requests as a fraction of those that reached the server; None if none did."""
    unmade = sum(error.count for step in steps for error in step.errors if error.kind == GENERATOR_LIMIT)
    failed = sum(step.failed - step.closed_idle for step in steps) - unmade
    sent = sum(step.ok for step in steps) + failed
    return failed / sent if sent else None


def medians_by_level(steps: Sequence[StepEntry], centile: str) -> dict[float, float]:
    """Per level, the median of its steps' centiles of all due requests, s; steps without the centile are omitted.

    Args:
        steps: of one endpoint and one kind of load.
        centile: "p50", "p95" or "p99".
    """
    results: dict[float, list[float]] = {}
    for step in steps:
        value_s: float | None = getattr(step.of_due, centile).value_s
        if value_s is not None and value_s > 0.0:
            results.setdefault(step.level, []).append(value_s)
    return {level: median(values) for level, values in sorted(results.items())}


@dataclass(frozen=True)
class CapacityChange:
    """A relative change, as a fraction, and its bounds; None: open."""

    point: float | None
    low: float | None
    high: float | None


def change_of(base: CapacityEntry, other: CapacityEntry) -> CapacityChange:
    """The change from one interval to another. A lower bound has no point estimate."""
    bound = "lower bound" in (base.finding, other.finding)
    point = None
    if not bound and base.capacity and other.capacity is not None:
        point = other.capacity / base.capacity - 1.0
    low = other.low / base.high - 1.0 if base.high and other.low > 0.0 else None
    high = other.high / base.low - 1.0 if other.high is not None and base.low > 0.0 else None
    return CapacityChange(point, low, high)


@dataclass
class Failures:
    """All failures of one kind at one endpoint, over its steps."""

    entry: ErrorEntry
    first: StepEntry
    count: int = 0
    steps: int = 0


def failures_of(endpoint: EndpointEntry) -> list[Failures]:
    """Every kind once, the most frequent first."""
    all_failures: dict[tuple[object, ...], Failures] = {}
    for step in endpoint.steps:
        for entry in step.errors:
            key = (entry.kind, entry.status, tuple(sorted(entry.reported.items())), entry.detail)
            failures_of_key = all_failures.setdefault(key, Failures(entry, step))
            failures_of_key.count += entry.count
            failures_of_key.steps += 1
    return sorted(all_failures.values(), key=lambda failures: -failures.count)


@dataclass(frozen=True)
class StepSpan:
    """The position of a step on an axis of the seconds of load, step after step; ``warm`` is the end of its warm-up."""

    step: StepEntry
    begin: int
    warm: float
    length: int


@dataclass(frozen=True)
class Bin:
    """Joined seconds of one step, from ``begin`` to ``end`` on that axis.

    Attributes:
        latencies_s: the median of the seconds' p50, their worst p99 and max; those without any value are omitted.
        failed: requests by kind of failure; unknown kinds are "failed".
        lost: the largest shares of the seconds, by whose time others had.
    """

    step: StepEntry
    begin: float
    end: float
    latencies_s: dict[str, float]
    failed: dict[str, int]
    lost: dict[str, float]


@dataclass(frozen=True)
class BinnedSeconds:
    """The seconds of all steps of an endpoint in sequence, ``size`` of them per bin."""

    spans: list[StepSpan]
    bins: list[Bin]
    size: int


def seconds_of(endpoint: EndpointEntry, kind: Kind) -> BinnedSeconds:
    """The seconds of the steps of one kind of load, joined into about `MOST_BINS` bins at most."""
    by_step: dict[int, list[SecondEntry]] = {}
    for entry in sorted(endpoint.seconds, key=lambda second: second.second):
        by_step.setdefault(entry.step, []).append(entry)
    steps = [step for step in endpoint.steps if step.number in by_step and step.kind == kind]
    lengths = {number: seconds[-1].second - seconds[0].second + 1 for number, seconds in by_step.items()}
    size = max(1, -(-sum(lengths[step.number] for step in steps) // MOST_BINS))
    binned_seconds = BinnedSeconds([], [], size)
    offset = 0
    for step in steps:
        seconds, length = by_step[step.number], lengths[step.number]
        first = seconds[0].second
        binned_seconds.spans.append(
            StepSpan(step, offset, offset + min(max(0.0, step.warm_up_s - first), length), length)
        )
        for start in range(0, length, size):
            together = [second for second in seconds if start <= second.second - first < start + size]
            binned_seconds.bins.append(
                _bin(step, offset + start, min(offset + start + size, offset + length), together)
            )
        offset += length
    return binned_seconds


def _bin(step: StepEntry, begin: float, end: float, seconds: Sequence[SecondEntry]) -> Bin:
    together: dict[str, float | None] = {
        "p50": _over([item.p50_s for item in seconds], median),
        "p99": _over([item.p99_s for item in seconds], max),
        "max": _over([item.max_s for item in seconds], max),
    }
    failed: Counter[str] = Counter()
    for second in seconds:
        errors = {kind: count for kind, count in second.errors.items() if count > 0}
        failed.update(errors)
        failed["failed"] += max(0, second.failed - sum(errors.values()))
    reported = {name: value for name, value in together.items() if value is not None and value > 0.0}
    lost = {
        "generator": _over([item.generator_lost_share for item in seconds], max),
        "server": _over([item.server_lost_share for item in seconds], max),
        "stolen": _over([item.stolen_share for item in seconds], max),
    }
    known_lost = {waiting: share for waiting, share in lost.items() if share is not None}
    return Bin(step, begin, end, reported, dict(sorted((+failed).items())), known_lost)


def _over(values: Sequence[float | None], together: Callable[[list[float]], float]) -> float | None:
    messages = [value for value in values if value is not None and math.isfinite(value)]
    return together(messages) if messages else None
