"""The parts of each adoption: the path of a block's body from its forger to one host, step by step.

A host's adoption time is a sum of steps in its own log and in those of the hosts before it on the path:

    slot start → announced by the forger
      → body fetched by a host → announced by that host     (once per host on the path)
      → adopted by the last one

The path is traced back over the peers that sent the body, so that waiting for a copy while another peer delivered it
sooner is not a step of it. Nothing is omitted and nothing is fitted: the steps of a path add up to its adoption.

A hop, from the announcement by one host to the body at the next (header, request, body), has the two nodes' own time:
that of a hop within a region. The rest of a hop between two regions is the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from chainmark.stats.centiles import FloatArray
from chainmark.systems.cardano.chain import NS
from chainmark.systems.cardano.figures import FRACTIONS

COLUMNS = (
    *("block", "slot", "slot_start_ns", "host", "region", "role", "accepted", "fetched_host"),
    *("fetched_ns", "announced_ns", "adopted_ns", "switched_ns"),
)
# The steps of a path, in the order of their columns.
BETWEEN, WITHIN, FORGING, PASSING, ADOPTING = range(5)
STEPS = 5

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ways:
    """The paths to the hosts whose adoptions are the centiles, of the traceable blocks, in chronological order.

    Attributes:
        steps: [fraction][block][step], s; the steps of a path add up to its adoption.
        hops: [fraction][block], all hops of the path; far_hops: those between regions.
        within: [block], summed durations, s, of all the block's hops within regions, on any path.
        within_counts: [block], the number of these.
        blocks: accepted ones with an adoption, traced or not.
        regions: those with hosts.
        known: whether the sender of its bodies is known for any host.
    """

    steps: FloatArray
    hops: FloatArray
    far_hops: FloatArray
    within: FloatArray
    within_counts: FloatArray
    blocks: int
    regions: int
    known: bool

    @property
    def traced(self) -> int:
        """Blocks all of whose paths are known."""
        return int(self.steps.shape[1])

    @property
    def within_mean_s(self) -> float:
        """The mean duration of a hop within a region."""
        return float(self.within.sum() / self.within_counts.sum())

    def parts(self, fraction: int, hop_s: float) -> FloatArray:
        """Per block [part] the parts of the centile's adoption, s, in the order of `PARTS`.

        The nodes' time of a hop between regions is that of a hop within a region: their mean m. It is an estimate, too;
        each block carries its influence on it, to first order, so that the spread over blocks shows the whole error,
        while the mean over blocks is unchanged:

            nodes' time of block b = n_b · m + n̄ · (within_b − m · count_b) / mean count,    n̄ the mean of n_b

        The number of hops of a path follows from the distances: for the network each counts as ``hop_s``, and for the
        nodes as its excess over that. With one ``hop_s`` for two runs, Δ(n · m) splits into m Δn + n Δm.

        Args:
            fraction: of the centile.
            hop_s: the nodes' time of a hop that both sides are compared with.

        Returns:
            Shape (blocks, parts); rows add up to the adoption.
        """
        steps, far, mean = self.steps[fraction], self.far_hops[fraction], self.within_mean_s
        moved = (self.within - mean * self.within_counts) / self.within_counts.mean()
        own = far * mean + far.mean() * moved
        longer = self.hops[fraction] * hop_s
        nodes = (steps[:, FORGING], steps[:, WITHIN] + own - longer, steps[:, PASSING], steps[:, ADOPTING])
        return np.column_stack([steps[:, BETWEEN] - own, longer, *nodes])


def trace(timelines: pl.LazyFrame, *, switches_count: bool) -> Ways:
    """Trace the adoptions of a run's accepted blocks back to their forgers.

    Args:
        timelines: ``events/block_timelines.parquet``, at least `COLUMNS`.
        switches_count: whether a switch to a block's fork is an adoption, as in the run's own figures.
    """
    adoption = pl.min_horizontal("adopted_ns", "switched_ns") if switches_count else pl.col("adopted_ns")
    accepted = timelines.select(COLUMNS).filter(pl.col("accepted") & pl.col("role").is_in(["forger", "observer"]))
    names = pl.col("block", "host", "fetched_host", "region").cast(pl.Categorical)  # as text, they need most memory
    known = _sorted(accepted.with_columns(names, adoption_ns=adoption).drop("adopted_ns", "switched_ns").collect())
    rows = _Rows(known)
    steps, hops, far_hops, complete = rows.ways()
    chosen, blocks = _adopters(known)
    # If a step is missing, no centile of the block is used, so that all centiles are of the same blocks.
    picked = chosen[complete[chosen].all(axis=1)].T
    numbers = rows.block[picked[0]]
    near = rows.is_near
    return Ways(
        steps=steps[picked],
        hops=hops[picked],
        far_hops=far_hops[picked],
        within=np.bincount(rows.block[near], weights=rows.hop_s[near], minlength=rows.blocks)[numbers],
        within_counts=np.bincount(rows.block[near], minlength=rows.blocks)[numbers].astype(np.float64),
        blocks=blocks,
        regions=known["region"].drop_nulls().n_unique(),
        known=known["fetched_host"].null_count() < known.height,
    )


def _sorted(known: pl.DataFrame) -> pl.DataFrame:
    """The rows by slot, block and host. Sorting by numbers instead of by names needs a third of the memory."""
    blocks = _named(known, "block")
    hosts = _named(known, "host", "fetched_host")
    columns = (pl.col("block").cast(blocks), pl.col("host", "fetched_host").cast(hosts))
    return known.with_columns(*columns).sort("slot", "block", "host")


def _named(known: pl.DataFrame, *columns: str) -> pl.Enum:
    """The names in columns, numbered in alphabetical order."""
    names = pl.concat([known[column].unique().cast(pl.String).alias("name") for column in columns])
    return pl.Enum(names.drop_nulls().unique().sort())


def _adopters(known: pl.DataFrame) -> tuple[IntArray, int]:
    """[block][fraction] the rows of the hosts whose adoptions are the centiles, by the rule of `chain.centiles`."""
    adopted = known.with_row_index("row").drop_nulls("adoption_ns").sort("slot", "block", "adoption_ns", "host")
    counts = adopted.group_by("slot", "block", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
    place = np.floor(counts[:, None] * np.asarray(FRACTIONS)[None, :]).astype(np.int64)
    place = np.minimum(place, counts[:, None] - 1) + (np.cumsum(counts) - counts)[:, None]
    return adopted["row"].to_numpy().astype(np.int64)[place], len(counts)


class _Rows:
    """One row per block and host, and the steps that end in it.

    Attributes:
        block: the number of each row's block; blocks: how many there are.
        hop_s: from the announcement by the host that sent the body to the body, s.
        is_near: whether that host is known to be in the same region.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        changes = known.select(pl.struct("slot", pl.col("block").to_physical()).rle_id().cast(pl.Int64)).to_series()
        self.block: IntArray = changes.to_numpy()
        self.blocks = int(self.block[-1]) + 1 if len(self.block) else 0
        self._forger: BoolArray = (known["role"] == "forger").to_numpy()
        self._from = self._rows_of(known)
        region: IntArray = known["region"].rank("dense").cast(pl.Int64).fill_null(-1).to_numpy()
        self._fetched, self._announced, self._adopted = (
            ((known[f"{stage}_ns"] - known["slot_start_ns"]).cast(pl.Float64) / NS).fill_null(np.nan).to_numpy()
            for stage in ("fetched", "announced", "adoption")
        )
        placed = (self._from >= 0) & (region >= 0) & (region[self._from] >= 0) & ~self._forger
        self.hop_s = np.where(placed, self._fetched - self._announced[self._from], np.nan)
        same = region == region[self._from]
        self.is_near: BoolArray = np.isfinite(self.hop_s) & same
        self._is_far = np.isfinite(self.hop_s) & ~same

    def ways(self) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Per row the [step]s of the path to its adoption, its hops, those between regions, and if all are known."""
        steps = np.zeros((len(self.block), STEPS))
        steps[self._forger, FORGING] = self._announced[self._forger]
        steps[self._is_far, BETWEEN] = self.hop_s[self._is_far]
        steps[self.is_near, WITHIN] = self.hop_s[self.is_near]
        known = self._is_far | self.is_near
        hops, far_hops = known.astype(np.float64), self._is_far.astype(np.float64)
        passed = np.where(self._forger, 0.0, self._announced - self._fetched)
        done = self._forger.copy()
        pending = np.flatnonzero(known)
        while True:
            ready = pending[done[self._from[pending]]]
            if not len(ready):
                break
            before = self._from[ready]
            steps[ready] += steps[before]
            steps[ready, PASSING] += passed[before]
            hops[ready] += hops[before]
            far_hops[ready] += far_hops[before]
            done[ready] = True
            pending = pending[~done[pending]]
        steps[:, ADOPTING] = self._adopted - np.where(self._forger, self._announced, self._fetched)
        return steps, hops, far_hops, done & np.isfinite(steps).all(axis=1)

    def _rows_of(self, known: pl.DataFrame) -> IntArray:
        """Per row, the row of the same block at the host that sent the body; -1 if there is none."""
        numbers = known.select(pl.col("host", "fetched_host").to_physical().cast(pl.Int64))
        hosts = 1 + max((place for place in numbers.max().row(0) if place is not None), default=0)
        rows = np.full(self.blocks * hosts, -1, dtype=np.int64)
        rows[self.block * hosts + numbers["host"].to_numpy()] = np.arange(known.height)
        senders = numbers["fetched_host"]
        places: IntArray = rows[self.block * hosts + senders.fill_null(0).to_numpy()]
        return np.where(senders.is_null().to_numpy(), -1, places)
