"""Processor time per committed transaction: values worked out by hand, the noise, and the verdict with its margin."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from chainmark.compare.judge import judge
from chainmark.core.comparison import Judgement, Outcome
from chainmark.network.processor_speed import NOMINAL_S
from chainmark.systems.cometbft.analyse import (
    NS,
    CountCurve,
    Window,
    at_reference_speed,
    committed_until,
    cpu_per_transaction,
    host_second_samples,
    speed_is_known,
)
from chainmark.systems.cometbft.system import CometBft

from tests.unit.compare.metric_cases import ALONE, side, spread

RATE_PER_S = 200
TICK_S = 0.01
SCRAPES = pl.DataFrame(
    schema={"time_ns": pl.Int64, "host": pl.String, "metric": pl.String, "value": pl.Float64}
)  # no metrics page was read
STEADY = CountCurve(np.array([0, 100 * NS]), np.array([0.0, 100.0 * RATE_PER_S]))


def processes(times_s: list[float], cpu_s: list[float | None], host: str = "node0") -> pl.DataFrame:
    return pl.DataFrame(
        {"time_ns": [round(time * NS) for time in times_s], "host": [host] * len(times_s), "cpu_s": cpu_s},
        schema_overrides={"cpu_s": pl.Float64},
    )


def per_transaction(frame: pl.DataFrame, window: Window, committed: CountCurve = STEADY) -> list[float | None]:
    return cpu_per_transaction(frame, committed, window)["node_cpu_per_transaction_s"].to_list()


def test_the_counter_is_interpolated_at_the_edges_of_the_window() -> None:
    """Half of the CPU time between the samples at 9.5 and 10.5 s belongs to a window that starts at 10 s."""
    frame = processes([9.5, 10.5, 19.5, 20.5], [1.0, 1.5, 3.0, 3.2])
    assert per_transaction(frame, Window(10 * NS, 20 * NS)) == [pytest.approx((3.1 - 1.25) / 2_000)]


def test_a_restarted_node_counts_from_zero() -> None:
    """It was killed after 5 s with 2.0 s of CPU time. Its next process has used 0.3 s at its first sample."""
    frame = processes([0, 5, 6, 10], [1.0, 2.0, 0.3, 1.3])
    assert per_transaction(frame, Window(0, 10 * NS)) == [pytest.approx(2.3 / 2_000)]


@pytest.mark.parametrize(("last_s", "is_complete"), [(5.0, True), (4.0, False)])
def test_a_node_that_left_counts_for_the_time_it_was_running(last_s: float, *, is_complete: bool) -> None:
    """Only the transactions of that time count. A node that ran for less than half of the window has no value."""
    frame = processes([0.0, last_s], [0.0, 0.1 * last_s])
    assert per_transaction(frame, Window(0, 10 * NS)) == [pytest.approx(0.1 / RATE_PER_S) if is_complete else None]


def test_a_node_that_joined_late_counts_from_its_start() -> None:
    """Only the transactions of that time count: twice as many were committed in the half before it joined."""
    committed = CountCurve(np.array([0, 5 * NS, 10 * NS]), np.array([0.0, 2_000.0, 3_000.0]))
    frame = processes([5.0, 10.0], [1.0, 1.5])
    assert per_transaction(frame, Window(0, 10 * NS), committed) == [pytest.approx(0.5 / 1_000)]
    late = processes([5.5, 10.0], [1.0, 1.5])
    assert per_transaction(late, Window(0, 10 * NS), committed) == [None]
    assert per_transaction(processes([5.0], [1.0]), Window(0, 10 * NS), committed) == [None]


def test_an_idle_period_of_a_node_adds_no_cpu_time() -> None:
    frame = processes([0, 4, 8, 10], [5.0, 6.0, 6.0, 6.0])
    assert per_transaction(frame, Window(0, 10 * NS)) == [pytest.approx(1.0 / 2_000)]


def test_a_reading_with_other_missing_figures_has_its_cpu_time() -> None:
    """The kernel refuses some counters of a process but not others."""
    frame = processes([0, 5, 10], [1.0, 3.0, None]).with_columns(disk_read_bytes=pl.Series([1, None, 1]))
    assert per_transaction(frame, Window(0, 8 * NS)) == [pytest.approx(2.0 / 1_000)]


def with_speed(frame: pl.DataFrame, reference_cpu_s: list[float | None], times: list[int | None]) -> pl.DataFrame:
    return frame.with_columns(
        reference_cpu_s=pl.Series(reference_cpu_s, dtype=pl.Float64), reference_times=pl.Series(times, dtype=pl.Int64)
    )


def test_the_same_work_on_slower_processors_is_not_more_work() -> None:
    """A node and the reference work both need half as much CPU time again because others use the hardware."""
    window = Window(0, 10 * NS)
    usual = with_speed(processes([0, 10], [1.0, 2.0]), [0.0, 100 * NOMINAL_S], [0, 100])
    slowed = with_speed(processes([0, 10], [1.0, 2.5]), [0.0, 150 * NOMINAL_S], [0, 100])
    assert per_transaction(usual, window) == [pytest.approx(1.0 / 2_000)]
    assert per_transaction(slowed, window) == per_transaction(usual, window)
    # A version that needs a fifth more is found at any speed.
    worse = with_speed(processes([0, 10], [1.0, 2.8]), [0.0, 150 * NOMINAL_S], [0, 100])
    assert per_transaction(worse, window) == [pytest.approx(1.2 / 2_000)]


def test_only_the_speed_within_the_window_counts() -> None:
    """The processors were three times slower before it, while the nodes started."""
    frame = with_speed(processes([0, 10, 20], [0.0, 5.0, 6.0]), [0.0, 300 * NOMINAL_S, 400 * NOMINAL_S], [0, 100, 200])
    assert per_transaction(frame, Window(10 * NS, 20 * NS)) == [pytest.approx(1.0 / 2_000)]


def test_nodes_on_machines_with_different_speeds_are_corrected_each_by_its_own() -> None:
    here = with_speed(processes([0, 10], [0.0, 1.0]), [0.0, 100 * NOMINAL_S], [0, 100])
    there = with_speed(processes([0, 10], [0.0, 2.0], host="node1"), [0.0, 200 * NOMINAL_S], [0, 100])
    both = pl.concat([here, there])
    assert per_transaction(both, Window(0, 10 * NS)) == [pytest.approx(1.0 / 2_000)] * 2
    assert speed_is_known(both)


def test_without_a_measured_speed_the_time_is_as_counted_and_known_to_be() -> None:
    """Figures of nodes with a known speed are not comparable with those of others, so the run states which it has."""
    plain = processes([0, 10], [0.0, 1.0])
    unknown = with_speed(plain, [None, None], [None, None])
    assert per_transaction(plain, Window(0, 10 * NS)) == per_transaction(unknown, Window(0, 10 * NS))
    assert not speed_is_known(plain)
    assert not speed_is_known(unknown)
    assert not speed_is_known(with_speed(plain, [0.0, 1.0], [0, 1]).clear()), "no node was sampled"
    partly = pl.concat([with_speed(plain, [0.0, NOMINAL_S / 2], [0, 1]), unknown.with_columns(host=pl.lit("node1"))])
    assert not speed_is_known(partly)
    assert per_transaction(partly, Window(0, 10 * NS)) == per_transaction(plain, Window(0, 10 * NS)) * 2


def test_cpu_profiles_are_corrected_for_the_speed_of_their_nodes_processors() -> None:
    """Otherwise every function of a run on slower processors would seem to cost more than in another run."""
    fast = with_speed(processes([0, 10], [0.0, 1.0]), [0.0, 100 * NOMINAL_S], [0, 100])
    slow = with_speed(processes([0, 10], [0.0, 2.0], host="node1"), [0.0, 200 * NOMINAL_S], [0, 100])
    rows = [("cpu", "node0", 0.8), ("cpu", "node1", 1.6), ("heap", "node1", 4096.0), ("cpu", "node2", 0.3)]
    profiles = pl.DataFrame(rows, schema=["kind", "host", "value"], orient="row")
    corrected = at_reference_speed(profiles, pl.concat([fast, slow]), Window(0, 10 * NS))
    assert corrected["value"].to_list() == pytest.approx([0.8, 0.8, 4096.0, 0.3])
    plain = processes([0, 10], [0.0, 1.0])
    assert at_reference_speed(profiles, plain, Window(0, 10 * NS)).equals(profiles)


def test_the_speed_for_cpu_profiles_needs_only_the_readings_that_it_is_computed_from() -> None:
    """The kernel refuses the disk counters of one reading. The speed of a node with one reading is not known."""
    slow = with_speed(processes([0, 10], [0.0, 2.0]), [0.0, 200 * NOMINAL_S], [0, 100])
    once = with_speed(processes([5], [1.0], host="node1"), [100 * NOMINAL_S], [50])
    sampled = pl.concat([slow, once]).with_columns(disk_read_bytes=pl.Series([1, None, 1]))
    profiles = pl.DataFrame({"kind": ["cpu"] * 2, "host": ["node0", "node1"], "value": [1.6, 0.3]})
    assert at_reference_speed(profiles, sampled, Window(0, 10 * NS))["value"].to_list() == pytest.approx([0.8, 0.3])


def test_a_single_committed_transaction_has_a_cost() -> None:
    curve = CountCurve(np.array([0, 10 * NS]), np.array([0.0, 1.0]))
    assert per_transaction(processes([0, 10], [1.0, 1.25]), Window(0, 10 * NS), curve) == [0.25]


def test_without_a_committed_transaction_there_is_no_figure() -> None:
    still = CountCurve(np.array([0, 100 * NS]), np.zeros(2))
    assert per_transaction(processes([0, 10], [0.0, 1.0]), Window(0, 10 * NS), still) == [None]
    assert per_transaction(processes([0, 10], [None, None]), Window(0, 10 * NS)) == []


def _a_fifth_more(metric_id: str, base: float) -> Judgement:
    """The judgement of a candidate that uses a fifth more than the base: three runs per side, 2 % noise."""
    metric = CometBft().catalogue().metric(metric_id)
    return judge(metric, "mean", side(spread(base, 0.02)), side(spread(1.2 * base, 0.02)), ALONE)


@pytest.mark.parametrize(
    ("cores", "by_cores"), [(0.06, Outcome.EQUAL), (0.09, Outcome.INCONCLUSIVE), (0.135, Outcome.WORSE)]
)
def test_20_percent_more_cpu_is_found_at_four_nodes_and_200_transactions_per_second(
    cores: float, by_cores: Outcome
) -> None:
    """The floor for CPU cores hides this change: the effective margin is 22 % at 0.09 cores and 33 % at 0.06."""
    judgement = _a_fifth_more("node_cpu_per_transaction_s", cores / RATE_PER_S)
    assert judgement.margin_high is not None
    assert judgement.margin_high < 0.15
    assert judgement.outcome is Outcome.WORSE
    assert _a_fifth_more("node_cpu_cores", cores).outcome is by_cores


def test_a_nearly_idle_network_is_judged_by_the_same_margin() -> None:
    """Fifty nodes with 1 tx/s and 0.05 cores: the floor is far below the margin."""
    judgement = _a_fifth_more("node_cpu_per_transaction_s", 0.05)
    assert (judgement.outcome, judgement.margin_high) == (Outcome.WORSE, 0.1)


def test_the_margin_is_wider_than_the_ticks_of_the_counter() -> None:
    """User and system time are truncated to ticks at both edges of the shortest window."""
    floor = CometBft().catalogue().metric("node_cpu_per_transaction_s").floor
    assert floor > 4 * 2 * 2 * TICK_S / (30 * RATE_PER_S)


def _simulated(rng: np.random.Generator, rate_per_s: float) -> tuple[pl.DataFrame, CountCurve]:
    """A node with 0.09 cores at 200 tx/s: a tenth when idle, a third while committing blocks, the rest on arrival."""
    ends_s = np.cumsum(rng.normal(1.15, 0.08, 60)) - rng.uniform(0, 1.15)
    counts = np.round(rate_per_s * np.diff(ends_s, prepend=ends_s[0] - 1.15))
    blocks = pl.DataFrame(
        {
            "height": np.arange(60),
            "time_ns": (ends_s * NS).astype(np.int64),
            "observed_ns": (ends_s * NS).astype(np.int64),
            "transactions": counts.astype(np.int64),
        }
    )
    times_s = np.sort(np.arange(60) + rng.uniform(0, 1) + rng.exponential(0.05, 60))
    committing_s = np.clip((times_s[:, None] - ends_s + 0.2) / 0.2, 0, 1) @ counts
    cpu_s = 0.009 * times_s + 0.051 / 200 * rate_per_s * times_s + 0.03 / 200 * committing_s + rng.uniform(0, TICK_S)
    unused = dict.fromkeys(("rss_bytes", "open_files", "threads", "disk_read_bytes", "disk_written_bytes"), 0)
    queue = dict.fromkeys(("ran_s", "waited_s", "contended_s"), 0.0)
    frame = processes(times_s.tolist(), (np.floor(cpu_s / TICK_S) * TICK_S).tolist())
    whole = frame.with_columns(**{name: pl.lit(value) for name, value in (unused | queue).items()})
    return whole, committed_until(blocks)


def _deviation(runs: list[pl.DataFrame]) -> float:
    """The relative standard deviation of the means of the runs' last columns."""
    means = [run.to_series(-1).drop_nulls().to_numpy().mean() for run in runs]
    return float(np.std(means, ddof=1) / np.mean(means))


@pytest.mark.parametrize(("rate_deviation", "times_less"), [(0.0, 1.0), (0.03, 3.0)])
def test_it_varies_less_between_runs_than_the_mean_of_the_seconds(rate_deviation: float, times_less: float) -> None:
    """This holds with equal load, and much more if the committed transactions of the runs differ by a few per cent."""
    rng, window = np.random.default_rng(1), Window(12 * NS, 42 * NS)
    runs = [_simulated(rng, RATE_PER_S * (1 + rate_deviation * rng.normal())) for _ in range(60)]
    ours = _deviation([cpu_per_transaction(frame, committed, window) for frame, committed in runs])
    of_seconds = _deviation([host_second_samples(SCRAPES, frame, window).select("node_cpu_cores") for frame, _ in runs])
    assert ours * times_less < of_seconds
    assert ours < 0.01
