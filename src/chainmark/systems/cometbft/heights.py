"""Blocks as the nodes' metrics pages show them: heights that grow from scrape to scrape."""

from __future__ import annotations

import numpy as np
import polars as pl

from chainmark.core.times import NS
from chainmark.systems.cometbft.analyse import Window

HEIGHT = "cometbft_consensus_height"
# Gauges of a node that speak of the block that it committed last, by the metric's id.
LAST_BLOCK = {
    "block_transactions": "cometbft_consensus_num_txs",
    "block_size_bytes": "cometbft_consensus_block_size_bytes",
    "block_extra_rounds": "cometbft_consensus_rounds",
}


def first_sights(scrapes: pl.DataFrame) -> pl.DataFrame:
    """When each height was first seen on any node.

    Heights that were jumped over are spread evenly between the two that were seen. The lowest height has none: it was
    there before anybody looked.

    Args:
        scrapes: time_ns, host, metric, value.

    Returns:
        height, seen_ns, block_interval_s, one row per height, ascending; the first has no interval.
    """
    heights = scrapes.filter(pl.col("metric") == HEIGHT).group_by("time_ns").agg(pl.col("value").max()).sort("time_ns")
    times, values = heights["time_ns"].to_numpy(), heights["value"].to_numpy()
    tops = np.maximum.accumulate(values) if len(values) else values
    grown = np.flatnonzero(np.diff(tops) > 0) + 1
    schema = {"height": pl.Int64, "seen_ns": pl.Int64, "block_interval_s": pl.Float64}
    if len(grown) == 0:
        return pl.DataFrame(schema=schema)
    all_heights = np.arange(int(tops[grown[0]]), int(tops[grown[-1]]) + 1)
    # Whole nanoseconds since the first sight: a float holds them exactly, unlike those since 1970.
    began_ns = int(times[grown[0]])
    seen = np.interp(all_heights, tops[grown], (times[grown] - began_ns).astype(float))
    intervals = np.concatenate([[np.nan], np.diff(seen) / NS])
    frame = pl.DataFrame(
        {"height": all_heights, "seen_ns": np.round(seen).astype(np.int64) + began_ns, "block_interval_s": intervals},
        schema=schema,
    )
    return frame.with_columns(pl.col("block_interval_s").fill_nan(None))


def block_samples(scrapes: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per height that was first seen in the window; what a page tells of a block where one told it."""
    frame = first_sights(scrapes).filter(window.contains("seen_ns"))
    for name, values in last_block_values(scrapes).items():
        frame = frame.join(values.rename({"value": name}), on="height", how="left")
    return frame.select("height", window.time_s("seen_ns").alias("time_s"), "block_interval_s", *LAST_BLOCK).sort(
        "height"
    )


def last_block_values(scrapes: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Of each gauge of the last block: height, value. The middle one of what the nodes said in their last scrapes.

    A page is not written in one moment, so a node may show the new height beside the old block's figures: the last
    scrape of a height is surely whole, unless it is the only one, and then the other nodes outvote it.
    """
    wide = scrapes.filter(pl.col("metric").is_in([HEIGHT, *LAST_BLOCK.values()])).pivot(
        on="metric", index=["time_ns", "host"], values="value"
    )
    found = {}
    for name, family in LAST_BLOCK.items():
        if family not in wide.columns or HEIGHT not in wide.columns:
            found[name] = pl.DataFrame(schema={"height": pl.Int64, "value": pl.Float64})
            continue
        told = wide.select("time_ns", "host", pl.col(HEIGHT).cast(pl.Int64).alias("height"), value=family).drop_nulls()
        last = told.sort("time_ns").group_by("height", "host", maintain_order=True).last()
        middle = pl.col("value").sort().get(pl.len() // 2)
        found[name] = last.group_by("height").agg(value=middle).sort("height")
    return found
