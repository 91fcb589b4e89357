"""Combine what every host recorded of every block into the blocks of the main chain and their propagation.

The block timelines have one row per host and block that it knew, as the decoder leaves them, with `host` (an Enum in
the hosts' order) and `slot_start_ns`. Times are ns since 1970-01-01 UTC, deltas are seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.figures import ADOPTION, FRACTIONS
from chainmark.systems.cardano.filters import FilterCondition, asks_for_size, block_test, with_slot_places
from chainmark.systems.cardano.main_chain import KnownBlocks, MainChain
from chainmark.systems.cardano.rules import Rules

NS = 1_000_000_000
INCOMPLETE = "incomplete forging data"
# Reasons for rejecting a block whose forger no log names.
UNREPORTED = "no host tells when it came"
SIZELESS = "its size is in no log"
# What the published figures use if the forger reported nothing.
SUBSTITUTE_S = 0.01
SUBSTITUTED = ("forge_announced_s", "slot_to_announced_s", "forge_sending_s", "forge_self_adopted_s")
FORGE_TIMINGS = (
    "forge_started_s",
    "forge_block_context_s",
    "forge_ledger_state_s",
    "forge_ledger_view_s",
    "forge_leadership_s",
    "forge_ticked_s",
    "forge_snapshot_s",
    "forge_forged_s",
    *SUBSTITUTED,
)
# An observation is unusable if one of these four is missing or negative.
CRITICAL = ("peer_notice_s", "peer_request_s", "peer_fetch_s", "peer_adopted_s")
PEER_TIMINGS = (*CRITICAL, "peer_announced_s", "peer_sending_s")
# The needed columns of the observers' rows, which are many and wide.
OBSERVED = (
    *("block", "host", "region", "role", "fetched_from", "slot_start_ns", "adoption_ns", "chain_delta"),
    *(f"{stage}_ns" for stage in ("noticed", "requested", "fetched", "announced", "sent")),
)


def seconds(later: str | pl.Expr, earlier: str | pl.Expr) -> pl.Expr:
    """The seconds between two times in ns, as the double nearest to the exact quotient."""
    return (_column(later) - _column(earlier)).map_batches(_in_seconds, return_dtype=pl.Float64)


def with_seconds(frame: pl.DataFrame, **spans: tuple[str | pl.Expr, str | pl.Expr]) -> pl.DataFrame:
    """Add the seconds between many pairs of times, the later one first, as `seconds` gives each.

    One query, because each Python call from within a query waits for the interpreter.
    """
    differences = frame.select(**{name: _column(later) - _column(earlier) for name, (later, earlier) in spans.items()})
    return frame.hstack([_in_seconds(difference) for difference in differences])


def _column(of: str | pl.Expr) -> pl.Expr:
    return pl.col(of) if isinstance(of, str) else of


def _in_seconds(nanoseconds: pl.Series) -> pl.Series:
    # Polars multiplies by the reciprocal instead, which is off by the last bit in two cases of five.
    return pl.Series(nanoseconds.name, nanoseconds.cast(pl.Float64).to_numpy() / NS, nan_to_null=True)


def with_adoptions(data_frame: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Add when each host adopted each block (`adoption_ns`) and by how many blocks its chain then grew.

    A block's `chain_delta` is that growth; on an observer it is at least the length of the request that fetched it.
    """
    known = pl.col("role") != "error"
    switched = pl.lit(value=False)
    if rules.switches_count:
        # Of two simultaneous adoptions the ordinary one counts.
        switched = pl.col("switched_ns").is_not_null() & (pl.col("switched_ns") < pl.col("adopted_ns")).fill_null(
            value=True
        )
    grown = pl.when(switched).then("switched_delta").otherwise("adopted_delta").fill_null(0)
    requested = pl.when(pl.col("role") == "observer").then("request_length").fill_null(0)
    return data_frame.with_columns(
        adoption_ns=pl.when(known).then(pl.when(switched).then("switched_ns").otherwise("adopted_ns")),
        chain_delta=pl.when(known).then(pl.max_horizontal(grown, requested)),
    )


