"""What an import takes from the documents, the request and the logs: version, filters, round trips, and its notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainmark.core.errors import UsageError
from chainmark.core.manifest import HostFacts
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.accounting import HostSummary, LineCounts
from chainmark.systems.cardano.decoding import Excluded
from chainmark.systems.cardano.documents import Meta
from chainmark.systems.cardano.facts import MeasuredNode
from chainmark.systems.cardano.filters import FilterCondition
from chainmark.systems.cardano.gates import GateFindings
from chainmark.systems.cardano.ingest import (
    Documents,
    IngestSettings,
    _cluster_notes,
    _imported,
    read_documents,
    read_settings,
    resolve_conditions,
    resolve_node,
    resolve_version,
)
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs
from chainmark.systems.cardano.network import KnownNetwork
from chainmark.systems.cardano.topology import ListedHost
from chainmark.systems.cardano.trips import MeasuredTrip

from tests.unit.systems.cardano.test_run_facts import subjects
from tests.unit.systems.cardano.traces import GENESIS

HINT = "give it with `--as 10.6.2`, or in the meta.json of a benchmark run"
NO_SETTINGS = IngestSettings()


def order(**options: Any) -> ImportRequest:
    return ImportRequest(Path("logs"), **options)


def described(ident: str | None = None, *, commit: str = "unknown", version: str = "unknown", **more: Any) -> Meta:
    """A description of a run of the node; those of the other packages have other commits."""
    packages = {"cardano-node": {"version": version, "commit": commit}, "ouroboros-consensus": {"commit": "consensus"}}
    return Meta.model_validate({"ident": ident, "manifest": packages, **more})


def summary(version: str | None, revision: str | None = None, compiler: str | None = None) -> HostSummary:
    """A host whose logs report this about its node."""
    reported: dict[str, Any] = {"node_version": version, "node_revision": revision, "compiler_version": compiler}
    fields: dict[str, Any] = {"line_counts": LineCounts.model_construct(**reported)}
    return HostSummary.model_construct(**fields)


def test_the_requested_version_precedes_the_described_one_and_that_of_the_logs() -> None:
    logs = {"a": None, "b": "10.5.3", "c": "10.5.3"}
    assert resolve_version("mine", described("10.5.4"), logs) == "mine"
    assert resolve_version(None, described("10.5.4"), logs) == "10.5.4"
    assert resolve_version(None, Meta(), logs) == "10.5.3"


def test_hosts_with_different_versions_are_listed_by_version() -> None:
    """The user must know which hosts to exclude, or how to state one version."""
    with pytest.raises(UsageError) as refused:
        resolve_version(None, Meta(), {"a": "10.5.4", "b": "10.6.2", "c": "10.5.4", "d": None})
    assert refused.value.message == "the hosts run different versions: 10.5.4 on a and c; 10.6.2 on b"
    assert refused.value.hint == HINT


def test_a_missing_version_is_an_error_with_two_places_to_state_it() -> None:
    with pytest.raises(UsageError) as refused:
        resolve_version(None, Meta(), {"a": None})
    assert refused.value.message == "the version is stated neither in the logs nor in a description"
    assert refused.value.hint == HINT


def test_the_node_is_described_by_its_logs_if_there_is_no_description() -> None:
    """Revision and compiler are those of the first host whose logs report them."""
    summaries = {"a": summary("10.5.4"), "b": summary("10.5.4", "cafe", "9.6.7"), "c": summary(None, "beef", "9.2.8")}
    node, notes, contradictions = resolve_node(None, Meta(), summaries)
    assert node == MeasuredNode("10.5.4", "cafe", "9.6.7", logged_version="10.5.4")
    assert (notes, contradictions) == ([], [])


def test_the_description_of_a_node_precedes_its_logs() -> None:
    """Only the package of the node has the node's revision."""
    meta = described(commit="feed", version="10.5.4", node_ghc_version="9.6.5")
    node, _, _ = resolve_node(None, meta, {"a": summary("10.5.4", "cafe", "9.6.7")})
    assert node == MeasuredNode("10.5.4", "feed", "9.6.5", logged_version="10.5.4")
    silent, notes, contradictions = resolve_node("10.5.4", meta, {"a": summary(None)})
    assert silent == MeasuredNode("10.5.4", "feed", "9.6.5", logged_version="10.5.4")
    assert (notes, contradictions) == ([], [])


