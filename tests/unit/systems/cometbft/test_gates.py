"""The gates of a run: each fails only for its own reason, and exactly at its limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from chainmark.core.manifest import Gate, GateStatus, Incident, Status, status_of
from chainmark.systems.cometbft.gates import (
    capacity_gate,
    failed_gate,
    rounds_gate,
    run_gates,
    start_gate,
    start_pressure_gate,
    unseen_commits,
    unsent_gate,
    waited_gate,
)
from chainmark.systems.cometbft.ingest import Events, TransactionCounts
from chainmark.systems.cometbft.launch import NetworkFailure
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.workload import PendingTransactions

from tests.unit.systems.cometbft.chains import ACCEPTED, measurement, records

_S = 10**9


def _transactions(late_s: float, answered_s: float, *, refused: int = 0, unsent: int = 50) -> pl.DataFrame:
    """50 transactions with this send delay and response time, followed by unsent and rejected ones."""
    due = [number * _S // 100 for number in range(50 + unsent)]
    sent = [transaction + round(late_s * _S) for transaction in due[:50]] + [None] * unsent
    answered = [transaction + round(answered_s * _S) for transaction in sent[:50] if transaction is not None] + [
        None
    ] * unsent
    answers = ["mempool full"] * refused + ["accepted"] * (50 - refused) + ["unsent"] * unsent
    return pl.DataFrame({"due_ns": due, "sent_ns": sent, "answered_ns": answered, "answer": answers})


@pytest.mark.parametrize(
    ("transactions", "status"),
    [
        (_transactions(0.001, 0.001, unsent=0), GateStatus.PASS),
        (_transactions(3.0, 0.001), GateStatus.FAIL),  # responses came at once, so nothing delayed the generator
        (_transactions(3.0, 3.0), GateStatus.PASS),  # the node read requests slowly
        (_transactions(3.0, 0.001, refused=5), GateStatus.PASS),  # the mempool was full
        (_transactions(3.0, 0.001, refused=1), GateStatus.PASS),
        (_transactions(0.001, 0.001), GateStatus.FAIL),
    ],
    ids=["all sent", "late by itself", "held up", "refused", "one refused", "stopped sending"],
)
def test_unsent_transactions_are_attributed_to_generator_or_node(
    transactions: pl.DataFrame, status: GateStatus
) -> None:
    (gate,) = unsent_gate(transactions, 0.02)
    assert gate.status is status


def test_transactions_unsent_to_a_stopped_network_do_not_count_for_the_generator() -> None:
    (gate,) = unsent_gate(_transactions(0.001, 0.001), 0.02, halted=True)
    assert gate.status is GateStatus.PASS
    limits = {"unsent_by_generator_max": 0.02}
    assert _gates(limits=limits, unsent=50)["unsent"].status is GateStatus.FAIL
    assert _gates(limits=limits, unsent=50, broken_off="no block for 30 s")["unsent"].status is GateStatus.PASS


def test_other_profiles_have_no_such_gate() -> None:
    assert unsent_gate(_transactions(3.0, 0.001), 1.0) == []


@pytest.mark.parametrize(
    ("rounds", "status"),
    [
        ([0, 0, 0], GateStatus.PASS),
        ([0], GateStatus.PASS),
        ([0, 1, 0], GateStatus.FAIL),
        ([None, None], GateStatus.FAIL),
    ],
    ids=["first rounds", "one block", "one more", "nobody knows"],
)
def test_a_network_must_not_need_further_rounds(rounds: list[int | None], status: GateStatus) -> None:
    """If a machine is too slow for its nodes, proposals are late and every figure reflects the machine."""
    blocks = pl.DataFrame({"block_extra_rounds": rounds}, schema={"block_extra_rounds": pl.Int64})
    (gate,) = rounds_gate(blocks, 0)
    assert gate.status is status
    assert rounds_gate(blocks, None) == []


@pytest.mark.parametrize(
    ("rounds", "limit", "status"),
    [([1, 1, None], 2, GateStatus.PASS), ([2, 1, None], 2, GateStatus.FAIL)],
    ids=["at the limit", "beyond it"],
)
def test_further_rounds_are_allowed_up_to_the_limit(rounds: list[int | None], limit: int, status: GateStatus) -> None:
    blocks = pl.DataFrame({"block_extra_rounds": rounds}, schema={"block_extra_rounds": pl.Int64})
    (gate,) = rounds_gate(blocks, limit)
    assert (gate.status, gate.limit) == (status, f"≤ {limit}")
    assert gate.measured == f"{sum(round_number or 0 for round_number in rounds)} in 2 blocks"


@pytest.mark.parametrize(
    ("unsent", "limit", "status"),
    [(50, 0.5, GateStatus.PASS), (50, 0.49, GateStatus.FAIL), (0, 0.0, GateStatus.PASS)],
    ids=["at the limit", "beyond it", "nothing unsent"],
)
def test_the_limit_of_unsent_transactions_of_the_generator(unsent: int, limit: float, status: GateStatus) -> None:
    (gate,) = unsent_gate(_transactions(0.001, 0.001, unsent=unsent), limit)
    assert (gate.status, gate.measured) == (status, f"{unsent / (50 + unsent):.1%}".replace("%", " %"))


@pytest.mark.parametrize(
    ("late_s", "answered_s", "status"),
    [
        (0.5, 3.0, GateStatus.FAIL),  # half a second does not count as late
        (0.501, 3.0, GateStatus.PASS),
        (3.0, 0.099, GateStatus.FAIL),
        (3.0, 0.1, GateStatus.PASS),
    ],
)
def test_a_slow_node_is_distinguished_from_a_slow_generator(
    late_s: float, answered_s: float, status: GateStatus
) -> None:
    (gate,) = unsent_gate(_transactions(late_s, answered_s), 0.02)
    assert gate.status is status


@pytest.mark.parametrize(
    ("slow", "status"), [(1, GateStatus.FAIL), (24, GateStatus.FAIL), (26, GateStatus.PASS), (49, GateStatus.PASS)]
)
def test_a_few_slow_responses_do_not_attribute_the_lateness_to_the_node(slow: int, status: GateStatus) -> None:
    """Most responses came at once. One slow response must not turn the generator's failure into the subject's."""
    quick, held_up = _transactions(3.0, 0.001, unsent=0), _transactions(3.0, 3.0, unsent=50)
    (gate,) = unsent_gate(pl.concat([quick.head(50 - slow), held_up.tail(50 + slow)]), 0.02)
    assert gate.status is status


def test_a_transaction_without_a_response_was_sent() -> None:
    transactions = _transactions(0.001, 0.001, unsent=0).with_columns(answered_ns=pl.lit(None, dtype=pl.Int64))
    (gate,) = unsent_gate(transactions, 0.02)
    assert (gate.status, gate.measured) == (GateStatus.PASS, "0.0 %")


def test_a_single_unsent_transaction_is_100_percent() -> None:
    (gate,) = unsent_gate(_transactions(0.001, 0.001).tail(1), 0.99)
    assert (gate.status, gate.measured) == (GateStatus.FAIL, "100.0 %")


def test_without_transactions_the_gate_passes() -> None:
    (gate,) = unsent_gate(_transactions(0.0, 0.0).clear(), 0.02)
    assert gate.status is GateStatus.PASS


SHARES = ("nodes_run_queue_share", "generator_run_queue_share", "machine_steal_share")


def _gates(
    *,
    lags: list[float | None] | None = None,
    committed: list[float] | None = None,
    intervals: list[float | None] | None = None,
    waited: list[float | None] | None = None,
    generator_waited: list[float | None] | None = None,
    stolen: float | None = None,
    starts: dict[str, list[float]] | None = None,
    problems: list[str] | None = None,
    contradictions: list[str] | None = None,
    lost: int | None = 0,
    unsure: int = 0,
    refused: int = 0,
    unsent: int = 0,
    limits: dict[str, Any] | None = None,
    perturbation: list[dict[str, Any]] | None = None,
    load: dict[str, object] | None = None,
    profile_load: dict[str, object] | None = None,
    chain: bool = True,
    **changes: Any,
) -> dict[str, Gate]:
    """The gates, by id, of a run that is valid except for the given values.

    Defaults: 100 transactions sent 1 ms late and committed, 20 blocks, no waiting, 0.1 cores for the generator.
    """
    lags = [0.001] * 100 if lags is None else lags
    intervals = [None] + [1.0] * 19 if intervals is None else intervals
    rows = [(host, value) for host, values in (starts or {"node0": [5.0, 5.0]}).items() for value in values]
    scrapes = pl.DataFrame(rows, schema=["host", "value"], orient="row").with_columns(
        metric=pl.lit("process_start_time_seconds")
    )
    samples = {
        "transaction": pl.DataFrame(
            {"tx_schedule_lag_s": lags, "tx_committed_share": [1.0] * len(lags) if committed is None else committed},
            schema={"tx_schedule_lag_s": pl.Float64, "tx_committed_share": pl.Float64},
        ),
        "second": pl.DataFrame(
            {
                "nodes_run_queue_share": [0.0] if waited is None else waited,
                "generator_run_queue_share": [0.0] if generator_waited is None else generator_waited,
                "machine_steal_share": [0.0 if stolen is None else stolen] * (1 if waited is None else len(waited)),
            },
            schema=dict.fromkeys(SHARES, pl.Float64),
        ),
        "block": pl.DataFrame(
            {"block_interval_observed_s": intervals, "block_extra_rounds": [0.0] * len(intervals)},
            schema={"block_interval_observed_s": pl.Float64, "block_extra_rounds": pl.Float64},
        ),
    }
    profile = CometBFTProfile.model_validate(
        {
            "system": "cometbft",
            "name": "x",
            "gates": limits or {},
            "perturbation": perturbation or [],
            "load": profile_load or {},
        }
    )
    if not chain:
        del samples["block"]
        samples["transaction"] = samples["transaction"].drop("tx_committed_share")
    taken = measurement(records([(b"x", ACCEPTED)], **(load or {})), **changes)
    events = Events(_transactions(0.001, 0.001, unsent=unsent, refused=refused), pl.DataFrame(), scrapes, {}, 0, 0, 0)
    counts = TransactionCounts({}, problems or [], contradictions or [], lost, unsure)
    gates = run_gates(profile, taken, events, counts, samples)
    assert len({gate.id for gate in gates}) == len(gates)
    return {gate.id: gate for gate in gates}


def _failed(gates: dict[str, Gate]) -> dict[str, str]:
    assert all(gate.status in {GateStatus.PASS, GateStatus.FAIL} for gate in gates.values())
    return {name: gate.measured for name, gate in gates.items() if gate.status is GateStatus.FAIL}


ALWAYS = [
    *(
        "nodes_alive",
        "nodes_steady",
        "following",
        "going_on",
        "accounting",
        "answers",
        "lost",
        "achieved",
        "lag",
        "generator",
    ),
    *("committed", "drained", "blocks", "observed", "pressure"),
]


def test_a_sound_run_passes_every_gate() -> None:
    gates = _gates()
    assert list(gates) == ALWAYS
    assert _failed(gates) == {}


@pytest.mark.parametrize(
    ("broken", "failed"),
    [
        (
            {"deaths": ["node1 ended early", "node2 was killed by SIGKILL", "node3 ended early"]},
            {"nodes_alive": "each of node1 and node3 ended early; node2 was killed by SIGKILL"},
        ),
        (
            {"starts": {"node0": [5.0], "node1": [5.0, 6.0], "node2": [1.0, 2.0]}},
            {"nodes_steady": "node1, node2 restarted"},
        ),
        ({"stopped": {"node3": "at height 5"}}, {"following": "node3 stopped: at height 5"}),
        (
            {"stopped": {"node3": "at height 5", "node1": "at height 4"}},
            {"following": "node1 stopped: at height 4; node3 stopped: at height 5"},
        ),
        ({"broken_off": "no block for 30 s at height 12"}, {"going_on": "no block for 30 s at height 12"}),
        ({"problems": ["1 ≠ 2", "2 ≠ 3"]}, {"accounting": "1 ≠ 2; 2 ≠ 3"}),
        ({"contradictions": ["2 rejected", "1 unknown"]}, {"answers": "2 rejected; 1 unknown"}),
        ({"lost": 1}, {"lost": "1 accepted transaction lost"}),
        ({"lags": [0.001] * 97 + [None] * 3}, {"achieved": "97.0 %"}),
        ({"committed": [1.0] * 97 + [0.0] * 3}, {"committed": "97.0 %"}),
        ({"lags": [0.001] * 98 + [0.06] * 2}, {"lag": "60 ms"}),
        ({"lags": [0.001] * 49 + [0.06]}, {"lag": "60 ms"}),  # too few for a centile: the maximum counts
        ({"drained": False, "waiting": PendingTransactions(fullest=1234)}, {"drained": "1234 left"}),
        ({"drained": False}, {"drained": "not within 60 s"}),
        (
            {"drained": False, "broken_off": "no block for 30 s"},
            {"going_on": "no block for 30 s", "drained": "no block for 30 s"},
        ),
        ({"intervals": []}, {"blocks": "0 blocks"}),
        ({"intervals": [1.0] * 18 + [None] * 2}, {"observed": "2 of 20 not observed"}),
        ({"load": {"cpu_s": 5.1}}, {"generator": "0.51 cores"}),
        ({"load": {"cpu_s": 0.3, "wall_s": 0.5}}, {"generator": "0.60 cores"}),
        (
            {"waited": [0.1, 0.2], "generator_waited": [0.0, 0.0]},
            {"pressure": "nodes 15.0 %, generator and observer 0.0 %, stolen 0.0 % of the time"},
        ),
        (
            {"generator_waited": [0.2]},
            {"pressure": "nodes 0.0 %, generator and observer 20.0 %, stolen 0.0 % of the time"},
        ),
        ({"stolen": 0.3}, {"pressure": "nodes 0.0 %, generator and observer 0.0 %, stolen 30.0 % of the time"}),
        ({"lags": [], "committed": []}, {"achieved": "no data", "committed": "no data", "lag": "no data"}),
    ],
    ids=str,
)
def test_each_gate_fails_only_for_its_own_reason(broken: dict[str, Any], failed: dict[str, str]) -> None:
    """A gate that reads the wrong figure would let a broken run be compared, or exclude a sound one."""
    assert _failed(_gates(**broken)) == failed


@pytest.mark.parametrize(
    "changes",
    [
        {"lags": [0.001] * 98 + [None] * 2},
        {"committed": [1.0] * 98 + [0.0] * 2},
        {"lags": [0.05] * 100},
        {"lags": [0.001] * 99 + [9.0]},  # one in a hundred does not affect the p99
        {"lags": [0.001] * 148 + [9.0] * 2},  # nor do two in 150, for either of the two nearest ranks
        {"intervals": [None] + [1.0] * 9},
        {"load": {"cpu_s": 5.0}},
        {"load": {"cpu_s": 0.0, "wall_s": 0.0}},
        {"waited": [0.05, 0.15], "generator_waited": [0.0, 0.0]},
        {"waited": [None, 0.1], "generator_waited": [0.0, 0.0]},
    ],
    ids=str,
)
def test_values_exactly_at_the_limit_pass(changes: dict[str, Any]) -> None:
    assert _failed(_gates(**changes)) == {}


@pytest.mark.parametrize(
    ("limits", "broken", "gate"),
    [
        ({"achieved_rate_min": 0.5}, {"lags": [0.001] * 49 + [None] * 51}, "achieved"),
        ({"committed_share_min": 0.5}, {"committed": [1.0] * 49 + [0.0] * 51}, "committed"),
        ({"schedule_lag_p99_max_s": 2.0}, {"lags": [2.1] * 100}, "lag"),
        ({"generator_cpu_max_cores": 2.0}, {"load": {"cpu_s": 20.1}}, "generator"),
        ({"waited_share_max": 0.9}, {"waited": [0.91]}, "pressure"),
    ],
)
def test_the_profile_sets_the_limits(limits: dict[str, Any], broken: dict[str, Any], gate: str) -> None:
    assert list(_failed(_gates(limits=limits, **broken))) == [gate]


def test_limits_are_shown_as_required() -> None:
    limits = {name: gate.limit for name, gate in _gates().items()}
    assert limits == {
        "nodes_alive": "all alive",
        "nodes_steady": "none",
        "following": "all",
        "going_on": "a block within 30 s",
        "accounting": "balanced",
        "answers": "none",
        "lost": "0 lost",
        "achieved": "≥ 98.0 %",
        "lag": "≤ 50 ms",
        "generator": "≤ 0.50 cores",
        "committed": "≥ 98.0 %",
        "drained": "0 left",
        "blocks": "≥ 10 blocks",
        "observed": "0 not observed",
        "pressure": "≤ 10.0 %",
    }


def test_each_gate_shows_its_requirement_and_its_result() -> None:
    companion = SimpleNamespace(problems=list, failed=lambda: False, disturbances=[1], joiners=[1])
    limits = {"extra_rounds_max": 0, "unsent_by_generator_max": 0.02}
    gates = _gates(limits=limits, disturber=companion, rotation=companion)
    assert {name: (gate.label, gate.measured) for name, gate in gates.items()} == {
        "nodes_alive": ("no node died", "all alive"),
        "nodes_steady": ("no node restarted", "none"),
        "following": ("every node followed the chain", "all"),
        "going_on": ("the network kept making blocks", "until the end"),
        "accounting": ("the transaction counts balance", "balanced"),
        "answers": ("no response was wrong", "none"),
        "lost": ("no accepted transaction was lost", "0 accepted transactions lost"),
        "achieved": ("the offered load was sent", "100.0 %"),
        "committed": ("the offered transactions were committed", "100.0 %"),
        "lag": ("the schedule was kept (p99)", "1 ms"),
        "drained": ("the mempools were emptied", "0 left"),
        "blocks": ("enough blocks", "20 blocks"),
        "observed": ("every commit was observed", "0 of 20 not observed"),
        "generator": ("the load generator was not overloaded", "0.10 cores"),
        "pressure": (
            "waits for a processor, our processes",
            "nodes 0.0 %, generator and observer 0.0 %, stolen 0.0 % of the time",
        ),
        "rounds": ("consensus needed no extra rounds", "0 in 20 blocks"),
        "unsent": ("the load generator sent everything that no node delayed", "0.0 %"),
        "recovered": ("every perturbed node recovered", "all 1 perturbations"),
        "joined": ("every joining node caught up under load", "all 1 nodes"),
    }
    assert (gates["recovered"].limit, gates["joined"].limit) == ("all", "all")


def test_a_kernel_without_waiting_times_gives_an_unknown_status() -> None:
    nothing = pl.DataFrame([[None] * 3], schema=dict.fromkeys(SHARES, pl.Float64), orient="row")
    for gate in (_gates(waited=[None], generator_waited=[None])["pressure"], waited_gate(nothing, 0.1)):
        assert (gate.status, gate.measured) == (GateStatus.UNKNOWN, "not reported by this kernel")


@pytest.mark.parametrize(
    ("broken", "status"),
    [
        ({}, Status.VALID),
        # Failures of the subject.
        ({"deaths": ["node1 ended"]}, Status.FAILED),
        ({"starts": {"node1": [5.0, 6.0]}}, Status.FAILED),
        ({"broken_off": "no block for 30 s"}, Status.FAILED),
        ({"contradictions": ["2 rejected"]}, Status.FAILED),
        ({"lost": 1}, Status.FAILED),
        ({"committed": [0.0] * 100}, Status.FAILED),
        ({"drained": False}, Status.FAILED),
        ({"intervals": []}, Status.FAILED),
        ({"problems": ["1 ≠ 2"]}, Status.INVALID),
        ({"load": {"cpu_s": 5.1}}, Status.INVALID),
        ({"waited": [0.5]}, Status.INVALID),
        ({"intervals": [1.0] * 18 + [None] * 2}, Status.INVALID),
        # Unsent transactions are the generator's failure, unless the nodes reject them.
        ({"lags": [None] * 100}, Status.INVALID),
        ({"lags": [None] * 100, "refused": 5}, Status.FAILED),
        ({"lags": [0.06] * 100}, Status.INVALID),
        # The load ends when the network stops, so most transactions are never sent.
        ({"lags": [None] * 100, "broken_off": "no block for 30 s"}, Status.FAILED),
        (
            {"drained": False, "broken_off": "no block for 30 s", "limits": {"committed_share_min": 0}},
            Status.FAILED,
        ),
        ({"lags": [0.06] * 100, "refused": 5}, Status.FAILED),
        # A busy machine explains late commits, but not a death or a lost transaction.
        ({"committed": [0.0] * 100, "waited": [0.5]}, Status.INVALID),
        ({"drained": False, "waited": [0.5]}, Status.INVALID),
        ({"broken_off": "no block for 30 s", "waited": [0.5]}, Status.INVALID),
        ({"deaths": ["node1 ended"], "waited": [0.5]}, Status.FAILED),
        ({"lost": 1, "waited": [0.5]}, Status.FAILED),
        # Few blocks mean a slow network, which is judged.
        ({"intervals": [None] + [1.0] * 3}, Status.VALID),
        # In a saturation test, a failed drain makes a run invalid, but uncommitted transactions alone do not.
        ({"drained": False, "limits": {"committed_share_min": 0}}, Status.INVALID),
        ({"committed": [0.0] * 100, "limits": {"committed_share_min": 0}}, Status.VALID),
    ],
    ids=str,
)
def test_failures_are_attributed_to_the_subject_or_the_machine(broken: dict[str, Any], status: Status) -> None:
    """As an invalid run, a crash would never count. As a failure, a busy machine would fail a release."""
    assert status_of(_gates(**broken).values()) is status


def test_a_node_that_needs_several_attempts_is_reported() -> None:
    sound = start_gate([])
    assert (sound.status, sound.measured) == (GateStatus.PASS, "all at the first attempt")
    failures = ["node0 exited with code 1", "node1 did not answer", "node0 exited with code 1"]
    gate = start_gate([Incident(time_ns=1, what=failure) for failure in failures])
    assert (gate.status, gate.measured) == (GateStatus.WARN, "node0 exited with code 1, 2 times; node1 did not answer")
    assert (gate.id, gate.label) == ("started", "every node started at the first attempt")
    assert gate.limit == "no failed attempt"
    assert status_of([gate]) is Status.VALID


@pytest.mark.parametrize(
    ("accepted", "pressure", "status", "expected"),
    [
        (0.1, 0.8, GateStatus.PASS, ("80.0 %", "≤ 80.0 %")),
        (0.1, 0.81, GateStatus.FAIL, ("81.0 %", "≤ 80.0 %")),
        # If waiting does not invalidate a run, a fully used machine does not either.
        (1.0, 0.99, GateStatus.PASS, ("99.0 %", "≤ 100.0 %")),
        (0.99, 0.99, GateStatus.FAIL, ("99.0 %", "≤ 80.0 %")),
        (0.1, None, GateStatus.UNKNOWN, ("not reported by this kernel", "≤ 80.0 %")),
    ],
)
def test_how_full_a_machine_may_be_that_starts_a_network(
    accepted: float, pressure: float | None, status: GateStatus, expected: tuple[str, str]
) -> None:
    gates = {"waited_share_max": accepted}
    gate = start_pressure_gate(
        pressure, CometBFTProfile.model_validate({"system": "cometbft", "name": "x", "gates": gates})
    )
    assert (gate.id, gate.status, (gate.measured, gate.limit)) == ("pressure", status, expected)


def test_a_network_started_on_machines_that_are_too_small_proves_nothing_about_its_nodes() -> None:
    """The check before the start may be off. The network then stops for want of cores, which a release must not pay."""
    network = {"validators": 50, "check_capacity": False}
    profile = CometBFTProfile.model_validate({"system": "cometbft", "name": "x", "network": network})
    (gate,) = capacity_gate(profile, 2)
    needed = int(gate.limit.removeprefix("about ").removesuffix(" cores"))
    assert (gate.id, gate.status, gate.measured) == ("capacity", GateStatus.FAIL, "2 cores")
    assert gate.label == "the machines are large enough for the network"
    assert capacity_gate(profile, needed) == []
    assert [each.measured for each in capacity_gate(profile, needed - 1)] == [f"{needed - 1} cores"]
    assert status_of([*_gates(broken_off="no block for 30 s").values(), gate]) is Status.INVALID
    assert status_of([*_gates(lost=1).values(), gate]) is Status.FAILED


def test_machines_with_exactly_the_cores_that_a_network_needs_are_large_enough() -> None:
    """100 nodes with 10 links each at 125 tx/s need 100 · 10 · (0.0035 + 125 · 0.000028) = 7 cores."""
    network = {"validators": 100, "topology": "random", "peers_per_node": 5, "check_capacity": False}
    values = {"system": "cometbft", "name": "x", "network": network, "load": {"rate": 125}}
    profile = CometBFTProfile.model_validate(values)
    assert capacity_gate(profile, 7) == []
    assert [(gate.measured, gate.limit) for gate in capacity_gate(profile, 6)] == [("6 cores", "about 7 cores")]


def test_a_dead_network_fails_on_any_machine_and_a_late_one_on_an_idle_machine() -> None:
    busy = start_pressure_gate(1.0, CometBFTProfile.model_validate({"system": "cometbft", "name": "x"}))
    died, late = (failed_gate(NetworkFailure(cast(Any, None), "x", died=is_calm)) for is_calm in (True, False))
    assert [status_of([gate, busy]) for gate in (died, late)] == [Status.FAILED, Status.INVALID]
    assert [status_of([gate]) for gate in (died, late)] == [Status.FAILED] * 2
    assert (late.id, late.label, late.measured, late.limit) == (
        "network",
        "the network was ready for measurement",
        "x",
        "healthy nodes",
    )
    assert busy.label == "the machine had time to start the network (CPU pressure)"


def test_transactions_received_without_a_check_cannot_be_lost() -> None:
    assert "lost" not in _gates(lost=3, profile_load={"method": "async"})
    assert "lost" not in _gates(lost=None)


def test_possibly_lost_transactions_are_neither_a_failure_nor_a_pass() -> None:
    """A node lists only a hundred transactions. Further pending ones must be reported neither as lost nor as safe."""
    gate = _gates(lost=0, unsure=900)["lost"]
    assert (gate.status, gate.measured) == (GateStatus.UNKNOWN, "between 0 and 900 accepted transactions lost")
    gate = _gates(lost=3, unsure=17)["lost"]
    assert (gate.status, gate.measured) == (GateStatus.FAIL, "between 3 and 20 accepted transactions lost")
    assert gate.conclusive
    assert (
        gate.detail
        == "at the end of the run, mempools held more transactions than their nodes list, or a node did not respond"
    )


def test_few_blocks_give_a_warning() -> None:
    assert _gates(intervals=[None])["blocks"].status is GateStatus.WARN, "too few blocks give a warning, not a failure"
    gate = _gates(intervals=[None] + [1.0] * 8)["blocks"]
    assert (gate.status, gate.measured, gate.limit) == (GateStatus.WARN, "9 blocks", "≥ 10 blocks")
    assert gate.detail == "few blocks give wide intervals; a longer load gives narrower ones"
    assert _gates(intervals=[1.0] * 24, limits={"blocks_min": 25})["blocks"].status is GateStatus.WARN


def test_without_the_chain_there_are_no_gates_on_it() -> None:
    """All nodes died, so even the committed transactions are unknown."""
    gates = _gates(chain=False, lost=None, deaths=["all"])
    gate_ids = {"committed", "drained", "blocks", "observed", "lost"}
    assert list(gates) == [name for name in ALWAYS if name not in gate_ids]
    assert status_of(gates.values()) is Status.FAILED


def test_a_planned_start_is_not_a_restart() -> None:
    killed = [{"kind": "kill", "nodes": [3], "at_s": 1.0}]
    starts = {"node3": [1.0, 2.0]}
    assert _failed(_gates(starts=starts, perturbation=killed)) == {}
    assert _failed(_gates(starts=starts)) == {"nodes_steady": "node3 restarted"}


def test_further_gates_are_added_on_request_of_the_profile() -> None:
    gates = _gates(limits={"extra_rounds_max": 0, "unsent_by_generator_max": 0.02})
    assert list(gates) == [*ALWAYS[:-1], "rounds", "pressure", "unsent"]
    assert _failed(gates) == {}


@pytest.mark.parametrize("problems", [[], ["node3 did not recover", "node2 did not"]])
@pytest.mark.parametrize(
    ("field", "many", "gate", "all_well"),
    [
        ("disturber", "disturbances", "recovered", "all 2 perturbations"),
        ("rotation", "joiners", "joined", "all 2 nodes"),
    ],
)
def test_activities_during_the_load_must_have_succeeded(
    field: str, many: str, gate: str, all_well: str, problems: list[str]
) -> None:
    activity = SimpleNamespace(problems=lambda: problems, failed=lambda: bool(problems), **{many: [1, 2]})
    companion: dict[str, Any] = {field: activity}
    gates = _gates(**companion)
    assert list(gates) == [*ALWAYS, gate]
    assert _failed(gates) == ({gate: "; ".join(problems)} if problems else {})
    assert gates[gate].measured == ("; ".join(problems) or all_well)
    assert status_of([gates[gate]]) is (Status.FAILED if problems else Status.VALID)


def test_a_node_that_was_never_started_is_a_failure_of_the_load() -> None:
    """The load ended before the network reached the height at which nodes join."""
    rotation = SimpleNamespace(problems=lambda: ["joiner0 was not started"], failed=lambda: False, joiners=[1])
    assert status_of(_gates(rotation=rotation).values()) is Status.INVALID


@pytest.mark.parametrize(
    ("intervals", "unseen"),
    [([], 0), ([None], 0), ([None, 1.0], 0), ([None, None, 1.0], 1), ([1.0, None], 1)],
)
def test_only_the_first_block_of_a_window_may_have_no_interval(intervals: list[float | None], unseen: int) -> None:
    """The preceding block is not part of the data."""
    blocks = pl.DataFrame({"block_interval_observed_s": intervals}, schema={"block_interval_observed_s": pl.Float64})
    assert unseen_commits(blocks) == unseen
