"""The results that an analysis must find in generated logs, from the generator's truth: no line is read here.

The truth records when everything happened, and the times that a perfect reader of the lines would find. From it, this
module builds the records that the oracle builds from lines, and applies the metrics' definitions to them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from tests.oracle.cluster_analysis import Key, add, read_chain
from tests.oracle.cluster_blocks import (
    LOOP_STAGES,
    SLOT_CONDITIONS,
    Life,
    MainChain,
    block_samples,
    conditions_of,
    host_samples,
    peer_samples,
    rebuild,
)
from tests.oracle.cluster_lines import NS_PER_S
from tests.oracle.cluster_slots import MIB, SLOT_STAGES, Chain, Slot, slot_samples

OBSERVED = ("noticed", "requested", "fetched", "announced", "sent")
LOOP = ("started", "block_context", "ledger_state", "ledger_view", "leadership")
# The process's counters: the truth's column, and the divisor of its value.
RATES = {
    "CentiCpu": ("cpu_centiseconds", 1),
    "CentiGC": ("gc_centiseconds", 1),
    "CentiMut": ("mutator_centiseconds", 1),
    "Alloc": ("allocated_bytes", MIB),
    "FsWr": ("file_written_bytes", 1024),
}
COLLECTIONS = {"GcsMajor": "major_collections", "GcsMinor": "minor_collections"}
GAUGES = {"RSS": "rss_bytes", "Heap": "heap_bytes", "Live": "live_bytes"}
Row = dict[str, Any]


class Truth:
    """The truth of one generated cluster, under the exact rules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        frame = pl.read_parquet(folder / "truth.parquet")
        self.blocks = frame.filter(pl.col("record") == "block").rows(named=True)
        self.slots = frame.filter(pl.col("record") == "slot").rows(named=True)
        self.faults = frame.filter(pl.col("record") == "fault").rows(named=True)
        self.written_twice = {row["host"] for row in self.faults if row["fault"] == "duplicated"}
        self.hosts = sorted(path.name for path in folder.glob("node-*") if path.is_dir())
        self.chain: Chain = read_chain(folder)
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.conditions = conditions_of(meta)

    def timelines(self) -> dict[str, dict[str, Life]]:
        """The reported timeline of each block, by host and hash."""
        by_host: dict[str, dict[str, Life]] = {host: {} for host in self.hosts}
        for row in self.blocks:
            timeline = _timeline(row)
            if timeline is not None:
                by_host[row["host"]][row["block"]] = timeline
        return by_host

    def main(self) -> MainChain:
        """The main chain, as far as the lines report it."""
        return rebuild(self.timelines(), self.chain, self.conditions)

    def samples(self) -> dict[str, dict[Key, float | None]]:
        """The samples that the lines support, by metric (published short name) and key."""
        by_metric: dict[str, dict[Key, float | None]] = {}
        main = self.main()
        for block in main.accepted():
            add(by_metric, (block.hash,), block_samples(block, published=False))
            for host, values in peer_samples(block).items():
                add(by_metric, (block.hash, host), values)
        for host in self.hosts:
            add(by_metric, (host,), host_samples(host, main))
        tests = [(SLOT_CONDITIONS[name], value or 0) for name, value in self.conditions if name in SLOT_CONDITIONS]
        unstarted = {(row["slot"], row["host"]) for row in self.slots if not row["loop_starts"]}
        for row in self.slots:
            slot = self._slot(row)
            if all(test(slot, value) for test, value in tests):
                values = self._slot_values(slot)
                # Without a start line, the ledger's values in the next slot are attributed to this slot.
                if (slot.slot + 1, row["host"]) in unstarted:
                    values = {name: x for name, x in values.items() if name not in ("cdfDensity", "utxo_entries")}
                add(by_metric, (slot.slot, row["host"]), values)
        for (number, host), values in self.resources().items():
            place = self._place(number)
            if all(test(place, value) for test, value in tests):
                add(by_metric, (number, host), values)
        return by_metric

    def _slot_values(self, slot: Slot) -> dict[str, float | None]:
        """The values of the forge loop and the ledger that a slot's lines report.

        If the line of the loop's start is lost, the reader does not know the slot of the other lines. Then the only
        expected value is that no start is counted.
        """
        if not slot.starts:
            return {"cdfStarts": 0.0}
        values = slot_samples(slot, self.chain, published=False)
        return {name: values[name] for name in (*SLOT_STAGES, "cdfStarts", "cdfDensity", "utxo_entries")}

    def _place(self, number: int) -> Slot:
        chain = self.chain
        return Slot(number, chain.epoch(number), chain.epoch_slot(number), chain.safe_interval(number))

    def _starts(self, row: Row) -> int:
        """The rounds that begin in a slot. The truth counts lines: lines that were written twice count once."""
        starts = row["loop_starts"] or 0
        return min(1, starts) if row["host"] in self.written_twice else starts

    def _slot(self, row: Row) -> Slot:
        stages = {stage: row[f"{stage}_printed_ns"] for stage in LOOP}
        return replace(
            self._place(row["slot"]),
            starts=self._starts(row),
            density=row["density"],
            utxo=row["utxo_entries"],
            times={stage: at_ns for stage, at_ns in stages.items() if at_ns is not None},
        )

    def resources(self) -> dict[Key, dict[str, float | None]]:
        """Rates and gauges of every sample, by host and by the slot at the host's clock."""
        by_host: dict[str, list[Row]] = defaultdict(list)
        for row in self.slots:
            if row["resources_printed_ns"] is not None:
                by_host[row["host"]].append(row)
        by_key: dict[Key, dict[str, float | None]] = {}
        for host, rows in by_host.items():
            before: Row | None = None
            for row in sorted(rows, key=lambda row: int(row["resources_printed_ns"])):
                by_key[self.chain.slot_at(row["resources_printed_ns"]), host] = _resources(before, row)
                before = row
        return by_key


