"""From events to samples and transaction counts, on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark._native import encode_transaction
from chainmark.network.processor_speed import NOMINAL_S
from chainmark.systems.cometbft import SYSTEM, analyse
from chainmark.systems.cometbft.analyse import (
    NS,
    STEPS,
    Sampled,
    Window,
    block_samples,
    committed_per_second,
    host_second_samples,
    samples,
    second_samples,
    transaction_samples,
)
from chainmark.systems.cometbft.disturb import PERTURBATION_SCHEMA
from chainmark.systems.cometbft.gates import restarted_nodes
from chainmark.systems.cometbft.ingest import (
    SCRAPE_SCHEMA,
    STEP_COUNT,
    STEP_SUM,
    ChainReading,
    Events,
    _places,
    _recogniser,
    observed_commits,
    read_page,
)
from chainmark.systems.cometbft.profile import Load, NodeNetwork
from chainmark.systems.cometbft.rotating import HEIGHT_SCHEMA, JOINER_SCHEMA
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


def test_latency_starts_at_the_schedule_in_all_three_definitions() -> None:
    events = _events([NS // 2, NS, NS], [NS, NS, None], [5, 6, None])
    frame = transaction_samples(events, Window(0, 10 * NS))
    # The first one was due at 0.5 s and sent at 1 s. Its wait in the sender is part of its latency.
    assert frame["tx_latency_s"].to_list() == [1.5, 2.0, None]
    assert frame["tx_latency_next_header_s"].to_list() == [1.5, 3.0, None]
    assert frame["tx_latency_header_s"].to_list() == [0.5, 1.0, None]
    assert frame["tx_schedule_lag_s"].to_list() == [0.5, 0.0, None]
    assert frame["tx_committed_share"].to_list() == [1.0, 1.0, 0.0]


def test_a_transaction_belongs_to_the_window_by_its_due_time() -> None:
    events = _events([NS - 1, NS, 2 * NS], [NS, NS, 2 * NS], [5, 5, 6])
    assert transaction_samples(events, Window(NS, 2 * NS)).height == 1


def test_blocks_have_the_rounds_and_votes_stated_in_the_next_block() -> None:
    frame = block_samples(BLOCKS, Window(2 * NS, 6 * NS))
    assert frame["height"].to_list() == [5, 6, 7]
    assert frame["block_interval_s"].to_list() == [1.0, 1.0, 2.0]
    assert frame["block_interval_observed_s"].to_list() == [1.0, 1.0, 2.0]
    assert frame["block_size_bytes"].to_list() == [2.0, 3.0, 4.0]
    assert frame["block_transactions"].to_list() == [10.0, 20.0, 40.0]
    assert frame["block_extra_rounds"].to_list() == [0.0, 1.0, None]
    assert frame["block_missing_votes"].to_list() == [2.0, 0.0, None]


def test_committed_rate_spreads_a_block_over_its_interval() -> None:
    rates = committed_per_second(BLOCKS, NS * np.arange(1, 6))
    assert rates.tolist() == [10.0, 20.0, 20.0, 20.0]


@given(st.lists(st.integers(1, 500), min_size=3, max_size=30), st.integers(1, 20))
def test_committed_rate_conserves_transactions(counts: list[int], seconds: int) -> None:
    """For any blocks, the integral of the rate is the number of transactions in the window."""
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


def test_a_decreasing_counter_gives_no_rate() -> None:
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
            "ran_s": [5.0, 5.5, 0.1, 0.3],
            "waited_s": [0.0, 0.5, 0.0, 0.0],
            "contended_s": [0.0, 2.0, 4.0, 6.0],
        }
    )
    scrapes = pl.DataFrame(
        {"time_ns": [0, NS], "host": ["a", "a"], "metric": ["cometbft_p2p_peers"] * 2, "value": [3.0, 2.0]}
    )
    frame = host_second_samples(scrapes, processes, Window(NS, 5 * NS))
    assert frame["host"].to_list() == ["a"] * 4
    assert frame["node_cpu_cores"].to_list() == [0.5, None, pytest.approx(0.2), None]
    assert frame["node_run_queue_share"].to_list() == [0.5, None, 0.0, None]
    assert frame["node_peers"].to_list() == [2.0, None, None, None]
    assert frame["node_goroutines"].to_list() == [None] * 4


def test_the_wait_of_a_restarted_process_is_unknown() -> None:
    """The new process may have waited longer and run less than the old one."""
    anew = PROCESSES.with_columns(
        waited_s=pl.Series([0.0, 0.0, 0.0, 0.3, 0.9]), ran_s=pl.Series([0.0, 0.0, 9.0, 1.5, 4.5])
    )
    frame = host_second_samples(pl.DataFrame(schema=SCRAPES), anew, Window(NS, 5 * NS)).filter(pl.col("host") == "a")
    assert frame["node_run_queue_share"].to_list() == [None, None, None, pytest.approx(0.3 / 1.8)]


def test_rows_of_one_second_are_in_the_order_of_the_hosts() -> None:
    """The files of the run are identical for any order in which the nodes were sampled."""
    many = [f"node-{number:03}" for number in range(40)]
    frame = pl.concat(PROCESSES.filter(pl.col("host") == "a").with_columns(host=pl.lit(host)) for host in many[::-1])
    rows = host_second_samples(pl.DataFrame(schema=SCRAPES), frame, Window(NS, 5 * NS))
    assert rows.select("time_s", "host").rows() == [(float(second), host) for second in range(4) for host in many]


def test_a_network_without_process_samples_has_no_seconds() -> None:
    """The host column still has the type text, because all files of a run have one schema."""
    frame = host_second_samples(pl.DataFrame(schema=SCRAPES), PROCESSES.clear(), Window(NS, 5 * NS))
    assert frame.is_empty()
    assert frame.schema["host"] == pl.String


def test_counters_are_not_differenced_across_nodes() -> None:
    """Node b's counters are larger. A difference to a's last sample would be a wrong rate in b's first second."""
    frame = pl.DataFrame(
        {
            **{name: [4.0, 5.0, 40.0, 50.0] for name in ("cpu_s", "ran_s", "waited_s", "contended_s")},
            **{name: [4, 5, 40, 50] for name in ("disk_read_bytes", "disk_written_bytes")},
            **dict.fromkeys(("rss_bytes", "open_files", "threads"), [1] * 4),
            "host": ["a", "a", "b", "b"],
            "time_ns": [NS, 2 * NS, 3 * NS, 4 * NS],
        }
    )
    sent = "cometbft_p2p_message_send_bytes"
    pages = [(NS, "a", sent, 1.0), (2 * NS, "a", sent, 5.0), (3 * NS, "b", sent, 9.0), (4 * NS, "b", sent, 10.0)]
    scrapes = pl.DataFrame(pages, schema=SCRAPES, orient="row")
    rows = host_second_samples(scrapes, frame, Window(NS, 5 * NS)).filter(pl.col("host") == "b")
    for column, last in (
        ("node_cpu_cores", 10.0),
        ("node_disk_read_bytes_per_s", 10.0),
        ("node_disk_written_bytes_per_s", 10.0),
        ("node_run_queue_share", 0.5),
        ("node_sent_bytes_per_s", 1.0),
    ):
        assert rows[column].to_list() == [None, None, None, last], column


