"""The gates of a CometBFT run: preconditions of valid figures, and requirements on the network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from chainmark.core import units
from chainmark.core.manifest import Gate, GateKind, GateStatus, Incident
from chainmark.core.wording import enumerated
from chainmark.stats.estimable import has_rank
from chainmark.systems.cometbft.answers import MEMPOOL_FULL
from chainmark.systems.cometbft.disturb import planned_starts
from chainmark.systems.cometbft.ingest import Events, TransactionCounts
from chainmark.systems.cometbft.launch import NetworkFailure
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.shape import need_of
from chainmark.systems.cometbft.workload import Measurement

# A transaction sent this late was held up; one with a response this late was sent to a node that reads slowly. An idle
# node responds within a millisecond, one that is held up takes seconds.
LATE_NS, HELD_UP_NS = 500_000_000, 100_000_000
START_PRESSURE_MAX = 0.8


def run_gates(
    profile: CometBFTProfile,
    measurement: Measurement,
    events: Events,
    transaction_counts: TransactionCounts,
    samples: dict[str, pl.DataFrame],
) -> list[Gate]:
    """All gates of a run, in display order.

    Those that need the chain are omitted if no node was left to read it from.
    """
    halted = bool(measurement.broken_off)  # which ended the load too
    held_up = halted or is_held_up(events.transactions)
    gates = [*_node_gates(profile, measurement, events), *_accounting_gates(profile, transaction_counts)]
    gates += _load_gates(profile, measurement, samples["transaction"], held_up=held_up)
    if "block" in samples:
        gates += _chain_gates(profile, measurement, samples)
    return [
        *gates,
        waited_gate(samples["second"], profile.gates.waited_share_max),
        *unsent_gate(events.transactions, profile.gates.unsent_by_generator_max, halted=halted),
        *_companions_gates(measurement),
    ]


def start_gate(failures: Sequence[Incident]) -> Gate:
    """Whether every node started at the first attempt; retries are reported and do not fail the gate."""
    gate = _subjects(
        "started", "every node started at the first attempt", not failures, _named(failures), "no failed attempt"
    )
    return gate.model_copy(update={"status": GateStatus.WARN}) if failures else gate


def failed_gate(failure: NetworkFailure) -> Gate:
    """The gate of a network with which nothing could be measured."""
    gate = _subjects("network", "the network was ready for measurement", False, failure.message, "healthy nodes")
    return gate.model_copy(update={"conclusive": failure.died})


def start_pressure_gate(pressure: float | None, profile: CometBFTProfile) -> Gate:
    """For a network that did not start: whether the machine was so busy that this proves nothing about its nodes.

    Args:
        pressure: the share of the time in which a process waited for a CPU; None: unknown.
        profile: if waiting does not invalidate a run, it does not count here either.
    """
    limit = 1.0 if profile.gates.waited_share_max >= 1.0 else START_PRESSURE_MAX
    gate = _at_most(
        "pressure",
        "the machine had time to start the network (CPU pressure)",
        pressure,
        limit,
        partial(units.share_beside, limit),
    )
    if pressure is not None:
        return gate
    return gate.model_copy(update={"status": GateStatus.UNKNOWN, "measured": "not reported by this kernel"})


def capacity_gate(profile: CometBFTProfile, cores: int) -> list[Gate]:
    """For a network that was started although its machines are certainly too small: this is not the nodes' fault.

    Args:
        profile: requires more cores than there are only if its check is off.
        cores: of all machines that run nodes.
    """
    need = need_of(profile)
    if need.cores <= cores:
        return []
    label = "the machines are large enough for the network"
    limit = f"about {units.plural(math.ceil(need.cores), 'core')}"
    return [_gate("capacity", label, False, units.plural(cores, "core"), limit)]


def _named(failures: Sequence[Incident]) -> str:
    counts = Counter(failure.what for failure in failures)
    texts = [what if count == 1 else f"{what}, {units.count(count)} times" for what, count in counts.items()]
    return "; ".join(texts) or "all at the first attempt"


def _by_reason(deaths: Sequence[str]) -> str:
    """Each reason once, with the nodes that died for it: a network usually dies for one."""
    nodes: dict[str, list[str]] = {}
    for death in deaths:
        name, _, reason = death.partition(" ")
        nodes.setdefault(reason, []).append(name)
    return "; ".join(
        f"{f'each of {enumerated(names)}' if len(names) > 1 else names[0]} {reason}" for reason, names in nodes.items()
    )


def _node_gates(profile: CometBFTProfile, measurement: Measurement, events: Events) -> list[Gate]:
    """Whether the nodes lived and made blocks."""
    deaths, halt = measurement.deaths, measurement.broken_off
    restarts = restarted_nodes(events.scrapes, planned_starts(profile.perturbation))
    limit = f"a block within {units.duration(profile.gates.no_block_max_s)}"
    return [
        _conclusive("nodes_alive", "no node died", not deaths, _by_reason(deaths) or "all alive", "all alive"),
        _conclusive("nodes_steady", "no node restarted", not restarts, _anew(restarts), "none"),
        _following_gate(measurement),
        _subjects("going_on", "the network kept making blocks", not halt, halt or "until the end", limit),
    ]


def _following_gate(measurement: Measurement) -> Gate:
    """Whether every living node had the chain at the end; the figures of the others stay valid."""
    stopped = measurement.stopped
    text = "; ".join(f"{name} stopped: {why}" for name, why in sorted(stopped.items()))
    return _conclusive("following", "every node followed the chain", not stopped, text or "all", "all")


def _anew(restarts: Sequence[str]) -> str:
    return f"{', '.join(restarts)} restarted" if restarts else "none"


def _accounting_gates(profile: CometBFTProfile, transaction_counts: TransactionCounts) -> list[Gate]:
    """Whether the accounting is complete, and whether the nodes kept their accepted transactions."""
    wrong = transaction_counts.contradictions
    label = "no response was wrong"
    gates = [
        _gate(
            "accounting",
            "the transaction counts balance",
            not transaction_counts.problems,
            "; ".join(transaction_counts.problems) or "balanced",
            "balanced",
        ),
        _conclusive("answers", label, not wrong, "; ".join(wrong) or "none", "none"),
    ]
    # Sent without waiting for a check, a transaction was received but not accepted: nothing was promised.
    if transaction_counts.lost is not None and profile.load.method == "sync":
        gates.append(_lost_gate(transaction_counts.lost, transaction_counts.unsure))
    return gates


def _lost_gate(lost: int, unsure: int) -> Gate:
    """Fails for certain losses only; transactions that a truncated mempool list may contain are unknown."""
    result = units.plural(lost + unsure, "accepted transaction")
    reported = f"between {units.count(lost)} and {result}" if unsure else result
    gate = _conclusive("lost", "no accepted transaction was lost", lost == 0, f"{reported} lost", "0 lost")
    if not unsure:
        return gate
    detail = "at the end of the run, mempools held more transactions than their nodes list, or a node did not respond"
    status = GateStatus.FAIL if lost else GateStatus.UNKNOWN
    return gate.model_copy(update={"status": status, "detail": detail})


def _load_gates(
    profile: CometBFTProfile, measurement: Measurement, transactions: pl.DataFrame, *, held_up: bool
) -> list[Gate]:
    """Whether the load was offered as planned; delays by the nodes are theirs, others the generator's."""
    limits = profile.gates
    kind = GateKind.SUBJECT if held_up else GateKind.INSTRUMENT
    sent_share = _share(transactions["tx_schedule_lag_s"].is_not_null())
    lag_s = _p99(transactions["tx_schedule_lag_s"])
    cores = measurement.records["cpu_s"] / max(measurement.records["wall_s"], 1e-9)
    gates = [
        _at_least(
            "achieved",
            "the offered load was sent",
            sent_share,
            limits.achieved_rate_min,
            partial(units.share_beside, limits.achieved_rate_min),
        ),
        _at_most("lag", "the schedule was kept (p99)", lag_s, limits.schedule_lag_p99_max_s, units.duration),
    ]
    label = "the load generator was not overloaded"
    generator = _at_most(
        "generator", label, cores, limits.generator_cpu_max_cores, lambda value: f"{units.number(value, 2)} cores"
    )
    return [*(gate.model_copy(update={"kind": kind}) for gate in gates), generator]


