"""Transactions that are in a block but failed: found by height and position, and counted in a separate class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from chainmark.core.errors import InternalError
from chainmark.core.progress import Silent
from chainmark.store.runs import Store
from chainmark.systems.cometbft.ingest import (
    FAILED_SCHEMA,
    ChainReading,
    Events,
    TransactionCounts,
    balance,
    collect,
    failure_reasons,
)
from chainmark.systems.cometbft.rpc import RpcClient
from chainmark.systems.cometbft.workload import PendingTransactions

from tests.unit.systems.cometbft.chains import (
    ACCEPTED,
    CHECK_CODE,
    OURS,
    THEIRS,
    Chain,
    measurement,
    records,
    transaction,
)

MINE = [transaction(number) for number in range(8)]
FOREIGN = transaction(0, THEIRS)
POOR: Mapping[str, object] = {"code": 5, "codespace": "sdk", "log": "insufficient funds"}
SILENT: Mapping[str, object] = {"code": 9}
# Transactions 1, 3 and 4 of the run and the foreign one fail. Block 8 is empty.
BLOCKS = {7: [MINE[0], MINE[1]], 8: [], 9: [FOREIGN, MINE[3], MINE[2]], 10: [MINE[4]]}
FAILED: Mapping[int, Mapping[int, Mapping[str, object]]] = {7: {1: POOR}, 9: {0: POOR, 1: SILENT}, 10: {0: POOR}}
LOAD = records([(transaction, ACCEPTED) for transaction in MINE[:7]])


def _read(monkeypatch: pytest.MonkeyPatch, chain: Chain, load: Any = LOAD, **changes: Any) -> Events:
    monkeypatch.setattr(RpcClient, "call", lambda self, method, **parameters: chain.call(method, **parameters))
    reading = ChainReading(OURS, **{"has_results": True, **changes})
    return collect(measurement(load, last=10), reading, Silent())


def _digest(payload: bytes) -> bytes:
    return sha256(payload).digest()


def _accounting(events: Events, load: Any = LOAD, *held: bytes) -> TransactionCounts:
    waiting = PendingTransactions(frozenset(map(_digest, held)), len(held))
    return balance(events, measurement(load, last=10, waiting=waiting), None)


def test_failed_transactions_are_listed_with_block_position_and_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = _read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED)).failed
    assert failed is not None
    assert failed.schema == FAILED_SCHEMA
    assert failed.rows() == [
        (_digest(MINE[1]), 7, 1, 5, "sdk", "insufficient funds"),
        (_digest(MINE[3]), 9, 1, 9, "", ""),
        (_digest(MINE[4]), 10, 0, 5, "sdk", "insufficient funds"),
    ]


def test_failed_transactions_do_not_count_as_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an application that rejects everything in its blocks would look as fast as one that executes it."""
    table = _read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED)).transactions
    height = {bytes(digest): height for digest, height in table.select("hash", "height").rows()}
    assert [height[_digest(transaction)] for transaction in MINE[:7]] == [7, None, 9, None, None, None, None]


def test_counts_separate_failed_committed_pending_and_lost_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    events = _read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED))
    counts = _accounting(events, LOAD, MINE[5], MINE[1])
    assert counts.counts["transactions"] == {
        "offered": 7, "unsent": 0, "rejected": 0, "accepted": 7, "committed": 2, "failed": 3, "pending": 1, "lost": 1,
        "rejected but committed": 0,
    }  # fmt: skip
    assert counts.counts["chain"]["ours"] == 5
    assert counts.counts["chain"]["of other experiments"] == 1
    assert (counts.problems, counts.contradictions, counts.lost) == ([], [], 1)


def test_a_rejected_transaction_that_fails_in_a_block_is_a_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only accepted transactions count as failed. Otherwise a rejected one could hide a lost one."""
    load = records([(MINE[0], ACCEPTED), (MINE[1], CHECK_CODE), (MINE[2], ACCEPTED), (MINE[3], ACCEPTED)])
    totals = _accounting(_read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED), load), load)
    counts = totals.counts["transactions"]
    assert (counts["accepted"], counts["failed"], counts["rejected but committed"]) == (3, 1, 1)
    assert totals.contradictions == ["1 rejected transactions were committed"]


def test_the_sum_of_accepted_transactions_includes_failed_ones_if_results_were_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = records([(MINE[0], CHECK_CODE), (MINE[1], ACCEPTED), (MINE[2], ACCEPTED), (MINE[3], ACCEPTED)])
    chain = Chain({**BLOCKS, 7: [MINE[1]], 10: []}, {}, failed={9: FAILED[9]})
    for is_asked, expected in ((True, "committed + failed + pending + lost"), (False, "committed + pending + lost")):
        events = _read(monkeypatch, chain, load, has_results=is_asked)
        assert _accounting(events, load).problems == []
        # A rejected transaction that is pending nevertheless.
        assert _accounting(events, load, MINE[0]).problems == [f"accepted 3 ≠ {expected} 4"]


def test_without_block_results_there_is_no_failed_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of 0 would claim that nothing failed."""
    chain = Chain(BLOCKS, {}, failed=FAILED)
    events = _read(monkeypatch, chain, has_results=False)
    assert events.failed is None
    assert "block_results" not in {method for method, _ in chain.calls}
    assert "failed" not in _accounting(events).counts["transactions"]
    assert _accounting(events).counts["transactions"]["committed"] == 5
    assert failure_reasons(events) == []