# --- the blocks of the main chain ----------------------------------------------------------------------------------


def forgers_of(data_frame: pl.DataFrame) -> pl.DataFrame:
    """The forger's row of every block with a known forger; of several the first host's."""
    return (
        data_frame.lazy()
        .filter(pl.col("role") == "forger")
        .sort("host", "block")
        .unique("block", keep="first", maintain_order=True)
        .collect()
    )


def chain_blocks(
    data_frame: pl.DataFrame,
    forgers: pl.DataFrame,
    observed: pl.DataFrame,
    chain: MainChain,
    known: KnownBlocks,
    *,
    genesis: Genesis,
    rules: Rules,
) -> pl.DataFrame:
    """One row per block of the chain in order: what its forger did, who adopted it when, and competing blocks.

    A block whose forger no log names has neither host nor forging, but all that other hosts report about it.

    Args:
        data_frame: with adoptions.
        forgers: as `forgers_of` leaves them.
        observed: as `observations` leaves them.
    """
    order = _order(chain, known, genesis)
    blocks = with_forge_timings(_with_forgers(order, forgers.lazy()).collect(), rules)
    places = blocks.lazy().select("place", "block", "block_no")
    frame = (
        blocks.lazy()
        .join(_battles(data_frame, places), on="place", how="left", maintain_order="left")
        .join(_observed(observed, places), on="place", how="left", maintain_order="left")
        .with_columns(
            pl.col("observations", "adopted_observations", "observed_negatives", "observed_non_negatives").fill_null(0)
        )
    )
    blocks = with_slot_places(_with_adoption(data_frame, frame.collect()), genesis)
    forged = [pl.col(name) for name in FORGE_TIMINGS]
    return blocks.with_columns(
        negatives=pl.sum_horizontal(*(timing < 0 for timing in forged)) + pl.col("observed_negatives"),
        non_negatives=pl.sum_horizontal(*(timing >= 0 for timing in forged)) + pl.col("observed_non_negatives"),
    )


def _order(chain: MainChain, known: KnownBlocks, genesis: Genesis) -> pl.LazyFrame:
    """The chain's blocks with the facts that do not depend on the forger."""
    columns = {"block": chain.blocks, "block_no": chain.heights}
    order = pl.LazyFrame(columns, schema={"block": pl.String, "block_no": pl.Int64}).with_row_index("place")
    frame = known.table.lazy().select("block", "slot", "size_bytes")
    slot_ns = round(genesis.slot_length_s * NS)
    return order.join(frame, on="block", how="left", maintain_order="left").with_columns(
        slot_start_ns=genesis.system_start_ns + pl.col("slot") * slot_ns
    )


def _with_forgers(order: pl.LazyFrame, forgers: pl.LazyFrame) -> pl.LazyFrame:
    """Add the forgers' rows; the forger's record of its block takes precedence over others'."""
    shared = ("block_no", "slot", "size_bytes", "slot_start_ns")
    blocks = order.join(forgers, on="block", how="left", maintain_order="left", suffix="_forger")
    unknown = pl.col("host").is_null()
    own = {name: pl.when(unknown).then(name).otherwise(f"{name}_forger") for name in shared}
    return blocks.with_columns(**own).drop(f"{name}_forger" for name in shared)


