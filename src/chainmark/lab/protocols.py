"""Protocols that connect a system to the rest of chainmark.

Every system has metrics and profiles (:class:`System`). Optional capabilities have protocols of their own: running real
nodes (:class:`LaunchableSystem`), importing the logs of an external cluster (:class:`ImportableSystem`), and HTTP load
tests (:class:`ServedSystem`). Capabilities that no run needs are in `chainmark.systems.capabilities`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, Grouping, HostFacts, Incident, Scalar, Source, Subject
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.schedules import Standing, SweepLoad, SweepPlan
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun

if TYPE_CHECKING:  # what loads a server is 20 MB, and comparing needs none of it
    from chainmark.capacity.model import Endpoint, Target
    from chainmark.capacity.profile import LoadProfile

# The version of a server that does not report one, if the caller did not state one either.
UNVERSIONED = "unversioned"


@dataclass(kw_only=True)
class Findings:
    """Facts that the producer of a run collected; the manifest lists all of them.

    Attributes:
        contradictions: the warnings that contradict the label of the subject.
        groups: by key of the samples, which of its values are compared with each other.
        synthetic: the input of the run was simulated.
        printed: the figures were read from a published report.
        identity: identifies a printed run wherever it was read.
        profiles: kinds of profiles that were recorded of the nodes.
        labels: search labels of the run, by key; see `Manifest.labels`.
        measurement_errors: see `Manifest.measurement_errors`.
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
    measurement_errors: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class Execution(Findings):
    """The result of one execution of a profile: its samples and facts about them."""

    samples: dict[str, pl.DataFrame]


@dataclass(frozen=True)
class ExecutionRequest:
    """One execution to make: the version, the options, and the profiles to record of its nodes.

    Attributes:
        quiet: called before the load begins; returns when no work of chainmark itself would disturb it.
        lane: index from 0 of the network among those that run at the same time; unique among them.
        beside: what is measured at the same time; "" if nothing is.
        machines: on which the nodes run; None: on this one.
    """

    version: str
    seed: int
    keep_homes: bool
    profiles: tuple[str, ...] = ()
    quiet: Callable[[], None] = lambda: None
    lane: int = 0
    beside: str = ""
    machines: Machines | None = None


# The fields of an import's request that not every source has a use for, and their options. Systems add further options.
IMPORT_OPTIONS: Mapping[str, str] = {
    "settings": "--set",
    "filters": "--filter",
    "exclude": "--exclude",
    "keep_events": "--keep-events",
    "published_rules": "--published-rules",
    "begin_ns": "--from",
}


@dataclass(frozen=True)
class ImportRequest:
    """Which logs to import, and how.

    Attributes:
        source: a folder of logs, or one log; or the URL of a server that has the measurements.
        version: the measured version, if the logs do not state it or state another.
        settings: of the analysis, and values that override the logs' documents, as for `--set`.
        filters: names and expressions of filters; None uses those of the logs' documents, an empty tuple uses none.
        exclude: hosts to exclude.
        options: of the system, as it declares them for `chainmark ingest`.
        threads: 0 means all cores. The run does not depend on it.
        keep_events: store every decoded event too.
        published_rules: compute the samples as the incumbent's published reports do, including their quirks.
        part: name of the run, for a source that holds several.
        begin_ns, end_ns: range of a server's measurements, ns since 1970-01-01 UTC; the end is exclusive.
        machines: where the source is, if it is not on this machine. The run does not depend on their number.
    """

    source: Path | str
    version: str | None = None
    settings: tuple[str, ...] = ()
    filters: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
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
            "give a folder of logs or one file; `chainmark ingest --help` lists the supported sources",
        )


