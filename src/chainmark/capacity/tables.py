"""The results of a load test as tables: steps, seconds, errors, and the samples of its metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import polars as pl

from chainmark.capacity.course import Course, Ramp
from chainmark.capacity.engine import GENERATOR_LIMIT, IDLE_CLOSE, RECORD_CLASSES, RIGHT
from chainmark.capacity.figures import figures_of
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.measured import StepSeries
from chainmark.capacity.metrics import (
    ATTEMPT,
    FAILED,
    KEPT_UP_TO,
    LATENCY,
    RECOVERY,
    SEARCHES,
    STEP,
    TIME,
    capacity_id,
    course_id,
    courses_of,
    level_name,
    levels_of,
    parts_of,
    population_id,
)
from chainmark.capacity.model import Endpoint, Step
from chainmark.capacity.recovering import result_of
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.load_report import StepFigures
from chainmark.store.schema import Schema, column_type, schema_of

NS = 1e9
# Gap in seconds between the steps of one level on their common time axis.
STEP_GAP_S = 1.0
ERROR_SCHEMA: Schema = {
    "step": pl.Int64,
    "kind": pl.String,
    "status": pl.Int64,
    "reported": pl.String,
    "detail": pl.String,
    "count": pl.Int64,
    "first_s": pl.Float64,
}

SLOWEST_SCHEMA: Schema = {
    "step": pl.Int64,
    "rank": pl.Int64,
    "endpoint": pl.String,
    "request": pl.Int64,
    "request_text": pl.String,
    "due_ns": pl.Int64,
    "sent_ns": pl.Int64,
    "first_byte_ns": pl.Int64,
    "end_ns": pl.Int64,
    "status": pl.Int64,
    "class": pl.String,
}


def numbered(endpoint_results: Sequence[EndpointResult]) -> Iterator[tuple[int, EndpointResult, Step]]:
    """All steps with their numbers, counted over all endpoints."""
    number = 0
    for endpoint in endpoint_results:
        for step in endpoint.steps():
            yield number, endpoint, step
            number += 1


class StepRow(StepFigures):
    """A row of ``steps.parquet``: the figures of a step, and the data to recompute others."""

    step: int
    endpoint: str
    started_ns: int
    sent: int
    warm_up_due: int
    service_p99_s: float | None
    connections_opened: int
    bytes_out: int
    conditions: str
    latency_hdr: str
    latency_all_hdr: str
    records_left_out: int


STEP_SCHEMA = schema_of(StepRow)
_SERIES = {name: field.annotation for name, field in StepSeries.model_fields.items() if name != "errors"}
SECOND_SCHEMA: Schema = {
    "step": pl.Int64,
    **{name: column_type(get_args(listed)[0]) for name, listed in _SERIES.items()},
}


def steps_frame(endpoint_results: Sequence[EndpointResult]) -> pl.DataFrame:
    """One row per step: the load, the counts, latencies in seconds, the judgement, the histogram."""
    rows = [dict(_step_row(number, endpoint, step)) for number, endpoint, step in numbered(endpoint_results)]
    return pl.DataFrame(rows, schema=dict(STEP_SCHEMA))


def _step_row(number: int, endpoint_result: EndpointResult, step: Step) -> StepRow:
    result = step.result
    return StepRow(
        **dict(figures_of(step)),
        step=number,
        endpoint=endpoint_result.endpoint.id,
        started_ns=result.started_ns,
        sent=result.counts.sent,
        warm_up_due=result.warm_up.due,
        service_p99_s=result.service.p99_s,
        connections_opened=result.connections.opened,
        bytes_out=result.bytes_out,
        conditions=json.dumps([_condition(limit) for limit in step.limits], sort_keys=True),
        latency_hdr=result.latency.hdr,
        latency_all_hdr=result.latency_all.hdr,
        records_left_out=result.records_left_out,
    )


def _condition(limit: Any) -> dict[str, Any]:
    names = ("measured", "limit", "count", "n", "low", "high", "note", "part")
    return {"name": limit.name.value, "outcome": limit.outcome.value, **{key: getattr(limit, key) for key in names}}


def seconds_frame(endpoint_results: Sequence[EndpointResult]) -> pl.DataFrame:
    """One row per step and second, from the start of its warm-up on."""
    schema = dict(SECOND_SCHEMA)
    frames = []
    for number, _, step in numbered(endpoint_results):
        series = step.result.series
        columns = {"step": [number] * len(series.second)} | {name: getattr(series, name) for name in _SERIES}
        frames.append(pl.DataFrame(columns, schema=schema))
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def errors_frame(endpoint_results: Sequence[EndpointResult]) -> pl.DataFrame:
    """One row per step and kind of error."""
    rows = [
        {
            "step": number,
            "kind": error.kind,
            "status": error.status,
            "reported": json.dumps(dict(error.reported), sort_keys=True, ensure_ascii=False),
            "detail": error.detail,
            "count": error.count,
            "first_s": error.first_s,
        }
        for number, _, step in numbered(endpoint_results)
        for error in step.result.errors
    ]
    return pl.DataFrame(rows, schema=dict(ERROR_SCHEMA))


def slowest_frame(endpoint_results: Sequence[EndpointResult], hidden: Callable[[str], str]) -> pl.DataFrame:
    """One row for each of a step's slowest requests: the request, the times of its stages, its outcome.

    Args:
        endpoint_results: of the run.
        hidden: returns a text without secrets.
    """
    rows = [
        {
            "step": number,
            "rank": rank,
            "endpoint": _endpoint_of(endpoint.endpoint, slow.request),
            "request": slow.request,
            "request_text": hidden(_request_text(endpoint.endpoint, slow.request)),
            "due_ns": step.result.started_ns + slow.due_ns,
            "sent_ns": step.result.started_ns + slow.sent_ns,
            "first_byte_ns": None if slow.first_byte_ns is None else step.result.started_ns + slow.first_byte_ns,
            "end_ns": step.result.started_ns + slow.end_ns,
            "status": slow.status,
            "class": RECORD_CLASSES[slow.number_of_class],
        }
        for number, endpoint, step in numbered(endpoint_results)
        for rank, slow in enumerate(step.result.slowest, 1)
    ]
    return pl.DataFrame(rows, schema=dict(SLOWEST_SCHEMA))


def _endpoint_of(endpoint: Endpoint, request: int) -> str:
    """The endpoint of a request; of a mix, its part."""
    own = (part.label for part, places in parts_of(endpoint) if request in places)
    return next(own, endpoint.label)


def _request_text(endpoint: Endpoint, request: int) -> str:
    request_ = endpoint.requests[request]
    return f"{request_.method} {request_.path}"


def samples_of(endpoint_results: Sequence[EndpointResult]) -> dict[str, pl.DataFrame]:
    """The samples of the metrics by population."""
    searched = {
        capacity_id(entry.endpoint.id, kind): [answer.capacity]
        for entry in endpoint_results
        for kind, answer in entry.answers.items()
    }
    columns: dict[str, Any] = {ATTEMPT: [1], **searched}
    schema = {ATTEMPT: pl.Int64, **dict.fromkeys(searched, pl.Float64)}
    samples = {SEARCHES: pl.DataFrame(columns, schema=schema)}
    for item in endpoint_results:
        for level in levels_of(item):
            steps = [step for step in item.fixed if step.level == level and not (step.partial or step.waited)]
            for endpoint, places in [(item.endpoint, None), *parts_of(item.endpoint)]:
                frame = _request_samples(endpoint.id, level_name(level), steps, places)
                samples[population_id(endpoint.id, level)] = frame
        samples |= {course_id(item.endpoint.id, course): _course_samples(item, course) for course in courses_of(item)}
    return samples


def _course_samples(endpoint_result: EndpointResult, course: Course) -> pl.DataFrame:
    """One row per run of a ramp or a spike; null if it shows nothing about the server."""
    name = course_id(endpoint_result.endpoint.id, course)
    measured = f"{name}_{KEPT_UP_TO if isinstance(course, Ramp) else RECOVERY}"
    rows: list[dict[str, float]] = []
    for item in endpoint_result.courses:
        result = result_of(item, endpoint_result.sla)
        if item.course != course or result.note:
            continue
        counts = item.step.result.counts
        failed = counts.failed - item.step.result.generator_limited - item.step.result.closed_idle
        # A server that had not recovered, or an SLA that was never missed, counts with the end.
        end = course.last if isinstance(course, Ramp) else course.after_s
        value = end if result.measured is None else result.measured
        rows.append({ATTEMPT: len(rows) + 1, measured: value, f"{name}_{FAILED}": failed / max(1, counts.ok + failed)})
    return pl.DataFrame(rows, schema={ATTEMPT: pl.Int64, measured: pl.Float64, f"{name}_{FAILED}": pl.Float64})


def _request_samples(endpoint_id: str, level: str, steps: Sequence[Step], places: range | None) -> pl.DataFrame:
    """Every request of the steps at one level: its time, its latency (null if it failed), whether it failed.

    Requests that were due and never sent have failed, too. ``places``: only requests with these indices in the order.
    """
    name = f"{endpoint_id}_at_{level}"
    frames = []
    offset_s = 0.0
    for number, step in enumerate(steps):
        due_s, latency_s, failed = _records(step, places)
        frames.append(
            pl.DataFrame(
                {
                    STEP: np.full(len(due_s), number, dtype=np.int64),
                    TIME: due_s + offset_s,
                    f"{name}_{LATENCY}": latency_s,
                    f"{name}_{FAILED}": failed,
                }
            ).with_columns(pl.col(f"{name}_{LATENCY}").fill_nan(None))
        )
        offset_s += step.result.window_s + STEP_GAP_S
    empty = {STEP: pl.Int64, TIME: pl.Float64, f"{name}_{LATENCY}": pl.Float64, f"{name}_{FAILED}": pl.Float64}
    return pl.concat(frames) if frames else pl.DataFrame(schema=empty)


def _records(
    step: Step, places: range | None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Times since the window's start, latencies (NaN: failed), failures (0 or 1), in chronological order."""
    records = step.result.records
    if records is None:
        raise EnvironmentFailure(f"the load engine kept no records of the step at {step.level}")
    due_s = np.frombuffer(records.due_ns, dtype="<i8") / NS - step.result.warm_up_s
    latency_s = np.frombuffer(records.latency_ns, dtype="<i8") / NS
    classes = np.frombuffer(records.classes, dtype="u1")
    right = classes == RECORD_CLASSES.index(RIGHT)
    failed = ~np.isin(classes, [RECORD_CLASSES.index(item) for item in (RIGHT, GENERATOR_LIMIT, IDLE_CLOSE)])
    rows, due = len(due_s) + step.result.records_left_out, step.result.counts.due
    if rows != due:
        raise EnvironmentFailure(f"the load engine kept {rows} records of the {due} requests at {step.level}")
    latency_s = np.where(right, latency_s, np.nan)
    order = np.argsort(due_s, kind="stable")
    if places is not None:
        indices = np.frombuffer(records.request, dtype="<u4")[order]
        order = order[(indices >= places.start) & (indices < places.stop)]
    return due_s[order], latency_s[order], failed[order].astype(np.float64)
