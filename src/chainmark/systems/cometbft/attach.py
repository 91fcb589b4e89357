"""An external network that is already running: identify its nodes and what can be observed of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Configuration
from chainmark.network.processes import ProcessGroup
from chainmark.network.sampling import PROCESS_SCHEMA, read_pages
from chainmark.systems.cometbft.applications.loading import prepared
from chainmark.systems.cometbft.launch import CometNetwork, CometNode
from chainmark.systems.cometbft.network_plan import NodeEndpoints
from chainmark.systems.cometbft.profile import CometBFTProfile, NodeConfig, NodeNetwork, Rotating
from chainmark.systems.cometbft.rpc import RPC_PORT, RpcClient, RpcError
from chainmark.systems.cometbft.shape import Role

PROBE_TIMEOUT_S = 5.0
# Every metrics page of a node has it.
_OWN_FAMILY = "cometbft_consensus_height"
# Go runtime metrics of the node's process on the same page, by the sampler's columns.
_PROCESS_FAMILIES = {
    "process_cpu_seconds_total": "cpu_s",
    "process_resident_memory_bytes": "rss_bytes",
    "process_open_fds": "open_files",
}


@dataclass(frozen=True)
class NodeStatus:
    """What a node reports about itself."""

    place: str  # host and port
    node_id: str
    network: str
    version: str
    moniker: str
    catching_up: bool


@dataclass
class AttachedNode(CometNode):
    """A node of an external network, at any port; chainmark has no process of it."""

    page: str = ""

    @property
    def rpc_address(self) -> str:
        """The address for queries."""
        return self.place.host

    @property
    def metrics_url(self) -> str:
        """The address of the node's metrics page; "" if unknown."""
        return self.page


@dataclass
class AttachedNetwork(CometNetwork):
    """An external network: all its nodes are assumed to run; queries find those that do not respond."""

    silent_at_end: list[str] = field(default_factory=list)

    @property
    def started(self) -> list[CometNode]:
        """All nodes."""
        return self.members

    @property
    def nodes(self) -> list[CometNode]:
        """All nodes."""
        return self.members

    def alive(self) -> list[CometNode]:
        """All nodes: a query shows which of them respond."""
        return self.members

    def pids(self) -> dict[str, list[int]]:
        """Empty: chainmark started none."""
        return {}

    def pages(self) -> dict[str, str]:
        """The known metrics pages."""
        return {node.name: node.metrics_url for node in self.members if node.metrics_url}

    def logs(self) -> dict[str, Path]:
        """Empty: chainmark has none."""
        return {}

    def height_of(self, pages: Mapping[str, bytes]) -> int:
        """As the metrics pages report; without them, by RPC."""
        return super().height_of(pages) if pages else max(self._heights(), default=-1)

    def _heights(self) -> list[int]:
        return [height for node in self.members if (height := height_at(node.rpc_address)) is not None]

    def silent(self) -> list[str]:
        """The nodes that do not respond now."""
        return [node.name for node in self.members if height_at(node.rpc_address) is None]


def height_at(place: str) -> int | None:
    """The height of that node; None if it does not respond."""
    try:
        with RpcClient(place, timeout_s=2.0) as client:
            return client.height()
    except RpcError:
        return None


def require_observable(profile: CometBFTProfile, nodes: int) -> None:
    """Reject a profile that requires changes to an external network.

    Raises:
        UsageError: it changes the nodes or their links, or names targets that do not exist.
    """
    requested = {
        "perturbation": bool(profile.perturbation),
        "rotating": profile.rotating != Rotating(),
        "application": bool(profile.application.command) or profile.application.vote_extension_size_bytes is not None,
        "node.config": profile.node.config != NodeConfig().config,
        "node.genesis": bool(profile.node.genesis),
        "network.links": profile.network.in_namespaces,
        "network.other_version": profile.network.other_version != NodeNetwork().other_version,
    }
    wrong = next((name for name, is_requested in requested.items() if is_requested), None)
    if wrong:
        raise UsageError(
            f"the profile `{profile.name}` has `{wrong}`, which is not possible with `--attach`",
            "use a profile that only offers load, for example `cometbft/demo`",
        )
    adapter = profile.application.adapter
    if adapter is not None and adapter.accounts.genesis != "none":
        raise UsageError(
            f"the application `{adapter.name}` adds accounts to the genesis, which is impossible in a running network",
            'use an adapter with `transaction.kind = "python"` and accounts that have funds',
        )
    beyond = [target for target in profile.load.targets if target >= nodes]
    if beyond:
        raise UsageError(
            f"`load.targets` names node {beyond[0]}, but only {nodes} are attached", "nodes are numbered from 0"
        )


