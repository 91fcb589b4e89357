"""The shape of a network: its nodes, their versions, their connections, and the resources that they need.

Validators and full nodes are named ``node0`` …, seeds ``seed0`` …, nodes that join later ``joiner0`` …; addresses are
assigned in that order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cometbft.profile import CometBFTProfile, NodeNetwork

# The resources of a node that keeps up, measured on networks of 4 to 50 nodes with 2 to 10 links each, up to 200 tx/s:
# cores per link, cores per link and tx/s, and resident bytes. A network under a higher load falls behind, which may be
# intended; so a higher load is not counted.
CORES_PER_LINK = 0.0035
CORES_PER_LINK_AND_RATE = 0.000028
COUNTED_RATE_PER_S = 200
NODE_BYTES = 150 << 20
# With peer exchange, a node keeps 10 outbound peers, and is the peer of as many others.
PEX_OUTBOUND = 10
# Maximum number of nodes that a joining node dials: each of them sends it the whole chain's blocks.
JOINERS_PEERS = 10


class Role(StrEnum):
    """The role of a node."""

    VALIDATOR = "validator"
    FULL = "full node"
    SEED = "seed"
    JOINER = "joining node"


@dataclass(frozen=True)
class Member:
    """One planned node of a network.

    Attributes:
        generated: the name that the node's own tool gives its home.
        version: what it runs.
        peers: the names of the nodes that it dials and stays connected to.
        seeds: the names of the seeds from which it gets peers.
        pex: whether it exchanges addresses with its peers.
        starts: False for an offline validator.
    """

    name: str
    role: Role
    generated: str
    version: str
    peers: tuple[str, ...]
    seeds: tuple[str, ...]
    pex: bool
    starts: bool = True


def members_of(profile: CometBFTProfile, version: str, seed: int) -> list[Member]:
    """All nodes of a network, in the order of their addresses.

    Args:
        profile: defines the network.
        version: of the subject.
        seed: random topologies are drawn from it.
    """
    network = profile.network
    names = [f"node{index}" for index in range(network.nodes)]
    seeds = [f"seed{index}" for index in range(network.seeds)]
    dialled = peer_choice(network, seed)
    pex = network.topology != "random"
    members = []
    for index, name in enumerate(names):
        role = Role.VALIDATOR if index < network.validators else Role.FULL
        other = network.other_version and runs_other(index, network.other_share)
        members.append(
            Member(
                name=name,
                role=role,
                generated=name,
                version=network.other_version if other else version,
                peers=tuple(names[peer] for peer in dialled[index]),
                seeds=(seeds[index % len(seeds)],) if seeds else (),
                pex=pex,
                starts=index in network.started_nodes,
            )
        )
    for index, name in enumerate(seeds):
        others = tuple(other for other in seeds if other != name)
        members.append(Member(name, Role.SEED, f"node{network.nodes + index}", version, others, (), pex=True))
    first_joiner = network.nodes + len(seeds)
    started = tuple(names[index] for index in network.started_nodes)
    for index in range(profile.rotating.joiners):
        # It knows all others, as the published test's joining nodes know all seeds; no other node knows it.
        peers = () if seeds else started[:JOINERS_PEERS]
        name, generated = f"joiner{index}", f"node{first_joiner + index}"
        members.append(
            Member(name, Role.JOINER, generated, version, peers, tuple(seeds), pex=bool(seeds), starts=False)
        )
    return members


def runs_other(index: int, share: float) -> bool:
    """Whether the node of that number has the other version; those are spread evenly, and the first is not one."""
    # A share with few digits, 0.3333 for a third, is rounded up to the next whole node.
    return int((index + 1) * share + 0.01) > int(index * share + 0.01)


def peer_choice(network: NodeNetwork, seed: int) -> list[list[int]]:
    """The nodes that each node dials, by number. Random graphs are drawn again until they are connected."""
    others = [[peer for peer in range(network.nodes) if peer != node] for node in range(network.nodes)]
    if network.topology == "full_mesh":
        return others
    if network.topology == "seeds":
        return [[] for _ in others]
    draw = random.Random(seed)  # noqa: S311 - a topology, not a secret
    while True:
        chosen = [sorted(draw.sample(peers, network.peers_per_node)) for peers in others]
        if _connected(chosen, set(network.started_nodes)):
            return chosen


def _connected(dialled: Sequence[Sequence[int]], there: set[int]) -> bool:
    """Whether the online nodes reach each other without the others."""
    neighbours: list[set[int]] = [set(peers) & there for peers in dialled]
    for node in there:
        for peer in set(dialled[node]) & there:
            neighbours[peer].add(node)
    first = min(there)
    reached, waiting = {first}, [first]
    while waiting:
        for peer in neighbours[waiting.pop()] - reached:
            reached.add(peer)
            waiting.append(peer)
    return reached == there


@dataclass(frozen=True)
class MachineNeed:
    """The resources of a network that just keeps up."""

    nodes: int
    cores: float
    memory_bytes: int


def need_of(profile: CometBFTProfile) -> MachineNeed:
    """An estimate from measured networks; a random topology doubles a node's links, because others dial it, too."""
    network = profile.network
    started = len(network.started_nodes) + network.seeds
    links = {
        "full_mesh": started - 1,
        "random": min(started - 1, 2 * network.peers_per_node),
        "seeds": min(started - 1, 2 * PEX_OUTBOUND),
    }[network.topology]
    rate_per_s = min(profile.load.total_rate_per_s, COUNTED_RATE_PER_S)
    cores = started * links * (CORES_PER_LINK + CORES_PER_LINK_AND_RATE * rate_per_s)
    return MachineNeed(started, cores, started * NODE_BYTES)


def require_capacity(profile: CometBFTProfile, cores: int, memory_bytes: int, place: str = "this machine") -> None:
    """Refuse a network that is too large for its machines: its figures would be those of an overloaded machine.

    Args:
        profile: states whether to check at all.
        cores: of all machines.
        memory_bytes: available memory.
        place: the machines in a sentence.

    Raises:
        EnvironmentFailure: it is too large.
    """
    need = need_of(profile)
    if not profile.network.check_capacity or (need.cores <= cores and need.memory_bytes <= memory_bytes):
        return
    raise EnvironmentFailure(
        f"{need.nodes} nodes are too many for {place}: without load they need about "
        f"{units.number(need.cores, 1)} cores and {units.byte_size(need.memory_bytes)} of memory, "
        f"but there are {cores} cores and {units.byte_size(memory_bytes)}",
        "use a smaller profile, or `--set network.check_capacity=false` to try anyway",
    )
