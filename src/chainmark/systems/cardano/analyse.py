"""Decoded hosts to samples: the chain, the filters, the blocks, the slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainmark.core.progress import Progress
from chainmark.store.runs import UnfinishedRun
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import Condition
from chainmark.systems.cardano.rules import Rules


@dataclass(frozen=True)
class HostTrace:
    """What was decoded of one host.

    Attributes:
        slots: one row per slot record; None when the host has none.
        lives: one row per block that the host knew.
        summary: the decoder's account of it.
    """

    name: str
    slots: Path | None
    lives: Path
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Tip:
    """The entry that the main chain was found from; it is not on that chain itself."""

    block: str
    block_no: int
    host: str


@dataclass(frozen=True)
class HostResult:
    """What the analysis says of one host.

    Attributes:
        region: None without a topology.
        slot_records, kept_slots: before and after the slot conditions.
        first_slot, last_slot: of the kept records; None without any.
        forged, chained, accepted: the blocks that it forged, over the whole log.
        errors: blocks of which its log tells an impossible story; they enter nothing.
        early_notices: blocks of which it had the header before their forger had forged them, by the two clocks.
        earliest_notice_s: the worst of them, a negative time; None without any.
    """

    name: str
    region: str | None
    slot_records: int
    kept_slots: int
    first_slot: int | None
    last_slot: int | None
    forged: int
    chained: int
    accepted: int
    errors: int
    early_notices: int
    earliest_notice_s: float | None


@dataclass(frozen=True)
class Analysis:
    """What the analysis found, besides the samples that it wrote.

    Attributes:
        conditions: number of filter conditions.
        tip: None when no forged block is known.
        walk_ended_short: why the chain does not reach its first block; None when it does.
        chain_blocks: blocks of the main chain, the tip left out; accepted + rejected.
        rejected_by: per reason the rejected blocks that it speaks against; a block counts once per reason.
        forged: forged blocks known, on whatever chain.
        battles: other blocks at the heights of the main chain.
        unadopted: accepted blocks that nobody adopted.
        slots_analysed: floor of the mean over hosts of (last kept slot - first kept slot); None without any.
        analysed_duration_s: from the first to the last slot that any host kept; None without any.
        hosts: in their order.
        written: rows per population.
    """

    conditions: int
    tip: Tip | None
    walk_ended_short: str | None
    chain_blocks: int
    accepted: int
    rejected: int
    rejected_by: dict[str, int]
    forged: int
    battles: int
    unadopted: list[str]
    slots_analysed: int | None
    analysed_duration_s: int | None
    hosts: list[HostResult]
    written: dict[str, int]

    @property
    def hosts_without_slots(self) -> list[str]:
        """The hosts of which no slot was kept: left out of the cluster's metrics."""
        return [host.name for host in self.hosts if host.kept_slots == 0]


def analyse(
    hosts: Sequence[HostTrace],
    genesis: Genesis,
    conditions: Sequence[Condition],
    rules: Rules,
    regions: Mapping[str, str] | None,
    run: UnfinishedRun,
    progress: Progress,
) -> Analysis:
    """Rebuild the chain, apply the conditions, write events and samples into the run.

    Args:
        hosts: the decoded hosts; their names decide their order.
        conditions: all must hold for a block, those on slots also for a slot record.
        regions: the region of every host; None without a topology.

    Source: docs/concepts of the published reports' analysis.
    """
    raise AssertionError