def test_logs_of_two_versions_have_no_version_in_common() -> None:
    """Otherwise a run of two versions would be taken for one of the first host's version."""
    node, _, contradictions = resolve_node("10.5.4", Meta(), {"a": summary("10.5.4"), "b": summary("10.6.2")})
    assert node.logged_version is None
    assert contradictions == ["the logs of b are of version 10.6.2, not 10.5.4"]


def test_a_description_of_another_version_than_requested_is_a_contradiction() -> None:
    """Logs without a version cannot contradict the label, but their description can."""
    _, notes, contradictions = resolve_node("10.6.2", described(version="10.5.4"), {"a": summary(None)})
    assert contradictions == ["the description of the logs is of version 10.5.4, not 10.6.2"]
    assert notes == []


def conditions(meta: Meta, *settings: str, filters: tuple[str, ...] | None = None) -> list[FilterCondition]:
    """The filters of an import of 7 hosts."""
    return resolve_conditions(order(filters=filters), read_settings(settings), meta, 7)


def test_requested_filters_precede_stated_ones_and_those_precede_the_description() -> None:
    by_epoch, by_slot = "analysis.filters=['EpochGEq=2']", ("SlotGEq=5",)
    meta = Meta.model_validate({"profile_content": {"analysis": {"filters": ["size-full", "BMinimumAdoptions"]}}})
    # All hosts except the forger must adopt a block.
    assert conditions(meta) == [FilterCondition("BFullnessGEq", 0.9), FilterCondition("BMinimumAdoptions", 6)]
    assert conditions(meta, by_epoch) == [FilterCondition("EpochGEq", 2)]
    assert conditions(meta, "analysis.filters=[]") == []
    assert conditions(meta, by_epoch, filters=by_slot) == [FilterCondition("SlotGEq", 5)]
    assert conditions(meta, by_epoch, filters=()) == []
    assert conditions(meta, "analysis.count_switches=false") == conditions(meta)


def folder_of(folder: Path, *, topology: bool = True, pings: str | None = None) -> ClusterLogs:
    """Two hosts in two regions, and documents next to their logs."""
    if topology:
        nodes: list[dict[str, Any]] = [
            {"name": f"node-{n}", "region": ("north", "south")[n], "producers": []} for n in (0, 1)
        ]
        (folder / "topology.json").write_text(json.dumps({"coreNodes": nodes}), encoding="utf-8")
    if pings is not None:
        (folder / "latency.csv").write_text(pings, encoding="utf-8")
    return ClusterLogs(folder, (HostLogs("node-0", ()), HostLogs("node-1", ())))


def documents(cluster: ClusterLogs, *settings: str) -> Documents:
    return read_documents(order(), read_settings(("genesis.network=preview", *settings)), cluster)


PINGS = "source,dest,time\nnode-0,node-1,80\nnode-1,node-0,80\n"
STATED = "network.rtt_s.north-south=0.07"


def test_stated_round_trips_are_added_to_pinged_ones(tmp_path: Path) -> None:
    """The files that were read are sources of the run."""
    cluster = folder_of(tmp_path, pings=PINGS)
    read = documents(cluster, STATED)
    assert read.network is not None
    assert read.regions == {"node-0": "north", "node-1": "south"}
    assert read.network.round_trips == [
        MeasuredTrip(a="north", b="south", mean_s=0.07),
        MeasuredTrip(a="north", b="south", mean_s=0.08),
    ]
    assert read.files == [tmp_path / "topology.json", tmp_path / "latency.csv"]
    assert read.notes == []


def test_unreadable_pings_leave_the_round_trips_unknown(tmp_path: Path) -> None:
    """They are not needed to measure, so that their fault is a note and not an error."""
    read = documents(folder_of(tmp_path, pings="source,dest,time\nx,y,80\n"))
    assert read.network is not None
    assert read.network.round_trips == []
    path = tmp_path / "latency.csv"
    assert read.notes == [f"round trips are unknown: {path} contains no pings between hosts of the topology"]


