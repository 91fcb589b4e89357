"""Emulated wide-area links between nodes, on one machine.

Each node has its own network namespace and address. Every packet between two nodes gets the one-way delay of their
zones, with jitter, loss and limited bandwidth if the plan defines them. The host reaches every node without delay,
including a disconnected one: load, scrapes and queries are not emulated.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from chainmark._native import DelaySwitch
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.storage import storage_errors
from chainmark.network import netem
from chainmark.network.leftovers import remove_leftovers
from chainmark.network.links import Fabric, LinkStats, NodeAddress
from chainmark.network.namespaces import (
    HOST_NUMBER,
    NODES_MAX,
    Namespace,
    claimed_network,
    host_device,
    required_tool,
)
from chainmark.network.round_trips import PING_BYTES, RoundTrip, measured_round_trips, round_trip_frame
from chainmark.network.zones import ZoneTable

if TYPE_CHECKING:
    from chainmark._native import SwitchStats

Backend = Literal["auto", "netem", "switch"]

ROUND_TRIPS_FILE = "round_trips.parquet"
STATS_FILE = "link_stats.json"
MTU_BYTES = 1500
_BITS_PER_BYTE = 8
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_HINT = (
    "run as root, or with the ambient capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN and access to the device "
    "/dev/net/tun; profiles without links between namespaces do not need them"
)


@dataclass(frozen=True)
class EmulationPlan:
    """The intended properties of the links.

    ``zone_of`` and ``table`` are given together; without them nothing is delayed. ``jitter_share`` is the standard
    deviation of a delay as a share of it, ``loss`` the probability that a packet is lost, ``bandwidth_bps`` bits per
    second of each ordered pair. The same seed gives the same delays to the same packets.
    """

    nodes: tuple[str, ...]
    zone_of: Mapping[str, str] | None = None
    table: ZoneTable | None = None
    jitter_share: float = 0.05
    loss: float = 0.0
    bandwidth_bps: int | None = None
    backend: Backend = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject an invalid plan.

        Raises:
            UsageError: the message names the error.
        """
        for name, value in (("jitter_share", self.jitter_share), ("loss", self.loss)):
            if not 0 <= value <= 1:
                raise UsageError(f"{name} is {value}, which is not a share", "give a number from 0 to 1")
        if self.bandwidth_bps is not None and self.bandwidth_bps < 1:
            raise UsageError(f"bandwidth_bps is {self.bandwidth_bps}", "give at least 1 bit per second")
        if not 1 <= len(self.nodes) <= NODES_MAX:
            raise UsageError(f"{len(self.nodes)} nodes cannot be linked", f"use 1 to {NODES_MAX} nodes")
        if len(set(self.nodes)) != len(self.nodes):
            raise UsageError("two nodes have the same name", "give each node a unique name")
        self._check_zones()

    def _check_zones(self) -> None:
        if (self.zone_of is None) != (self.table is None):
            raise UsageError("zones of nodes and a zone table require each other", "give both, or neither")
        if self.zone_of is None or self.table is None:
            return
        for name in self.nodes:
            if name not in self.zone_of:
                raise UsageError(f"node `{name}` has no zone", "give every node a zone, or none")
            if self.zone_of[name] not in self.table.zones:
                known = ", ".join(self.table.zones)
                raise UsageError(f"node `{name}` is in the unknown zone `{self.zone_of[name]}`", f"known: {known}")

    def one_way_s(self, source: str, destination: str) -> float:
        """The intended one-way delay in seconds."""
        if self.zone_of is None or self.table is None:
            return 0.0
        return self.table.one_way_ms[self.zone_of[source], self.zone_of[destination]] / 1e3

    def round_trip_s(self, first: str, second: str) -> float:
        """The intended round trip of a small packet in seconds: both ways, and its time on a narrow wire."""
        wire_s = PING_BYTES * _BITS_PER_BYTE / self.bandwidth_bps if self.bandwidth_bps else 0.0
        return self.one_way_s(first, second) + self.one_way_s(second, first) + 2 * wire_s


@dataclass(frozen=True)
class Availability:
    """The capabilities of this machine: the backends that work here, the better one first; if none, what is needed."""

    backends: tuple[str, ...]
    lacks: str | None = None
    hint: str | None = None


