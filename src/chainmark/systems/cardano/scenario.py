"""The input of the simulation: the cluster, the stages' durations, the constants of transport and scheduling.

This mirrors, field by field, the input of the simulator in Rust.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from chainmark.systems.cardano.topology import ListedTopology, Topology, TorusDense

_FROZEN = ConfigDict(frozen=True, extra="forbid")
Seconds = Annotated[float, Field(ge=0, le=600, description="(seconds)")]
Share = Annotated[float, Field(ge=0, le=1)]
Variation = Annotated[float, Field(ge=0, le=600, description="(standard deviation / mean)")]
SegmentBytes = Annotated[float, Field(ge=100, le=1e6, description="(bytes)")]


class Region(BaseModel):
    """A region and the names that topology files use for it.

    Attributes:
        name: of the region, as in reports and what-ifs.
        aliases: other names of the region, such as those in topology files.
    """

    model_config = _FROZEN

    name: str
    aliases: list[str] = []


Matrix = Sequence[Sequence[float]]


def link_of(regions: Sequence[Region], text: str) -> tuple[int, int] | None:
    """A pair of regions by index: "EU-AP", "EU–AP", "eu-central-1-ap-southeast-2"; None if it is invalid."""
    plain = text.replace("–", "-")
    numbers = {name: index for index, region in enumerate(regions) for name in (region.name, *region.aliases)}
    for place, character in enumerate(plain):
        if character == "-":
            a, b = numbers.get(plain[:place]), numbers.get(plain[place + 1 :])
            if a is not None and b is not None:
                return a, b
    return None


# A 52-node benchmark cluster on AWS: the published matrix of pings of 64 bytes between its hosts, averaged over the
# links of each pair of regions, with the standard deviation from link to link.
REGIONS = [
    Region(name="EU", aliases=["eu-central-1"]),
    Region(name="US", aliases=["us-east-1"]),
    Region(name="AP", aliases=["ap-southeast-2"]),
]
PINGS_S = [
    [0.000198, 0.09017, 0.27288],
    [0.09017, 0.000254, 0.19999],
    [0.27288, 0.19999, 0.000149],
]
# The same, with the round trip EU–AP that the fetch durations of small blocks imply on average of the runs up to 10.2:
# most deployments were routed better than the pinged one.
EXPECTED_S = [[0.249 if value == PINGS_S[0][2] else value for value in row] for row in PINGS_S]
PINGS_SPREAD_S = [
    [0.000022, 0.00031, 0.00327],
    [0.00031, 0.000032, 0.00075],
    [0.00327, 0.00075, 0.000013],
]


class Stages(BaseModel):
    """Mean durations of the stages in seconds, by their starting points.

    The defaults are those of release 10.6.2 under full blocks of simple payments, from its published report.

    Attributes:
        started_s: from the start of the slot to the iteration of the forge loop (seconds).
        block_context_s: from there to the block context (seconds).
        ledger_state_s: from the block context to the ledger state (seconds).
        ledger_view_s: from the ledger state to the ledger view (seconds).
        leadership_s: from the ledger view to the leadership decision (seconds).
        ticked_s: from the leadership decision to the ticked ledger state (seconds).
        snapshot_s: from the ticked ledger state to the snapshot of the mempool (seconds).
        forged_s: from the snapshot to the forged block (seconds).
        announced_s: from the forged block to its announcement (seconds).
        self_adopted_s: from the forged block to its adoption by the forger (seconds).
        request_s: from the notice of a header to the request for the body (seconds).
        fetched_to_announced_s: from a fetched body to its announcement (seconds).
        adopted_s: from a fetched body to its adoption (seconds).
    """

    model_config = _FROZEN

    started_s: Seconds = 0.00142
    block_context_s: Seconds = 6.6e-05
    ledger_state_s: Seconds = 0.00012
    ledger_view_s: Seconds = 2.9e-05
    leadership_s: Seconds = 0.00041
    ticked_s: Seconds = 0.02142
    snapshot_s: Seconds = 0.04687
    forged_s: Seconds = 0.00077
    announced_s: Seconds = 0.00072
    self_adopted_s: Seconds = 0.06822
    request_s: Seconds = 0.00143
    fetched_to_announced_s: Seconds = 0.00103
    adopted_s: Seconds = 0.07194


class Parameters(BaseModel):
    """The constants of the model; docs/concepts/simulation.md has the source of each.

    Attributes:
        header_service_s: time to serve and validate a header, without the round trip (seconds).
        body_service_s: time to read, send and receive a body, without the round trips (seconds).
        server_share: share of the body's service time that the server spends before it sends.
        fetch_factor: factor by which every fetch takes longer, from the request to the body; simulates a slow-down.
        segment_bytes: TCP segment between regions (bytes).
        segment_bytes_in_region: TCP segment within a region, with jumbo frames (bytes).
        initial_window_segments: initial congestion window of a connection (segments).
        window_limit_segments: largest congestion window (segments).
        window_memory_s: time in which a grown congestion window halves on an idle connection (seconds).
        bandwidth_bytes_per_s: bandwidth of a link (bytes per second).
        fetch_concurrency: maximum number of peers from which a host requests a body at the same time.
        decision_interval_s: shortest interval between two decisions of a host on what to fetch (seconds).
        pipelining: whether a host announces a body before it has validated it.
        fast_block_probability: probability that the ledger is already ticked when a block is forged.
        fast_block_share: share of the mean ledger ticking that such a block saves; the mean over all blocks is kept.
        slow_block_probability: probability that a block is slow to forge and to adopt.
        slow_forging_s: additional forging time of a slow block (seconds).
        slow_adoption_s: additional adoption time of a slow block on every host (seconds).
        straggler_probability: probability that a host adopts a block late.
        straggler_s: additional adoption time in that case (seconds).
        forging_variation: variation of the forging stages (standard deviation / mean).
        header_variation: variation of the header's service time (standard deviation / mean).
        body_variation: variation of the body's service time (standard deviation / mean).
        request_variation: variation of the time to the request (standard deviation / mean).
        announcement_variation: variation of the time to the announcement (standard deviation / mean).
        adoption_variation: variation of the time from the body to adoption (standard deviation / mean).
    """

    model_config = _FROZEN

    header_service_s: Seconds = 0.0025
    body_service_s: Seconds = 0.0115
    server_share: Share = 0.25
    fetch_factor: Annotated[float, Field(ge=1, le=100)] = 1.0
    segment_bytes: SegmentBytes = 1448.0
    segment_bytes_in_region: SegmentBytes = 8949.0
    initial_window_segments: Annotated[float, Field(ge=1, le=1e6)] = 10.0
    window_limit_segments: Annotated[float, Field(ge=1, le=1e9)] = 400.0
    window_memory_s: Annotated[float, Field(ge=0, description="(seconds)")] = 3.0
    bandwidth_bytes_per_s: Annotated[float, Field(ge=1)] = 280e6
    fetch_concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    decision_interval_s: Seconds = 0.010
    pipelining: bool = True
    fast_block_probability: Share = 0.2
    fast_block_share: Share = 0.75
    slow_block_probability: Share = 0.01
    slow_forging_s: Seconds = 0.5
    slow_adoption_s: Seconds = 1.0
    straggler_probability: Share = 0.003
    straggler_s: Seconds = 0.15
    forging_variation: Variation = 0.12
    header_variation: Variation = 0.6
    body_variation: Variation = 0.7
    request_variation: Variation = 0.6
    announcement_variation: Variation = 0.5
    adoption_variation: Variation = 0.10


class FetchChange(BaseModel):
    """Fetches, from request to body, last ``factor`` times as long plus ``more_s``; never less than zero."""

    model_config = _FROZEN

    factor: Annotated[float, Field(ge=0, le=100)] = 1.0
    more_s: Annotated[float, Field(ge=-600, le=600)] = 0.0


class ClusterRequest(BaseModel):
    """A cluster as the simulator reads it.

    Attributes:
        rtt_s: mean round trip from region a to region b.
        rtt_spread_s: standard deviation of that mean from link to link.
        fetches: deviations of the fetch durations between two regions from the rest of the model; None: none.
        lost_regions: regions whose hosts do not take part.
    """

    model_config = _FROZEN

    hosts: int = 52
    topology: Topology = TorusDense()
    regions: list[Region] = REGIONS
    rtt_s: list[list[float]] = PINGS_S
    rtt_spread_s: list[list[float]] | None = PINGS_SPREAD_S
    fetches: list[list[FetchChange]] | None = None
    lost_regions: list[str] = []

    def region_number(self, name: str) -> int | None:
        """The index of the region with that name or alias, or None."""
        return next(
            (index for index, region in enumerate(self.regions) if name in (region.name, *region.aliases)), None
        )

    def link_name(self, a: int, b: int) -> str:
        """A pair of regions in text: "EU–AP"."""
        return f"{self.regions[a].name}–{self.regions[b].name}"

    def counts(self) -> dict[int, int]:
        """The number of participating hosts in each region that has any, by the region's index."""
        lost = {self.region_number(name) for name in self.lost_regions}
        if isinstance(self.topology, ListedTopology):
            regions = [self.region_number(host.region) for host in self.topology.hosts]
        else:
            regions = [host % len(self.regions) for host in range(self.hosts)]
        counter = Counter(region for region in regions if region is not None and region not in lost)
        return {index: counter[index] for index in sorted(counter)}

    @property
    def round_blocks(self) -> int | None:
        """The number of blocks in which every host forges its share; None: each of them once."""
        if not isinstance(self.topology, ListedTopology):
            return None
        lost = {self.region_number(name) for name in self.lost_regions}
        present = [host.pools for host in self.topology.hosts if self.region_number(host.region) not in lost]
        return None if set(present) <= {1} else sum(present)

    @property
    def host_count(self) -> int:
        """The number of participating hosts."""
        return sum(self.counts().values())


class Scenario(BaseModel):
    """A network under a workload.

    Attributes:
        block_bytes: mean size of a block.
        block_bytes_variation: the sizes' standard deviation over their mean, if no shape is known.
        block_bytes_shape: sizes over their mean at evenly spaced shares of the blocks, ascending.
        block_interval_s: mean time between blocks.
    """

    model_config = _FROZEN

    seed: int
    cluster: ClusterRequest = ClusterRequest()
    stages: Stages
    parameters: Parameters = Parameters()
    block_bytes: float
    block_bytes_variation: float = 0.0
    block_bytes_shape: list[float] = []
    block_interval_s: float = 20.0

    def json_text(self) -> str:
        """The format that the simulator reads."""
        return self.model_dump_json(exclude_none=True)
