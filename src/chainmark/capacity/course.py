"""Loads that change while they run: a ramp, and a spike with the time that the server needs to recover from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from chainmark.capacity.model import LevelKind, LoadLevel, Phase

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Ramp:
    """A load that rises linearly from ``first`` to ``last``.

    Attributes:
        kind: clients or requests per second.
        times: number of runs.
    """

    kind: LevelKind
    first: float
    last: float
    duration_s: float
    times: int = 1

    @property
    def phase(self) -> Phase:
        """The phase of its steps."""
        return Phase.RAMP

    @property
    def start(self) -> LoadLevel:
        """The level at the start and during the warm-up."""
        return LoadLevel(self.kind, self.first)

    @property
    def peak(self) -> LoadLevel:
        """The highest level."""
        return LoadLevel(self.kind, self.last)

    @property
    def length_s(self) -> float:
        """Total seconds without the warm-up."""
        return self.duration_s

    @property
    def points(self) -> Points:
        """Points of the course: seconds after the warm-up, and the level then."""
        return (0.0, self.first), (self.duration_s, self.last)


@dataclass(frozen=True)
class Spike:
    """A steady load, much more for a short time, and the steady load again.

    Attributes:
        base, top: clients or requests per second, ``base`` before and after, ``top`` at the peak.
        rise_s: time from ``base`` to ``top``; the load falls at once.
        recovery_share: the server has recovered when its p99 is at most this share above its p99 before the spike.
        times: number of runs.
    """

    kind: LevelKind
    base: float
    top: float
    before_s: float = 30.0
    rise_s: float = 0.0
    peak_s: float = 10.0
    after_s: float = 60.0
    recovery_share: float = 0.2
    times: int = 3

    @property
    def phase(self) -> Phase:
        """The phase of its steps."""
        return Phase.SPIKE

    @property
    def start(self) -> LoadLevel:
        """The level at the start and during the warm-up."""
        return LoadLevel(self.kind, self.base)

    @property
    def peak(self) -> LoadLevel:
        """The highest level."""
        return LoadLevel(self.kind, self.top)

    @property
    def over_s(self) -> float:
        """When the load falls again, seconds after the warm-up."""
        return self.before_s + self.rise_s + self.peak_s

    @property
    def length_s(self) -> float:
        """Total seconds without the warm-up."""
        return self.over_s + self.after_s

    @property
    def points(self) -> Points:
        """Points of the course: seconds after the warm-up, and the level then; two points at one time are a jump."""
        risen_s = self.before_s + self.rise_s
        return (self.before_s, self.base), (risen_s, self.top), (self.over_s, self.top), (self.over_s, self.base)


Course = Ramp | Spike


def level_at(points: Sequence[tuple[float, float]], time_s: float) -> float:
    """The level at a time, computed as in the engine: linear between the points, constant outside of them."""
    if time_s < points[0][0]:
        return points[0][1]
    for (begin_s, level), (end_s, following) in pairwise(points):
        if begin_s <= time_s < end_s:
            return level + (following - level) * (time_s - begin_s) / (end_s - begin_s)
    return points[-1][1]
