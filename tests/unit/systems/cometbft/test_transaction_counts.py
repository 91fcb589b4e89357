"""From collected data to events and transaction counts: each transaction is in one class, or a gate fails."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.progress import Silent
from chainmark.network.sampling import SCRAPE_MARK
from chainmark.systems.cometbft.answers import ANSWERS
from chainmark.systems.cometbft.ingest import (
    BLOCK_SCHEMA,
    SCRAPE_SCHEMA,
    TRANSACTION_SCHEMA,
    ChainReading,
    Events,
    TransactionCounts,
    balance,
    collect,
    observed_commits,
    read_page,
    read_scrapes,
)
from chainmark.systems.cometbft.rpc import METAS_PER_CALL, RpcClient
from chainmark.systems.cometbft.workload import PendingTransactions

from tests.unit.systems.cometbft.chains import (
    ACCEPTED,
    CHECK_CODE,
    IN_CACHE,
    MEMPOOL_FULL,
    NS,
    OURS,
    RPC_ERROR,
    THEIRS,
    TIMEOUT,
    UNSENT,
    Chain,
    measurement,
    records,
    transaction,
)

MINE = [transaction(number) for number in range(12)]
BLOCKS = {7: [], 8: [MINE[0], transaction(0, THEIRS), b"x=y"], 9: [MINE[1], MINE[0]], 10: [MINE[2]]}
# Block 8 needed two more rounds and lacked one vote, as recorded in block 9.
COMMITS = {7: (0, 0), 8: (2, 1), 9: (0, 3)}
LOAD = records([(MINE[0], ACCEPTED), (MINE[1], ACCEPTED), (MINE[2], TIMEOUT), (MINE[3], TIMEOUT), (None, UNSENT)])


def read(monkeypatch: pytest.MonkeyPatch, chain: Chain, load: Any = LOAD, **changes: Any) -> Events:
    monkeypatch.setattr(RpcClient, "call", lambda self, method, **parameters: chain.call(method, **parameters))
    return collect(measurement(load, **{"last": 10, **changes}), ChainReading(OURS), Silent())


def test_round_and_missing_votes_come_from_the_commit_in_the_next_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the block's own `last_commit`, a slow round would be attributed to the block after the slow one."""
    blocks = read(monkeypatch, Chain(BLOCKS, COMMITS)).blocks
    assert blocks["height"].to_list() == [7, 8, 9, 10]
    assert blocks["round"].to_list() == [0, 2, 0, None]
    assert blocks["missing_votes"].to_list() == [0, 1, 3, None]
    # All other values come from the block itself.
    assert blocks["time_ns"].to_list() == [7 * NS, 8 * NS, 9 * NS, 10 * NS]
    assert blocks["proposer"].to_list() == ["P7", "P8", "P9", "P10"]
    assert blocks["transactions"].to_list() == [0, 3, 2, 1]
    assert blocks["header_transactions"].to_list() == [0, 3, 2, 1]
    assert blocks["size_bytes"].to_list() == [700, 800, 900, 1000]


def test_blocks_have_the_time_at_which_their_commit_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [(88, b'{"result":{"data":{"value":{"header":{"height":"8"}}}}}')]
    blocks = read(monkeypatch, Chain(BLOCKS, COMMITS), observed=seen).blocks
    assert blocks["observed_ns"].to_list() == [None, 88, None, None]


