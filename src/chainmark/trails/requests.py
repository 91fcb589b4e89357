"""Tracing the requests of a load test, for every system whose servers are load-tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from chainmark.capacity.engine import RIGHT
from chainmark.capacity.model import LevelKind
from chainmark.store.sealed import SealedRun
from chainmark.trails.trail import FollowRequest, Trail, TrailStage

if TYPE_CHECKING:
    from chainmark.compare.sides import SelectedRuns
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.comparison import Followed
    from chainmark.report.document import Document

_EVENTS = "slowest"
_DONE = "right answer"
REQUESTS = Trail(
    id="request",
    label="request",
    populations=[],
    events=_EVENTS,
    key=["step", "rank"],
    outcome="outcome",
    done=_DONE,
    only_slowest=True,
    base="due_ns",
    base_label="due time",
    facts={
        "request_text": "request",
        "endpoint": "endpoint",
        "outcome": "outcome",
        "status": "HTTP status",
        "load": "load of the step",
        "phase": "phase of the step",
        "p50_ms": "median latency of the step, ms",
        "due": "requests due in the step",
        "failed": "failed in the step",
    },
    listed=["endpoint", "load", "p50_ms", "outcome"],
    stages=[
        TrailStage(id="due", label="due", time="due_ns"),
        TrailStage(id="sent", label="sent", time="sent_ns"),
        TrailStage(id="first_byte", label="first byte", time="first_byte_ns"),
        TrailStage(id="finished", label="finished", time="end_ns"),
    ],
)


class FollowsRequests:
    """The slowest requests of every step of a load test, with the parts of their time."""

    def followed(self, run: SealedRun) -> Sequence[str]:
        """Requests, if the run has the slowest of them: those of earlier versions have not."""
        return [REQUESTS.id] if _has_slowest(run) else []

    def follow(self, run: SealedRun, order: FollowRequest) -> Document:
        """The trace of one request, or the slowest ones."""
        from chainmark.trails.following import followed  # noqa: PLC0415 - imported on demand

        trails = [REQUESTS] if _has_slowest(run) else []
        total = int(run.events("steps")["due"].sum()) if trails else None
        return followed(run, order, trails=trails, events_of=request_lifecycles, total=total)

    def tails(self, sides: Sequence[SelectedRuns], catalogue: Catalogue) -> Followed | None:
        """None: the samples of a load test are of steps, or do not identify their request."""
        del sides, catalogue
        return None


def _has_slowest(run: SealedRun) -> bool:
    return run.keeps(f"events/{_EVENTS}.parquet")


def request_lifecycles(run: SealedRun, trail: Trail) -> pl.LazyFrame | None:
    """One row per stored request, with the known facts about its step."""
    is_rate, level = pl.col("kind") == LevelKind.RATE.value, pl.col("level").round(3)
    whole = pl.when(level == level.round()).then(level.cast(pl.Int64).cast(pl.String)).otherwise(level.cast(pl.String))
    unit = (
        pl.when(is_rate)
        .then(pl.lit("requests per second"))
        .when(level == 1.0)
        .then(pl.lit("client"))
        .otherwise(pl.lit("clients"))
    )
    steps = run.scan_events("steps").select(
        "step", "phase", "due", "failed", p50_ms=(1e3 * pl.col("p50_s")).round(3), load=pl.format("{} {}", whole, unit)
    )
    right = pl.col("class") == RIGHT
    return (
        run.scan_events(trail.events)
        .rename({"asked": "request_text"}, strict=False)  # the column of early runs
        .join(steps, on="step")
        .with_columns(outcome=pl.when(right).then(pl.lit(_DONE)).otherwise(pl.format("failed: {}", "class")))
    )
