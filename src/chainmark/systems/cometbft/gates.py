"""The gates of a CometBFT run: what must hold before its figures mean anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from chainmark.core import units
from chainmark.core.manifest import Gate, GateStatus
from chainmark.stats.estimable import has_rank
from chainmark.systems.cometbft.answers import MEMPOOL_FULL
from chainmark.systems.cometbft.disturb import planned_starts
from chainmark.systems.cometbft.ingest import Books, Events
from chainmark.systems.cometbft.profile import Profile
from chainmark.systems.cometbft.workload import Measurement

# Sent so late, a transaction was held up; answered so long after it was sent, by a node that reads slowly. An idle
# node answers within a millisecond, one that is held up takes seconds.
LATE_NS, HELD_UP_NS = 500_000_000, 100_000_000


def run_gates(
    profile: Profile, measurement: Measurement, events: Events, books: Books, samples: dict[str, pl.DataFrame]
) -> list[Gate]:
    """All gates of a run, in the order in which a reader asks for them."""
    limits = profile.gates
    transactions, seconds = samples["transaction"], samples["second"]
    deaths = measurement.deaths
    restarts = restarted_nodes(events.scrapes, planned_starts(profile.perturbation))
    sent_share = _share(transactions["tx_schedule_lag_s"].is_not_null())
    lag_s = _p99(transactions["tx_schedule_lag_s"])
    generator_cores = measurement.records["cpu_s"] / max(measurement.records["wall_s"], 1e-9)
    blocks = samples["block"]
    return [
        _gate("nodes_alive", "no node was lost", not deaths, "; ".join(deaths) or "all alive", "all alive"),
        _gate("nodes_steady", "no node started anew", not restarts, ", ".join(restarts) or "none", "none"),
        _gate("books", "the books balance", not books.problems, "; ".join(books.problems) or "balanced", "balanced"),
        _at_least("achieved", "the offered load was sent", sent_share, limits.achieved_rate_min, _percent),
        _at_least(
            "committed",
            "the network was not saturated",
            _mean(transactions["tx_committed_share"]),
            limits.committed_share_min,
            _percent,
        ),
        _at_most("lag", "the schedule was kept (p99)", lag_s, limits.schedule_lag_p99_max_s, _milliseconds),
        _gate(
            "drained",
            "the mempools ran empty",
            measurement.drained,
            f"{units.count(measurement.pending)} left",
            "0 left",
        ),
        _at_least(
            "blocks",
            "enough blocks",
            float(blocks.height),
            float(limits.blocks_min),
            lambda value: units.plural(round(value), "block"),
        ),
        _gate(
            "observed",
            "every commit was seen",
            unseen_commits(blocks) == 0,
            f"{unseen_commits(blocks)} of {blocks.height} unseen",
            "0 unseen",
        ),
        _at_most(
            "generator",
            "the generator had time to spare",
            generator_cores,
            limits.generator_cpu_max_cores,
            lambda value: f"{units.number(value, 2)} cores",
        ),
        _waited_gate(seconds, limits.waited_share_max),
        *rounds_gate(blocks, limits.extra_rounds_max),
        *unsent_gate(events.transactions, limits.unsent_by_generator_max),
        *_companions_gates(measurement),
    ]


def unsent_gate(transactions: pl.DataFrame, limit: float) -> list[Gate]:
    """Where saturation is the point: what was not sent must have been held up by the nodes, not by the generator.

    A node that does not keep up refuses transactions, or reads its connections slowly: then what waits in them is
    answered late. A generator that is late itself finds its transactions answered at once.

    Args:
        transactions: one row each, with due_ns, sent_ns, answered_ns and answer.
        limit: of the share that the generator may owe; 1 asks for nothing.
    """
    if limit >= 1.0:
        return []
    late = transactions.filter(pl.col("sent_ns") - pl.col("due_ns") > LATE_NS)
    answered_s = (late["answered_ns"] - late["sent_ns"]).median()
    refused = transactions.filter(pl.col("answer") == MEMPOOL_FULL).height
    held_up = refused > 0 or (isinstance(answered_s, int | float) and answered_s >= HELD_UP_NS)
    unsent = transactions.filter(pl.col("sent_ns").is_null()).height / max(1, transactions.height)
    return [
        _at_most("unsent", "the generator sent all that no node held up", 0.0 if held_up else unsent, limit, _percent)
    ]


def _companions_gates(measurement: Measurement) -> list[Gate]:
    """Of what was done beside the load, if anything was."""
    gates = []
    if (disturber := measurement.disturber) is not None:
        problems = disturber.problems()
        all_back = f"all {len(disturber.disturbances)} perturbations"
        label = "every perturbed node recovered"
        gates.append(_gate("recovered", label, not problems, "; ".join(problems) or all_back, "all"))
    if (rotation := measurement.rotation) is not None:
        problems = rotation.problems()
        all_joined = f"all {len(rotation.joiners)} nodes"
        label = "every joining node caught up under load"
        gates.append(_gate("joined", label, not problems, "; ".join(problems) or all_joined, "all"))
    return gates


# Whose time it is, by the column of the seconds.
_WAITERS = {
    "nodes_run_queue_share": "nodes",
    "generator_run_queue_share": "generator and observer",
    "machine_steal_share": "stolen",
}


def _waited_gate(seconds: pl.DataFrame, limit: float) -> Gate:
    """Of the time in which our processes wanted to run, what others had: what else the machine does is its own affair.

    A kernel without such accounts cannot say that the machine was overloaded, which a reader must know.
    """
    label = "our processes did not wait for a processor"
    shares = {whose: share for name, whose in _WAITERS.items() if (share := _mean(seconds[name])) is not None}
    gate = _at_most("pressure", label, max(shares.values(), default=None), limit, _percent)
    if "nodes" in shares:
        told = ", ".join(f"{whose} {_percent(share)}" for whose, share in shares.items())
        return gate.model_copy(update={"measured": f"{told} of the time"})
    return gate.model_copy(update={"status": GateStatus.WARN, "measured": "? (this kernel does not tell)"})


def rounds_gate(blocks: pl.DataFrame, limit: int | None) -> list[Gate]:
    """Whether the machine was fast enough for every block's first round, where the profile asks for that."""
    if limit is None:
        return []
    rounds = blocks["block_extra_rounds"].drop_nulls()
    label = "consensus needed no more rounds"
    measured = f"{units.number(float(rounds.sum()), 0)} in {rounds.len()} blocks"
    return [_gate("rounds", label, rounds.len() > 0 and rounds.sum() <= limit, measured, f"≤ {limit}")]


