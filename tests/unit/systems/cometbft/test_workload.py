"""The measurement of a running network: what is offered, how it is watched, and when its mempools count as empty."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainmark.core.errors import EnvironmentFailure, LostMachineError, UsageError
from chainmark.core.manifest import Incident
from chainmark.systems.cometbft import workload
from chainmark.systems.cometbft.applications.loading import Prepared
from chainmark.systems.cometbft.generating import GeneratorOrder
from chainmark.systems.cometbft.launch import NetworkFailure
from chainmark.systems.cometbft.workload import (
    LoadRequest,
    PendingTransactions,
    Stall,
    _companions,
    _drain,
    _load_source,
    _mempools,
    _observing,
    _run_load,
    _start,
    _stopped,
    _waiting,
    _Watch,
    _write_observed,
    furthest,
)

from tests.unit.systems.cometbft.scripted_network import (
    BEGAN_S,
    EXPERIMENT,
    NS,
    Companion,
    Listener,
    Load,
    Process,
    Scripted,
    State,
    States,
    both,
    counts,
    load_order,
    scripted,
    ticker,
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return scripted(tmp_path, monkeypatch)


def _watch(world: Scripted, folder: Path, *companions: Companion, stalled: str = "") -> _Watch:
    return _Watch(world.network, [ticker()], folder, cast(Any, list(companions)), lambda _: stalled)


@pytest.mark.parametrize(
    ("states", "height", "name"),
    [
        ({"node0": State(7), "node1": State(9)}, 9, "node1"),
        ({"node0": State(9), "node1": None}, 9, "node0"),
        ({}, 0, None),
    ],
    ids=["the further one", "one hangs", "none responds"],
)
def test_the_chain_is_read_from_the_node_with_the_greatest_height(
    world: Scripted, states: States, height: int, name: str | None
) -> None:
    world.states = [states]
    reached, node = furthest(world.network)
    assert (reached, node and node.name) == (height, name)
    # All are queried at once, and one that hangs delays the others for two seconds at most.
    assert world.queried == [("10.0.0.0:26657", 2.0), ("10.0.0.1:26657", 2.0)]
    assert world.pools == [(16, "asking")]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (
            {"node0": State(1, (b"a", b"b"), 3), "node1": State(1, (b"b", b"c"))},
            PendingTransactions(frozenset({b"a", b"b", b"c"}), 5, 3),
        ),
        ({"node0": State(1, (b"a",), 2), "node1": State(1, (), 4)}, PendingTransactions(frozenset({b"a"}), 4, 6)),
        # The node counted one less than it listed a moment ago.
        ({"node0": State(1, (b"a", b"b"), -1), "node1": State(1)}, PendingTransactions(frozenset({b"a", b"b"}), 1, 0)),
        ({"node0": State(1, (b"a",), 2), "node1": None}, PendingTransactions(frozenset({b"a"}), 3, None)),
        ({}, PendingTransactions(frozenset(), 0, None)),
        (both(1), PendingTransactions(frozenset(), 0, 0)),
    ],
    ids=["both list some", "unlisted in both", "listed too many", "one hangs", "none responds", "empty"],
)
def test_waiting_transactions_are_those_of_all_mempools(
    world: Scripted, states: States, expected: PendingTransactions
) -> None:
    """Otherwise accepted transactions that still wait would be reported as lost, or lost ones as waiting."""
    world.states = [states]
    assert _waiting(world.network) == expected


@pytest.mark.parametrize(
    ("states", "polls", "drained"),
    [
        ([both(5), both(6), both(7)], 2, True),
        # Transactions that come back from a block that was not final begin the two blocks anew.
        ([both(5), both(6, 1), both(7), both(8), both(9)], 4, True),
        ([{"node0": State(5), "node1": State(4)}, {"node0": State(7), "node1": State(5)}, both(6)], 2, True),
        ([{"node0": State(5), "node1": State(5, unlisted=1)}, both(6), both(7), both(8)], 3, True),
        ([{"node0": State(5), "node1": None}, {"node0": State(7)}], 1, True),
        ([both(5, 9)], 5, False),  # 1 s at 0.2 s per poll
        # Two blocks may take longer than the limit for the transactions.
        ([*[both(5)] * 9, both(7)], 9, True),
    ],
    ids=["two blocks", "not empty any more", "all nodes", "fullest mempool", "one hangs", "full", "slow blocks"],
)
def test_draining_ends_two_blocks_after_the_last_mempool_is_empty(
    world: Scripted, tmp_path: Path, states: list[States], polls: int, *, drained: bool
) -> None:
    world.states = states
    assert _drain(_watch(world, tmp_path), 1.0, Listener()) is drained
    assert world.clock.slept == [0.2] * polls


def test_a_network_that_does_not_respond_is_not_drained(world: Scripted, tmp_path: Path) -> None:
    """Until it is known to have stopped, it may respond again."""
    reasons = iter(["", "", "no block for 30 s"])
    assert _mempools(world.network) == (None, 0)
    listener = Listener()
    assert not _drain(_Watch(world.network, [], tmp_path, [], lambda _: next(reasons)), 60.0, listener)
    assert world.clock.slept == [0.2] * 2
    assert [text for _, text in listener.updates] == ["no node responds"] * 2


def test_draining_begins_again_after_a_time_in_which_no_node_responds(world: Scripted, tmp_path: Path) -> None:
    """Nobody knows what the mempools held in that time, whatever the height is afterwards."""
    world.states = [both(5), {}, both(500), both(501), both(502)]
    assert _drain(_watch(world, tmp_path), 60.0, Listener())
    assert world.clock.slept == [0.2] * 4


def test_draining_ends_at_the_limit_if_no_node_responds(world: Scripted, tmp_path: Path) -> None:
    assert not _drain(_watch(world, tmp_path), 0.25, Listener())
    assert world.clock.slept == [0.2] * 2


@pytest.mark.parametrize(("states", "drained"), [([both(5), both(6), both(7)], True), ([both(5, 1)], False)])
def test_without_a_time_limit_only_empty_mempools_are_drained(
    world: Scripted, tmp_path: Path, states: list[States], *, drained: bool
) -> None:
    world.states = states
    listener = Listener()
    assert _drain(_watch(world, tmp_path), 0.0, listener) is drained
    assert {share for share, _ in listener.updates} <= {1.0}


def test_draining_reports_the_number_that_waits_and_the_time(world: Scripted, tmp_path: Path) -> None:
    world.states = [both(5, 1234), both(5, 1), both(5), both(6), both(6), both(7)]
    listener = Listener()
    assert _drain(_watch(world, tmp_path), 0.5, listener)
    waits = ["1234 transactions in the mempools", "1 transaction in the mempools", *["two more blocks"] * 3]
    assert listener.updates == list(zip([0.0, 0.4, 0.8, 1.0, 1.0], waits, strict=True))


def test_draining_waits_for_the_companions_too(world: Scripted, tmp_path: Path) -> None:
    """A node that still recovers must be seen to recover, before and after the limit for the transactions."""
    busy = Companion(is_finished=False)
    watch = _watch(world, tmp_path, busy)
    world.states = [both(5, 9)] * 8 + [both(6), both(7), both(8), both(9)]
    rest, rests = watch.rest, iter(range(100))

    def rest_and_end() -> None:
        busy.is_finished = next(rests) == 11
        rest()

    watch.rest = rest_and_end  # type: ignore[method-assign]
    assert _drain(watch, 1.0, Listener())
    assert len(world.clock.slept) == 12


def test_draining_ends_at_the_limit(world: Scripted, tmp_path: Path) -> None:
    world.states = [both(5, 9)]
    assert not _drain(_watch(world, tmp_path, Companion(least_rest_s=0.125)), 0.25, Listener())
    assert world.clock.slept == [0.125] * 2


def test_draining_stops_when_the_network_does(world: Scripted, tmp_path: Path) -> None:
    world.states = [both(5)]
    watch = _watch(world, tmp_path, stalled="no block for 30 s at height 5")
    assert _drain(watch, 1.0, Listener()) is False
    assert world.clock.slept == []


@pytest.mark.parametrize(
    ("before", "after", "stuck"),
    [
        ({"node0": 10, "node1": 9}, {"node0": 13, "node1": 9}, {"node1": "it stayed at height 9 of 13"}),
        ({"node0": 10, "node1": 9}, {"node0": 12, "node1": 9}, {}),
        ({"node0": 10}, {"node0": 13, "node1": 9}, {}),  # it had not responded before
        ({}, {"node0": 3}, {}),
        ({}, {}, {}),
        # Two blocks above 0 prove nothing, as two above 10.
        ({"node0": 0, "node1": 0}, {"node0": 2, "node1": 0}, {}),
        ({}, {"node0": 2}, {}),
    ],
)
def test_a_node_has_stopped_if_it_misses_three_blocks(
    before: Mapping[str, int], after: Mapping[str, int], stuck: Mapping[str, str]
) -> None:
    """A node may be a block behind when it is queried."""
    assert _stopped(before, after) == stuck


def test_a_halt_is_looked_for_once_per_second_and_reported_after_the_limit(world: Scripted) -> None:
    """Height 0 at second 1 is the first that is seen: the limit counts from there."""
    heights = iter([0, 0, 0, 0])
    stall = Stall(3.0, lambda _: next(heights))
    results = []
    for after_s in (0.99, 1.0, 1.99, 3.0, 4.0, 5.0):
        world.clock.now_s = BEGAN_S + after_s
        results.append(stall.look({}, is_intended=False))
    assert results == [*[""] * 5, "no block for 3 s at height 0"]
    assert list(heights) == []


def test_the_watch_records_each_death_once(world: Scripted, tmp_path: Path) -> None:
    watch = _watch(world, tmp_path)
    world.processes.lost = ["node1 died"]
    assert watch.look()
    world.clock.now_s += 1
    world.processes.lost = ["node1 died", "node0 died"]
    assert watch.look()
    watch.look_for_deaths()
    assert watch.deaths == ["node1 died", "node0 died"]
    assert watch.incidents == [
        Incident(time_ns=100 * NS, what="node1 died"),
        Incident(time_ns=101 * NS, what="node0 died"),
    ]
    # Reports of other machines may be that old while the load runs; the last check needs the current state.
    assert world.processes.ages_s == [2.0, 2.0, 0.0]


@pytest.mark.parametrize("is_finished", [True, False])
def test_the_watch_ends_a_run_of_a_halted_network_once(world: Scripted, tmp_path: Path, *, is_finished: bool) -> None:
    """An activity on the nodes that still goes on may halt the network on purpose."""
    reasons = iter(["", "no block for 30 s at height 5"])
    companion = Companion(is_finished)
    intended: list[bool] = []

    def stalled(is_intended: bool) -> str:
        intended.append(is_intended)
        return next(reasons)

    watch = _Watch(world.network, [], tmp_path, [Companion(), companion], stalled)
    assert watch.broken_off == ""
    assert [watch.look() for _ in range(3)] == [True, False, False]
    assert watch.broken_off == "no block for 30 s at height 5"
    assert watch.incidents == [Incident(time_ns=100 * NS, what="no block for 30 s at height 5")]
    assert companion.calls == Counter(step=1)
    assert intended == [not is_finished] * 2


def test_a_network_whose_nodes_all_died_has_ended(world: Scripted, tmp_path: Path) -> None:
    watch = _watch(world, tmp_path)
    first, second = (cast(Process, node.process) for node in world.network.nodes)
    first.is_over = True
    assert watch.look()
    second.is_over = True
    assert not watch.look()
    assert watch.broken_off == "all nodes died"


def test_a_failed_sampler_or_a_full_disk_ends_a_run(
    world: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures of the rest of the run would be missing, which is not the network's fault."""
    broken = _Watch(world.network, [ticker(), ticker(OSError("no sample"))], tmp_path, [], lambda _: "")
    with pytest.raises(OSError, match="no sample"):
        broken.look()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=(64 << 20) - 1))
    with pytest.raises(EnvironmentFailure, match=f"63 MiB are left in {tmp_path}"):
        _watch(world, tmp_path).look()


