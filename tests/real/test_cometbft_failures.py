"""Networks that fail: an application of the tests breaks real nodes, and the verdict must report it.

The machine may be busy: these tests check no performance figures, except that commits of 0.9 s count as slow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Protocol, cast

import pytest

import chainmark as cm
from chainmark.core.comparison import Comparison
from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.report.document import Document
from chainmark.store.sealed import SealedRun

from tests.real.mesh_servers import build
from tests.support import ANYHOW, QUICK, Lab, changed

# 300 transactions: the faults occur during the load, whenever the network is ready and however fast it makes blocks.
LOAD = (*ANYHOW, *QUICK, "load.rate=100", "gates.blocks_min=5")
# For a fault that leaves transactions pending: all others are in blocks long before.
PATIENCE = "load.drain_timeout_s=6"
OFFERED, REFUSED_AFTER = 300, 100
ONE_OF_FOUR = ("-only", "node2", "-panic-at", "2")
ALL_PANIC = ("-panic-at", "2")
REFUSING = ("-refuse-after", str(REFUSED_AFTER))


def _options(faults: Sequence[str], changes: Sequence[str]) -> list[str]:
    application = [str(build("faulty-app")), "-address", "{address}", "-node", "{node}", "-home", "{home}", *faults]
    settings = changed(*LOAD, f"application.command={json.dumps(application)}", *changes)
    return ["cometbft/demo", "--version", "v1.0.1", *settings]


class Maker(Protocol):
    """Makes a run, or returns the cached one."""

    def __call__(self, *faults: str, code: int = 1, number: int = 0, changes: tuple[str, ...] = ()) -> SealedRun:
        """A run with these faults and settings. It must end with ``code``."""


@pytest.fixture(scope="module")
def make_run(shared_lab: Lab) -> Maker:
    """Runs by the faults of their applications; ``number`` distinguishes runs with the same faults."""

    @cache
    def make(*faults: str, code: int = 1, number: int = 0, changes: tuple[str, ...] = ()) -> SealedRun:
        (run,) = shared_lab.runs(*_options(faults, changes), "--seed", str(1 + number), code=code)
        return run

    return make


def _gate(run: SealedRun, gate_id: str) -> Gate:
    return next(gate for gate in run.manifest.gates if gate.id == gate_id)


def _failed(run: SealedRun) -> set[str]:
    return {gate.id for gate in run.manifest.failed_gates}


def _compared(lab: Lab, baseline: Sequence[SealedRun], candidate: Sequence[SealedRun]) -> Document:
    return cm.compare(*([run.run_id for run in side] for side in (baseline, candidate)), store=lab.store_path)


def _reported(document: Document) -> list[str]:
    """What a reader sees first: the sentence and the reasons."""
    return [document.sentence, *cast(Comparison, document.result).reasons]


def _sound(make_run: Maker, first: int, count: int) -> list[SealedRun]:
    return [make_run(code=0, number=number) for number in range(first, first + count)]


def test_a_panic_on_a_block_is_reported_with_its_message(make_run: Maker) -> None:
    """Three of four nodes continue: all figures look sound although a node has crashed."""
    run = make_run(*ONE_OF_FOUR)
    assert run.manifest.status is Status.FAILED
    words = r"the application of node2 exited with code 2, last line `panic: cannot execute block \d+`"
    assert re.search(words, _gate(run, "nodes_alive").measured)
    assert run.manifest.counts["transactions"]["committed"] > 0
    assert (run.path / "raw" / "logs" / "node2.application.log.zst").is_file()


def test_a_run_whose_nodes_all_crash_is_sealed(make_run: Maker) -> None:
    """Before, the command ended with an error and stored nothing to compare."""
    run = make_run(*ALL_PANIC)
    assert run.manifest.status is Status.FAILED
    # A node executes the block once it has enough votes. The others may lose their peers before they receive them.
    assert "last line `panic: cannot execute block " in _gate(run, "nodes_alive").measured
    assert _gate(run, "going_on").status is GateStatus.FAIL
    assert run.manifest.counts["transactions"]["offered"] == OFFERED
    assert run.events("transactions").height == OFFERED


def test_an_application_killed_by_the_kernel_is_reported_with_the_signal(make_run: Maker) -> None:
    run = make_run("-only", "node1", "-kill-at", "2")
    assert run.manifest.status is Status.FAILED
    assert "the application of node1 was killed by SIGKILL" in _gate(run, "nodes_alive").measured


def test_a_network_without_a_majority_ends_the_load_and_the_run(make_run: Maker) -> None:
    """Two of four nodes refuse to continue. The other two keep running and commit no block."""
    longer = ("gates.no_block_max_s=3", "load.duration_s=300", "load.rate=20")
    run = make_run("-only", "node2,node3", "-hang-at", "2", changes=longer)
    # The load was ended early: the generator is not responsible for the many unsent transactions.
    assert run.manifest.counts["transactions"]["unsent"] > 0
    assert run.manifest.status is Status.FAILED
    assert re.fullmatch(r"no block for 3 s at height \d+", _gate(run, "going_on").measured)
    assert _gate(run, "nodes_alive").status is GateStatus.PASS


def test_rejected_transactions_are_a_failure_of_the_network(make_run: Maker) -> None:
    run = make_run(*REFUSING)
    assert run.manifest.status is Status.FAILED
    assert "committed" in _failed(run)
    assert run.manifest.counts["answers"]["check code"] == OFFERED - REFUSED_AFTER
    assert _gate(run, "lost").status is GateStatus.PASS


def test_accepted_but_lost_transactions_are_counted_individually(make_run: Maker) -> None:
    """One in ten transactions leaves the mempool without a block: 90 % are committed, and none is pending."""
    run = make_run("-lose", "10")
    account = run.manifest.counts["transactions"]
    assert account["lost"] > 0
    assert account["accepted"] == account["committed"] + account["lost"] == OFFERED
    assert _gate(run, "lost").measured == f"{account['lost']} accepted transactions lost"
    assert (_gate(run, "accounting").status, _gate(run, "drained").status) == (GateStatus.PASS, GateStatus.PASS)


def test_transactions_that_wait_forever_are_pending_and_not_lost(make_run: Maker) -> None:
    run = make_run("-hold", "10", changes=(PATIENCE,))
    account = run.manifest.counts["transactions"]
    assert run.manifest.status is Status.FAILED
    assert (account["lost"], account["pending"]) == (0, OFFERED - account["committed"])
    assert account["pending"] > 0
    assert "drained" in _failed(run)


def test_transactions_beyond_a_nodes_list_of_pending_ones_are_not_called_lost(make_run: Maker) -> None:
    """Half of 300 transactions are pending. Each node lists the first hundred that reached it."""
    run = make_run("-hold", "2", changes=(PATIENCE,))
    account = run.manifest.counts["transactions"]
    assert account["lost"] == 0
    assert account["pending"] >= 100
    assert account["pending or lost"] == OFFERED - account["committed"] - account["pending"] > 0
    gate = _gate(run, "lost")
    assert gate.status is GateStatus.UNKNOWN
    assert gate.measured == f"between 0 and {account['pending or lost']} accepted transactions lost"
    assert _gate(run, "accounting").status is GateStatus.PASS


def test_a_rejected_transaction_in_a_block_is_a_wrong_response(make_run: Maker) -> None:
    # The node that rejected them also proposes them: the load's node, which has nearly all turns.
    run = make_run("-commit-refused", "10", changes=("network.voting_powers=[97, 1, 1, 1]",))
    count = run.manifest.counts["transactions"]["rejected but committed"]
    assert count > 0
    assert _gate(run, "answers").measured == f"{count} rejected transactions were committed"
    assert run.manifest.status is Status.FAILED


def test_three_start_attempts_of_a_node_are_reported_and_a_node_that_never_starts_fails(make_run: Maker) -> None:
    run = make_run("-only", "node1", "-fail-starts", "2", code=0)
    assert run.manifest.status is Status.VALID
    gate = _gate(run, "started")
    assert (gate.status, gate.measured.count("the database is locked")) == (GateStatus.WARN, 1)
    assert (
        len([incident for incident in run.manifest.incidents if "the application of node1 exited" in incident.what])
        == 2
    )
    never = make_run("-only", "node1", "-fail-starts", "99")
    assert never.manifest.status is Status.FAILED
    assert "the database is locked` while the network started, 3 times" in _gate(never, "network").measured
    assert never.summaries() == {}


def test_one_failed_run_of_three_fails_the_candidate(make_run: Maker, shared_lab: Lab) -> None:
    """The results of its other two runs do not matter."""
    document = _compared(shared_lab, _sound(make_run, 0, 3), [*_sound(make_run, 3, 2), make_run(*ONE_OF_FOUR)])
    assert document.verdict.value == "fail"
    assert document.sentence.startswith("v1.0.1 (candidate) failed 1 of 3 runs: the application of node2 exited")
    assert "; v1.0.1 (baseline) failed none of 3" in document.sentence


def test_a_candidate_that_fails_every_run_fails(make_run: Maker, shared_lab: Lab) -> None:
    candidate = [make_run(*ALL_PANIC), make_run(*REFUSING), make_run("-lose", "10")]
    document = _compared(shared_lab, _sound(make_run, 0, 3), candidate)
    assert document.verdict.value == "fail"
    assert document.sentence.startswith("v1.0.1 (candidate) failed 3 of 3 runs: ")


def test_a_candidate_whose_nodes_never_start_fails(make_run: Maker, shared_lab: Lab) -> None:
    """Such a run has no samples at all."""
    document = _compared(shared_lab, _sound(make_run, 0, 3), [make_run("-only", "node1", "-fail-starts", "99")])
    assert document.verdict.value == "fail"


def test_a_failing_baseline_is_reported_and_fails_no_candidate(make_run: Maker, shared_lab: Lab) -> None:
    baseline, candidate = [*_sound(make_run, 3, 2), make_run(*ONE_OF_FOUR)], _sound(make_run, 0, 3)
    document = _compared(shared_lab, baseline, candidate)
    text = " ".join(_reported(document))
    assert "v1.0.1 (baseline) failed 1 of 3 runs: the application of node2 exited" in text
    assert "a baseline with failed runs is a weak reference" in text
    whole = [make_run(*ALL_PANIC), make_run(*REFUSING), make_run("-lose", "10")]
    assert _compared(shared_lab, whole, candidate).verdict.value == "inconclusive"


def test_no_candidate_passes_if_both_sides_fail(make_run: Maker, shared_lab: Lab) -> None:
    baseline, candidate = (
        [make_run("-lose", "10"), *_sound(make_run, 0, 2)],
        [make_run(*ONE_OF_FOUR), *_sound(make_run, 2, 2)],
    )
    document = _compared(shared_lab, baseline, candidate)
    assert document.verdict.value in {"inconclusive", "fail"}
    text = " ".join(_reported(document))
    assert "failed 1 of 3 runs" in text
    assert "is not shown to fail more often than v1.0.1 (baseline) (Fisher's exact test" in text


def test_a_node_with_a_diverging_state_is_named_although_the_others_continue(make_run: Maker) -> None:
    """The node's consensus stops, while its process keeps running and responds."""
    run = make_run("-only", "node3", "-lie-at", "1", changes=(PATIENCE,))
    assert run.manifest.status is Status.FAILED
    gate = _gate(run, "following")
    assert gate.status is GateStatus.FAIL
    assert re.search(r"^node3 stopped: .*wrong Block\.Header\.AppHash$", gate.measured), gate.measured
    assert _gate(run, "nodes_alive").status is GateStatus.PASS
    assert run.manifest.counts["transactions"]["committed"] == OFFERED


