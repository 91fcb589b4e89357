"""Blocks according to the nodes' metrics pages: heights that grow from scrape to scrape."""

from __future__ import annotations

import numpy as np
import polars as pl

from chainmark.core.times import NS
from chainmark.systems.cometbft.analyse import Window

# The height in progress of a node, and the last one that it committed, which appears together with that block's
# figures.
HEIGHT = "cometbft_consensus_height"
LAST_HEIGHT = "cometbft_consensus_latest_block_height"
# Gauges of a node about the block that it committed last, by the metric's ID.
LAST_BLOCK = {
    "block_transactions": "cometbft_consensus_num_txs",
    "block_size_bytes": "cometbft_consensus_block_size_bytes",
    "block_extra_rounds": "cometbft_consensus_rounds",
}


def last_heights(scrapes: pl.DataFrame) -> pl.DataFrame:
    """The last block in each scrape: time_ns, host, height; if it is not reported, the one below the next."""
    frame = scrapes.filter(pl.col("metric").is_in([HEIGHT, LAST_HEIGHT]))
    last = pl.col("value") - (pl.col("metric") == HEIGHT).cast(pl.Float64)
    rows = frame.with_columns(height=last.cast(pl.Int64)).sort("metric", descending=True)
    return rows.unique(["time_ns", "host"], keep="first", maintain_order=True).select("time_ns", "host", "height")


def first_sights(scrapes: pl.DataFrame) -> pl.DataFrame:
    """When each height was first seen on any node.

    Skipped heights are spread evenly between the two that were seen. The lowest height has no time: it existed before
    the first scrape.

    Args:
        scrapes: time_ns, host, metric, value.

    Returns:
        height, seen_ns, block_interval_s, one row per height, ascending; the first has no interval.
    """
    heights = last_heights(scrapes).group_by("time_ns").agg(pl.col("height").max()).sort("time_ns")
    times, values = heights["time_ns"].to_numpy(), heights["height"].to_numpy()
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
    """One row per height that was first seen in the window; with a page's figures of the block if there are any."""
    frame = first_sights(scrapes).filter(window.contains("seen_ns"))
    for name, values in last_block_values(scrapes).items():
        frame = frame.join(values.rename({"value": name}), on="height", how="left")
    return frame.select("height", window.time_s("seen_ns").alias("time_s"), "block_interval_s", *LAST_BLOCK).sort(
        "height"
    )


def last_block_values(scrapes: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Of each gauge of the last block: height, value. The median of the nodes' last scrapes of the height.

    A page is not written atomically, so a node may show the new height next to the previous block's figures. The last
    scrape of a height is certainly consistent, unless it is the only one, and then the other nodes outvote it.
    """
    heights = last_heights(scrapes)
    result = {}
    for name, family in LAST_BLOCK.items():
        values = scrapes.filter(pl.col("metric") == family).select("time_ns", "host", "value")
        frame = heights.join(values, on=["time_ns", "host"])
        last = frame.sort("time_ns").group_by("height", "host", maintain_order=True).last()
        middle = pl.col("value").sort().get(pl.len() // 2)
        result[name] = last.group_by("height").agg(value=middle).sort("height")
    return result
