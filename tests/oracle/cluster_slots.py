"""The activity of a host slot by slot, from its log lines: part of the oracle of the cluster analysis.

Plain and slow, written only from the description of the published analysis: exact integers and fractions, one record
per slot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.oracle.cluster_lines import NS_PER_S, Event, HostLog

TWO_64 = 2**64
MIB = 2**20
LONGEST_JUMP_SLOTS = 1_000_000
PERCENTS = ("CentiCpu", "CentiGC", "CentiMut", "CentiBlkIO")
COLLECTIONS = ("GcsMajor", "GcsMinor")
RATES = {"Alloc": MIB, "NetRd": 1024, "NetWr": 1024, "FsRd": 1024, "FsWr": 1024}
GAUGES = ("RSS", "Heap", "Live")
COUNTERS = (*PERCENTS, *COLLECTIONS, *RATES)
# Values that a slot without a sample lacks by the published rules.
PER_SAMPLE = (*COLLECTIONS, *RATES)
STAGES = {
    "BlockContext": "block_context",
    "LedgerState": "ledger_state",
    "LedgerView": "ledger_view",
    "Leads": "leadership",
    "LeadsNot": "leadership",
    "Ticked": "ticked",
    "MempoolSnapshot": "snapshot",
    "Forged": "forged",
}
Resources = dict[str, float | int | None]


@dataclass(frozen=True)
class Chain:
    """The constants that the genesis states."""

    system_start_ns: int
    slot_ns: int
    epoch_slots: int
    security_parameter: int
    active_slots_coefficient: float
    max_block_body_bytes: int

    def slot_start_ns(self, slot: int) -> int:
        """The start of a slot."""
        return self.system_start_ns + slot * self.slot_ns

    def slot_at(self, at_ns: int) -> int:
        """The slot at a time."""
        return (at_ns - self.system_start_ns) // self.slot_ns

    def epoch(self, slot: int) -> int:
        """The epoch of a slot."""
        return slot // self.epoch_slots

    def epoch_slot(self, slot: int) -> int:
        """The position of a slot in its epoch."""
        return slot % self.epoch_slots

    def safe_interval(self, slot: int) -> int:
        """The index of the slot's interval of k / f slots in its epoch."""
        return math.floor(self.epoch_slot(slot) / self.security_parameter * self.active_slots_coefficient)


@dataclass
class Slot:
    """One slot of one host. ``…_known``: whether a line so far reported the block context, or the mempool."""

    slot: int
    epoch: int = 0
    epoch_slot: int = 0
    safe_interval: int = 0
    starts: int = 0
    leads: int = 0
    forges: int = 0
    block_no: int = 0
    block_gap: int = 0
    mempool: int = 0
    rejected_tx: int = 0
    collected: int = 0
    accepted: int = 0
    rejected: int = 0
    utxo: float | None = None
    density: float | None = None
    times: dict[str, int] = field(default_factory=dict)
    resources: Resources | None = None
    block_known: bool = False
    mempool_known: bool = False

    def deltas_s(self, chain: Chain) -> dict[str, float | None]:
        """The duration of each stage; None if one of its ends is missing."""
        return stage_deltas_s(self.times, chain.slot_start_ns(self.slot))


def seconds(later: int | None, earlier: int | None) -> float | None:
    """The time between two times."""
    return None if later is None or earlier is None else (later - earlier) / NS_PER_S


def stage_deltas_s(times: dict[str, int], slot_start_ns: int) -> dict[str, float | None]:
    """The stages of the forge loop, each measured from the previous one."""
    at = times.get
    leadership = seconds(at("leadership"), at("ledger_view"))
    forged = seconds(at("forged"), at("snapshot"))
    return {
        "started": seconds(at("started"), slot_start_ns),
        "block_context": seconds(at("block_context"), at("started")),
        "ledger_state": seconds(at("ledger_state"), at("block_context")),
        "ledger_view": seconds(at("ledger_view"), at("ledger_state")),
        "leadership": seconds(at("leadership"), at("started")) if leadership is None else leadership,
        "ticked": seconds(at("ticked"), at("leadership")),
        "snapshot": seconds(at("snapshot"), at("ticked")),
        "forged": seconds(at("forged"), at("leadership")) if forged is None else forged,
    }


def single(value: Fraction) -> Fraction:
    """The nearest 32-bit float, ties to even."""
    if value == 0:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 24
    while value / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    while value / Fraction(2) ** exponent < 2**23:
        exponent -= 1
    return round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent


def whole_percent(gained: int, seconds_between: Fraction) -> int:
    """The increase in hundredths of seconds as a percentage of the time, rounded as by the published analysis."""
    if seconds_between <= 0:
        return 0
    hundred_times = single(Fraction(gained * 100 % TWO_64))
    return math.ceil(single(hundred_times / single(single(seconds_between) * 100)))