def _left(profile: CometBFTProfile, measurement: Measurement) -> str:
    """What was left in the mempools; if nothing was when they were read at last, why that was too late."""
    if measurement.waiting.fullest or measurement.drained:
        return f"{units.count(measurement.waiting.fullest)} left"
    return measurement.broken_off or f"not within {units.duration(profile.load.drain_timeout_s)}"


def _chain_gates(profile: CometBFTProfile, measurement: Measurement, samples: Mapping[str, pl.DataFrame]) -> list[Gate]:
    """Whether the offered transactions were committed, and how much of that was observed."""
    limits, blocks = profile.gates, samples["block"]
    share = _mean(samples["transaction"]["tx_committed_share"])
    least = limits.committed_share_min
    committed = _at_least(
        "committed", "the offered transactions were committed", share, least, partial(units.share_beside, least)
    )
    drained = _gate("drained", "the mempools were emptied", measurement.drained, _left(profile, measurement), "0 left")
    # At saturation, waiting transactions in a network that still makes blocks mean that draining ended too early.
    kind = GateKind.SUBJECT if least > 0.0 or measurement.broken_off else GateKind.INSTRUMENT
    unseen = unseen_commits(blocks)
    return [
        committed.model_copy(update={"kind": GateKind.SUBJECT}),
        drained.model_copy(update={"kind": kind}),
        _blocks_gate(blocks.height, limits.blocks_min),
        _gate(
            "observed",
            "every commit was observed",
            unseen == 0,
            f"{unseen} of {blocks.height} not observed",
            "0 not observed",
        ),
        *rounds_gate(blocks, limits.extra_rounds_max),
    ]


