"""What a system can do beyond the making of runs, and the question whether it can.

A system that has results of its own (:class:`ModelledSystem`, :class:`PublishingSystem`) lays them out itself: what
crosses this boundary is a document.
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
from chainmark.store.runs import SealedRun

if TYPE_CHECKING:
    from chainmark.compare.sides import SelectedRuns
    from chainmark.compare.split import Parted
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.comparison import Followed
    from chainmark.core.release_page import PublishedPart
    from chainmark.report.blocks import Table
    from chainmark.report.document import Document

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
    """What a model is fitted to: a published report, a run, or a profile; exactly one of the three.

    Attributes:
        label: how it is called in the results.
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
    """How a model is to be asked.

    Attributes:
        changes: the what-ifs.
        together: all changes as one scenario, instead of each alone and then all.
        blocks: how many blocks to simulate per scenario; None leaves it to the system.
        threads: 0 means all cores. The results do not depend on it.
        machines: other machines that simulate instead of this one; the results do not depend on them either.
    """

    changes: tuple[WhatIf, ...] = ()
    together: bool = False
    blocks: int | None = None
    seed: int = 1
    threads: int = 0
    machines: Machines | None = None


@runtime_checkable
class ModelledSystem(System, Protocol):
    """A system of which there is a model that predicts its metrics.

    All but the first two raise UsageError for a source or a change that cannot be used.
    """

    def hinders_model(self, run: SealedRun) -> str:
        """Why no model can be fitted to a run, in a sentence; "" where one can. It is asked of every run of a list."""

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of this system; false also for what cannot be read."""

    def predict(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """The source's network and every what-if, side by side."""

    def explain(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """Whether the stages that a run or report tells explain the whole that it tells: the document's verdict."""

    def evidence(self, documents: Sequence[Path], order: ModelRequest, progress: Progress) -> Document:
        """The model's record against many published reports."""


@dataclass(frozen=True)
class PublishedFile:
    """A published report, or only one of its versions."""

    path: Path
    version: str | None = None


@runtime_checkable
class PublishingSystem(System, Protocol):
    """A system whose benchmarks are published as reports that chainmark can read and make.

    Attributes:
        styles: the styles that these reports have had, that of today first.
    """

    styles: Sequence[str]

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of this system; false also for what cannot be read."""

    def columns(self, path: Path) -> list[str]:
        """The versions that a published report compares, the baseline first.

        Raises:
            UsageError: the file is not such a report.
        """

    def published(
        self, parts: Sequence[Sequence[SealedRun] | PublishedFile], style: str | None, tool_version: str
    ) -> Document:
        """Versions beside each other as the published reports show them; nothing is judged.

        Args:
            parts: the runs of a version, or a published report with its versions; the first version is the baseline.
            style: one of ``styles``; None takes that of the reports given, or today's.
            tool_version: recorded in the result.

        Raises:
            UsageError: a file is not such a report, there is one version alone, or a part cannot be shown in the style.
        """

    def published_part(
        self, sides: Sequence[Sequence[SealedRun]], days: Mapping[str, str], tool_version: str
    ) -> PublishedPart:
        """The runs of one workload as a part of a release page.

        Args:
            sides: the runs of each version, the baseline's first.
            days: by run, the day of its analysis where the run itself does not state it.
            tool_version: recorded in the result.
        """


@runtime_checkable
class PagedSystem(System, Protocol):
    """A system whose load tests are published as one page over all releases."""

    def page(self, runs: Sequence[SealedRun], stages: Mapping[str, str], tool_version: str) -> Document:
        """The page of these runs, measured and printed.

        Args:
            runs: of load tests, and of pages that were read in.
            stages: by run, where the file of all its steps lies, seen from the page.
            tool_version: recorded in the result.

        Raises:
            UsageError: the runs have nothing that could be published.
        """


@dataclass(frozen=True)
class FollowRequest:
    """What is to be followed through a run, and what is to be shown of it.

    Attributes:
        key: names the thing, or is the beginning of its name, or its number; None: the slowest are listed.
        trail: what it is, as the run's catalogue calls it.
        hosts: to show; none means all.
        lines: the folder that the run's logs were imported from, to show the lines themselves.
        most: how many of the slowest.
    """

    key: str | None
    trail: str
    hosts: tuple[str, ...] = ()
    lines: Path | None = None
    most: int = 10


@runtime_checkable
class FollowableSystem(System, Protocol):
    """A system that can follow a sample of its runs to what happened: a block through all hosts, a transaction."""

    def followed(self, run: SealedRun) -> Sequence[str]:
        """What can be followed in a run, as its catalogue calls it."""

    def follow(self, run: SealedRun, order: FollowRequest) -> Document:
        """What every host did with one thing of a run; without a key, the slowest things.

        Raises:
            UsageError: there is no such thing, host or file, or the run keeps nothing that could be followed.
        """

    def tails(self, sides: Sequence[SelectedRuns], catalogue: Catalogue) -> Followed | None:
        """What happened to the most extreme samples of a comparison; None where none can be followed."""


@runtime_checkable
class VerifiedSystem(System, Protocol):
    """A system whose runs others analyse too: what they computed of the same run can be set beside ours."""

    def verify(self, run: SealedRun, path: Path, tool_version: str) -> Document:
        """Their figures beside those that the run has by the same rules: the document's verdict is whether they agree.

        Args:
            run: made from what they analysed.
            path: what they wrote.
            tool_version: recorded in the result.

        Raises:
            UsageError: the file is none of theirs, or is of another run; or the run has no figures by their rules.
        """


@runtime_checkable
class HostSystem(System, Protocol):
    """A system whose operators have one host's log, and want to know what it tells of their host."""

    def is_of_one_host(self, run: SealedRun) -> bool:
        """Whether :meth:`host` has a page about the run."""

    def host(self, run: SealedRun, against: Path | None, samples: Path | None) -> Document:
        """A page about a run of one host.

        Args:
            run: of one host.
            against: what another tool wrote about the same host, to be set beside; its comparison decides the verdict.
            samples: where to write the samples by the names of that tool.

        Raises:
            UsageError: the run is not of one host, or a file is not what it should be.
        """


@runtime_checkable
class GrowingLogSystem(ImportableSystem, Protocol):
    """A system whose logs can be followed while they are written.

    Attributes:
        marks: of which one is in every line that :meth:`recent` needs.
    """

    marks: Sequence[bytes]

    def to_follow(self, order: ImportRequest) -> ImportRequest:
        """The order with every document that lies beside the log, since what is read of it is kept elsewhere.

        Raises:
            UsageError: the log cannot be followed, or a document is missing.
        """

    def recent(self, order: ImportRequest, window: Path) -> Table:
        """What the last lines of a log tell, one row for each thing that they tell whole; its anchor is its key.

        Args:
            order: of the whole log.
            window: a file of the last lines that have a mark.
        """


@runtime_checkable
class SplittingSystem(System, Protocol):
    """A system that knows what some of its metrics consist of, so that a change of them can be divided among causes."""

    def causes(self, sides: Sequence[SelectedRuns]) -> Parted | None:
        """The parts of metrics on two sides, or why there are none; None where there is nothing to be said."""


@runtime_checkable
class VersionedSystem(LaunchableSystem, Protocol):
    """A launchable system whose published versions can be listed, so that a search can go over them."""

    def published_versions(self, also: Sequence[str] = ()) -> list[str]:
        """All of them, in the order of their numbers.

        Args:
            also: versions that are among them even if nothing lists them; what cannot be a version is left out.

        Raises:
            EnvironmentFailure: they cannot be listed now.
        """


@dataclass(frozen=True)
class Capability(Generic[Capable]):
    """Something that only some systems can do. Called with a system, it gives the same one as one that can.

    Attributes:
        verb: what chainmark does with those that can.
        commands: that work for those that can.
    """

    protocol: type[Any]
    verb: str
    commands: str = ""

    def __call__(self, system: System) -> Capable:
        """The same system.

        Raises:
            UsageError: it cannot; the hint names the commands that work.
        """
        if isinstance(system, self.protocol):
            return cast("Capable", system)
        metrics = f"`chainmark metrics {system.name}`"
        works = [capability.commands for capability in CAPABILITIES if isinstance(system, capability.protocol)]
        raise UsageError(
            f"chainmark {self.verb.format(f'`{system.name}`')}",
            f"for `{system.name}` there are {', '.join([*works, metrics])}"
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
modelled: Capability[ModelledSystem] = Capability(
    ModelledSystem, "cannot predict {}: it has no model of it", "`chainmark predict` and `chainmark explain`"
)
publishing: Capability[PublishingSystem] = Capability(PublishingSystem, "knows no published reports of {}")
paged: Capability[PagedSystem] = Capability(PagedSystem, "publishes no page of load tests of {}")
served: Capability[ServedSystem] = Capability(ServedSystem, "cannot send requests to {}", "`chainmark load`")
followable: Capability[FollowableSystem] = Capability(FollowableSystem, "cannot follow samples of {} to what happened")
verified: Capability[VerifiedSystem] = Capability(VerifiedSystem, "knows no other analysis of runs of {}")
growing: Capability[GrowingLogSystem] = Capability(GrowingLogSystem, "cannot follow logs of {} while they grow")
of_hosts: Capability[HostSystem] = Capability(HostSystem, "has no page about one host of {}")
qualifiable: Capability[QualifiableSystem] = Capability(QualifiableSystem, "has no plan to qualify a release of {}")
versioned: Capability[VersionedSystem] = Capability(
    VersionedSystem, "cannot list the published versions of {}: name a repository, `--repo PATH`"
)

# Those that a hint tells of.
CAPABILITIES: tuple[Capability[Any], ...] = (launchable, importable, modelled, served)
