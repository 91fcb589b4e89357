"""Saturation tests of CometBFT: its loads, and a run's result for its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Fact, Manifest
from chainmark.lab.schedules import SweepLoad, SweepPlan
from chainmark.store.sealed import SealedRun
from chainmark.systems.cometbft.answers import REJECTED
from chainmark.systems.cometbft.ingest import PENDING_OR_LOST
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.saturation.results import (
    CellRun,
    LatencyEntry,
    RunFigure,
    SaturationMetrics,
    VersionRuns,
)

COMMITTED, THROUGHPUT, LATENCY = "tx_committed_share", "committed_per_s", "tx_latency_s"
NO_ANSWER = "no answer"
# From this share on of the machine's capacity, or of the offered load, a reader must know of it.
BUSY_SHARE = 0.9
UNSENT_SHARE = 0.02
SATURATED_MARGIN = 0.1

FRESH_NETWORKS = (
    "Every run has a fresh network, without full mempools, large databases or peers from the previous run. The "
    "published tests used one chain for all loads, with a pause between them."
)


def plan_of(profile: CometBFTProfile) -> SweepPlan:
    """The loads of a profile's section `saturation`.

    Raises:
        UsageError: the load goes to several nodes.
    """
    section = profile.saturation
    if len(profile.load.targets) > 1:
        raise UsageError(
            f"a saturation test loads one node, but `load.targets` names {len(profile.load.targets)}",
            "`--set load.targets=[0]`",
        )
    return SweepPlan(
        loads=tuple(load_of(connections, rate) for connections in section.connections for rate in section.rates),
        tolerance=section.tolerance,
        step=section.connections[0],
        first_load=section.first_load,
        most_load=section.most_load,
        relative_gap=section.relative_gap,
        search=section.search,
        line="number of connections",
    )


def load_of(connections: int, rate_per_s: int) -> SweepLoad:
    """Connections, and transactions per second of each: c2r200."""
    return SweepLoad((connections, rate_per_s), f"c{connections}r{rate_per_s}", connections * rate_per_s)


def metrics_of(catalogue: Catalogue) -> SaturationMetrics:
    """The metrics by which versions are compared.

    Beyond saturation most of a load may be refused, on purpose: for the committed rest, 10 % is the margin, as in the
    published tests. The catalogue's own margin is that of a load that every network must sustain.
    """
    committed = catalogue.metric(COMMITTED).model_copy(update={"margin": SATURATED_MARGIN})
    return SaturationMetrics(committed, catalogue.metric(THROUGHPUT), catalogue.metric(LATENCY))


def cell_of(run: SealedRun) -> CellRun:
    """A run's result for its load: the counts of the whole load, and figures of the window after its warm-up."""
    manifest = run.manifest
    summaries = run.summaries()
    account = Counter(manifest.counts.get("transactions", {}))  # a failed network may have none
    answers = Counter(manifest.counts.get("answers", {}))
    load = manifest.workload
    refused = {name: answers[name] for name in REJECTED}
    refused[NO_ANSWER] = account["rejected"] - sum(refused.values())
    throughput = _figure(summaries, THROUGHPUT, "mean") or RunFigure(value=0.0)
    offered_per_s = _figure(summaries, "offered_per_s", "mean")
    place = manifest.experiment
    return CellRun(
        origin=run.run_id,
        repetition=place.repetition if place else None,
        position=place.position if place else None,
        connections=_whole(load, "load.connections"),
        rate_per_s=_whole(load, "load.rate"),
        load_s=_load_s(manifest),
        offered=account["offered"],
        unsent=account["unsent"],
        rejected=refused,
        accepted=account["accepted"],
        **_ends(account),
        committed=account["committed"],
        throughput_per_s=throughput,
        pace=_ratio(throughput, offered_per_s.value) if offered_per_s and offered_per_s.value > 0.0 else None,
        latency=_latency(summaries),
        excluded="; ".join(f"{gate.label}: {gate.measured} ({gate.limit})" for gate in manifest.failed_gates),
        limits=_limits(manifest, summaries),
    )


