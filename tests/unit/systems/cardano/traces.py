"""Invented hosts in the decoder's output format: frames with its exact columns, and Parquet files of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from chainmark.systems.cardano.analyse import HostTrace
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.tables import BLOCK_TIMELINES, COUNTS, FIGURES, FLOWS, LINKS, PHASES, SLOTS

START_NS = 1_770_000_000_000_000_000
MS = 1_000_000
NS = 1_000_000_000
DELTAS = (*PHASES, "forged")
GENESIS = Genesis(
    system_start_ns=START_NS,
    slot_length_s=1.0,
    epoch_slots=100,
    security_parameter=2,
    active_slots_coefficient=0.2,
    max_block_body_bytes=90112,
    network_magic=42,
)
Row = dict[str, Any]


def slot_ns(slot: int) -> int:
    """The start of a slot."""
    return START_NS + slot * NS


def key(number: int, branch: str = "a") -> str:
    """A hash: 64 characters."""
    return f"{branch}{number:x}".rjust(64, "0")


def forger(number: int, slot: int, *, parent: str | None = None, branch: str = "a", **changed: Any) -> Row:
    """The forger's row of a block: each step 1 ms after the previous one, adopted after 50 ms."""
    at = slot_ns(slot)
    row: Row = {
        "block": key(number, branch),
        "block_no": number,
        "slot": slot,
        "role": "forger",
        "parent": parent or (key(number - 1) if number else "GenesisHash"),
        "size_bytes": 88_000,
        "adopted_delta": 1,
        **{f"{phase}_ns": at + (place + 1) * MS for place, phase in enumerate(PHASES)},
        "forged_ns": at + 8 * MS,
        "announced_ns": at + 9 * MS,
        "sent_ns": at + 10 * MS,
        "adopted_ns": at + 50 * MS,
    }
    return row | changed


def observer(number: int, slot: int, *, branch: str = "a", late_ms: int = 0, **changed: Any) -> Row:
    """An observer's row of a block: noticed after 20 ms, fetched after 60, adopted after 100."""
    at = slot_ns(slot) + late_ms * MS
    row: Row = {
        "block": key(number, branch),
        "block_no": number,
        "slot": slot,
        "role": "observer",
        "request_length": 1,
        "adopted_delta": 1,
        "noticed_ns": at + 20 * MS,
        "requested_ns": at + 30 * MS,
        "fetched_ns": at + 60 * MS,
        "announced_ns": at + 61 * MS,
        "sent_ns": at + 70 * MS,
        "adopted_ns": at + 100 * MS,
    }
    return row | changed


def timelines_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Rows in the decoder's format."""
    filled = [{name: row.get(name) for name in BLOCK_TIMELINES} for row in rows]
    return pl.DataFrame(filled, schema=dict(BLOCK_TIMELINES)).sort("block_no", "block", nulls_last=True)


def links_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """The decoder's links for a host with these rows, except those that only its forge loop reports."""
    links = [
        {
            "block": row["block"],
            "block_no": row.get("block_no"),
            "slot": row.get("slot"),
            "parent": row.get("parent"),
            "parent_evidence": 0 if row.get("parent") else None,
        }
        for row in rows
    ]
    return pl.DataFrame(links, schema=dict(LINKS)).sort("block")


def slot_row(slot: int, **changed: Any) -> Row:
    """The slot record of a healthy host with a sample in every slot."""
    place = slot % GENESIS.epoch_slots
    row: Row = dict.fromkeys((*COUNTS, *FLOWS), 0)
    row |= {f"{delta}_s": 0.001 * (number + 1) for number, delta in enumerate(DELTAS[:5])}
    row |= {name: 1.0 + number for number, name in enumerate(FIGURES)}
    row |= {
        "slot": slot,
        "epoch": slot // GENESIS.epoch_slots,
        "epoch_slot": place,
        "safe_interval": int(place / GENESIS.security_parameter * GENESIS.active_slots_coefficient),
        "starts": 1,
        "block_contexts": 1,
        "checks": 1,
        "block_no": slot // 5,
        "block_gap_slots": slot % 5,
        "mempool_transactions": 7,
        "mempool_reported": True,
        "utxo_entries": 100.0,
        "density": 0.2,
        "has_resources": True,
        "sampled": True,
        "is_gap": False,
    }
    return row | changed


def slots_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Rows in the decoder's format."""
    return pl.DataFrame([{name: row.get(name) for name in SLOTS} for row in rows], schema=dict(SLOTS)).sort("slot")


