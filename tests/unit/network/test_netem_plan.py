"""The kernel's delay tree as data: the commands for a kernel with netem, tested without netem."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chainmark.network.netem import LinkDirection, netem, queue_stats, tc_change, tc_tree

LONDON = LinkDirection("198.18.0.2", 0.038, 0.05, 0.0, None)
TOKYO = LinkDirection("198.18.0.3", 0.073, 0.05, 0.01, 10_000_000)


def _classified(commands: list[str], address: str) -> str:
    """The class of a packet to an address by the kernel's rule: the first matching filter."""
    for command in commands:
        match = re.search(r"match ip dst (\S+)/32 flowid 1:(\w+)", command)
        if match and match[1] == address:
            return next(line for line in commands if f"parent 1:{match[2]} handle {match[2]}: " in line)
    return "default"


def test_each_address_gets_the_delay_of_its_pair() -> None:
    """A faulty tree would give nearly every pair the delay of the first zone, as the incumbent's tree did."""
    commands = tc_tree([LONDON, TOKYO])
    assert "delay 38000us 1900us distribution normal rate" in _classified(commands, "198.18.0.2")
    assert "delay 73000us 3650us distribution normal loss 1.000000% rate 10000000bit" in _classified(
        commands, "198.18.0.3"
    )
    assert _classified(commands, "198.18.0.254") == "default"
    assert sum("filter add" in line for line in commands) == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=250))
def test_every_link_has_its_own_class_queue_and_filter(delays_s: list[float]) -> None:
    lines = [LinkDirection(f"198.18.0.{index}", delay_s, 0.05, 0.0, None) for index, delay_s in enumerate(delays_s, 1)]
    commands = tc_tree(lines)
    for kind in ("class add dev wan0 parent 1: classid (\\S+)", "handle (\\w+): netem", "flowid (\\S+)"):
        handles = [match[1] for line in commands if (match := re.search(kind, line))]
        assert len(handles) == len(set(handles)) == len(lines) + kind.startswith("class")
    for line in lines:
        assert f"delay {round(line.delay_s * 1e6)}us " in _classified(commands, line.address)


def test_a_cut_changes_only_the_queue_of_its_link() -> None:
    commands = tc_tree([LONDON, TOKYO])
    cut = tc_change(1, replace(TOKYO, loss=1.0))
    place = "dev wan0 parent 1:11 handle 11: "
    assert place in cut
    assert place in _classified(commands, "198.18.0.3")
    assert "loss 100.000000%" in cut
    assert tc_change(1, TOKYO) == _classified(commands, "198.18.0.3").replace("add", "change")


def test_a_rate_is_always_set_because_jitter_would_reorder_packets() -> None:
    assert "rate 10000000000bit" in netem(LONDON)
    assert "distribution" not in netem(replace(LONDON, delay_s=0.0))
    assert "distribution" not in netem(replace(LONDON, jitter_share=0.0))


def test_kernel_counts_are_summed_over_nodes() -> None:
    answer = json.dumps(
        [
            {"kind": "htb", "packets": 99, "bytes": 9900, "drops": 5, "qlen": 1},
            {"kind": "netem", "packets": 10, "bytes": 1000, "drops": 2, "qlen": 1},
            {"kind": "netem", "packets": 20, "bytes": 3000, "drops": 0, "qlen": 0},
        ]
    )
    stats = queue_stats([answer, answer])
    assert (stats.delivered, stats.delivered_bytes, stats.under_way) == (60, 8000, 2)
    assert stats.dropped == {"lost or queue full": 4}
    # The kernel does not report the number of packets sent to the tree, so a sum of the classes would always balance.
    assert (stats.packets, stats.bytes) == (None, None)
