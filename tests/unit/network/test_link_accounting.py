"""Every packet between nodes is in exactly one class: an error in any class is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import EnvironmentFailure
from chainmark.network.emulation import _link_stats
from chainmark.network.links import LinkStats

if TYPE_CHECKING:
    from chainmark._native import SwitchStats

ENDS = ("delivered", "lost", "no_route", "cut", "queue_full", "write_failed", "not_ipv4", "queued")
OTHERS = (
    *("read_bytes", "delivered_bytes", "unread", "resets", "delayed", "error_p50_ns", "error_p99_ns", "error_max_ns"),
    *("cpu_ns", "realtime"),
)


def switch_stats(ends: dict[str, int], read: int) -> SwitchStats:
    """The switch's statistics with these packet counts; all others are 0."""
    return cast("SwitchStats", {**dict.fromkeys(OTHERS, 0), **ends, "read": read})


@given(st.fixed_dictionaries({name: st.integers(0, 9) for name in ENDS}), st.integers(0, 40))
def test_the_switchs_counts_are_accepted_only_if_they_add_up(ends: dict[str, int], read: int) -> None:
    whole = sum(ends.values())
    stats = _link_stats(switch_stats(ends, whole))
    assert stats.packets == stats.delivered + sum(stats.dropped.values()) + stats.under_way
    if read != whole:
        with pytest.raises(EnvironmentFailure, match="the delay switch lost count of packets"):
            _link_stats(switch_stats(ends, read))


@pytest.mark.parametrize("broken", ENDS)
def test_each_class_can_break_the_sum(broken: str) -> None:
    """If the sum omitted a class, packets would vanish without a report."""
    ends = {name: number for number, name in enumerate(ENDS, 1)}
    with pytest.raises(EnvironmentFailure, match="lost count"):
        _link_stats(switch_stats(ends | {broken: ends[broken] + 1}, sum(ends.values())))


def test_unread_packets_and_generated_resets_are_not_part_of_the_sum() -> None:
    stats = LinkStats(packets=5, bytes=500, delivered=2, delivered_bytes=200, dropped={"lost": 2}, under_way=1)
    assert replace(stats, unread=7, resets=3).balanced
    assert not replace(stats, under_way=2).balanced
    assert not replace(stats, dropped={"lost": 2, "cut": 1}).balanced