def test_the_chain_is_read_from_the_first_height_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Height 0 does not exist; a run that starts before the first block starts with that block."""
    heights = range(1, METAS_PER_CALL + 3)
    chain = Chain({height: [] for height in heights}, {})
    blocks = read(monkeypatch, chain, first=0, last=heights[-1]).blocks
    assert blocks["height"].to_list() == list(heights)
    assert blocks["size_bytes"].to_list() == [100 * height for height in heights]
    assert blocks["round"].to_list() == [0] * (len(heights) - 1) + [None]


def test_a_transaction_is_found_in_its_first_block_and_keeps_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    events = read(monkeypatch, Chain(BLOCKS, COMMITS))
    table = events.transactions
    # Two connections alternate, and the rows are in the order of connection and sequence.
    assert table.select("connection", "sequence").rows() == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert table["height"].to_list() == [8, 10, None, 9, None]
    assert table["index_in_block"].to_list() == [0, 0, None, 0, None]
    assert table["answer"].to_list() == ["accepted", "timeout", "unsent", "accepted", "timeout"]
    millisecond = NS // 1000
    assert table["due_ns"].to_list() == [0, 2 * millisecond, 4 * millisecond, millisecond, 3 * millisecond]
    assert table["sent_ns"].to_list() == [millisecond, 3 * millisecond, None, 2 * millisecond, 4 * millisecond]
    assert table["answered_ns"].to_list() == [2 * millisecond, None, None, 3 * millisecond, None]
    assert (events.duplicates, events.foreign_transactions, events.undecodable) == (1, 1, 1)


def test_rows_are_ordered_by_connection_and_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are in the order of their responses; the same load must give the same file."""
    load = records([(transaction, ACCEPTED) for transaction in MINE[:4]], sequence=struct.pack("<4I", 1, 3, 0, 2))
    table = read(monkeypatch, Chain(BLOCKS, COMMITS), load).transactions
    assert table.select("connection", "sequence").rows() == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_the_chain_is_read_from_a_responding_node_with_a_long_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: set[tuple[str, float | None]] = set()
    chain = Chain(BLOCKS, COMMITS)

    def call(self: RpcClient, method: str, **parameters: int) -> dict[str, Any]:
        requests.add((self.address, self._client.timeout.read))
        return chain.call(method, **parameters)

    monkeypatch.setattr(RpcClient, "call", call)
    collect(measurement(LOAD, last=10, reader=SimpleNamespace(rpc_address="10.1.2.3")), ChainReading(OURS), Silent())
    assert requests == {("10.1.2.3", 60.0)}


def test_events_have_fixed_types_even_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column without values would have no type, and could not be combined with that of another run."""
    chain = Chain({7: []}, {})
    monkeypatch.setattr(chain, "_meta", lambda height: {"header": {"height": "1"}, "block_size": "1", "num_txs": "0"})
    for load in (records([]), records([(MINE[5], TIMEOUT), (None, UNSENT)])):
        events = read(monkeypatch, chain, load, last=7)
        assert events.transactions.schema == pl.Schema(TRANSACTION_SCHEMA)
        assert events.blocks.schema == pl.Schema(BLOCK_SCHEMA)
        assert events.scrapes.schema == pl.Schema(SCRAPE_SCHEMA)
    # A block without a known size must not stop the reading.
    assert events.blocks.select("size_bytes", "header_transactions", "round").rows() == [(None, None, None)]


def test_scrapes_are_part_of_the_events_and_the_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "node0.zst"
    path.write_bytes(zstandard.compress(SCRAPE_MARK + b"5\ngo_goroutines 20\ngo_threads 7\n"))
    events = read(monkeypatch, Chain(BLOCKS, COMMITS), scrape_files={"node0": path})
    assert events.scrapes.rows() == [(5, "node0", "go_goroutines", 20.0)]
    counts = balance(events, measurement(LOAD), None).counts
    assert list(counts) == ["transactions", "answers", "metric lines", "chain"]
    assert counts["metric lines"] == {"pages": 1, "lines": 2, "kept": 1, "ignored": 1}


def test_messages_without_a_commit_are_skipped_and_the_first_arrival_counts() -> None:
    """An empty result confirms a subscription. The event from a second observer arrives later."""
    empty: list[dict[str, Any]] = [
        {},
        {"result": {}},
        {"result": {"data": {}}},
        {"result": {"data": {"value": {}}}},
        {"result": {"data": {"value": {"header": {}}}}},
    ]
    commits = [{"result": {"data": {"value": {"header": {"height": height}}}}} for height in ("8", "9", "8")]
    messages = [(number, json.dumps(message).encode()) for number, message in enumerate([*empty, *commits])]
    assert observed_commits(messages) == {8: 5, 9: 6}


def test_response_codes_and_sizes_are_stored_with_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    load = records([(MINE[0], ACCEPTED), (MINE[1], CHECK_CODE), (None, UNSENT)])
    table = read(monkeypatch, Chain(BLOCKS, COMMITS), load).transactions.sort("due_ns")
    assert table["check_code"].to_list() == [0, 33, 0]
    assert table["size_bytes"].to_list() == [256, 256, 256]
    assert table["hash"].to_list() == [*(sha256(payload).digest() for payload in MINE[:2]), bytes(32)]


def test_foreign_duplicate_and_undecodable_transactions_are_each_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = [transaction(number, THEIRS) for number in range(3)]
    chain = Chain({7: [MINE[0], *foreign], 8: [MINE[0], MINE[0], b"x=y", b"y=z"]}, {})
    events = read(monkeypatch, chain, last=8)
    assert (events.foreign_transactions, events.duplicates, events.undecodable) == (3, 2, 2)


class Listener:
    """Stores its messages."""

    def __init__(self) -> None:
        self.reported: list[object] = []

    def stage(self, name: str) -> None:
        """Store the stage."""
        self.reported.append(name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Store the update."""
        self.reported.append((fraction, detail))


