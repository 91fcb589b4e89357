"""A CometBFT network: start it, wait until it is healthy, watch it and stop it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import polars as pl

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.manifest import Configuration, Fact, Incident
from chainmark.core.progress import Progress
from chainmark.core.wording import enumerated
from chainmark.lab.hosts import hosts_on
from chainmark.network.clocks import ClockOffset, greatest_difference_error_s, greatest_reading_error_s
from chainmark.network.emulation import EmulatedLinks
from chainmark.network.processes import RunningProcess, RunningProcesses
from chainmark.network.remote import RemoteHost
from chainmark.network.round_trips import RoundTrip
from chainmark.network.sampling import ResourceSampler
from chainmark.systems.cometbft.applications.adapter import Adapter
from chainmark.systems.cometbft.applications.homes import (
    start_command,
)
from chainmark.systems.cometbft.applications.loading import Prepared
from chainmark.systems.cometbft.configuration import (
    describe,
    read_config,
)
from chainmark.systems.cometbft.current import heights
from chainmark.systems.cometbft.extensions import ExtendingApplication
from chainmark.systems.cometbft.external import ExternalApplication
from chainmark.systems.cometbft.network_plan import NetworkPlan, NodeEndpoints
from chainmark.systems.cometbft.node_homes import generate, home_of, make_defaults, prepared_load
from chainmark.systems.cometbft.placement import hosts_for, links_of, places_of, processes_on, spread
from chainmark.systems.cometbft.rpc import RpcClient, RpcError
from chainmark.systems.cometbft.shape import Member, Role, members_of

HEALTHY_HEIGHT = 2
POLL_S = 0.05
# Maximum number of starts of a node that exits before it was healthy; retries are reported.
STARTS = 3


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
    host_cores: Sequence[int] = ()
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
            words = self.external.command(node.name, node.place.application, node.home)
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
    with links_of(plan, members) as links, hosts_on(plan.machines) as machines:
        connections = len(plan.profile.load.targets) * plan.profile.load.connections
        measuring = [host for host in machines if host.measures][:connections]
        with_cores = hosts_for(plan, members, machines)
        hosts = spread(members, with_cores, alone=bool(plan.program_ports))
        places = places_of(plan, members, links, hosts)
        round_trips = []
        if links is not None:
            progress.stage(f"measuring the round trips between {len(members)} nodes")
            round_trips = links.measure()
        progress.stage(f"generating {len(members)} nodes")
        homes = generate(plan, members, places)
        defaults = plan.folder / "defaults"
        make_defaults(plan, defaults)
        load = prepared_load(plan, members, homes)
        with processes_on(members, hosts, measuring) as processes:
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
                host_cores=sorted(cores for _, cores in with_cores),
            )
            starting = [network.node(member.name) for member in _start_order(members)]
            progress.stage(f"starting {len(starting)} nodes")
            for node in starting:
                network.start(node)
            wait_until_healthy(network, plan.profile.network.start_timeout_s, progress)
            network.measure_hosts()
            yield network
            network.measure_hosts()
            progress.stage("stopping the nodes")
            network.killed = processes.stop()


def _start_order(members: list[Member]) -> list[Member]:
    """Seeds first: a node that finds none waits half a minute before it retries."""
    return sorted((member for member in members if member.starts), key=lambda member: member.role is not Role.SEED)


def _environment(plan: NetworkPlan) -> Mapping[str, str]:
    return plan.own_program.start.environment if plan.own_program and plan.own_program.start else {}


def _processors(count: int) -> dict[str, str]:
    return {"GOMAXPROCS": str(count)} if count else {}


def _node(plan: NetworkPlan, member: Member, place: NodeEndpoints, home: Path) -> CometNode:
    node = CometNode(member.name, member.role, place, home, plan.binaries[member.version])
    if plan.own_program is not None:
        node.command = start_command(plan.own_program, home_of(plan, member, place))
    return node


def wait_until_healthy(network: CometNetwork, timeout_s: float, progress: Progress) -> None:
    """Wait until every node responds and has two blocks (not required of a seed); record the time of each.

    Raises:
        NetworkFailure: a node ended or did not respond in time.
        EnvironmentFailure: a machine is lost, or its disk is full.
    """
    began = time.monotonic()
    clients = {node.name: RpcClient(node.rpc_address, timeout_s=2.0) for node in network.started}
    while waiting := [node for node in network.started if node.healthy_ns is None]:
        network.processes.check_machines()
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