@dataclass(kw_only=True)
class Imported(Findings):
    """The result of an import, besides the events and samples that it wrote into the run.

    Attributes:
        profile: what was run and how it was analysed, as far as known; resolved and complete.
        host: only what was stated, for an external cluster.
        first_ns, last_ns: times of the first and of the last log line, ns since 1970-01-01 UTC.
        options: what else the result depends on, besides the sources and the profile.
        catalogue: the metrics under the rules of this import.
        summaries: the figures themselves, if the source has no samples to compute them from.
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
    """The server to load-test, and the requests to use.

    Attributes:
        version: the measured version, if the server does not report it or reports another.
        endpoints: only these, by id or path; empty: all.
        corpus: file of requests that were pinned earlier; None lets the system choose.
        pinned: file in which the system stores the requests that it chose, for the next test.
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
        strata: by endpoint, the number of requests of each kind.
        sizes: by endpoint and counted quantity ("bytes", or one of the system's own), the minimum and maximum of its
            requests' responses.
        skipped: endpoints that are not measured, with the reason.
        corpus_hash: hash of the requests; two tests with the same hash sent the same requests.
        facts: facts about the server for a report, in display order.
        contradictions: the warnings that contradict the label of the subject.
        conditions: facts by the catalogue's condition IDs.
        labels: search labels of the run in addition to those of every load test; see `Manifest.labels`.
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
    """A kind of system under test. Only its folder under ``systems/`` contains code specific to it."""

    name: str
    title: str

    def catalogue(self) -> Catalogue:
        """Its metrics."""

    def profile(self, content: Mapping[str, object]) -> BaseModel:
        """Check a profile's content and fill in the defaults.

        Raises:
            UsageError: a key is unknown or a value invalid; the hint states what to write.
        """


@runtime_checkable
class LaunchableSystem(System, Protocol):
    """A system whose nodes chainmark can install, run and load on this machine."""

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """Properties that two runs must share to be comparable, flattened to dotted keys."""

    def install(self, version: str) -> Subject:
        """Ensure that the version can be run; fast if it is cached.

        Args:
            version: as `chainmark.lab.versions` parses it, in the forms that the system supports.

        Returns:
            The subject. Its version can be passed to `install` as well and denotes the same build.

        Raises:
            UsageError: there is no such version, or it does not build.
            EnvironmentFailure: it could not be built.
        """

    def installed(self) -> list[tuple[Subject, Path]]:
        """The versions that are cached, with their binaries."""

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Run the profile once: raw data and events go into ``run``, samples are returned."""


@runtime_checkable
class HostedSystem(Protocol):
    """A system whose nodes can run on other machines."""

    @property
    def runs_on_hosts(self) -> bool:
        """It is true: the requests' machines are used."""


@runtime_checkable
class StagedSystem(LaunchableSystem, Protocol):
    """A launchable system that analyses the collected data after it has released the machine."""

    def measure(
        self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
    ) -> Callable[[Progress], Execution]:
        """Run the profile once, as `execute` does; the returned object analyses it, in any thread."""


@runtime_checkable
class AdaptableSystem(LaunchableSystem, Protocol):
    """A system whose profiles may name the program that its versions are versions of."""

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """Like `install`, for a given profile.

        Raises:
            UsageError: there is no such version, or its program is not the profile's.
            EnvironmentFailure: it could not be built.
        """


def installed_for(system: LaunchableSystem, version: str, profile: BaseModel) -> Subject:
    """Ensure that a version of the profile's program can be run.

    Raises:
        UsageError: there is no such version, or it does not build.
        EnvironmentFailure: it could not be built.
    """
    return system.install_for(version, profile) if isinstance(system, AdaptableSystem) else system.install(version)


@runtime_checkable
class PinningSystem(LaunchableSystem, Protocol):
    """A system whose profiles may name versions in addition to the tested one."""

    def pinned(self, profile: BaseModel) -> BaseModel:
        """The same profile with these versions installed, each named as `install` names it.

        Raises:
            UsageError: there is no such version, or it does not build.
            EnvironmentFailure: it could not be built.
        """


def pinned(system: System, profile: BaseModel) -> BaseModel:
    """A profile whose versions are pinned, even if a branch or file changes later."""
    return system.pinned(profile) if isinstance(system, PinningSystem) else profile


@runtime_checkable
class ProfiledSystem(LaunchableSystem, Protocol):
    """A launchable system that can record profiles of its nodes.

    Attributes:
        profile_kinds: the supported kinds of `chainmark.core.profiles`.
    """

    profile_kinds: Sequence[str]


@dataclass(frozen=True)
class ExistingNetwork:
    """An external network that is to be loaded and observed as it is.

    Attributes:
        nodes: addresses of its nodes.
        metrics: addresses of their metrics pages, one per node; empty if unknown.
        label: name of the subject, if its reported version is not specific enough.
    """

    nodes: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    label: str | None = None


@runtime_checkable
class AttachableSystem(System, Protocol):
    """A system whose running networks can be loaded and observed from outside."""

    def attached(self, profile: BaseModel, attachment: ExistingNetwork) -> LaunchableSystem:
        """The same system bound to that network: its only version is the one that runs there, and nothing is launched.

        Raises:
            UsageError: an address is not a node's, the nodes are of several networks, or the profile requires changes
                to an external network.
            EnvironmentFailure: a node does not respond.
        """


@runtime_checkable
class ImportableSystem(System, Protocol):
    """A system whose clusters' logs chainmark can read, whichever tool ran them."""

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Read the logs: events and samples go into ``run``. The same logs and requests give the same bytes.

        Raises:
            UsageError: the logs are of another kind, or required input is missing.
            EnvironmentFailure: they cannot be read, or the run cannot be written.
        """


@runtime_checkable
class ConfigurableImports(ImportableSystem, Protocol):
    """An importable system whose imports use options besides the version; without it, they use none."""

    def import_options(self, order: ImportRequest) -> Collection[str]:
        """The fields of the request, of those in `IMPORT_OPTIONS`, and the system's options that this import uses.

        Raises:
            UsageError: the source is of no known kind.
        """


@runtime_checkable
class SpreadSystem(ImportableSystem, Protocol):
    """An importable system that can read a source on other machines."""

    def is_spread(self, order: ImportRequest) -> bool:
        """Whether this source is read remotely; if so and the request has machines, `ingest` uses them."""


@runtime_checkable
class PartedSystem(ImportableSystem, Protocol):
    """An importable system whose sources may hold several runs, such as a page of published tables."""

    def parts(self, order: ImportRequest) -> list[str]:
        """The names of the runs in the source; empty if it is one run.

        Raises:
            UsageError: the source is invalid.
        """


@runtime_checkable
class ChoosingSystem(ImportableSystem, Protocol):
    """An importable system that reads only one kind of content from some sources."""

    def left_out(self, order: ImportRequest) -> str:
        """What the source contains and was not read because it is of another kind, as a sentence; "" if nothing."""


@runtime_checkable
class ServedSystem(System, Protocol):
    """A system that responds to HTTP requests; its profiles are load-test profiles."""

    def load_profile(self, profile: BaseModel) -> LoadProfile:
        """The same profile, as the part that all load tests share."""

    def prepare(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> Service:
        """Inspect the server and choose the requests; each must get a correct response once.

        Raises:
            UsageError: the server is of another kind, or there is nothing to request.
            EnvironmentFailure: it cannot be reached.
        """


@runtime_checkable
class SweptSystem(LaunchableSystem, Protocol):
    """A system whose saturation chainmark can find."""

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The loads of a profile."""

    def load_of(self, plan: SweepPlan, per_s: int) -> SweepLoad:
        """The load of an adaptive search at this rate per second, a multiple of the plan's step."""

    def at_load(self, profile: BaseModel, load: SweepLoad) -> BaseModel:
        """The same profile at one load.

        Raises:
            UsageError: this load cannot be offered.
        """

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """Which loads one version sustains in its runs, by every measure; the main one first."""


@runtime_checkable
class QualifiableSystem(LaunchableSystem, Protocol):
    """A system with plans for the qualification of its releases."""

    def qa_plans(self) -> list[str]:
        """The names of the shipped plans, the fastest first."""

    def qa_plan(self, name: str) -> Mapping[str, object]:
        """The content of a shipped plan, including plots."""

    def qa_plots(self) -> Sequence[Mapping[str, object]]:
        """The plots that published reports show, for plans that define none."""

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """What this machine or one of the versions lacks for a requirement, as a clause; "" if nothing."""

    def commit(self, version: str) -> str:
        """The commit that a version was built from; "" if unknown."""

    def expected_seconds(self, profile: BaseModel) -> float:
        """Approximate duration of one run of a profile on an idle machine."""
