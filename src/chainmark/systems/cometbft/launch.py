"""A CometBFT network on this machine: generate it with the node's own tool, apply the profile, start and watch it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import polars as pl

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Configuration, Fact, Incident, Scalar
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.core.wording import enumerated
from chainmark.lab.hosts import hosts_on
from chainmark.network.addresses import loopback_addresses, require_free_ports
from chainmark.network.clocks import ClockOffset, greatest_difference_error_s, greatest_reading_error_s
from chainmark.network.emulation import EmulatedLinks, EmulationPlan, emulated_links
from chainmark.network.processes import ProcessGroup, RunningProcess, RunningProcesses
from chainmark.network.remote import RemoteHost, RemoteProcesses
from chainmark.network.round_trips import RoundTrip
from chainmark.network.sampling import ResourceSampler
from chainmark.network.zones import load_zone_table
from chainmark.systems.cometbft.applications.adapter import Adapter
from chainmark.systems.cometbft.applications.homes import (
    GENESIS,
    NodeHome,
    accounts_in,
    file_values,
    fund_accounts,
    make_home,
    make_homes,
    start_command,
    write_genesis,
)
from chainmark.systems.cometbft.applications.loading import Prepared, prepared
from chainmark.systems.cometbft.configuration import (
    change_config,
    change_genesis,
    change_toml,
    change_voting_powers,
    describe,
    flatten,
    read_config,
    validator_address,
)
from chainmark.systems.cometbft.current import heights
from chainmark.systems.cometbft.extensions import ExtendingApplication
from chainmark.systems.cometbft.external import PORT as APPLICATION_PORT
from chainmark.systems.cometbft.external import ExternalApplication
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.rpc import RpcClient, RpcError
from chainmark.systems.cometbft.shape import Member, Role, members_of, require_capacity

P2P_PORT, RPC_PORT, METRICS_PORT, PPROF_PORT = 26656, 26657, 26660, 6060
# Distance between the ports of nodes that share an address.
SHIFT = 10
TOOL_TIMEOUT_S = 120
HEALTHY_HEIGHT = 2
POLL_S = 0.05
# Maximum number of starts of a node that exits before it was healthy; retries are reported.
STARTS = 3
_ZONE_ORDER = (Role.SEED, Role.FULL, Role.VALIDATOR, Role.JOINER)


@dataclass(frozen=True)
class NodeEndpoints:
    """The addresses of a node: it has the usual ports, or as the ``shift``-th of its host those after them."""

    host: str
    shift: int = 0

    @property
    def p2p(self) -> str:
        """For other nodes."""
        return f"{self.host}:{P2P_PORT + SHIFT * self.shift}"

    @property
    def rpc(self) -> str:
        """For transactions and queries."""
        return f"{self.host}:{RPC_PORT + SHIFT * self.shift}"

    @property
    def metrics(self) -> str:
        """Of its metrics page."""
        return f"{self.host}:{METRICS_PORT + SHIFT * self.shift}"

    @property
    def pprof(self) -> str:
        """Of its pprof pages, if they are open."""
        return f"{self.host}:{PPROF_PORT + SHIFT * self.shift}"


@dataclass(frozen=True)
class NetworkPlan:
    """The network to make: the version, the profile, the folder, and the seed.

    ``binaries`` holds the binary of every version that the profile names; ``links_folder`` stores the links'
    measurements; ``with_pprof`` opens the nodes' pprof pages; networks of different ``lane`` are isolated; the nodes
    run on these ``machines``, in turn; None: on this one.
    """

    version: str
    binaries: Mapping[str, Path]
    profile: CometBFTProfile
    folder: Path
    links_folder: Path
    seed: int
    application: ExtendingApplication | None = None
    external: ExternalApplication | None = None
    with_pprof: bool = False
    adapter: Adapter | None = None
    lane: int = 0
    machines: Machines | None = None

    @property
    def own_program(self) -> Adapter | None:
        """The adapter, if the nodes are not CometBFT's."""
        return self.adapter if self.profile.application.has_program else None


class NetworkFailure(EnvironmentFailure):
    """The network itself failed, so that nothing could be measured.

    Attributes:
        network: as far as it was started, with its nodes' logs.
        died: whether a node exited; otherwise it was only late, as may happen on a busy machine.
    """

    def __init__(self, network: CometNetwork, message: str, hint: str | None = None, *, died: bool = True) -> None:
        super().__init__(message, hint)
        self.network = network
        self.died = died


