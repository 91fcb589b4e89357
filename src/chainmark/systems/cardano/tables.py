"""The schemas of the tables that the decoder (crates/chainmark-trace) writes."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.store.schema import Schema, check_schema
from chainmark.trails.trail import trails_of

PHASES = ("started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot")
STAGES = ("forged", "noticed", "requested", "fetched", "announced", "sent", "adopted", "switched")
BLOCK_TIMELINES: Schema = {
    "block": pl.String,
    "block_no": pl.Int64,
    "slot": pl.Int64,
    "role": pl.String,
    "error": pl.String,
    "parent": pl.String,
    "size_bytes": pl.Int64,
    "request_length": pl.Int64,
    "adopted_delta": pl.Int64,
    "switched_delta": pl.Int64,
    **{f"{stage}_ns": pl.Int64 for stage in (*PHASES, *STAGES)},
    # As in the line of the fetch; and when the block was first requested from the peer that sent it.
    "fetched_bytes": pl.Int64,
    "answered_request_ns": pl.Int64,
    "fetched_from": pl.String,
    "noticed_from": pl.String,
    **{f"{stage}_{part}": kind for stage in STAGES for part, kind in (("file", pl.Int32), ("line", pl.Int64))},
}
# The chain as a host's lines record it; the lower `parent_evidence`, the more reliable the parent.
LINKS: Schema = {
    "block": pl.String,
    "block_no": pl.Int64,
    "slot": pl.Int64,
    "parent": pl.String,
    "parent_evidence": pl.Int32,
    "size_bytes": pl.Int64,
}
COUNTS = ("starts", "block_contexts", "leads", "forges", "ledger_snapshots", "rejected_transactions", "checks")
FLOWS = ("transactions_collected", "transactions_accepted", "transactions_rejected")
FIGURES = (
    "cpu_percent", "gc_percent", "mutator_percent", "major_gcs", "minor_gcs", "rss_mib", "heap_mib", "live_mib",
    "alloc_mib", "net_read_kib", "net_write_kib", "file_read_kib", "file_write_kib", "block_io_percent", "threads",
)  # fmt: skip
SLOTS: Schema = {
    "slot": pl.Int64,
    "epoch": pl.Int64,
    "epoch_slot": pl.Int64,
    "safe_interval": pl.Int64,
    **dict.fromkeys(COUNTS, pl.Int64),
    **{f"{phase}_s": pl.Float64 for phase in (*PHASES, "forged")},
    "block_no": pl.Int64,
    "block_gap_slots": pl.Int64,
    "mempool_transactions": pl.Int64,
    "mempool_reported": pl.Boolean,
    **dict.fromkeys(FLOWS, pl.Int64),
    "utxo_entries": pl.Float64,
    "density": pl.Float64,
    "has_resources": pl.Boolean,
    "sampled": pl.Boolean,
    **dict.fromkeys(FIGURES, pl.Float64),
    "is_gap": pl.Boolean,
}
TIMELINES = "block_timelines"
# The hosts' records, with the block's outcome, and the host that sent its body: null if the address is not of a host of
# the cluster, or of several.
TIMELINE_EVENTS: Schema = {
    **BLOCK_TIMELINES,
    "fetched_host": pl.String,
    "slot_start_ns": pl.Int64,
    "host": pl.String,
    "region": pl.String,
    "on_chain": pl.Boolean,
    "accepted": pl.Boolean,
    "rejected_because": pl.String,
}


def timelines_name(catalogue: Catalogue) -> str:
    """The name of a run's events with the timelines of its blocks, which were "lives" in early runs."""
    return next((trail.events for trail in trails_of(catalogue)), "lives")


def read_block_table(path: Path, host: str) -> pl.DataFrame:
    """The blocks that a host knew.

    Raises:
        InternalError: the decoder writes other columns than expected here.
    """
    table = pl.read_parquet(path)
    check_schema(f"blocks that {host} knew", table.schema, BLOCK_TIMELINES)
    return table


def read_links_table(path: Path, host: str) -> pl.DataFrame:
    """The chain as a host's lines record it.

    Raises:
        InternalError: the decoder writes other columns than expected here.
    """
    table = pl.read_parquet(path)
    check_schema(f"links of the chain by {host}", table.schema, LINKS)
    return table


def check_slots_table(path: Path, host: str) -> None:
    """Check the columns of a host's slot records, which are read in batches.

    Raises:
        InternalError: the decoder writes other columns.
    """
    check_schema(f"slot records of {host}", pl.read_parquet_schema(path), SLOTS)
