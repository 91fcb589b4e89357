"""Conditions for valid figures from a Prometheus server: each gate at its limit, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from chainmark.core.manifest import Gate, GateStatus
from chainmark.core.times import NS
from chainmark.systems.cometbft.analyse import Window
from chainmark.systems.cometbft.prometheus_gates import (
    HEIGHT,
    START,
    Coverage,
    GateLimits,
    PrometheusGateInputs,
    find_gates,
)

WINDOW = Window(100 * NS, 110 * NS)
ALL = range(100, 110)


def scraped(*rows: tuple[str, str, Sequence[float], Sequence[float]]) -> pl.DataFrame:
    """Scrapes from a host, a metric, the times in seconds and the values."""
    flat = [
        (host, metric, int(time_s * NS), float(value))
        for host, metric, times, values in rows
        for time_s, value in zip(times, values, strict=True)
    ]
    schema = {"host": pl.String, "metric": pl.String, "time_ns": pl.Int64, "value": pl.Float64}
    # The rows are in an arbitrary order, because callers must not rely on it.
    return pl.DataFrame(flat[1::2] + flat[::2][::-1], schema=schema, orient="row")


def heights(host: str, times: Sequence[float]) -> tuple[str, str, Sequence[float], Sequence[float]]:
    return host, HEIGHT, times, range(len(times))


def looked_at(*rows: tuple[str, str, Sequence[float], Sequence[float]], interval_s: float = 1.0) -> Coverage:
    return Coverage.of(scraped(*rows), WINDOW, interval_s)


# --- coverage -------------------------------------------------------------------------------------------------------


def test_the_share_of_scrapes_is_relative_to_the_possible_number() -> None:
    """Ten seconds with one scrape per second. Scrapes outside the window and other metrics do not count."""
    coverage = looked_at(
        heights("whole", ALL),
        heights("half", range(100, 110, 2)),
        heights("late", [*range(90, 100), 105, *range(110, 120)]),
        heights("twice", [100 + place / 2 for place in range(20)]),
        ("silent", START, ALL, [1] * 10),
    )
    assert coverage.shares == {"whole": 1.0, "half": 0.5, "late": 0.1, "twice": 1.0, "silent": 0.0}
    assert list(coverage.shares) == sorted(coverage.shares)
    assert looked_at(heights("a", range(100, 110, 2)), interval_s=2.0).shares == {"a": 1.0}


def test_an_unknown_or_too_long_interval_expects_one_scrape() -> None:
    assert looked_at(heights("a", [104]), heights("b", [10]), interval_s=0.0).shares == {"a": 1.0, "b": 0.0}
    assert looked_at(heights("a", [104]), interval_s=60.0).shares == {"a": 1.0}
    assert looked_at(heights("a", [104]), interval_s=4.0).shares == {"a": pytest.approx(0.4)}


def test_a_gap_is_longer_than_two_and_a_half_intervals() -> None:
    """Gaps at the start and the end of the window count as well, because values for them would be guesses."""
    coverage = looked_at(
        heights("a", [100, 102.5, 103, 104, 105, 106, 107.5]),
        heights("b", [103, 104, 105, 107.6, 108, 109]),
        heights("c", [100, 102, 104, 106, 107]),
        ("d", START, [100], [1]),
    )
    assert coverage.gaps == (
        ("b", 100 * NS, 103 * NS),
        ("b", 105 * NS, int(107.6 * NS)),
        ("c", 107 * NS, 110 * NS),
        ("d", 100 * NS, 110 * NS),
    )
    assert looked_at(heights("a", [103, 107]), interval_s=2.0).gaps == ()
    often = looked_at(heights("a", [100 + place / 2 for place in range(16)]), interval_s=0.5)
    assert often.gaps == (("a", int(107.5 * NS), 110 * NS),)


def test_a_restarted_node_reports_another_start_or_a_lower_height() -> None:
    coverage = looked_at(
        ("same", START, [99, 101, 105], [7, 7, 7]),
        ("anew", START, [99, 101, 105], [7, 7, 8]),
        ("back", HEIGHT, [99, 101, 103, 105], [5, 6, 4, 5]),
        ("first", START, [100, 101], [9, 9]),
        ("outside", START, [90, 95, 110], [1, 2, 3]),
        ("edge", START, [99, 100], [3, 2]),
        ("both", START, [99, 105], [1, 2]),
        ("both", HEIGHT, [99, 105], [9, 1]),
        ("other", "cometbft_p2p_peers", [99, 105], [4, 1]),
        ("still", HEIGHT, [99, 101, 103, 105], [5, 6, 6, 7]),
        ("late", HEIGHT, [101, 103], [5, 6]),
        ("late", START, [101, 103], [99, 99]),
    )
    assert coverage.restarts == (("edge", 100 * NS), ("back", 103 * NS), ("anew", 105 * NS), ("both", 105 * NS))
    together = [(name, START, [99, 104], [1, 2]) for name in "hgbadcfe"]
    assert looked_at(*together).restarts == tuple((name, 104 * NS) for name in "abcdefgh")


def test_events_of_the_nodes_are_listed_in_order_of_time() -> None:
    coverage = Coverage(
        {"a": 1.0},
        (("b", 104 * NS, 107 * NS + NS // 4), ("a", 101 * NS, 104 * NS)),
        (("b", 103 * NS), ("a", 104 * NS)),
    )
    assert [(incident.time_ns // NS, incident.what) for incident in coverage.incidents()] == [
        (101, "a was not scraped for 3.0 s"),
        (103, "b restarted"),
        (104, "a restarted"),
        (104, "b was not scraped for 3.2 s"),
    ]


# --- gates ----------------------------------------------------------------------------------------------------------

LIMITS = GateLimits(complete_min=0.98, blocks_min=30)


def gates(
    shares: dict[str, float] | None = None,
    restarts: tuple[tuple[str, int], ...] = (),
    blocks: int = 30,
    warnings: tuple[str, ...] = (),
) -> dict[str, Gate]:
    coverage = Coverage(shares or {"a": 0.99, "b": 0.98}, (), restarts)
    all_gates = find_gates(PrometheusGateInputs(coverage, LIMITS, blocks, warnings))
    assert [gate.id for gate in all_gates] == ["answered", "scraped", "nodes_steady", "blocks"]
    return {gate.id: gate for gate in all_gates}


def test_everything_at_its_limit_passes() -> None:
    by_id = gates()
    assert {gate.status for gate in by_id.values()} == {GateStatus.PASS}
    assert [(gate.label, gate.measured, gate.limit) for gate in by_id.values()] == [
        ("the server's responses were complete", "no warning", "no warning"),
        ("every node was scraped throughout", "98.0 % of b", "≥ 98.0 % of every node"),
        ("no node restarted", "none", "none"),
        ("enough blocks", "30 blocks", "≥ 30 blocks"),
    ]


def test_each_gate_fails_only_for_its_own_reason() -> None:
    """It names the reason: the node that was scraped least, the restarted nodes, or the server's message."""
    cases = {
        "answered": (gates(warnings=("results truncated", "another")), "results truncated"),
        "scraped": (gates({"b": 0.9799, "a": 0.9799, "c": 1.0}), "97.99 % of a"),
        "nodes_steady": (gates(restarts=(("b", 1), ("a", 2), ("b", 3))), "a, b"),
        "blocks": (gates(blocks=29), "29 blocks"),
    }
    for failing, (by_id, measured) in cases.items():
        assert [name for name, gate in by_id.items() if gate.status is GateStatus.FAIL] == [failing]
        assert by_id[failing].measured == measured
    three, four = (tuple((name, 1) for name in names) for names in ("abc", "dabc"))
    assert gates(restarts=three)["nodes_steady"].measured == "a, b, c"
    assert gates(restarts=four)["nodes_steady"].measured == "a, b, c …"