def test_reading_a_chain_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run has thousands of blocks. The progress bar must not stop, exceed its end or go back."""
    chain = Chain(BLOCKS, COMMITS)
    monkeypatch.setattr(RpcClient, "call", lambda self, method, **parameters: chain.call(method, **parameters))
    listener = Listener()
    collect(measurement(LOAD, last=10), ChainReading(OURS), listener)
    blocks = [(0.25, "block 7"), (0.5, "block 8"), (0.75, "block 9"), (1.0, "block 10")]
    assert listener.reported == ["reading the chain", *blocks, "decoding the scrapes"]


def test_a_time_of_zero_is_a_valid_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only values below 0 mean "never"."""
    load = records([(MINE[0], ACCEPTED)], sent_ns=bytes(8), answered_ns=bytes(8))
    table = read(monkeypatch, Chain(BLOCKS, COMMITS), load).transactions
    assert table.select("sent_ns", "answered_ns").rows() == [(0, 0)]


def account(
    monkeypatch: pytest.MonkeyPatch,
    rows: Sequence[tuple[bytes | None, int]],
    committed: Sequence[bytes],
    *,
    held: Sequence[bytes] = (),
    waiting: PendingTransactions | None = None,
    offered: int | None = None,
    counted: Mapping[int, int] | None = None,
) -> TransactionCounts:
    """The transaction counts of a chain with one block. ``held`` are the transactions listed by the mempools."""
    load = records(rows)
    events = read(monkeypatch, Chain({7: committed}, {}, counted), load, last=7)
    listed = PendingTransactions(frozenset(sha256(payload).digest() for payload in held), len(held))
    return balance(events, measurement(load, waiting=waiting or listed), offered)


