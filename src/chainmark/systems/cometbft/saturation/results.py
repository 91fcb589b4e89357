"""The result of a saturation test: the processed share of each load, and the load at which a version saturates.

The document of one test over one or more versions, made from its runs and from published tables. All renderings are
made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core import units
from chainmark.core.attachment import Attachment, Finding
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Judgement
from chainmark.core.manifest import Fact, Subject
from chainmark.core.metric import Metric
from chainmark.core.verdict import Verdict, worst

SATURATION_SCHEMA = 2
Measure = Literal["committed", "pace"]
# The whole interval of "kept up" and "saturated" is clear of the threshold.
Standing = Literal["kept up", "leans to kept up", "leans to saturated", "saturated", "no data"]
State = Literal["found", "unclear", "contradictory", "lower bound", "nothing kept up", "no data"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunFigure(_Part):
    """One figure of one run with its error within the run; None if unknown."""

    value: float
    standard_error: float | None = None
    log_standard_error: float | None = None


class LatencyEntry(_Part):
    """Latencies of one run's committed transactions, in seconds.

    Attributes:
        n: how many transactions.
        p99: None if it is not reported, or not estimable from n.
    """

    n: int
    mean: RunFigure | None
    p50: RunFigure | None = None
    p99: RunFigure | None = None
    min_s: float | None = None
    max_s: float | None = None
    sd_s: float | None = None


class CellRun(_Part):
    """One run at one load: its accounting.

    Attributes:
        origin: the run's ID, or the place in the source.
        repetition, position: its place in the test; None for published data.
        connections, rate_per_s: the load; the rate is that of each connection.
        load_s: seconds for which the load was offered.
        offered: number of transactions in the load's schedule.
        unsent: number of them that were never sent; None, here and below, if the source does not report it.
        rejected: by class.
        committed: number of transactions processed at any time.
        throughput_per_s: committed per second.
        pace: committed in the window per transaction due in it.
        latency: of the committed ones.
        excluded: why the run does not count; empty: it counts.
        limits: factors other than the network that may have limited it.
    """

    origin: str
    repetition: int | None = None
    position: int | None = None
    connections: int
    rate_per_s: int
    load_s: float
    offered: int
    unsent: int | None = None
    rejected: dict[str, int] | None = None
    accepted: int | None = None
    pending: int | None = None
    lost: int | None = None
    committed: int
    throughput_per_s: RunFigure
    pace: RunFigure | None = None
    latency: LatencyEntry | None = None
    excluded: str = ""
    limits: list[str] = []

    @property
    def efficiency(self) -> float:
        """Committed per offered transaction."""
        return self.committed / self.offered if self.offered else 0.0


class _Version(_Part):
    """The facts about one version besides its runs.

    Attributes:
        label: its name, unique in the document.
        published: whether it is from a published table.
        source: where it comes from.
        expected: how the offered transactions were counted.
        latency_is: the start and end of latencies.
        latency_kind: only latencies of equal kinds can be compared; "": not comparable, since the kind is unknown.
        throughput_is: the numerator and denominator of the throughput.
        conditions, facts: what a reader must know to interpret the figures.
    """

    label: str
    subject: Subject
    published: bool
    source: str
    expected: str
    latency_is: str
    latency_kind: str
    throughput_is: str
    conditions: dict[str, str] = {}
    facts: list[Fact] = []


class VersionRuns(_Version):
    """All data of one version, before any conclusion."""

    runs: list[CellRun]
    notes: list[str] = []


@dataclass(frozen=True)
class SaturationMetrics:
    """The metrics by which versions are compared: a catalogue's own, with its margins and directions.

    Attributes:
        committed: a proportion of the offered transactions.
        throughput: committed per second.
        latency: of a transaction.
    """

    committed: Metric
    throughput: Metric
    latency: Metric

    def all(self) -> list[Metric]:
        """In the order of the report."""
        return [self.committed, self.throughput, self.latency]


class CellFigure(_Part):
    """A figure over the runs of a cell with its 90 % interval; ``basis`` states the interval's origin."""

    value: float
    low: float | None
    high: float | None
    runs: int
    basis: str


class _AtLoad(_Part):
    connections: int
    rate_per_s: int

    @property
    def name(self) -> str:
        """In the notation of reports: c=2, r=200."""
        return f"c={self.connections}, r={self.rate_per_s}"


class LoadCell(_AtLoad):
    """All runs at one load.

    Attributes:
        used: number of runs that count.
        committed: transactions, the mean of the runs that count; None without any.
        efficiency: committed per offered transaction; pace: the same within the window.
        standing: on which side of the threshold, by efficiency; pace_standing by pace.
    """

    runs: list[CellRun]
    used: int
    committed: float | None
    efficiency: CellFigure | None
    pace: CellFigure | None
    throughput_per_s: CellFigure | None
    latency_mean_s: CellFigure | None
    latency_p50_s: CellFigure | None
    latency_p99_s: CellFigure | None
    standing: Standing
    pace_standing: Standing

    @property
    def load_per_s(self) -> int:
        """Transactions offered per second over all connections."""
        return self.connections * self.rate_per_s


class Saturation(_Part):
    """The load at which one version saturates.

    Attributes:
        measure: the share: of all offered transactions, or of those due in the window.
        load_per_s: the largest load that is sustained, like all smaller ones, while no larger one is; by values alone.
        low_per_s: all loads up to it are clearly sustained; 0 if none is.
        high_per_s: all loads from it on are clearly saturated; None if none is.
        connections, rate_per_s: of the cells at that load the one with the fewest connections; if no load is found, of
            the largest load up to which all are sustained.
        reason: the deciding fact, in a sentence.
    """

    measure: Measure
    threshold: float
    state: State
    load_per_s: int | None
    low_per_s: int
    high_per_s: int | None
    connections: int | None
    rate_per_s: int | None
    reason: str