def restarted_nodes(scrapes: pl.DataFrame, planned: Mapping[str, int] | None = None) -> list[str]:
    """Nodes whose process reported more start times than one, and one more for each start that was planned."""
    starts = scrapes.filter(pl.col("metric") == "process_start_time_seconds")
    found = starts.group_by("host").agg(pl.col("value").n_unique())
    return sorted(host for host, count in found.iter_rows() if count > 1 + (planned or {}).get(host, 0))


def unseen_commits(blocks: pl.DataFrame) -> int:
    """Blocks of the window whose commit event did not reach the load machine."""
    # The first row may lack its interval because the block before it is not part of what was read.
    return int(blocks["block_interval_observed_s"].tail(max(0, blocks.height - 1)).null_count())


def _gate(gate_id: str, label: str, passed: bool, measured: str, limit: str) -> Gate:
    status = GateStatus.PASS if passed else GateStatus.FAIL
    return Gate(id=gate_id, label=label, status=status, measured=measured, limit=limit)


Wording = Callable[[float], str]


def _at_least(gate_id: str, label: str, value: float | None, limit: float, wording: Wording) -> Gate:
    measured = "no data" if value is None else wording(value)
    return _gate(gate_id, label, value is not None and value >= limit, measured, f"≥ {wording(limit)}")


def _at_most(gate_id: str, label: str, value: float | None, limit: float, wording: Wording) -> Gate:
    measured = "no data" if value is None else wording(value)
    return _gate(gate_id, label, value is not None and value <= limit, measured, f"≤ {wording(limit)}")


def _percent(value: float) -> str:
    return units.plain_percent(value, decimals=1)


def _milliseconds(value: float) -> str:
    return units.duration(value)


def _mean(column: pl.Series) -> float | None:
    value = column.mean()
    return float(value) if isinstance(value, int | float) else None


def _share(column: pl.Series) -> float | None:
    return _mean(column.cast(pl.Float64))


def _p99(column: pl.Series) -> float | None:
    """The centile; of so few values that they have none, the largest, which is no less."""
    value = column.quantile(0.99, "lower") if has_rank(column.count(), 0.99) else column.max()
    return float(value) if isinstance(value, int | float) else None