@dataclass
class CometNode:
    """One node of a network: not yet started, running, or ended."""

    name: str
    role: Role
    place: NodeEndpoints
    home: Path
    binary: Path
    current: RunningProcess | None = None
    command: list[str] | None = None  # None: started as CometBFT's own
    beside: RunningProcess | None = None  # its application's, if that is a separate process
    failed_starts: int = 0
    healthy_ns: int | None = None

    @property
    def process(self) -> RunningProcess:
        """Its process, the newest if it was started more than once."""
        if self.current is None:
            raise RuntimeError(f"{self.name} was never started")
        return self.current

    @property
    def pids(self) -> list[int]:
        """The IDs of its process, and of its application's if that is separate; none if it is on another machine."""
        return [each.pid for each in (self.process, self.beside) if each is not None and each.is_here]

    @property
    def rpc_address(self) -> str:
        """The address for queries."""
        return self.place.rpc

    @property
    def websocket_url(self) -> str:
        """The address for transactions and subscriptions."""
        return f"ws://{self.rpc_address}/websocket"

    @property
    def metrics_url(self) -> str:
        """The address of the node's metrics page."""
        return f"http://{self.place.metrics}/metrics"

    @property
    def pprof_address(self) -> str:
        """The address of its pprof pages, if they are open."""
        return self.place.pprof


