"""The profile of a CometBFT test: network, load, node configuration, gates."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from chainmark.core import units
from chainmark.core.manifest import Scalar
from chainmark.systems.cometbft.applications.adapter import Adapter, adapter_of

_SECTION = ConfigDict(extra="forbid", frozen=True)
# A mempool of one node holds 5,000 transactions; beyond some 50,000/s no generator thread of this design keeps up.
MAX_RATE = 50_000
# The node's default cache (10,000 transactions) lets old transactions come back under load.
CONFIG: Mapping[str, Mapping[str, Any]] = {"mempool": {"cache_size": 200_000}}
Seconds = Annotated[float, Field(ge=0, le=86_400)]
# The part of the network that every run states. Other settings are stated only if they were changed, so that new
# settings of later versions of chainmark do not make their runs incomparable with earlier ones.
_NETWORK_ALWAYS = {"validators", "full_nodes", "topology", "peers_per_node"}
_NOT_WORKLOAD = {"emulation", "first_address", "start_timeout_s", "check_capacity", "allow_halt"}


def _on_top_of_our_own(changes: dict[str, Any]) -> dict[str, Any]:
    """Merge tables, so that changing one key keeps the other changes of every profile."""
    merged = {section: dict(keys) for section, keys in CONFIG.items()}
    for section, keys in changes.items():
        merged[section] = {**merged.get(section, {}), **keys} if isinstance(keys, dict) else keys
    return merged


class NodeNetwork(BaseModel):
    """The nodes and how they are connected.

    Attributes:
        validators: number of validators.
        full_nodes: number of nodes that follow the chain without voting.
        seeds: number of nodes that only send others the addresses of peers to dial; needs `topology = "seeds"`.
        topology: "full_mesh": every node dials all others; "random": each dials `peers_per_node` others;
            "seeds": nodes learn their peers from the seeds.
        peers_per_node: number of peers that each node dials; only with `topology = "random"`.
        absent_validators: number of validators, the last ones, that are in the genesis but are never started:
            offline voting power.
        voting_powers: voting power of each validator, in their order; empty: all have the same.
        allow_halt: run the network even if so much voting power is absent that it cannot make a block.
        links: "loopback": the nodes have addresses of the loopback device; "namespaces": each has its own
            network namespace.
        zones: table of zones, by name or path. Nodes are assigned to the zones in turn, and packets between
            zones are delayed. Implies namespaces.
        jitter_share: standard deviation of a packet's delay, divided by the delay.
        loss: share of packets that are dropped; needs namespaces.
        bandwidth_bps: bandwidth between each ordered pair of nodes (bit/s); 0: not limited. Needs namespaces.
        emulation: "netem": the kernel delays packets; "switch": chainmark does; "auto": the kernel if it
            can.
        other_version: second version of a mixed network, run by `other_share` of the nodes; empty: all nodes
            run one version.
        other_share: share of the nodes that run `other_version`, spread evenly.
        check_capacity: refuse a network that this machine certainly cannot run.
        first_address: IP address of the first node; the others follow it.
        start_timeout_s: time (seconds) within which all nodes must be healthy.
    """

    model_config = _SECTION

    validators: Annotated[int, Field(ge=1, le=200)] = 4
    full_nodes: Annotated[int, Field(ge=0, le=200)] = 0
    seeds: Annotated[int, Field(ge=0, le=50)] = 0
    topology: Literal["full_mesh", "random", "seeds"] = "full_mesh"
    peers_per_node: Annotated[int, Field(ge=1, le=50)] = 5
    absent_validators: Annotated[int, Field(ge=0, le=200)] = 0
    voting_powers: list[Annotated[int, Field(ge=1, le=10**12)]] = []
    allow_halt: bool = False
    links: Literal["loopback", "namespaces"] = "loopback"
    zones: str = ""
    jitter_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    bandwidth_bps: Annotated[int, Field(ge=0)] = 0
    emulation: Literal["auto", "netem", "switch"] = "auto"
    other_version: str = ""
    other_share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    check_capacity: bool = True
    first_address: str = "127.1.0.1"
    # 50 nodes on 2 cores need 15 s; a node that needs four times that has a problem.
    start_timeout_s: Seconds = 60.0

    @property
    def nodes(self) -> int:
        """Validators and full nodes together."""
        return self.validators + self.full_nodes

    @property
    def in_namespaces(self) -> bool:
        """Whether each node has a network namespace of its own."""
        return self.links == "namespaces" or bool(self.zones)

    @property
    def first_absent(self) -> int:
        """The number of the first validator that is offline, or that of the first full node."""
        return self.validators - self.absent_validators

    @property
    def started_nodes(self) -> list[int]:
        """The numbers of the validators and full nodes that are started."""
        return [*range(self.first_absent), *range(self.validators, self.nodes)]

    @property
    def power_share_present(self) -> Fraction:
        """The share of the voting power of the started validators."""
        powers = self.voting_powers or [1] * self.validators
        return Fraction(sum(powers[: max(0, self.first_absent)]), sum(powers))

    @model_validator(mode="after")
    def _every_validator_has_its_power(self) -> NodeNetwork:
        if self.voting_powers and len(self.voting_powers) != self.validators:
            given = len(self.voting_powers)
            raise ValueError(f"`network.voting_powers` has {given} entries, but there are {self.validators} validators")
        return self

    @model_validator(mode="after")
    def _nodes_can_meet(self) -> NodeNetwork:
        if self.topology == "random" and self.peers_per_node >= self.nodes:
            raise ValueError(
                f"`network.peers_per_node` is {self.peers_per_node}, but there are only {self.nodes - 1} other nodes"
            )
        if (self.topology == "seeds") != (self.seeds > 0):
            raise ValueError(
                f'`network.seeds` is {self.seeds} and `network.topology` is "{self.topology}", but seeds and the '
                'topology "seeds" require each other'
            )
        return self

    @model_validator(mode="after")
    def _links_can_be_emulated(self) -> NodeNetwork:
        if (self.loss or self.bandwidth_bps) and not self.in_namespaces:
            key = "loss" if self.loss else "bandwidth_bps"
            raise ValueError(f'`network.{key}` needs `network.links = "namespaces"`, or zones')
        return self

    @model_validator(mode="after")
    def _blocks_can_be_made(self) -> NodeNetwork:
        # More than two thirds of the power must vote for a block.
        if self.power_share_present <= Fraction(2, 3) and not self.allow_halt:
            raise ValueError(
                f"`network.absent_validators` is {self.absent_validators} of {self.validators}, which halts the chain "
                f"with {units.plain_percent(float(1 - self.power_share_present))} of the voting power offline: "
                "more than two thirds of the power must be online (`--set network.allow_halt=true` allows it anyway)"
            )
        if self.first_absent < 1:
            raise ValueError("`network.absent_validators` leaves no validator online")
        return self


class Load(BaseModel):
    """The transactions offered to the network.

    Attributes:
        targets: numbers of the nodes that get the transactions; validators come first. The published tests use
            one.
        connections: connections per target.
        rate: transactions per second and connection.
        size_bytes: size of a transaction (bytes).
        method: "sync": the node responds after it has checked the transaction; "async": before.
        schedule: "even": equal intervals; "poisson": random ones; "burst": all transactions of each second at its
            start.
        warm_up_s: load (seconds) before the measured window.
        duration_s: length of the measured window (seconds).
        answer_timeout_s: time (seconds) after which a response no longer counts.
        send_grace_s: time (seconds) after the end of the schedule in which late transactions are still sent.
        drain_timeout_s: longest time (seconds) to wait for accepted transactions to be committed.
    """

    model_config = _SECTION

    targets: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0]
    connections: Annotated[int, Field(ge=1, le=256, description="(connections per target)")] = 1
    rate: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second and connection)")] = 200
    size_bytes: Annotated[int, Field(ge=1)] = 1024
    method: Literal["sync", "async"] = "sync"
    schedule: Literal["even", "poisson", "burst"] = "even"
    # The first blocks after the start are small and irregular; 10 s are about seven blocks.
    warm_up_s: Seconds = 10.0
    duration_s: Annotated[float, Field(ge=1, le=86_400)] = 30.0
    # The node's own limit for a broadcast response is 10 s.
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

    @property
    def offered(self) -> int:
        """The number of transactions in the schedules ``even`` and ``burst`` (``poisson``: on average)."""
        return int(self.rate * (self.warm_up_s + self.duration_s) + 1e-9) * self.total_connections

    @property
    def offered_for_certain(self) -> int | None:
        """The same; None if it is random."""
        return None if self.schedule == "poisson" else self.offered


class NodeConfig(BaseModel):
    """What is changed in the nodes' own configuration, after the versions' own defaults.

    Attributes:
        app: built-in application of the node (`proxy_app`).
        processors: processors that Go lets each node use at once (GOMAXPROCS); 0: all.
        config: changes of `config.toml`, by section and key, such as `node.config.consensus.timeout_commit`.
        genesis: changes of `genesis.json`, such as `node.genesis.consensus_params.feature.pbts_enable_height`.
    """

    model_config = _SECTION

    app: str = "kvstore"
    processors: Annotated[int, Field(ge=0, le=1024)] = 0
    config: Annotated[dict[str, Any], AfterValidator(_on_top_of_our_own)] = Field(default={}, validate_default=True)
    genesis: dict[str, Any] = {}


class Perturbation(BaseModel):
    """One perturbation of nodes while the load runs, which is undone.

    Attributes:
        kind: what is done to the nodes.
        nodes: numbers of the nodes; of a partition, those of one half.
        at_s: start (seconds) after the beginning of the measured window.
        for_s: duration (seconds); a restart takes as long as the node takes to stop.
        version: of an upgrade only: version that the nodes run afterwards.
    """

    model_config = _SECTION

    kind: Literal["kill", "pause", "restart", "disconnect", "upgrade", "partition"]
    nodes: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    at_s: Seconds
    for_s: Seconds = 0.0
    version: str = ""

    @property
    def end_s(self) -> float:
        """The end of the perturbation, in seconds into the window."""
        return self.at_s + self.for_s

    @model_validator(mode="after")
    def _a_version_belongs_to_an_upgrade(self) -> Perturbation:
        if self.kind == "upgrade" and not self.version:
            raise ValueError("a perturbation `upgrade` requires `version`, which its nodes run afterwards")
        if self.kind != "upgrade" and self.version:
            raise ValueError(f"a perturbation `{self.kind}` has no `version`; only an `upgrade` has")
        return self


class Rotating(BaseModel):
    """Full nodes that join one after another under load, without any data, and leave when they have caught up.

    Attributes:
        joiners: number of full nodes that join.
        min_height: height of the network at which the first one joins, so that there are blocks to catch up
            with.
        catch_up_timeout_s: time (seconds) after which a node counts as not joined.
    """

    model_config = _SECTION

    joiners: Annotated[int, Field(ge=0, le=100)] = 0
    min_height: Annotated[int, Field(ge=1)] = 20
    catch_up_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0


def _adapter(given: object) -> Adapter | None:
    return None if given is None else adapter_of(given)


class Application(BaseModel):
    """Another application than the node's own, for features that the node's lacks.

    Attributes:
        vote_extension_size_bytes: size (bytes) of the extension of every vote; 0: a number of up to 8 bytes.
            Omitted: the node's own application, without extensions.
        command: program that speaks ABCI over a socket, one process per node, instead of `node.app`.
            `{address}` is where it must listen, `{node}` the node's name, `{home}` the node's folder.
        adapter: how nodes of another program are made, started and loaded: the name of a shipped adapter, the
            path of a file, or its content. `application = "NAME or FILE"` is short for it.
    """

    model_config = _SECTION

    vote_extension_size_bytes: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    command: list[str] = []
    adapter: Annotated[Adapter | None, BeforeValidator(_adapter)] = None

    @model_validator(mode="after")
    def _one_application_at_a_time(self) -> Application:
        if self.command and self.vote_extension_size_bytes is not None:
            raise ValueError("`application.command` and `application.vote_extension_size_bytes` cannot be combined")
        if self.has_program and (self.command or self.vote_extension_size_bytes is not None):
            other = "command" if self.command else "vote_extension_size_bytes"
            raise ValueError(
                f"`application.adapter` has its own program, and cannot be combined with `application.{other}`"
            )
        return self

    @property
    def has_program(self) -> bool:
        """Whether the nodes are not CometBFT's own."""
        return self.adapter is not None and self.adapter.program is not None