def test_without_a_topology_nothing_is_known_of_the_network(tmp_path: Path) -> None:
    """Pings between hosts without a region are not read, so they are not a source of the run."""
    read = documents(folder_of(tmp_path, topology=False, pings=PINGS))
    assert read.network is None
    assert (read.regions, read.files, read.notes) == (None, [], [])


def test_stated_round_trips_need_a_topology(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        documents(folder_of(tmp_path, topology=False), STATED)
    assert refused.value.message == "round trips are stated for a cluster without a topology"
    assert refused.value.hint == "give it with `--topology FILE`"


def notes_on(cluster: ClusterLogs, regions: Sequence[str] = (), *, exclude: tuple[str, ...] = ()) -> list[str]:
    """The notes on a cluster whose topology lists some hosts; without any there is no topology."""
    listed = [ListedHost(name=name, region="north", producers=[]) for name in regions]
    network = KnownNetwork(hosts=listed) if listed else None
    analysis: Any = SimpleNamespace(hosts=[SimpleNamespace(name=host.name) for host in cluster.hosts])
    known = Documents(GENESIS, Meta(), network, [], [])
    return _cluster_notes(order(exclude=exclude), cluster, known, analysis, Excluded())


def test_a_note_lists_folders_that_are_not_hosts_of_the_network() -> None:
    """Their logs are in no figure, and no gate reports them."""
    cluster = ClusterLogs(Path(), (HostLogs("node-0", ()),), left_out=("explorer", "tracer"))
    assert notes_on(cluster) == ["excluded, because they are not hosts of the network: explorer and tracer"]


def test_notes_list_the_differences_between_topology_and_logs() -> None:
    """A host without a region is missing from all metrics of regions; an unlogged host from all metrics."""
    cluster = ClusterLogs(Path(), tuple(HostLogs(f"node-{n}", ()) for n in range(3)))
    assert notes_on(cluster) == []
    assert notes_on(cluster, ["node-0", "node-1", "node-2"]) == []
    assert notes_on(cluster, ["node-0"]) == ["the topology does not list node-1 and node-2: their region is unknown"]
    everything = ["node-5", "node-4", "node-2", "node-1", "node-0"]
    assert notes_on(cluster, everything) == ["the topology lists hosts without logs: node-4 and node-5"]
    assert notes_on(cluster, everything, exclude=("node-5",)) == ["the topology lists hosts without logs: node-4"]


def imported(node: MeasuredNode, *, keep_events: bool = False) -> Imported:
    return _imported(subjects(node=node), GateFindings(), [], keep_events, SYSTEM.catalogue())


def test_the_subject_of_a_run_is_the_measured_node() -> None:
    """The version in the logs is stated only if the label differs."""
    subject = imported(MeasuredNode("mine", "cafe", "9.6.7", logged_version="10.5.4")).subject
    assert (subject.system, subject.version, subject.revision) == ("cardano", "mine", "cafe")
    assert (subject.build, subject.logged_version) == ("ghc 9.6.7", "10.5.4")
    plain = imported(MeasuredNode("10.5.4", None, None, logged_version="10.5.4")).subject
    assert (plain.revision, plain.build, plain.logged_version) == (None, None, None)


def test_the_machines_of_a_cluster_that_others_ran_are_unknown() -> None:
    """Zero means unknown. Any other number would be compared with that of other runs."""
    assert imported(MeasuredNode("10.5.4", None, None)).host == HostFacts(
        cpu_model="not stated", cores=0, memory_bytes=0, kernel="not stated", operating_system="not stated"
    )


@pytest.mark.parametrize("keep_events", [False, True])
def test_the_name_of_a_run_depends_on_the_genesis_the_rules_and_the_kept_events(keep_events: bool) -> None:
    """Imports of the same logs that differ in any of these are different runs."""
    options = imported(MeasuredNode("10.5.4", None, None), keep_events=keep_events).options
    assert options.pop("keep_events") is keep_events
    assert options.pop("rules") == {"published": False, "count_switches": True}
    genesis: Any = options.pop("genesis")
    assert genesis == vars(GENESIS)
    assert options == {}