@dataclass
class CometNetwork:
    """A network. ``members`` are all generated nodes, including offline validators, which have no process."""

    members: list[CometNode]
    processes: RunningProcesses
    configuration: Configuration
    environment: dict[str, str]
    binaries: Mapping[str, Path]
    databases: list[str] = field(default_factory=list)
    application: ExtendingApplication | None = None
    external: ExternalApplication | None = None
    adapter: Adapter | None = None
    prepared: Prepared | None = None
    links: EmulatedLinks | None = None
    round_trips: list[RoundTrip] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    host_round_trips: list[list[float]] = field(default_factory=list)
    clocks: dict[str, ClockOffset] = field(default_factory=dict)
    measuring: Sequence[RemoteHost] = ()
    start_failures: list[Incident] = field(default_factory=list)

    @property
    def started(self) -> list[CometNode]:
        """All started nodes, including seeds."""
        return [node for node in self.members if node.current is not None]

    @property
    def nodes(self) -> list[CometNode]:
        """The started validators and full nodes."""
        return [node for node in self.started if node.role in {Role.VALIDATOR, Role.FULL}]

    def node(self, name: str) -> CometNode:
        """The node of that name."""
        return next(node for node in self.members if node.name == name)

    def alive(self) -> list[CometNode]:
        """The validators and full nodes whose process runs."""
        return [node for node in self.nodes if not node.process.ended()]

    def pids(self) -> dict[str, list[int]]:
        """The nodes' processes on this machine by name, if chainmark started them."""
        return {node.name: pids for node in self.started if (pids := node.pids)}

    def pages(self) -> dict[str, str]:
        """The addresses of the nodes' metrics pages, by name."""
        return {node.name: node.metrics_url for node in self.started}

    def logs(self) -> dict[str, Path]:
        """The paths of the nodes' logs, by name, as far as available."""
        self.processes.fetch_logs()
        return {node.name: node.home / "node.log" for node in self.nodes}

    def host_facts(self) -> list[Fact]:
        """The hosts and the number of nodes on each; nothing if all are on this machine."""
        nodes = Counter(address for node in self.started if (address := self.processes.address_of(node.name)))
        if not nodes:
            return []
        value = ", ".join(f"{host} ({units.plural(count, 'node')})" for host, count in nodes.items())
        moments = zip(("before", "after"), self.host_round_trips, strict=False)
        trips = [f"{_range(round_trips)} {moment} the load" for moment, round_trips in moments if round_trips]
        far = [Fact(label="Round trips between hosts", value="; ".join(trips))] if trips else []
        return [Fact(label="Hosts", value=value), *self._measuring_facts(), *far]

    def _measuring_facts(self) -> list[Fact]:
        """The hosts of the load, if this machine is none."""
        addresses = [host.address for host in self.measuring]
        if not addresses:
            return []
        value = f"{enumerated(addresses)}; {addresses[0]} observes the commits"
        if error_s := self.latency_error_s():
            value += f"; latencies of transactions from the others are known to ± {units.duration(error_s)}"
        return [Fact(label="Load from", value=value)]

    def latency_error_s(self) -> float:
        """The greatest error of a transaction's latency: another machine's clock than the observer's stamps it."""
        return greatest_difference_error_s(
            self.clocks[host.address] for host in self.measuring if host.address in self.clocks
        )

    def header_error_s(self) -> float:
        """The greatest error of a latency to a block header, which has the time of its validators' clocks."""
        return self.latency_error_s() + greatest_reading_error_s(self.clocks.values())

    def measure_hosts(self) -> None:
        """Measure the round trips between the hosts, if there are some; once before the load, and once after it."""
        ports: dict[str, int] = {}
        for node in self.alive():
            if (address := self.processes.address_of(node.name)) is not None:
                ports.setdefault(address, int(node.rpc_address.rpartition(":")[2]))
        self.host_round_trips.append(self.processes.round_trips(ports))

    def resources(self, sampler: ResourceSampler) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The use of resources so far by the nodes, and by their machines.

        Args:
            sampler: of this machine.
        """
        self.clocks = self.processes.clocks()
        return self.processes.joined(sampler.processes(), sampler.pressure())

    def height_of(self, pages: Mapping[str, bytes]) -> int:
        """The greatest height on the metrics pages; -1 if they report none."""
        return max(heights(pages).values(), default=-1)

    def start(self, node: CometNode) -> RunningProcess:
        """Start a node, or restart it on the same home; also start its application if that does not run."""
        command = node.command or [str(node.binary), "start", "--home", str(node.home)]
        environment = self.environment
        if self.application is not None:
            command = self.application.command(node.home)
            environment = {**environment, **self.application.environment(node.home)}
        if self.external is not None and (node.beside is None or node.beside.ended()):
            words = self.external.command(node.name, node.place.host, node.home)
            node.beside = self._start(node, f"the application of {node.name}", words, "application.log", environment)
        node.current = self._start(node, node.name, command, "node.log", environment)
        return node.current

    def _start(
        self, node: CometNode, name: str, command: list[str], log: str, environment: Mapping[str, str]
    ) -> RunningProcess:
        if self.links is not None:
            command = self.links.command(node.name, command)
        return self.processes.start(name, command, node.home / log, environment)


def _range(round_trips: Sequence[float]) -> str:
    low, high = units.duration(min(round_trips)), units.duration(max(round_trips))
    return f"{low} to {high}, median {units.duration(median(round_trips))},"


@contextmanager
def running_network(plan: NetworkPlan, progress: Progress) -> Iterator[CometNetwork]:
    """Generate, start and wait for a network; always stop it on leaving.

    ``plan.folder`` gets one home per node (``node0`` …), each with its ``node.log``.

    Raises:
        NetworkFailure: a node died repeatedly, or did not become healthy in time.
        EnvironmentFailure: a port is in use, or this machine cannot create the requested links.
        UsageError: the profile changes a configuration key that this version does not have.
    """
    members = members_of(plan.profile, plan.version, plan.seed)
    with _links(plan, members) as links, hosts_on(plan.machines) as machines:
        connections = len(plan.profile.load.targets) * plan.profile.load.connections
        measuring = [host for host in machines if host.measures][:connections]
        hosts = _spread(members, _hosts_for(plan, machines))
        places = _places_of(plan, members, links, hosts)
        round_trips = []
        if links is not None:
            progress.stage(f"measuring the round trips between {len(members)} nodes")
            round_trips = links.measure()
        progress.stage(f"generating {len(members)} nodes")
        homes = generate(plan, members, places)
        defaults = plan.folder / "defaults"
        _make_defaults(plan, defaults)
        load = _prepared(plan, members, homes)
        with _processes(members, hosts, measuring) as processes:
            network = CometNetwork(
                members=[
                    _node(plan, member, place, homes[member.name])
                    for member, place in zip(members, places, strict=True)
                ],
                processes=processes,
                configuration=describe(homes, defaults),
                environment={**os.environ, **_environment(plan), **_processors(plan.profile.node.processors)},
                binaries=plan.binaries,
                databases=sorted({str(read_config(home).get("db_backend")) for home in homes.values()}),
                application=plan.application,
                external=plan.external,
                adapter=plan.adapter,
                prepared=load,
                links=links,
                round_trips=round_trips,
                measuring=measuring,
            )
            starting = [network.node(member.name) for member in _start_order(members)]
            progress.stage(f"starting {len(starting)} nodes")
            for node in starting:
                network.start(node)
            _wait_until_healthy(network, plan.profile.network.start_timeout_s, progress)
            network.measure_hosts()
            yield network
            network.measure_hosts()
            progress.stage("stopping the nodes")
            network.killed = processes.stop()


@contextmanager
def _links(plan: NetworkPlan, members: list[Member]) -> Iterator[EmulatedLinks | None]:
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


def _hosts_for(plan: NetworkPlan, machines: Sequence[RemoteHost]) -> list[tuple[RemoteHost, int]]:
    """The machines that run nodes, with their cores; none if this one does.

    Raises:
        UsageError: the profile emulates links, or has an application in a process of its own.
        EnvironmentFailure: the machines are too small for the network, or all are reserved for the load.
    """
    if not machines:
        return []
    if plan.profile.network.in_namespaces:
        raise UsageError(
            "links between nodes are emulated only on one machine",
            "omit `--on`, or `network.links` and `network.zones`",
        )
    if plan.external is not None or plan.application is not None or plan.own_program is not None:
        raise UsageError("nodes on other machines run only CometBFT's own application", "omit `--on`")
    hosts = [host for host in machines if not host.measures]
    if not hosts:
        raise EnvironmentFailure(
            "all workers of the cluster are reserved for the load", "start one without `--resources load=1`"
        )
    facts = [host.about() for host in hosts]
    cores, memory_bytes = sum(item.cores for item in facts), sum(item.memory_bytes for item in facts)
    require_capacity(plan.profile, cores, memory_bytes, units.plural(len(hosts), "host"))
    return [(host, item.cores) for host, item in zip(hosts, facts, strict=True)]


def _spread(members: list[Member], hosts: Sequence[tuple[RemoteHost, int]]) -> list[RemoteHost]:
    """The host of each node: that with the fewest nodes per core, the first of equal ones; none without hosts."""
    nodes = [0] * len(hosts)
    result = []
    for _ in members if hosts else ():
        at = min(range(len(hosts)), key=lambda at: (nodes[at] + 1) / hosts[at][1])
        nodes[at] += 1
        result.append(hosts[at][0])
    return result


def _processes(members: list[Member], hosts: Sequence[RemoteHost], measuring: Sequence[RemoteHost]) -> RunningProcesses:
    if not hosts:
        return ProcessGroup()
    return RemoteProcesses({member.name: host for member, host in zip(members, hosts, strict=True)}, measuring)


def _places_of(
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
    ports += plan.own_program.start.ports if plan.own_program and plan.own_program.start else []
    require_free_ports(addresses, tuple(ports))
    return [NodeEndpoints(address) for address in addresses]


def _start_order(members: list[Member]) -> list[Member]:
    """Seeds first: a node that finds none waits half a minute before it retries."""
    return sorted((member for member in members if member.starts), key=lambda member: member.role is not Role.SEED)


def _make_defaults(plan: NetworkPlan, folder: Path) -> None:
    """A home as the program generates it, to detect the profile's changes."""
    binary = plan.binaries[plan.version]
    if plan.own_program is not None:
        make_home(plan.own_program, NodeHome("defaults", folder, "127.0.0.1", binary, 0))
    else:
        _tool(binary, ["init", "--home", str(folder)])


