"""Events to samples and to books, on cases small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark._native import encode_transaction
from chainmark.systems.cometbft.analyse import (
    NS,
    Window,
    block_samples,
    committed_per_second,
    host_second_samples,
    transaction_samples,
)
from chainmark.systems.cometbft.gates import restarted_nodes
from chainmark.systems.cometbft.ingest import Events, _places, observed_commits, read_page
from chainmark.systems.cometbft.profile import Network
from chainmark.systems.cometbft.rpc import Block, RpcError, parse_time
from chainmark.systems.cometbft.shape import peer_choice

BLOCKS = pl.DataFrame(
    {
        "height": [4, 5, 6, 7],
        "time_ns": [0, 1 * NS, 2 * NS, 4 * NS],
        "observed_ns": [1 * NS, 2 * NS, 3 * NS, 5 * NS],
        "round": [0, 0, 1, None],
        "missing_votes": [0, 2, 0, None],
        "transactions": [0, 10, 20, 40],
        "size_bytes": [1, 2, 3, 4],
    },
    schema_overrides={"round": pl.Int64, "missing_votes": pl.Int64},
)


def _events(due_ns: list[int], sent_ns: list[int | None], heights: list[int | None]) -> Events:
    count = len(due_ns)
    transactions = pl.DataFrame(
        {
            "connection": [0] * count,
            "sequence": list(range(count)),
            "due_ns": due_ns,
            "sent_ns": pl.Series(sent_ns, dtype=pl.Int64),
            "answered_ns": pl.Series(sent_ns, dtype=pl.Int64),
            "height": pl.Series(heights, dtype=pl.Int64),
        }
    )
    return Events(transactions, BLOCKS, pl.DataFrame(), {}, 0, 0, 0)


def test_latency_runs_from_the_schedule_under_all_three_definitions() -> None:
    events = _events([NS // 2, NS, NS], [NS, NS, None], [5, 6, None])
    samples = transaction_samples(events, Window(0, 10 * NS))
    # The first was due at 0.5 s and sent at 1 s: its wait in the sender is part of its latency.
    assert samples["tx_latency_s"].to_list() == [1.5, 2.0, None]
    assert samples["tx_latency_next_header_s"].to_list() == [1.5, 3.0, None]
    assert samples["tx_latency_header_s"].to_list() == [0.5, 1.0, None]
    assert samples["tx_schedule_lag_s"].to_list() == [0.5, 0.0, None]
    assert samples["tx_committed_share"].to_list() == [1.0, 1.0, 0.0]


def test_a_transaction_belongs_to_the_window_by_its_due_time() -> None:
    events = _events([NS - 1, NS, 2 * NS], [NS, NS, 2 * NS], [5, 5, 6])
    assert transaction_samples(events, Window(NS, 2 * NS)).height == 1


def test_blocks_carry_the_rounds_and_votes_that_the_next_block_states() -> None:
    samples = block_samples(BLOCKS, Window(2 * NS, 6 * NS))
    assert samples["height"].to_list() == [5, 6, 7]
    assert samples["block_interval_s"].to_list() == [1.0, 1.0, 2.0]
    assert samples["block_interval_observed_s"].to_list() == [1.0, 1.0, 2.0]
    assert samples["block_extra_rounds"].to_list() == [0.0, 1.0, None]
    assert samples["block_missing_votes"].to_list() == [2.0, 0.0, None]


def test_committed_rate_spreads_a_block_over_its_interval() -> None:
    rates = committed_per_second(BLOCKS, NS * np.arange(1, 6))
    assert rates.tolist() == [10.0, 20.0, 20.0, 20.0]


@given(st.lists(st.integers(1, 500), min_size=3, max_size=30), st.integers(1, 20))
def test_committed_rate_conserves_transactions(counts: list[int], seconds: int) -> None:
    """Whatever the blocks, the rate integrates to the transactions between the window's ends."""
    frame = pl.DataFrame(
        {
            "height": np.arange(len(counts)),
            "time_ns": NS * np.arange(len(counts)),
            "observed_ns": NS * np.arange(len(counts)),
            "transactions": counts,
        }
    )
    edges = NS * np.arange(-1, max(seconds, len(counts)) + 1)
    assert committed_per_second(frame, edges).sum() == pytest.approx(sum(counts[1:]))


