"""Similar items: low, middle and high by the quantiles of the examined ones, and a bounded draw of each."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from chainmark.core import units

LOW_SHARE, HIGH_SHARE = 0.5, 0.9

T = TypeVar("T")


@dataclass(frozen=True)
class Levels:
    """Three levels of a quantity: at most the median, more than the 90th centile, and between.

    Attributes:
        names: of the three, from low to high.
        low: the median; high: the 90th centile (both are existing values: the smallest with such a share at or below).
        unit: "bytes".
    """

    names: tuple[str, str, str]
    low: int
    high: int
    unit: str

    @classmethod
    def of(cls, values: Sequence[int], names: tuple[str, str, str], unit: str) -> Levels:
        """The levels of the examined values; at least one value."""
        ordered = sorted(values)
        low, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (LOW_SHARE, HIGH_SHARE))
        return cls(names, low, high, unit)

    def name(self, value: int) -> str:
        """The level of a value."""
        return self.names[0 if value <= self.low else 1 if value <= self.high else 2]

    def description(self, name: str) -> str:
        """The meaning of a level."""
        low, high = f"{units.count(self.low)} {self.unit}", f"{units.count(self.high)} {self.unit}"
        return (f"at most {low}", f"more than {low} and at most {high}", f"more than {high}")[self.names.index(name)]


def draw(items: Sequence[T], count: int, source: random.Random) -> list[T]:
    """At most ``count`` of the items, in order."""
    if len(items) <= count:
        return list(items)
    return [items[position] for position in sorted(source.sample(range(len(items)), count))]
