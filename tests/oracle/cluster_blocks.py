"""The timeline of every block on every host, and the main chain: part of the oracle of the cluster analysis.

Plain and slow, written only from the description of the published analysis.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.cluster_lines import SWITCHED, HostLog
from tests.oracle.cluster_slots import STAGES, Chain, Slot, seconds, stage_deltas_s

GENESIS = "GenesisHash"
SUBSTITUTE_S = 0.01
CENTILES_OF_HOSTS = ("0.50", "0.80", "0.90", "0.92", "0.94", "0.96", "0.98", "1.00")
LOOP_STAGES = ("started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot")
FILTER_SETS: dict[str, list[tuple[str, float | None]]] = {
    "unitary": [("BUnitaryChainDelta", None)],
    "epoch3+": [("EpochGEq", 2)],
    "epoch4+": [("EpochGEq", 3)],
    "epoch5+": [("EpochGEq", 4)],
    "fromslot-20k": [("SlotGEq", 20000)],
    "no-ebnd": [("EpSlotGEq", 200)],
    "rewards": [("EpochSafeIntGEq", 4), ("EpochSafeIntLEq", 7)],
    "adopt-10": [("BMinimumAdoptions", 10)],
    "size-full": [("BFullnessGEq", 0.9)],
    "size-small": [("BFullnessGEq", 0.03), ("BFullnessLEq", 0.1)],
    "size-moderate": [("BFullnessGEq", 0.08), ("BFullnessLEq", 0.112)],
    "size-moderate-2": [("BFullnessGEq", 0.076), ("BFullnessLEq", 0.105)],
    "model": [("SlotLEq", 56000), ("BMinimumAdoptions", 50), ("BUnitaryChainDelta", None)],
}


@dataclass
class Life:
    """The events of one block on one host. ``error``: its lines contradict each other."""

    role: str
    block_no: int = 0
    slot: int = 0
    parent: str = ""
    size: int | None = None
    chain_delta: int = 0
    error: str = ""
    times: dict[str, int] = field(default_factory=dict)

    def observation(self) -> bool:
        """Whether the host received the block and reports it completely."""
        return self.role == "observer" and {"noticed", "requested", "fetched"} <= self.times.keys()


@dataclass
class Timelines:
    """The blocks that one host knew, by hash, in file order of its lines."""

    published: bool
    count_switches: bool
    by_hash: dict[str, Life] = field(default_factory=dict)
    switched: dict[str, int] = field(default_factory=dict)
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    of_slot: dict[tuple[str, int], int] = field(default_factory=dict)

    def read(self, log: HostLog) -> dict[str, Life]:
        """Process all events that the host reported."""
        for event in log.events:
            if event.kind == "LoopStart":
                self.loop_stage("started", event.slot, event.at_ns)
            elif event.kind in STAGES and event.kind not in ("LeadsNot", "Forged"):
                self.loop_stage(STAGES[event.kind], event.slot, event.at_ns)
            elif event.kind == "Header":
                if event.block not in self.by_hash:
                    timeline = Life("observer", event.number, event.slot, times={"noticed": event.at_ns})
                    self.by_hash[event.block] = timeline
            elif event.kind == "Forged":
                self.forged(event)
            elif event.kind == SWITCHED and event.block not in self.by_hash:
                continue
            elif event.kind in ("Request", "Fetched", "Added", "SelfAdopted", "Announce", "Send", SWITCHED):
                self.of_known(event)
        return self.by_hash

    def loop_stage(self, stage: str, slot: int, at_ns: int) -> None:
        """Store the forge loop's stages; a forged block includes them."""
        self.seen[stage] = (slot, at_ns)
        self.of_slot[stage, slot] = at_ns

    def forged(self, event: Any) -> None:
        """Start the record of a forged block."""
        known = self.by_hash.get(event.block)
        if known is not None:
            same = (known.role, known.block_no, known.slot, known.parent) == (
                *("forger", event.number, event.slot),
                event.values["parent"],
            )
            if not same:
                self.fail(known, "forged a known block")
            return
        if self.published:
            times = {stage: at_ns for stage, (_, at_ns) in self.seen.items()}
        else:
            times = {
                stage: self.of_slot[stage, event.slot] for stage in LOOP_STAGES if (stage, event.slot) in self.of_slot
            }
        times["forged"] = event.at_ns
        self.by_hash[event.block] = Life("forger", event.number, event.slot, event.values["parent"], times=times)

    @staticmethod
    def fail(timeline: Life, why: str) -> None:
        """Mark the block as erroneous: its later events are ignored."""
        if timeline.role != "error":
            timeline.role, timeline.error = "error", why

    def of_known(self, event: Any) -> None:
        """An event that is valid only for a block that the host knows; the first of each kind counts."""
        timeline = self.by_hash.setdefault(event.block, Life("unknown"))
        if timeline.role == "unknown":
            self.fail(timeline, f"{event.kind} of an unknown block")
        if timeline.role == "error":
            if event.kind == "SelfAdopted" and timeline.size is None:
                timeline.size = event.values.get("size")  # the only line that contains it
            return
        stage = {"Request": "requested", "Fetched": "fetched", "Announce": "announced", "Send": "sent"}.get(event.kind)
        if stage is None:
            self.adopted(timeline, event)
        elif event.kind == "Request" and timeline.role == "forger":
            self.fail(timeline, "request of a forged block")
        elif stage not in timeline.times and not (event.kind == "Fetched" and timeline.role == "forger"):
            timeline.times[stage] = event.at_ns
            if event.kind == "Request":
                timeline.chain_delta = max(timeline.chain_delta, event.number)

    def adopted(self, timeline: Life, event: Any) -> None:
        """An adoption, reported by any of the possible lines."""
        if event.kind == SWITCHED:
            timeline.times.setdefault("switched", event.at_ns)
            if not self.count_switches:
                return
        if "adoption" not in timeline.times:
            timeline.times["adoption"] = event.at_ns
            before = 0 if timeline.role == "forger" else timeline.chain_delta
            timeline.chain_delta = max(before, event.number)
        if event.kind != SWITCHED:
            timeline.times.setdefault("adopted", event.at_ns)
        if timeline.role == "forger" and timeline.size is None:
            timeline.size = event.values.get("size")


