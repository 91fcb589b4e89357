"""The levels that a search may try: doubled and bisected, or from a fixed ladder."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from chainmark.capacity.model import LevelKind, LoadLevel
from chainmark.core import units
from chainmark.core.errors import UsageError

# 1, 2, then 4 to 100 in fours, then 125 to 500 in 25s: 43 steps.
LINEAR_LADDER = (1.0, 2.0, *(float(n) for n in range(4, 101, 4)), *(float(n) for n in range(125, 501, 25)))
_DIGITS = 4


@dataclass(frozen=True)
class SearchPlan:
    """How a capacity is searched for.

    Attributes:
        kind: clients (whole) or requests per second (real).
        first: the first level tried.
        last: the upper end: no level beyond it is tried.
        floor: for rates, the lowest level tried when the first one fails.
        factor: from one probe to the next, > 1.
        relative_gap: the bisection ends when pass and fail lie no further apart, as a share of the pass, or 1 client.
        times: how often the best pass and the first fail are measured in total.
        budget_steps: total number of steps, extended ones included.
        ladder: levels to walk instead of doubling and halving; then `first`, `last` and `floor` are its ends.
        required: a capacity to decide about, measured itself if the other levels leave it undecided.
    """

    kind: LevelKind
    first: float
    last: float
    floor: float = 1.0
    factor: float = 2.0
    relative_gap: float = 0.05
    times: int = 3
    budget_steps: int = 60
    ladder: tuple[float, ...] = field(default=())
    required: float | None = None

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def of_clients(cls, first: int = 1, last: int = 1024, relative_gap: float = 0.05, times: int = 3) -> SearchPlan:
        """A plan for clients: whole numbers from 1 on."""
        return cls(LevelKind.CLIENTS, float(first), float(last), relative_gap=relative_gap, times=times)

    @classmethod
    def of_rates(
        cls, first: float = 32.0, last: float = 32_768.0, floor: float = 0.5, relative_gap: float = 0.05, times: int = 3
    ) -> SearchPlan:
        """A plan for rates; the first level has as many requests in 10 s as a p99 needs."""
        return cls(LevelKind.RATE, first, last, min(floor, first), relative_gap=relative_gap, times=times)

    @classmethod
    def of_ladder(cls, kind: LevelKind, ladder: tuple[float, ...] = LINEAR_LADDER, times: int = 3) -> SearchPlan:
        """A plan for given levels, tried upwards until one fails."""
        if not ladder:
            raise UsageError("the ladder of the search has no level", "for example 1, 2, 4, 8")
        ends = (ladder[0], ladder[-1], ladder[0])
        return cls(kind, *ends, times=times, budget_steps=len(ladder) * 2 + 8 * times, ladder=ladder)

    def start(self) -> LoadLevel:
        """The first level."""
        return LoadLevel(self.kind, self.first)

    def above(self, level: LoadLevel) -> LoadLevel | None:
        """The next probe; None at the ladder's end."""
        if level.value >= self.last:
            return None
        if self.ladder:
            return self._level(next(value for value in self.ladder if value > level.value))
        raised = level.value * self.factor
        if self.kind is LevelKind.CLIENTS:
            raised = max(math.floor(raised), level.value + 1.0)
        return self._level(min(self.last, raised))

    def below(self, level: LoadLevel) -> LoadLevel | None:
        """The next lower level while none has passed; None at the floor."""
        if level.value <= self.floor:
            return None
        if self.ladder:
            return self._level(max(value for value in self.ladder if value < level.value))
        lowered = level.value / self.factor
        return self._level(max(self.floor, math.floor(lowered) if self.kind is LevelKind.CLIENTS else lowered))

    def between(self, low: LoadLevel, high: LoadLevel) -> LoadLevel | None:
        """The level that bisects the gap (rates: geometrically); None when the gap is small enough."""
        if self.ladder:
            inner = [value for value in self.ladder if low.value < value < high.value]
            return self._level(inner[len(inner) // 2]) if inner else None
        gap = high.value - low.value
        if self.kind is LevelKind.CLIENTS:
            wide = gap > max(1.0, self.relative_gap * low.value)
            return self._level(float(math.floor((low.value + high.value) / 2.0))) if wide else None
        # One ten-thousandth: levels are rounded.
        if gap <= self.relative_gap * low.value * 1.0001:
            return None
        return self._level(rounded(math.sqrt(low.value * high.value)))

    def required_level(self) -> LoadLevel | None:
        """The lowest level that shows the required capacity; None without one, or beyond the search's levels."""
        if self.required is None or not self.floor <= self.required <= self.last:
            return None
        return self._level(math.ceil(self.required) if self.kind is LevelKind.CLIENTS else self.required)

    def _level(self, value: float) -> LoadLevel:
        return LoadLevel(self.kind, value)

    def _check(self) -> None:
        if not 0.0 < self.floor <= self.first <= self.last < math.inf:
            raise UsageError(
                f"a search from {units.tidy(self.first)} to {units.tidy(self.last)} {self.kind} (floor "
                f"{units.tidy(self.floor)}) has no levels",
                "0 < floor <= first <= last",
            )
        if not 1.0 < self.factor <= 100.0:
            raise UsageError(f"the search's factor is {units.tidy(self.factor)}", "above 1, at most 100; 2 doubles")
        if not 0.001 <= self.relative_gap <= 1.0:
            raise UsageError(
                f"the search's relative gap is {units.tidy(self.relative_gap)}", "from 0.001 to 1; 0.05 is 5 %"
            )
        if self.times < 1 or self.budget_steps < 1:
            raise UsageError(f"the search has {self.budget_steps} steps and {self.times} times", "both are at least 1")
        levels = self.ladder or (self.first, self.last, self.floor)
        if self.kind is LevelKind.CLIENTS and any(value != math.floor(value) for value in levels):
            raise UsageError("a level of the search is not a whole number of clients")
        if any(item >= other for item, other in pairwise(self.ladder)):
            raise UsageError("the levels of the search must increase")


def rounded(value: float) -> float:
    """Round to 4 significant digits, so that a level can be reported and requested again."""
    return units.rounded(value, _DIGITS)