@functools.cache
def available() -> Availability:
    """The capabilities of this machine for this user, found by trial."""
    lacking = _lacking_capabilities()
    if lacking:
        return Availability((), f"network namespaces, and this user lacks {lacking}", _HINT)
    try:
        Namespace()
        for tool in ("nsenter", "env"):
            required_tool(tool)
    except EnvironmentFailure as error:
        return Availability((), error.message, error.hint)
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        backends: tuple[str, ...] = ()
    else:
        backends = ("switch",)
    if _netem_works():
        backends = ("netem", *backends)
    if not backends:
        lacks = "the device /dev/net/tun or a kernel with netem, and this machine has neither"
        return Availability((), lacks, "run `modprobe tun`, and pass the device to the container, if any")
    return Availability(backends)


def _netem_works() -> bool:
    try:
        for tool in ("ip", "tc", "ss"):
            required_tool(tool)
        return netem.kernel_has_netem()
    except EnvironmentFailure:
        return False


def _lacking_capabilities() -> str:
    """The capabilities that are missing here, or that a started program would lose; "" if none is."""
    # A program that root starts has all of root's capabilities; another user's only has the ambient ones.
    field = "CapEff" if os.geteuid() == 0 else "CapAmb"
    bits = 0
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            bits = int(line.split()[1], 16)
    return " and ".join(name for name, bit in _CAPABILITIES.items() if not bits >> bit & 1)


