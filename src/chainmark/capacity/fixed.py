"""Steps at fixed levels, at which two releases or servers are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.capacity.model import LevelKind, LoadLevel, Phase
from chainmark.capacity.plan import rounded
from chainmark.capacity.search import Ask

# Half of the lowest capacity, where queues are short, and four fifths, where they begin to show.
SHARES = (0.5, 0.8)


def fixed_levels(
    kind: LevelKind, capacities: Sequence[float], shares: Sequence[float] = SHARES
) -> tuple[LoadLevel, ...]:
    """The same levels for all sides: shares of the least capacity, so that no side is overloaded.

    Args:
        kind: of the capacities.
        capacities: one per side; a side with capacity zero leaves no level to compare at.
        shares: 0 to 1.
    """
    least = min(capacities, default=0.0)
    if least <= 0.0:
        return ()
    if kind is LevelKind.CLIENTS:
        values = {max(1.0, float(int(least * share))) for share in shares}
    else:
        values = {rounded(least * share) for share in shares}
    return tuple(LoadLevel(kind, value) for value in sorted(values))


def fixed_asks(levels: Iterable[LoadLevel], times: int) -> tuple[Ask, ...]:
    """Repeat the levels, forwards and backwards in turn, so that a drift of the server affects all equally."""
    upwards = tuple(levels)
    rounds = (upwards if turn % 2 == 0 else upwards[::-1] for turn in range(times))
    return tuple(Ask(level, Phase.FIXED) for item in rounds for level in item)