@dataclass
class Block:
    """A block of the main chain with everything that the cluster reported about it."""

    hash: str
    forger: str
    timeline: Life
    chain: Chain
    timelines: dict[str, Life]
    battles: int
    rejected_by: list[str] = field(default_factory=list)

    @property
    def slot_start_ns(self) -> int:
        """The start of its slot."""
        return self.chain.slot_start_ns(self.timeline.slot)

    @property
    def size(self) -> int:
        """Its size in bytes; 0 if no host reports it."""
        return self.timeline.size or 0

    def adopters(self) -> int:
        """The number of hosts that received it, report it completely, and adopted it."""
        return sum("adoption" in timeline.times for timeline in self.observations().values())

    def observations(self) -> dict[str, Life]:
        """The hosts that received it and report it completely."""
        return {host: timeline for host, timeline in self.timelines.items() if timeline.observation()}

    def stages_s(self, timeline: Life) -> dict[str, float | None]:
        """The stages on a host that received it."""
        at = timeline.times.get
        return {
            "noticed": seconds(at("noticed"), self.slot_start_ns),
            "requested": seconds(at("requested"), at("noticed")),
            "fetched": seconds(at("fetched"), at("requested")),
            "announced": seconds(at("announced"), at("fetched")),
            "sent": seconds(at("sent"), at("fetched")),
            "adopted": seconds(at("adoption"), at("fetched")),
        }

    def valid(self) -> dict[str, Life]:
        """Observations of this block only, without negative durations."""
        life_by_host = {}
        for host, timeline in self.observations().items():
            stages = self.stages_s(timeline)
            critical = [stages[name] for name in ("noticed", "requested", "fetched", "adopted")]
            if timeline.chain_delta == 1 and all(value is not None and value >= 0 for value in critical):
                life_by_host[host] = timeline
        return life_by_host

    def adoptions_s(self) -> list[float]:
        """The time from the slot's start to each host's adoption, ascending; the forger is included."""
        start_ns = self.slot_start_ns
        return sorted(
            (timeline.times["adoption"] - start_ns) / 1e9
            for timeline in self.timelines.values()
            if "adoption" in timeline.times
        )

    def forging_s(self) -> dict[str, float | None]:
        """The stages on the forger, without the substitutes of the published analysis."""
        at = self.timeline.times.get
        return stage_deltas_s(self.timeline.times, self.slot_start_ns) | {
            "announced": seconds(at("announced"), at("forged")),
            "announced_since_slot": seconds(at("announced"), self.slot_start_ns),
            "sent": seconds(at("sent"), at("forged")),
            "adopted": seconds(at("adoption"), at("forged")),
        }

    def complete(self) -> bool:
        """Whether the forger reports the values that every block requires."""
        stages = self.forging_s()
        return None not in (self.timeline.size, stages["started"], stages["leadership"], stages["forged"])


