"""Turn decoded hosts into samples: the chain, the filters, the blocks, the slots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.progress import Progress
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cardano import propagation
from chainmark.systems.cardano.block_work import block_work
from chainmark.systems.cardano.chain import (
    admitted,
    chain_blocks,
    forgers_of,
    observation_classes,
    observations,
    rejections,
    seconds,
    with_adoptions,
)
from chainmark.systems.cardano.clocks import Contradiction, contradictions
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition
from chainmark.systems.cardano.main_chain import KnownBlocks, MainChain, Tip, last_adopted, main_chain
from chainmark.systems.cardano.received import RECEIVED, received_blocks, received_counts, received_samples
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import HostSlots, survey, write_slot_samples
from chainmark.systems.cardano.spans import span_samples
from chainmark.systems.cardano.tables import TIMELINE_EVENTS, TIMELINES, read_block_table, read_links_table

NS = 1_000_000_000
SLOT_POPULATIONS = ("slot_host", "span")
TIP_LEFT_OUT = "the tip of the chain is left out"


@dataclass(frozen=True)
class HostTrace:
    """The decoded data of one host.

    Attributes:
        slots: one row per slot record; None if the host has none.
        block_timelines: one row per block that the host knew.
        links: one row per block that its lines mention.
        local_addresses: its own addresses by its connections, with the number of lines per address.
        lowest_tip: the lowest block number of a tip in its forge loop; -1 is the chain's beginning.
    """

    name: str
    slots: Path | None
    block_timelines: Path
    links: Path
    local_addresses: Mapping[str, int]
    lowest_tip: int | None = None


@dataclass(frozen=True)
class HostResult:
    """The analysis of one host.

    Attributes:
        region: None without a topology.
        slot_records, selected_slots: before and after the conditions on slots.
        first_slot, last_slot: of the selected records; None without any.
        forged, chained, accepted: number of blocks that it forged, over the whole log.
        errors: number of blocks with contradictory lines in its log; they are excluded everywhere.
    """

    name: str
    region: str | None
    slot_records: int
    selected_slots: int
    first_slot: int | None
    last_slot: int | None
    forged: int
    chained: int
    accepted: int
    errors: int


@dataclass(frozen=True)
class AnalysisResult:
    """The result of the analysis, besides the samples that it wrote.

    Attributes:
        conditions: number of filter conditions.
        tip: None when no block is known.
        first_height: of the chain as far back as the logs reach; None without a tip.
        heights_passed: from there to before the tip; chain_blocks plus the heights that no line mentions.
        bridged: number and hash of the chain's blocks whose forger no log names.
        chain_blocks: number of blocks of the main chain without the tip; accepted + rejected.
        rejected_by: per reason the number of blocks rejected for it; a block counts once per reason.
        forged: number of known forged blocks, on any chain.
        battles: number of other blocks at the heights of the main chain's.
        unadopted: number of accepted blocks that no host adopted.
        observations: number of observations of accepted blocks by hosts other than the forger, by class.
        slots_analysed: floor of the mean over hosts of (last selected slot - first selected slot); None without any.
        analysed_duration_s: from the first to the last selected slot of any host; None without any.
        hosts: in the given order.
        contradictions: hosts whose clocks contradict each other.
        written: rows per population.
        received: for a single host, the number of blocks that it knew by outcome.
    """

    conditions: int
    tip: Tip | None
    first_height: int | None
    heights_passed: int
    bridged: list[tuple[int, str]]
    chain_blocks: int
    accepted: int
    rejected: int
    rejected_by: dict[str, int]
    forged: int
    battles: int
    unadopted: list[str]
    observations: dict[str, int]
    slots_analysed: int | None
    analysed_duration_s: int | None
    hosts: list[HostResult]
    contradictions: list[Contradiction]
    written: dict[str, int]
    received: dict[str, int]

    @property
    def coverage(self) -> float | None:
        """The share of the heights passed at which a block is known; None if none was passed."""
        return self.chain_blocks / self.heights_passed if self.heights_passed else None

    @property
    def imbalances(self) -> list[str]:
        """The sums that do not balance; empty unless the analysis has an error."""
        sums = {
            "blocks of the chain": (self.chain_blocks, self.accepted + self.rejected),
            "blocks of the chain by forger": (
                self.chain_blocks,
                sum(host.chained for host in self.hosts) + len(self.bridged),
            ),
        }
        results = [f"{total} {name} in {parts} parts" for name, (total, parts) in sums.items() if total != parts]
        if self.chain_blocks > self.heights_passed:
            results.append(f"{self.chain_blocks} blocks of the chain at {self.heights_passed} heights")
        return results

    @property
    def hosts_without_slots(self) -> list[str]:
        """The hosts without any selected slot; the cluster's metrics exclude them."""
        return [host.name for host in self.hosts if host.selected_slots == 0]