SCRAPES: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
}
PROCESSES = pl.DataFrame(
    {
        "time_ns": [NS, 2 * NS, NS, 2 * NS, 4 * NS],
        "host": ["b", "b", "a", "a", "a"],
        "cpu_s": [7.0, 7.0, 1.0, 1.5, 4.5],
        "rss_bytes": [70, 71, 10, 11, 12],
        "open_files": [7, 8, 1, 2, 3],
        "threads": [17, 18, 11, 12, 13],
        "disk_read_bytes": [700, 700, 100, 300, 300],
        "disk_written_bytes": [0, 0, 0, 50, 150],
        "ran_s": [7.0, 7.0, 1.0, 1.5, 4.5],
        "waited_s": [0.0, 0.0, 0.0, 0.0, 0.0],
        "contended_s": [0.0, 1.0, 0.0, 1.0, 3.0],
    }
)


def test_a_constant_counter_gives_a_rate_of_zero() -> None:
    """The CPU use of an idle node is 0, not unknown. Otherwise its mean would cover only its busy seconds."""
    frame = host_second_samples(pl.DataFrame(schema=SCRAPES), PROCESSES, Window(NS, 5 * NS))
    assert frame.select("time_s", "host").rows() == [(second, host) for second in range(4) for host in ("a", "b")]
    seconds = {host: frame.filter(pl.col("host") == host) for host in ("a", "b")}
    # Node b did nothing between its two samples. A node has no rate before its second sample.
    assert seconds["b"]["node_cpu_cores"].to_list() == [None, 0.0, None, None]
    assert seconds["b"]["node_disk_read_bytes_per_s"].to_list() == [None, 0.0, None, None]
    # Node a was not sampled in the third second, so the rate of the fourth covers two seconds.
    assert seconds["a"]["node_cpu_cores"].to_list() == [None, 0.5, None, 1.5]
    assert seconds["a"]["node_disk_read_bytes_per_s"].to_list() == [None, 200.0, None, 0.0]
    assert seconds["a"]["node_disk_written_bytes_per_s"].to_list() == [None, 50.0, None, 50.0]
    for column, values in (
        ("node_rss_bytes", [10.0, 11.0, None, 12.0]),
        ("node_open_files", [1.0, 2.0, None, 3.0]),
        ("node_threads", [11.0, 12.0, None, 13.0]),
    ):
        assert seconds["a"][column].to_list() == values


