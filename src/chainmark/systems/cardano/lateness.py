"""Late hosts and late blocks of a run, from the time in which each host adopted each block after fetching it.

No mean of a stage shows them, and they decide when the last host has a block. They are estimated from the stage
*fetched to adopted* alone, host by host; adoption times since the slot began are not used.
"""

from __future__ import annotations

import math

import polars as pl

from chainmark.systems.cardano.figures import ADOPTED, Lateness

# With so few observers it is unknown whether the block was late or each of them.
OBSERVERS_LEAST = 5
BLOCKS_LEAST = 50
# A block is slow if half of its observers are later than usual by this; a host is late if it is later than half of the
# block's observers by that: about ten times the usual spread.
SLOW_S = 0.25
LATE_S = 0.05
# The number of late ones needed to estimate how late they are.
LATE_LEAST = 5
LATENESS_MAX_S = 60.0


def lateness(observed: pl.DataFrame, usual_late_s: float) -> Lateness | None:
    """Lateness from each host's stage; None if there are too few data.

    The excess of an exponential lateness over a threshold has the same distribution. So its mean is the mean excess
    over the threshold, and its share is the share above the threshold divided by the probability to exceed it.

    Args:
        observed: columns `block` and `peer_adopted_s`, one row per block and host.
        usual_late_s: lateness of single hosts, used if the run has too few of them to estimate it.
    """
    known = observed.drop_nulls(ADOPTED).with_columns(
        median=pl.col(ADOPTED).median().over("block"), n=pl.len().over("block")
    )
    known = known.filter(pl.col("n") >= OBSERVERS_LEAST)
    blocks = known.unique("block")
    if blocks.height < BLOCKS_LEAST:
        return None
    usual = float(blocks.select(pl.col("median").median()).item())
    slow = known.filter(pl.col("median") > usual + SLOW_S)
    others = known.filter(pl.col("median") <= usual + SLOW_S)
    excess = others.select(excess=pl.col(ADOPTED) - pl.col("median"))["excess"]
    late = excess.filter(excess > LATE_S) - LATE_S
    late_s = min(LATENESS_MAX_S, float(late.sum()) / len(late)) if len(late) >= LATE_LEAST else None
    beyond = math.exp(-LATE_S / (late_s or usual_late_s))
    slow_s = float((slow[ADOPTED] - usual).sum()) / slow.height if slow.height else None
    return Lateness(
        slow_share=slow["block"].n_unique() / blocks.height,
        slow_s=None if slow_s is None else min(LATENESS_MAX_S, slow_s),
        late_share=min(1.0, len(late) / len(excess) / beyond),
        late_s=late_s,
    )
