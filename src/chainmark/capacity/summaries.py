"""Summaries of many steps for reports: medians, changes between servers, joined seconds, failures of a kind.

They are figures of the report, which its layouts only read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from chainmark.capacity.engine import GENERATOR_LIMIT
from chainmark.core.load_report import (
    LOAD_REPORT_SCHEMA,
    CapacityChange,
    CapacityEntry,
    EndpointEntry,
    ErrorEntry,
    JoinedSeconds,
    Kind,
    LevelFigures,
    LevelUse,
    LoadReport,
    ResourceEntry,
    SecondEntry,
    StepEntry,
    TargetEntry,
)

MOST_BINS = 400  # per time line: more cannot be distinguished
_KINDS: tuple[Kind, ...] = ("clients", "rate")


def non_2xx(step: StepEntry) -> int:
    """Requests that failed by their HTTP status."""
    return sum(error.count for error in step.errors if error.status is not None and not 200 <= error.status < 300)


def error_share(*steps: StepEntry) -> float | None:
    """Failed requests as a fraction of those that reached the server; None if none did."""
    unmade = sum(error.count for step in steps for error in step.errors if error.kind == GENERATOR_LIMIT)
    failed = sum(step.failed - step.closed_idle for step in steps) - unmade
    sent = sum(step.ok for step in steps) + failed
    return failed / sent if sent else None


def summarised(report: LoadReport) -> LoadReport:
    """The report with the summaries of its steps, its seconds and its capacities."""
    targets = [
        target.model_copy(update={"endpoints": [_summarised(endpoint) for endpoint in target.endpoints]})
        for target in report.targets
    ]
    update = {"schema_version": LOAD_REPORT_SCHEMA, "targets": targets, "changes": list(_changes(targets))}
    return report.model_copy(update=update)


def _summarised(endpoint: EndpointEntry) -> EndpointEntry:
    return endpoint.model_copy(
        update={
            "levels": list(_levels(endpoint.steps)),
            "joined": _joined(endpoint.steps, endpoint.seconds),
            "courses": [
                course.model_copy(update={"joined": _joined([course.step], course.seconds)})
                for course in endpoint.courses
            ],
            "resources": [_used(resource, endpoint.steps) for resource in endpoint.resources],
        }
    )


def _by_level(steps: Iterable[StepEntry]) -> list[tuple[Kind, float, list[StepEntry]]]:
    by_level: dict[tuple[Kind, float], list[StepEntry]] = {}
    for step in steps:
        by_level.setdefault((step.kind, step.level), []).append(step)
    return [(*key, steps) for key, steps in sorted(by_level.items(), key=lambda item: item[0])]


def _levels(steps: Sequence[StepEntry]) -> Iterator[LevelFigures]:
    """Steps without a centile are omitted from its median."""
    for kind, level, together in _by_level(steps):
        centiles = [step.of_due for step in together]
        yield LevelFigures(
            kind=kind,
            level=level,
            p50_s=_over([_positive(each.p50.value_s) for each in centiles], median),
            p95_s=_over([_positive(each.p95.value_s) for each in centiles], median),
            p99_s=_over([_positive(each.p99.value_s) for each in centiles], median),
        )


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0.0 else None


def _used(resource: ResourceEntry, steps: Sequence[StepEntry]) -> ResourceEntry:
    levels = []
    for kind, level, together in _by_level(step for step in steps if not step.partial):
        numbers = {step.number for step in together}
        uses = [use for use in resource.uses if use.step in numbers]
        mean, share = _over([use.mean for use in uses], median), _over([use.share for use in uses], median)
        if mean is not None:
            levels.append(LevelUse(kind=kind, level=level, mean=mean, share=share))
    limit = _over([use.limit for use in resource.uses], median)
    return resource.model_copy(update={"limit": limit, "levels": levels})


def _changes(targets: Sequence[TargetEntry]) -> Iterator[CapacityChange]:
    """The change of every capacity that the first server has as well."""
    first = {} if not targets else _capacities(targets[0])
    for place, target in enumerate(targets[1:], start=1):
        for key, capacity in _capacities(target).items():
            if key in first:
                yield _change(place, key[0], first[key], capacity)


def _capacities(target: TargetEntry) -> dict[tuple[str, Kind], CapacityEntry]:
    return {(endpoint.id, capacity.kind): capacity for endpoint in target.endpoints for capacity in endpoint.capacities}


def _change(target: int, endpoint: str, base: CapacityEntry, other: CapacityEntry) -> CapacityChange:
    """The change from one interval to another. A lower bound has no point estimate."""
    bound = "lower bound" in (base.finding, other.finding)
    point = None
    if not bound and base.capacity and other.capacity is not None:
        point = other.capacity / base.capacity - 1.0
    low = other.low / base.high - 1.0 if base.high and other.low > 0.0 else None
    high = other.high / base.low - 1.0 if other.high is not None and base.low > 0.0 else None
    return CapacityChange(target=target, endpoint=endpoint, kind=other.kind, point=point, low=low, high=high)


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


def _joined(steps: Sequence[StepEntry], seconds: Sequence[SecondEntry]) -> list[JoinedSeconds]:
    """The seconds of every kind of load with more than `MOST_BINS`, joined into about as many."""
    joined = []
    for kind in _KINDS:
        numbers = {step.number for step in steps if step.kind == kind}
        by_step: dict[int, list[SecondEntry]] = {}
        for second in sorted(seconds, key=lambda entry: (entry.step, entry.second)):
            if second.step in numbers:
                by_step.setdefault(second.step, []).append(second)
        size = -(-sum(own[-1].second - own[0].second + 1 for own in by_step.values()) // MOST_BINS)
        if size > 1:
            together = [one for own in by_step.values() for one in _in_groups(own, size)]
            joined.append(JoinedSeconds(kind=kind, size=size, seconds=together))
    return joined


def _in_groups(seconds: Sequence[SecondEntry], size: int) -> Iterator[SecondEntry]:
    """The seconds of one step, ``size`` of them in one."""
    first = seconds[0].second
    groups: dict[int, list[SecondEntry]] = {}
    for second in seconds:
        groups.setdefault((second.second - first) // size, []).append(second)
    for place, group in groups.items():
        yield _as_one(first + place * size, group)


def _as_one(begin: int, seconds: Sequence[SecondEntry]) -> SecondEntry:
    failed: Counter[str] = Counter()
    for second in seconds:
        failed.update({kind: count for kind, count in second.errors.items() if count > 0})
        failed["failed"] += second.failed_otherwise
    return SecondEntry(
        step=seconds[0].step,
        second=begin,
        started=sum(second.started for second in seconds),
        ok=sum(second.ok for second in seconds),
        failed=sum(failed.values()),
        in_flight=max(second.in_flight for second in seconds),
        queued=max(second.queued for second in seconds),
        p50_s=_over([second.p50_s for second in seconds], median),
        p99_s=_over([second.p99_s for second in seconds], max),
        max_s=_over([second.max_s for second in seconds], max),
        errors=dict(sorted((+failed).items())),
        wake_p99_s=_over([second.wake_p99_s for second in seconds], max),
        generator_lost_share=_over([second.generator_lost_share for second in seconds], max),
        server_lost_share=_over([second.server_lost_share for second in seconds], max),
        stolen_share=_over([second.stolen_share for second in seconds], max),
    )


def _over(values: Iterable[float | None], together: Callable[[list[float]], float]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return together(known) if known else None
