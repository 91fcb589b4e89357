"""Spans of slots in which a host's processor was busy."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition, slot_test
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import HostSlots

BUSY_PERCENT = 85.0
# A span is at an epoch's boundary if this slot of the epoch lies within it: by then the boundary's work has begun.
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
    frames = [pl.DataFrame(schema=SCHEMA)]
    for host in hosts:
        frame = (
            pl.scan_parquet(host.path)
            .filter(slot_test(conditions))
            .select("slot", "epoch_slot", "cpu_percent", "has_resources", "sampled")
            .collect()
        )
        spans = published_spans(frame) if rules.published else measured_spans(frame, genesis.epoch_slots)
        frames.append(
            spans.select(
                pl.lit(host.name).alias("host"),
                "slot",
                (pl.col("slot") * genesis.slot_length_s).alias("time_s"),
                pl.col("cpu_span_slots").cast(pl.Float64),
                pl.col("cpu_span_epoch_slots").cast(pl.Float64),
            )
        )
    return pl.concat(frames).sort("time_s", "host")


def measured_spans(data_frame: pl.DataFrame, epoch_slots: int) -> pl.DataFrame:
    """Maximal runs of slots in which a busy processor was measured; the length is the number of slots.

    A slot without a sample neither ends a span nor begins one: the next sample tells the time since the one before,
    so between two busy ones it counts. A missing slot ends a span, and so does a sample that tells no usage, because it
    is the first of a process. A span is at an epoch's boundary also if it began in the epoch before.

    Args:
        data_frame: ascending `slot`, `cpu_percent` (null: not measured), `sampled`.
    """
    broken = (pl.col("slot").diff() != 1) | (pl.col("sampled") & pl.col("cpu_percent").is_null())
    measured = data_frame.with_columns(part=broken.fill_null(value=False).cum_sum()).filter(
        pl.col("cpu_percent").is_not_null()
    )
    busy = pl.col("cpu_percent") >= BUSY_PERCENT
    spans = (
        measured.with_columns(run=pl.struct("part", busy=busy).rle_id())
        .filter(busy)
        .group_by("run", maintain_order=True)
        .agg(slot=pl.col("slot").first(), last=pl.col("slot").last())
    )
    # The last slot with that place in an epoch before the span's end.
    boundary = pl.col("last") - 1 - (pl.col("last") - 1 - BOUNDARY_SLOT) % epoch_slots
    return spans.with_columns(cpu_span_slots=pl.col("last") - pl.col("slot") + 1).with_columns(
        cpu_span_epoch_slots=pl.when(pl.col("slot") < boundary).then("cpu_span_slots")
    )


def published_spans(data_frame: pl.DataFrame) -> pl.DataFrame:
    """The spans of the published figures: a span of one slot has length 0, unknown usage is busy, gaps go unnoticed.

    A host without any has a row without a value: its mean counts as 0.

    Args:
        data_frame: ascending `slot`, `epoch_slot`, `cpu_percent`, `has_resources`.
    """
    busy = ~pl.col("has_resources") | (pl.col("cpu_percent") >= BUSY_PERCENT)
    spans = (
        data_frame.with_columns(busy=busy, run=busy.rle_id())
        .filter("busy")
        .group_by("run", maintain_order=True)
        .agg(
            slot=pl.col("slot").first(),
            last=pl.col("slot").last(),
            straddles=(pl.col("epoch_slot").first() < BOUNDARY_SLOT) & (pl.col("epoch_slot").last() > BOUNDARY_SLOT),
            records=pl.len(),
        )
        .select(
            "slot",
            cpu_span_slots=pl.col("last") - pl.col("slot"),
            cpu_span_epoch_slots=pl.when("straddles").then("records"),
        )
    )
    if spans.is_empty():
        nothing = pl.lit(None, dtype=pl.Int64)
        return data_frame.head(1).select("slot", cpu_span_slots=nothing, cpu_span_epoch_slots=nothing)
    return spans
