"""The interface of links between nodes, for all backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chainmark.network.namespaces import Namespace


@dataclass(frozen=True)
class NodeAddress:
    """A node's address for the other nodes and for the host."""

    name: str
    address: str


@dataclass(frozen=True)
class LinkStats:
    """The outcome of the packets, and the deviation of the links from their intended properties.

    ``packets`` and ``bytes`` are those that the links received; None if the backend only counts outcomes.
    Packets that were read are delivered, dropped (by class) or in flight; ``unread`` are those that were dropped before
    the links saw them. The added error is that of each delayed packet: the time of its delivery minus the time at which
    it was due. None if the backend does not measure it.
    """

    packets: int | None
    bytes: int | None
    delivered: int
    delivered_bytes: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    under_way: int = 0
    unread: int = 0
    resets: int = 0
    delayed: int | None = None
    error_p50_s: float | None = None
    error_p99_s: float | None = None
    error_max_s: float | None = None
    cpu_s: float | None = None
    realtime: bool | None = None

    @property
    def balanced(self) -> bool:
        """Whether every packet is in exactly one class; true as well if the number of received packets is unknown."""
        if self.packets is None:
            return True
        return self.packets == self.delivered + sum(self.dropped.values()) + self.under_way


class Fabric(Protocol):
    """The backend of the links: the delay switch, or the kernel. Nodes are numbered in the order of the plan."""

    @property
    def namespaces(self) -> Sequence[Namespace]:
        """The namespace of each node."""

    def cut(self, node: int, *, reset: bool) -> None:
        """Cut a node off from all others."""

    def mend(self, node: int) -> None:
        """Undo :meth:`cut`."""

    def partition(self, groups: Sequence[int], *, reset: bool) -> None:
        """Cut nodes of different groups off from one another."""

    def heal(self) -> None:
        """Undo :meth:`partition`."""

    def stats(self) -> LinkStats:
        """The current state."""

    def close(self) -> LinkStats:
        """Remove the links; their last state."""
