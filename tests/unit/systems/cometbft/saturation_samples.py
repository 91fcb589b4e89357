"""Runs of saturation tests with known figures."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core.manifest import Fact, Subject
from chainmark.core.metric import Better, Kind, Metric
from chainmark.lab.sweeping import SweepTest
from chainmark.systems.cometbft.saturation.results import (
    CellRun,
    LatencyEntry,
    RunFigure,
    SaturationMetrics,
    VersionRuns,
)

LOAD_S = 1000


def _metric(id_: str, kind: Kind, better: Better, unit: str) -> Metric:
    return Metric(
        id=id_, label=id_.replace("_", " "), unit=unit, kind=kind, better=better, statistics=["mean", "p50", "p99"],
        judged_by=["mean"], table="t", order=1, population="p", description="", source=[],
    )  # fmt: skip


METRICS = SaturationMetrics(
    committed=_metric("committed_share", Kind.PROPORTION, Better.HIGHER, "fraction"),
    throughput=_metric("throughput_per_s", Kind.POSITIVE, Better.HIGHER, "tx/s"),
    latency=_metric("latency_s", Kind.POSITIVE, Better.LOWER, "s"),
)


def run(
    connections: int,
    rate: int,
    share: float,
    *,
    throughput: float | None = None,
    latency: float = 1.0,
    pace: float | None = None,
    position: int | None = None,
    excluded: str = "",
) -> CellRun:
    """One run that processed a share of 1000 s of load."""
    offered = connections * rate * LOAD_S
    committed = round(share * offered)
    return CellRun(
        origin=f"run-c{connections}r{rate}-{position}",
        repetition=1,
        position=position,
        connections=connections,
        rate_per_s=rate,
        load_s=float(LOAD_S),
        offered=offered,
        unsent=0,
        rejected={"mempool full": offered - committed},
        accepted=committed,
        pending=0,
        lost=0,
        committed=committed,
        throughput_per_s=RunFigure(value=committed / LOAD_S if throughput is None else throughput),
        pace=RunFigure(value=share if pace is None else pace),
        latency=LatencyEntry(
            n=committed, mean=RunFigure(value=latency), p50=RunFigure(value=latency), p99=RunFigure(value=2 * latency)
        ),
        excluded=excluded,
        limits=["the machine was busy: 1.95 of 2 cores used"] if share < 0.5 else [],
    )


def version(label: str, runs: Sequence[CellRun], *, kind: str = "observed", published: bool = False) -> VersionRuns:
    """A version with these runs."""
    return VersionRuns(
        label=label,
        subject=Subject(system="some", name="Some", version=label),
        published=published,
        source="a test",
        expected="what the schedule holds",
        latency_is="from due to seen",
        latency_kind=kind,
        throughput_is="committed per second",
        runs=runs,
        conditions={"block_time": "of the proposer"},
        facts=[Fact(label="Nodes", value="4")],
    )


def whole_test() -> SweepTest:
    """The description of the test as a whole in a document."""
    return SweepTest(
        title="Saturation of Some old and new",
        system="some",
        profile_name="some/saturation",
        experiment="some-saturation-1",
        started_at="2026-01-02T03:04:05Z",
        tool_version="0.1.0",
        seed=1,
        tolerance=0.1,
        order="In an order.",
        machine=[Fact(label="Processor", value="one")],
        notes=["Fresh networks."],
    )
