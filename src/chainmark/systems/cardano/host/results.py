"""What is told of one host's run."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.systems.cardano.host.sample_files import BlockSample


class SeenBlock(BaseModel):
    """A sample with what the delays of blockperf add up to.

    Attributes:
        adopted_s: from slot start to the adoption.
        switched: it was adopted by leaving a fork.
    """

    sample: BlockSample
    time_ns: int
    adopted_s: float
    switched: bool


class PeerRow(BaseModel):
    """What came from one peer.

    Attributes:
        headers: blocks whose first header it sent.
        blocks: blocks that it sent first.
        fetch_p50_s: None where it sent none.
    """

    peer: str
    headers: int
    blocks: int
    fetch_p50_s: float | None


class ObservedChain(BaseModel):
    """What the host saw of the chain, and its own part in it.

    Attributes:
        battles: heights of which it heard of several blocks.
        switches: changes of its chain to another fork.
        forged, forged_lost: its own blocks; of them those that its log does not show on the chain.
        loop_slots, missed_slots: slots in which the forge loop should have begun; of them those in which it did not.
            None where no forge loop was logged.
    """

    classes: dict[str, int]
    battles: int
    switches: int
    forged: int
    forged_lost: int
    loop_slots: int | None
    missed_slots: int | None


class SampleDifference(BaseModel):
    """A figure in which another tool's sample is not ours."""

    block_number: int
    block_hash: str
    field: str
    ours: str
    theirs: str


class Beside(BaseModel):
    """Our samples beside those of another tool, block by block.

    Attributes:
        common: blocks in both.
        figures: compared in these.
        only_ours, only_theirs: numbers of blocks; of theirs with why it is no sample here.
        not_in_log: numbers of theirs of which the log says nothing although it tells of lower and of higher ones.
        outside: how many of theirs are lower or higher than all of the log.
        masked: peers that differ: they may be hidden in what the other tool writes.
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
        """Whether there is something in common, nothing in it differs, and no block is missing here unexplained."""
        return self.common > 0 and not self.differences and not self.not_in_log


class HostReport(BaseModel):
    """A run of one host.

    Attributes:
        blocks: its samples, the oldest first; many, so they are files of their own and not in the JSON.
        slowest: those that took longest from their slot to the adoption.
    """

    host: str
    manifest: Manifest
    metrics: dict[str, MetricSummary]
    catalogue: Catalogue = Field(exclude=True)
    chain: ObservedChain
    peers: list[PeerRow]
    blocks: Sequence[SeenBlock] = Field(exclude=True)
    slowest: list[SeenBlock]
    beside: Beside | None = None
    caveats: CaveatsField = Caveats()