def analyse(
    hosts: Sequence[HostTrace],
    genesis: Genesis,
    conditions: Sequence[FilterCondition],
    rules: Rules,
    regions: Mapping[str, str] | None,
    *,
    recorded: RecordedChain,
    run: UnfinishedRun,
    progress: Progress,
) -> AnalysisResult:
    """Rebuild the chain, apply the conditions, write `events/block_timelines.parquet` and all samples into the run.

    Args:
        hosts: the decoded hosts; the order of their names breaks ties.
        genesis: the chain's constants.
        conditions: all must hold for a block; those on slots also for a slot record.
        rules: the correct ones, or those of the published reports.
        regions: the region of every host; None without a topology.
        recorded: what the hosts' lines record of the chain.
        run: receives the results.
        progress: receives progress messages.
    """
    ordered = sorted(hosts, key=lambda host: host.name)
    progress.stage("rebuilding the chain")
    blocks = Blocks(ordered, genesis, conditions, rules, regions or {}, recorded=recorded)
    run.write_events(TIMELINES, blocks.events(), TIMELINE_EVENTS)
    frames = blocks.samples()
    progress.stage("merging the slots")
    slots = [survey(host.name, host.slots, conditions) for host in ordered if host.slots is not None]
    frames["span"] = span_samples(slots, conditions, genesis, rules)
    work = block_work(slots, conditions, blocks.block_timelines, genesis)
    frames["host"] = frames["host"].join(work, on="host", how="left", maintain_order="left")
    received = None
    if len(ordered) == 1:
        received = received_blocks(blocks.block_timelines, genesis)
        frames[RECEIVED] = received_samples(received)
    for population, frame in frames.items():
        run.write_samples(population, frame)
    path = run.path / "samples" / "slot_host.parquet"
    rows = write_slot_samples(slots, conditions, genesis, rules, path=path, progress=progress)
    domains = [(host.first, host.last) for host in slots if host.first is not None and host.last is not None]
    accepted = int(blocks.table["accepted"].sum())
    adopters = zip(blocks.table["block"], blocks.table["accepted"], blocks.table["adopters"], strict=True)
    return AnalysisResult(
        conditions=len(conditions),
        tip=blocks.chain.tip,
        first_height=blocks.chain.first_height,
        heights_passed=blocks.chain.heights_passed,
        bridged=blocks.bridged(),
        chain_blocks=blocks.table.height,
        accepted=accepted,
        rejected=blocks.table.height - accepted,
        rejected_by=rejections(blocks.table, conditions),
        forged=blocks.forgers.height,
        battles=int(blocks.table["block_battles"].sum()),
        unadopted=[block for block, is_accepted, count in adopters if is_accepted and count == 0],
        observations=blocks.observation_counts(),
        slots_analysed=sum(last - first for first, last in domains) // len(domains) if domains else None,
        analysed_duration_s=_duration_s(domains, genesis),
        hosts=blocks.host_results(slots),
        contradictions=contradictions(blocks.block_timelines, blocks.forgers),
        written={name: frame.height for name, frame in frames.items()} | {"slot_host": rows},
        received=received_counts(received) if received is not None else {},
    )


def _duration_s(domains: Sequence[tuple[int, int]], genesis: Genesis) -> int | None:
    if not domains:
        return None
    return round((max(last for _, last in domains) - min(first for first, _ in domains)) * genesis.slot_length_s)


class RecordedChain:
    """The chain as every host's lines record it; independent of the rules.

    Attributes:
        links: one row per host and block, the hosts in the order of their names.
        known: the positions of the blocks according to these.
    """

    def __init__(self, hosts: Sequence[HostTrace]) -> None:
        self.links = read_links(sorted(hosts, key=lambda host: host.name))
        self.known = KnownBlocks(self.links)


