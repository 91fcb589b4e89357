"""A system with a known saturation load, whose runs take no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.manifest import Configuration, Gate, GateStatus, Scalar, Subject
from chainmark.core.metric import MetricGroup, Population
from chainmark.core.progress import Progress
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.schedules import PlannedRun, Standing, SweepLoad, SweepPlan, Total
from chainmark.lab.sweeping import SweepTest
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.evaluation import cells_of, saturation_report, standings
from chainmark.systems.cometbft.saturation.results import CellRun, VersionRuns
from chainmark.systems.cometbft.sweep import load_of

from tests.unit.systems.cometbft.saturation_samples import METRICS, run, version

SECONDS = 1000
FIRST_REPEATED = 48  # repeated runs have larger seeds, because their positions follow those of all planned runs


class Profile(BaseModel):
    """A load."""

    name: str = "scripted/saturation"
    connections: int = 1
    rate: int = 1
    note: str = ""


@dataclass
class Scripted:
    """Versions that commit up to their capacity.

    Ctrl-C is simulated in the run with the number ``interrupted_at``.

    The runs of the ``invalid`` versions and loads are invalid until they are repeated.
    """

    capacities: Mapping[str, int]
    plan: SweepPlan
    interrupted_at: int | None = None
    invalid: frozenset[tuple[str, int]] = frozenset()
    made: list[tuple[str, int]] = field(default_factory=list)
    name: str = "scripted"
    title: str = "Scripted"

    def catalogue(self) -> Catalogue:
        """One metric."""
        metric = METRICS.throughput.model_copy(update={"statistics": ["mean"]})
        return Catalogue(
            system=self.name, title=self.title, populations=[Population(id="p", label="seconds", keys=["second"])],
            tables=[MetricGroup(id="t", title="Table")], metrics=[metric],
        )  # fmt: skip

    def profile(self, content: Mapping[str, object]) -> Profile:
        """The profile of a load."""
        return Profile.model_validate(content)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The load of the profile."""
        return dict(profile.model_dump())

    def install(self, version: str) -> Subject:
        """The subject; there is nothing to install."""
        return Subject(system=self.name, name=self.title, version=version)

    def installed(self) -> list[tuple[Subject, Path]]:
        """No version is installed."""
        return []

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Make a run that commits up to the version's capacity."""
        if len(self.made) == self.interrupted_at:
            raise KeyboardInterrupt
        load = Profile.model_validate(profile.model_dump())
        offered = load.connections * load.rate
        bad = (order.version, offered) in self.invalid and order.seed < FIRST_REPEATED
        self.made.append((order.version, offered))
        committed = min(offered, self.capacities[order.version])
        status = GateStatus.FAIL if bad else GateStatus.PASS
        ok = Gate(id="ok", label="ok", status=status, measured="", limit="")
        return Execution(
            subject=self.install(order.version),
            samples={"p": pl.DataFrame({"second": [0, 1], "throughput_per_s": [float(committed)] * 2})},
            configuration=Configuration(),
            conditions={},
            counts={"transactions": {"offered": offered * SECONDS, "committed": committed * SECONDS}},
            gates=[ok],
        )

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The plan of the test."""
        return self.plan

    def load_of(self, plan: SweepPlan, per_s: int) -> SweepLoad:
        """The load with this total rate, over the plan's connections."""
        return load_of(plan.step, per_s // plan.step)

    def at_load(self, profile: BaseModel, load: SweepLoad) -> Profile:
        """The profile with this load."""
        connections, rate = load.key
        return Profile.model_validate({**profile.model_dump(), "connections": connections, "rate": rate})

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """The standing of each load, from the committed transactions."""
        return standings(cells_of(map(self.cell_run, runs), tolerance), load_of)

    def cell_run(self, run_: SealedRun) -> CellRun:
        """The cell of a run, with its transaction counts."""
        workload, counts = run_.manifest.workload, run_.manifest.counts["transactions"]
        place = run_.manifest.experiment
        connections, rate = workload["connections"], workload["rate"]
        assert isinstance(connections, int)
        assert isinstance(rate, int)
        share = counts["committed"] / counts["offered"]
        excluded = "; ".join(gate.label for gate in run_.manifest.failed_gates)
        cell_run = run(connections, rate, share, position=place.position if place else None, excluded=excluded)
        return cell_run.model_copy(update={"origin": place.side if place else ""})

    def swept_version(self, label: str, runs: Sequence[SealedRun]) -> VersionRuns:
        """A version with all its runs."""
        return version(label, [self.cell_run(run) for run in runs])

    def saturation(self, test: SweepTest, versions: Sequence[VersionRuns]) -> SaturationReport:
        """The saturation, from the metrics of the samples."""
        return saturation_report(test, versions, METRICS)

    def published_sweep(self, path: Path, label: str | None) -> VersionRuns:
        """There is no published sweep."""
        raise AssertionError(path, label)


class Quiet:
    """A listener that ignores all messages."""

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Ignored."""

    def end(self, run: SealedRun) -> None:
        """Ignored."""

    def stage(self, name: str) -> None:
        """Ignored."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignored."""