# A version's own finding, without a comparison with another version.
_OF_STATE: dict[State, Verdict] = {
    "found": Verdict.PASS,
    "lower bound": Verdict.INFORMATIONAL,
    "unclear": Verdict.INCONCLUSIVE,
    "contradictory": Verdict.INCONCLUSIVE,
    "nothing kept up": Verdict.INCONCLUSIVE,
    "no data": Verdict.INVALID,
}


def candidate_verdict(baseline: Saturation, candidate: Saturation) -> Verdict:
    """Whether a candidate sustains what the baseline sustains.

    It fails if a load clearly saturates the candidate that the baseline clearly sustains, and passes if it clearly
    sustains every load that the baseline sustains; "clearly" means with the whole interval.
    """
    reach = max(baseline.load_per_s or 0, baseline.low_per_s)
    if "no data" in {baseline.state, candidate.state}:
        return Verdict.INVALID
    if candidate.high_per_s is not None and 0 < candidate.high_per_s <= baseline.low_per_s:
        return Verdict.FAIL
    return Verdict.PASS if reach and candidate.low_per_s >= reach else Verdict.INCONCLUSIVE


class Knee(_Part):
    """The knee of the curve of mean latency over throughput, sorted by load.

    Attributes:
        load_per_s: None if the curve has none.
        low_per_s, high_per_s: the 90 % interval from the repetitions; None if there is none.
        basis: how it was found, and the origin of the interval.
    """

    load_per_s: int | None
    low_per_s: int | None
    high_per_s: int | None
    throughput_per_s: float | None
    latency_s: float | None
    basis: str


class SaturationVersion(_Version):
    """One version with its findings; the first finding determines the load."""

    cells: list[LoadCell]
    saturations: list[Saturation]
    knee: Knee
    notes: list[str] = []

    @property
    def chosen(self) -> Saturation:
        """The finding that determines the load."""
        return self.saturations[0]

    @property
    def verdict(self) -> Verdict:
        """Whether the load was found. Published tables are shown, not judged."""
        return Verdict.INFORMATIONAL if self.published else _OF_STATE[self.chosen.state]


class CellComparison(_AtLoad):
    """Two versions at one load; the judgements are of the report's metrics."""

    judgements: list[Judgement]


class VersionComparison(_Part):
    """A version against another one, load by load; ``left_out`` says which loads cannot be compared, and why."""

    baseline: str
    candidate: str
    cells: list[CellComparison]
    left_out: list[str] = []


class SaturationResult(Attachment):
    """One saturation test.

    Attributes:
        experiment: of its runs; "" if only published tables are shown.
        tolerance: a load is sustained if the share is at least one minus this.
        order: the order in which the runs were made, and why.
        machine: of the runs.
        metrics: those of the comparisons.
        interrupted: whether runs are missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SATURATION_SCHEMA
    title: str
    system: str
    profile_name: str
    experiment: str
    started_at: str
    tool_version: str
    seed: int
    tolerance: float
    order: str
    machine: list[Fact] = Field(default_factory=list)
    versions: list[SaturationVersion]
    comparisons: list[VersionComparison] = Field(default_factory=list)
    metrics: list[Metric] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    interrupted: bool = False
    caveats: CaveatsField = Caveats()

    @property
    def measured(self) -> list[SaturationVersion]:
        """The versions with runs, the baseline first."""
        return [version for version in self.versions if not version.published]

    @property
    def verdict(self) -> Verdict:
        """The worst finding of each version, and of each comparison with the first; at best partial if interrupted."""
        versions = self.measured
        against = [candidate_verdict(versions[0].chosen, other.chosen) for other in versions[1:]]
        partial = [Verdict.PARTIAL] if self.interrupted else []
        return worst([*(version.verdict for version in versions), *against, *partial])

    def sides(self) -> dict[str, list[str]]:
        """The counted runs of each version at its load."""
        return {
            f"{version.label} at {cell.name}": [run.origin for run in cell.runs if not run.excluded]
            for version in self.measured
            for cell in version.cells
            if (cell.connections, cell.rate_per_s) == (version.chosen.connections, version.chosen.rate_per_s)
        }

    def finding(self) -> Finding:
        """Whether the second version sustains what the first one sustains."""
        base, other = (version.chosen for version in self.versions)
        names = [version.label for version in self.versions]
        reasons = [f"{name}: {saturation.reason}" for name, saturation in zip(names, (base, other), strict=True)]
        reach = max(base.load_per_s or 0, base.low_per_s)
        sure = f"{names[1]} certainly sustains at least {units.count(other.low_per_s)} per second"
        result = candidate_verdict(base, other)
        match result:
            case Verdict.INVALID:
                reported = "A version has no valid run."
            case Verdict.FAIL:
                reported = f"{names[0]} sustains {units.count(base.low_per_s)} per second, which saturate {names[1]}."
            case Verdict.PASS:
                does = "does" if base.low_per_s >= reach else "probably does"
                reported = f"{sure}, as {names[0]} {does} with {units.count(reach)}."
            case _:
                reported = (
                    f"{sure}, {names[0]} {units.count(reach)}: the loads and runs do not decide whether that is less."
                )
        return Finding(result, reported, reasons)