def reach(addresses: Sequence[str]) -> list[NodeStatus]:
    """Query the identity of the nodes.

    Raises:
        UsageError: an address is not a node's, a node is named twice, or they are of several networks.
        EnvironmentFailure: one does not respond.
    """
    if not addresses:
        raise UsageError("there is no node to attach to", "give the nodes' RPC addresses: `--attach host:26657,…`")
    node_status = [_seen(address) for address in addresses]
    networks = {item.network: item.place for item in node_status}
    if len(networks) > 1:
        (first, at), (second, other) = list(networks.items())[:2]
        raise UsageError(
            f"the nodes are of different networks: {at} of `{first}`, {other} of `{second}`",
            "attach to the nodes of one network",
        )
    twice, count = Counter(item.node_id for item in node_status).most_common(1)[0]
    if count > 1:
        places = " and ".join(item.place for item in node_status if item.node_id == twice)
        raise UsageError(f"{places} are the same node", "name each node once")
    return node_status


def _seen(address: str) -> NodeStatus:
    place = read_place(address)
    try:
        with RpcClient(place, timeout_s=PROBE_TIMEOUT_S) as client:
            status = client.call("status")
        info = status["node_info"]
        return NodeStatus(
            place=place,
            node_id=str(info["id"]),
            network=str(info["network"]),
            version=str(info["version"]),
            moniker=str(info["moniker"]),
            catching_up=bool(status["sync_info"]["catching_up"]),
        )
    except RpcError as error:
        if isinstance(error.__cause__, httpx.TransportError):
            raise EnvironmentFailure(
                f"{place} does not respond ({error.__cause__})",
                "check that the node runs and that this is its RPC address",
            ) from error
        raise _no_node(place) from error
    except (KeyError, TypeError) as error:
        raise _no_node(place) from error


def _no_node(place: str) -> UsageError:
    return UsageError(
        f"{place} is not the RPC address of a CometBFT node",
        f"give RPC addresses; the usual port is {RPC_PORT}",
    )


def read_place(address: str) -> str:
    """An address as host and port: "tcp://10.0.0.1:26657" is "10.0.0.1:26657".

    Raises:
        UsageError: it is invalid, or requires a protocol that the load generator does not support.
    """
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        host, port = parts.hostname, parts.port or RPC_PORT
    except ValueError:
        host, port = None, 0
    if parts.scheme not in {"http", "tcp", "ws"} or host is None or parts.path.strip("/"):
        raise UsageError(
            f"`{address}` is not a valid RPC address",
            "write `HOST:PORT` or `http://HOST:PORT`; TLS is not supported",
        )
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_pages(pages: Sequence[str], nodes: int) -> list[str]:
    """The complete addresses of the metrics pages.

    Raises:
        UsageError: there is not exactly one per node, or one is not a node's page.
        EnvironmentFailure: one does not respond.
    """
    if pages and len(pages) != nodes:
        raise UsageError(
            f"{nodes} nodes are attached, but {len(pages)} metrics pages are given",
            "give one page per node, in the same order",
        )
    whole = [page if "://" in page else f"http://{page}/metrics" for page in pages]
    for page in whole:
        try:
            response = httpx.get(page, timeout=PROBE_TIMEOUT_S, trust_env=False)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EnvironmentFailure(
                f"{page} does not respond ({error})", "check `instrumentation.prometheus` and the address"
            ) from error
        if response.is_error or _OWN_FAMILY not in response.text:
            raise UsageError(
                f"{page} is not a metrics endpoint of a CometBFT node", "give it as `http://HOST:26660/metrics`"
            )
    return whole


def network_of(
    seen: Sequence[NodeStatus], pages: Sequence[str], profile: CometBFTProfile, seed: int, folder: Path
) -> AttachedNetwork:
    """The nodes as a network to be measured, with the transactions of its application.

    Args:
        seen: the identities of the nodes.
        pages: their metrics pages, or empty.
        profile: defines the load.
        seed: of the transactions.
        folder: of the run.

    Raises:
        UsageError: the transactions cannot be made.
    """
    adapter = profile.application.adapter
    if adapter is not None:
        adapter = adapter.model_copy(update={"chain": adapter.chain.model_copy(update={"id": seen[0].network})})
    whole = list(pages) or [""] * len(seen)
    members: list[CometNode] = [
        AttachedNode(f"node{index}", Role.FULL, NodeEndpoints(node_status.place), folder, folder, page=page)
        for index, (node_status, page) in enumerate(zip(seen, whole, strict=True))
    ]
    return AttachedNetwork(
        members=members,
        processes=ProcessGroup(),
        configuration=Configuration(),
        environment=dict(os.environ),
        binaries={},
        adapter=adapter,
        prepared=None if adapter is None else prepared(adapter, profile.load, seed),
    )


def process_frame(files: Mapping[str, Path]) -> pl.DataFrame:
    """The nodes' processes according to their metrics pages, in the format of our own sampler."""
    rows = [
        {"time_ns": time_ns, "host": host, **_process_values(page)}
        for host, path in files.items()
        for time_ns, page in read_pages(path)
    ]
    return pl.DataFrame(rows, schema=PROCESS_SCHEMA).sort("time_ns", "host")


def _process_values(page: str) -> dict[str, float | int]:
    lines = [line for line in page.splitlines() if line.startswith("process_")]
    values: dict[str, float | int] = {}
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            if column := _PROCESS_FAMILIES.get(sample.name):
                values[column] = sample.value if column == "cpu_s" else round(sample.value)
    return values
