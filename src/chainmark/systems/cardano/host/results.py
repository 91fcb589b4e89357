"""The results for one host's run."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.systems.cardano.host.sample_files import BlockSample


class SeenBlock(BaseModel):
    """A sample with the sums of blockperf's delays.

    Attributes:
        adopted_s: from slot start to the adoption.
        switched: it was adopted by leaving a fork.
    """

    sample: BlockSample
    time_ns: int
    adopted_s: float
    switched: bool


class PeerRow(BaseModel):
    """The blocks from one peer.

    Attributes:
        headers: blocks whose first header it sent.
        blocks: blocks that it sent first.
        fetch_p50_s: None if it sent none.
    """

    peer: str
    headers: int
    blocks: int
    fetch_p50_s: float | None


class ObservedChain(BaseModel):
    """The chain as the host saw it, and the host's part in it.

    Attributes:
        battles: number of heights with several blocks.
        switches: changes of its chain to another fork.
        forged, forged_lost: its own blocks; those of them that its log does not show on the chain.
        loop_slots, missed_slots: slots in which the forge loop should have begun; those of them in which it did not.
            None if no forge loop was logged.
    """

    classes: dict[str, int]
    battles: int
    switches: int
    forged: int
    forged_lost: int
    loop_slots: int | None
    missed_slots: int | None


class SampleDifference(BaseModel):
    """A figure in which another tool's sample differs from ours."""

    block_number: int
    block_hash: str
    field: str
    ours: str
    theirs: str


class Beside(BaseModel):
    """Our samples next to those of another tool, block by block.

    Attributes:
        common: blocks in both.
        figures: those compared.
        only_ours, only_theirs: numbers of blocks; for theirs with the reason why it is not a sample here.
        not_in_log: numbers of theirs that the log lacks although it has lower and higher ones.
        outside: number of theirs that are lower or higher than all in the log.
        masked: number of differing peers: they may be hidden in the other tool's output.
    """

    file: str
    common: int
    figures: int
    differences: list[SampleDifference]
    only_ours: list[int]
    only_theirs: list[tuple[int, str]]
    not_in_log: list[int]
    outside: int
    masked: int

    @property
    def agrees(self) -> bool:
        """Whether there are common blocks, none of them differs, and no block is missing here without a reason."""
        return self.common > 0 and not self.differences and not self.not_in_log


class ArrivalCurves(BaseModel):
    """The share of all blocks over the time since their slot, s: header received, and adopted.

    Attributes:
        headers, adopted: pairs of time and share, up to the edge.
        edge_s: the p99 of the adoptions, the longest one if that is not estimable.
        beyond: number of blocks that were adopted later.
    """

    headers: list[tuple[float, float]]
    adopted: list[tuple[float, float]]
    edge_s: float
    beyond: int


class HostReport(BaseModel):
    """A run of one host.

    Attributes:
        curves: None without samples.
        blocks: its samples, the oldest first; many, so they are separate files and not in the JSON.
        slowest: those with the longest time from their slot to the adoption.
    """

    host: str
    manifest: Manifest
    metrics: dict[str, MetricSummary]
    catalogue: Catalogue = Field(exclude=True)
    chain: ObservedChain
    peers: list[PeerRow]
    curves: ArrivalCurves | None
    blocks: Sequence[SeenBlock] = Field(exclude=True)
    slowest: list[SeenBlock]
    beside: Beside | None = None
    caveats: CaveatsField = Caveats()