def test_every_class_of_the_accounting_matches_hand_counted_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 offered: 2 unsent; 5 rejected or without a response; 5 accepted: 2 pending, 1 lost, 2 in a block."""
    rows = [
        (None, UNSENT),
        (None, UNSENT),
        (MINE[0], MEMPOOL_FULL),
        (MINE[1], IN_CACHE),
        (MINE[2], CHECK_CODE),
        (MINE[3], RPC_ERROR),
        (MINE[4], TIMEOUT),
        (MINE[5], TIMEOUT),  # no response, but committed, so it was accepted
        (MINE[6], ACCEPTED),
        (MINE[7], ACCEPTED),
        (MINE[8], ACCEPTED),
        (MINE[9], ACCEPTED),
    ]
    counts = account(monkeypatch, rows, [MINE[5], MINE[6]], held=[MINE[7], MINE[8]], offered=12)
    assert counts.counts["transactions"] == {
        "offered": 12,
        "unsent": 2,
        "rejected": 5,
        "accepted": 5,
        "committed": 2,
        "pending": 2,
        "lost": 1,
        "rejected but committed": 0,
    }
    assert counts.counts["answers"] == dict(zip(ANSWERS, [4, 1, 1, 1, 1, 2, 2], strict=True))
    assert counts.counts["chain"] == {
        "blocks": 1,
        "transactions in blocks": 2,
        "ours": 2,
        "duplicates": 0,
        "of other experiments": 0,
        "not a payload": 0,
    }
    assert (counts.problems, counts.contradictions, counts.lost) == ([], [], 1)


ENDS = ("block", "mempool", "both", "nowhere")
classes = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(ENDS)), min_size=1, max_size=12)


@given(classes)
def test_random_outcomes_are_counted_and_contradictions_are_found(ended: list[tuple[int, str]]) -> None:
    """Each class matches a plain count; impossible outcomes are a problem or a contradiction."""
    rows = [(None if code == UNSENT else MINE[number], code) for number, (code, _) in enumerate(ended)]
    placed = [(payload, where) for (payload, _), (_, where) in zip(rows, ended, strict=True) if payload]
    in_block = [payload for payload, where in placed if where in {"block", "both"}]
    held = [payload for payload, where in placed if where in {"mempool", "both"}]
    with pytest.MonkeyPatch.context() as patched:
        counts = account(patched, rows, in_block, held=held)
    refused = {MEMPOOL_FULL, IN_CACHE, CHECK_CODE, RPC_ERROR}

    def count(codes: Collection[int], *ends: str) -> int:
        return sum(code in codes and where in ends for code, where in ended)

    places = ("block", "both", "mempool")
    assert counts.counts["transactions"] == {
        "offered": len(rows),
        "unsent": count({UNSENT}, *ENDS),
        "rejected": count(refused, *ENDS) + count({TIMEOUT}, "nowhere"),
        "accepted": count({ACCEPTED}, *ENDS) + count({TIMEOUT}, *places),
        "committed": count({ACCEPTED, TIMEOUT}, "block", "both"),
        "pending": count({ACCEPTED, TIMEOUT, *refused}, "mempool"),
        "lost": count({ACCEPTED}, "nowhere"),
        "rejected but committed": count(refused, "block", "both"),
    }
    # A rejected transaction that is pending makes the sum of the accepted ones too large.
    assert len(counts.problems) == bool(count(refused, "mempool"))
    assert len(counts.contradictions) == bool(count(refused, "block", "both"))


wrong = st.lists(st.integers(0, 6), min_size=1, max_size=12).flatmap(
    lambda codes: st.tuples(st.just(codes), st.permutations(codes))
)


@given(wrong)
def test_swapped_responses_are_detected(codes: tuple[list[int], list[int]]) -> None:
    """Records mixed up, as by a bug in the generator: detected unless only equal ones were swapped."""
    true, codes_reported = codes
    rows = [(MINE[number], code) for number, code in enumerate(true)]
    committed = [payload for payload, code in rows if code == ACCEPTED]
    waits = [payload for payload, code in rows if code == TIMEOUT]
    mixed = [(payload, code) for (payload, _), code in zip(rows, codes_reported, strict=True)]
    with pytest.MonkeyPatch.context() as patched:
        counts = account(patched, mixed, committed, held=waits)
    # Unsent and rejected transactions cannot be in a block or a mempool. Accepted ones must be in one of them.
    codes_retained = {ACCEPTED, TIMEOUT}
    is_wrong = any(
        (code in codes_retained) != (other in codes_retained) and not (code not in codes_retained and other == TIMEOUT)
        for code, other in zip(true, codes_reported, strict=True)
    )
    assert bool(counts.problems or counts.contradictions or counts.lost) == is_wrong


def test_each_class_can_break_the_sum_of_accepted_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """If lost transactions were computed as the remainder, the sum would always be correct."""
    sound = [(MINE[0], ACCEPTED), (MINE[1], ACCEPTED), (MINE[2], ACCEPTED)]
    assert account(monkeypatch, sound, [MINE[0]], held=[MINE[1]]).problems == []
    never_sent = account(monkeypatch, [(MINE[0], ACCEPTED), (MINE[1], UNSENT)], MINE[:2])
    assert never_sent.problems == ["accepted 1 ≠ committed + pending + lost 2"]
    refused = account(monkeypatch, [(MINE[0], ACCEPTED), (MINE[1], CHECK_CODE)], [MINE[0]], held=[MINE[1]])
    assert refused.problems == ["accepted 1 ≠ committed + pending + lost 2"]


def test_a_load_that_never_started_has_counts_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = account(monkeypatch, [], [])
    assert set(counts.counts["transactions"].values()) == {0}
    assert counts.problems == []


def test_a_transaction_that_was_listed_and_then_committed_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mempools are read first, and a block may follow."""
    counts = account(monkeypatch, [(MINE[0], ACCEPTED)], [MINE[0]], held=[MINE[0]])
    transactions = counts.counts["transactions"]
    assert (transactions["committed"], transactions["pending"], transactions["lost"], counts.problems) == (1, 0, 0, [])


