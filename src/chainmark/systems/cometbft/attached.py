"""CometBFT on an external network: loaded and observed; what cannot be observed is reported as unknown."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import polars as pl
from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, GateKind, GateStatus, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.lab.protocols import Execution, ExecutionRequest, ExistingNetwork
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.analyse import Sampled, Window, samples
from chainmark.systems.cometbft.attach import (
    AttachedNetwork,
    NodeStatus,
    check_pages,
    network_of,
    process_frame,
    reach,
    require_observable,
)
from chainmark.systems.cometbft.described import Described
from chainmark.systems.cometbft.gates import run_gates
from chainmark.systems.cometbft.ingest import (
    ChainReading,
    TransactionCounts,
    balance,
    collect,
    failure_reasons,
)
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.rpc import RpcClient
from chainmark.systems.cometbft.workload import LoadRequest, Measurement, measure

NOT_KNOWN = "not known from outside"
# Those of this machine's own samples that concern the measurement; the others would be mistaken for the nodes'.
_OF_THIS_MACHINE = ("machine_", "nodes_", "harness_")
_STEAL_SHARE = "machine_steal_share"
_MEMPOOLS = ("mempool_mean_transactions", "mempool_max_transactions")
# The part of a workload that does not depend on who started the network, such as the adapter's accounts.
_OF_THE_LOAD = ("load.", "application", "accounts.", "transaction.")
# Properties of a process that no metrics page has.
_NOT_ON_PAGES = (
    "start_up_s",
    "node_run_queue_share",
    "node_threads",
    "node_disk_read_bytes_per_s",
    "node_disk_written_bytes_per_s",
)


class AttachedCometBft(Described):
    """One external network.

    Raises:
        UsageError: an address is not a node's, the nodes are of several networks, or the profile requires too much.
        EnvironmentFailure: a node does not respond.
    """

    def __init__(self, profile: CometBFTProfile, attachment: ExistingNetwork) -> None:
        require_observable(profile, len(attachment.nodes))
        self._seen = reach(attachment.nodes)
        self._pages = check_pages(attachment.metrics, len(self._seen))
        self._validators = _validators(self._seen[0].place)
        # Nodes built from one release with any patch all report the release's version.
        version = attachment.label or self._seen[profile.load.targets[0]].version
        self._subject = Subject(system=self.name, name=self.title, version=version, is_version_unknown=True)

    def install(self, version: str) -> Subject:
        """The version that runs there; there is no other."""
        if version not in {"", self._subject.version}:
            raise UsageError(f"the network runs {self._subject.version}, and not `{version}`")
        return self._subject

    def installed(self) -> list[tuple[Subject, Path]]:
        """Nothing can be installed here."""
        return []

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """The load, and the network's own properties: they are not the profile's."""
        flat = super().workload(profile)
        load = {key: value for key, value in flat.items() if key.startswith(_OF_THE_LOAD)}
        return {**load, "network.attached": True, "network.validators": self._validators}

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Load the network, observe it, and turn the collected data into samples."""
        comet = cast(CometBFTProfile, profile)
        network = network_of(self._seen, self._pages, comet, order.seed, run.path)
        experiment_id = uuid.uuid5(uuid.NAMESPACE_URL, run.run_id).bytes
        measurement = measure(network, LoadRequest(comet, order.seed, experiment_id), run.raw, progress)
        network.silent_at_end = network.silent()
        # Neither the application nor whether it may fail accepted transactions can be observed.
        reading = ChainReading(experiment_id, has_results=True, by_hash=network.prepared is not None)
        events = collect(measurement, reading, progress)
        progress.stage("analysing")
        events.write(run)
        sampled = Sampled(processes=process_frame(measurement.scrape_files), pressure=measurement.pressure)
        window = Window.of_load(measurement.start_ns, comet.load)
        result = samples(events, sampled, window, {})
        accounting = balance(events, measurement, comet.load.offered_for_certain)
        return Execution(
            subject=self._subject,
            samples=_known(result, has_pages=bool(self._pages)),
            configuration=Configuration(),
            conditions=_conditions(self._seen),
            counts=accounting.counts,
            gates=[
                *_recorded_findings(
                    run_gates(comet, measurement, events, accounting, result),
                    network,
                    accounting,
                    measurement,
                    _own_pressure(result["second"], comet.gates.waited_share_max),
                ),
                *_unknown_gates(),
            ],
            facts=_facts(self._seen),
            incidents=measurement.incidents,
            warnings=[*_warnings(self._seen, accounting, measurement), *failure_reasons(events)],
        )


def _validators(place: str) -> int:
    with RpcClient(place) as client:
        return int(client.call("validators", per_page=1)["total"])