class Blocks:
    """Everything that follows from the hosts' records of the blocks.

    Attributes:
        block_timelines: one row per host and block, with adoptions.
        table: one row per block of the main chain, in its order.
    """

    def __init__(
        self,
        hosts: Sequence[HostTrace],
        genesis: Genesis,
        conditions: Sequence[FilterCondition],
        rules: Rules,
        regions: Mapping[str, str],
        *,
        recorded: RecordedChain,
    ) -> None:
        self.names = [host.name for host in hosts]
        self.regions = regions
        self.genesis = genesis
        self.block_timelines = with_adoptions(read_block_timelines(hosts, genesis, regions), rules)
        self.forgers = forgers_of(self.block_timelines)
        known = recorded.known.keeping(last_adopted(self.block_timelines))
        lowest_tip = min((host.lowest_tip for host in hosts if host.lowest_tip is not None), default=None)
        self.chain: MainChain = main_chain(self.block_timelines, recorded.links, known, lowest_tip)
        observed = observations(self.block_timelines)
        blocks = chain_blocks(
            self.block_timelines, self.forgers, observed, self.chain, known, genesis=genesis, rules=rules
        )
        self.table = admitted(blocks, conditions, genesis, rules).with_columns(
            time_s=pl.col("slot") * genesis.slot_length_s
        )
        self._owners = propagation.peer_hosts({host.name: host.local_addresses for host in hosts})
        self._observed = self._of_the_chain(observed)
        self._roles = self._count_roles()

    def bridged(self) -> list[tuple[int, str]]:
        """Number and hash of the chain's blocks whose forger no log names."""
        blocks = zip(self.table["block_no"], self.table["block"], self.table["host"], strict=True)
        return [(number, block) for number, block, host in blocks if host is None]

    def _of_the_chain(self, observed: pl.DataFrame) -> pl.DataFrame:
        """Every observer's part in the blocks of the chain."""
        chained = self.table.lazy().select("block", "accepted", "time_s", forger_region="region")
        return observed.lazy().join(chained, on="block", how="inner").collect()

    def samples(self) -> dict[str, pl.DataFrame]:
        """The samples of every population of blocks."""
        adoptions, chained = pl.collect_all([self._adoptions(), propagation.chained_samples(self.table.lazy())])
        return {
            **self.samples_of_blocks(),
            "block_region": propagation.block_region_samples(adoptions),
            "chained": chained,
        }

    def samples_of_blocks(self) -> dict[str, pl.DataFrame]:
        """The samples of the accepted blocks, of the observers' parts in them, and of their forgers."""
        peers = propagation.with_links(self._observed, self.regions, self._owners)
        frames = [propagation.block_samples(self.table.lazy()), propagation.block_peer_samples(peers)]
        block, block_peer = pl.collect_all(frames)
        chained, accepted = self._forged_of_the_chain()
        host = propagation.host_samples(self.names, self._roles["forger"], chained, accepted)
        return {"block": block, "block_peer": block_peer, "host": host}

    def _count_roles(self) -> Mapping[str, Counter[str]]:
        """How many blocks each host has each role for."""
        counted = self.block_timelines.lazy().group_by("role", "host").agg(count=pl.len()).collect()
        roles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for role, host, count in counted.iter_rows():
            roles[role][host] = count
        return roles

    def _forged_of_the_chain(self) -> tuple[Counter[str], Counter[str]]:
        """By forger, the blocks of the chain, and those of them that the filters admit."""
        hosts, accepted = self.table["host"].to_list(), self.table["accepted"].to_list()
        admitted = (host for host, is_accepted in zip(hosts, accepted, strict=True) if is_accepted)
        return Counter(hosts), Counter(admitted)

    def _adoptions(self) -> pl.LazyFrame:
        starts = self.table.lazy().filter("accepted").select("block", "time_s", start_ns="slot_start_ns")
        frame = (
            self.block_timelines.lazy().select("block", "region", "adoption_ns").drop_nulls(["region", "adoption_ns"])
        )
        return (
            frame.join(starts, on="block", how="inner")
            .select("block", "region", "time_s", slot_to_adopted_s=seconds("adoption_ns", "start_ns"))
            .sort("time_s", "block", "region", "slot_to_adopted_s")
        )

    def observation_counts(self) -> dict[str, int]:
        """Number of observers of accepted blocks that were usable, and of the others by reason."""
        return observation_classes(self._observed.filter("accepted"))

    def events(self) -> pl.DataFrame:
        """The lifecycle of every block on every host, with the block's outcome."""
        chained = self.table.lazy().select("block", "accepted", "rejected_because", on_chain=pl.lit(value=True))
        tip = self.chain.tip.block if self.chain.tip else None
        reason = (
            pl.when(pl.col("block") == pl.lit(tip, dtype=pl.String))
            .then(pl.lit(TIP_LEFT_OUT))
            .otherwise("rejected_because")
        )
        front = ["block", "block_no", "slot", "slot_start_ns", "host", "region", "role", "error"]
        frame = propagation.with_fetched_host(self.block_timelines.drop("adoption_ns", "chain_delta"), self._owners)
        joined = frame.lazy().join(chained, on="block", how="left")
        return (
            joined.with_columns(
                pl.col("host").cast(pl.String),
                pl.col("on_chain", "accepted").fill_null(value=False),
                rejected_because=reason,
            )
            .select(
                *front,
                "on_chain",
                "accepted",
                "rejected_because",
                pl.exclude(*front, "on_chain", "accepted", "rejected_because"),
            )
            .sort("block_no", "block", "host", nulls_last=True)
            .collect()
        )

    def host_results(self, slots: Sequence[HostSlots]) -> list[HostResult]:
        """The analysis per host."""
        forged, errors = self._roles["forger"], self._roles["error"]
        chained, accepted = self._forged_of_the_chain()
        of_host = {host.name: host for host in slots}
        hosts = []
        for name in self.names:
            of = of_host.get(name)
            hosts.append(
                HostResult(
                    name=name,
                    region=self.regions.get(name),
                    slot_records=of.records if of else 0,
                    selected_slots=of.selected if of else 0,
                    first_slot=of.first if of else None,
                    last_slot=of.last if of else None,
                    forged=forged[name],
                    chained=chained[name],
                    accepted=accepted[name],
                    errors=errors[name],
                )
            )
        return hosts


