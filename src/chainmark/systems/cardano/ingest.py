"""Import a cluster's logs into a run: found, checked, decoded per host, analysed, and checked for missing parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import contradicts
from chainmark.core.errors import InternalError, UsageError
from chainmark.core.manifest import Grouping, HostFacts, Source, Subject
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.lab.profiles import apply_setting, check_profile
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.store.files import hash_file
from chainmark.store.objects import is_server
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cardano import facts, gates
from chainmark.systems.cardano.accounting import HostSummary
from chainmark.systems.cardano.analyse import AnalysisResult, RecordedChain, analyse, catalogue_for
from chainmark.systems.cardano.checks import check_any, check_heads, check_one_network, check_read, genesis_hint
from chainmark.systems.cardano.decoding import Excluded, Reading, count_excluded, decode
from chainmark.systems.cardano.documents import (
    GENESIS,
    META,
    PACKAGES,
    TOPOLOGY,
    TRUTH_FILE,
    UNKNOWN,
    Genesis,
    Meta,
    StatedGenesis,
    find_genesis,
    find_meta,
    find_pings,
    given_document,
    named_as_logged,
    read_meta,
    read_topology,
    resolve_genesis,
)
from chainmark.systems.cardano.elsewhere import Elsewhere, Here
from chainmark.systems.cardano.filters import FilterCondition, parse_conditions
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs, listed
from chainmark.systems.cardano.messages import missing_messages
from chainmark.systems.cardano.mixing import check_names, without_copies
from chainmark.systems.cardano.network import DOCUMENT, KnownNetwork, known_regions
from chainmark.systems.cardano.profile import AnalysisSettings
from chainmark.systems.cardano.published.measured import keep_published
from chainmark.systems.cardano.received import of_a_cluster, of_one_host
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import rows_at_a_time
from chainmark.systems.cardano.stored import Stored
from chainmark.systems.cardano.trips import ROUND_TRIP_MAX_S, read_pings, stated_trips

NOT_STATED = "not stated"
DECODED = "decoded"
# Of a run without a description.
NAMELESS_PROFILE = "cardano/import"


class StatedNetwork(BaseModel):
    """The stated properties of the network: round trips by link, "EU-AP"."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rtt_s: dict[str, Annotated[float, Field(gt=0, le=ROUND_TRIP_MAX_S, description="(seconds)")]] = {}


