"""The lifecycle of every transaction of a run: its record, its block, and its outcome, in one row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import InvalidRunError
from chainmark.core.manifest import Manifest
from chainmark.store.sealed import SealedRun
from chainmark.systems.cometbft.analyse import NS
from chainmark.systems.cometbft.answers import ACCEPTED, REJECTED, UNSENT
from chainmark.systems.cometbft.ingest import PENDING_OR_LOST, TRANSACTION_SCHEMA
from chainmark.trails.trail import Trail, trails_of

EVENTS, POPULATION = "transactions", "transaction"
COMMITTED = "committed"
_KEYS = ["connection", "sequence"]


def trails(run: SealedRun, catalogue: Catalogue) -> list[Trail]:
    """How the transactions of a run are followed: by its own catalogue, or by the current one for an older run."""
    return (trails_of(run.catalogue) or trails_of(catalogue)) if _are_recorded(run) else []


def transaction_lifecycles(run: SealedRun, trail: Trail) -> pl.LazyFrame | None:
    """One row per transaction: the columns that the catalogue's trail names; None if the run has none."""
    if not _are_recorded(run):
        return None
    transactions = run.scan_events(trail.events)
    blocks = run.scan_events("blocks") if _has(run, "blocks") else None
    in_blocks = _with_failed(run, transactions)
    has_blocks = blocks is not None and blocks.select(pl.len()).collect().item() > 0
    if blocks is not None:
        in_blocks = _with_blocks(in_blocks, blocks)
    outcome = _outcome(run.manifest, has_blocks=has_blocks)
    # Unsent transactions have no bytes.
    digest = pl.when(~pl.col("answer").is_in(UNSENT)).then(pl.col("hash").bin.encode("hex").str.to_uppercase())
    rows = in_blocks.with_columns(digest.alias("hash"), outcome=outcome)
    return _in_window(run, rows)


def _are_recorded(run: SealedRun) -> bool:
    """Whether the run has the load generator's records; runs of published tables have rows of another kind."""
    if not _has(run, EVENTS):
        return False
    try:
        return set(TRANSACTION_SCHEMA) <= set(run.scan_events(EVENTS).collect_schema().names())
    except InvalidRunError:
        return True  # a request for one of them reports the damage


def _has(run: SealedRun, events: str) -> bool:
    return run.keeps(f"events/{events}.parquet")


def _with_failed(run: SealedRun, transactions: pl.LazyFrame) -> pl.LazyFrame:
    """With the block of those that failed in one, which the record does not assign to them."""
    committed = pl.col("height").is_not_null()
    if not _has(run, "failed"):
        return transactions.with_columns(committed=committed, failure=pl.lit(None, dtype=pl.String))
    reason = pl.concat_str(
        pl.format("code {}", "code"),
        pl.when(pl.col("codespace") != "").then(pl.format(" of {}", "codespace")),
        pl.when(pl.col("log") != "").then(pl.format(": {}", "log")),
        ignore_nulls=True,
    )
    failed = run.scan_events("failed").select(
        "hash", failed_height="height", failed_index="index_in_block", failure=reason
    )
    return (
        transactions.with_columns(committed=committed)
        .join(failed, on="hash", how="left", maintain_order="left")
        .with_columns(
            height=pl.coalesce("height", "failed_height"), index_in_block=pl.coalesce("index_in_block", "failed_index")
        )
    )


def _with_blocks(transactions: pl.LazyFrame, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """With the facts about a transaction's block, and about those that it missed."""
    ours = transactions.drop_nulls("height").group_by("height").agg(block_ours=pl.len())
    known = blocks.sort("height").select(
        "height",
        "observed_ns",
        "proposer",
        header_ns="time_ns",
        round="round",
        block_transactions="transactions",
        block_size_bytes="size_bytes",
        since_block_before_s=(pl.col("observed_ns").diff() / NS).round(6),
    )
    joined = transactions.join(known, on="height", how="left", maintain_order="left")
    joined = joined.join(ours, on="height", how="left", maintain_order="left")
    seen = blocks.drop_nulls("observed_ns").sort("observed_ns").select(sent_ns="observed_ns", last_height="height")
    before = (
        joined.select(*_KEYS, "sent_ns")
        .drop_nulls("sent_ns")
        .sort("sent_ns")
        .join_asof(seen, on="sent_ns", strategy="backward")
        .select(*_KEYS, "last_height")
    )
    return joined.join(before, on=_KEYS, how="left", maintain_order="left").with_columns(
        position=pl.format("{} of {}", pl.col("index_in_block") + 1, "block_transactions"),
        header_s=((pl.col("header_ns") - pl.col("due_ns")) / NS).round(6),
        blocks_waited=pl.when(pl.col("observed_ns").is_not_null()).then(pl.col("height") - pl.col("last_height")),
    )


def _outcome(manifest: Manifest, *, has_blocks: bool) -> pl.Expr:
    """A transaction's outcome, in the terms of the run's counts."""
    answer, code = pl.col("answer"), pl.col("check_code")
    refusal = pl.when(code > 0).then(pl.format("rejected: {} {}", answer, code)).otherwise(
        pl.format("rejected: {}", answer))  # fmt: skip
    return (
        pl.when((pl.col("committed") | pl.col("failure").is_not_null()) & answer.is_in(REJECTED))
        .then(pl.format("{}, but in a block", refusal))
        .when("committed")
        .then(pl.lit(COMMITTED))
        .when(pl.col("failure").is_not_null())
        .then(pl.lit("failed in a block"))
        .when(answer.is_in(REJECTED))
        .then(refusal)
        .when(answer.is_in(UNSENT))
        .then(pl.lit("not sent"))
        .when(answer.is_in(ACCEPTED))
        .then(pl.lit(_open_end(manifest.counts.get("transactions", {})) if has_blocks else "accepted, no blocks known"))
        .otherwise(pl.format("no response ({})", answer))
    )


def _open_end(counts: Mapping[str, int]) -> str:
    """The outcome of accepted transactions in no block: the run's counts only have their total."""
    if not counts.get(PENDING_OR_LOST):
        if not counts.get("pending"):
            return "lost"
        if not counts.get("lost"):
            return "pending"
    return PENDING_OR_LOST


def _in_window(run: SealedRun, rows: pl.LazyFrame) -> pl.LazyFrame:
    """With whether a transaction is in the analysed window, and whether it counts: if it is also committed."""
    if not run.keeps(f"samples/{POPULATION}.parquet"):
        return rows.with_columns(in_window=pl.lit(value=True), counts="committed")
    window = run.scan_samples(POPULATION).select(*_KEYS, in_window=pl.lit(value=True))
    return rows.join(window, on=_KEYS, how="left", maintain_order="left").with_columns(
        pl.col("in_window").fill_null(value=False), counts=pl.col("committed") & pl.col("in_window").is_not_null()
    )
