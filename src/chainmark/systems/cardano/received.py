"""The blocks that one host received, by the definitions of blockperf: no forger's log is needed.

A block is a sample if the host's lines contain its first header, a request to the peer that then sent it, the end of
that fetch and the adoption, and if its size and every delay are within the limits by which blockperf discards what a
node logged while it caught up with the chain.

Source: docs/concepts/cardano-analysis.md, "One host".
"""

from __future__ import annotations

import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.systems.cardano.chain import seconds
from chainmark.systems.cardano.documents import Genesis, epoch_slot

# Delays and sizes outside of these are discarded, including the limits themselves.
SHORTEST_NS, LONGEST_NS = -6_000 * 10**6, 600_000 * 10**6
LARGEST_BYTES = 10_000_000
# Duration of an epoch's beginning, with the cost of the change to every host; of a short epoch a twentieth.
_BEGINNING_S = 1800.0
_BEGINNING_SHARE = 0.05
RECEIVED = "received"
SAMPLE = "received and adopted"
KEYS = ("block", "host", "header_from", "fetched_from", "day_s", "epoch_begins", "time_s")
DELAYS = ("header_delay_s", "request_delay_s", "fetch_delay_s", "adopt_delay_s")
SUMS = ("header_to_adopted_s", "received_adopted_s")
ABOUT = ("received_size_bytes", "received_battles", "received_switches")
# Further judged metrics of one host: its resource use.
_OF_SLOTS = ("slot_host", "span")


def received_blocks(data_frame: pl.DataFrame, genesis: Genesis) -> pl.DataFrame:
    """The outcome of every block that the host knew.

    Args:
        data_frame: of one host, the decoder's columns with `host` and `slot_start_ns`.

    Returns:
        One row per block, by its height: `class`, which is :data:`SAMPLE` or why it is not one, the keys and metrics of
        the population `received`, and `block_no`, `slot`, the times of its stages.
    """
    switched = pl.col("switched_ns").is_not_null() & (
        pl.col("adopted_ns").is_null() | (pl.col("switched_ns") < pl.col("adopted_ns"))
    )
    blocks = data_frame.with_columns(
        adoption_ns=pl.min_horizontal("adopted_ns", "switched_ns"),
        received_switches=switched.cast(pl.Float64),
        received_size_bytes=pl.col("fetched_bytes").cast(pl.Float64),
        received_battles=_others_of_height().cast(pl.Float64),
        time_s=pl.col("slot") * genesis.slot_length_s,
        day_s=pl.col("slot_start_ns") // 10**9 % 86_400,
        epoch_begins=(epoch_slot(genesis, pl.col("slot")) < _beginning_slots(genesis)).cast(pl.Int64),
        header_from=pl.col("noticed_from").fill_null("not stated"),
        fetched_from=pl.col("fetched_from").fill_null("not stated"),
    )
    blocks = blocks.with_columns(
        header_delay_s=seconds("noticed_ns", "slot_start_ns"),
        request_delay_s=seconds("answered_request_ns", "noticed_ns"),
        fetch_delay_s=seconds("fetched_ns", "answered_request_ns"),
        adopt_delay_s=seconds("adoption_ns", "fetched_ns"),
        header_to_adopted_s=seconds("adoption_ns", "noticed_ns"),
        received_adopted_s=seconds("adoption_ns", "slot_start_ns"),
    )
    return blocks.with_columns(block_class().alias("class")).sort("block_no", "block", nulls_last=True)


def received_samples(blocks: pl.DataFrame) -> pl.DataFrame:
    """The rows and columns of the population `received`."""
    samples = blocks.filter(pl.col("class") == SAMPLE)
    return (
        samples.with_columns(pl.col("host").cast(pl.String))
        .select(*KEYS, *DELAYS, *SUMS, *ABOUT)
        .sort("time_s", "block")
    )


def received_counts(blocks: pl.DataFrame) -> dict[str, int]:
    """The number of blocks in each class; every block is in exactly one."""
    counted = blocks.group_by("class").agg(count=pl.len()).sort("class")
    return dict(zip(counted["class"], counted["count"], strict=True))


def of_a_cluster(catalogue: Catalogue) -> Catalogue:
    """The catalogue without metrics that only one host's logs have."""
    others = [population.id for population in catalogue.populations if population.id != RECEIVED]
    return catalogue.sampled({name: {metric.id for metric in catalogue.metrics_of(name)} for name in others})


def of_one_host(catalogue: Catalogue) -> Catalogue:
    """The judged metrics of one host: its receipt of blocks, and its resource use; not a cluster's propagation."""
    metrics = [
        metric if metric.population in (RECEIVED, *_OF_SLOTS) else metric.model_copy(update={"gating": False})
        for metric in catalogue.metrics
    ]
    return catalogue.model_copy(update={"metrics": metrics})


def _others_of_height() -> pl.Expr:
    sound = pl.col("role") != "error"
    return pl.when(pl.col("block_no").is_not_null()).then(sound.sum().over("block_no") - 1)


def _beginning_slots(genesis: Genesis) -> float:
    return min(_BEGINNING_S / genesis.slot_length_s, genesis.epoch_slots * _BEGINNING_SHARE)


def block_class() -> pl.Expr:
    """The first reason for rejecting a block; none makes it a sample.

    From the decoder's columns and `slot_start_ns`.
    """
    adoption_ns, size_bytes = pl.min_horizontal("adopted_ns", "switched_ns"), pl.col("fetched_bytes")
    spans = [
        pl.col("noticed_ns") - pl.col("slot_start_ns"),
        pl.col("answered_request_ns") - pl.col("noticed_ns"),
        pl.col("fetched_ns") - pl.col("answered_request_ns"),
        adoption_ns - pl.col("fetched_ns"),
    ]
    within = pl.all_horizontal((span > SHORTEST_NS) & (span < LONGEST_NS) for span in spans)
    sized = size_bytes.is_between(0, LARGEST_BYTES, closed="none").fill_null(value=False)
    numbered = (pl.col("block_no") > 0) & (pl.col("slot") > 0)
    reasons = {
        "forged here": pl.col("role") == "forger",
        "header not logged before": pl.col("error").str.ends_with("of an unknown block"),
        "its lines contradict each other": pl.col("role") == "error",
        "not fetched": pl.col("fetched_ns").is_null(),
        "request not logged": pl.col("answered_request_ns").is_null(),
        "never adopted": adoption_ns.is_null(),
        "size missing or impossible": ~sized,
        "first block of the chain": ~numbered.fill_null(value=False),
        "a delay beyond the limits": ~within.fill_null(value=False),
    }
    expression = pl.lit(SAMPLE)
    for reason, test in reversed(reasons.items()):
        expression = pl.when(test).then(pl.lit(reason)).otherwise(expression)
    return expression