def candidates(hosts: dict[str, dict[str, Life]]) -> Iterator[str]:
    """Blocks that could be the chain's tip, best first."""
    parents: list[tuple[int, bool, int, str]] = []
    for place, timelines in enumerate(hosts.values()):
        for block, timeline in timelines.items():
            if timeline.role != "error":
                parents.append((-timeline.block_no, timeline.role != "forger", place, block))
    return (block for *_, block in sorted(parents))


def main_chain(hosts: dict[str, dict[str, Life]]) -> list[tuple[str, int]]:
    """(block, number) from the last but one block down to the first.

    If no line reports a block's forging, its parent is the block at the next lower height that most hosts know.
    """
    known: dict[str, list[Life]] = {}
    for timelines in hosts.values():
        for block, timeline in timelines.items():
            known.setdefault(block, []).append(timeline)
    numbers = {
        block: timeline.block_no
        for block, timelines in known.items()
        for timeline in timelines
        if timeline.role != "error"
    }
    parents = {
        block: timeline.parent
        for block, timelines in known.items()
        for timeline in timelines
        if timeline.role == "forger"
    }
    block = next(candidates(hosts), GENESIS)
    number, blocks = numbers.get(block, 0), []
    while number > 0 and parents.get(block) != GENESIS:
        below = [
            (-height, -len(known[block_hash]), block_hash) for block_hash, height in numbers.items() if height < number
        ]
        if block in parents:
            block, number = parents[block], number - 1
        elif below:
            height, _, block = min(below)
            number = -height
        else:
            break
        blocks.append((block, number))
    return blocks


def conditions_of(meta: dict[str, Any]) -> list[tuple[str, float | None]]:
    """The filter conditions in a benchmark run's description."""
    analysis = meta["meta"]["profile_content"]["analysis"]
    conditions = [condition for name in analysis.get("filters", []) for condition in FILTER_SETS[name]]
    for expression in analysis.get("filter_exprs", []):
        content = json.loads(expression) if isinstance(expression, str) else expression
        conditions.append((content["contents"]["tag"], content["contents"].get("contents")))
    return conditions


SLOT_CONDITIONS: dict[str, Callable[[Slot, float], bool]] = {
    "SlotGEq": lambda slot, value: slot.slot >= value,
    "SlotLEq": lambda slot, value: slot.slot <= value,
    "EpochGEq": lambda slot, value: slot.epoch >= value,
    "EpochLEq": lambda slot, value: slot.epoch <= value,
    "EpochSafeIntGEq": lambda slot, value: slot.safe_interval >= value,
    "EpochSafeIntLEq": lambda slot, value: slot.safe_interval <= value,
    "EpSlotGEq": lambda slot, value: slot.epoch_slot >= value,
    "EpSlotLEq": lambda slot, value: slot.epoch_slot <= value,
    "SlotHasLeaders": lambda slot, _: slot.leads > 0,
}


BLOCK_CONDITIONS: dict[str, Callable[[Block, float], bool]] = {
    "BUnitaryChainDelta": lambda block, _: block.timeline.chain_delta == 1,
    "BFullnessGEq": lambda block, value: block.size > math.floor(block.chain.max_block_body_bytes * value),
    "BFullnessLEq": lambda block, value: block.size < math.floor(block.chain.max_block_body_bytes * value),
    "BSizeGEq": lambda block, value: block.size >= value,
    "BSizeLEq": lambda block, value: block.size <= value,
    "BMinimumAdoptions": lambda block, value: block.adopters() >= value,
    "SlotHasLeaders": lambda _, __: True,
}


def block_passes(block: Block, name: str, value: float | None) -> bool:
    """Whether a block of the chain meets a condition; slot conditions are tested on its slot."""
    if name in BLOCK_CONDITIONS:
        return BLOCK_CONDITIONS[name](block, value or 0)
    slot, chain = block.timeline.slot, block.chain
    of_slot = Slot(slot, chain.epoch(slot), chain.epoch_slot(slot), chain.safe_interval(slot))
    return SLOT_CONDITIONS[name](of_slot, value or 0)


@dataclass
class MainChain:
    """The main chain, first block last, and the forged blocks; the forger is "" if no line reports it."""

    blocks: list[Block]
    forged: Counter[str]

    def accepted(self) -> list[Block]:
        """The blocks that the filters admit."""
        return [block for block in self.blocks if not block.rejected_by]


def bridged(number: int, forged: list[Life]) -> Life:
    """The known values of a block whose forging no line reports."""
    slot = next((timeline.slot for timeline in forged if timeline.role != "error"), 0)
    size = next((timeline.size for timeline in forged if timeline.size is not None), None)
    return Life("bridged", number, slot, size=size)