class IngestSettings(BaseModel):
    """The keys of `--set` for an import."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    analysis: AnalysisSettings = AnalysisSettings()
    genesis: StatedGenesis = StatedGenesis()
    network: StatedNetwork = StatedNetwork()


@dataclass(frozen=True)
class Documents:
    """The documents next to the logs, or those given or stated instead.

    Attributes:
        files: those that were read.
        notes: what was assumed.
    """

    genesis: Genesis
    meta: Meta
    network: KnownNetwork | None
    files: list[Path]
    notes: list[str]

    @property
    def regions(self) -> dict[str, str] | None:
        """The region of every host of the topology; None without one."""
        return None if self.network is None else {host.name: host.region for host in self.network.hosts}


def ingest(order: ImportRequest, run: UnfinishedRun, progress: Progress, catalogue: Catalogue) -> Imported:
    """Read a cluster's logs into a run.

    Raises:
        UsageError: the logs are of another kind, required input is missing, or they are of two networks.
        EnvironmentFailure: they cannot be read, or the run cannot be written.
    """
    with TemporaryDirectory(prefix="chainmark-") as copies:
        return _ingest(order, _logs_of(order, Path(copies)), run, progress, catalogue)


def _logs_of(order: ImportRequest, copies: Path) -> Here | Elsewhere | Stored:
    if isinstance(order.source, str) and not is_server(order.source):
        return Stored(order.source, copies)
    return Here(order.path) if order.machines is None else Elsewhere(order.path, order.machines, copies)


def _ingest(
    order: ImportRequest,
    logs: Here | Elsewhere | Stored,
    run: UnfinishedRun,
    progress: Progress,
    catalogue: Catalogue,
) -> Imported:
    settings = read_settings(order.settings)
    progress.stage("searching for logs")
    cluster = logs.find().without(order.exclude)
    check_any(cluster)
    cluster = without_copies(cluster, logs.text_hash)
    # A file that is given explicitly may have any name.
    names = check_names(cluster) if logs.is_folder else []
    documents = read_documents(order, settings, cluster)
    check_heads(cluster, documents.genesis)
    # A node logs its version first: a user who must state it should not wait until all logs are read.
    resolve_version(order.version, documents.meta, {host.name: host.node_version for host in cluster.hosts})
    conditions = resolve_conditions(order, settings, documents.meta, len(cluster.hosts))
    rules = Rules(
        published=order.published_rules or settings.analysis.published_rules,
        count_switches=settings.analysis.count_switches,
    )
    with _scratch(run) as folder:
        events = run.path / "events" if order.keep_events else None
        reading = Reading(documents.genesis, rules, folder, events, rows_at_a_time(len(cluster.hosts)))
        traces, published, summaries = decode(cluster, reading, order.threads, progress, order.machines)
        check_read(summaries, documents.genesis)
        isolated = check_one_network({trace.name: trace.block_timelines for trace in traces})
        excluded = count_excluded(cluster, reading, order.threads, progress, order.machines)
        chain = RecordedChain(traces)
        genesis, regions = documents.genesis, documents.regions
        analysis = analyse(traces, genesis, conditions, rules, regions, recorded=chain, run=run, progress=progress)
        if analysis.imbalances:
            raise InternalError(f"the blocks were not all counted: {analysis.imbalances[0]}")
        slots = {trace.name: trace.slots for trace in traces}
        load_stated = bool(documents.meta.profile_content.generator.tps)
        missing = missing_messages(summaries, slots, load_stated)
        judged = gates.GateInputs(summaries, slots, documents.genesis, analysis, isolated, missing, cluster)
        findings = gates.find(judged)
        node, node_notes, contradictions = resolve_node(order.version, documents.meta, summaries)
        known = facts.Subjects(
            genesis=documents.genesis,
            meta=documents.meta,
            summaries=summaries,
            excluded=excluded,
            analysis=analysis,
            conditions=conditions,
            rules=rules,
            node=node,
            cluster=cluster,
        )
        progress.stage("computing the figures by the published rules")
        keep_published(run, published, chain, known, catalogue)
    notes = [*contradictions, *_cluster_notes(order, cluster, documents, analysis, excluded), *names]
    notes += [*documents.notes, *node_notes]
    findings.warnings[:0] = notes if conditions else [*notes, "no filters: the warm-up is included"]
    measured = len(analysis.hosts) - len(analysis.hosts_without_slots)
    catalogue = of_one_host(catalogue) if len(analysis.hosts) == 1 else of_a_cluster(catalogue)
    catalogue = catalogue_for(catalogue, rules, measured)
    imported = _imported(known, findings, _sources(cluster, documents, summaries), order.keep_events, catalogue)
    imported.contradictions = contradictions
    if documents.network is not None:
        run.write_document(DOCUMENT, documents.network)
        imported.options[DOCUMENT] = documents.network.model_dump(mode="json")
    if documents.regions:
        # The distance of a region is not a host's fault. A block's forger is a host, too.
        region = Grouping(label="region", of=documents.regions)
        imported.groups = {"host": region, "forger": region}
    if documents.meta.is_synthetic or (cluster.documents / TRUTH_FILE).is_file():
        imported.synthetic = True
        imported.options["synthetic"] = True  # such a run differs from one of the same logs taken as real
    return imported


def read_settings(settings: Sequence[str]) -> IngestSettings:
    """The stated values.

    Raises:
        UsageError: a key is unknown or a value invalid.
    """
    content: dict[str, Any] = {}
    for setting in settings:
        content = apply_setting(content, setting)
    return check_profile(IngestSettings, content)


def read_documents(order: ImportRequest, settings: IngestSettings, cluster: ClusterLogs) -> Documents:
    """The documents next to the logs, those given instead, and the stated values.

    Raises:
        UsageError: there is no genesis, or a document is invalid.
        EnvironmentFailure: a document cannot be read.
    """
    genesis_file = find_genesis(cluster.documents, given_document(order, GENESIS))
    if genesis_file is None and settings.genesis.system_start is None and settings.genesis.network is None:
        raise UsageError(
            f"there is no genesis in {cluster.folder}, and the start of the slots is unknown", genesis_hint(cluster)
        )
    genesis, notes = resolve_genesis(genesis_file, settings.genesis)
    meta_file = find_meta(cluster.documents, given_document(order, META))
    meta = Meta() if meta_file is None else read_meta(meta_file)
    topology_file, topology = read_topology(cluster.documents, given_document(order, TOPOLOGY))
    ping_file = find_pings(cluster.documents) if topology is not None else None
    network = None
    if topology is not None:
        named = named_as_logged([host.name for host in cluster.hosts], topology)
        trips = stated_trips(settings.network.rtt_s, known_regions(host.region for host in topology.hosts))
        try:
            trips += [] if ping_file is None else read_pings(ping_file, topology)
        except UsageError as error:
            notes.append(f"round trips are unknown: {error.message}")
        network = KnownNetwork(hosts=named.hosts, round_trips=trips)
    elif settings.network.rtt_s:
        raise UsageError("round trips are stated for a cluster without a topology", "give it with `--topology FILE`")
    files = [path for path in (genesis_file, meta_file, topology_file, ping_file) if path is not None]
    return Documents(genesis, meta, network, files, notes)


def resolve_conditions(order: ImportRequest, settings: IngestSettings, meta: Meta, hosts: int) -> list[FilterCondition]:
    """The filters: as requested, otherwise as stated, otherwise as the benchmark run is described, otherwise none.

    Raises:
        UsageError: a filter is unknown, or its value invalid.
    """
    requested: Sequence[str] | None = order.filters
    if requested is None and "filters" in settings.analysis.model_fields_set:
        requested = settings.analysis.filters
    if requested is None:
        described = meta.profile_content.analysis
        return parse_conditions(described.filters, described.filter_exprs, hosts)
    return parse_conditions(requested, [], hosts)


@contextmanager
def _scratch(run: UnfinishedRun) -> Iterator[Path]:
    """A folder in the run for temporary data until the samples are written."""
    folder = run.path / DECODED
    with storage_errors(folder):
        folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def resolve_version(version: str | None, meta: Meta, reported: Mapping[str, str | None]) -> str:
    """The measured version: as requested, otherwise as described, otherwise as the logs report.

    Args:
        version: as requested.
        reported: per host, the version in its logs.

    Raises:
        UsageError: nothing states it, or the logs report several.
    """
    chosen = version or meta.identifier
    if chosen is not None:
        return chosen
    hosts: dict[str, list[str]] = {}
    for name, item in reported.items():
        if item is not None:
            hosts.setdefault(item, []).append(name)
    hint = "give it with `--as 10.6.2`, or in the meta.json of a benchmark run"
    if len(hosts) > 1:
        versions = "; ".join(f"{host} on {listed(names)}" for host, names in hosts.items())
        raise UsageError(f"the hosts run different versions: {versions}", hint)
    if not hosts:
        raise UsageError("the version is stated neither in the logs nor in a description", hint)
    return next(iter(hosts))


def resolve_node(
    version: str | None, meta: Meta, summaries: Mapping[str, HostSummary]
) -> tuple[facts.MeasuredNode, list[str], list[str]]:
    """The measured node, and a sentence for every contradiction between the logs and the description.

    Returns:
        The node; then the sentences on differing labels, and those on other versions.
    """
    reported = {name: summary.line_counts.node_version for name, summary in summaries.items()}
    chosen = resolve_version(version, meta, reported)
    expected = meta.node_version or chosen
    hosts: dict[str, list[str]] = {}
    for name, item in reported.items():
        if item is not None:
            hosts.setdefault(item, []).append(name)
    notes, contradictions = [], []
    for item, names in hosts.items():
        wrong = next((label for label in (chosen, expected) if contradicts(label, item)), None)
        sentence = f"the logs of {listed(names)} are of version {item}, not {wrong or expected}"
        if wrong is not None:
            contradictions.append(sentence)
        elif item != expected:
            notes.append(sentence)
    if not hosts and contradicts(chosen, expected):
        contradictions.append(f"the description of the logs is of version {expected}, not {chosen}")
    versions: list[str | None] = [*hosts] or [meta.node_version]
    described = meta.package(PACKAGES[0]).commit
    accounting = [summary.line_counts for summary in summaries.values()]
    revision = next((counts.node_revision for counts in accounting if counts.node_revision), None)
    compiler = next((counts.compiler_version for counts in accounting if counts.compiler_version), None)
    node = facts.MeasuredNode(
        version=chosen,
        revision=revision if described == UNKNOWN else described,
        compiler=meta.node_ghc_version or compiler,
        logged_version=versions[0] if len(versions) == 1 else None,
    )
    return node, notes, contradictions


def _cluster_notes(
    order: ImportRequest, cluster: ClusterLogs, documents: Documents, analysis: AnalysisResult, excluded: Excluded
) -> list[str]:
    notes = _excluded(cluster.excluded, excluded) if cluster.excluded else []
    if cluster.left_out:
        notes.append(f"excluded, because they are not hosts of the network: {listed(list(cluster.left_out))}")
    notes += [
        f"{repeated_log.name} is a copy of {repeated_log.of} and was excluded" for repeated_log in cluster.repeated
    ]
    if documents.regions is not None:
        nowhere = [host.name for host in analysis.hosts if host.name not in documents.regions]
        if nowhere:
            notes.append(f"the topology does not list {listed(nowhere)}: their region is unknown")
        silent = sorted(documents.regions.keys() - {host.name for host in analysis.hosts} - set(order.exclude))
        if silent:
            notes.append(f"the topology lists hosts without logs: {listed(silent)}")
    return notes


def _excluded(hosts: Sequence[HostLogs], excluded: Excluded) -> list[str]:
    """The excluded hosts, and their share of the counts of lines and messages."""
    files = sum(len(host.files) for host in hosts)
    size = units.byte_size(sum(host.stored_bytes for host in hosts))
    lines = sum(summary.line_counts.raw_lines for summary in excluded.summaries.values())
    counted = f"{units.plural(files, 'log')} of {size}, {units.plural(lines, 'line')} counted and not used"
    notes = [f"excluded on request: {listed(sorted(host.name for host in hosts))} ({counted})"]
    return notes + [
        f"the lines of the excluded host {name} are not counted: {why}" for name, why in excluded.unreadable.items()
    ]


def _sources(cluster: ClusterLogs, documents: Documents, summaries: Mapping[str, HostSummary]) -> list[Source]:
    """Every file that was read, by its path in the folder; of others only the name."""
    sources = []
    for host in cluster.hosts:
        names = {str(file.path): file.name for file in host.files}
        for counted in summaries[host.name].line_counts.files:
            name, size = names[counted.path], counted.stored_bytes
            sources.append(Source(path=name, size_bytes=size, blake3=counted.blake3, place=host.name))
    for path in documents.files:
        inside = path.is_relative_to(cluster.documents)
        name = path.relative_to(cluster.documents).as_posix() if inside else path.name
        sources.append(Source(path=name, size_bytes=path.stat().st_size, blake3=hash_file(path)))
    return sources


def _imported(
    known: facts.Subjects, findings: gates.GateFindings, sources: list[Source], keep_events: bool, catalogue: Catalogue
) -> Imported:
    first_ns, last_ns = facts.log_range(known.line_counts)
    name = known.meta.profile or NAMELESS_PROFILE
    nothing = HostFacts(cpu_model=NOT_STATED, cores=0, memory_bytes=0, kernel=NOT_STATED, operating_system=NOT_STATED)
    return Imported(
        subject=Subject(
            system=catalogue.system,
            name=catalogue.title,
            version=known.node.version,
            revision=known.node.revision,
            build=f"ghc {known.node.compiler}" if known.node.compiler else None,
            logged_version=known.node.logged_version if known.node.logged_version != known.node.version else None,
        ),
        profile_name=name,
        profile=facts.profile(known, name),
        workload=facts.workload(known),
        conditions=facts.conditions(known),
        configuration=facts.configuration(known),
        counts=facts.counts(known),
        facts=facts.facts(known),
        gates=findings.gates,
        sources=sources,
        host=nothing,
        first_ns=first_ns,
        last_ns=last_ns,
        options={"genesis": asdict(known.genesis), "rules": asdict(known.rules), "keep_events": keep_events},
        catalogue=catalogue,
        incidents=findings.incidents,
        warnings=findings.warnings,
    )
