"""Latency against load of several releases, from the steps that runs of load tests store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl
from pydantic import BaseModel

from chainmark.core.tool import tool_version
from chainmark.lab.stages import stages_of
from chainmark.store.sealed import SealedRun

_CONFIRMED = "confirm"
# Steps whose load changes while they run have no single level.
_CHANGING = ("ramp", "spike")


class Curves(BaseModel):
    """``capacity.json``: the steps of the newest run of every release, with their judgements."""

    schema_version: int = 1
    tool_version: str
    steps: list[CurveStep]
    medians: list[CurveMedian]


class CurveStep(BaseModel):
    """A step of load: its level, the p99 of completed requests, its judgement, and whether it was confirmed."""

    run: str
    version: str
    endpoint: str
    kind: str
    level: float
    p99_s: float | None
    outcome: str
    is_confirmed: bool


class CurveMedian(BaseModel):
    """The median p99 of the steps of one release at one level."""

    version: str
    endpoint: str
    kind: str
    level: float
    p99_s: float


Curves.model_rebuild()


def curves_of(runs: Sequence[SealedRun]) -> Curves:
    """The curves of runs of load tests."""
    steps = [step for run in runs for step in _steps(run)]
    return Curves(tool_version=tool_version(), steps=steps, medians=list(_medians(steps)))


def _steps(run: SealedRun) -> Iterator[CurveStep]:
    names = ("endpoint", "kind", "level", "phase", "outcome", "p99_s")
    at_a_level = ~pl.col("phase").is_in(_CHANGING)
    for row in stages_of(run).filter(at_a_level).select(pl.col(names)).iter_rows(named=True):
        is_confirmed = row.pop("phase") == _CONFIRMED
        yield CurveStep(run=run.run_id, version=run.manifest.subject.version, is_confirmed=is_confirmed, **row)


def _medians(steps: Sequence[CurveStep]) -> Iterator[CurveMedian]:
    results: dict[tuple[str, str, str, float], list[float]] = {}
    for step in steps:
        if step.p99_s:
            results.setdefault((step.version, step.endpoint, step.kind, step.level), []).append(step.p99_s)
    for (version, endpoint, kind, level), values in sorted(results.items()):
        yield CurveMedian(version=version, endpoint=endpoint, kind=kind, level=level, p99_s=median(values))
