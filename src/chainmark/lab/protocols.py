"""What a system gives the rest of the house.

Every system has metrics and profiles (:class:`System`). What else it can do stands in capabilities of their own: run
real nodes (:class:`LaunchableSystem`), take in the logs of a cluster that somebody else ran
(:class:`ImportableSystem`), answer requests whose load tests chainmark can make (:class:`ServedSystem`). Those that no
run needs stand in `chainmark.systems.capabilities`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, Grouping, HostFacts, Incident, Scalar, Source, Subject
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.schedules import Standing, SweepLoad, SweepPlan
from chainmark.store.runs import SealedRun, UnfinishedRun

if TYPE_CHECKING:  # what loads a server is 20 MB, and comparing needs none of it
    from chainmark.capacity.model import Endpoint, Target
    from chainmark.capacity.profile import LoadProfile

# The version of a server that does not tell its own, where nobody else did.
UNVERSIONED = "unversioned"


@dataclass(kw_only=True)
class Findings:
    """What whoever fills a run found out about it; the manifest tells all of it.

    Attributes:
        contradictions: of the warnings, those that say that the subject is not what it is called.
        groups: by key of the samples, which of its values are held against each other.
        synthetic: a simulation wrote what the run is made from.
        printed: the figures were read from a published report.
        identity: what tells a printed run from all others wherever it was read.
        profiles: kinds of profiles that were taken of the nodes.
        labels: words by which the run is found, by key; see `Manifest.labels`.
    """

    subject: Subject
    configuration: Configuration
    conditions: dict[str, str]
    counts: dict[str, dict[str, int]]
    gates: list[Gate]
    facts: list[Fact] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    synthetic: bool = False
    printed: bool = False
    identity: str = ""
    groups: dict[str, Grouping] = field(default_factory=dict)
    profiles: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)


@dataclass(kw_only=True)
class Execution(Findings):
    """What one execution of a profile yields: its samples, and what is told of them."""

    samples: dict[str, pl.DataFrame]


@dataclass(frozen=True)
class ExecutionRequest:
    """One execution to make: which version, with which options, and which profiles to take of its nodes.

    Attributes:
        quiet: called before the load begins; returns as soon as nothing of chainmark's own would disturb it.
        lane: which network of those that run at the same time it is, from 0; no two may meet.
        beside: what is measured at the same time; "" if nothing is.
    """

    version: str
    seed: int
    keep_homes: bool
    profiles: tuple[str, ...] = ()
    quiet: Callable[[], None] = lambda: None
    lane: int = 0
    beside: str = ""


@dataclass(frozen=True)
class ImportRequest:
    """Which logs are to be taken in, and how.

    Attributes:
        source: a folder of logs, or one log; or the URL of a server that has the measurements, as text.
        version: what was measured, where the logs do not say or say it otherwise.
        settings: of the analysis and of what the logs' documents would say, as `--set` takes them.
        filters: names and expressions of filters; None leaves them to the logs' documents, an empty tuple is none.
        exclude: hosts to leave out.
        genesis, meta, topology: documents that do not lie beside the logs.
        threads: 0 means all cores. The run does not depend on it.
        keep_events: store every decoded event too.
        published_rules: make the run's samples as the incumbent's published reports do, its quirks included.
        part: which run of a source that holds several, as the system calls it.
        begin_ns, end_ns: what to take of a server's measurements, ns since 1970-01-01 UTC; the end is not part of it.
        machines: where the source is, if it is not here. The run does not depend on how many there are.
    """

    source: Path | str
    version: str | None = None
    settings: tuple[str, ...] = ()
    filters: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    genesis: Path | None = None
    meta: Path | None = None
    topology: Path | None = None
    threads: int = 0
    keep_events: bool = False
    published_rules: bool = False
    part: str | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    machines: Machines | None = None

    @property
    def path(self) -> Path:
        """The source as a folder or file.

        Raises:
            UsageError: it is a server.
        """
        if isinstance(self.source, Path):
            return self.source
        raise UsageError(
            f"`{self.source}` is a server, but this system can only read files",
            "give a folder of logs, or one file; `chainmark ingest --help` shows what is read",
        )


@dataclass(kw_only=True)
class Imported(Findings):
    """What an import yields besides the events and samples that it wrote into the run.

    Attributes:
        profile: what was run and how it was analysed, as far as it is known; resolved and whole.
        host: of a cluster that others ran only what was stated.
        first_ns, last_ns: times of the first and of the last log line, ns since 1970-01-01 UTC.
        options: what else the result depends on, besides the sources and the profile.
        catalogue: the metrics under the rules of this import.
        summaries: the figures themselves, where the source has no samples to make them of.
    """

    profile_name: str
    profile: dict[str, object]
    workload: dict[str, Scalar | list[Scalar]]
    sources: list[Source]
    host: HostFacts
    first_ns: int
    last_ns: int
    options: dict[str, object]
    catalogue: Catalogue
    summaries: Sequence[MetricSummary] | None = None


@dataclass(frozen=True)
class ServiceRequest:
    """Which server is to be load-tested, and with what.

    Attributes:
        version: what is measured, where the server does not say or says it otherwise.
        endpoints: only these, by id or path; empty: all.
        corpus: requests that were pinned to a file before; None leaves them to the system.
        pinned: where the system keeps the requests that it chose, for the next test.
    """

    target: Target
    version: str | None = None
    endpoints: tuple[str, ...] = ()
    corpus: Path | None = None
    pinned: Path | None = None
    seed: int = 1


@dataclass(frozen=True)
class Service:
    """A server that is ready to be load-tested.

    Attributes:
        strata: by endpoint, how many requests there are of each kind.
        sizes: by endpoint and by what was counted ("bytes", "coins"), the least and the most of its requests' answers.
        skipped: endpoints that are not measured, with the reason.
        corpus_hash: of the requests; two tests with the same one asked the same.
        facts: what a report says of the server, in its order.
        contradictions: of the warnings, those that say that the subject is not what it is called.
        conditions: facts by the catalogue's condition ids.
        labels: words by which the run is found besides those of every load test; see `Manifest.labels`.
    """

    subject: Subject
    target: Target
    endpoints: tuple[Endpoint, ...]
    strata: Mapping[str, Mapping[str, int]]
    skipped: Mapping[str, str]
    corpus_hash: str
    facts: tuple[Fact, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    sizes: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    labels: Mapping[str, list[str]] = field(default_factory=dict)


class System(Protocol):
    """A kind of thing under test. Its folder under ``systems/`` is all that knows what it is."""

    name: str
    title: str

    def catalogue(self) -> Catalogue:
        """Its metrics."""

    def profile(self, content: Mapping[str, object]) -> BaseModel:
        """Check a profile's content and fill in the defaults.

        Raises:
            UsageError: a key is unknown or a value impossible; the hint says what to write.
        """


@runtime_checkable
class LaunchableSystem(System, Protocol):
    """A system whose nodes chainmark can install, run and load on this machine."""

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """What two runs of it must share to be comparable, flattened to dotted keys."""

    def install(self, version: str) -> Subject:
        """Make sure that version can be run; quick when it is cached.

        Args:
            version: as `chainmark.lab.versions` reads it, as far as the system takes its forms.

        Returns:
            Its subject, by whose version it is called from then on: that can be installed, too, and is the same build.

        Raises:
            UsageError: there is no such version, or it does not build.
            EnvironmentFailure: it could not be built.
        """

    def installed(self) -> list[tuple[Subject, Path]]:
        """The versions that are cached, with their binaries."""

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Run the profile once: raw material and events go into ``run``, samples are returned."""