def test_an_application_without_failures_has_a_failed_class_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    events = _read(monkeypatch, Chain(BLOCKS, {}))
    assert events.failed is not None
    assert (events.failed.schema, events.failed.rows()) == (FAILED_SCHEMA, [])
    assert _accounting(events).counts["transactions"]["failed"] == 0
    assert failure_reasons(events) == []


def test_a_second_copy_that_fails_does_not_undo_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain({7: [MINE[0]], 8: [], 9: [MINE[0]], 10: []}, {}, failed={9: {0: POOR}})
    events = _read(monkeypatch, chain)
    assert events.failed is not None
    assert events.failed.is_empty()
    assert (events.transactions["height"].drop_nulls().to_list(), events.duplicates) == ([7], 1)


def test_results_are_requested_only_for_blocks_with_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(BLOCKS, {}, failed=FAILED)
    _read(monkeypatch, chain)
    assert [parameters["height"] for method, parameters in chain.calls if method == "block_results"] == [7, 9, 10]


def test_results_have_the_timeout_of_blocks_and_dead_nodes_are_not_queried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node needs more than the usual ten seconds to return the results of a full block."""
    requests: set[tuple[str, float | None]] = set()
    chain = Chain(BLOCKS, {}, failed=FAILED)

    def call(self: RpcClient, method: str, **parameters: int) -> dict[str, Any]:
        if method == "block_results":
            requests.add((self.address, self._client.timeout.read))
        return chain.call(method, **parameters)

    monkeypatch.setattr(RpcClient, "call", call)
    reading = ChainReading(OURS, has_results=True)
    collect(measurement(LOAD, last=10, reader=SimpleNamespace(rpc_address="10.1.2.3")), reading, Silent())
    assert requests == {("10.1.2.3", 60.0)}
    gone = collect(measurement(LOAD, reader=None), reading, Silent()).failed
    assert gone is not None
    assert gone.is_empty()


def test_each_reason_is_reported_once_with_its_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons are in the order of codespace and code. A code has another meaning in another codespace."""
    message = [
        SILENT,
        POOR,
        {"code": 4, "codespace": "sdk", "log": "unauthorized"},
        POOR,
        {"code": 5, "codespace": "wasm"},
    ]
    failed = {7: dict(enumerate(message))}
    events = _read(monkeypatch, Chain({7: MINE[:5], 8: [], 9: [], 10: []}, {}, failed=failed))
    assert failure_reasons(events) == [
        "1 × failed in a block with code 9: no reason stated",
        "1 × failed in a block with code 4 of sdk: unauthorized",
        "2 × failed in a block with code 5 of sdk: insufficient funds",
        "1 × failed in a block with code 5 of wasm: no reason stated",
    ]


def test_transactions_without_an_id_are_identified_by_the_sent_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """This applies to other applications: transactions not sent by this run are foreign, and none is undecodable."""
    signed = [b"signed one", b"signed two", b"signed by somebody else"]
    load = records([(transaction, ACCEPTED) for transaction in signed[:2]])
    chain = Chain({7: [signed[2], signed[0]], 8: [MINE[0]], 9: [signed[1]], 10: []}, {})
    events = _read(monkeypatch, chain, load, by_hash=True)
    assert events.transactions.select("height", "index_in_block").rows() == [(7, 1), (9, 0)]
    assert (events.foreign_transactions, events.undecodable, events.duplicates) == (2, 0, 0)


def test_reasons_of_one_codespace_are_in_order_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run must give the same warnings."""
    failed = {7: {place: {"code": code, "codespace": "sdk"} for place, code in enumerate([7, 11, 3, 5, 13, 2, 17, 4])}}
    load = records([(transaction, ACCEPTED) for transaction in MINE])
    events = _read(monkeypatch, Chain({7: MINE, 8: [], 9: [], 10: []}, {}, failed=failed), load)
    codes = [int(text.split(" code ")[1].split(" ")[0]) for text in failure_reasons(events)]
    assert codes == [2, 3, 4, 5, 7, 11, 13, 17]


@pytest.mark.parametrize("queried", [True, False])
def test_every_event_is_stored_with_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, queried: bool) -> None:
    """Raw files may be removed later. Without a query there is no table of failed transactions."""
    events = _read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED), has_results=queried)
    run = Store(tmp_path).create("cometbft", "demo", "v1", {})
    events.write(run)
    frames = {path.stem: pl.read_parquet(path) for path in (run.path / "events").iterdir()}
    expected = {"transactions": events.transactions, "blocks": events.blocks, "scrapes": events.scrapes}
    expected |= {} if events.failed is None else {"failed": events.failed}
    assert frames.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(frames[name], frame)
    assert ("failed" in frames) is queried


@pytest.mark.parametrize("name", ["transactions", "blocks", "scrapes", "failed"])
def test_events_of_another_form_are_not_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    events = _read(monkeypatch, Chain(BLOCKS, {}, failed=FAILED))
    frame = getattr(events, name)
    changed = replace(events, **{name: frame.rename({frame.columns[0]: "other"})})
    with pytest.raises(InternalError, match=f"events of `{name}`"):
        changed.write(Store(tmp_path).create("cometbft", "demo", "v1", {}))
