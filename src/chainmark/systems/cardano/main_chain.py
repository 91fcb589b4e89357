"""The main chain, rebuilt from the parent links in the hosts' lines.

A block's position is recorded by its forging, by every header of it, by the forge loops that found it as the tip or
built on it, and by the chains that it extended. So a lost line has no effect if another one records the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import polars as pl

# The parent that the first block names.
AT_GENESIS = "GenesisHash"
# Of the kinds of evidence of a parent (crates/chainmark-trace/src/links.rs), the last unambiguous one: the forging
# itself, and what the forge loop of the same slot built on.
_SURE = 1
# A block of a later slot may have a lower number, on another fork; forks are no longer than this.
_FORK = 10


@dataclass(frozen=True)
class Tip:
    """The entry from which the main chain was found; it is not on that chain, since its propagation is incomplete."""

    block: str
    block_no: int
    host: str


@dataclass(frozen=True)
class MainChain:
    """The main chain, oldest block first.

    Attributes:
        tip: None if no block is known.
        blocks, heights: of the blocks in any line; heights ascend and may have gaps.
        first_height: the lowest height in the logs: 0 if a host saw the chain begin; None without a tip.
    """

    tip: Tip | None
    blocks: list[str]
    heights: list[int]
    first_height: int | None

    @property
    def heights_passed(self) -> int:
        """The number of heights between the first one and the tip, including the first one."""
        return 0 if self.tip is None or self.first_height is None else max(0, self.tip.block_no - self.first_height)


class KnownBlocks:
    """The positions and parents of the known blocks.

    Attributes:
        table: one row per block: `block`, `block_no`, `slot`, `size_bytes` (each null if no line states it),
            `witnesses` (number of hosts that know it).
    """

    def __init__(self, links: pl.DataFrame, adopted: pl.DataFrame | None = None) -> None:
        """Join what the hosts recorded; if numbers differ, use the most frequent one, otherwise the first one.

        Args:
            links: one row per host and block, hosts in their order: the decoder's columns (`tables.LINKS`) and `host`.
            adopted: one row per host and height: the `block` that the host adopted there last.
        """
        expressions = [
            pl.col(name).drop_nulls().mode(maintain_order=True).first() for name in ("block_no", "slot", "size_bytes")
        ]
        # No chain is longer than its slots: such a number was misread.
        sound = (pl.col("block_no") <= pl.col("slot")).fill_null(value=True)
        self.table = (
            links.lazy()
            .group_by("block", maintain_order=True)
            .agg(*expressions, witnesses=pl.len())
            .with_columns(block_no=pl.when(sound).then("block_no"))
            .collect()
        )
        if misread := _misread(self.table):
            self.table = self.table.with_columns(block_no=pl.when(~pl.col("block").is_in(misread)).then("block_no"))
        numbers = zip(self.table["block"], self.table["block_no"], strict=True)
        self._numbers: dict[str, int] = {block: number for block, number in numbers if number is not None}
        self._parents = _parents(links)
        self._heights = sorted(set(self._numbers.values()))
        self._adopted = adopted

    def keeping(self, adopted: pl.DataFrame) -> KnownBlocks:
        """The same blocks with the hosts' last adoptions by other rules, one row per host and height."""
        known = copy(self)
        known._adopted = adopted
        known.__dict__.pop("_by_number", None)
        return known

    @cached_property
    def _by_number(self) -> dict[int, str]:
        """Per height the block that most hosts kept there: the loser of a battle is known to as many."""
        keepers = pl.LazyFrame(schema={"block": pl.String, "keepers": pl.UInt32})
        if self._adopted is not None:
            keepers = self._adopted.lazy().group_by("block").agg(keepers=pl.len())
        best = (
            self.table.lazy()
            .drop_nulls("block_no")
            .join(keepers, on="block", how="left")
            .with_columns(pl.col("keepers").fill_null(0))
            .sort("block_no", "keepers", "witnesses", "block", descending=[False, True, True, False])
            .unique("block_no", keep="first", maintain_order=True)
            .collect()
        )
        return dict(zip(best["block_no"], best["block"], strict=True))

    @property
    def lowest(self) -> int | None:
        """The lowest number that a line states for a block."""
        return self._heights[0] if self._heights else None

    def down_from(self, block: str, number: int) -> Iterator[tuple[str, int]]:
        """The block's ancestors with their numbers; if none is known at a height, the next lower known one."""
        while True:
            parent = self._parent(block, number)
            if parent == AT_GENESIS or number <= 0:
                return
            if parent is None:
                place = bisect_left(self._heights, number)
                if place == 0:
                    return
                number = self._heights[place - 1]
                block = self._by_number[number]
            else:
                block, number = parent, number - 1
            yield block, number

    def _parent(self, block: str, number: int) -> str | None:
        """The parent by the strongest evidence that fits the numbers; None if there is none."""
        for evidence, parent in self._parents.get(block, ()):
            known = AT_GENESIS if parent == AT_GENESIS else self._numbers.get(parent)
            if known in (AT_GENESIS, number - 1) or (known is None and evidence <= _SURE):
                return parent
        return None