def _environment(plan: NetworkPlan) -> Mapping[str, str]:
    return plan.own_program.start.environment if plan.own_program and plan.own_program.start else {}


def _processors(count: int) -> dict[str, str]:
    return {"GOMAXPROCS": str(count)} if count else {}


def _node(plan: NetworkPlan, member: Member, place: NodeEndpoints, home: Path) -> CometNode:
    node = CometNode(member.name, member.role, place, home, plan.binaries[member.version])
    if plan.own_program is not None:
        node.command = start_command(plan.own_program, _home_of(plan, member, place))
    return node


def _home_of(plan: NetworkPlan, member: Member, place: NodeEndpoints) -> NodeHome:
    powers = plan.profile.network.voting_powers
    power = 0
    if member.role is Role.VALIDATOR:
        power = powers[int(member.name.removeprefix("node"))] if powers else 1
    return NodeHome(member.name, plan.folder / member.name, place.host, plan.binaries[member.version], power)


def _prepared(plan: NetworkPlan, members: list[Member], homes: Mapping[str, Path]) -> Prepared | None:
    """The load's transactions, with their accounts in the genesis, unless it is the load tool's own load."""
    adapter = plan.adapter
    if adapter is None:
        return None
    genesis = homes[members[0].name] / GENESIS
    funded = adapter.accounts.genesis == "cosmos-sdk"
    transactions = prepared(adapter, plan.profile.load, plan.seed, accounts_in(genesis) if funded else 0)
    if transactions is not None and transactions.addresses:
        size_bytes = plan.profile.load.size_bytes
        write_genesis(list(homes.values()), fund_accounts(genesis, transactions.addresses, adapter, size_bytes))
    return transactions


