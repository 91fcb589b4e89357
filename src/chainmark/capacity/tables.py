"""What a load test gave as tables: steps, seconds, errors, and the samples of its metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from chainmark.capacity.loadtest import Found
from chainmark.capacity.metrics import (
    ATTEMPT,
    FAILED,
    LATENCY,
    SEARCHES,
    STEP,
    TIME,
    capacity_id,
    level_name,
    levels_of,
    population_id,
)
from chainmark.capacity.model import Step
from chainmark.core.errors import EnvironmentFailure
from chainmark.store.schema import Schema

NS = 1e9
# Seconds between the steps of one level, on the axis of time that they share.
STEP_GAP_S = 1.0
_SERIES = (
    "started",
    "ok",
    "failed",
    "in_flight",
    "queued",
    "bytes_in",
    "p50_s",
    "p99_s",
    "max_s",
    "cpu_s",
    "lag_p99_s",
)
SECOND_SCHEMA: Schema = {
    "step": pl.Int64,
    "second": pl.Int64,
    **{name: pl.Float64 if name.endswith("_s") else pl.Int64 for name in _SERIES},
}
ERROR_SCHEMA: Schema = {
    "step": pl.Int64,
    "kind": pl.String,
    "status": pl.Int64,
    "told": pl.String,
    "detail": pl.String,
    "count": pl.Int64,
    "first_s": pl.Float64,
}


def numbered(found: Sequence[Found]) -> Iterator[tuple[int, Found, Step]]:
    """All steps with their numbers, counted over all endpoints."""
    number = 0
    for one in found:
        for step in one.steps():
            yield number, one, step
            number += 1


def steps_frame(found: Sequence[Found]) -> pl.DataFrame:
    """One row a step: what was asked, the books, latencies in seconds, the judgement, the histogram."""
    return pl.DataFrame(
        [_step_row(number, one, step) for number, one, step in numbered(found)], schema=dict(STEP_SCHEMA)
    )


STEP_SCHEMA: Schema = {
    "step": pl.Int64, "endpoint": pl.String, "kind": pl.String, "level": pl.Float64, "phase": pl.String,
    "outcome": pl.String, "leaning": pl.String, "reason": pl.String, "lengthened": pl.Boolean, "partial": pl.Boolean,
    "started_ns": pl.Int64, "warm_up_s": pl.Float64, "window_s": pl.Float64, "ended": pl.String, "due": pl.Int64,
    "sent": pl.Int64, "ok": pl.Int64, "failed": pl.Int64, "unsent": pl.Int64, "warm_up_due": pl.Int64,
    "ok_per_s": pl.Float64, "p50_s": pl.Float64, "p90_s": pl.Float64, "p95_s": pl.Float64, "p99_s": pl.Float64,
    "max_s": pl.Float64, "service_p99_s": pl.Float64, "lag_p99_s": pl.Float64, "generator_cpu_share": pl.Float64,
    "connections_opened": pl.Int64, "bytes_in": pl.Int64, "bytes_out": pl.Int64, "conditions": pl.String,
    "latency_hdr": pl.String, "latency_all_hdr": pl.String, "records_left_out": pl.Int64,
}  # fmt: skip


def _step_row(number: int, found: Found, step: Step) -> dict[str, Any]:
    result = step.result
    ended = result.latency_all
    return {
        "step": number,
        "endpoint": found.endpoint.id,
        "kind": step.level.kind.value,
        "level": step.level.value,
        "phase": step.phase.value,
        "outcome": step.outcome.value,
        "leaning": step.leaning.value,
        "reason": step.reason.value if step.reason else None,
        "lengthened": step.lengthened,
        "partial": step.partial,
        "started_ns": result.started_ns,
        "warm_up_s": result.warm_up_s,
        "window_s": result.window_s,
        "ended": result.ended,
        "due": result.books.due,
        "sent": result.books.sent,
        "ok": result.books.ok,
        "failed": result.books.failed,
        "unsent": result.books.unsent,
        "warm_up_due": result.warm_up.due,
        "ok_per_s": result.ok_per_s,
        "p50_s": ended.p50_s,
        "p90_s": ended.p90_s,
        "p95_s": ended.p95_s,
        "p99_s": ended.p99_s,
        "max_s": ended.max_s,
        "service_p99_s": result.service.p99_s,
        "lag_p99_s": result.lag.p99_s,
        "generator_cpu_share": result.generator_cpu_share,
        "connections_opened": int(result.connections.get("opened", 0)),
        "bytes_in": result.bytes_in,
        "bytes_out": result.bytes_out,
        "conditions": json.dumps([_condition(limit) for limit in step.limits], sort_keys=True),
        "latency_hdr": result.latency.hdr,
        "latency_all_hdr": ended.hdr,
        "records_left_out": result.records_left_out,
    }


def _condition(limit: Any) -> dict[str, Any]:
    names = ("measured", "limit", "count", "n", "low", "high", "note")
    return {"name": limit.name.value, "outcome": limit.outcome.value, **{key: getattr(limit, key) for key in names}}


def seconds_frame(found: Sequence[Found]) -> pl.DataFrame:
    """One row a step and second, from the begin of its warm-up on."""
    schema = dict(SECOND_SCHEMA)
    frames = []
    for number, _, step in numbered(found):
        series = step.result.series
        columns = {"step": [number] * len(series["second"]), "second": list(series["second"])}
        frames.append(pl.DataFrame(columns | {name: list(series[name]) for name in _SERIES}, schema=schema))
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def errors_frame(found: Sequence[Found]) -> pl.DataFrame:
    """One row a step and kind of error."""
    rows = [
        {
            "step": number,
            "kind": error.kind,
            "status": error.status,
            "told": json.dumps(dict(error.told), sort_keys=True, ensure_ascii=False),
            "detail": error.detail,
            "count": error.count,
            "first_s": error.first_s,
        }
        for number, _, step in numbered(found)
        for error in step.result.errors
    ]
    return pl.DataFrame(rows, schema=dict(ERROR_SCHEMA))


def samples_of(found: Sequence[Found]) -> dict[str, pl.DataFrame]:
    """The samples of the metrics by population."""
    searched = {
        capacity_id(one.endpoint.id, kind): [answer.capacity] for one in found for kind, answer in one.answers.items()
    }
    columns: dict[str, Any] = {ATTEMPT: [1], **searched}
    schema = {ATTEMPT: pl.Int64, **dict.fromkeys(searched, pl.Float64)}
    samples = {SEARCHES: pl.DataFrame(columns, schema=schema)}
    for one in found:
        for level in levels_of(one):
            steps = [step for step in one.fixed if step.level == level and not step.partial]
            samples[population_id(one.endpoint.id, level)] = _request_samples(one.endpoint.id, level_name(level), steps)
    return samples


def _request_samples(endpoint_id: str, level: str, steps: Sequence[Step]) -> pl.DataFrame:
    """Every request of the steps at one level: its time, its latency (null if it failed), whether it failed.

    What was due and never sent has failed, too.
    """
    name = f"{endpoint_id}_at_{level}"
    frames = []
    offset_s = 0.0
    for number, step in enumerate(steps):
        due_s, latency_s, failed = _records(step)
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


def _records(step: Step) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Times since the window's begin, latencies (NaN: failed), failures (0 or 1), in the order of time."""
    records = step.result.records
    if records is None:
        raise EnvironmentFailure(f"the load engine kept no records of the step at {step.level}")
    due_s = np.frombuffer(records["due_ns"], dtype="<i8") / NS - step.result.warm_up_s
    latency_s = np.frombuffer(records["latency_ns"], dtype="<i8") / NS
    failed = np.frombuffer(records["class"], dtype="u1") != 0
    rows, due = len(due_s) + step.result.records_left_out, step.result.books.due
    if rows != due:
        raise EnvironmentFailure(f"the load engine kept {rows} records of the {due} requests at {step.level}")
    latency_s = np.where(failed, np.nan, latency_s)
    order = np.argsort(due_s, kind="stable")
    return due_s[order], latency_s[order], failed[order].astype(np.float64)
