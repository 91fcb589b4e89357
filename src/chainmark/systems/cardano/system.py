"""Cardano as a system under test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.errors import ChainmarkError
from chainmark.lab.profiles import check_profile
from chainmark.store.files import write_bytes
from chainmark.systems.cardano.published.results import ReportStyle

# Most features of this system are needed by one command each: they are imported on demand.
if TYPE_CHECKING:
    from chainmark.compare.sides import SelectedRuns
    from chainmark.compare.split import Parted
    from chainmark.core.comparison import Followed
    from chainmark.core.progress import Progress
    from chainmark.lab.protocols import Imported, ImportRequest
    from chainmark.lab.synthetic import FaultKind, SyntheticRequest
    from chainmark.report.blocks import Table
    from chainmark.report.document import Document
    from chainmark.store.sealed import SealedRun
    from chainmark.store.unfinished import UnfinishedRun
    from chainmark.systems.capabilities import ModelRequest, ModelSource, PublishedFile
    from chainmark.systems.cardano.profile import CardanoProfile
    from chainmark.systems.cardano.published.part import CardanoPart
    from chainmark.systems.cardano.synth import ClusterContent
    from chainmark.trails.trail import FollowRequest


class Cardano:
    """The system `cardano`, found by its folder. Other tools run its nodes; chainmark evaluates their logs."""

    name = "cardano"
    title = "Cardano"
    styles = tuple(ReportStyle)

    @cache  # noqa: B019 - there is one object of this class, and it exists as long as the program
    def catalogue(self) -> Catalogue:
        """The metrics of ``catalogue.toml``."""
        from chainmark.systems.cardano.published.entries import checked
        from chainmark.trails.trail import with_trails

        return with_trails(checked(load_catalogue(Path(__file__).with_name("catalogue.toml"))))

    def profile(self, content: Mapping[str, object]) -> CardanoProfile:
        """Check a profile's content, down to its topology file."""
        from chainmark.systems.cardano.profile import CardanoProfile

        return check_profile(CardanoProfile, content)

    def parts(self, order: ImportRequest) -> list[str]:
        """The runs in published reports; none: the source is a cluster's logs."""
        from chainmark.systems.cardano.printed.runs import parts_of

        if order.machines is not None:
            return []
        return parts_of(order, self.catalogue())

    def import_options(self, order: ImportRequest) -> Collection[str]:
        """All that concern logs; a published report is read as it is."""
        from chainmark.lab.protocols import IMPORT_OPTIONS
        from chainmark.systems.cardano.documents import DOCUMENT_OPTIONS

        if self.is_spread(order):
            return {*IMPORT_OPTIONS, *DOCUMENT_OPTIONS} - {"begin_ns"}
        return {"published_rules"}

    def is_spread(self, order: ImportRequest) -> bool:
        """Logs are read remotely; published reports are small, and local."""
        return isinstance(order.source, str) or not (order.path.exists() and self.parts(order))

    def left_out(self, order: ImportRequest) -> str:
        """See `chainmark.lab.protocols.ChoosingSystem`."""
        from chainmark.systems.cardano.printed.runs import left_beside_reports

        if order.machines is not None:
            return ""
        return left_beside_reports(order, self.catalogue())

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Read a cluster's logs, or one column of published reports, into a run."""
        from chainmark.systems.cardano.ingest import ingest
        from chainmark.systems.cardano.printed.runs import ingest_printed

        if order.part is not None:
            return ingest_printed(order, self.catalogue(), progress)
        return ingest(order, run, progress, self.catalogue())

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of the benchmarks."""
        from chainmark.systems.cardano.published.reader import is_report

        return is_report(path, self.catalogue())

    def columns(self, path: Path) -> list[str]:
        """The versions of a published report, the baseline first."""
        from chainmark.systems.cardano.published.files import read_content

        return read_content(path, self.catalogue()).versions

    def published(
        self, parts: Sequence[Sequence[SealedRun] | PublishedFile], style: str | None, tool_version: str
    ) -> Document:
        """Versions side by side as the published reports of the benchmarks show them."""
        from chainmark.systems.cardano.published.document import published_document
        from chainmark.systems.cardano.published.report import published_report

        return published_document(published_report(parts, style, self.catalogue(), tool_version))

    def published_part(
        self, sides: Sequence[Sequence[SealedRun]], days: Mapping[str, str], tool_version: str
    ) -> CardanoPart:
        """One workload as the published reports of the benchmarks show it, for a release page."""
        from chainmark.systems.cardano.published.part import cardano_part

        return cardano_part(sides, days, self.catalogue(), tool_version)

    def verify(self, run: SealedRun, path: Path, tool_version: str) -> Document:
        """Another tool's figures of a run's logs (of one host's: blockperf), next to the run's own."""
        from chainmark.systems.cardano.host.report import is_of_one_host
        from chainmark.systems.cardano.host.sample_files import is_samples
        from chainmark.systems.cardano.verified.document import verification_document
        from chainmark.systems.cardano.verified.verifying import verify

        if is_of_one_host(run) and is_samples(path):
            return self.host(run, path, None)
        return verification_document(verify(run, path, self.catalogue(), tool_version))

    def hinders_model(self, run: SealedRun) -> str:
        """The figures that the model needs and the run lacks."""
        from chainmark.systems.cardano.published.reader import run_figures

        try:
            run_figures(run)
        except ChainmarkError as error:
            return error.message
        return ""

    def predict(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """The source's network and every what-if, by simulation."""
        from chainmark.systems.cardano.model.prediction_document import prediction_document
        from chainmark.systems.cardano.predict import predict

        return prediction_document(predict(source, order, progress, self.catalogue()))

    def explain(self, source: ModelSource, order: ModelRequest, progress: Progress) -> Document:
        """Whether the stages of a run or report reproduce its adoption times."""
        from chainmark.systems.cardano.explain import explain
        from chainmark.systems.cardano.model.explanation_document import explanation_document

        return explanation_document(explain(source, order, progress, self.catalogue()))

    def evidence(self, documents: Sequence[Path], order: ModelRequest, progress: Progress) -> Document:
        """The model's errors against published runs."""
        from chainmark.systems.cardano.evidence import evidence
        from chainmark.systems.cardano.model.evidence_document import evidence_document

        return evidence_document(evidence(documents, order, progress, self.catalogue()))

    def followed(self, run: SealedRun) -> Sequence[str]:
        """Blocks, if the run was made from logs."""
        from chainmark.trails.trail import trails_of

        return [trail.id for trail in trails_of(run.catalogue)]

    def follow(self, run: SealedRun, order: FollowRequest) -> Document:
        """What every host did with one block."""
        from chainmark.systems.cardano.network import known_network
        from chainmark.trails.following import followed

        known = known_network(run)
        return followed(run, order, trips=known.round_trips if known else [])

    def tails(self, sides: Sequence[SelectedRuns], catalogue: Catalogue) -> Followed | None:
        """The blocks in the tails of a comparison, and the traces of some of them."""
        from chainmark.trails.tails import tails_of

        return tails_of(sides, catalogue)

    @property
    def marks(self) -> Sequence[bytes]:
        """See `chainmark.systems.capabilities.GrowingLogSystem`."""
        from chainmark.systems.cardano.host.recent import MARKS

        return MARKS

    def to_follow(self, order: ImportRequest) -> ImportRequest:
        """The request with the genesis next to the log."""
        from chainmark.systems.cardano.host.recent import to_follow
        from chainmark.systems.cardano.ingest import read_settings

        return to_follow(order, read_settings(order.settings).genesis)

    def recent(self, order: ImportRequest, window: Path) -> Table:
        """The last blocks of a log that still grows."""
        from chainmark.systems.cardano.host.recent import genesis_of, recent_blocks
        from chainmark.systems.cardano.ingest import read_settings

        return recent_blocks(window, genesis_of(order, read_settings(order.settings).genesis))

    def is_of_one_host(self, run: SealedRun) -> bool:
        """Whether one host's log alone made the run."""
        from chainmark.systems.cardano.host.report import is_of_one_host

        return is_of_one_host(run)

    def host(self, run: SealedRun, against: Path | None, samples: Path | None) -> Document:
        """The page about one host's log for its operator."""
        from chainmark.systems.cardano.host.document import host_document
        from chainmark.systems.cardano.host.report import host_report
        from chainmark.systems.cardano.host.sample_files import written

        report = host_report(run, against)
        if samples is not None:
            write_bytes(samples, written([block.sample for block in report.blocks], samples.suffix))
        return host_document(report)

    def causes(self, sides: Sequence[SelectedRuns]) -> Parted | None:
        """The parts of a change of adoption that come from the network between regions and from the nodes."""
        from chainmark.systems.cardano.split.parted import causes_of

        return causes_of(sides)

    def fault_kinds(self) -> list[FaultKind]:
        """The faults that synthetic logs can have."""
        from chainmark.systems.cardano.synth import fault_kinds

        return fault_kinds()

    def synthesise(self, order: SyntheticRequest, progress: Progress) -> ClusterContent:
        """Write the logs of a simulated cluster, with the ground truth next to them."""
        from chainmark.systems.cardano.synth import synthesise

        return synthesise(order, progress)


SYSTEM = Cardano()
