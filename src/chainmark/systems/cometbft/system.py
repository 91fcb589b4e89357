"""CometBFT as a system under test."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import psutil
from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.build import DOCUMENT as BUILD_DOCUMENT
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Grouping, Incident, Subject
from chainmark.core.profiles import DOCUMENT, EVENTS, KINDS
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.core.wording import enumerated
from chainmark.lab.protocols import (
    Execution,
    ExecutionRequest,
    ExistingNetwork,
    Imported,
    ImportRequest,
    LaunchableSystem,
)
from chainmark.lab.schedules import Standing, SweepLoad, SweepPlan
from chainmark.lab.sweeping import SweepTest
from chainmark.network.clocks import clock_facts, clock_gate
from chainmark.network.emulation import EmulatedLinks
from chainmark.network.host import PressureMark
from chainmark.network.pprof import PROFILE_SCHEMA, read_profiles, record_of
from chainmark.network.round_trips import ROUND_TRIP_SCHEMA, round_trip_frame, round_trip_gate
from chainmark.store.files import compress_file, write_bytes
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft import extensions, lifecycle, nodes, programs, qa, sweep
from chainmark.systems.cometbft.analyse import (
    NS,
    SAMPLED_SCHEMAS,
    Sampled,
    Window,
    at_reference_speed,
    committed_until,
    samples,
    speed_is_known,
)
from chainmark.systems.cometbft.applications.adapter import Adapter
from chainmark.systems.cometbft.attached import AttachedCometBft
from chainmark.systems.cometbft.connections import disconnection_warnings
from chainmark.systems.cometbft.described import Described
from chainmark.systems.cometbft.external import application_of
from chainmark.systems.cometbft.gates import capacity_gate, failed_gate, run_gates, start_gate, start_pressure_gate
from chainmark.systems.cometbft.imports import reader_of
from chainmark.systems.cometbft.ingest import (
    ChainReading,
    Events,
    balance,
    collect,
    failure_reasons,
)
from chainmark.systems.cometbft.launch import CometNetwork, NetworkFailure, running_network
from chainmark.systems.cometbft.network_plan import NetworkPlan
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.published import published_version
from chainmark.systems.cometbft.raw_csv import raw_version, recognises_raw
from chainmark.systems.cometbft.saturation.results import VersionRuns
from chainmark.systems.cometbft.shape import members_of, require_capacity
from chainmark.systems.cometbft.workload import LoadRequest, Measurement, measure
from chainmark.trails.trail import FollowRequest

if TYPE_CHECKING:
    from chainmark.compare.qa_scenarios import SecondRule
    from chainmark.compare.sides import SelectedRuns
    from chainmark.core.catalogue import Catalogue
    from chainmark.core.comparison import Followed
    from chainmark.report.document import Document
    from chainmark.systems.cometbft.saturation.document import SaturationReport

# A transaction is in the block store, the state's events, the consensus log and the mempool's log of each node.
COPIES_PER_NODE = 4
# Empty databases and logs of a node, measured: 20 MiB; plus what the run itself stores.
BASE_BYTES = 64 << 20
# 99 % of the packets between nodes must not exceed their emulated delay by more than this; otherwise it is reported.
ADDED_DELAY_MAX_S = 0.005


class CometBft(Described):
    """The system `cometbft`: networks of CometBFT nodes on this machine or on others, found by its folder."""

    profile_kinds: Sequence[str] = tuple(KINDS)
    runs_on_hosts = True

    def qa_plans(self) -> list[str]:
        """The plans of ``qa_plans``."""
        return list(qa.PLANS)

    def qa_plan(self, name: str) -> Mapping[str, object]:
        """One of them."""
        return qa.plan(name)

    def qa_plots(self) -> Sequence[Mapping[str, object]]:
        """The published reports' plots."""
        return qa.plots()

    def lacking(self, need: str, versions: Sequence[str]) -> str:
        """Whether this machine has namespaces and both versions their applications."""
        return qa.lacking(need, versions)

    def commit(self, version: str) -> str:
        """As the module proxy reports."""
        return qa.commit(version)

    def expected_seconds(self, profile: BaseModel) -> float:
        """The load and its environment."""
        return qa.expected_seconds(cast(CometBFTProfile, profile))

    def install(self, version: str) -> Subject:
        """Build or find the node's binary."""
        return nodes.install(version)

    def install_for(self, version: str, profile: BaseModel) -> Subject:
        """Build or find the program of the profile's application."""
        return programs.install(version, cast(CometBFTProfile, profile).application.adapter)

    def pinned(self, profile: BaseModel) -> CometBFTProfile:
        """The same profile with the installed names of the other versions of its network."""
        comet = cast(CometBFTProfile, profile)
        adapter = comet.application.adapter
        return comet.with_versions(
            {version: programs.install(version, adapter).version for version in comet.other_versions}
        )

    def installed(self) -> list[tuple[Subject, Path]]:
        """The cached binaries."""
        return programs.installed()

    def published_versions(self, also: Sequence[str] = ()) -> list[str]:
        """Those that the module proxy lists, plus the named ones."""
        return nodes.published(also)

    def execute(self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress) -> Execution:
        """Start a network, load it, drain it, stop it, and turn the collected data into samples."""
        return self.measure(profile, order, run, progress)(progress)

    def measure(
        self, profile: BaseModel, order: ExecutionRequest, run: UnfinishedRun, progress: Progress
    ) -> Callable[[Progress], Execution]:
        """Start a network, load it, drain it, and stop it.

        A network that failed so that nothing could be measured has failed gates and no samples.
        """
        comet = cast(CometBFTProfile, profile)
        if order.machines is not None and order.keep_homes:
            raise UsageError("homes on other machines are not kept", "omit `--keep-homes` or `--on`")
        if order.machines is None:
            require_capacity(comet, len(os.sched_getaffinity(0)), psutil.virtual_memory().available)
        subject = programs.install(order.version, comet.application.adapter)
        plan = _plan(comet, order, run)
        experiment_id = uuid.uuid5(uuid.NAMESPACE_URL, run.run_id).bytes
        began = PressureMark.now()
        try:
            with running_network(plan, progress) as network:
                order.quiet()
                load_order = LoadRequest(comet, order.seed, experiment_id, network.links, order.profiles)
                measurement = measure(network, load_order, run.raw, progress)
                events = collect(measurement, _chain_reading(network, experiment_id), progress)
        except NetworkFailure as failure:
            _keep_raw(failure.network, run, order.keep_homes)
            _keep_build(order.version, comet.application.adapter, run)
            failed = replace(_failed(failure, subject, comet, order, began.share()), profiles=list(order.profiles))
            return lambda _: failed
        return partial(_analysed, network, measurement, events, subject=subject, comet=comet, order=order, run=run)

    def attached(self, profile: BaseModel, attachment: ExistingNetwork) -> LaunchableSystem:
        """An external network."""
        return AttachedCometBft(cast(CometBFTProfile, profile), attachment)

    def parts(self, order: ImportRequest) -> list[str]:
        """The runs of a source, if it holds several."""
        return reader_of(order).parts(order)

    def import_options(self, order: ImportRequest) -> frozenset[str]:
        """Those of the reader of this source."""
        return reader_of(order).options

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Measurements of an external network: a Prometheus server's, or files that :mod:`.imports` recognises."""
        return reader_of(order).ingest(order, run, progress)

    def followed(self, run: SealedRun) -> Sequence[str]:
        """Transactions, if the run has each of them."""
        return [trail.id for trail in lifecycle.trails(run, self.catalogue())]

    def follow(self, run: SealedRun, order: FollowRequest) -> Document:
        """The trace of one transaction, or the slowest ones."""
        from chainmark.trails.following import followed

        return followed(
            run, order, trails=lifecycle.trails(run, self.catalogue()), events_of=lifecycle.transaction_lifecycles
        )

    def tails(self, sides: Sequence[SelectedRuns], catalogue: Catalogue) -> Followed | None:
        """The transactions in the tails of a comparison, and the traces of some of them."""
        from chainmark.trails.tails import tails_of

        return tails_of(sides, catalogue, lifecycle.transaction_lifecycles)

    def sweep_plan(self, profile: BaseModel) -> SweepPlan:
        """The loads of a profile's section `saturation`."""
        return sweep.plan_of(cast(CometBFTProfile, profile))

    def load_of(self, plan: SweepPlan, per_s: int) -> SweepLoad:
        """This number of transactions per second over the search's connections."""
        return sweep.load_of(plan.step, per_s // plan.step)

    def at_load(self, profile: BaseModel, load: SweepLoad) -> CometBFTProfile:
        """The same profile at one load."""
        content = profile.model_dump(mode="json")
        connections, rate = load.key
        content["load"] |= {"connections": connections, "rate": rate}
        return self.profile(content)

    def standings(self, runs: Sequence[SealedRun], tolerance: float) -> Sequence[Mapping[SweepLoad, Standing]]:
        """By the final number of commits, and by the number of commits within the window."""
        from chainmark.systems.cometbft.saturation.evaluation import cells_of, standings

        return standings(cells_of(map(sweep.cell_of, runs), tolerance), sweep.load_of)

    def swept_version(self, label: str, runs: Sequence[SealedRun]) -> VersionRuns:
        """All runs of one version."""
        return sweep.version_of(label, runs)

    def saturation(self, test: SweepTest, versions: Sequence[VersionRuns]) -> SaturationReport:
        """The saturation of every version, and comparisons at equal loads."""
        from chainmark.systems.cometbft.saturation.evaluation import saturation_report

        noted = replace(test, notes=[*test.notes, sweep.FRESH_NETWORKS]) if test.experiment else test
        return saturation_report(noted, versions, sweep.metrics_of(self.catalogue()))

    def second_rule(self) -> SecondRule:
        """That of the published reports: a difference over 10 % is a regression."""
        from chainmark.systems.cometbft.ten_percent_rule.rule import TenPerCent

        return TenPerCent()

    def published_sweep(self, path: Path, label: str | None) -> VersionRuns:
        """A published table, the report tool's text, or its `raw.csv`."""
        return raw_version(path, label) if recognises_raw(path) else published_version(path, label)


def _analysed(
    network: CometNetwork,
    measurement: Measurement,
    events: Events,
    progress: Progress,
    *,
    subject: Subject,
    comet: CometBFTProfile,
    order: ExecutionRequest,
    run: UnfinishedRun,
) -> Execution:
    """The collected data of a stopped network, as samples."""
    progress.stage("analysing")
    _keep_raw(network, run, order.keep_homes)
    _keep_build(order.version, comet.application.adapter, run)
    events.write(run)
    if network.round_trips:
        run.write_events("round_trips", round_trip_frame(network.round_trips), ROUND_TRIP_SCHEMA)
    sampled = _sampled(measurement)
    for name, schema in SAMPLED_SCHEMAS.items():
        if (frame := getattr(sampled, name)) is not None:
            run.write_events(name, frame, schema)
    window = Window.of_load(measurement.start_ns, comet.load)
    result = samples(events, sampled, window, _start_up(network))
    if order.profiles:
        profiles = at_reference_speed(read_profiles(run.raw / "profiles", order.profiles), sampled.processes, window)
        begin, end = committed_until(events.blocks).at(np.array([window.start_ns, window.end_ns]))
        _keep_profiles(order.profiles, profiles, measurement.profiles_missing, float(end - begin), run)
    accounting = balance(events, measurement, comet.load.offered_for_certain)
    return Execution(
        subject=subject,
        samples=result,
        configuration=network.configuration,
        conditions=conditions(network) | _run_conditions(comet, order, network) | _cpu_time(sampled),
        counts=accounting.counts | _dropped_peers(measurement) | _packets(measurement),
        gates=[
            start_gate(network.start_failures),
            *run_gates(comet, measurement, events, accounting, result),
            *([round_trip_gate(network.round_trips)] if network.round_trips else []),
            *([clock_gate(network.clocks)] if network.clocks else []),
            *capacity_gate(comet, _cores(network)),
        ],
        facts=[*network.host_facts(), *clock_facts(network.clocks)],
        incidents=[*network.start_failures, *measurement.incidents],
        warnings=[*_warnings(network, measurement, comet), *failure_reasons(events)],
        groups=zones(network.links),
        measurement_errors=latency_errors(network),
        profiles=list(order.profiles),
    )


def _chain_reading(network: CometNetwork, experiment_id: bytes) -> ChainReading:
    """CometBFT's own application never fails an accepted transaction, so it need not be queried."""
    own = network.external is None and network.adapter is None
    return ChainReading(experiment_id, has_results=not own, by_hash=network.prepared is not None)


def _keep_build(version: str, adapter: Adapter | None, run: UnfinishedRun) -> None:
    """Store the subject's build facts and uncommitted changes."""
    run.write_document(BUILD_DOCUMENT, programs.build_of(version, adapter))
    if (changes := programs.changes_of(version, adapter)) is not None:
        write_bytes(run.raw / "build" / changes.name, changes.read_bytes())


def _plan(profile: CometBFTProfile, order: ExecutionRequest, run: UnfinishedRun) -> NetworkPlan:
    """The network to make, with everything it needs installed."""
    size_bytes = profile.application.vote_extension_size_bytes
    application = None if size_bytes is None else extensions.install(order.version, size_bytes)
    external = application_of(profile.application.command)
    adapter = profile.application.adapter
    _require_space(run.path, profile)
    versions = [order.version, *profile.other_versions]
    for version in profile.other_versions:
        programs.install(version, adapter)
    return NetworkPlan(
        version=order.version,
        lane=order.lane,
        machines=order.machines,
        binaries={version: programs.binary_path(version, adapter) for version in versions},
        profile=profile,
        folder=run.path / "homes",
        links_folder=run.raw / "links",
        seed=order.seed,
        application=application,
        external=external,
        with_pprof=bool(order.profiles),
        adapter=adapter,
    )


def _keep_profiles(
    kinds: Sequence[str], profiles: pl.DataFrame, missing: list[str], work: float, run: UnfinishedRun
) -> None:
    """The profiles' stacks, and the network's activity while they were recorded."""
    run.write_events(EVENTS, profiles, PROFILE_SCHEMA)
    record = record_of(
        kinds,
        profiles,
        missing,
        work=work,
        work_label="transaction",
        cost_metric="node_cpu_per_transaction_s",
    )
    run.write_document(DOCUMENT, record)


def _failed(
    failure: NetworkFailure, subject: Subject, profile: CometBFTProfile, order: ExecutionRequest, pressure: float | None
) -> Execution:
    """The facts about a network with which nothing could be measured."""
    network = failure.network
    return Execution(
        subject=subject,
        samples={},
        configuration=network.configuration,
        conditions=conditions(network) | _run_conditions(profile, order, network),
        counts={},
        gates=[
            failed_gate(failure),
            start_pressure_gate(pressure, profile),
            *capacity_gate(profile, _cores(network)),
        ],
        incidents=[*network.start_failures, Incident(time_ns=time.time_ns(), what=failure.message)],
        warnings=[line.strip() for line in (failure.hint or "").splitlines()],
    )


def _cores(network: CometNetwork) -> int:
    """Of all machines that run its nodes."""
    return sum(network.host_cores) or len(os.sched_getaffinity(0))


def conditions(network: CometNetwork) -> dict[str, str]:
    """The facts by the catalogue's condition IDs; if nodes differ, every value."""
    config = network.configuration.effective["config.toml"]
    genesis = network.configuration.effective["genesis.json"]
    pbts_height = str(genesis.get("consensus_params.feature.pbts_enable_height", "0"))
    return {
        "block_time": "BFT time" if pbts_height == "0" else f"proposer-based from height {pbts_height}",
        "application": str(config.get("proxy_app")),
        "database": " and ".join(network.databases),
    }


def zones(links: EmulatedLinks | None) -> dict[str, Grouping]:
    """The zone of every node, if there are zones: a node in a remote one is not slow because of that."""
    of = links.plan.zone_of if links is not None else None
    return {"host": Grouping(label="zone", of=dict(of))} if of else {}


def latency_errors(network: CometNetwork) -> dict[str, float]:
    """The greatest errors of latencies whose ends are read from clocks of different machines, s, by metric."""
    header_s = network.header_error_s()
    errors = {
        "tx_latency_s": network.latency_error_s(),
        "tx_latency_header_s": header_s,
        "tx_latency_next_header_s": header_s,
    }
    return {metric: error_s for metric, error_s in errors.items() if error_s}


def _run_conditions(profile: CometBFTProfile, order: ExecutionRequest, network: CometNetwork) -> dict[str, str]:
    """Conditions that are not in the nodes' configuration."""
    application = (
        {}
        if (extending_application := network.application or network.external or network.adapter) is None
        else {"application": str(extending_application)}
    )
    machines = {"machines": _machines(network.host_cores)} if network.host_cores else {}
    return {**application, **machines, **_versions(profile, order), "emulation": _emulation(profile, network)}


def _machines(cores: Sequence[int]) -> str:
    """The machines of the nodes: "2 machines of 2 cores and 1 machine of 4 cores"."""
    kinds = sorted(Counter(cores).items())
    return enumerated([f"{units.plural(count, 'machine')} of {units.plural(each, 'core')}" for each, count in kinds])


def _cpu_time(sampled: Sampled) -> dict[str, str]:
    return {"cpu_time": "corrected for the speed of the processors"} if speed_is_known(sampled.processes) else {}


def _versions(profile: CometBFTProfile, order: ExecutionRequest) -> dict[str, str]:
    """The number of nodes per version, if there are several; the subject's first."""
    if not profile.network.other_version:
        return {}
    running = [member.version for member in members_of(profile, order.version, order.seed) if member.starts]
    result = {version: running.count(version) for version in (order.version, *sorted(set(running) - {order.version}))}
    return {"versions": ", ".join(f"{count} × {version}" for version, count in result.items())}


def _require_space(folder: Path, profile: CometBFTProfile) -> None:
    load = profile.load
    offered_bytes = load.offered * load.size_bytes
    network = profile.network
    homes = network.nodes + network.seeds + profile.rotating.joiners
    needed_bytes = homes * (COPIES_PER_NODE * offered_bytes + BASE_BYTES)
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise EnvironmentFailure(
            f"the disk is too full: the run may need {units.byte_size(needed_bytes)} below {folder}, "
            f"but {units.byte_size(free_bytes)} are free",
            "free some space, or store runs elsewhere with `--store DIR`",
        )


def _start_up(network: CometNetwork) -> dict[str, float]:
    """Seconds from each node's start until it was healthy."""
    return {
        node.name: (node.healthy_ns - node.process.started_ns) / NS
        for node in network.nodes
        if node.healthy_ns is not None
    }


def _keep_raw(network: CometNetwork, run: UnfinishedRun, keep_homes: bool) -> None:
    """Store every node's log and configuration; its home only on request."""
    # With its accounts, a genesis is as large as all else; it is the same on all nodes.
    has_accounts = network.prepared is not None
    if has_accounts:
        compress_file(
            network.members[0].home / "config" / "genesis.json", run.raw / "configuration" / "genesis.json.zst"
        )
    for node in network.started:
        compress_file(node.home / "node.log", run.raw / "logs" / f"{node.name}.log.zst")
        if node.beside is not None:
            compress_file(node.beside.log_path, run.raw / "logs" / f"{node.name}.application.log.zst")
        for name in ("config.toml", *([] if has_accounts else ["genesis.json"])):
            target = run.raw / "configuration" / node.name / name
            with storage_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(node.home / "config" / name, target)
    if not keep_homes:
        shutil.rmtree(run.path / "homes")


def _sampled(measurement: Measurement) -> Sampled:
    disturber, rotation = measurement.disturber, measurement.rotation
    return Sampled(
        processes=measurement.processes,
        pressure=measurement.pressure,
        perturbations=disturber.frame() if disturber else None,
        joiners=rotation.frame() if rotation else None,
        heights=rotation.heights() if rotation else None,
    )


def _link_warnings(measurement: Measurement) -> list[str]:
    stats = measurement.links
    if stats is None:
        return []
    results = []
    if stats.error_p99_s is not None and stats.error_p99_s > ADDED_DELAY_MAX_S:
        results.append(
            f"packets between nodes arrived up to {units.duration(stats.error_p99_s)} (p99, n = "
            f"{units.count(stats.delayed or 0)}) later "
            "than the emulated delay: the machine was too busy"
        )
    return results


def _packets(measurement: Measurement) -> dict[str, dict[str, int]]:
    """The outcome of every packet between the nodes, until the end of the load; nothing without emulated links."""
    stats = measurement.links
    if stats is None:
        return {}
    ends = {"delivered": stats.delivered, **dict(stats.dropped), "under way": stats.under_way}
    if stats.packets is None:
        return {"packets": ends}
    return {"packets": {"read": stats.packets, **ends, "unread": stats.unread}}


def _emulation(profile: CometBFTProfile, network: CometNetwork) -> str:
    """How the nodes were linked, as a condition."""
    if network.links is None:
        return "none"
    shape = profile.network
    parts = [f"zones {Path(shape.zones).stem}"] if shape.zones else ["no delay"]
    parts += [f"{units.tidy(100.0 * shape.loss)} % loss"] if shape.loss else []
    parts += [f"{units.count(shape.bandwidth_bps)} bit/s a pair"] if shape.bandwidth_bps else []
    return f"{', '.join(parts)} ({network.links.backend})"


def _dropped_peers(measurement: Measurement) -> dict[str, dict[str, int]]:
    """By node, how often it dropped a peer because of an error; nothing if none did."""
    dropped = {name: reasons.total() for name, reasons in measurement.broken_connections.items()}
    return {"dropped peers": dropped} if any(dropped.values()) else {}


def _warnings(network: CometNetwork, measurement: Measurement, profile: CometBFTProfile) -> list[str]:
    results = [f"{name} did not stop on SIGTERM and was killed" for name in network.killed]
    breaks_on_purpose = bool(profile.perturbation or profile.rotating.joiners)
    if profile.other_versions or not breaks_on_purpose:
        results += disconnection_warnings(measurement.broken_connections)
    results += _link_warnings(measurement)
    results += measurement.profiles_missing
    if measurement.scrapes_missed:
        results.append(f"{units.count(measurement.scrapes_missed)} scrapes of a metrics page failed")
    if measurement.observer_reconnects:
        results.append(f"the subscription to commits was lost {measurement.observer_reconnects} times")
    records = measurement.records
    if records["reconnects"]:
        results.append(f"load connections were lost {records['reconnects']} times")
    results += [f"{units.count(count)} × {text}" for text, count in sorted(records["errors"].items())]
    return results


SYSTEM = CometBft()