@pytest.mark.parametrize(
    ("unseen", "lost", "unsure"),
    [(9, 0, 4), (4, 0, 4), (3, 1, 3), (0, 4, 0), (None, 0, 4)],
    ids=["room for all", "just", "no room for one", "all listed", "a node did not respond"],
)
def test_beyond_the_listed_transactions_only_those_in_no_mempool_are_lost(
    monkeypatch: pytest.MonkeyPatch, unseen: int | None, lost: int, unsure: int
) -> None:
    """A node lists at most a hundred transactions. Unlisted ones are counted neither as lost nor as pending."""
    rows = [(payload, ACCEPTED) for payload in MINE[:6]]
    waiting = PendingTransactions(frozenset([sha256(MINE[1]).digest()]), 3, unseen)
    counts = account(monkeypatch, rows, [MINE[0]], waiting=waiting)
    transactions = counts.counts["transactions"]
    assert (transactions["pending"], transactions["lost"], transactions.get("pending or lost", 0)) == (1, lost, unsure)
    assert (counts.lost, counts.unsure, counts.problems) == (lost, unsure, [])
    # The sum is wrong here as well: a rejected transaction that is pending is not among the accepted ones.
    mixed = [*rows[:5], (MINE[1], CHECK_CODE)]
    wrong = account(monkeypatch, [rows[0], *rows[2:], mixed[-1]], [MINE[0]], waiting=waiting)
    assert wrong.problems == ["accepted 5 ≠ committed + pending + lost 6"]


@given(
    st.lists(st.sampled_from(["block", "listed", "unlisted", "nowhere"]), min_size=1, max_size=12), st.integers(0, 9)
)
def test_the_true_loss_lies_between_the_two_figures(ends: list[str], copies: int) -> None:
    """This holds for any number of copies of unlisted transactions. Otherwise a gate would be wrong."""
    rows = [(MINE[number], ACCEPTED) for number in range(len(ends))]
    listed = frozenset(sha256(MINE[number]).digest() for number, end in enumerate(ends) if end == "listed")
    unseen = ends.count("unlisted") * (1 + copies)
    with pytest.MonkeyPatch.context() as patched:
        in_block = [MINE[number] for number, end in enumerate(ends) if end == "block"]
        counts = account(patched, rows, in_block, waiting=PendingTransactions(listed, len(ends), unseen))
    assert counts.lost is not None
    assert counts.lost <= ends.count("nowhere") <= counts.lost + counts.unsure
    assert counts.unsure == 0 or "unlisted" in ends


def test_without_the_chain_nothing_is_reported_about_blocks() -> None:
    """All nodes died. Their committed transactions are unknown, which does not mean that they are lost."""
    load = records([(MINE[0], ACCEPTED), (MINE[1], MEMPOOL_FULL), (MINE[2], TIMEOUT)])
    taken = measurement(load, reader=None)
    counts = balance(collect(taken, ChainReading(OURS), Silent()), taken, 3)
    assert counts.counts["transactions"] == {"offered": 3, "unsent": 0, "rejected": 2, "accepted": 1}
    assert "chain" not in counts.counts
    assert (counts.problems, counts.lost) == ([], None)
    assert balance(collect(taken, ChainReading(OURS), Silent()), taken, 4).problems == ["offered 3 ≠ the schedule 4"]


def test_a_rejected_transaction_in_a_block_is_a_wrong_response(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(MINE[0], MEMPOOL_FULL), (MINE[1], CHECK_CODE), (MINE[2], ACCEPTED)]
    counts = account(monkeypatch, rows, MINE[:3])
    assert (counts.problems, counts.contradictions) == ([], ["2 rejected transactions were committed"])
    assert counts.counts["transactions"]["committed"] == 1
    assert counts.counts["transactions"]["rejected"] == 2
    assert counts.counts["chain"]["ours"] == 3


def test_fewer_than_the_schedule_offers_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(MINE[0], ACCEPTED)] * 2
    assert account(monkeypatch, rows, [], offered=2).problems == []
    assert account(monkeypatch, rows, []).problems == []
    assert account(monkeypatch, rows, [], offered=1500).problems == ["offered 2 ≠ the schedule 1500"]


def test_headers_and_blocks_must_have_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(MINE[0], ACCEPTED), (MINE[1], ACCEPTED)]
    counts = account(monkeypatch, rows, MINE[:2], counted={7: 3})
    assert counts.problems == ["transactions in blocks 2 ≠ the headers' counts 3"]