@dataclass
class PublishedCounters:
    """Counters and gauges by the published rules: integers, carried over to later slots, wrapping at 2^64."""

    at_ns: int = 0
    before: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    now: Resources = field(default_factory=lambda: dict.fromkeys((*COUNTERS, *GAUGES, "Threads"), 0))

    def sample(self, at_ns: int, values: dict[str, int]) -> Resources:
        """Process a sample."""
        between = Fraction(at_ns - self.at_ns, NS_PER_S)
        gained = {key: (values[key] - self.before[key]) % TWO_64 for key in COUNTERS}
        self.now = {key: whole_percent(gained[key], between) for key in PERCENTS}
        self.now |= {key: gained[key] for key in COLLECTIONS}
        self.now |= {key: gained[key] // divisor for key, divisor in RATES.items()}
        self.now |= {key: values[key] // MIB for key in GAUGES} | {"Threads": values["Threads"]}
        self.at_ns, self.before = at_ns, values
        return self.now

    def carried(self) -> Resources:
        """The values of a slot without its own sample."""
        return self.now | dict.fromkeys(PER_SAMPLE, 0)


@dataclass
class ExactCounters:
    """Exact counters and gauges: rates by the time between samples, and no value without a sample."""

    at_ns: int | None = None
    before: dict[str, int] = field(default_factory=dict)
    restarts: int = 0

    def sample(self, at_ns: int, values: dict[str, int]) -> Resources:
        """Process a sample. The first one has no rates; a restarted process counts from zero."""
        between_ns = 0 if self.at_ns is None else at_ns - self.at_ns
        fell = between_ns > 0 and any(values[key] < self.before[key] for key in COUNTERS)
        self.restarts += fell
        usage: Resources = dict.fromkeys(COUNTERS, None)
        if between_ns > 0:
            gained = {key: values[key] - (0 if fell else self.before[key]) for key in COUNTERS}
            usage |= {key: float(Fraction(gained[key] * NS_PER_S, between_ns)) for key in PERCENTS}
            usage |= {key: gained[key] for key in COLLECTIONS}
            usage |= {key: float(Fraction(gained[key] * NS_PER_S, between_ns * by)) for key, by in RATES.items()}
        usage |= {key: values[key] / MIB for key in GAUGES} | {"Threads": values["Threads"]}
        self.at_ns, self.before = at_ns, values
        return usage

    def carried(self) -> Resources | None:
        """A slot without its own sample has no values."""
        return None


@dataclass
class Timeline:
    """The slots of one host, in order, without gaps."""

    chain: Chain
    published: bool
    slots: list[Slot] = field(default_factory=list)
    mempool: int = 0
    block_no: int = 0
    last_block_slot: int = 0
    skipped: int = 0
    known: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.counters: PublishedCounters | ExactCounters = PublishedCounters() if self.published else ExactCounters()

    @property
    def head(self) -> Slot:
        """The newest record."""
        return self.slots[-1]

    def record(self, slot: int) -> Slot | None:
        """The record of a slot; None if there is none."""
        place = slot - self.slots[0].slot
        return self.slots[place] if 0 <= place < len(self.slots) else None

    def extend(self, slot: int) -> None:
        """Add records up to this slot. Unreported values stay unknown, or get the published substitute."""
        if slot - self.head.slot > LONGEST_JUMP_SLOTS:
            return
        last = self.head
        for missing in range(last.slot + 1, slot + 1):
            slot_added = Slot(
                missing,
                self.chain.epoch(missing),
                self.chain.epoch_slot(missing),
                self.chain.safe_interval(missing),
                block_no=self.block_no,
                block_gap=missing - self.last_block_slot,
                mempool=self.mempool,
                block_known=last.block_known,
                mempool_known=last.mempool_known,
                resources=self.counters.carried(),
            )
            if self.published:
                slot_added.utxo, slot_added.density = (last.utxo, last.density) if missing < slot else (0, 0.0)
            self.slots.append(slot_added)

    def take(self, event: Event) -> None:
        """Process one event."""
        if event.at_ns < self.chain.system_start_ns:
            return
        if event.kind == "Resources":
            self.sample(event)
        elif event.kind == "LoopStart":
            self.start(event)
        elif event.kind == "BlockContext":
            self.context(event)
        elif event.kind in STAGES:
            self.stage(event)
        elif not self.is_repeated(event):
            self.of_the_head(event)

    def is_repeated(self, event: Event) -> bool:
        """Whether this exact message was read before. Times are rounded, so two messages may share one."""
        if self.published or event.at_ns % 1_000_000 == 0:
            return False
        message = (event.kind, event.at_ns, event.slot, event.number, tuple(sorted(event.values.items())))
        is_known = message in self.known
        self.known.add(message)
        return is_known

    def sample(self, event: Event) -> None:
        """Process a sample of the counters in the slot in which it was taken."""
        slot = self.chain.slot_at(event.at_ns)
        self.extend(slot)
        values = self.counters.sample(event.at_ns, event.values)
        record = self.record(slot)
        if record is not None:
            before: Resources = record.resources or {}
            record.resources = {name: before.get(name) if value is None else value for name, value in values.items()}

    def start(self, event: Event) -> None:
        """Process the start of a forge loop's round."""
        self.extend(event.slot)
        record = self.record(event.slot)
        if record is None:
            self.skipped += 1
            return
        record.starts += self.counts(record, "started", event)
        record.times["started"] = event.at_ns
        if event.values["utxo"] > 0:
            record.utxo = event.values["utxo"]
        if event.values["density"] > 0:
            record.density = event.values["density"]

    def context(self, event: Event) -> None:
        """Process the chain's tip that the forge loop found."""
        record = self.record(event.slot)
        if record is None:
            self.skipped += 1
            return
        changed = event.number != self.block_no
        record.times["block_context"] = event.at_ns
        record.block_gap = 0 if changed else self.head.block_gap
        self.head.block_no = event.number
        self.head.block_known = record.block_known = True
        self.last_block_slot = self.head.slot if changed else self.last_block_slot
        self.block_no = event.number

    def stage(self, event: Event) -> None:
        """Process another stage of the forge loop; the last one of a slot counts."""
        record = self.record(event.slot)
        if record is None:
            self.skipped += 1
            return
        counts = self.counts(record, STAGES[event.kind], event)
        record.times[STAGES[event.kind]] = event.at_ns
        record.leads += counts and event.kind == "Leads"
        record.forges += counts and event.kind == "Forged"

    def counts(self, record: Slot, stage: str, event: Event) -> bool:
        """Whether a line adds information: the same stage at the same time was written twice."""
        return self.published or record.times.get(stage) != event.at_ns

    def of_the_head(self, event: Event) -> None:
        """Process a message that belongs to the newest record, whatever slot it names."""
        head = self.head
        match event.kind:
            case "MempoolTxs":
                head.mempool = self.mempool = event.number
                head.mempool_known = True
            case "RejectedTx":
                head.rejected_tx += 1
            case "TxsCollected":
                head.collected += event.number
            case "TxsProcessed":
                head.accepted += event.values["accepted"]
                head.rejected += event.values["rejected"]
            case "LedgerMetrics":
                head.utxo, head.density = event.values["utxo"], event.values["density"]


def slots_of(log: HostLog, chain: Chain, *, published: bool) -> list[Slot]:
    """The slot records of one host."""
    if not log.events:
        return []
    timeline = Timeline(chain, published)
    start_ns = max(log.events[0].at_ns, chain.system_start_ns)
    timeline.slots.append(Slot(chain.slot_at(start_ns)))
    if published:
        timeline.head.utxo, timeline.head.density = 0, 0.0
    for event in log.events:
        timeline.take(event)
    return timeline.slots


def plain(value: Any) -> float | None:
    """A value as a sample."""
    return None if value is None else float(value)


SLOT_STAGES = {
    "cdfStarted": "started",
    "cdfBlkCtx": "block_context",
    "cdfLgrState": "ledger_state",
    "cdfLgrView": "ledger_view",
    "cdfLeading": "leadership",
}


def slot_samples(slot: Slot, chain: Chain, *, published: bool) -> dict[str, float | None]:
    """One sample of every slot metric, by the published short names; None: no sample.

    A value that is carried from slot to slot is 0 by the published rules before any line reports it. By the exact rules
    it is unknown.
    """
    deltas = slot.deltas_s(chain)
    block_known = published or slot.block_known
    mempool_known = published or slot.mempool_known
    figures = {name: deltas[stage] for name, stage in SLOT_STAGES.items()}
    figures |= {"cdfStarts": float(slot.starts), "cdfLeads": float(slot.leads)}
    figures["cdfBlockGap"] = float(slot.block_gap) if block_known else None
    figures |= {"cdfDensity": plain(slot.density), "utxo_entries": plain(slot.utxo)}
    figures |= {
        "mempool_transactions": float(slot.mempool) if mempool_known else None,
        "transactions_collected": float(slot.collected),
        "transactions_accepted": float(slot.accepted),
        "transactions_rejected": float(slot.rejected),
        "mempool_rejected_transactions": float(slot.rejected_tx) if mempool_known else None,
    }
    resources: Resources = slot.resources or {}
    figures["block_io_percent"] = plain(resources.get("CentiBlkIO"))
    names = (*(name for name in COUNTERS if name != "CentiBlkIO"), *GAUGES)
    return figures | {name: plain(resources.get(name)) for name in names}
