"""The zones of a network: a node is compared with the nodes of its own zone."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from chainmark.compare.breakdowns import _spread
from chainmark.network.emulation import EmulatedLinks, EmulationPlan
from chainmark.network.links import Fabric
from chainmark.network.zones import load_zone_table
from chainmark.stats.keyed_means import Means
from chainmark.systems.cometbft import SYSTEM
from chainmark.systems.cometbft.system import zones

AWS = load_zone_table("aws")
FAR = AWS.zones[1]


def test_nodes_of_a_distant_zone_are_not_outliers_because_of_it() -> None:
    """Their blocks are later in every release. Warnings about them would hide the node that is really slow."""
    names = tuple(f"node{number}" for number in range(36))
    nearby = (AWS.zones[0], AWS.zones[0], FAR)
    zone_of = {name: nearby[number % 3] for number, name in enumerate(names)}
    links = EmulatedLinks(EmulationPlan(names, zone_of, AWS), (), cast(Fabric, None), Path())
    metric = SYSTEM.catalogue().metric("node_cpu_cores")
    means = {name: ((3.0 if zone == FAR else 1.0) + 0.001 * int(name[4:]), 100) for name, zone in zone_of.items()}
    group = zones(links)["host"]
    assert group.label == "zone"
    assert _spread(Means(means), metric).outlying == {name for name, zone in zone_of.items() if zone == FAR}
    assert _spread(Means(means), metric, group.of).outlying == set()
    assert _spread(Means(means | {"node3": (3.0, 100)}), metric, group.of).outlying == {"node3"}


def test_a_network_without_zones_has_no_zone_groups() -> None:
    assert zones(None) == {}
    assert zones(EmulatedLinks(EmulationPlan(("node0",)), (), cast(Fabric, None), Path())) == {}
