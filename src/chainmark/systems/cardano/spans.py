"""Spans of slots in which a host's CPU was busy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from chainmark.stats.centiles import BoolArray, IntArray
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition, slot_test
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import HostSlots

BUSY_PERCENT = 85.0
# A span is at an epoch's boundary if it contains this slot of the epoch: by then the boundary's work has begun.
BOUNDARY_SLOT = 3
SCHEMA = {
    "host": pl.String,
    "slot": pl.Int64,
    "time_s": pl.Float64,
    "cpu_span_slots": pl.Float64,
    "cpu_span_epoch_slots": pl.Float64,
}


def span_samples(
    hosts: Sequence[HostSlots], conditions: Sequence[FilterCondition], genesis: Genesis, rules: Rules
) -> pl.DataFrame:
    """One row per span of a host, `slot` being its first one."""
    frames = []
    for host in hosts:
        frame = (
            pl.scan_parquet(host.path)
            .filter(slot_test(conditions))
            .select("slot", "epoch_slot", "cpu_percent", "has_resources", "sampled")
            .collect()
        )
        spans = published_spans(frame) if rules.published else measured_spans(frame, genesis.epoch_slots)
        columns = {name: spans.get_column(name) for name in ("slot", "cpu_span_slots", "cpu_span_epoch_slots")}
        times = spans.get_column("slot").to_numpy() * genesis.slot_length_s
        frames.append(pl.DataFrame({"host": [host.name] * spans.height, "time_s": times, **columns}, SCHEMA))
    return pl.concat(frames or [pl.DataFrame(schema=SCHEMA)]).sort("time_s", "host")


def measured_spans(data_frame: pl.DataFrame, epoch_slots: int) -> pl.DataFrame:
    """Maximal runs of slots in which a busy CPU was measured; the length is the number of slots.

    A slot without a sample neither ends a span nor begins one: the next sample covers the time since the previous one,
    so between two busy ones it counts. A missing slot ends a span, and so does a sample without usage, because it is
    the first of a process. A span is at an epoch's boundary also if it began in the previous epoch.

    Args:
        data_frame: ascending `slot`, `cpu_percent` (null: not measured), `sampled`.
    """
    usage = data_frame.get_column("cpu_percent").to_numpy()
    known = np.isfinite(usage)
    slot = data_frame.get_column("slot").to_numpy()
    broken = data_frame.get_column("sampled").to_numpy() & ~known
    broken[1:] |= np.diff(slot) != 1
    part = np.cumsum(broken)[known]
    begins, ends = _runs(usage[known] >= BUSY_PERCENT, part)
    first, last = slot[known][begins], slot[known][ends]
    # The last slot with that index in an epoch before the span's end.
    boundary = last - 1 - (last - 1 - BOUNDARY_SLOT) % epoch_slots
    return _spans(first, last - first + 1, first < boundary, last - first + 1)


def _runs(busy: BoolArray, part: IntArray) -> tuple[IntArray, IntArray]:
    """The indices of the first and the last of each run of consecutive busy rows in one part."""
    changes = np.flatnonzero((np.diff(busy) != 0) | (np.diff(part) != 0)) + 1
    begins = np.append(0, changes)[: len(busy)]
    ends = np.append(changes, len(busy))[: len(busy)] - 1
    return begins[busy[begins]], ends[busy[begins]]


def _spans(slot: IntArray, length: IntArray, at_boundary: BoolArray, epoch_length: IntArray) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "slot": slot,
            "cpu_span_slots": length,
            "cpu_span_epoch_slots": [
                value if is_at else None
                for value, is_at in zip(epoch_length.tolist(), at_boundary.tolist(), strict=True)
            ],
        },
        schema=dict.fromkeys(("slot", "cpu_span_slots", "cpu_span_epoch_slots"), pl.Int64),
    )


def published_spans(data_frame: pl.DataFrame) -> pl.DataFrame:
    """The spans of the published figures: a span of one slot has length 0, unknown usage is busy, gaps are ignored.

    A host without any has a row without a value: its mean counts as 0.

    Args:
        data_frame: ascending `slot`, `epoch_slot`, `cpu_percent`, `has_resources`.
    """
    slot, epoch_slot = (data_frame.get_column(name).to_numpy() for name in ("slot", "epoch_slot"))
    busy = ~data_frame.get_column("has_resources").to_numpy()
    busy |= data_frame.get_column("cpu_percent").to_numpy() >= BUSY_PERCENT
    begins, ends = _runs(busy, np.zeros(len(busy), dtype=np.int64))
    if len(begins) == 0:
        nothing = pl.lit(None, dtype=pl.Int64)
        return data_frame.head(1).select("slot", cpu_span_slots=nothing, cpu_span_epoch_slots=nothing)
    straddles = (epoch_slot[begins] < BOUNDARY_SLOT) & (epoch_slot[ends] > BOUNDARY_SLOT)
    return _spans(slot[begins], slot[ends] - slot[begins], straddles, ends - begins + 1)