def _application(given: object) -> object:
    return {"adapter": given} if isinstance(given, str) else given


class RunGates(BaseModel):
    """What a run must meet: an instrument's gate before it may be compared, a subject's to pass it.

    Attributes:
        achieved_rate_min: smallest share of the scheduled transactions that were sent.
        committed_share_min: smallest share of the sent transactions that were committed; below it the network
            is saturated, and latencies are those of a full mempool.
        schedule_lag_p99_max_s: largest p99 of how late the generator sent (seconds).
        generator_cpu_max_cores: largest number of cores that the generator used.
        waited_share_max: largest share of the time in which nodes, generator or observer wanted to run but
            other programs had the processors. Waiting of one machine's nodes for each other does not count.
        extra_rounds_max: largest number of consensus rounds beyond the first of each block; omitted: not
            limited.
        blocks_min: number of blocks in the window below which the run is judged by its block interval; a
            network without any block has failed.
        no_block_max_s: time (seconds) without a block after which the network counts as stopped, which ends the
            run. Perturbations are waited for.
        unsent_by_generator_max: largest share of transactions that the generator did not send although no node
            refused one or responded late; 1: not limited.
    """

    model_config = _SECTION

    achieved_rate_min: Annotated[float, Field(ge=0, le=1)] = 0.98
    committed_share_min: Annotated[float, Field(ge=0, le=1)] = 0.98
    schedule_lag_p99_max_s: Annotated[float, Field(gt=0)] = 0.05
    generator_cpu_max_cores: Annotated[float, Field(gt=0)] = 0.5
    waited_share_max: Annotated[float, Field(gt=0, le=1)] = 0.1
    extra_rounds_max: Annotated[int, Field(ge=0)] | None = None
    blocks_min: Annotated[int, Field(ge=1)] = 10
    no_block_max_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    unsent_by_generator_max: Annotated[float, Field(ge=0, le=1)] = 1.0


