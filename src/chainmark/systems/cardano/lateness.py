"""Late hosts and late blocks of a run, from how long each host took to adopt each block that it had fetched.

No mean of a stage tells of them, and they decide when the last host has a block. They are read off the stage *fetched
to adopted* alone, host by host; adoption times since the slot began are not looked at.
"""

from __future__ import annotations

import math

import polars as pl

from chainmark.systems.cardano.figures import ADOPTED, Lateness

# A block of so few observers does not tell whether the block was late or each of them.
OBSERVERS_LEAST = 5
BLOCKS_LEAST = 50
# A block is slow where half of its observers are later than usual by this; a host is late where it is later than half
# of the block's observers by that: some ten times the usual spread.
SLOW_S = 0.25
LATE_S = 0.05
# So many late ones tell how late they are.
LATE_LEAST = 5
LATENESS_MAX_S = 60.0


def lateness(observed: pl.DataFrame, usual_late_s: float) -> Lateness | None:
    """What the stage of each host says; None where there is too little of it.

    Beyond a threshold an exponential lateness is as long again as it was, so that its mean is that of what exceeds the
    threshold, and its share what exceeds it over the probability to do so.

    Args:
        observed: columns `block` and `peer_adopted_s`, one row a block and host.
        usual_late_s: by how much single hosts are late, where the run has too few of them to tell.
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
