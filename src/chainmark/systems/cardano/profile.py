"""The profile of a Cardano network: its hosts and distances, the chain, the workload, the stages' durations."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.systems.cardano.scenario import (
    PINGS_S,
    PINGS_SPREAD_S,
    REGIONS,
    ClusterRequest,
    Parameters,
    Region,
    Scenario,
    Stages,
)
from chainmark.systems.cardano.topology import TORUS_DENSE, ListedTopology, parse_topology

_SECTION = ConfigDict(extra="forbid", frozen=True)
# A longer round trip is invalid.
ROUND_TRIP_MAX_S = 60.0


class ClusterNetwork(BaseModel):
    """The hosts, their connections, and their distances.

    Attributes:
        hosts: number of hosts; the default is that of the published benchmarks' cluster.
        topology: "torus-dense", "random:4+1" (per host, peers in its region + elsewhere), or the path of a topology
            file, which then also gives the hosts.
        regions: where the hosts are; a topology file names them by their names or aliases.
        rtt_s: mean round-trip time (seconds) between regions: a row and a column per region, in their order.
        rtt_spread_s: standard deviation (seconds) of these means from link to link, in the same order.
    """

    model_config = _SECTION

    hosts: Annotated[int, Field(ge=2, le=1_000_000)] = 52
    topology: str = TORUS_DENSE
    regions: Annotated[list[Region], Field(min_length=1)] = REGIONS
    rtt_s: list[list[float]] = PINGS_S
    rtt_spread_s: list[list[float]] = PINGS_SPREAD_S

    @model_validator(mode="after")
    def _consistent(self) -> ClusterNetwork:
        names = [name for region in self.regions for name in (region.name, *region.aliases)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(
                f"`network.regions` names `{twice}` twice", "every name and alias must belong to one region only"
            )
        self._check_matrix("rtt_s", self.rtt_s, exclusive=True)
        self._check_matrix("rtt_spread_s", self.rtt_spread_s, exclusive=False)
        topology = parse_topology(self.topology)
        if isinstance(topology, ListedTopology):
            self._check_listed(topology, set(names))
        return self

    def _check_matrix(self, key: str, matrix: list[list[float]], *, exclusive: bool) -> None:
        n = len(self.regions)
        if len(matrix) != n or any(len(row) != n for row in matrix):
            raise UsageError(
                f"`network.{key}` must have {n} rows of {n} values, one for each pair of regions",
                f"rows and columns are in the order of the regions: {', '.join(each.name for each in self.regions)}",
            )
        low = "more than 0" if exclusive else "at least 0"
        for a, row in enumerate(matrix):
            for b, value in enumerate(row):
                if not math.isfinite(value) or value < 0 or (exclusive and value == 0) or value > ROUND_TRIP_MAX_S:
                    link = f"{self.regions[a].name}–{self.regions[b].name}"
                    raise UsageError(
                        f"`network.{key}` is {value} s for {link}",
                        f"it must be {low} and at most {units.duration(ROUND_TRIP_MAX_S)}",
                    )

    def _check_listed(self, topology: ListedTopology, regions: set[str]) -> None:
        misplaced = next((host for host in topology.hosts if host.region not in regions), None)
        if misplaced is not None:
            raise UsageError(
                f"the topology's {misplaced.name} is in the unknown region `{misplaced.region}`",
                f"`network.regions` has {', '.join(sorted(regions))}; add an alias there",
            )
        if "hosts" in self.model_fields_set and self.hosts != len(topology.hosts):
            raise UsageError(
                f"`network.hosts` is {self.hosts}, but the topology file lists {len(topology.hosts)}",
                "omit `network.hosts`: the file determines the hosts",
            )

    def cluster(self) -> ClusterRequest:
        """The cluster to simulate."""
        topology = parse_topology(self.topology)
        return ClusterRequest(
            hosts=len(topology.hosts) if isinstance(topology, ListedTopology) else self.hosts,
            topology=topology,
            regions=self.regions,
            rtt_s=self.rtt_s,
            rtt_spread_s=self.rtt_spread_s,
        )


class ChainConstants(BaseModel):
    """The protocol's constants.

    Attributes:
        slot_length_s: length of a slot (seconds).
        active_slots_coefficient: share of slots that have a leader; 0.05 gives one block per 20 slots.
        epoch_slots: slots per epoch.
        security_parameter: number of blocks behind the tip that can no longer change.
    """

    model_config = _SECTION

    slot_length_s: Annotated[float, Field(gt=0, le=3600, description="(seconds)")] = 1.0
    active_slots_coefficient: Annotated[float, Field(gt=0, le=1)] = 0.05
    epoch_slots: Annotated[int, Field(ge=1)] = 8000
    security_parameter: Annotated[int, Field(ge=1)] = 40

    @property
    def block_interval_s(self) -> float:
        """Mean time between blocks."""
        return self.slot_length_s / self.active_slots_coefficient


class BlockWorkload(BaseModel):
    """What fills the blocks. The defaults are full blocks of simple payments.

    Attributes:
        name: name of the workload, which reports show.
        tps: transactions submitted per second.
        block_bytes: mean block size (bytes).
        block_bytes_variation: standard deviation of the block sizes, divided by their mean.
    """

    model_config = _SECTION

    name: str = "value-only"
    tps: Annotated[float, Field(ge=0, description="(transactions per second)")] = 12.0
    block_bytes: Annotated[float, Field(ge=1, le=1e9, description="(bytes)")] = 88_963.0
    block_bytes_variation: Annotated[float, Field(ge=0, le=1)] = 0.0


class AnalysisSettings(BaseModel):
    """How logs are analysed.

    Attributes:
        filters: names of sets of filters ("value", "size-full") and single conditions ("BMinimumAdoptions=51"); a block
            or slot must meet all of them.
        count_switches: whether a block counts as adopted if the host adopts it by switching to its fork; the published
            reports do not count it.
        published_rules: whether to analyse by the rules of the published reports, including their known errors.
    """

    model_config = _SECTION

    filters: list[str] = []
    count_switches: bool = True
    published_rules: bool = False


class CardanoProfile(BaseModel):
    """A Cardano profile, resolved and whole.

    Attributes:
        system: `cardano`.
        name: name of the profile, which reports show.
        description: a sentence for `chainmark profiles`.
    """

    model_config = _SECTION

    system: Literal["cardano"]
    name: str
    description: str = ""
    network: ClusterNetwork = ClusterNetwork()
    chain: ChainConstants = ChainConstants()
    workload: BlockWorkload = BlockWorkload()
    stages: Stages = Stages()
    parameters: Parameters = Parameters()
    analysis: AnalysisSettings = AnalysisSettings()

    @model_validator(mode="after")
    def _consistent(self) -> CardanoProfile:
        limit, initial = self.parameters.window_limit_segments, self.parameters.initial_window_segments
        if limit < initial:
            raise UsageError(
                f"`parameters.window_limit_segments` is {units.tidy(limit)}, less than the initial window of "
                f"{units.tidy(initial)}",
                "a window starts at its initial size and never grows beyond its limit",
            )
        return self

    def scenario(self, seed: int) -> Scenario:
        """The simulator's input.

        Raises:
            UsageError: the topology file no longer exists, or is no longer valid.
        """
        return Scenario(
            seed=seed,
            cluster=self.network.cluster(),
            stages=self.stages,
            parameters=self.parameters,
            block_bytes=self.workload.block_bytes,
            block_bytes_variation=self.workload.block_bytes_variation,
            block_interval_s=self.chain.block_interval_s,
        )