def generate(plan: NetworkPlan, members: list[Member], places: list[NodeEndpoints]) -> dict[str, Path]:
    """Generate genesis and configurations with the nodes' own commands, then apply the profile."""
    homes = {member.name: plan.folder / member.name for member in members}
    with storage_errors(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
    if plan.own_program is not None:
        make_homes(
            plan.own_program,
            [_home_of(plan, member, place) for member, place in zip(members, places, strict=True)],
        )
    else:
        _testnet_homes(plan, members, homes)
    peers = _peers(homes, places)
    powers = {} if plan.own_program is not None else _powers(plan, homes)
    for member, place in zip(members, places, strict=True):
        _apply(plan, member, place, homes[member.name], peers)
        if powers:
            change_voting_powers(homes[member.name], powers)
    return homes


def _apply(plan: NetworkPlan, member: Member, place: NodeEndpoints, home: Path, peers: Mapping[str, str]) -> None:
    """Apply the profile and the application to one node's configuration and genesis."""
    node = plan.profile.node
    changes = _addresses_of(place, with_pprof=plan.with_pprof) | _topology_of(member, peers) | flatten(node.config)
    if (adapter := plan.own_program) is not None:
        # What CometBFT's `testnet` sets for nodes of one machine, and `init` does not.
        changes = {"p2p.addr_book_strict": False, "p2p.allow_duplicate_ip": True} | changes
        for path, values in file_values(adapter, _home_of(plan, member, place)).items():
            change_toml(home / path, values, f"{path} of {adapter.name}", f'application.adapter.files."{path}"')
    else:
        changes = {"proxy_app": node.app if plan.external is None else plan.external.address(place.host), **changes}
    change_config(home, changes, member.version)
    change_genesis(home, flatten(node.genesis), plan.version)
    if (application := plan.application) is not None:
        change_genesis(home, application.genesis_changes(home), plan.version)
        application.prepare(home)


def _testnet_homes(plan: NetworkPlan, members: list[Member], homes: Mapping[str, Path]) -> None:
    """Homes by the nodes' own ``testnet`` command.

    Genesis and keys are those of the subject's version; each node's ``config.toml`` is that of the version it runs.
    """
    drafts = {version: plan.folder / f"drafts-{version}" for version in _versions(plan, members)}
    for version, folder in drafts.items():
        _testnet(plan, members, version, folder)
    for member in members:
        with storage_errors(homes[member.name]):
            (drafts[plan.version] / member.generated).rename(homes[member.name])
            own = drafts[member.version] / member.generated / "config" / "config.toml"
            if own.is_file():
                shutil.copyfile(own, homes[member.name] / "config" / "config.toml")
    for folder in drafts.values():
        shutil.rmtree(folder)


def _powers(plan: NetworkPlan, homes: Mapping[str, Path]) -> dict[str, int]:
    """The voting power of each validator by its address; empty if all are equal."""
    validators = list(homes.values())[: len(plan.profile.network.voting_powers)]
    return dict(zip(map(validator_address, validators), plan.profile.network.voting_powers, strict=True))


def _versions(plan: NetworkPlan, members: list[Member]) -> list[str]:
    """The versions that need configurations, the subject's first."""
    return list(dict.fromkeys([plan.version, *(member.version for member in members)]))


def _testnet(plan: NetworkPlan, members: list[Member], version: str, folder: Path) -> None:
    validators = sum(member.role is Role.VALIDATOR for member in members)
    arguments = ["testnet", "--v", str(validators), "--n", str(len(members) - validators), "--o", str(folder)]
    # Its addresses are replaced by those of the plan.
    _tool(plan.binaries[version], [*arguments, "--starting-ip-address", "127.0.0.1", "--home", str(folder / "tool")])


def _addresses_of(place: NodeEndpoints, *, with_pprof: bool) -> dict[str, Scalar | list[Scalar]]:
    return {
        "log_level": "error",  # at "info" the log alone would use part of the node's CPU time
        "p2p.laddr": f"tcp://{place.p2p}",
        "p2p.external_address": place.p2p,
        "rpc.laddr": f"tcp://{place.rpc}",
        "rpc.pprof_laddr": place.pprof if with_pprof else "",
        "instrumentation.prometheus": True,
        "instrumentation.prometheus_listen_addr": place.metrics,
    }


def _topology_of(member: Member, peers: Mapping[str, str]) -> dict[str, Scalar | list[Scalar]]:
    # With peer exchange on, nodes would soon connect to all others and not keep the requested random topology.
    changes: dict[str, Scalar | list[Scalar]] = {
        "p2p.persistent_peers": ",".join(peers[peer] for peer in member.peers),
        "p2p.pex": member.pex,
    }
    if member.seeds:
        changes["p2p.seeds"] = ",".join(peers[seed] for seed in member.seeds)
    if member.role is Role.SEED:
        changes["p2p.seed_mode"] = True
    return changes


def _peers(homes: Mapping[str, Path], places: list[NodeEndpoints]) -> dict[str, str]:
    """By which address each node is dialled: its ID, address and port, as in configurations."""
    dialled = [f"{_node_id(home)}@{place.p2p}" for home, place in zip(homes.values(), places, strict=True)]
    return dict(zip(homes, dialled, strict=True))


def _node_id(home: Path) -> str:
    """The first 20 bytes of the SHA-256 of its public key, in hexadecimal: the private one's second half."""
    key = json.loads((home / "config" / "node_key.json").read_text(encoding="utf-8"))
    public_key = base64.b64decode(key["priv_key"]["value"])[32:]
    return hashlib.sha256(public_key).digest()[:20].hex()


def _tool(binary: Path, arguments: list[str]) -> str:
    outcome = subprocess.run(
        [str(binary), *arguments], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
    )
    if outcome.returncode != 0:
        lines = (outcome.stderr or outcome.stdout).strip().splitlines() or ["no output"]
        raise EnvironmentFailure(f"`cometbft {arguments[0]}` failed: {lines[-1]}", "check the free disk space")
    return outcome.stdout


def _wait_until_healthy(network: CometNetwork, timeout_s: float, progress: Progress) -> None:
    """Wait until every node responds and has two blocks (not required of a seed); record the time of each."""
    began = time.monotonic()
    clients = {node.name: RpcClient(node.rpc_address, timeout_s=2.0) for node in network.started}
    while waiting := [node for node in network.started if node.healthy_ns is None]:
        _start_the_dead_anew(network)
        if time.monotonic() - began > timeout_s:
            raise NetworkFailure(
                network,
                f"{waiting[0].name} was not healthy within {units.duration(timeout_s)} after its start",
                "its last log lines:\n" + waiting[0].process.last_log_lines(),
                died=False,
            )
        for node in waiting:
            if _height(clients[node.name]) >= (0 if node.role is Role.SEED else HEALTHY_HEIGHT):
                node.healthy_ns = time.time_ns()
        progress.update(1 - len(waiting) / len(network.started), f"{len(waiting)} not yet healthy")
        time.sleep(POLL_S)


def _start_the_dead_anew(network: CometNetwork) -> None:
    """Restart a node that exited unexpectedly, and record it.

    Raises:
        NetworkFailure: it had its last attempt.
    """
    for node in network.started:
        processes = [process for process in (node.beside, node.current) if process is not None]
        deaths = [death for process in processes if (death := process.death())]
        if not deaths:
            continue
        text = f"{deaths[0]} while the network started"
        network.start_failures.append(Incident(time_ns=time.time_ns(), what=text))
        node.failed_starts += 1
        if node.failed_starts == STARTS:
            raise NetworkFailure(network, f"{text}, {STARTS} times", "its last log lines:\n" + _last_lines(processes))
        for process in processes:  # a node without its application, or the reverse, is of no use
            process.kill()
        network.start(node)


def _last_lines(processes: list[RunningProcess]) -> str:
    return next(process.last_log_lines() for process in processes if process.death())


def _height(client: RpcClient) -> int:
    """The node's height, or -1 if it does not respond."""
    try:
        return client.height()
    except RpcError:
        return -1