def test_a_counter_that_falls_gives_no_rate() -> None:
    processes = pl.DataFrame(
        {
            "time_ns": [0, NS, 2 * NS, 3 * NS],
            "host": ["a"] * 4,
            "cpu_s": [5.0, 5.5, 0.1, 0.3],
            "rss_bytes": [1] * 4,
            "open_files": [1] * 4,
            "threads": [1] * 4,
            "disk_read_bytes": [0] * 4,
            "disk_written_bytes": [0] * 4,
        }
    )
    scrapes = pl.DataFrame(
        {"time_ns": [0, NS], "host": ["a", "a"], "metric": ["cometbft_p2p_peers"] * 2, "value": [3.0, 2.0]}
    )
    samples = host_second_samples(scrapes, processes, Window(NS, 5 * NS))
    assert samples["node_cpu_cores"].to_list() == [0.5, None, pytest.approx(0.2), None]
    assert samples["node_peers"].to_list() == [2.0, None, None, None]
    assert samples["node_goroutines"].to_list() == [None] * 4


def test_a_node_that_started_anew_is_found_by_its_start_time() -> None:
    rows = [("node0", 1.0), ("node0", 1.0), ("node1", 1.0), ("node1", 7.0)]
    scrapes = pl.DataFrame(rows, schema=["host", "value"], orient="row")
    assert restarted_nodes(scrapes.with_columns(metric=pl.lit("process_start_time_seconds"))) == ["node1"]
    assert restarted_nodes(scrapes.with_columns(metric=pl.lit("go_goroutines"))) == []


def test_a_metrics_page_is_summed_over_its_labels_and_counted() -> None:
    page = (
        "# HELP cometbft_mempool_size x\n# TYPE cometbft_mempool_size gauge\n"
        'cometbft_mempool_size{chain_id="c"} 12\n'
        "# TYPE cometbft_p2p_message_send_bytes_total counter\n"
        'cometbft_p2p_message_send_bytes_total{message_type="a"} 3\n'
        'cometbft_p2p_message_send_bytes_total{message_type="b"} 4\n'
        "go_threads 7\n"
    )
    values, lines, kept = read_page(page)
    assert values == {"cometbft_mempool_size": 12.0, "cometbft_p2p_message_send_bytes": 7.0}
    assert (lines, kept) == (4, 3)


def test_every_transaction_of_a_block_is_counted_once() -> None:
    ours, theirs = (bytes([number] * 16) for number in (1, 2))
    first, second = (encode_transaction(1, 200, 256, time_ns, ours, 7) for time_ns in (1, 2))
    foreign = encode_transaction(1, 200, 256, 1, theirs, 7)
    blocks = [Block(1, 0, "p", 0, 0, [first, foreign, b"x=y"]), Block(2, 1, "p", 0, 0, [second, first])]
    places, counts = _places(blocks, ours)
    assert sorted(places.values()) == [(1, 0), (2, 0)]
    assert counts == {"foreign": 1, "duplicates": 1, "undecodable": 1}


def test_the_first_arrival_of_a_commit_counts() -> None:
    def message(height: int) -> bytes:
        return b'{"result":{"data":{"value":{"header":{"height":"%d"}}}}}' % height

    assert observed_commits([(5, message(1)), (9, message(1)), (7, message(2)), (8, b'{"result":{}}')]) == {1: 5, 2: 7}


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", NS),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456_789),
    ],
)
def test_times_have_any_number_of_digits(text: str, nanoseconds: int) -> None:
    assert parse_time(text) == nanoseconds


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(RpcError, match="is not a time"):
        parse_time("yesterday")


@given(st.integers(2, 20), st.integers(1, 4), st.integers(0, 1000))
def test_random_topologies_are_connected_and_reproducible(nodes: int, peers: int, seed: int) -> None:
    """A node that is cut off would halt the network or never take part, and no figure would say why."""
    peers = min(peers, nodes - 1)
    network = Network(validators=nodes, topology="random", peers_per_node=peers)
    chosen = peer_choice(network, seed)
    assert chosen == peer_choice(network, seed)
    assert all(len(set(row)) == peers and node not in row for node, row in enumerate(chosen))
    reached, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        near = set(chosen[node]) | {other for other, row in enumerate(chosen) if node in row}
        waiting += near - reached
        reached |= near
    assert len(reached) == nodes