def read_block_timelines(hosts: Sequence[HostTrace], genesis: Genesis, regions: Mapping[str, str]) -> pl.DataFrame:
    """What every host knew of every block, all hosts concatenated, with their regions and the slots' start times."""
    names = pl.Enum([host.name for host in hosts])
    slot_ns = round(genesis.slot_length_s * NS)
    frames = [
        read_block_table(host.block_timelines, host.name).with_columns(
            pl.lit(host.name, dtype=names).alias("host"),
            pl.lit(regions.get(host.name), dtype=pl.String).alias("region"),
            slot_start_ns=genesis.system_start_ns + pl.col("slot") * slot_ns,
        )
        for host in hosts
    ]
    # One lazy query over all hosts' files would take time by the square of their number.
    return pl.concat(frames, rechunk=True)


def read_links(hosts: Sequence[HostTrace]) -> pl.DataFrame:
    """What every host's lines record of the chain, all hosts concatenated."""
    names = pl.Enum([host.name for host in hosts])
    messages = [
        read_links_table(host.links, host.name).with_columns(host=pl.lit(host.name, dtype=names)) for host in hosts
    ]
    return pl.concat(messages, rechunk=True)


def catalogue_for(catalogue: Catalogue, rules: Rules, hosts: int) -> Catalogue:
    """The catalogue to store with a run made by these rules.

    The published reports compute the mean of a slot metric over hosts from as many of the lowest host means as there
    are standard centiles, which excludes the highest ones of a larger cluster. A host without samples has the mean 0.
    The standard deviation is the largest of the hosts', and a centile is the median of theirs.

    Args:
        hosts: those with selected slots.
    """
    limit = len(STANDARD_CENTILES)
    if not rules.published:
        return catalogue
    rule = {"lowest_means": limit if hosts > limit else None, "silent_keys_are_zero": True, "keys_apart": True}
    populations = [
        population.model_copy(update=rule) if population.id in SLOT_POPULATIONS else population
        for population in catalogue.populations
    ]
    return catalogue.model_copy(update={"populations": populations})