@runtime_checkable
class StagedSystem(LaunchableSystem, Protocol):
    """A launchable system that analyses what it collected after it has let go of the machine."""

    def measure(
        self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
    ) -> Callable[[Progress], Execution]:
        """Run the profile once, as `execute` does; what is returned analyses it, in any thread."""


@runtime_checkable
class AdaptableSystem(LaunchableSystem, Protocol):
    """A system whose profiles may say which program its versions are of."""

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """As `install`, where the profile is to be run.

        Raises:
            UsageError: there is no such version, or it is another program than the profile's.
            EnvironmentFailure: it could not be built.
        """


def installed_for(system: LaunchableSystem, version: str, profile: BaseModel) -> Subject:
    """Make sure that a version of what a profile runs can be run.

    Raises:
        UsageError: there is no such version, or it does not build.
        EnvironmentFailure: it could not be built.
    """
    return system.install_for(version, profile) if isinstance(system, AdaptableSystem) else system.install(version)


@runtime_checkable
class PinningSystem(LaunchableSystem, Protocol):
    """A system whose profiles may name versions, beside the one that is tested."""

    def pinned(self, profile: BaseModel) -> BaseModel:
        """The same profile with these versions installed, each called as `install` calls it.

        Raises:
            UsageError: there is no such version, or it does not build.
            EnvironmentFailure: it could not be built.
        """