def test_transactions_that_an_application_fails_in_a_block_are_not_committed(make_run: Maker) -> None:
    run = make_run("-fail", "10")
    account = run.manifest.counts["transactions"]
    assert account["failed"] > 0
    assert account["accepted"] == account["committed"] + account["failed"] == OFFERED
    assert f"{account['failed']} × failed in a block with code 5 of test: no funds" in run.manifest.warnings
    assert "committed" in _failed(run)
    assert (_gate(run, "accounting").status, _gate(run, "lost").status) == (GateStatus.PASS, GateStatus.PASS)


def test_an_application_that_leaks_memory_per_transaction_is_worse(make_run: Maker, shared_lab: Lab) -> None:
    """The nodes' own processes stay small, but 300 transactions leave 150 MB in each application."""
    growing = [make_run("-grow", "500000", code=0, number=number) for number in range(3)]
    document = _compared(shared_lab, _sound(make_run, 0, 3), growing)
    judged = cast(Comparison, document.result).judgements
    memory = next(judgement for judgement in judged if judgement.metric_id == "node_rss_bytes")
    assert memory.outcome.value == "worse", _reported(document)


def test_commits_that_take_four_times_as_long_fail_by_the_block_interval(make_run: Maker, shared_lab: Lab) -> None:
    """Before, such a network committed too few blocks for a gate, which made the run invalid."""
    slow = [make_run("-sleep", "700ms", code=0, number=number) for number in range(3)]
    assert all(run.manifest.status is Status.VALID for run in slow)
    assert all(_gate(run, "blocks").status is GateStatus.WARN for run in slow)
    document = _compared(shared_lab, _sound(make_run, 0, 3), slow)
    assert document.verdict.value == "fail", _reported(document)
    judged = {
        judgement.metric_id: judgement.outcome.value for judgement in cast(Comparison, document.result).judgements
    }
    assert judged["block_interval_s"] == "worse", judged
