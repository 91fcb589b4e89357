"""The results of a load test as its document states them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chainmark.capacity.drift import Drift, drifts_of
from chainmark.capacity.engine import ReadHistogram, native_histogram
from chainmark.capacity.figures import centiles_of_due, figures_of, fixed_levels
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.measured import ErrorClass, PartFigures, StepSeries
from chainmark.capacity.model import (
    Endpoint,
    LevelKind,
    LoadLevel,
    MixPart,
    Phase,
    Step,
    StepCondition,
    StepOutcome,
    Waits,
)
from chainmark.capacity.recovering import CourseStep, result_of
from chainmark.capacity.recovery import HealthProbes
from chainmark.capacity.search import Confirmation, SearchResult
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import machine_limits
from chainmark.core import units
from chainmark.core.load_report import (
    CapacityEntry,
    ConditionEntry,
    ContestedLevel,
    CourseEntry,
    DriftEntry,
    EndpointEntry,
    ErrorEntry,
    PartEntry,
    SecondEntry,
    ServiceLevel,
    StepEntry,
)

# Points of a step's distribution for charts: dense where the limits are.
FRACTIONS = (*(n / 50 for n in range(1, 45)), *(0.88 + n / 200 for n in range(1, 20)), 0.98, 0.985, 0.99, 0.995, 0.999)


def endpoint_entry(
    endpoint_result: EndpointResult,
    strata: Mapping[str, int],
    notes: Sequence[str] = (),
    read_histogram: ReadHistogram = native_histogram,
) -> EndpointEntry:
    """One endpoint of one server."""
    steps = endpoint_result.level_steps()
    numbers = {id(step): number for number, step in enumerate(steps)}
    entries = [_step(number, step, endpoint_result.endpoint, read_histogram) for number, step in enumerate(steps)]
    return EndpointEntry(
        id=endpoint_result.endpoint.id,
        label=endpoint_result.endpoint.label,
        requests=len(endpoint_result.endpoint.requests),
        strata=dict(strata),
        sla=_service_level(endpoint_result.sla),
        capacities=[
            _capacity(answer, numbers, endpoint_result.endpoint)
            for answer in endpoint_result.answers.values()
            if answer.steps
        ],
        steps=entries,
        fixed=fixed_levels(entries),
        drifts=[drift_entry(drift) for drift in drifts_of(steps, endpoint_result.sla)],
        courses=[
            _course(number, course, endpoint_result, read_histogram)
            for number, course in enumerate(endpoint_result.courses, start=len(steps))
        ],
        seconds=[second for number, step in enumerate(steps) for second in _seconds(number, step)],
        notes=list(notes),
    )


def notes_of(endpoint_result: EndpointResult) -> list[str]:
    """Caveats about the figures of an endpoint."""
    return _limit_notes(endpoint_result) + _repetition_notes(endpoint_result) + recovery_notes(endpoint_result.looks)


def _repetition_notes(endpoint_result: EndpointResult) -> list[str]:
    """The effect of connections that the server closed between requests."""
    results = [step.result for step in endpoint_result.steps()]
    reported = units.plural(sum(result.connections.goaway_closed for result in results), "HTTP/2 connection")
    closed = units.plural(sum(result.connections.idle_closed for result in results), "connection")
    notes = []
    if any(result.connections.goaway_closed for result in results):
        notes.append(
            f"the server asked the generator to close {reported} (GOAWAY without an error): the requests that it had "
            "not started were sent again on a new connection"
        )
    if any(result.connections.idle_closed for result in results):
        repeated = units.plural(sum(result.connections.repeated for result in results), "request")
        idle_closed = sum(result.closed_idle for result in results)
        unrepeated = (
            f"; {units.plural(idle_closed, 'request')} that must not be repeated had no response" if idle_closed else ""
        )
        notes.append(
            f"the server closed {closed} that were idle while the next request was on its way: {repeated} were sent "
            f"again{unrepeated}; none of them counts as an error"
        )
    return notes


def _limit_notes(endpoint_result: EndpointResult) -> list[str]:
    """A sentence for each lost generator, and for each limit of the generator's machine, with what raises it."""
    lowest: dict[tuple[str, LevelKind], LoadLevel] = {}
    lost = []
    for step in endpoint_result.steps():
        limits = machine_limits(step.result)
        if limits and any(generator.lost for generator in step.result.generators):
            lost.append(f"{step.level}: {limits}; its part of the requests counts as not made")
        elif limits:
            key = limits, step.level.kind
            lowest[key] = min(step.level, lowest.get(key, step.level))
    return lost + [
        f"the load generator's machine was a limit from {level} on: {item}" for (item, _), level in lowest.items()
    ]


def recovery_notes(looks: HealthProbes) -> list[str]:
    """A sentence for each wait between steps without recovery."""
    notes = []
    for endpoint in looks.unrecovered:
        last_value = "most requests of one client failed"
        if endpoint.p50_s is not None:
            last_value = f"the median at one client was {units.quantity(endpoint.p50_s, 's')}"
        notes.append(
            f"the server had not recovered {units.duration(endpoint.waited_s)} after a step at {endpoint.level}: "
            f"{last_value}, {units.quantity(endpoint.reference_s, 's')} before"
        )
    return notes


def _service_level(sla: Sla) -> ServiceLevel:
    return ServiceLevel(
        p95_s=sla.p95_s,
        p99_s=sla.p99_s,
        error_share=sla.error_share,
        achieved_share=sla.achieved_share,
        min_requests=sla.min_requests,
    )


