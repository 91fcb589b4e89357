"""The messages that the analysis needs of each host, and the effect if a host never emits one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chainmark.systems.cardano.accounting import HostSummary
from chainmark.systems.cardano.logs import listed

LOOP_START = "Forge.Loop.StartLeadershipCheck"
FORGED = "Forge.Loop.ForgedBlock"
ADOPTED = "Forge.Loop.AdoptedBlock"
LEADS = "Forge.Loop.NodeIsLeader"
LEADS_NOT = "Forge.Loop.NodeNotLeader"
NOTICED = "ChainSync.Client.DownloadedHeader"
REQUESTED = "BlockFetch.Client.SendFetchRequest"
FETCHED = "BlockFetch.Client.CompletedBlockFetch"
LEDGER_METRICS = "LedgerMetrics"
MEMPOOL = ("Mempool.AddedTx", "Mempool.RemoveTxs")
COLLECTED = "TxSubmission.TxInbound.Collected"
PROCESSED = "TxSubmission.TxInbound.Processed"
_LOAD = (*MEMPOOL, COLLECTED, PROCESSED)


@dataclass(frozen=True)
class Emitted:
    """The messages of one host.

    Attributes:
        counts: number of messages of each kind.
        reports_density: whether some message reports the chain's density: old nodes do so when the forge loop starts.
        under_load: whether transactions were submitted to the cluster.
    """

    counts: Mapping[str, int]
    entries: int
    forged: int
    reports_density: bool
    under_load: bool

    def has(self, *messages: str) -> bool:
        """Whether it emits any of them."""
        return any(self.counts.get(message, 0) for message in messages)

    @property
    def has_forge_loop(self) -> bool:
        """Whether it takes part in forging; a relay does not."""
        return any(count and message.startswith("Forge.Loop.") for message, count in self.counts.items())

    @property
    def hears_of_blocks(self) -> bool:
        """Whether it knows blocks of others."""
        return self.entries > self.forged


@dataclass(frozen=True)
class NeededMessage:
    """A message that the analysis needs.

    Attributes:
        alternatives: others that serve as well.
        feeds: the metrics that need it.
        severity: at which the node emits it.
        of: whether it is expected of a host.
    """

    message: str
    feeds: str
    severity: str
    of: Callable[[Emitted], bool]
    alternatives: tuple[str, ...] = ()


def _loop(host: Emitted) -> bool:
    return host.has_forge_loop


def _leader(host: Emitted) -> bool:
    return host.has(LEADS, FORGED, ADOPTED)


def _peer(host: Emitted) -> bool:
    return host.hears_of_blocks


def _any(host: Emitted) -> bool:
    return host.entries > 0


NEEDS = (
    NeededMessage("Resources", "resource metrics", "Info", lambda _: True),
    NeededMessage(LEDGER_METRICS, "density metrics", "Info", lambda host: not host.reports_density),
    NeededMessage(LOOP_START, "forge loop and forging metrics", "Info", _loop),
    NeededMessage("Forge.Loop.BlockContext", "block context and block gap metrics", "Debug", _loop),
    NeededMessage("Forge.Loop.LedgerState", "ledger state metrics", "Debug", _loop),
    NeededMessage("Forge.Loop.LedgerView", "ledger view metrics", "Debug", _loop),
    NeededMessage(LEADS_NOT, "leadership metrics", "Info", _loop, (LEADS,)),
    NeededMessage("Forge.Loop.TickedLedgerState", "ledger ticking metrics", "Debug", _leader),
    NeededMessage("Forge.Loop.MempoolSnapshot", "mempool snapshot metrics", "Debug", _leader),
    NeededMessage(FORGED, "forging metrics and the chain", "Info", _leader),
    NeededMessage(ADOPTED, "block sizes and forging metrics", "Info", _leader),
    NeededMessage(NOTICED, "all peer metrics", "Info", lambda host: host.has(REQUESTED, FETCHED)),
    NeededMessage(REQUESTED, "request metrics", "Info", _peer),
    NeededMessage(FETCHED, "fetch metrics", "Info", _peer),
    NeededMessage("ChainDB.AddBlockEvent.AddedToCurrentChain", "adoption metrics", "Notice", _peer),
    NeededMessage("ChainSync.ServerHeader.Update", "announcement metrics", "Info", _any),
    NeededMessage("BlockFetch.Server.SendBlock", "sending metrics", "Info", _any),
    NeededMessage(MEMPOOL[0], "mempool metrics", "Info", lambda host: host.under_load, MEMPOOL[1:]),
    NeededMessage(COLLECTED, "metrics of collected transactions", "Debug", lambda host: host.under_load),
    NeededMessage(PROCESSED, "metrics of accepted and rejected transactions", "Debug", lambda host: host.under_load),
)


def missing_messages(
    summaries: Mapping[str, HostSummary], slots: Mapping[str, Path | None], load_stated: bool
) -> list[str]:
    """Sentences about messages that hosts never emit, hosts that lack the same one together.

    Args:
        summaries: per host, the decoder's summary.
        slots: per host, its table of slots.
        load_stated: whether the run's description states that transactions were submitted.
    """
    under_load = load_stated or any(
        summary.line_counts.decoded_by_message.get(message, 0) for summary in summaries.values() for message in _LOAD
    )
    emitted = {
        name: Emitted(
            counts=summary.line_counts.decoded_by_message,
            entries=summary.block_counts.entries,
            forged=summary.block_counts.forged,
            reports_density=_reports_density(summary, slots[name]),
            under_load=under_load,
        )
        for name, summary in summaries.items()
    }
    sentences = []
    for need in NEEDS:
        expected = [name for name, host in emitted.items() if need.of(host)]
        lacking = [name for name in expected if not emitted[name].has(need.message, *need.alternatives)]
        if lacking:
            sentences.append(_sentence(need, lacking, expected, len(emitted)))
    return sentences


def _sentence(need: NeededMessage, lacking: list[str], expected: list[str], hosts: int) -> str:
    enable = f"enable {need.message} at {need.severity}"
    if lacking == expected and len(expected) > 1:
        subject = "no host" if len(expected) == hosts else "no host that should"
        return f"{subject} emits {need.message}: {need.feeds} have no data; {enable}"
    if len(lacking) == 1:
        return f"{lacking[0]} does not emit {need.message}: {need.feeds} lack this host; {enable}"
    return f"{listed(lacking)} do not emit {need.message}: {need.feeds} lack these hosts; {enable}"


def _reports_density(summary: HostSummary, slots: Path | None) -> bool:
    if summary.line_counts.decoded_by_message.get(LEDGER_METRICS, 0):
        return True
    if slots is None:
        return False
    return bool(pl.read_parquet(slots, columns=["density"]).select((pl.col("density") > 0).any()).item())
