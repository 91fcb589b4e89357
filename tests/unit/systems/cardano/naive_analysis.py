"""The published analysis in plain loops over plain rows: the reference for the fast implementation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition
from chainmark.systems.cardano.rules import Rules

Row = dict[str, Any]
Times = dict[str, float | None]
FRACTIONS = {"p50": 0.5, "p80": 0.8, "p90": 0.9, "p92": 0.92, "p94": 0.94, "p96": 0.96, "p98": 0.98, "p100": 1.0}


def _apart(later: int | None, earlier: int | None) -> float | None:
    return None if later is None or earlier is None else (later - earlier) / 1_000_000_000


@dataclass
class NaiveBlock:
    """One block of the main chain."""

    block: str
    forger: str | None
    times: Times
    reasons: list[str] = field(default_factory=list)
    battles: int = 0
    adopters: int = 0
    observations: dict[str, Times] = field(default_factory=dict)  # the valid observations by host

    @property
    def accepted(self) -> bool:
        """Whether no condition rejects it."""
        return not self.reasons


class NaiveAnalysis:
    """The chain and its blocks.

    Args:
        hosts: the rows of each host, in the order of the hosts' names.
    """

    def __init__(
        self, hosts: Mapping[str, Sequence[Row]], genesis: Genesis, conditions: Sequence[FilterCondition], rules: Rules
    ) -> None:
        self.genesis, self.conditions, self.rules = genesis, conditions, rules
        self.hosts = {host: {row["block"]: row for row in hosts[host]} for host in sorted(hosts)}
        self.tip: tuple[str, str] | None = None
        self.first_height: int | None = None
        self.heights_passed = 0
        self.numbers: dict[str, int] = {}
        self.slots: dict[str, int] = {}
        for rows in self.hosts.values():
            for block, row in rows.items():
                if row.get("slot") is not None:
                    self.numbers.setdefault(block, row["block_no"])
                    self.slots.setdefault(block, row["slot"])
        self.numbers = {block: number for block, number in self.numbers.items() if number <= self.slots[block]}
        self.blocks = [self._block(block, number) for block, number in self._chain()]

    def _forger(self, block: str) -> tuple[str, Row] | None:
        for host, rows in self.hosts.items():
            if block in rows and rows[block]["role"] == "forger":
                return host, rows[block]
        return None

    def _chain(self) -> list[tuple[str, int]]:
        entries = [
            (-self.numbers[block], row["role"] != "forger", host, block)
            for host, rows in self.hosts.items()
            for block, row in rows.items()
            if row["role"] != "error" and block in self.numbers
        ]
        if not entries:
            return []
        above, _, host, block = min(entries)
        number = -above
        self.tip = (block, host)
        self.first_height = min(self.numbers.values())
        self.heights_passed = number - self.first_height
        chain: list[tuple[str, int]] = []
        while number > 0:
            forger = self._forger(block)
            parent = forger[1]["parent"] if forger else None
            if parent == "GenesisHash":
                break
            if parent is not None and self.numbers.get(parent, number - 1) == number - 1:
                block, number = parent, number - 1
            else:
                lower = [(-low, -self._witnesses(block), block) for block, low in self.numbers.items() if low < number]
                if not lower:
                    break
                below, _, block = min(lower)
                number = -below
            if number >= self.first_height:
                chain.append((block, number))
        return chain[::-1]

    def _witnesses(self, block: str) -> int:
        return sum(block in rows for rows in self.hosts.values())

    def _adopted(self, row: Row) -> tuple[int | None, int]:
        at, delta = row.get("adopted_ns"), row.get("adopted_delta") or 0
        switched = row.get("switched_ns")
        if self.rules.switches_count and switched is not None and (at is None or switched < at):
            at, delta = switched, row.get("switched_delta") or 0
        return at, delta

    def _block(self, block: str, number: int) -> NaiveBlock:
        bridged: Row = {"slot": self.slots.get(block), "block_no": number}
        host, row = self._forger(block) or (None, bridged)
        start = self.genesis.system_start_ns + (row["slot"] or 0) * round(self.genesis.slot_length_s * 1e9)
        forging = self._forge_times(row, start)
        naive = NaiveBlock(block, host, forging if host else dict.fromkeys(forging))
        everyone: list[Times] = []
        seen_adoptions, adoptions = 0, []
        for name, rows in self.hosts.items():
            other = rows.get(block)
            if other is None or other["role"] == "error":
                continue
            at, delta = self._adopted(other)
            if at is not None:
                adoptions.append((at - start) / 1_000_000_000)
            if other["role"] != "observer" or any(
                other.get(f"{s}_ns") is None for s in ("noticed", "requested", "fetched")
            ):
                continue
            times = self._peer_times(other, at, start)
            everyone.append(times)
            seen_adoptions += at is not None
            critical = [times[name] for name in ("notice", "request", "fetch", "adopted")]
            delta = max(delta, other.get("request_length") or 0)
            if delta == 1 and all(time is not None and time >= 0 for time in critical):
                naive.observations[name] = times
        adoptions.sort()
        n = naive.adopters = len(adoptions)
        for centile, fraction in FRACTIONS.items():
            naive.times[centile] = adoptions[min(n - 1, math.floor(n * fraction))] if n else None
        valid = list(naive.observations.values())
        naive.times["first_notice"] = min((t["notice"] for t in valid if t["notice"] is not None), default=None)
        naive.times["first_fetch"] = min((t["had"] for t in valid if t["had"] is not None), default=None)
        naive.battles = self._battles(block, row["block_no"])
        naive.reasons = self._reasons(row, naive, everyone, seen_adoptions)
        return naive

    def _battles(self, block: str, number: int) -> int:
        known = set()
        for rows in self.hosts.values():
            known |= {name for name, row in rows.items() if row["role"] != "error" and row["block_no"] == number}
        return len(known - {block})

    def _forge_times(self, row: Row, start: int) -> Times:
        def at(stage: str) -> int | None:
            time_ns: int | None = row.get(f"{stage}_ns")
            return time_ns

        def first(*times: float | None) -> float | None:
            return next((time for time in times if time is not None), None)

        times = {
            "started": _apart(at("started"), start),
            "block_context": _apart(at("block_context"), at("started")),
            "ledger_state": _apart(at("ledger_state"), at("block_context")),
            "ledger_view": _apart(at("ledger_view"), at("ledger_state")),
            "leadership": first(_apart(at("leadership"), at("ledger_view")), _apart(at("leadership"), at("started"))),
            "ticked": _apart(at("ticked"), at("leadership")),
            "snapshot": _apart(at("snapshot"), at("ticked")),
            "forged": first(_apart(at("forged"), at("snapshot")), _apart(at("forged"), at("leadership"))),
            "announced": _apart(at("announced"), at("forged")),
            "sending": _apart(at("sent"), at("forged")),
            "self_adopted": _apart(self._adopted(row)[0], at("forged")),
            "slot_to_announced": _apart(at("announced"), start),
        }
        if self.rules.published:
            for name in ("announced", "sending", "self_adopted", "slot_to_announced"):
                times[name] = 0.01 if times[name] is None else times[name]
        return times

    def _peer_times(self, row: Row, adopted: int | None, start: int) -> Times:
        return {
            "notice": _apart(row["noticed_ns"], start),
            "request": _apart(row["requested_ns"], row["noticed_ns"]),
            "fetch": _apart(row["fetched_ns"], row["requested_ns"]),
            "announced": _apart(row.get("announced_ns"), row["fetched_ns"]),
            "sending": _apart(row.get("sent_ns"), row["fetched_ns"]),
            "adopted": _apart(adopted, row["fetched_ns"]),
            "had": _apart(row["fetched_ns"], start),
        }

    def _reasons(self, row: Row, block: NaiveBlock, everyone: list[Times], seen_adoptions: int) -> list[str]:
        lacking = [name for name in ("size_bytes", "started_ns", "leadership_ns") if row.get(name) is None]
        reasons = ["incomplete forging data"] if lacking and block.forger else []
        if block.forger is None and (row["slot"] is None or not (block.adopters or everyone)):
            reasons.append("no host tells when it came")
        sizes = [condition for condition in self.conditions if condition.name.startswith(("BFullness", "BSize"))]
        if block.forger is None and sizes:
            reasons.append("its size is in no log")
        forge = [block.times[name] for name in (
            "started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot", "forged",
            "announced", "sending", "self_adopted", "slot_to_announced",
        )]  # fmt: skip
        times_known = [time for time in forge if time is not None]
        times_known += [
            time for times in everyone for name, time in times.items() if name != "had" and time is not None
        ]
        for condition in self.conditions:
            if self._meets(condition, row, times_known, seen_adoptions) is False:
                reasons.append(str(condition))
        return reasons

    def _meets(
        self, condition: FilterCondition, row: Row, adoption_times: list[float], seen_adoptions: int
    ) -> bool | None:
        name, value = condition.name, condition.value or 0
        if name.startswith(("BFullness", "BSize")):
            return self._size_meets(name, value, row.get("size_bytes"))
        if name == "BUnitaryChainDelta":
            return self._adopted(row)[1] == 1 if "role" in row else None
        if name == "BMinimumAdoptions":
            return seen_adoptions >= value
        if name == "BNonNegatives":
            return not any((time >= 0) == self.rules.published for time in adoption_times)
        if name == "SlotHasLeaders":
            return True
        return self._slot_meets(name, value, row["slot"])

    def _slot_meets(self, name: str, value: float, slot: int | None) -> bool | None:
        if slot is None:
            return None
        genesis = self.genesis
        place = slot % genesis.epoch_slots
        actual = {
            "Slot": slot,
            "Epoch": slot // genesis.epoch_slots,
            "EpochSafeInt": math.floor(place / genesis.security_parameter * genesis.active_slots_coefficient),
            "EpSlot": place,
        }[name[:-3]]
        return bool(actual >= value if name.endswith("GEq") else actual <= value)

    def _size_meets(self, name: str, value: float, size: int | None) -> bool | None:
        if size is None:
            return None
        largest = math.floor(self.genesis.max_block_body_bytes * float(value))
        return {
            "BFullnessGEq": size > largest,
            "BFullnessLEq": size < largest,
            "BSizeGEq": size >= value,
            "BSizeLEq": size <= value,
        }[name]


# --- spans ---------------------------------------------------------------------------------------------------------

Span = tuple[int, float, float | None]


def published_spans(rows: Sequence[Row]) -> list[Span]:
    """First slot, length and length at an epoch's boundary, by the published rule."""
    runs: list[list[Row]] = [[]]
    for row in rows:
        if not row["has_resources"] or (row["cpu_percent"] or 0.0) >= 85.0:
            runs[-1].append(row)
        elif runs[-1]:
            runs.append([])
    spans: list[Span] = []
    for run in runs:
        if run:
            straddles = run[0]["epoch_slot"] < 3 < run[-1]["epoch_slot"]
            spans.append((run[0]["slot"], run[-1]["slot"] - run[0]["slot"], len(run) if straddles else None))
    return spans


def measured_spans(rows: Sequence[Row], epoch_slots: int) -> list[Span]:
    """The spans by the corrected rule: slot by slot, with what is known so far about the open span."""
    spans: list[Span] = []
    open_from: int | None = None
    last_busy, before = -1, None

    def close() -> None:
        nonlocal open_from
        if open_from is not None:
            length = last_busy - open_from + 1
            inside = any(slot % epoch_slots == 3 for slot in range(open_from + 1, last_busy))
            spans.append((open_from, length, length if inside else None))
        open_from = None

    for row in rows:
        if before is not None and row["slot"] != before + 1:
            close()
        before = row["slot"]
        usage = row["cpu_percent"]
        if usage is None:
            if row["sampled"]:
                close()
        elif usage < 85.0:
            close()
        else:
            open_from = row["slot"] if open_from is None else open_from
            last_busy = row["slot"]
    close()
    return spans
