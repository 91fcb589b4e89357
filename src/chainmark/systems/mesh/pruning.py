"""Whether a server is pruned, and its first available block: read from the server, never typed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainmark.core import units
from chainmark.core.metric import SharedFact
from chainmark.systems.mesh import bodies, expectations
from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.discovery import DiscoveredServer, FirstResponse, Offering, ask

PRUNING = SharedFact(
    id="pruning",
    label="pruning of blocks",
    explanation="The servers store different blocks, so the same request reads different amounts of data.",
)
SPENT = SharedFact(
    id="spent_outputs",
    label="removal of spent outputs",
    explanation="The servers remove different spent outputs, so the same request reads different amounts of data.",
)
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Pruning:
    """The blocks that a server stores; no Mesh server reports what else it may have dropped.

    Attributes:
        pruned: None if it neither reports it nor returns any block.
        oldest: the first available block; available: number of blocks from it to the newest.
        is_reported: whether `/network/status` names that block.
    """

    pruned: bool | None
    oldest: int = 0
    available: int = 0
    is_reported: bool = False

    @property
    def condition(self) -> str:
        """For comparisons: the number of stored blocks, rounded, since the window of a server moves.

        The rounding is to one digit: a week's blocks and a month's differ, two tests of one server do not.
        """
        if self.pruned is None:
            return NOT_STATED
        return f"on, about {units.count(_rounded(self.available))} newest blocks" if self.pruned else "off"

    @property
    def words(self) -> str:
        """For a report: the exact value with its source."""
        if self.pruned is None:
            return NOT_STATED
        by = "reported as `oldest_block_identifier`" if self.is_reported else "the first block that the server returns"
        if not self.pruned:
            return f"off ({by})" if self.is_reported else "off (the server returns the first blocks of the chain)"
        return f"on, oldest block {units.count(self.oldest)} ({by})"


def pruning_words(*stated: str) -> list[str]:
    """The search labels of a run with a stated pruning of spent outputs: "pruning enabled, 7 days", and shorter."""
    return list(dict.fromkeys([f"pruning {stated[0]}", *stated])) if stated[0] else []


def read_pruning(server: DiscoveredServer, client: MeshClient) -> Pruning:
    """Request the oldest block; if that is refused, search for the first available one.

    A server that only lacks the very first block is not pruned: some have no block for their genesis.
    """
    if server.offer(bodies.BLOCK).state is not Offering.OFFERED:
        return Pruning(None) if server.oldest is None else _pruning(server, server.oldest.index)
    result = first_answered(server, client, server.first_index, server.current.index)
    return Pruning(None) if result is None else _pruning(server, result)


def _pruning(server: DiscoveredServer, oldest: int) -> Pruning:
    reported = server.oldest is not None and server.oldest.index == oldest
    return Pruning(oldest > server.genesis.index + 1, oldest, max(1, server.current.index - oldest + 1), reported)


def first_answered(server: DiscoveredServer, client: MeshClient, first: int, last: int) -> int | None:
    """The first available block from ``first`` to ``last``, by bisection; None if the last is unavailable."""
    if ask_block(server, client, first).reason is None:
        return first
    if ask_block(server, client, last).reason is not None:
        return None
    refused, answered = first, last
    while answered - refused > 1:
        middle = (refused + answered) // 2
        if ask_block(server, client, middle).reason is None:
            answered = middle
        else:
            refused = middle
    return answered


def ask_block(server: DiscoveredServer, client: MeshClient, index: int) -> FirstResponse:
    """Request a block by its index alone."""
    body = bodies.block(server.network, {"index": index})
    return ask(client, bodies.BLOCK, body, expectations.block({"index": index}))


def _rounded(count: int) -> int:
    """Rounded to one digit."""
    power = 10 ** math.floor(math.log10(count))
    return int(round(count / power) * power)
