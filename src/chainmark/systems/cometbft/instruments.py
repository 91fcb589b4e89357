"""What watches a run's processes while nodes are started anew, made silent or joined beside the load."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from chainmark.core.manifest import Incident
from chainmark.network.sampling import ResourceSampler, Scraper
from chainmark.systems.cometbft.launch import CometNetwork, CometNode
from chainmark.systems.cometbft.rpc import RpcClient, RpcError, SyncState

# A node that is paused or just starting must not hold up what else is done in the meantime.
ANSWER_TIMEOUT_S = 0.5


class Companion(Protocol):
    """Something that is done to the network while the load runs, in steps that do not wait.

    Steps are made by the main thread: the kernel ends a node with the thread that started it.
    """

    def step(self) -> None:
        """Do what is due."""

    def rest_s(self) -> float:
        """Seconds for which nothing is to be done."""

    def load_ended(self) -> None:
        """Begin nothing new: there is no load any more."""

    def finished(self) -> bool:
        """Whether all is done."""


@dataclass
class Instruments:
    """The running network with its samplers, and the notes of what was done to it."""

    network: CometNetwork
    sampler: ResourceSampler
    scraper: Scraper
    incidents: list[Incident] = field(default_factory=list)
    _clients: dict[str, RpcClient] = field(default_factory=dict)
    _height: int = 0

    def note(self, what: str, *, planned: bool = False) -> int:
        """Write down what was done just now; its time in ns since the epoch."""
        now_ns = time.time_ns()
        self.incidents.append(Incident(time_ns=now_ns, what=f"planned: {what}" if planned else what, planned=planned))
        return now_ns

    def start(self, node: CometNode) -> None:
        """Start a node (anew) and sample its process."""
        self.network.start(node)
        self.sampler.follow(node.name, node.pids)

    def state(self, node: CometNode) -> SyncState | None:
        """How far a node is, or None where it does not answer at once."""
        client = self._clients.setdefault(node.name, RpcClient(node.address, timeout_s=ANSWER_TIMEOUT_S))
        try:
            return client.sync_state()
        except RpcError:
            return None

    def height(self, nodes: list[CometNode]) -> int:
        """The highest height that one of these nodes knows; where none answers at once, what was known before."""
        states = [self.state(node) for node in nodes]
        self._height = max([self._height, *(state.height for state in states if state is not None)])
        return self._height
