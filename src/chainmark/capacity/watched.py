"""Observations of a server under load, step by step, for the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from chainmark.capacity.bottleneck import exhausted_entries
from chainmark.capacity.drift import Drift, drifts_of, memory_drifts_of
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.model import Step
from chainmark.capacity.report import drift_entry
from chainmark.capacity.tables import numbered
from chainmark.core.load_report import EndpointEntry, ResourceEntry, SourceEntry, StatementEntry, UseEntry
from chainmark.network.server_series import SERVER_SCHEMA, Resource, Statement, Watched
from chainmark.network.server_usage import CGROUP, MEMORY, PROCESS
from chainmark.store.schema import Schema

_NS = 1e9
# The load of a level needs a moment to reach the server.
_SETTLED_S = 0.5
# Number of series without a known limit from a page of metrics: those that change most with the load.
MOST_WITHOUT_LIMIT = 20
_MOST_STATEMENTS = 3

WATCH_SCHEMA: Schema = {"step": pl.Int64, "second": pl.Int64, **SERVER_SCHEMA}


def watch_frame(watched: Watched, endpoint_results: Sequence[EndpointResult]) -> pl.DataFrame:
    """Every reading, with its step and the second in it; null between the steps.

    The step numbers are those of ``steps.parquet``.
    """
    frame = watched.frame()
    step, second = pl.lit(None, dtype=pl.Int64), pl.lit(None, dtype=pl.Int64)
    steps = pl.DataFrame(
        [(number, *_whole(item)) for number, _, item in numbered(endpoint_results)],
        schema={"step": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64},
        orient="row",
    ).sort("begin_ns")
    if frame.is_empty() or steps.is_empty():
        return frame.select(step.alias("step"), second.alias("second"), pl.all())
    joined = frame.join_asof(steps, left_on="time_ns", right_on="begin_ns", strategy="backward")
    inside = pl.col("time_ns") < pl.col("end_ns")
    return joined.select(
        pl.when(inside).then("step").alias("step"),
        pl.when(inside).then((pl.col("time_ns") - pl.col("begin_ns")) // int(_NS)).alias("second"),
        *(pl.col(name) for name in SERVER_SCHEMA),
    )


def _whole(step: Step) -> tuple[int, int]:
    """When it began and ended, warm-up and draining included, wall ns."""
    started_ns = step.result.started_ns
    return started_ns, started_ns + round(len(step.result.series.second) * _NS)


def _loaded(step: Step) -> tuple[float, float]:
    """When its load was on the server, wall ns: with warm-up, without draining."""
    started_ns, result = step.result.started_ns, step.result
    return started_ns + _SETTLED_S * _NS, started_ns + (result.warm_up_s + result.window_s) * _NS


def source_entries(watched: Watched) -> list[SourceEntry]:
    """The sources, and how often each responded."""
    return [
        SourceEntry(name=source.name, what=source.what, read=source.read, missed=source.missed, why=source.why)
        for source in watched.sources
    ]


def with_watched(entry: EndpointEntry, endpoint_result: EndpointResult, watched: Watched) -> EndpointEntry:
    """An endpoint with the server's resource use meanwhile, and the bottleneck."""
    steps = endpoint_result.level_steps()
    used = [item for resource in watched.resources if (item := _resource(resource, steps, entry)).uses]
    limited = [resource for resource in used if _is_telling(resource)]
    others = sorted((resource for resource in used if not _is_telling(resource)), key=_change, reverse=True)
    resources = [*limited, *others[:MOST_WITHOUT_LIMIT]]
    return entry.model_copy(
        update={
            "resources": resources,
            "series_left_out": len(others[MOST_WITHOUT_LIMIT:]),
            "statements": [
                statement for at, step in enumerate(steps) for statement in _statements(at, step, watched.statements)
            ],
            "exhausted": exhausted_entries(entry.steps, resources),
            "drifts": [*entry.drifts, *map(drift_entry, _memory_drifts(endpoint_result, watched))],
        }
    )


def drifts_in(endpoint_result: EndpointResult, watched: Watched) -> list[Drift]:
    """The drifts over an endpoint's long steps."""
    return [
        *drifts_of(endpoint_result.level_steps(), endpoint_result.sla),
        *_memory_drifts(endpoint_result, watched),
    ]


def _memory_drifts(endpoint_result: EndpointResult, watched: Watched) -> Iterator[Drift]:
    """The drifts of the memory of the server's processes, or of its control group."""
    for reading_series in watched.series:
        if reading_series.name.source in {PROCESS, CGROUP} and reading_series.name.series == MEMORY:
            yield from memory_drifts_of(endpoint_result.level_steps(), endpoint_result.sla, reading_series)


def _resource(resource: Resource, steps: Sequence[Step], entry: EndpointEntry) -> ResourceEntry:
    name = resource.used.name
    return ResourceEntry(
        source=name.source,
        series=name.series,
        label=resource.label,
        unit=name.unit,
        sort=name.sort,
        limit_is=resource.limit_is,
        is_cpu=resource.is_cpu,
        uses=list(_uses(resource, steps, entry)),
    )


def _uses(resource: Resource, steps: Sequence[Step], entry: EndpointEntry) -> Iterator[UseEntry]:
    for step, reported in zip(steps, entry.steps, strict=True):
        stretch = _loaded(step)
        mean = resource.used.mean(*stretch)
        if mean is None:
            continue
        highest = resource.used.highest(*stretch)
        limit = resource.limit_over(*stretch)
        # Only the processor time that others leave can be used up.
        lost = reported.server_lost_share or 0.0 if resource.is_cpu else 0.0
        share = mean / (limit * (1.0 - lost)) if limit is not None and lost < 1.0 else None
        yield UseEntry(
            step=reported.number,
            mean=mean,
            highest=mean if highest is None else max(mean, highest),
            limit=limit,
            share=share,
        )


def _is_telling(resource_entry: ResourceEntry) -> bool:
    """Whether it is always reported: it has a limit, or is not one of a page's many series."""
    return (
        any(use.limit is not None for use in resource_entry.uses)
        or not resource_entry.label.startswith("`")
        or resource_entry.is_cpu
    )


def _change(resource_entry: ResourceEntry) -> float:
    """Its change over the steps, relative to its size."""
    values = [use.mean for use in resource_entry.uses]
    size = max(map(abs, values))
    return (max(values) - min(values)) / size if size > 0.0 else 0.0


def _statements(number: int, step: Step, statements: Sequence[Statement]) -> Iterator[StatementEntry]:
    """The most expensive statements of a step."""
    begin_ns, end_ns = _loaded(step)
    active = [(item, seconds) for item in statements if (seconds := item.seconds.mean(begin_ns, end_ns))]
    for statement, busy in sorted(active, key=lambda each: (-each[1], each[0].text))[:_MOST_STATEMENTS]:
        calls_per_s = statement.calls.mean(begin_ns, end_ns) or 0.0
        yield StatementEntry(step=number, text=statement.text, busy=busy, calls_per_s=calls_per_s)