def _blocks_gate(blocks: int, least: int) -> Gate:
    """A slow network makes few blocks, so that their interval is judged; none at all is a failure."""
    gate = _subjects("blocks", "enough blocks", blocks >= least, units.plural(blocks, "block"), f"≥ {least} blocks")
    if not 0 < blocks < least:
        return gate
    detail = "few blocks give wide intervals; a longer load gives narrower ones"
    return gate.model_copy(update={"status": GateStatus.WARN, "detail": detail})


def is_held_up(transactions: pl.DataFrame) -> bool:
    """Whether the nodes delayed sending, and not the generator.

    A node that does not keep up refuses transactions, or reads its connections slowly: then responses are late. A
    generator that is late itself gets its responses at once.

    Args:
        transactions: one row each, with due_ns, sent_ns, answered_ns and answer.
    """
    late = transactions.filter(pl.col("sent_ns") - pl.col("due_ns") > LATE_NS)
    answered_s = (late["answered_ns"] - late["sent_ns"]).median()
    refused = transactions.filter(pl.col("answer") == MEMPOOL_FULL).height
    return refused > 0 or (isinstance(answered_s, int | float) and answered_s >= HELD_UP_NS)


def unsent_gate(transactions: pl.DataFrame, limit: float, *, halted: bool = False) -> list[Gate]:
    """At saturation: unsent transactions must have been held up by the nodes, not by the generator.

    Args:
        transactions: as of :func:`is_held_up`.
        limit: maximum share that the generator may cause; 1 disables the check.
        halted: whether the load was ended because the network had stopped.
    """
    if limit >= 1.0:
        return []
    unsent = transactions.filter(pl.col("sent_ns").is_null()).height / max(1, transactions.height)
    owed = 0.0 if halted or is_held_up(transactions) else unsent
    return [
        _at_most(
            "unsent",
            "the load generator sent everything that no node delayed",
            owed,
            limit,
            partial(units.share_beside, limit),
        )
    ]


def _companions_gates(measurement: Measurement) -> list[Gate]:
    """The gates of activities besides the load, if there were any."""
    gates = []
    if (disturber := measurement.disturber) is not None:
        problems = disturber.problems()
        all_back = f"all {len(disturber.disturbances)} perturbations"
        label = "every perturbed node recovered"
        gates.append(_conclusive("recovered", label, not problems, "; ".join(problems) or all_back, "all"))
    if (rotation := measurement.rotation) is not None:
        problems = rotation.problems()
        all_joined = f"all {len(rotation.joiners)} nodes"
        label = "every joining node caught up under load"
        make = _conclusive if rotation.failed() else _gate
        gates.append(make("joined", label, not problems, "; ".join(problems) or all_joined, "all"))
    return gates


