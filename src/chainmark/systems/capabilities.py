"""Optional capabilities of a system beyond making runs, and how to check for them.

A system with results of its own (:class:`ModelledSystem`, :class:`PublishingSystem`) does their layout itself: only
documents cross this boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from pydantic import BaseModel

from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.protocols import (
    AttachableSystem,
    ImportableSystem,
    ImportRequest,
    LaunchableSystem,
    QualifiableSystem,
    ServedSystem,
    System,
)
from chainmark.store.sealed import SealedRun

if TYPE_CHECKING:
    from chainmark.compare.sides import SelectedRuns
    from chainmark.compare.split import Parted
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.comparison import Followed
    from chainmark.core.release_page import PublishedPart
    from chainmark.report.blocks import Table
    from chainmark.report.document import Document
    from chainmark.trails.trail import FollowRequest

Capable = TypeVar("Capable")


@dataclass(frozen=True)
class WhatIf:
    """One what-if as the user wrote it: ``("rtt", "EU-AP=+20ms")``, ``("no-pipelining", "")``."""

    key: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key} {self.value}".strip()


@dataclass(frozen=True)
class ModelSource:
    """The input of a model fit: a published report, a run, or a profile; exactly one of the three.

    Attributes:
        label: its name in the results.
        version: the column of a published report; None takes its last one.
    """

    label: str
    document: Path | None = None
    run: SealedRun | None = None
    profile: BaseModel | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        given = [part for part in (self.document, self.run, self.profile) if part is not None]
        if len(given) != 1:
            raise ValueError(f"a model needs one source, but {len(given)} were given")


@dataclass(frozen=True)
class ModelRequest:
    """The parameters of a prediction.

    Attributes:
        changes: the what-ifs.
        together: all changes as one scenario, instead of each alone and then all.
        blocks: number of blocks to simulate per scenario; None uses the system's default.
        threads: 0 means all cores. The results do not depend on it.
        machines: other machines that simulate instead of this one; the results do not depend on them.
    """

    changes: tuple[WhatIf, ...] = ()
    together: bool = False
    blocks: int | None = None
    seed: int = 1
    threads: int = 0
    machines: Machines | None = None


@runtime_checkable
class ModelledSystem(System, Protocol):
    """A system with a model that predicts its metrics.

    All but the first two raise UsageError for a source or a change that cannot be used.
    """

    def hinders_model(self, run: SealedRun) -> str:
        """Why no model can be fitted to a run, as a sentence; "" if one can. Called for every run of a list."""

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of this system; false also for an unreadable file."""

    def predict(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """The source's network and every what-if, side by side."""

    def explain(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """Whether the reported stages of a run or report reproduce its reported total: the document's verdict."""

    def evidence(self, documents: Sequence[Path], order: ModelRequest, progress: Progress) -> Document:
        """The model's accuracy against many published reports."""


@dataclass(frozen=True)
class PublishedFile:
    """A published report, or only one of its versions."""

    path: Path
    version: str | None = None


@runtime_checkable
class PublishingSystem(System, Protocol):
    """A system whose benchmarks are published as reports that chainmark can read and make.

    Attributes:
        styles: the styles of these reports over time, the current one first.
    """

    styles: Sequence[str]

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of this system; false also for an unreadable file."""

    def columns(self, path: Path) -> list[str]:
        """The versions that a published report compares, the baseline first.

        Raises:
            UsageError: the file is not such a report.
        """

    def published(
        self, parts: Sequence[Sequence[SealedRun] | PublishedFile], style: str | None, tool_version: str
    ) -> Document:
        """Versions side by side as the published reports show them; nothing is judged.

        Args:
            parts: the runs of a version, or a published report with its versions; the first version is the baseline.
            style: one of ``styles``; None uses that of the given reports, or the current one.
            tool_version: recorded in the result.

        Raises:
            UsageError: a file is not such a report, there is only one version, or a part cannot be shown in the style.
        """

    def published_part(
        self, sides: Sequence[Sequence[SealedRun]], days: Mapping[str, str], tool_version: str
    ) -> PublishedPart:
        """The runs of one workload as a part of a release page.

        Args:
            sides: the runs of each version, the baseline's first.
            days: by run, the day of its analysis if the run itself does not state it.
            tool_version: recorded in the result.
        """


@runtime_checkable
class PagedSystem(System, Protocol):
    """A system whose load tests are published as one page over all releases."""

    def page(self, runs: Sequence[SealedRun], stages: Mapping[str, str], tool_version: str) -> Document:
        """The page of these runs, measured and printed.

        Args:
            runs: of load tests, and of imported pages.
            stages: by run, the file of all its steps, relative to the page.
            tool_version: recorded in the result.

        Raises:
            UsageError: the runs contain nothing to publish.
        """


@runtime_checkable
class FollowableSystem(System, Protocol):
    """A system that can trace a sample of its runs to its cause: a block through all hosts, a transaction."""

    def followed(self, run: SealedRun) -> Sequence[str]:
        """What can be followed in a run, by its names in the catalogue."""

    def follow(self, run: SealedRun, order: FollowRequest) -> Document:
        """What every host did with one item of a run; without a key, the slowest items.

        Raises:
            UsageError: there is no such item, host or file, or the run stores nothing that can be followed.
        """

    def tails(self, sides: Sequence[SelectedRuns], catalogue: Catalogue) -> Followed | None:
        """What happened to the most extreme samples of a comparison; None if none can be followed."""


@runtime_checkable
class VerifiedSystem(System, Protocol):
    """A system whose runs other tools analyse too: their results for the same run can be compared with ours."""

    def verify(self, run: SealedRun, path: Path, tool_version: str) -> Document:
        """Their figures next to those of the run by the same rules; the document's verdict is whether they agree.

        Args:
            run: made from the same input.
            path: their output.
            tool_version: recorded in the result.

        Raises:
            UsageError: the file is not one of theirs, or is of another run; or the run has no figures by their rules.
        """


@runtime_checkable
class HostSystem(System, Protocol):
    """A system whose operators have one host's log and want to know what it shows about their host."""

    def is_of_one_host(self, run: SealedRun) -> bool:
        """Whether :meth:`host` has a page about the run."""

    def host(self, run: SealedRun, against: Path | None, samples: Path | None) -> Document:
        """A page about a run of one host.

        Args:
            run: of one host.
            against: another tool's output about the same host, for comparison; the comparison decides the verdict.
            samples: where to write the samples by the names of that tool.

        Raises:
            UsageError: the run is not of one host, or a file is invalid.
        """


@runtime_checkable
class GrowingLogSystem(ImportableSystem, Protocol):
    """A system whose logs can be followed while they are written.

    Attributes:
        marks: every line that :meth:`recent` needs contains one of them.
    """

    marks: Sequence[bytes]

    def to_follow(self, order: ImportRequest) -> ImportRequest:
        """The request with every document next to the log, since what is read of the log is stored elsewhere.

        Raises:
            UsageError: the log cannot be followed, an option has no effect, or a document is missing.
        """

    def recent(self, order: ImportRequest, window: Path) -> Table:
        """The content of the last lines of a log, one row per item that they cover completely; its anchor is its key.

        Args:
            order: for the whole log.
            window: a file of the last lines that have a mark.
        """


@runtime_checkable
class SplittingSystem(System, Protocol):
    """A system with metrics that consist of known parts, so that a change can be attributed to causes."""

    def causes(self, sides: Sequence[SelectedRuns]) -> Parted | None:
        """The parts of metrics on two sides, or why there are none; None if not applicable."""


@runtime_checkable
class VersionedSystem(LaunchableSystem, Protocol):
    """A launchable system whose published versions can be listed, so that a search can use them."""

    def published_versions(self, also: Sequence[str] = ()) -> list[str]:
        """All versions, sorted.

        Args:
            also: versions to include even if they are not listed; invalid ones are omitted.

        Raises:
            EnvironmentFailure: they cannot be listed now.
        """


@dataclass(frozen=True)
class Capability(Generic[Capable]):
    """A capability that only some systems have. Called with a system, it returns it typed as one that has it.

    Attributes:
        verb: what chainmark does with systems that have it.
        commands: those that need it.
    """

    protocol: type[Any]
    verb: str
    commands: str = ""

    def __call__(self, system: System) -> Capable:
        """The same system.

        Raises:
            UsageError: it does not have it; the hint names the commands that work.
        """
        if isinstance(system, self.protocol):
            return cast("Capable", system)
        metrics = f"`chainmark metrics {system.name}`"
        works = [capability.commands for capability in CAPABILITIES if isinstance(system, capability.protocol)]
        raise UsageError(
            f"chainmark {self.verb.format(f'`{system.name}`')}",
            f"for `{system.name}`, use {'; '.join([*works, metrics])}"
            if self.commands
            else f"{metrics} shows what it measures",
        )


launchable: Capability[LaunchableSystem] = Capability(
    LaunchableSystem, "cannot run {} nodes itself", "`chainmark run` and `chainmark experiment`"
)
attachable: Capability[AttachableSystem] = Capability(
    AttachableSystem, "cannot load networks of {} that others started"
)
importable: Capability[ImportableSystem] = Capability(ImportableSystem, "cannot read logs of {}", "`chainmark ingest`")
predictable: Capability[ModelledSystem] = Capability(
    ModelledSystem, "cannot predict {}: it has no model of it", "`chainmark predict` and `chainmark explain`"
)
publishing: Capability[PublishingSystem] = Capability(PublishingSystem, "knows no published reports of {}")
paged: Capability[PagedSystem] = Capability(PagedSystem, "publishes no page of load tests of {}")
load_testable: Capability[ServedSystem] = Capability(ServedSystem, "cannot send requests to {}", "`chainmark load`")
followable: Capability[FollowableSystem] = Capability(FollowableSystem, "cannot follow samples of {} to what happened")
verifiable: Capability[VerifiedSystem] = Capability(VerifiedSystem, "knows no other analysis of runs of {}")
growing: Capability[GrowingLogSystem] = Capability(GrowingLogSystem, "cannot follow logs of {} while they grow")
of_hosts: Capability[HostSystem] = Capability(HostSystem, "has no page about one host of {}")
qualifiable: Capability[QualifiableSystem] = Capability(QualifiableSystem, "has no plan to qualify a release of {}")
versioned: Capability[VersionedSystem] = Capability(
    VersionedSystem, "cannot list the published versions of {}: name a repository, `--repo PATH`"
)

# Capabilities that a hint names.
CAPABILITIES: tuple[Capability[Any], ...] = (launchable, importable, predictable, load_testable)
