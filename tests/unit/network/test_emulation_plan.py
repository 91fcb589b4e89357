"""Plans of emulated links: validated before any link is created, with the intended delays and with unused addresses."""

from __future__ import annotations

import ipaddress
import os
from typing import Any

import pytest

from chainmark.core.errors import UsageError
from chainmark.network import namespaces
from chainmark.network.emulation import EmulationPlan
from chainmark.network.namespaces import (
    claimed_network,
    host_device,
    network_of_device,
    own_identity,
    start_ticks,
    try_lock,
)
from chainmark.network.zones import load_zone_table

AWS = load_zone_table("aws")
TWO: dict[str, Any] = {"nodes": ("a", "b"), "zone_of": {"a": "Canada", "b": "Seoul"}, "table": AWS}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"zone_of": {"a": "Canada"}}, "node `b` has no zone"),
        ({"zone_of": {"a": "Canada", "b": "Mars"}}, "node `b` is in the unknown zone `Mars`"),
        ({"table": None}, "zones of nodes and a zone table require each other"),
        ({"nodes": ("a", "a")}, "two nodes have the same name"),
        ({"nodes": ()}, "0 nodes cannot be linked"),
        ({"nodes": tuple(f"n{index}" for index in range(254))}, "254 nodes cannot be linked"),
        ({"loss": 1.5}, "loss is 1.5"),
        ({"jitter_share": -0.1}, "jitter_share is -0.1"),
        ({"bandwidth_bps": 0}, "bandwidth_bps is 0"),
    ],
)
def test_an_invalid_plan_is_refused_before_anything_is_created(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        EmulationPlan(**(TWO | changed))
    assert sentence in caught.value.message


def test_a_round_trip_is_the_sum_of_both_directions_and_the_wire() -> None:
    assert EmulationPlan(**TWO).round_trip_s("a", "b") == pytest.approx(0.085 + 0.084)
    narrow = EmulationPlan(**TWO, bandwidth_bps=48_000)
    assert narrow.round_trip_s("a", "b") == pytest.approx(0.169 + 2 * 0.008)
    assert EmulationPlan(("a", "b")).round_trip_s("a", "b") == 0


def test_concurrent_experiments_get_different_networks() -> None:
    with claimed_network() as first, claimed_network() as second:
        assert not first.overlaps(second)
        assert first.subnet_of(namespaces.RANGE)
        assert try_lock(first) is None
    free = try_lock(first)
    assert free is not None
    free.close()


def test_a_network_in_the_hosts_routing_table_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = ipaddress.IPv4Network("198.18.0.0/16")
    monkeypatch.setattr(namespaces, "_routes", lambda: [taken])
    with claimed_network() as network:
        assert not network.overlaps(taken)


def test_the_network_follows_from_the_hosts_device_name() -> None:
    network = ipaddress.IPv4Network("198.19.255.0/24")
    assert host_device(network) == "cm-198-19-255"
    assert network_of_device("cm-198-19-255") == network
    for other in ("eth0", "cm-", "cm-10-0-0", "cm-198-19-255-1", "cm-198-19-999"):
        assert network_of_device(other) is None


def test_a_process_is_distinguished_from_a_later_one_with_the_same_id() -> None:
    pid, _, ticks = own_identity().partition("-")
    assert (int(pid), int(ticks)) == (os.getpid(), start_ticks(os.getpid()))
    assert start_ticks(2**22 + 1) is None