def _ends(account: Mapping[str, int]) -> dict[str, int | None]:
    """Pending and lost; neither if the mempools held more than their nodes list."""
    is_known = PENDING_OR_LOST not in account
    return {name: account[name] if is_known else None for name in ("pending", "lost")}


def version_of(label: str, runs: Sequence[SealedRun]) -> VersionRuns:
    """All runs of one version."""
    first = runs[0].manifest
    load, load_s = first.workload, _load_s(first)
    measured, before = (units.duration(_seconds(load, f"load.{key}")) for key in ("duration_s", "warm_up_s"))
    return VersionRuns(
        label=label,
        subject=first.subject,
        published=False,
        source=f"{len(runs)} runs on this machine",
        expected=f"the scheduled transactions: connections × rate × {units.duration(load_s)}",
        latency_is="from the due time of a transaction until its block's commit was observed",
        latency_kind=LATENCY,
        throughput_is=(f"committed per second in the {measured} after a warm-up of {before}"),
        runs=[cell_of(run) for run in runs],
        conditions=dict(first.conditions),
        facts=[
            Fact(
                label="Nodes",
                value=f"{load['network.validators']} validators, {load['network.full_nodes']} full nodes",
            ),
            Fact(label="Transaction", value=f"{load['load.size_bytes']} bytes"),
        ],
        notes=_mempool_notes(first, load_s),
    )


def _load_s(manifest: Manifest) -> float:
    """Seconds for which the load was offered, including its warm-up."""
    load = manifest.workload
    return _seconds(load, "load.warm_up_s") + _seconds(load, "load.duration_s")


def _seconds(workload: Mapping[str, object], key: str) -> float:
    value = workload.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(workload: Mapping[str, object], key: str) -> int:
    return round(_seconds(workload, key))


def _mempool_notes(manifest: Manifest, load_s: float) -> list[str]:
    """Effects that a short load hides."""
    size = manifest.configuration.effective.get("config.toml", {}).get("mempool.size")
    if not isinstance(size, int) or load_s <= 0.0:
        return []
    return [
        f"A mempool holds {units.count(size)} transactions. Those that wait when the load ends are processed and "
        f"counted. Over {units.duration(load_s)} a load may be up to {units.count(round(size / load_s))} tx/s above "
        "what the network commits before anything is refused. The share committed within the window does not have this "
        "slack."
    ]


def _figure(summaries: Mapping[str, MetricSummary], metric_id: str, statistic: str) -> RunFigure | None:
    summary = summaries.get(metric_id)
    estimate = summary.estimates.get(statistic) if summary else None
    if estimate is None or estimate.value is None:
        return None
    return RunFigure(
        value=estimate.value, standard_error=estimate.standard_error, log_standard_error=estimate.log_standard_error
    )


def _ratio(figure: RunFigure, divisor: float) -> RunFigure:
    error = figure.standard_error
    return RunFigure(value=figure.value / divisor, standard_error=None if error is None else error / divisor)


def _latency(summaries: Mapping[str, MetricSummary]) -> LatencyEntry | None:
    summary = summaries.get(LATENCY)
    if summary is None or summary.distribution is None:
        return None
    distribution = summary.distribution
    return LatencyEntry(
        n=distribution.n,
        mean=_figure(summaries, LATENCY, "mean"),
        p50=_figure(summaries, LATENCY, "p50"),
        p99=_figure(summaries, LATENCY, "p99"),
        min_s=distribution.min,
        max_s=distribution.max,
        sd_s=distribution.sd,
    )


def _limits(manifest: Manifest, summaries: Mapping[str, MetricSummary]) -> list[str]:
    """Factors other than the network that may have limited a run."""
    results = []
    cores = _figure(summaries, "machine_cpu_cores", "mean")
    if cores is not None and manifest.host.cores and cores.value >= BUSY_SHARE * manifest.host.cores:
        results.append(f"the machine was busy: {units.number(cores.value, 2)} of {manifest.host.cores} cores used")
    account = Counter(manifest.counts.get("transactions", {}))
    unsent = account["unsent"] / max(1, account["offered"])
    if unsent > UNSENT_SHARE:
        results.append(
            f"the connections to the node were full: {units.plain_percent(unsent, decimals=1)} of the load was not sent"
        )
    return results