def _lacking_a_transaction() -> tuple[Events, Any]:
    load = records([(MINE[0], ACCEPTED)])
    with pytest.MonkeyPatch.context() as patched:
        return read(patched, Chain({7: [MINE[0]]}, {}), load, last=7), measurement(load)


def test_unaccounted_transactions_in_blocks_are_a_problem() -> None:
    events, taken = _lacking_a_transaction()
    grown = events.blocks.with_columns(transactions=pl.lit(5), header_transactions=pl.lit(5))
    (problem,) = balance(_with(events, blocks=grown), taken, None).problems
    assert problem == "transactions in blocks 5 ≠ ours + duplicates + others 1"
    explained = _with(events, blocks=grown, duplicates=2, foreign_transactions=1, undecodable=1)
    assert balance(explained, taken, None).problems == []


def test_a_block_without_a_header_count_is_a_problem() -> None:
    events, taken = _lacking_a_transaction()
    unmatched = events.blocks.with_columns(header_transactions=pl.lit(None, dtype=pl.Int64))
    problems = balance(_with(events, blocks=unmatched), taken, None).problems
    assert problems == ["transactions in blocks 1 ≠ the headers' counts 0", "1 blocks have no header count"]


def test_a_response_without_a_class_breaks_the_balance() -> None:
    events, taken = _lacking_a_transaction()
    strange = events.transactions.with_columns(answer=pl.lit("a new one"), height=pl.lit(None, dtype=pl.Int64))
    problems = balance(_with(events, transactions=strange), taken, None).problems
    assert problems[0] == "offered 1 ≠ unsent + rejected + accepted 0"


def _with(events: Events, **changes: Any) -> Events:
    return Events(**{**vars(events), **changes})


def test_the_lines_of_every_page_are_counted(tmp_path: Path) -> None:
    """Two pages of one node and one of another: read = kept + ignored, and each value has the time of its page."""
    page = b"# HELP x\ngo_goroutines 20\ngo_threads 7\ncometbft_p2p_peers 3\n"
    files = {}
    for host, times in (("node1", [4]), ("node0", [4, 9])):
        files[host] = tmp_path / f"{host}.zst"
        files[host].write_bytes(zstandard.compress(b"".join(SCRAPE_MARK + b"%d\n" % time + page for time in times)))
    frame, counts = read_scrapes(files)
    assert counts == {"pages": 3, "lines": 9, "kept": 6, "ignored": 3}
    peers, routines = "cometbft_p2p_peers", "go_goroutines"
    assert frame.rows() == [
        (4, "node0", peers, 3.0),
        (4, "node0", routines, 20.0),
        (4, "node1", peers, 3.0),
        (4, "node1", routines, 20.0),
        (9, "node0", peers, 3.0),
        (9, "node0", routines, 20.0),
    ]


def test_every_metric_family_that_analysis_and_gates_read_is_kept() -> None:
    """Without the metric of its start time, a node that crashed and restarted would pass as stable."""
    names = [
        *("cometbft_mempool_size", "cometbft_p2p_peers", "cometbft_p2p_message_send_bytes"),
        *("cometbft_p2p_message_receive_bytes", "cometbft_consensus_height", "cometbft_consensus_rounds"),
        *("process_start_time_seconds", "go_goroutines", "go_memstats_heap_alloc_bytes"),
    ]
    page = "".join(f"# TYPE {name} gauge\n{name} {place}\n" for place, name in enumerate(names))
    values, lines, number_retained = read_page(page + "go_threads 4\n\n")
    assert values == {name: float(place) for place, name in enumerate(names)}
    assert (lines, number_retained) == (10, 9)


def test_a_family_is_summed_over_its_labels_with_or_without_the_suffix_of_a_counter() -> None:
    sent, received = "cometbft_p2p_message_send_bytes", "cometbft_p2p_message_receive_bytes"
    page = f'{sent}_total{{kind="vote"}} 3\n{sent}_total{{kind="part"}} 4\n{received}{{kind="vote"}} 5\n'
    assert read_page(page) == ({sent: 7.0, received: 5.0}, 3, 3)


def test_a_node_that_was_never_scraped_has_no_rows() -> None:
    frame, counts = read_scrapes({})
    assert frame.columns == ["time_ns", "host", "metric", "value"]
    assert (frame.height, counts) == (0, {"pages": 0, "lines": 0, "kept": 0, "ignored": 0})