def _known(data_frames: Mapping[str, pl.DataFrame], *, has_pages: bool) -> dict[str, pl.DataFrame]:
    """The samples that can be observed from outside: anything else has no column, rather than an empty one."""
    retained = dict(data_frames)
    if not has_pages:
        del retained["host_second"], retained["host"]
        retained["second"] = retained["second"].drop(_MEMPOOLS)
    foreign = [
        name for name in retained["second"].columns if name.startswith(_OF_THIS_MACHINE) and name != _STEAL_SHARE
    ]
    retained["second"] = retained["second"].drop(foreign)
    return {
        population: frame.drop([name for name in _NOT_ON_PAGES if name in frame.columns])
        for population, frame in retained.items()
    }


def _recorded_findings(
    gates: Sequence[Gate],
    network: AttachedNetwork,
    transaction_counts: TransactionCounts,
    measurement: Measurement,
    pressure: Gate,
) -> list[Gate]:
    """The gates of a run, with different checks where only outside observation is possible."""
    ours_left = transaction_counts.counts["transactions"].get("pending", 0) + transaction_counts.unsure
    replaced = {
        "nodes_alive": _alive(network.silent_at_end),
        "nodes_steady": None if network.pages() else _unknown("nodes_steady", "no node restarted", _RESTARTS),
        "drained": None if measurement.drained or ours_left else _drained(measurement),
        "pressure": pressure,
    }
    return [replaced.get(gate.id) or gate for gate in gates]


_RESTARTS = "the nodes' metrics pages show restarts: give the pages with `--metrics`"


def _alive(silent: Sequence[str]) -> Gate:
    return Gate(
        id="nodes_alive",
        label="every node responded until the end",
        status=GateStatus.FAIL if silent else GateStatus.PASS,
        measured=f"{', '.join(silent)} did not respond" if silent else "all responded",
        limit="all respond",
        kind=GateKind.SUBJECT,
        conclusive=bool(silent),
    )


def _drained(measurement: Measurement) -> Gate:
    return Gate(
        id="drained",
        label="no transactions of this run are left in the mempools",
        status=GateStatus.PASS,
        measured=f"{units.count(measurement.waiting.fullest)} left, none of this run",
        limit="0 of this run left",
    )


def _own_pressure(seconds: pl.DataFrame, limit: float) -> Gate:
    """As far as it concerns our own processes."""
    columns = {"generator and observer": "generator_run_queue_share", "stolen": _STEAL_SHARE}
    shares = {
        source: value for source, name in columns.items() if isinstance(value := seconds[name].mean(), int | float)
    }
    text = ", ".join(f"{source} {units.share_beside(limit, float(share))}" for source, share in shares.items())
    worst = max(shares.values(), default=None)
    status = GateStatus.UNKNOWN if worst is None else GateStatus.PASS if worst <= limit else GateStatus.FAIL
    return Gate(
        id="pressure",
        label="waits for a processor, generator and observer",
        status=status,
        measured=f"{text} of the time" if shares else "not reported by this kernel",
        limit=f"≤ {units.plain_percent(limit, decimals=1)}",
    )


def _unknown_gates() -> list[Gate]:
    return [
        _unknown("nodes_pressure", "waits for a processor, nodes", "their processes are on other machines"),
        _unknown(
            "clocks",
            "the nodes' clocks agree",
            "block headers have the nodes' times, which cannot be compared with this machine's clock",
        ),
        _unknown("links", "the links are as intended", "packets between the nodes are not observed"),
        _unknown("configuration", "the configuration is known", "the nodes' files are not accessible"),
    ]


def _unknown(gate_id: str, label: str, why: str) -> Gate:
    return Gate(id=gate_id, label=label, status=GateStatus.UNKNOWN, measured=NOT_KNOWN, limit="known", detail=why)


def _conditions(seen: Sequence[NodeStatus]) -> dict[str, str]:
    """The versions that the nodes run, if there are several."""
    versions = Counter(node_status.version for node_status in seen)
    return {"versions": ", ".join(f"{count} × {name}" for name, count in versions.items())} if len(versions) > 1 else {}


def _facts(seen: Sequence[NodeStatus]) -> list[Fact]:
    nodes = [
        Fact(label=f"node{index}", value=f"{node_status.place}, {node_status.moniker}, {node_status.version}")
        for index, node_status in enumerate(seen)
    ]
    return [Fact(label="network", value=f"{seen[0].network}, attached"), *nodes]


def _warnings(seen: Sequence[NodeStatus], transaction_counts: TransactionCounts, measurement: Measurement) -> list[str]:
    results = []
    behind = [node_status.place for node_status in seen if node_status.catching_up]
    if behind:
        results.append(f"{' and '.join(behind)} had not caught up with the network when the load began")
    chain = transaction_counts.counts.get("chain", {})
    others = chain.get("of other experiments", 0) + chain.get("not a payload", 0)
    if others:
        results.append(
            f"the network had other load, too: {units.count(others)} transactions in its blocks are not of this run"
        )
    if measurement.scrapes_missed:
        results.append(f"{units.count(measurement.scrapes_missed)} metrics pages did not arrive in time")
    return results
