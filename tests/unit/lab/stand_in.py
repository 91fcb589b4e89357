"""A test system whose runs take no time, for tests that stop at any point or make runs fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.manifest import Configuration, Gate, GateKind, GateStatus, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.lab.schedules import PlannedRun, Total
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.compare.synthetic_runs import catalogue

# One small population, because the measured values do not matter here.
_QUICK = catalogue().sampled({"node": ["clock_offset_s", "peer_count"]})


class Profile(BaseModel):
    """What the scenarios of `two_scenarios` run."""

    system: str
    name: str
    rate: int = 1


@dataclass
class StandIn:
    """A system with synthetic runs. ``on_run`` is called with the number of each run, from 1, and may raise."""

    on_run: Callable[[int], None] = lambda _: None
    invalid: frozenset[int] = frozenset()
    kind: GateKind = GateKind.INSTRUMENT  # of the gate that those runs do not meet
    lacks: str = ""
    name: str = "cometbft"
    title: str = "CometBFT"
    made: list[tuple[str, int]] = field(default_factory=list)
    profile_kinds: Sequence[str] = ("cpu", "heap")

    def catalogue(self) -> Catalogue:
        """One small population."""
        return _QUICK

    def profile(self, content: Mapping[str, object]) -> Profile:
        """The validated profile."""
        return Profile.model_validate(content)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The same rate for every profile."""
        return {"load.rate": 1}

    def install(self, version: str) -> Subject:
        """The subject; there is nothing to install."""
        return Subject(system=self.name, name=self.title, version=version)

    def installed(self) -> list[tuple[Subject, Path]]:
        """No version is installed."""
        return []

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Make a run, after calling ``on_run``."""
        self.on_run(len(self.made) + 1)
        self.made.append((order.version, order.seed))
        status = GateStatus.FAIL if len(self.made) in self.invalid else GateStatus.PASS
        return Execution(
            subject=self.install(order.version),
            samples={},  # the measured values do not matter here, and a run without samples takes a fifth of the time
            configuration=Configuration(),
            conditions={},
            counts={},
            gates=[
                Gate(
                    id="load_met",
                    label="offered load met",
                    status=status,
                    measured="91 %",
                    limit=">= 98 %",
                    kind=self.kind,
                )
            ],
            profiles=list(order.profiles),
        )

    def qa_plans(self) -> list[str]:
        """The system has no plans."""
        return []

    def qa_plan(self, name: str) -> Mapping[str, object]:
        """The system has no plans."""
        return {}

    def qa_plots(self) -> Sequence[Mapping[str, object]]:
        """The system has no plots."""
        return []

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """The requirement that the test sets as not met."""
        return self.lacks

    def commit(self, version: str) -> str:
        """The commit is unknown."""
        return ""

    def expected_seconds(self, profile: BaseModel) -> float:
        """A minute for every run."""
        return 60.0


@dataclass
class Staged(StandIn):
    """A stand-in whose runs are analysed after the measurement. ``on_analysis`` is called with their numbers."""

    on_analysis: Callable[[int], None] = lambda _: None
    on_load: Callable[[int], None] = lambda _: None
    under_load: Callable[[ExecutionRequest, Progress], None] = lambda _order, _progress: None

    def measure(
        self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
    ) -> Callable[[Progress], Execution]:
        """Measure a run and return its analysis."""
        execution = self.execute(profile, order, run, progress)
        number = len(self.made)
        order.quiet()
        self.on_load(number)
        self.under_load(order, progress)

        def analyse(progress: Progress) -> Execution:
            self.on_analysis(number)
            return execution

        return analyse


@dataclass
class Followed:
    """A listener that stores the messages that tests read."""

    steps: list[tuple[str, int, Total, float]] = field(default_factory=list)
    again_because: list[str] = field(default_factory=list)
    again_of: list[str] = field(default_factory=list)

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """Ignored."""

    def begin(self, step: PlannedRun, number: int, total: Total, left_s: float | None = None) -> None:
        """Store the version, the run's number, the total and the seconds left."""
        assert left_s is not None
        self.steps.append((step.version, number, total, left_s))

    def again(self, step: PlannedRun, because: str) -> None:
        """Store the version and the reason."""
        self.again_of.append(step.version)
        self.again_because.append(because)

    def end(self, run: SealedRun) -> None:
        """Ignored."""

    def stage(self, name: str) -> None:
        """Ignored."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignored."""


def two_scenarios(folder: Path) -> QaPlan:
    """A plan with two scenarios of two repetitions: eight runs."""
    profile = folder / "short.toml"
    profile.write_text('system = "cometbft"\nrate = 2\n', encoding="utf-8")
    common = {"question": "q", "method": "m", "profile": str(profile), "repetitions": 2}
    scenarios = [{"id": name, "title": name, **common} for name in ("first", "second")]
    return QaPlan.model_validate(
        {"system": "cometbft", "name": "trial", "title": "t", "description": "d", "scenario": scenarios}
    )