@pytest.mark.parametrize(("rests", "expected"), [([], 0.2), ([1.0], 0.2), ([0.1, 0.05], 0.05)])
def test_the_watch_rests_until_the_first_activity_is_due(
    world: Scripted, tmp_path: Path, rests: list[float], expected: float
) -> None:
    _watch(world, tmp_path, *(Companion(least_rest_s=rest) for rest in rests)).rest()
    assert world.clock.slept == [expected]


def test_a_load_runs_to_its_end_and_its_progress_is_reported(world: Scripted, tmp_path: Path) -> None:
    load = Load([counts(0, 0, 0, 0), counts(1, 1, 1, 1), counts(4000, 3000, 2000, 1000)])
    companion, listener = Companion(), Listener()
    assert _run_load(cast(Any, load), _watch(world, tmp_path, companion), listener) == cast(Any, "records")
    assert listener.updates == [
        (0.0, "0 sent, 0 accepted"),
        (1.0, "1 sent, 1 accepted"),
        (0.75, "2000 sent, 1000 accepted"),
    ]
    assert load.calls == ["stop", "finish"]
    assert companion.calls == Counter({"step": 3, "load ended": 1})
    assert world.clock.slept == [0.2] * 3


def test_a_load_on_a_halted_network_ends(world: Scripted, tmp_path: Path) -> None:
    load, companion = Load([counts(9, 1, 1, 1)]), Companion()
    _run_load(cast(Any, load), _watch(world, tmp_path, companion, stalled="no block"), Listener())
    assert (load.calls, companion.calls) == (["stop", "finish"], Counter({"load ended": 1}))