def pinned(system: System, profile: BaseModel) -> BaseModel:
    """A profile whose versions stay what they are, whatever becomes of a branch or a file."""
    return system.pinned(profile) if isinstance(system, PinningSystem) else profile


@runtime_checkable
class ProfiledSystem(LaunchableSystem, Protocol):
    """A launchable system that can take profiles of its nodes.

    Attributes:
        profile_kinds: those of `chainmark.core.profiles` that it can take.
    """

    profile_kinds: Sequence[str]


@dataclass(frozen=True)
class ExistingNetwork:
    """A network that somebody else started, and that is to be loaded and observed as it is.

    Attributes:
        nodes: where its nodes are asked.
        metrics: where their metrics pages are, one for each node; none: they are not known.
        label: what the subject is called, where its own version says too little.
    """

    nodes: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    label: str | None = None


@runtime_checkable
class AttachableSystem(System, Protocol):
    """A system whose running networks can be loaded and observed from outside."""

    def attached(self, profile: BaseModel, attachment: ExistingNetwork) -> LaunchableSystem:
        """The same system on that network: its only version is the one that runs there, and nothing is launched.

        Raises:
            UsageError: an address is no node's, the nodes are of several networks, or the profile asks for what cannot
                be done to a network of somebody else.
            EnvironmentFailure: a node does not answer.
        """


@runtime_checkable
class ImportableSystem(System, Protocol):
    """A system whose clusters' logs chainmark can read, whoever ran them."""

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Read the logs: events and samples go into ``run``. Equal logs and orders give equal bytes.

        Raises:
            UsageError: these are no such logs, or something that they need is missing.
            EnvironmentFailure: they cannot be read, or the run cannot be written.
        """


@runtime_checkable
class SpreadSystem(ImportableSystem, Protocol):
    """An importable system that can read a source on other machines."""

    def is_spread(self, order: ImportRequest) -> bool:
        """Whether this source is one to be read there: where the order has machines, `ingest` uses them."""


@runtime_checkable
class PartedSystem(ImportableSystem, Protocol):
    """An importable system whose sources may hold several runs, such as a page of published tables."""

    def parts(self, order: ImportRequest) -> list[str]:
        """The names of the runs in the source; none: it is one run.

        Raises:
            UsageError: the source is not what it should be.
        """


@runtime_checkable
class ChoosingSystem(ImportableSystem, Protocol):
    """An importable system that reads of some sources only what is of one kind."""

    def left_out(self, order: ImportRequest) -> str:
        """What lies in the source and was not read because it is of another kind, in a sentence; "" where all was."""


@runtime_checkable
class ServedSystem(System, Protocol):
    """A system that answers HTTP requests; its profiles are those of load tests."""

    def load_profile(self, profile: BaseModel) -> LoadProfile:
        """The same profile, as what all load tests share."""

    def prepare(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> Service:
        """Look at the server and choose what it is asked; every request is answered rightly once.

        Raises:
            UsageError: it is no such server, or there is nothing to ask.
            EnvironmentFailure: it cannot be reached.
        """


@runtime_checkable
class SweptSystem(LaunchableSystem, Protocol):
    """A system whose saturation chainmark can find."""

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The loads of a profile."""

    def load_of(self, plan: SweepPlan, per_s: int) -> SweepLoad:
        """The load of an adaptive search at so much per second, a multiple of the plan's step."""

    def at_load(self, profile: BaseModel, load: SweepLoad) -> BaseModel:
        """The same profile at one load.

        Raises:
            UsageError: it cannot be offered.
        """

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """Of one version's runs, which loads are kept up; by every measure, the first one first."""


@runtime_checkable
class QualifiableSystem(LaunchableSystem, Protocol):
    """A system with plans for the qualification of its releases."""

    def qa_plans(self) -> list[str]:
        """The names of the shipped plans, the quickest first."""

    def qa_plan(self, name: str) -> Mapping[str, object]:
        """The content of a shipped plan, plots and all."""

    def qa_plots(self) -> Sequence[Mapping[str, object]]:
        """The plots that published reports show, for plans that bring none of their own."""

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """What of a need this machine or one of the versions that use it does not have, in a clause; "" if nothing."""

    def commit(self, version: str) -> str:
        """The commit that a version was made of; "" where that is not known."""

    def expected_seconds(self, profile: BaseModel) -> float:
        """About how long one run of a profile takes on an idle machine."""