class SaturationSearch(BaseModel):
    """How `chainmark saturation` finds the load at which the network stops keeping up.

    Attributes:
        connections: connections of the grid (c).
        rates: transactions per second and connection of the grid (r).
        tolerance: a load is sustained if at least one minus this share of the offered transactions is committed.
        search: "grid": run all loads; "bisect": only those that a bisection needs to find the same load.
        first_load: transactions per second at which `--adaptive` begins.
        most_load: transactions per second at which `--adaptive` ends.
        relative_gap: largest distance between the two loads around the saturation point, divided by the lower
            one (`--adaptive`).
    """

    model_config = _SECTION

    connections: Annotated[list[Annotated[int, Field(ge=1, le=256)]], Field(min_length=1)] = [1, 2, 4]
    rates: Annotated[list[Annotated[int, Field(ge=1, le=MAX_RATE)]], Field(min_length=1)] = [200, 400, 800, 1600]
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.1
    search: Literal["grid", "bisect"] = "grid"
    first_load: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second)")] = 100
    most_load: Annotated[int, Field(ge=1, le=MAX_RATE, description="(transactions per second)")] = 12_800
    relative_gap: Annotated[float, Field(gt=0, lt=1)] = 0.1


class CometBFTProfile(BaseModel):
    """A CometBFT profile, resolved and complete.

    Attributes:
        system: `cometbft`.
        name: name of the profile, which reports show.
        description: a sentence for `chainmark profiles`.
        recovery_timeout_s: time (seconds) that a node may take to recover from a perturbation.
    """

    model_config = _SECTION

    system: Literal["cometbft"]
    name: str
    description: str = ""
    network: NodeNetwork = NodeNetwork()
    load: Load = Load()
    node: NodeConfig = NodeConfig()
    application: Annotated[Application, BeforeValidator(_application)] = Application()
    gates: RunGates = RunGates()
    perturbation: list[Perturbation] = []
    recovery_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    rotating: Rotating = Rotating()
    saturation: SaturationSearch = SaturationSearch()

    @model_validator(mode="after")
    def _targets_exist(self) -> CometBFTProfile:
        network = self.network
        beyond = [target for target in self.load.targets if target >= network.nodes]
        if beyond:
            raise ValueError(f"`load.targets` names node {beyond[0]}, but the nodes are 0 to {network.nodes - 1}")
        absent = [target for target in self.load.targets if target not in network.started_nodes]
        if absent:
            raise ValueError(f"`load.targets` names node {absent[0]}, but that validator is offline")
        return self

    @model_validator(mode="after")
    def _perturbations_are_possible(self) -> CometBFTProfile:
        for index, item in enumerate(self.perturbation):
            name = f"perturbation {index + 1} ({item.kind})"
            unstarted = [node for node in item.nodes if node not in self.network.started_nodes]
            if unstarted:
                raise ValueError(f"{name} names node {unstarted[0]}, which is not started")
            loaded = sorted(set(item.nodes) & set(self.load.targets))
            if loaded and item.kind != "partition":
                raise ValueError(f"{name} names node {loaded[0]}, which receives the load; perturb another one")
            if item.kind in {"disconnect", "partition"} and not self.network.in_namespaces:
                raise ValueError(f'{name} cuts connections, which needs `network.links = "namespaces"`, or zones')
            if item.end_s > self.load.duration_s:
                raise ValueError(
                    f"{name} ends {units.tidy(item.end_s)} s into the window, but `load.duration_s` is "
                    f"{units.tidy(self.load.duration_s)}"
                )
            if item.kind == "partition" and set(item.nodes) >= set(self.network.started_nodes):
                raise ValueError(f"{name} names all nodes, but a partition needs two sides")
            for other in self.perturbation[:index]:
                shared = set(item.nodes) & set(other.nodes)
                if shared and item.at_s < other.end_s and other.at_s < item.end_s:
                    raise ValueError(f"{name} begins on node {min(shared)} before an earlier one ends")
        return self

    @model_validator(mode="after")
    def _one_application_has_one_version(self) -> CometBFTProfile:
        if self.application.vote_extension_size_bytes is not None and self.other_versions:
            raise ValueError("`application.vote_extension_size_bytes` needs a network of one version")
        return self

    @property
    def other_versions(self) -> list[str]:
        """The versions that nodes run in addition to the subject's."""
        upgraded = [item.version for item in self.perturbation if item.version]
        return list(dict.fromkeys(version for version in [self.network.other_version, *upgraded] if version))

    def with_versions(self, names: Mapping[str, str]) -> CometBFTProfile:
        """The same profile with these versions renamed."""
        network = {"other_version": names.get(self.network.other_version, "")}
        perturbation = [item.model_copy(update={"version": names.get(item.version, "")}) for item in self.perturbation]
        return self.model_copy(
            update={"network": self.network.model_copy(update=network), "perturbation": perturbation}
        )

    def workload(self) -> dict[str, Scalar | list[Scalar]]:
        """Properties that two runs must share: the load and the network, not the subject's node configuration."""
        flat: dict[str, Scalar | list[Scalar]] = {f"load.{key}": value for key, value in self.load.model_dump().items()}
        flat |= {
            f"network.{key}": value
            for key, value in self.network.model_dump().items()
            if key in _NETWORK_ALWAYS or (key not in _NOT_WORKLOAD and value != NodeNetwork.model_fields[key].default)
        }
        if self.node.processors:
            flat["node.processors"] = self.node.processors
        for index, item in enumerate(self.perturbation):
            flat |= {f"perturbation.{index + 1}.{key}": value for key, value in item.model_dump().items()}
        if self.rotating.joiners:
            flat |= {f"rotating.{key}": value for key, value in self.rotating.model_dump().items()}
        if (size_bytes := self.application.vote_extension_size_bytes) is not None:
            flat["application.vote_extension_size_bytes"] = size_bytes
        if (adapter := self.application.adapter) is not None:
            flat |= adapter.workload()
        return flat if self.application.has_program else {**flat, "node.app": self.node.app}
