"""The system `mesh`: Mesh (Rosetta) servers, discovered, sampled, and load-tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from chainmark.capacity.metrics import typical_catalogue
from chainmark.capacity.model import Endpoint, Target
from chainmark.capacity.profile import LoadProfile
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import contradicts
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Fact, Subject
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.corpora import CorpusRecord, WrongRequest
from chainmark.lab.profiles import check_profile
from chainmark.lab.protocols import UNVERSIONED, Imported, ImportRequest, Service, ServiceRequest
from chainmark.report.document import Document
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.mesh.bodies import READS, READS_BY_ID, canonical
from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.corpus import sample
from chainmark.systems.mesh.csv_import import from_csv
from chainmark.systems.mesh.discovery import DiscoveredServer, Offering, discover
from chainmark.systems.mesh.page.document import page_document
from chainmark.systems.mesh.page.results import page_of
from chainmark.systems.mesh.pinned import Corpus, Refusal
from chainmark.systems.mesh.profile import MeshProfile
from chainmark.systems.mesh.pruning import PRUNING, SPENT, Pruning, pruning_words, read_pruning
from chainmark.systems.mesh.published_import import ingest_published, parts_of
from chainmark.trails.requests import FollowsRequests

NODE_VERSION = "node_version"
_MIDDLEWARE = "middleware_version"
# Report labels of the counts of a response.
_COUNTED = {"total_count": "total transactions", "seen": "occurrences in blocks"}


class MeshApi(FollowsRequests):
    """The system `mesh`, found by its folder."""

    name = "mesh"
    title = "Mesh API"

    def catalogue(self) -> Catalogue:
        """The metrics of a server that offers everything, each endpoint at one level as an example."""
        typical = typical_catalogue(self.name, self.title, [Endpoint(read.id, read.label, ()) for read in READS])
        return typical.model_copy(update={"conditions": [*typical.conditions, PRUNING, SPENT]})

    def profile(self, content: Mapping[str, object]) -> MeshProfile:
        """Check a profile."""
        return check_profile(MeshProfile, content)

    def parts(self, order: ImportRequest) -> list[str]:
        """The tables of the published page, of one release if requested."""
        return parts_of(order)

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Import one of them into a run."""
        return ingest_published(order, run, progress)

    def page(self, runs: Sequence[SealedRun], stages: Mapping[str, str], tool_version: str) -> Document:
        """The page on which the developers of a server publish its load tests."""
        return page_document(page_of(runs, stages, tool_version))

    def load_profile(self, profile: BaseModel) -> LoadProfile:
        """Always true."""
        return cast(MeshProfile, profile)

    def prepare(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> Service:
        """Discover the server, and load or sample its requests."""
        mesh = cast(MeshProfile, profile)
        strata = mesh.mesh.strata or None
        with MeshClient.of(order.target, _timeout_s(mesh)) as client:
            server = discover(client, mesh.mesh.network or None, metadata_options=mesh.mesh.metadata_options or None)
            corpus, wrong = _corpus(mesh, order, server, client, progress)
            pruning = read_pruning(server, client)
            ranges = corpus.ranges(client.answer_bytes, strata)
        if order.pinned is not None:
            corpus.save(order.pinned)
        skipped = _skipped(server, corpus)
        # Endpoints from a profile are measured if available; those from the command must be available.
        names = order.endpoints or [name for name in mesh.mesh.endpoints if corpus.endpoint(name) is not None]
        if mesh.mesh.endpoints and not names:
            endpoints: tuple[Endpoint, ...] = ()
        else:
            endpoints = corpus.load_endpoints(names, strata=strata, by_stratum=mesh.mesh.by_stratum)
        return Service(
            subject=_subject(server, order.version),
            target=order.target,
            endpoints=endpoints,
            strata=corpus.strata_counts(),
            sizes={id_: {_COUNTED.get(key, key): span for key, span in item.items()} for id_, item in ranges.items()},
            skipped=_of_endpoints(skipped, order.endpoints or mesh.mesh.endpoints),
            corpus_hash=corpus.hash,
            facts=_facts(server, corpus, pruning),
            conditions={"network": server.network_name, PRUNING.id: pruning.condition, **_stated(mesh)},
            labels={PRUNING.id: pruning_words(mesh.mesh.pruning)},
            warnings=tuple(_warnings(wrong)),
            contradictions=_contradictions(server, order.version),
        )

    def keep_corpus(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> CorpusRecord:
        """Sample requests, or take those of CSV files, and write those that the server answers correctly."""
        mesh = cast(MeshProfile, profile)
        with MeshClient.of(order.target, _timeout_s(mesh)) as client:
            server = discover(client, mesh.mesh.network or None, metadata_options=mesh.mesh.metadata_options or None)
            corpus, _ = _corpus(mesh, order, server, client, progress)
        if order.pinned is not None:
            corpus.save(order.pinned)
        return _corpus_record(corpus)

    def check_corpus(
        self, path: Path, target: Target, progress: Progress, machines: Machines | None = None
    ) -> tuple[CorpusRecord, list[WrongRequest]]:
        """Send every request once."""
        corpus = Corpus.load(path)
        with MeshClient.of(target) as client:
            server = discover(client, corpus.network_name)
            if machines is None:
                wrong = corpus.check_against(server, client, progress)
            else:
                wrong = corpus.check_from(machines, server, target, progress)
        return _corpus_record(corpus), _wrong(wrong)


def _stated(mesh: MeshProfile) -> dict[str, str]:
    """The profile's statements about the server, for what the server does not report."""
    return {SPENT.id: mesh.mesh.pruning} if mesh.mesh.pruning else {}


def _timeout_s(profile: MeshProfile) -> float:
    """The same timeout as under load: a request for a heavy account may need longer than others may take."""
    return profile.timeout_s()


def _corpus_record(corpus: Corpus) -> CorpusRecord:
    return CorpusRecord(
        hash=corpus.hash,
        network=corpus.network_name,
        requests={endpoint.read.label: corpus.strata_counts()[endpoint.id] for endpoint in corpus.endpoints},
        refused=tuple(_wrong(corpus.refused)),
        skipped=corpus.skipped(),
    )


def _wrong(refusals: Sequence[Refusal]) -> list[WrongRequest]:
    return [
        WrongRequest(READS_BY_ID[refusal.endpoint].label, canonical(refusal.body), refusal.reason)
        for refusal in refusals
    ]


def _corpus(
    mesh: MeshProfile, order: ServiceRequest, server: DiscoveredServer, client: MeshClient, progress: Progress
) -> tuple[Corpus, list[Refusal]]:
    """The requests, and those of a pinned file that this server no longer answers correctly."""
    if order.corpus is None:
        progress.stage(f"sampling requests from {server.url}")
        return sample(server, client, mesh.corpus, progress), []
    corpus = read_corpus(order.corpus, server)
    missing = sorted(set(mesh.corpus.addresses) - corpus.addresses())
    if missing:
        raise UsageError(
            f"{order.corpus} has no request for the address `{missing[0]}`",
            "omit the file to generate requests for the given addresses",
        )
    if not corpus.validated:
        return corpus.validated_by(server, client, progress), []
    wrong = corpus.check_against(server, client, progress)
    if len(wrong) == corpus.size:
        raise UsageError(
            f"{server.url} responds correctly to none of the {corpus.size} requests of {order.corpus}: "
            f"{wrong[0].reason}",
            "is the corpus for this network? `chainmark corpus` samples a new one",
        )
    return corpus, wrong


def read_corpus(path: Path, server: DiscoveredServer) -> Corpus:
    """A pinned corpus, or the CSV files of other load tests.

    Raises:
        UsageError: the file is neither.
    """
    if path.is_dir() or path.suffix.lower() == ".csv":
        return from_csv(path, server.network, include_mempool=server.include_mempool)
    return Corpus.load(path)


def _subject(server: DiscoveredServer, version: str | None) -> Subject:
    versions = server.versions
    middleware = versions.get(_MIDDLEWARE)
    reported = middleware or versions.get(NODE_VERSION) or UNVERSIONED
    name = f"{server.network['blockchain']} Mesh API"
    return Subject(system="mesh", name=name, version=version or reported, build=f"node {versions.get(NODE_VERSION)}")


def _contradictions(server: DiscoveredServer, version: str | None) -> tuple[str, ...]:
    """Whether the server reports another version than its label; the label may mean its middleware or its node."""
    messages = [item for key in (_MIDDLEWARE, NODE_VERSION) if (item := server.versions.get(key))]
    if version is None or not messages or not all(contradicts(version, entry) for entry in messages):
        return ()
    return (f"the server reports version {' with node '.join(messages)}, not {version}",)


def _skipped(server: DiscoveredServer, corpus: Corpus) -> dict[str, str]:
    """Endpoints that are not measured, by their label."""
    skipped = corpus.skipped()
    for offer in server.offers:
        if offer.state is not Offering.OFFERED and corpus.endpoint(offer.endpoint.id) is None:
            skipped.setdefault(offer.endpoint.label, f"{offer.state}: {offer.reason}")
    return skipped


def _of_endpoints(skipped: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """A user who selected endpoints is not informed of the others."""
    wanted = {READS_BY_ID[name].label if name in READS_BY_ID else name for name in names}
    return {
        label: reason
        for label, reason in skipped.items()
        if not names or label in wanted or label.partition(" (")[0] in wanted
    }


def _facts(server: DiscoveredServer, corpus: Corpus, pruning: Pruning) -> tuple[Fact, ...]:
    reported = {name.removesuffix("_version"): text or "not stated" for name, text in server.versions.items()}
    versions = ", ".join(f"{name} {text}" for name, text in reported.items())
    items = sum(len(endpoint.items) for endpoint in corpus.endpoints)
    return (
        Fact(label="Network", value=server.network_name),
        Fact(label="Versions", value=versions),
        Fact(label="Chain", value=f"block {units.count(server.current.index)}"),
        Fact(label="Pruning of blocks", value=pruning.words),
        Fact(label="Corpus", value=f"{units.count(items)} requests, {corpus.origin}, {corpus.hash[:16]}"),
    )


def _warnings(wrong: Sequence[Refusal]) -> list[str]:
    counts = Counter(refusal.endpoint for refusal in wrong)
    return [
        f"this server does not respond correctly to {count} of the pinned requests to {READS_BY_ID[endpoint].label}, "
        f"which count as errors: {next(refusal.reason for refusal in wrong if refusal.endpoint == endpoint)}"
        for endpoint, count in sorted(counts.items())
    ]


SYSTEM = MeshApi()