class EmulatedLinks:
    """Active links. Created by :func:`emulated_links`."""

    def __init__(self, plan: EmulationPlan, endpoints: Sequence[NodeAddress], fabric: Fabric, folder: Path) -> None:
        self.plan = plan
        self.endpoints = tuple(endpoints)
        self._fabric = fabric
        self._folder = folder
        self._numbers = {endpoint.name: number for number, endpoint in enumerate(endpoints)}

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each node."""
        return {endpoint.name: endpoint.address for endpoint in self.endpoints}

    @property
    def backend(self) -> str:
        """The backend: "netem" or "switch"."""
        return "netem" if isinstance(self._fabric, netem.NetemFabric) else "switch"

    def command(self, name: str, argv: Sequence[str]) -> list[str]:
        """The command that runs a program on a node; the process becomes the program and keeps its ID."""
        return self._fabric.namespaces[self._number(name)].command(argv)

    def measure(self, samples: int = 10) -> list[RoundTrip]:
        """Measure the round trip of every ordered pair, and store the figures in the folder.

        Raises:
            EnvironmentFailure: the machine does not allow the sockets, or the file.
        """
        names = [endpoint.name for endpoint in self.endpoints]
        measured = measured_round_trips(
            names, self._fabric.namespaces, list(self.addresses.values()), self.plan.round_trip_s, samples
        )
        path = self._folder / ROUND_TRIPS_FILE
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            round_trip_frame(measured).write_parquet(path)
        return measured

    def disconnect(self, name: str, *, reset: bool = True) -> None:
        """Cut a node off from all others: packets are dropped, and TCP connections that send are reset at both ends.

        Without ``reset`` connections stay open until they time out. The host still reaches the node.
        """
        self._fabric.cut(self._number(name), reset=reset)

    def reconnect(self, name: str) -> None:
        """Undo :meth:`disconnect`."""
        self._fabric.mend(self._number(name))

    def partition(self, groups: Sequence[Sequence[str]], *, reset: bool = False) -> None:
        """Cut groups of nodes off from one another; connections stay open, as with a firewall, unless ``reset``.

        Raises:
            UsageError: a node is in no group, or in two.
        """
        group_of = {name: number for number, group in enumerate(groups) for name in group}
        if sorted(name for group in groups for name in group) != sorted(self._numbers):
            raise UsageError(
                "the groups of a partition must contain every node exactly once", "put every node into one group"
            )
        self._fabric.partition([group_of[endpoint.name] for endpoint in self.endpoints], reset=reset)

    def heal(self) -> None:
        """Undo :meth:`partition`."""
        self._fabric.heal()

    def stats(self) -> LinkStats:
        """The packets so far."""
        return self._fabric.stats()

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise UsageError(f"there is no node `{name}`", f"known: {', '.join(self._numbers)}")
        return self._numbers[name]


@contextmanager
def emulated_links(plan: EmulationPlan, folder: Path) -> Iterator[EmulatedLinks]:
    """Namespaces for all nodes and the links between them, while the context lasts.

    ``folder`` gets the measured round trips and, at the end, the counts of packets. End the nodes' processes before the
    context. Leftovers of a killed experiment are removed first.

    Raises:
        EnvironmentFailure: this machine does not allow this user such links.
    """
    backend = _chosen(plan.backend)
    remove_leftovers()
    with claimed_network() as network:
        endpoints = [NodeAddress(name, str(network[number])) for number, name in enumerate(plan.nodes, 1)]
        make = _netem_fabric if backend == "netem" else SwitchFabric
        fabric = make(plan, endpoints, str(network[HOST_NUMBER]), host_device(network))
        try:
            yield EmulatedLinks(plan, endpoints, fabric, folder)
        finally:
            last = fabric.close()
        _write_stats(last, folder / STATS_FILE)


def _chosen(wanted: Backend) -> str:
    able = available()
    if able.lacks is not None:
        raise EnvironmentFailure(f"links between nodes need {able.lacks}", able.hint)
    if wanted == "auto":
        return able.backends[0]
    if wanted not in able.backends:
        lacks = {
            "netem": "this kernel lacks netem, htb or u32",
            "switch": "the delay switch needs the device /dev/net/tun",
        }
        raise EnvironmentFailure(lacks[wanted], f'`backend = "{able.backends[0]}"` works here')
    return wanted


def _write_stats(stats: LinkStats, path: Path) -> None:
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(stats), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _netem_fabric(
    plan: EmulationPlan, endpoints: Sequence[NodeAddress], host_address: str, device: str
) -> netem.NetemFabric:
    def line(node: int, other: int) -> netem.LinkDirection:
        source, destination = endpoints[node], endpoints[other]
        delay_s = plan.one_way_s(source.name, destination.name)
        return netem.LinkDirection(destination.address, delay_s, plan.jitter_share, plan.loss, plan.bandwidth_bps)

    return netem.NetemFabric([endpoint.address for endpoint in endpoints], host_address, device, line)


@contextmanager
def _native_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFailure.from_native(error) from error


class SwitchFabric:
    """Links by chainmark's own delay switch."""

    def __init__(self, plan: EmulationPlan, endpoints: Sequence[NodeAddress], host_address: str, device: str) -> None:
        self.namespaces = [Namespace() for _ in endpoints]
        names = [endpoint.name for endpoint in endpoints]
        with _native_errors():
            self._switch = DelaySwitch(
                namespaces=[namespace.native for namespace in self.namespaces],
                addresses=[endpoint.address for endpoint in endpoints],
                host_address=host_address,
                host_device=device,
                one_way_s=[[plan.one_way_s(source, destination) for destination in names] for source in names],
                jitter_share=plan.jitter_share,
                loss=plan.loss,
                bandwidth_bps=plan.bandwidth_bps,
                seed=plan.seed,
                mtu=MTU_BYTES,
            )

    def cut(self, node: int, *, reset: bool) -> None:
        """Cut a node off from all others."""
        with _native_errors():
            self._switch.cut(node, reset)

    def mend(self, node: int) -> None:
        """Undo :meth:`cut`."""
        with _native_errors():
            self._switch.mend(node)

    def partition(self, groups: Sequence[int], *, reset: bool) -> None:
        """Cut nodes of different groups off from one another."""
        with _native_errors():
            self._switch.partition(list(groups), reset)

    def heal(self) -> None:
        """Undo :meth:`partition`."""
        with _native_errors():
            self._switch.heal()

    def stats(self) -> LinkStats:
        """The current state."""
        with _native_errors():
            return _link_stats(self._switch.stats())

    def close(self) -> LinkStats:
        """Remove the links; their last state."""
        with _native_errors():
            return _link_stats(self._switch.stop())


def _link_stats(raw: SwitchStats) -> LinkStats:
    stats = LinkStats(
        packets=raw["read"],
        bytes=raw["read_bytes"],
        delivered=raw["delivered"],
        delivered_bytes=raw["delivered_bytes"],
        dropped={
            "lost": raw["lost"],
            "no route": raw["no_route"],
            "cut": raw["cut"],
            "queue full": raw["queue_full"],
            "write failed": raw["write_failed"],
            "not IPv4": raw["not_ipv4"],
        },
        under_way=raw["queued"],
        unread=raw["unread"],
        resets=raw["resets"],
        delayed=raw["delayed"],
        error_p50_s=raw["error_p50_ns"] / 1e9 if raw["delayed"] else None,
        error_p99_s=raw["error_p99_ns"] / 1e9 if raw["delayed"] else None,
        error_max_s=raw["error_max_ns"] / 1e9 if raw["delayed"] else None,
        cpu_s=raw["cpu_ns"] / 1e9,
        realtime=bool(raw["realtime"]),
    )
    if not stats.balanced:
        raise EnvironmentFailure(f"the delay switch lost count of packets: {stats}", "please report this")
    return stats
