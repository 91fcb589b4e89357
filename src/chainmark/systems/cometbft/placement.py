"""Where the nodes of a network run: on this machine, in namespaces with links between them, or on other machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.network.addresses import loopback_addresses, require_free_ports
from chainmark.network.emulation import EmulatedLinks, EmulationPlan, emulated_links
from chainmark.network.processes import ProcessGroup, RunningProcesses
from chainmark.network.remote import RemoteHost, RemoteProcesses
from chainmark.network.zones import load_zone_table
from chainmark.systems.cometbft.network_plan import (
    APPLICATION_PORT,
    METRICS_PORT,
    P2P_PORT,
    PPROF_PORT,
    NetworkPlan,
    NodeEndpoints,
)
from chainmark.systems.cometbft.rpc import RPC_PORT
from chainmark.systems.cometbft.shape import Member, Role, require_capacity

_ZONE_ORDER = (Role.SEED, Role.FULL, Role.VALIDATOR, Role.JOINER)


@contextmanager
def links_of(plan: NetworkPlan, members: list[Member]) -> Iterator[EmulatedLinks | None]:
    """Links between namespaces, if the profile requests them."""
    shape = plan.profile.network
    if not shape.in_namespaces:
        yield None
        return
    table = load_zone_table(shape.zones) if shape.zones else None
    # Seeds, full nodes, validators, as the published networks are spread over the zones; joining nodes come last.
    in_turn = [member.name for role in _ZONE_ORDER for member in members if member.role is role]
    emulation = EmulationPlan(
        nodes=tuple(member.name for member in members),
        zone_of=table.assign_in_turn(in_turn) if table else None,
        table=table,
        jitter_share=shape.jitter_share,
        loss=shape.loss,
        bandwidth_bps=shape.bandwidth_bps or None,
        backend=shape.emulation,
        seed=plan.seed,
    )
    with emulated_links(emulation, plan.links_folder) as links:
        yield links


def hosts_for(
    plan: NetworkPlan, members: Sequence[Member], machines: Sequence[RemoteHost]
) -> list[tuple[RemoteHost, int]]:
    """The machines that run nodes, with their cores; none if this one does.

    Raises:
        UsageError: the profile emulates links, or an application needs a file of this machine.
        EnvironmentFailure: the machines are too small for the network, or all are reserved for the load.
    """
    if not machines:
        return []
    if plan.profile.network.in_namespaces:
        raise UsageError(
            "links between nodes are emulated only on one machine",
            "omit `--on`, or `network.links` and `network.zones`",
        )
    if plan.external is not None and (file := plan.external.file()) is not None:
        raise UsageError(
            f"`application.command` names the file `{file}`, which the other machines do not have",
            "only the program itself is sent to them: make it one file, or omit `--on`",
        )
    hosts = [host for host in machines if not host.measures]
    if not hosts:
        raise EnvironmentFailure(
            "all workers of the cluster are reserved for the load", "start one without `--resources load=1`"
        )
    if plan.program_ports and len(hosts) < len(members):
        raise EnvironmentFailure(
            f"each of the {len(members)} nodes opens port {plan.program_ports[0]}, so no two can share a host; "
            f"there are {units.plural(len(hosts), 'host')}",
            "start more workers, or close the port in the adapter's `files` and remove it from its `start.ports`",
        )
    facts = [host.about() for host in hosts]
    cores, memory_bytes = sum(item.cores for item in facts), sum(item.memory_bytes for item in facts)
    require_capacity(plan.profile, cores, memory_bytes, units.plural(len(hosts), "host"))
    return [(host, item.cores) for host, item in zip(hosts, facts, strict=True)]


def spread(
    members: Sequence[Member], hosts: Sequence[tuple[RemoteHost, int]], *, alone: bool = False
) -> list[RemoteHost]:
    """The host of each node: that with the fewest nodes per core, the first of equal ones; none without hosts.

    Args:
        alone: no two nodes share a host.
    """
    nodes = [0] * len(hosts)
    result = []
    for _ in members if hosts else ():
        free = [at for at, count in enumerate(nodes) if not (alone and count)]
        at = min(free, key=lambda at: (nodes[at] + 1) / hosts[at][1])
        nodes[at] += 1
        result.append(hosts[at][0])
    return result


def processes_on(
    members: list[Member], hosts: Sequence[RemoteHost], measuring: Sequence[RemoteHost]
) -> RunningProcesses:
    """The group that starts the nodes' processes: on their hosts, or without hosts on this machine."""
    if not hosts:
        return ProcessGroup()
    return RemoteProcesses({member.name: host for member, host in zip(members, hosts, strict=True)}, measuring)


def places_of(
    plan: NetworkPlan, members: list[Member], links: EmulatedLinks | None, hosts: Sequence[RemoteHost]
) -> list[NodeEndpoints]:
    """The nodes' addresses; ``hosts`` are those of the nodes in their order, or empty."""
    if hosts:
        addresses = [host.address for host in hosts]
        return [NodeEndpoints(address, addresses[:at].count(address)) for at, address in enumerate(addresses)]
    if links is not None:
        return [NodeEndpoints(links.addresses[member.name]) for member in members]
    addresses = loopback_addresses(plan.profile.network.first_address, len(members), plan.lane)
    ports = [P2P_PORT, RPC_PORT, METRICS_PORT]
    ports += [APPLICATION_PORT] if plan.external is not None else []
    ports += [PPROF_PORT] if plan.with_pprof else []
    ports += plan.program_ports
    require_free_ports(addresses, tuple(ports))
    return [NodeEndpoints(address) for address in addresses]
