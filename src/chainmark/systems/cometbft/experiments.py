"""The experiments of CometBFT's own load test, as its report tool numbers them: one load each, of 90 s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from chainmark.core.errors import UsageError
from chainmark.core.manifest import Subject
from chainmark.lab.protocols import ImportRequest
from chainmark.systems.cometbft.saturation.results import CellRun, LatencyEntry, RunFigure, VersionRuns

# Of 90 s of one batch per second the last batch coincides with the end, and is normally not sent.
LOAD_S = 89
NAME = "CometBFT"
UNSTATED = "not stated"
LATENCY_IS = (
    "from the creation of a transaction to the header time of the next block, as CometBFT's report tool computes it"
)
HEADER_NOTE = (
    "These latencies end at the header time of the next block. Under proposer-based timestamps that is the time at "
    "which the next block was proposed, about timeout_commit after the commit; under BFT time it is about the commit. "
    "The table does not state which one its network used."
)


@dataclass(frozen=True)
class LoadExperiment:
    """One load.

    Attributes:
        id: its UUID, as printed.
        connections, rate, size_bytes: transactions per second and connection, of this size.
    """

    id: str
    connections: int
    rate: int
    size_bytes: int

    @property
    def part(self) -> str:
        """Its name as part of its source: c1-r200-93024f38."""
        return f"c{self.connections}-r{self.rate}-{self.id[:8]}"

    @property
    def expected(self) -> int:
        """Number of transactions that the load tool plans to send."""
        return self.connections * self.rate * LOAD_S

    def cell(self, committed: int, throughput_per_s: float, latency: LatencyEntry) -> CellRun:
        """As a load of a saturation test."""
        return CellRun(
            origin=self.id,
            connections=self.connections,
            rate_per_s=self.rate,
            load_s=float(LOAD_S),
            offered=self.expected,
            committed=committed,
            throughput_per_s=RunFigure(value=throughput_per_s),
            latency=latency,
        )


Experiment = TypeVar("Experiment", bound=LoadExperiment)


def parts_of_source(path: Path, experiments: Sequence[LoadExperiment]) -> list[str]:
    """The names of the experiments of a file, in their order.

    Raises:
        UsageError: two would have one name.
    """
    parts = [experiment.part for experiment in experiments]
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise UsageError(f"two experiments of `{path}` have the same name: {twice}", "put them into separate files")
    return parts


def ordered_experiment(order: ImportRequest, experiments: Sequence[Experiment]) -> Experiment:
    """The experiment that an import requests.

    Raises:
        UsageError: there is no such one.
    """
    experiment = next((item for item in experiments if item.part == order.part), None)
    if experiment is None:
        raise UsageError(f"`{order.path}` has no experiment `{order.part}`")
    return experiment


def published_runs(
    version: str, source: str, *, throughput_is: str, runs: Sequence[CellRun], notes: Sequence[str]
) -> VersionRuns:
    """The loads of a file as one version of a saturation test.

    Args:
        version: its label.
        source: the file, and its content.
        throughput_is: the definition of its throughput.
        runs: its loads.
        notes: on its figures.
    """
    return VersionRuns(
        label=f"{version} (published)",
        subject=Subject(system="cometbft", name=NAME, version=version),
        published=True,
        source=source,
        expected=f"connections × rate × {LOAD_S} s: the last batch of the 90 s coincides with the end and is not sent",
        latency_is=LATENCY_IS,
        latency_kind="",  # below this, block time is not reported
        throughput_is=throughput_is,
        runs=list(runs),
        conditions={"block_time": UNSTATED},
        notes=[HEADER_NOTE, *notes],
    )