@pytest.mark.parametrize(
    ("lost", "message", "died"),
    [([], "refused", False), (["node0 died", "node1 died"], "node0 died; node1 died", True)],
)
def test_a_node_that_accepts_no_load_is_the_networks_failure(
    world: Scripted, lost: list[str], message: str, *, died: bool
) -> None:
    world.processes.lost = lost
    load = Load()
    load.failure = EnvironmentFailure("refused", "look at it")
    load.start = load.observe  # type: ignore[method-assign,assignment]
    for attempt in (lambda: _start(world.network, cast(Any, load)), lambda: _enter(world, load)):
        with pytest.raises(NetworkFailure) as error:
            attempt()
        assert (error.value.message, error.value.hint, error.value.died) == (message, "look at it", died)
        assert error.value.network is world.network


def _enter(world: Scripted, load: Load) -> None:
    with _observing(world.network, cast(Any, load)):
        raise AssertionError("not observed")


def test_a_lost_machine_is_not_the_networks_failure(world: Scripted) -> None:
    load = Load()
    load.failure = LostMachineError("gone", "replace it", "10.0.0.9")
    with pytest.raises(LostMachineError):
        _enter(world, load)


def test_messages_are_observed_until_the_end_even_of_a_failed_run(world: Scripted) -> None:
    load = Load(events=[(1, b"a")])
    with _observing(world.network, cast(Any, load)) as messages:
        assert messages == []
    assert messages == [(1, b"a")]
    load = Load()
    with pytest.raises(ZeroDivisionError), _observing(world.network, cast(Any, load)):
        raise ZeroDivisionError
    assert load.calls == ["observe", "end observation"]