def _misread(table: pl.DataFrame) -> list[str]:
    """Blocks whose numbers are impossible: no chain grows by more than its slots, and the neighbours agree."""
    ordered = table.lazy().select("block", "block_no", "slot").drop_nulls(["block_no", "slot"])

    def follows(later: int, earlier: int) -> pl.Expr:
        """Whether the block at this distance allows the block's position; null beyond the ends."""
        grown = pl.col("block_no").shift(-later) - pl.col("block_no").shift(-earlier)
        return (grown >= -_FORK) & (grown <= pl.col("slot").shift(-later) - pl.col("slot").shift(-earlier))

    between = follows(1, -1) & ~(follows(0, -1) & follows(1, 0))
    first = follows(2, 1) & ~follows(1, 0) & follows(0, -1).is_null()
    last = follows(-1, -2) & ~follows(0, -1) & follows(1, 0).is_null()
    wrong = pl.any_horizontal(expression.fill_null(value=False) for expression in (between, first, last))
    return ordered.sort("slot", "block_no", "block").filter(wrong).collect()["block"].to_list()


def _parents(links: pl.DataFrame) -> dict[str, list[tuple[int, str]]]:
    """Per block its possible parents, strongest evidence first; for equal evidence those of most hosts."""
    frame = links.lazy().drop_nulls("parent").group_by("block", "parent_evidence", "parent").agg(hosts=pl.len())
    order = frame.sort("block", "parent_evidence", "hosts", "parent", descending=[False, False, True, False])
    results: dict[str, list[tuple[int, str]]] = {}
    for block, evidence, parent, _ in order.collect().iter_rows():
        results.setdefault(block, []).append((evidence, parent))
    return results


def last_adopted(data_frame: pl.DataFrame) -> pl.DataFrame:
    """Per host and height the block that it adopted there last, in any way.

    Args:
        data_frame: one row per host and block: `block`, `block_no`, `host`, `adopted_ns`, `switched_ns`.
    """
    return (
        data_frame.lazy()
        .select("host", "block", "block_no", at_ns=pl.max_horizontal("adopted_ns", "switched_ns"))
        .drop_nulls(["block_no", "at_ns"])
        .sort("host", "block_no", "at_ns", "block")
        .unique(["host", "block_no"], keep="last", maintain_order=True)
        .select("host", "block_no", "block")
        .collect()
    )


def main_chain(data_frame: pl.DataFrame, links: pl.DataFrame, known: KnownBlocks, lowest_tip: int | None) -> MainChain:
    """Walk from the parent of the highest block down to the first one.

    The tip is the entry with the highest block number, among equals the forger's, then the first host's, then that of
    the smallest hash.

    Args:
        data_frame: one row per host and block: `block`, `block_no`, `host`, `role`.
        links: as for :class:`KnownBlocks`.
        known: built from them.
        lowest_tip: the lowest block number of a tip in any forge loop; -1 is the chain's beginning.
    """
    entries = data_frame.lazy().select("block", "block_no", "host", "role").filter(pl.col("role") != "error")
    frame = links.lazy().select("block", "block_no", "host", role=pl.lit("observer"))
    candidates = (
        pl.concat([entries, frame])
        .drop_nulls("block_no")
        .join(known.table.lazy().drop_nulls("block_no"), on=["block", "block_no"], how="semi")
    )
    highest = candidates.filter(pl.col("block_no") == pl.col("block_no").max())
    best = highest.sort(pl.col("role") != "forger", "host", "block").head(1).collect()
    if best.is_empty():
        return MainChain(None, [], [], None)
    tip = Tip(best["block"][0], best["block_no"][0], best["host"][0])
    lows = [known.lowest, None if lowest_tip is None else lowest_tip + 1]
    first = min(low for low in lows if low is not None)
    walked = [(block, number) for block, number in known.down_from(tip.block, tip.block_no) if number >= first]
    walked.reverse()
    return MainChain(tip, [block for block, _ in walked], [number for _, number in walked], first)