def _contested(at: Confirmation) -> ContestedLevel:
    return ContestedLevel(level=at.level.value, passed=at.passed, measured=len(at.outcomes))


def _capacity(answer: SearchResult, numbers: Mapping[int, int], endpoint: Endpoint) -> CapacityEntry:
    contested = answer.contested
    missed_by = answer.first_fail.reason_part if answer.first_fail else ""
    return CapacityEntry(
        kind=answer.steps[0].level.kind.value,
        capacity=contested.capacity if contested else answer.capacity,
        low=answer.low,
        high=answer.high,
        stopped_by=answer.stopped_by.value,
        condition=answer.condition.value if answer.condition else None,
        condition_part=next((part.label for part in endpoint.parts if part.id == missed_by), ""),
        finding=answer.finding.value,
        confirmed=answer.confirmed,
        contested=_contested(contested.at) if contested else None,
        best_step=numbers.get(id(contested.best_pass if contested else answer.best_pass)),
        fail_step=numbers.get(id(answer.first_fail)),
    )


def _step(number: int, step: Step, endpoint: Endpoint, read_histogram: ReadHistogram) -> StepEntry:
    ended = step.result.latency_all
    histogram = read_histogram(ended.hdr) if ended.n else None
    figures = figures_of(step)
    conditions = [
        ConditionEntry(
            name=limit.name.value,
            measured=limit.measured,
            limit=limit.limit,
            outcome=limit.outcome.value,
            low=limit.low,
            high=limit.high,
            note=limit.note,
            part=limit.part,
        )
        for limit in step.limits
    ]
    return StepEntry(
        **dict(figures),
        number=number,
        of_due=centiles_of_due(figures, conditions),
        conditions=conditions,
        errors=[_error(error) for error in step.result.errors],
        parts=[_part(part, figures, step) for part, figures in zip(endpoint.parts, step.result.parts, strict=True)],
        curve=[(fraction, histogram.quantile(fraction)) for fraction in FRACTIONS] if histogram else [],
    )


def _course(
    number: int, step: CourseStep, endpoint_result: EndpointResult, read_histogram: ReadHistogram
) -> CourseEntry:
    result = result_of(step, endpoint_result.sla)
    same = {
        name: getattr(result, name)
        for name in ("unit", "measured", "low", "high", "before_s", "peak_s", "limit", "note")
    }
    return CourseEntry(
        what="ramp" if step.course.phase is Phase.RAMP else "spike",
        kind=step.course.kind.value,
        first=step.course.start.value,
        last=step.course.peak.value,
        step=_step(number, step.step, endpoint_result.endpoint, read_histogram),
        seconds=_seconds(number, step.step),
        is_asked=step.course.phase is Phase.SPIKE and endpoint_result.sla.recovery_s is not None,
        outcome=result.outcome.value,
        **same,
    )


def drift_entry(drift: Drift) -> DriftEntry:
    """The step in the document's form."""
    same = {name: getattr(drift, name) for name in ("window_s", "begin", "rise", "low", "high", "limit")}
    kind, outcome = drift.level.kind.value, drift.outcome.value
    return DriftEntry(what=drift.what.value, kind=kind, level=drift.level.value, outcome=outcome, **same)


def _part(part: MixPart, figures: PartFigures, step: Step) -> PartEntry:
    limits = [limit for limit in step.limits if limit.part == part.id]
    errors = next(limit for limit in limits if limit.name is StepCondition.ERRORS)
    worst = next(
        (
            step_outcome
            for step_outcome in (StepOutcome.FAIL, StepOutcome.INCONCLUSIVE)
            if step_outcome in {limit.outcome for limit in limits}
        ),
        None,
    )
    counts, latency = figures.counts, figures.latency
    return PartEntry(
        id=part.id,
        label=part.label,
        share=counts.due / step.result.counts.due if step.result.counts.due else None,
        due=counts.due,
        ok=counts.ok,
        failed=counts.failed,
        unsent=counts.unsent,
        p50_s=latency.p50_s,
        p95_s=latency.p95_s,
        p99_s=next(limit.measured for limit in limits if limit.name is StepCondition.P99),
        error_share=errors.measured,
        p99_limit_s=part.sla.p99_s,
        outcome=(worst or StepOutcome.PASS).value,
    )


def _error(error: ErrorClass) -> ErrorEntry:
    return ErrorEntry(
        kind=error.kind,
        status=error.status,
        reported={pointer.strip("/"): _as_text(value) for pointer, value in error.reported.items()},
        detail=error.detail,
        count=error.count,
        first_s=error.first_s,
    )


def _as_text(value: Any) -> str:
    """Text unchanged, anything else as JSON: `true`, not `True`."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lost(waits: Waits | None, index: int) -> dict[str, float | None]:
    if waits is None:
        return {}
    return {
        "generator_lost_share": waits.generator_by_second[index],
        "server_lost_share": waits.server_by_second[index],
        "stolen_share": waits.stolen_by_second[index],
    }


def _seconds(number: int, step: Step) -> list[SecondEntry]:
    series = step.result.series
    names = SecondEntry.model_fields.keys() & StepSeries.model_fields.keys() - {"errors"}
    return [
        SecondEntry(
            step=number,
            **_lost(step.waits, index),
            errors={kind: counts[index] for kind, counts in sorted(series.errors.items()) if counts[index]},
            **{name: getattr(series, name)[index] for name in names},
        )
        for index in range(len(series.second))
    ]