def _battles(data_frame: pl.DataFrame, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Per position in the chain the number of other blocks at its height (`block_battles`)."""
    heights = data_frame.lazy().filter(pl.col("role") != "error").select("block_no", beside="block").unique()
    competing = blocks.join(heights, on="block_no", how="left")
    return competing.group_by("place").agg(block_battles=(pl.col("beside") != pl.col("block")).sum().cast(pl.Int64))


def with_forge_timings(blocks: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Add the forger's steps, each relative to the previous one, and the total from slot start to announcement."""
    timed = with_seconds(
        blocks,
        forge_started_s=("started_ns", "slot_start_ns"),
        forge_block_context_s=("block_context_ns", "started_ns"),
        forge_ledger_state_s=("ledger_state_ns", "block_context_ns"),
        forge_ledger_view_s=("ledger_view_ns", "ledger_state_ns"),
        forge_leadership_s=("leadership_ns", pl.coalesce("ledger_view_ns", "started_ns")),
        forge_ticked_s=("ticked_ns", "leadership_ns"),
        forge_snapshot_s=("snapshot_ns", "ticked_ns"),
        forge_forged_s=("forged_ns", pl.coalesce("snapshot_ns", "leadership_ns")),
        forge_announced_s=("announced_ns", "forged_ns"),
        forge_sending_s=("sent_ns", "forged_ns"),
        forge_self_adopted_s=("adoption_ns", "forged_ns"),
        slot_to_announced_s=("announced_ns", "slot_start_ns"),
    )
    if not rules.published:
        return timed
    substitute = pl.when(pl.col("host").is_not_null()).then(SUBSTITUTE_S)
    return timed.with_columns(pl.col(*SUBSTITUTED).fill_null(substitute))


def observations(data_frame: pl.DataFrame) -> pl.DataFrame:
    """Every block on every host other than the forger, with the class of that observation.

    `seen`: it noticed, requested and fetched the block, which makes it an observation. `valid`: none of its critical
    times is missing or negative, one block was requested and the chain grew by it alone.

    Args:
        data_frame: with adoptions.
    """
    frame = with_seconds(
        data_frame.lazy().select(OBSERVED).filter(pl.col("role") == "observer").collect(),
        peer_notice_s=("noticed_ns", "slot_start_ns"),
        peer_request_s=("requested_ns", "noticed_ns"),
        peer_fetch_s=("fetched_ns", "requested_ns"),
        peer_announced_s=("announced_ns", "fetched_ns"),
        peer_sending_s=("sent_ns", "fetched_ns"),
        peer_adopted_s=("adoption_ns", "fetched_ns"),
        slot_to_fetched_s=("fetched_ns", "slot_start_ns"),
        slot_to_adopted_s=("adoption_ns", "slot_start_ns"),
    )
    critical = pl.all_horizontal((pl.col(*CRITICAL) >= 0).fill_null(value=False))
    return frame.with_columns(
        seen=pl.all_horizontal(pl.col("noticed_ns", "requested_ns", "fetched_ns").is_not_null()),
        valid=critical & (pl.col("chain_delta") == 1),
    )


def observation_classes(observed: pl.DataFrame) -> dict[str, int]:
    """The number of observers in each class; every observer is in exactly one.

    Args:
        observed: as `observations` leaves them.
    """
    kind = (
        pl.when("valid")
        .then(pl.lit("valid"))
        .when(~pl.col("seen"))
        .then(pl.lit("without notice, request or fetch"))
        .when(pl.col("adoption_ns").is_null())
        .then(pl.lit("never adopted"))
        .when(pl.col("chain_delta") != 1)
        .then(pl.lit("several blocks at once"))
        .otherwise(pl.lit("a negative time"))
    )
    counted = observed.lazy().group_by(kind=kind).agg(count=pl.len()).sort("kind").collect()
    return dict(zip(counted["kind"], counted["count"], strict=True))


def _observed(observed: pl.DataFrame, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Per position in the chain, the aggregate of its observations; blocks without any are absent."""
    timings = [pl.col(name) for name in PEER_TIMINGS]
    valid = pl.col("valid")
    seen = observed.lazy().filter("seen").join(blocks.select("place", "block"), on="block", how="inner")
    return seen.group_by("place").agg(
        observations=pl.len(),
        adopted_observations=pl.col("adoption_ns").is_not_null().sum(),
        observed_negatives=pl.sum_horizontal(*((timing < 0).sum() for timing in timings)),
        observed_non_negatives=pl.sum_horizontal(*((timing >= 0).sum() for timing in timings)),
        peer_notice_first_s=pl.col("peer_notice_s").filter(valid).min(),
        peer_fetch_first_s=pl.col("slot_to_fetched_s").filter(valid).min(),
    )


def _with_adoption(data_frame: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Add `adopters` and the times, from slot start, at which each share of them had adopted."""
    starts = blocks.lazy().select("block", "place", start_ns="slot_start_ns")
    adopted = (
        data_frame.lazy()
        .select("block", "adoption_ns")
        .filter(pl.col("adoption_ns").is_not_null())
        .join(starts, on="block", how="inner")
        .select("place", adopted_s=seconds("adoption_ns", "start_ns"))
        .sort("place", "adopted_s")
        .collect()
    )
    counts = np.bincount(adopted["place"].to_numpy(), minlength=blocks.height)
    columns = centiles(adopted["adopted_s"].to_numpy(), counts, FRACTIONS)
    named = {name: pl.Series(columns[:, number], nan_to_null=True) for number, name in enumerate(ADOPTION)}
    return blocks.with_columns(adopters=pl.Series(counts, dtype=pl.Int64), **named)


def centiles(ordered: np.ndarray, counts: np.ndarray, fractions: Sequence[float]) -> np.ndarray:
    """Centiles of many groups at once, by the published rule: the element at min(n - 1, floor(n × fraction)).

    The product is that of doubles, without correcting that 0.94 is inexact: this rule decides which host's adoption
    counts, and the published figures are computed with it.

    Args:
        ordered: the groups' values one after the other, ascending within a group.
        counts: shape (groups,), values per group.

    Returns:
        Shape (groups, fractions); NaN for empty groups.
    """
    place = np.floor(counts[:, None] * np.asarray(fractions)[None, :]).astype(np.int64)
    place = np.minimum(place, counts[:, None] - 1) + (np.cumsum(counts) - counts)[:, None]
    result = np.full(place.shape, np.nan)
    present = counts > 0
    result[present] = ordered[place[present]]
    return result


# --- which of them are accepted ------------------------------------------------------------------------------------


def admitted(
    blocks: pl.DataFrame, conditions: Sequence[FilterCondition], genesis: Genesis, rules: Rules
) -> pl.DataFrame:
    """Add `accepted` and `rejected_because`, which lists all reasons against a block (null: none)."""
    forged = pl.col("host").is_not_null()
    lacks_forging = pl.any_horizontal(pl.col("size_bytes", "started_ns", "leadership_ns").is_null())
    failed = {INCOMPLETE: forged & lacks_forging}
    failed |= _without_forger(conditions)
    failed |= {
        str(condition): (~block_test(condition, genesis, rules)).fill_null(value=False) for condition in conditions
    }
    reasons = pl.concat_str(
        [pl.when(test).then(pl.lit(name)) for name, test in failed.items()], separator="; ", ignore_nulls=True
    )
    # An unknown size does not decide a condition, but makes the block incomplete.
    because = pl.when(pl.any_horizontal(*failed.values())).then(reasons)
    return blocks.with_columns(rejected_because=because, accepted=because.is_null())


def _without_forger(conditions: Sequence[FilterCondition]) -> dict[str, pl.Expr]:
    """Reasons against a block whose forger is unknown: there is nothing to measure, or to apply a condition to."""
    unknown = pl.col("host").is_null()
    unreported = pl.col("slot").is_null() | ((pl.col("adopters") == 0) & (pl.col("observations") == 0))
    sizeless = pl.col("size_bytes").is_null() if asks_for_size(conditions) else pl.lit(value=False)
    return {UNREPORTED: unknown & unreported, SIZELESS: unknown & sizeless}


def rejections(blocks: pl.DataFrame, conditions: Sequence[FilterCondition]) -> dict[str, int]:
    """Per reason the number of blocks rejected for it; a block counts once for each of its reasons."""
    counted = Counter(reason for text in blocks["rejected_because"] if text for reason in text.split("; "))
    named = [INCOMPLETE, UNREPORTED, SIZELESS, *map(str, conditions)]
    return {name: counted[name] for name in named if counted[name] or name not in (UNREPORTED, SIZELESS)}