# The consumer of CPU time, by the column of the seconds.
_WAITERS = {
    "nodes_run_queue_share": "nodes",
    "generator_run_queue_share": "generator and observer",
    "machine_steal_share": "stolen",
}


def waited_gate(seconds: pl.DataFrame, limit: float) -> Gate:
    """The time that others had while our processes wanted to run; other load of the machine is irrelevant.

    A kernel without this accounting cannot show that the machine was overloaded, which a reader must know.
    """
    label = "waits for a processor, our processes"
    shares = {consumer: share for name, consumer in _WAITERS.items() if (share := _mean(seconds[name])) is not None}
    gate = _at_most("pressure", label, max(shares.values(), default=None), limit, partial(units.share_beside, limit))
    if "nodes" in shares:
        text = ", ".join(f"{consumer} {units.share_beside(limit, share)}" for consumer, share in shares.items())
        return gate.model_copy(update={"measured": f"{text} of the time"})
    return gate.model_copy(update={"status": GateStatus.UNKNOWN, "measured": "not reported by this kernel"})


def rounds_gate(blocks: pl.DataFrame, limit: int | None) -> list[Gate]:
    """Whether the machine was fast enough for every block's first round, if the profile requires that."""
    if limit is None:
        return []
    rounds = blocks["block_extra_rounds"].drop_nulls()
    label = "consensus needed no extra rounds"
    measured = f"{units.number(float(rounds.sum()), 0)} in {rounds.len()} blocks"
    return [_gate("rounds", label, rounds.len() > 0 and rounds.sum() <= limit, measured, f"≤ {limit}")]


def restarted_nodes(scrapes: pl.DataFrame, planned: Mapping[str, int] | None = None) -> list[str]:
    """Nodes with more start times of their process than 1 plus the planned starts."""
    starts = scrapes.filter(pl.col("metric") == "process_start_time_seconds")
    frame = starts.group_by("host").agg(pl.col("value").n_unique())
    return sorted(host for host, count in frame.iter_rows() if count > 1 + (planned or {}).get(host, 0))


def unseen_commits(blocks: pl.DataFrame) -> int:
    """Blocks of the window whose commit event did not reach the load machine."""
    # The first row may lack its interval because the previous block was not read.
    return int(blocks["block_interval_observed_s"].tail(max(0, blocks.height - 1)).null_count())


def _gate(gate_id: str, label: str, passed: bool, measured: str, limit: str) -> Gate:
    status = GateStatus.PASS if passed else GateStatus.FAIL
    return Gate(id=gate_id, label=label, status=status, measured=measured, limit=limit)


def _subjects(gate_id: str, label: str, passed: bool, measured: str, limit: str) -> Gate:
    return _gate(gate_id, label, passed, measured, limit).model_copy(update={"kind": GateKind.SUBJECT})


def _conclusive(gate_id: str, label: str, passed: bool, measured: str, limit: str) -> Gate:
    return _subjects(gate_id, label, passed, measured, limit).model_copy(update={"conclusive": True})


Wording = Callable[[float], str]


def _at_least(gate_id: str, label: str, value: float | None, limit: float, wording: Wording) -> Gate:
    measured = "no data" if value is None else wording(value)
    return _gate(gate_id, label, value is not None and value >= limit, measured, f"≥ {wording(limit)}")


def _at_most(gate_id: str, label: str, value: float | None, limit: float, wording: Wording) -> Gate:
    measured = "no data" if value is None else wording(value)
    return _gate(gate_id, label, value is not None and value <= limit, measured, f"≤ {wording(limit)}")


def _mean(column: pl.Series) -> float | None:
    value = column.mean()
    return float(value) if isinstance(value, int | float) else None


def _share(column: pl.Series) -> float | None:
    return _mean(column.cast(pl.Float64))


def _p99(column: pl.Series) -> float | None:
    """The centile; for too few values the largest, which is not lower."""
    value = column.quantile(0.99, "lower") if has_rank(column.count(), 0.99) else column.max()
    return float(value) if isinstance(value, int | float) else None