def _resources(before: Row | None, row: Row) -> dict[str, float | None]:
    usage: dict[str, float | None] = {name: row[column] / MIB for name, column in GAUGES.items()}
    between_ns = 0 if before is None else row["resources_printed_ns"] - before["resources_printed_ns"]
    for name, (column, by) in RATES.items():
        fell = before is None or row[column] < before[column]
        gained = None if before is None or fell else row[column] - before[column]
        usage[name] = None if gained is None else float(Fraction(gained * NS_PER_S, between_ns * by))
    if before is None or any(row[column] < before[column] for column, _ in RATES.values()):
        return usage | dict.fromkeys((*RATES, *COLLECTIONS), None)
    return usage | {name: float(row[column] - before[column]) for name, column in COLLECTIONS.items()}


def _timeline(row: Row) -> Life | None:
    """The reported timeline of one block on one host; None without a line."""
    stages = {stage: row[f"{stage}_printed_ns"] for stage in (*OBSERVED, "forged", "adopted", "self_adopted")}
    role = row["role"]
    # A forger also receives its own block's header.
    passed = ("noticed",) if role == "forger" else ()
    stages = {stage: at_ns for stage, at_ns in stages.items() if at_ns is not None and stage not in passed}
    if not stages:
        return None
    first = stages.get("forged" if role == "forger" else "noticed")
    if first is None or min(stages.values()) < first:
        size = row["block_bytes"] if "self_adopted" in stages else None
        return Life("error", error="the block was not known", size=size)
    adoption = min((stages[stage] for stage in ("adopted", "self_adopted") if stage in stages), default=None)
    times = {stage: stages[stage] for stage in (*OBSERVED, "forged") if stage in stages}
    if adoption is not None:
        times["adoption"] = adoption
    if role == "forger":
        own = {stage: row[f"{stage}_printed_ns"] for stage in LOOP_STAGES}
        times |= {stage: at_ns for stage, at_ns in own.items() if at_ns is not None}
    fetched_bytes = row["fetch_length"] or 0 if "requested" in stages else 0
    return Life(
        role,
        row["block_no"],
        row["slot"],
        row["parent"] or "GenesisHash",
        size=row["block_bytes"] if "self_adopted" in stages else None,
        chain_delta=max(fetched_bytes, 1 if adoption is not None else 0),
        times=times,
    )