def rebuild(hosts: dict[str, dict[str, Life]], chain: Chain, conditions: list[tuple[str, float | None]]) -> MainChain:
    """The main chain with the filters applied."""
    heights: dict[int, set[str]] = {}
    for timelines in hosts.values():
        for hash_, timeline in timelines.items():
            if timeline.role != "error":
                heights.setdefault(timeline.block_no, set()).add(hash_)
    blocks = []
    for hash_, number in main_chain(hosts):
        life_by_host = {host: timelines[hash_] for host, timelines in hosts.items() if hash_ in timelines}
        known = {host: timeline for host, timeline in life_by_host.items() if timeline.role != "error"}
        forger = next((host for host, timeline in known.items() if timeline.role == "forger"), "")
        own = known[forger] if forger else bridged(number, list(life_by_host.values()))
        block = Block(hash_, forger, own, chain, known, len(heights.get(number, set()) - {hash_}))
        block.rejected_by = [name for name, value in conditions if not block_passes(block, name, value)]
        if forger and not block.complete():
            block.rejected_by.append("incomplete forging data")
        if not forger and not (block.observations() or block.adoptions_s()):
            block.rejected_by.append("no host tells when it came")
        blocks.append(block)
    forged = Counter(
        {host: sum(timeline.role == "forger" for timeline in timelines.values()) for host, timelines in hosts.items()}
    )
    return MainChain(blocks, forged)


FORGING = {
    "cdfForgerStart": "started",
    "cdfForgerBlkCtx": "block_context",
    "cdfForgerLgrState": "ledger_state",
    "cdfForgerLgrView": "ledger_view",
    "cdfForgerLead": "leadership",
    "cdfForgerTicked": "ticked",
    "cdfForgerMemSnap": "snapshot",
    "cdfForgerForge": "forged",
    "cdfForgerAnnounce": "announced",
    "cdfForgerSend": "sent",
    "cdfForgerAdoption": "adopted",
    "cdfForgerAnnounceCum": "announced_since_slot",
}
SUBSTITUTED = ("cdfForgerAnnounce", "cdfForgerSend", "cdfForgerAdoption", "cdfForgerAnnounceCum")
PEER = {
    "cdfPeerRequest": "requested",
    "cdfPeerFetch": "fetched",
    "cdfPeerAnnounce": "announced",
    "cdfPeerSend": "sent",
    "cdfPeerAdoption": "adopted",
}


def block_samples(block: Block, *, published: bool) -> dict[str, float | None]:
    """One sample of every block metric, by the published short names; None: no sample."""
    stages = block.forging_s()
    figures = {name: stages[stage] for name, stage in FORGING.items()}
    if published and block.forger:
        figures |= {name: SUBSTITUTE_S for name in SUBSTITUTED if figures[name] is None}
    valid = list(block.valid().values())
    start_ns = block.slot_start_ns
    figures["cdfPeerNoticeFirst"] = min((timeline.times["noticed"] - start_ns for timeline in valid), default=None)
    figures["cdfPeerFetchFirst"] = min((timeline.times["fetched"] - start_ns for timeline in valid), default=None)
    for name in ("cdfPeerNoticeFirst", "cdfPeerFetchFirst"):
        value = figures[name]
        figures[name] = None if value is None else value / 1e9
    adoptions = block.adoptions_s()
    for centile in CENTILES_OF_HOSTS:
        place = min(len(adoptions) - 1, math.floor(len(adoptions) * float(centile)))
        figures[f"cdf{centile}"] = adoptions[place] if adoptions else None
    size = block.timeline.size
    return figures | {"cdfBlockBattle": float(block.battles), "cdfBlockSize": None if size is None else float(size)}


def peer_samples(block: Block) -> dict[str, dict[str, float | None]]:
    """One sample of every peer metric per valid receiver of a block."""
    by_host = {}
    for host, timeline in block.valid().items():
        stages = block.stages_s(timeline)
        adoption_s = seconds(timeline.times.get("adoption"), block.slot_start_ns)
        by_host[host] = {name: stages[stage] for name, stage in PEER.items()}
        by_host[host] |= {"peer_notice_s": stages["noticed"], "slot_to_adopted_s": adoption_s}
    return by_host


def host_samples(host: str, chain: MainChain) -> dict[str, float | None]:
    """One sample of every metric of a host as a forger."""
    chained = sum(block.forger == host for block in chain.blocks)
    accepted = sum(block.forger == host for block in chain.accepted())
    forged = chain.forged[host]
    return {
        "cdfBlocksPerHost": float(forged),
        "cdfBlocksFilteredRatio": accepted / chained if chained else None,
        "cdfBlocksChainedRatio": chained / forged if forged else None,
    }