def write_host(
    folder: Path,
    name: str,
    timelines: Iterable[Row],
    slots: Iterable[Row] | None = None,
    addresses: Sequence[str] = (),
) -> HostTrace:
    """Write a decoded host to disk."""
    folder.mkdir(exist_ok=True)
    timelines_path, slots_path = folder / f"{name}.timelines.parquet", folder / f"{name}.slots.parquet"
    links_path, timelines = folder / f"{name}.links.parquet", list(timelines)
    timelines_frame(timelines).write_parquet(timelines_path)
    links_frame(timelines).write_parquet(links_path)
    if slots is not None:
        slots_frame(slots).write_parquet(slots_path, row_group_size=8192)
    addresses_count = dict.fromkeys(addresses, 1)
    return HostTrace(
        name, slots_path if slots is not None else None, timelines_path, links_path, local_addresses=addresses_count
    )


# --- clusters with many faults ---------------------------------------------------------------------------------------


def troubled_cluster(seed: int) -> dict[str, list[Row]]:
    """Rows of each host: forks, lost forgers, errors, switches, missing or negative times, several blocks at once."""
    rng = random.Random(seed)
    hosts = sorted(f"node-{number}" for number in range(rng.randint(1, 6)))
    rows_by_host: dict[str, list[Row]] = {host: [] for host in hosts}
    slot = rng.randint(0, 3)
    for number in range(rng.randint(0, 12)):
        branches = ["a", *(["b"] if rng.random() < 0.3 else [])]
        for branch in branches:
            _tell(rng, rows_by_host, number, slot, branch)
        slot += rng.randint(1, 40)
    return rows_by_host


def _tell(rng: random.Random, rows_by_host: dict[str, list[Row]], number: int, slot: int, branch: str) -> None:
    maker = rng.choice([*rows_by_host, None] if rng.random() < 0.1 else list(rows_by_host))
    for host, rows in rows_by_host.items():
        if rng.random() < 0.08:
            continue
        if host == maker:
            parent = key(number - 1, "b") if number and rng.random() < 0.08 else None
            row = forger(number, slot, branch=branch, parent=parent, size_bytes=rng.choice([2_000, 8_000, 88_000]))
        else:
            row = observer(number, slot, branch=branch, late_ms=rng.randint(0, 900))
        rows.append(_disturbed(rng, row))


def _disturbed(rng: random.Random, row: Row) -> Row:
    if rng.random() < 0.03:
        return {"block": row["block"], "role": "error", "error": "made up", "adopted_ns": row["adopted_ns"]}
    optional = [name for name in row if name.endswith("_ns") and name != "forged_ns"]
    for name in optional:
        if rng.random() < 0.04:
            row[name] = None
        elif rng.random() < 0.2:
            row[name] += rng.randint(-120, 120) * MS + rng.randint(0, 999_999)
    if row["adopted_ns"] is None:
        row["adopted_delta"] = None
    elif rng.random() < 0.05:
        row["adopted_delta"] = 2
    if rng.random() < 0.15:
        row |= {"switched_ns": slot_ns(row["slot"]) + rng.randint(0, 400) * MS, "switched_delta": rng.choice([1, 1, 2])}
    if row["role"] == "observer" and rng.random() < 0.1:
        row["request_length"] = rng.choice([None, 2, 3])
    if row["role"] == "forger" and rng.random() < 0.05:
        row["size_bytes"] = None
    return row


def troubled_slots(seed: int) -> list[Row]:
    """Slot records of a host with gaps, slots without samples, samples without usage, busy and quiet periods."""
    rng = random.Random(seed)
    first = rng.randint(0, 150)
    rows, busy = [], rng.random() < 0.5
    for slot in range(first, first + rng.randint(0, 260)):
        if rng.random() < 0.1:
            busy = not busy
        sampled = rng.random() < 0.9
        usage = rng.choice([85.0, 90.0, 99.5]) if busy else rng.choice([1.0, 84.9, 50.0])
        known = sampled and rng.random() < 0.97
        rows.append(
            slot_row(
                slot,
                sampled=sampled,
                cpu_percent=usage if known else None,
                has_resources=slot > first + 2,
                leads=int(rng.random() < 0.2),
                **({"epoch": 0, "epoch_slot": 0, "safe_interval": 0} if slot == first else {}),
            )
        )
    return rows
