"""The profile of a CometBFT test: network, load, node configuration, gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from chainmark.core.manifest import Scalar

_SECTION = ConfigDict(extra="forbid", frozen=True)
# A mempool of one node takes 5,000 transactions; beyond some 50,000/s no generator thread of this design keeps up.
MAX_RATE = 50_000
# The node's default cache (10,000 transactions) lets old transactions come back under load.
CONFIG: Mapping[str, Mapping[str, Any]] = {"mempool": {"cache_size": 200_000}}
Seconds = Annotated[float, Field(ge=0, le=86_400)]


def _on_top_of_our_own(changes: dict[str, Any]) -> dict[str, Any]:
    """Changing one key must not undo what every profile changes; naming that key does."""
    merged = {section: dict(keys) for section, keys in CONFIG.items()}
    for section, keys in changes.items():
        merged[section] = {**merged.get(section, {}), **keys} if isinstance(keys, dict) else keys
    return merged


class Network(BaseModel):
    """The nodes and how they are connected."""

    model_config = _SECTION

    validators: Annotated[int, Field(ge=1, le=200)] = 4
    full_nodes: Annotated[int, Field(ge=0, le=200)] = 0
    topology: Literal["full_mesh", "random"] = "full_mesh"
    # Only with topology = "random": how many peers each node dials.
    peers_per_node: Annotated[int, Field(ge=1, le=50)] = 5
    first_address: str = "127.1.0.1"
    # 50 nodes on 2 cores need 15 s; a node that needs four times that has a problem.
    start_timeout_s: Seconds = 60.0

    @property
    def nodes(self) -> int:
        """Validators and full nodes together."""
        return self.validators + self.full_nodes


class Load(BaseModel):
    """The transactions offered to the network."""

    model_config = _SECTION

    # Nodes that take transactions, by number; validators come first. One is what the published tests use.
    targets: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0]
    connections: Annotated[int, Field(ge=1, le=256, description="(connections per target)")] = 1
    rate: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second and connection)")] = 200
    size_bytes: Annotated[int, Field(ge=1)] = 1024
    method: Literal["sync", "async"] = "sync"
    schedule: Literal["even", "poisson", "burst"] = "even"
    # The first blocks after the start are small and irregular; 10 s are about seven blocks.
    warm_up_s: Seconds = 10.0
    duration_s: Annotated[float, Field(ge=1, le=86_400)] = 30.0
    # The node's own limit for a broadcast answer is 10 s.
    answer_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    send_grace_s: Seconds = 1.0
    drain_timeout_s: Seconds = 60.0

    @property
    def total_connections(self) -> int:
        """Connections to all targets together."""
        return self.connections * len(self.targets)

    @property
    def total_rate_per_s(self) -> int:
        """Transactions per second over all connections."""
        return self.rate * self.total_connections


class Node(BaseModel):
    """What is changed in the nodes' own configuration, after the versions' own defaults."""

    model_config = _SECTION

    app: str = "kvstore"
    # config.toml by section and key, on top of CONFIG.
    config: Annotated[dict[str, Any], AfterValidator(_on_top_of_our_own)] = Field(default={}, validate_default=True)
    # genesis.json below its root, e.g. consensus_params.feature.pbts_enable_height = "1".
    genesis: dict[str, Any] = {}


class Gates(BaseModel):
    """What a run must meet before it may be compared."""

    model_config = _SECTION

    achieved_rate_min: Annotated[float, Field(ge=0, le=1)] = 0.98
    # Below this share of committed transactions the network is saturated, and latency is that of a full mempool.
    committed_share_min: Annotated[float, Field(ge=0, le=1)] = 0.98
    schedule_lag_p99_max_s: Annotated[float, Field(gt=0)] = 0.05
    generator_cpu_max_cores: Annotated[float, Field(gt=0)] = 0.5
    # Share of the time in which some task waited for a processor.
    cpu_pressure_max: Annotated[float, Field(gt=0, le=1)] = 0.6
    blocks_min: Annotated[int, Field(ge=1)] = 10
    # Of what is offered, what was not sent although no node refused anything or answered late. 1 asks for nothing.
    unsent_by_generator_max: Annotated[float, Field(ge=0, le=1)] = 1.0


class Saturation(BaseModel):
    """How `chainmark saturation` finds the load at which the network stops keeping up."""

    model_config = _SECTION

    # The grid of the published tests: connections c, and transactions per second r of each.
    connections: Annotated[list[Annotated[int, Field(ge=1, le=256)]], Field(min_length=1)] = [1, 2, 4]
    rates: Annotated[list[Annotated[int, Field(ge=1, le=MAX_RATE)]], Field(min_length=1)] = [200, 400, 800, 1600]
    # A load is kept up if at least one minus this share of what was offered is committed.
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.1
    # With --adaptive: where to begin, where to end, and how near the two loads around the edge must come.
    first_load: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second)")] = 100
    most_load: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second)")] = 12_800
    relative_gap: Annotated[float, Field(gt=0, lt=1)] = 0.1


class Profile(BaseModel):
    """A CometBFT profile, resolved and whole."""

    model_config = _SECTION

    system: Literal["cometbft"]
    name: str
    description: str = ""
    network: Network = Network()
    load: Load = Load()
    node: Node = Node()
    gates: Gates = Gates()
    saturation: Saturation = Saturation()

    @model_validator(mode="after")
    def _targets_exist(self) -> Profile:
        beyond = [target for target in self.load.targets if target >= self.network.nodes]
        if beyond:
            raise ValueError(f"`load.targets` names node {beyond[0]}, but the nodes are 0 to {self.network.nodes - 1}")
        if self.network.topology == "random" and self.network.peers_per_node >= self.network.nodes:
            raise ValueError(
                f"`network.peers_per_node` is {self.network.peers_per_node}, but a node has only "
                f"{self.network.nodes - 1} others"
            )
        return self

    def workload(self) -> dict[str, Scalar | list[Scalar]]:
        """What two runs must share: the load and the network, not the nodes' configuration (it is the subject's)."""
        sections: dict[str, BaseModel] = {"load": self.load, "network": self.network}
        flat: dict[str, Scalar | list[Scalar]] = {
            f"{section}.{key}": value
            for section, model in sections.items()
            for key, value in model.model_dump().items()
            if key not in {"first_address", "start_timeout_s"}
        }
        return {**flat, "node.app": self.node.app}