PAGES = [
    # In the second second, node a is scraped twice: the later value counts.
    *[(NS, "a", "cometbft_mempool_size", 3.0), (2 * NS, "a", "cometbft_mempool_size", 9.0)],
    *[(2 * NS + 5, "a", "cometbft_mempool_size", 4.0), (2 * NS + 1, "b", "cometbft_mempool_size", 8.0)],
    *[(NS, "a", "cometbft_p2p_message_send_bytes", 100.0), (2 * NS, "a", "cometbft_p2p_message_send_bytes", 100.0)],
    *[(NS, "a", "cometbft_p2p_message_receive_bytes", 5.0), (2 * NS, "a", "cometbft_p2p_message_receive_bytes", 9.0)],
    *[(NS, "b", "cometbft_p2p_message_send_bytes", 7.0), (2 * NS + 1, "b", "go_goroutines", 44.0)],
    *[(NS, "a", "go_memstats_heap_alloc_bytes", 1e6), (NS, "a", "cometbft_p2p_peers", 3.0)],
]


def test_metrics_of_a_node_are_not_mixed_with_others() -> None:
    scrapes = pl.DataFrame([row for row in PAGES if row[0] != 2 * NS + 5], schema=SCRAPES, orient="row")
    frame = host_second_samples(scrapes, PROCESSES, Window(NS, 3 * NS))
    assert frame.select("time_s", "host").rows() == [(0.0, "a"), (0.0, "b"), (1.0, "a"), (1.0, "b")]
    assert frame["node_mempool_transactions"].to_list() == [3.0, None, 9.0, 8.0]
    assert frame["node_peers"].to_list() == [3.0, None, None, None]
    assert frame["node_goroutines"].to_list() == [None, None, None, 44.0]
    assert frame["node_heap_bytes"].to_list() == [1e6, None, None, None]
    assert frame["node_sent_bytes_per_s"].to_list() == [None, None, 0.0, None]
    assert frame["node_received_bytes_per_s"].to_list() == [None, None, 4.0, None]


