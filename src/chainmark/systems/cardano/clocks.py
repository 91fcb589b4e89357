"""Hosts with a wrong clock, by contradictions between logs: no host has a block's header before it is forged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from chainmark.core import units


@dataclass(frozen=True)
class Contradiction:
    """The worst case of an observer that had a header before the forger, by its own clock, had forged the block."""

    forger: str
    observer: str
    by_s: float


@dataclass(frozen=True)
class Suspect:
    """A host whose clock would explain contradictions.

    Attributes:
        ahead: whether its clock would be ahead of the others', or behind.
        by_s: by at least this.
        others: the hosts that it contradicts.
    """

    name: str
    ahead: bool
    by_s: float
    others: tuple[str, ...]

    def __str__(self) -> str:
        if len(self.others) == 1:
            return f"the clocks of {self.name} and {self.others[0]} differ by {units.number(self.by_s, 3)} s or more"
        direction = "ahead of" if self.ahead else "behind"
        return (
            f"the clock of {self.name} is {units.number(self.by_s, 3)} s or more {direction} {len(self.others)} others'"
        )


def contradictions(data_frame: pl.DataFrame, forgers: pl.DataFrame) -> list[Contradiction]:
    """Per forger and observer the worst case, by name.

    Args:
        data_frame: one row per host and block: `host`, `block`, `role`, `noticed_ns`.
        forgers: one row per block: `host`, `block`, `forged_ns`.
    """
    frame = data_frame.lazy().select("block", "noticed_ns", "role", observer=pl.col("host").cast(pl.String))
    forged = forgers.lazy().select("block", "forged_ns", forger=pl.col("host").cast(pl.String))
    early = (
        frame.filter(pl.col("role") == "observer")
        .join(forged, on="block", how="inner")
        .filter(pl.col("noticed_ns") < pl.col("forged_ns"))
        .group_by("forger", "observer")
        .agg(by_ns=(pl.col("forged_ns") - pl.col("noticed_ns")).max())
        .sort("forger", "observer")
        .collect()
    )
    return [Contradiction(forger, observer, by_ns / 1e9) for forger, observer, by_ns in early.iter_rows()]


def suspects(result: Sequence[Contradiction]) -> list[Suspect]:
    """The smallest set of hosts that explains all contradictions, found greedily: most contradicted hosts first.

    A host ahead of the others forges too late by their clocks, one behind notices too early.
    """
    left, blamed = list(result), []
    while left:
        partners: dict[tuple[str, bool], dict[str, float]] = {}
        for contradiction in left:
            for name, other, ahead in (
                (contradiction.forger, contradiction.observer, True),
                (contradiction.observer, contradiction.forger, False),
            ):
                partners.setdefault((name, ahead), {})[other] = contradiction.by_s
        (name, ahead), others = min(partners.items(), key=lambda item: (-len(item[1]), not item[0][1], item[0][0]))
        blamed.append(Suspect(name, ahead, max(others.values()), tuple(sorted(others))))
        left = [item for item in left if name not in (item.forger, item.observer)]
    return blamed