def _record(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[object, ...]]:
    """The arguments with which an object of the module is made; each is the string of its name."""
    made: list[tuple[object, ...]] = []

    def make(*arguments: object) -> str:
        made.append(arguments)
        return name

    monkeypatch.setattr(workload, name, make)
    return made


def test_perturbations_begin_with_the_window_and_joining_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbers, rotations = _record(monkeypatch, "Disturber"), _record(monkeypatch, "Rotation")
    instruments: Any = object()
    assert _companions(instruments, load_order(), 100 * NS) == (None, None)
    order = load_order(
        load={"warm_up_s": 2.5},
        perturbation=[{"kind": "kill", "nodes": [1], "at_s": 1}],
        recovery_timeout_s=9,
        rotating={"joiners": 1},
    )
    links: Any = object()
    order = LoadRequest(order.profile, order.seed, order.experiment_id, links)
    assert _companions(instruments, order, 100 * NS) == cast(Any, ("Disturber", "Rotation"))
    profile = order.profile
    assert disturbers == [(instruments, profile.perturbation, 102 * NS + NS // 2, 9.0, links)]
    assert rotations == [(instruments, profile.rotating)]


@pytest.mark.parametrize("hosts", [(), ("a host",)], ids=["here", "other hosts"])
@pytest.mark.parametrize("prepared", [None, Prepared(cast(Any, "sends"), [[b"t"]])], ids=["payloads", "prepared"])
def test_the_offered_load_is_that_of_the_profile(
    world: Scripted, monkeypatch: pytest.MonkeyPatch, hosts: tuple[Any, ...], prepared: Prepared | None
) -> None:
    """Every setting reaches the generator: one that does not would be reported, yet not applied."""
    here, elsewhere = _record(monkeypatch, "TransactionGenerator"), _record(monkeypatch, "RemoteGenerators")
    world.network.measuring, world.network.prepared = hosts, prepared
    load = {
        **{"targets": [1, 0], "connections": 2, "rate": 30, "size_bytes": 300, "method": "async"},
        **{"schedule": "burst", "warm_up_s": 1.5, "duration_s": 4.0, "answer_timeout_s": 3.0, "send_grace_s": 2.0},
    }
    made = _load_source(
        world.network, load_order(load=load), [world.network.node("node1"), world.network.node("node0")]
    )
    first, second = "ws://10.0.0.1:26657/websocket", "ws://10.0.0.0:26657/websocket"
    arguments = {
        **{"targets": [first, first, second, second], "rate_per_connection": 30, "duration_s": 5.5},
        **{"size_bytes": 300, "method": "async", "schedule": "burst", "seed": 7, "experiment_id": EXPERIMENT},
        **{"answer_timeout_s": 3.0, "send_grace_s": 2.0, "given": [[b"t"]] if prepared else None},
    }
    whole = GeneratorOrder(arguments, first, cast(Any, "sends") if prepared else None)
    assert (made, here, elsewhere) == (
        (cast(Any, "RemoteGenerators"), [], [(hosts, whole)]) if hosts else ("TransactionGenerator", [(whole,)], [])
    )


def test_events_that_cannot_be_stored_are_reported_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        _write_observed(tmp_path / "file" / "commits.jsonl.zst", [])
