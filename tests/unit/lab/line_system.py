"""A system with numbered revisions, one of which changes a metric. Runs take no time and the true figures are known."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Gate, GateKind, GateStatus, Scalar, Subject
from chainmark.core.metric import Better, MetricGroup, Population
from chainmark.core.progress import Progress
from chainmark.lab.protocols import Execution, ExecutionRequest
from chainmark.store.unfinished import UnfinishedRun

from tests.unit.compare.metric_cases import metric

SAMPLES = 40
CATALOGUE = Catalogue(
    system="line",
    title="Line",
    populations=[Population(id="block", label="blocks", keys=["height"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=[
        metric(id="latency_s", label="latency", unit="s", gating=True),
        metric(id="cpu_cores", label="CPU", unit="cores", gating=True),
        metric(id="throughput_per_s", label="throughput", unit="1/s", gating=True, better=Better.HIGHER),
    ],
)


class LineProfile(BaseModel):
    """It has nothing to say."""

    system: str = "line"
    name: str = "line/quick"


@dataclass
class LineSystem:
    """Versions v0 … v40; from ``change`` on a metric is multiplied by ``factor``.

    Attributes:
        noise: standard deviation of the logarithm of a run's figures.
        unbuildable, failing, broken: versions that do not build, whose nodes fail, or whose measurement fails.
        same: versions whose program is identical to that of the previous version.
        on_run: called with the number of each run, from 1; it may raise.
    """

    change: int = 23
    factor: float = 1.3
    metric_id: str = "latency_s"
    noise: float = 0.02
    last: int = 40
    unbuildable: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()
    same: frozenset[int] = frozenset()
    on_run: Callable[[int], None] = lambda _: None
    name: str = "line"
    title: str = "Line"
    profile_kinds: tuple[str, ...] = ()
    made: list[int] = field(default_factory=list)
    requested: list[int] = field(default_factory=list)

    def catalogue(self) -> Catalogue:
        """Three metrics."""
        return CATALOGUE

    def profile(self, content: Mapping[str, object]) -> LineProfile:
        """The validated profile."""
        return LineProfile.model_validate(content)

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The same rate for every profile."""
        return {"load.rate": 1}

    def published_versions(self, also: Sequence[str] = ()) -> list[str]:
        """All versions."""
        return [f"v{number}" for number in range(self.last + 1)]

    def install(self, version: str) -> Subject:
        """The version as a subject, if it builds."""
        number = number_of(version)
        self.requested.append(number)
        if number in self.unbuildable:
            raise UsageError(
                f"{version} does not build", "the compiler's last lines:\n# line\nmain.go:9: undefined: halt\n"
            )
        built = number - 1 if number in self.same else number
        digest = hashlib.sha256(str(built).encode()).hexdigest()
        return Subject(system=self.name, name=self.title, version=version, binary_sha256=digest)

    def installed(self) -> list[tuple[Subject, Path]]:
        """No version is installed."""
        return []

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Make a run, after calling ``on_run``."""
        self.on_run(len(self.made) + 1)
        number = number_of(order.version)
        self.made.append(number)
        fails, broken = number in self.failing, number in self.broken
        samples = {} if fails else {"block": self.blocks(number, order.seed)}
        gates = [
            Gate(id="alive", label="no node died", status=GateStatus.FAIL if fails else GateStatus.PASS,
                 measured="node0 died" if fails else "all alive", limit="all", kind=GateKind.SUBJECT),
            Gate(id="lag", label="generator on time", status=GateStatus.FAIL if broken else GateStatus.PASS,
                 measured="1 s late" if broken else "in time", limit="50 ms"),
        ]  # fmt: skip
        return Execution(
            subject=self.install(order.version),
            samples=samples,
            configuration=Configuration(),
            conditions={},
            counts={},
            gates=gates,
            profiles=list(order.profiles),
        )

    def blocks(self, number: int, seed: int) -> pl.DataFrame:
        """The samples of one run."""
        draw = np.random.default_rng([seed, number])
        levels = {"latency_s": 1.0, "cpu_cores": 0.5, "throughput_per_s": 100.0}
        if number >= self.change:
            levels[self.metric_id] *= self.factor
        values = {
            name: level * math.exp(self.noise * draw.standard_normal()) * np.exp(0.01 * draw.standard_normal(SAMPLES))
            for name, level in levels.items()
        }
        return pl.DataFrame({"height": np.arange(SAMPLES), **values})


def number_of(version: str) -> int:
    """The number of a version."""
    return int(version.removeprefix("v"))