PRESSURE = pl.DataFrame(
    {
        "time_ns": [NS // 2, NS + NS // 2, 2 * NS + NS // 2],
        "cpu_pressure_us": [0, 250_000, 250_000],
        "io_pressure_us": [0, 500_000, 600_000],
        "memory_pressure_us": [0, 1_100_000, 1_100_000],  # the sampler read its two clocks at different times
        "load1": [1.0, 2.0, 3.0],
        "cpu_busy_s": [10.0, 11.5, 11.5],
        "cpu_steal_s": [0.0, 0.1, 0.1],
        "harness_cpu_s": [1.0, 1.25, 1.25],
        "cpu_total_s": [100.0, 102.0, 104.0],
        # First, other processes take a fifth of the time that the nodes need; then the nodes wait for each other.
        "nodes_ran_s": [5.0, 5.6, 6.2],
        "nodes_waited_s": [1.0, 1.4, 1.8],
        "contended_s": [0.0, 0.2, 0.2],
        # The generator hardly ran, so its wait of a millisecond is not a meaningful share.
        "generator_ran_s": [0.0, 0.001, 0.002],
        "generator_waited_s": [0.0, 0.001, 0.002],
        # The reference work takes a quarter more than its nominal time, then a fifth less.
        "reference_cpu_s": [0.0, 12.5 * NOMINAL_S, 20.5 * NOMINAL_S],
        "reference_times": [0, 10, 20],
    }
)


def _whole(due_ns: list[int], sent_ns: list[int | None]) -> Events:
    events = _events(due_ns, sent_ns, [5] * len(due_ns))
    return replace(events, scrapes=pl.DataFrame(PAGES, schema=SCRAPES, orient="row"))


def test_the_seconds_of_the_window_match_hand_computed_values() -> None:
    """Due, sent and committed in seconds 1, 2 and 3; the end of a second belongs to the next one."""
    events = _whole([NS - 1, NS, NS, 2 * NS, 3 * NS - 1, 4 * NS], [NS, NS + 1, None, 3 * NS, 3 * NS, 4 * NS])
    frame = second_samples(events, PRESSURE, Window(NS, 4 * NS))
    assert frame["time_s"].to_list() == [0.0, 1.0, 2.0]
    assert frame["offered_per_s"].to_list() == [2.0, 2.0, 0.0]
    assert frame["achieved_per_s"].to_list() == [2.0, 0.0, 2.0]
    assert frame["committed_per_s"].to_list() == [10.0, 20.0, 20.0]
    assert frame["mempool_mean_transactions"].to_list() == [3.0, 6.0, None]
    assert frame["mempool_max_transactions"].to_list() == [3.0, 8.0, None]
    # A machine without waiting or load has zeros, not missing values.
    assert frame["machine_cpu_pressure"].to_list() == [0.25, 0.0, None]
    assert frame["machine_io_pressure"].to_list() == [0.5, pytest.approx(0.1), None]
    assert frame["machine_memory_pressure"].to_list() == [1.0, 0.0, None]
    assert frame["machine_cpu_cores"].to_list() == [1.5, 0.0, None]
    assert frame["machine_cpu_steal_cores"].to_list() == [pytest.approx(0.1), 0.0, None]
    assert frame["harness_cpu_cores"].to_list() == [0.25, 0.0, None]
    assert frame["machine_load1"].to_list() == [2.0, 3.0, None]
    assert frame["nodes_run_queue_share"].to_list() == [pytest.approx(0.2), 0.0, None]
    assert frame["generator_run_queue_share"].to_list() == [pytest.approx(0.002), 0.0, None]
    assert frame["machine_steal_share"].to_list() == [pytest.approx(0.05), 0.0, None]
    assert frame["machine_speed"].to_list() == [pytest.approx(0.8), pytest.approx(1.25), None]


def test_a_sampler_that_had_to_wait_hides_no_second() -> None:
    """While other work takes all processors nothing is sampled, also at the end of a window: the run looked quiet."""
    starved = PRESSURE.with_columns(
        time_ns=pl.Series([NS // 2, NS + NS // 2, 4 * NS + NS // 2]),
        contended_s=pl.Series([0.0, 0.2, 3.2]),
        nodes_waited_s=pl.Series([1.0, 1.4, 7.4]),
    )
    frame = second_samples(_whole([NS], [NS]), starved, Window(NS, 4 * NS))
    # In each of three seconds, others ran for one, and the nodes wanted 2.2.
    assert frame["nodes_run_queue_share"].to_list() == pytest.approx([0.2, 1 / 2.2, 1 / 2.2])


def test_a_second_without_figures_of_the_machine_keeps_its_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """At present, every second has a row of the machine. Without one, the load of that second would be left out."""
    measured = pl.DataFrame({"second": [0, 2], "machine_load1": [2.0, 3.0]})
    monkeypatch.setattr(analyse, "_pressure_by_second", lambda _pressure, _window: measured)
    frame = second_samples(_whole([NS, 2 * NS], [NS, NS]), PRESSURE, Window(NS, 4 * NS))
    assert frame.select("offered_per_s", "machine_load1").rows() == [(1.0, 2.0), (1.0, None), (0.0, 3.0)]


def test_a_run_has_only_the_populations_that_it_sampled() -> None:
    events, window = _whole([NS, NS], [NS, NS]), Window(NS, 4 * NS)
    start_up_s = {"b": 2.0, "a": 1.0}
    plain = samples(events, Sampled(PROCESSES, PRESSURE), window, start_up_s)
    assert list(plain) == ["transaction", "block", "second", "host_second", "host"]
    # Node a used 3.5 s of CPU time until 4 s, and 50 transactions were committed. Node b was last sampled at 2 s.
    assert plain["host"].rows() == [("a", 1.0, pytest.approx(3.5 / 50)), ("b", 2.0, None)]
    assert plain["host_second"]["host"].unique().sort().to_list() == ["a", "b"]
    # A node with a start time or with samples has a row, even if the other one is missing.
    timed = samples(events, Sampled(PROCESSES, PRESSURE), window, {"c": 3.0, "b": 2.0})["host"]
    assert timed.rows() == [("a", None, pytest.approx(3.5 / 50)), ("b", 2.0, None), ("c", 3.0, None)]
    # A joining node does not count as a steady node, because it would change their mean values.
    joiners = pl.DataFrame([("b", 0, NS, 2 * NS, 40, True)], schema=JOINER_SCHEMA, orient="row")
    heights = pl.DataFrame([(NS, "b", 3, 5, True)], schema=HEIGHT_SCHEMA, orient="row")
    perturbations = pl.DataFrame(
        [(1, "kill", "a", "", NS, 2 * NS, 3 * NS, 20, 24)], schema=PERTURBATION_SCHEMA, orient="row"
    )
    more = samples(
        events,
        Sampled(PROCESSES, PRESSURE, perturbations=perturbations, joiners=joiners, heights=heights),
        window,
        start_up_s,
    )
    assert list(more) == [*plain, "perturbation", "joiner", "joiner_second"]
    assert more["host_second"]["host"].unique().to_list() == ["a"]
    assert more["joiner"].select("host", "catch_up_s", "joiner_rss_max_bytes").rows() == [("b", 2.0, 71.0)]
    assert more["joiner_second"]["joiner_height_blocks"].to_list() == [3.0]
    assert more["perturbation"]["recovery_kill_s"].to_list() == [1.0]


def test_consensus_steps_are_reported_for_each_node_that_measured_them() -> None:
    """Node a took 0.5 s to propose. Node b reported no steps, and still has its other values."""
    totals = [(NS, "a", STEP_SUM, 1.0), (NS, "a", STEP_COUNT, 1.0), (3 * NS, "a", STEP_SUM, 2.0)]
    totals.append((3 * NS, "a", STEP_COUNT, 3.0))
    rows = [(time_ns, host, f"{name}:Propose", value) for time_ns, host, name, value in totals]
    events = replace(_whole([NS], [NS]), scrapes=pl.DataFrame(rows, schema=SCRAPE_SCHEMA, orient="row"))
    frame = samples(events, Sampled(PROCESSES, PRESSURE), Window(NS, 4 * NS), {"b": 2.0, "a": 1.0})["host"]
    assert frame.select("host", "start_up_s", "step_propose_s").rows() == [("a", 1.0, 0.5), ("b", 2.0, None)]


def test_without_a_chain_no_block_metrics_are_reported() -> None:
    """All nodes died. A committed share of 0 would be an unfounded claim."""
    events = _whole([NS], [NS])
    frames = samples(
        replace(events, blocks=events.blocks.clear()), Sampled(PROCESSES, PRESSURE), Window(NS, 4 * NS), {}
    )
    assert "block" not in frames
    assert frames["transaction"].columns == ["connection", "sequence", "time_s", "tx_answer_s", "tx_schedule_lag_s"]
    assert "committed_per_s" not in frames["second"].columns
    assert frames["host"].columns == ["host", "start_up_s"]
    assert frames["second"]["offered_per_s"].sum() == 1.0


def test_samples_are_ordered_for_any_order_of_events() -> None:
    """The same sources must give the same bytes."""
    events = _events([2 * NS, NS, NS], [2 * NS, NS, NS], [5, 5, 6])
    swapped = replace(events, transactions=events.transactions.with_columns(sequence=pl.Series([0, 2, 1])))
    window = Window(0, 10 * NS)
    assert transaction_samples(swapped, window).select("time_s", "sequence").rows() == [(1.0, 1), (1.0, 2), (2.0, 0)]
    crossed = replace(events, transactions=swapped.transactions.with_columns(connection=pl.Series([0, 4, 5])))
    assert transaction_samples(crossed, window).select("connection", "sequence").rows() == [(4, 2), (5, 1), (0, 0)]
    assert block_samples(BLOCKS[::-1], window).equals(block_samples(BLOCKS, window))
    assert transaction_samples(replace(events, blocks=BLOCKS[::-1]), window).equals(transaction_samples(events, window))
    edges = NS * np.arange(1, 6)
    assert committed_per_second(BLOCKS[::-1], edges).tolist() == committed_per_second(BLOCKS, edges).tolist()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sampled_data_may_be_in_any_order(seed: int) -> None:
    def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.sample(fraction=1.0, shuffle=True, seed=seed)

    window, events = Window(NS, 5 * NS), _whole([NS, NS], [NS, NS])
    other = replace(events, scrapes=shuffled(events.scrapes), blocks=shuffled(events.blocks))
    frames = samples(events, Sampled(PROCESSES, PRESSURE), window, {})
    again = samples(other, Sampled(shuffled(PROCESSES), shuffled(PRESSURE)), window, {})
    for name, frame in frames.items():
        assert again[name].equals(frame), name


def test_every_value_is_a_float_and_every_key_keeps_its_type() -> None:
    """Samples of one population are combined, and an integer column would not match that of another run."""
    joiners = pl.DataFrame([("b", 0, NS, 2 * NS, 40, True)], schema=JOINER_SCHEMA, orient="row")
    heights = pl.DataFrame([(NS, "b", 3, 5, True)], schema=HEIGHT_SCHEMA, orient="row")
    kills = [(place, "kill", "a", "", NS, 2 * NS, 3 * NS, 20, 24) for place in (1, 2)]
    perturbations = pl.DataFrame(kills, schema=PERTURBATION_SCHEMA, orient="row")
    sampled = Sampled(PROCESSES, PRESSURE, perturbations=perturbations, joiners=joiners, heights=heights)
    frames = samples(_whole([NS, NS], [NS, NS]), sampled, Window(NS, 4 * NS), {"a": 1.0})
    keys = {"connection", "sequence", "height", "host", "perturbation"}
    for name, frame in frames.items():
        values = {column: kind for column, kind in frame.schema.items() if column not in keys}
        assert set(values.values()) == {pl.Float64()}, (name, values)
    assert [name for name in frames["perturbation"].columns if name.startswith("recovery")] == ["recovery_kill_s"]
    # A metric that no page has is a column as well.
    unscraped = host_second_samples(pl.DataFrame(schema=SCRAPES), PROCESSES, Window(NS, 4 * NS))
    assert unscraped.schema == frames["host_second"].schema


def test_every_metric_of_the_catalogue_has_a_column() -> None:
    """A run may omit a column, so a metric that is never written would be "no data" in every run."""
    kinds = ("kill", "pause", "restart", "disconnect", "upgrade", "partition")
    joiners = pl.DataFrame([("b", 0, NS, 2 * NS, 40, True)], schema=JOINER_SCHEMA, orient="row")
    heights = pl.DataFrame([(NS, "b", 3, 5, True)], schema=HEIGHT_SCHEMA, orient="row")
    rows = [(place, kind, "a", "", NS, 2 * NS, 3 * NS, 20, 24) for place, kind in enumerate(kinds)]
    perturbations = pl.DataFrame(rows, schema=PERTURBATION_SCHEMA, orient="row")
    steps = [
        (time_s * NS, "a", f"{name}:{step}", float(time_s))
        for step in STEPS
        for name in (STEP_SUM, STEP_COUNT)
        for time_s in (1, 3)
    ]
    events = replace(_whole([NS], [NS]), scrapes=pl.DataFrame(steps, schema=SCRAPE_SCHEMA, orient="row"))
    sampled = Sampled(PROCESSES, PRESSURE, perturbations=perturbations, joiners=joiners, heights=heights)
    frames = samples(events, sampled, Window(NS, 4 * NS), {"a": 1.0})
    catalogue = SYSTEM.catalogue()
    for population in catalogue.populations:
        metrics = {metric.id for metric in catalogue.metrics_of(population.id)}
        assert set(frames[population.id].columns) == {*population.keys, *metrics}


def test_joining_nodes_without_recorded_heights_have_no_samples() -> None:
    joiners = pl.DataFrame([("b", 0, NS, 2 * NS, 40, True)], schema=JOINER_SCHEMA, orient="row")
    events, window = _whole([NS], [NS]), Window(NS, 4 * NS)
    assert "joiner" not in samples(events, Sampled(PROCESSES, PRESSURE, joiners=joiners), window, {})
    heights = pl.DataFrame([(NS, "b", 3, 5, True)], schema=HEIGHT_SCHEMA, orient="row")
    assert "joiner" not in samples(events, Sampled(PROCESSES, PRESSURE, heights=heights), window, {})


def test_a_block_with_an_unseen_commit_has_the_time_of_its_header() -> None:
    unseen = BLOCKS.with_columns(observed_ns=pl.Series([NS, None, 3 * NS, 5 * NS]))
    frame = block_samples(unseen, Window(0, 10 * NS))
    assert frame["time_s"].to_list() == [1.0, 1.0, 3.0, 5.0]
    assert frame["block_interval_observed_s"].to_list() == [None, None, None, 2.0]
    assert committed_per_second(unseen, NS * np.array([1, 3, 5])).tolist() == [20.0, 40.0]


def test_the_next_header_is_that_of_the_next_height() -> None:
    """If a block is missing, the time of the next block is unknown."""
    events = replace(_events([0, 0], [0, 0], [5, 7]), blocks=BLOCKS.filter(pl.col("height") != 6))
    frame = transaction_samples(events, Window(0, NS))
    assert frame["tx_latency_next_header_s"].to_list() == [None, None]
    assert frame["tx_answer_s"].to_list() == [0.0, 0.0]


def test_a_window_includes_its_start_and_excludes_its_end() -> None:
    window = Window(NS, 3 * NS + NS // 2)
    assert window.seconds == 2
    times = pl.DataFrame({"at_ns": [NS - 1, NS, 3 * NS + NS // 2 - 1, 3 * NS + NS // 2]})
    assert times.filter(window.contains("at_ns"))["at_ns"].to_list() == [NS, 3 * NS + NS // 2 - 1]
    assert times.select(window.time_s("at_ns")).to_series().to_list()[1] == 0.0


def test_the_window_is_the_load_without_its_warm_up() -> None:
    """Blocks of an empty network and cold caches are not the release's figures."""
    load = Load(warm_up_s=2.5, duration_s=10.0)
    assert Window.of_load(7 * NS, load) == Window(9 * NS + NS // 2, 19 * NS + NS // 2)


def test_a_restarted_node_is_found_by_its_start_time() -> None:
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
    values, lines, number_retained = read_page(page)
    assert values == {"cometbft_mempool_size": 12.0, "cometbft_p2p_message_send_bytes": 7.0}
    assert (lines, number_retained) == (4, 3)


def test_every_transaction_of_a_block_is_counted_once() -> None:
    ours, theirs = (bytes([number] * 16) for number in (1, 2))
    first, second = (encode_transaction(1, 200, 256, time_ns, ours, 7) for time_ns in (1, 2))
    foreign = encode_transaction(1, 200, 256, 1, theirs, 7)
    blocks = [Block(1, 0, "p", 0, 0, [first, foreign, b"x=y"]), Block(2, 1, "p", 0, 0, [second, first])]
    places, counts = _places(blocks, _recogniser(ChainReading(ours), b""))
    assert sorted(places.values()) == [(1, 0), (2, 0)]
    assert counts == {"foreign": 1, "duplicates": 1, "undecodable": 1}


def test_the_first_arrival_of_a_commit_is_used() -> None:
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
def test_times_may_have_any_number_of_digits(text: str, nanoseconds: int) -> None:
    assert parse_time(text) == nanoseconds


def test_an_invalid_time_is_refused() -> None:
    with pytest.raises(RpcError, match="is not a time"):
        parse_time("yesterday")


@given(st.integers(2, 20), st.integers(1, 4), st.integers(0, 1000))
def test_random_topologies_are_connected_and_reproducible(nodes: int, peers: int, seed: int) -> None:
    """An isolated node would halt the network or never take part, and the figures would not show why."""
    peers = min(peers, nodes - 1)
    network = NodeNetwork(validators=nodes, topology="random", peers_per_node=peers)
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
