"""Samplers of a run's processes while nodes are restarted, silenced or joined during the load."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import Protocol

from chainmark.core.manifest import Incident
from chainmark.network.sampling import ResourceSampler, Scraper
from chainmark.systems.cometbft.launch import CometNetwork, CometNode
from chainmark.systems.cometbft.rpc import RpcClient, RpcError, SyncState

# A node that is paused or just starting must not delay other activities in the meantime.
ANSWER_TIMEOUT_S = 0.5
STOP_TIMEOUT_S = 20.0


class Companion(Protocol):
    """An activity on the network while the load runs, in steps that do not block.

    The main thread makes the steps: the kernel ends a node with the thread that started it.
    """

    def step(self) -> None:
        """Do what is due."""

    def rest_s(self) -> float:
        """Seconds until the next step is due."""

    def load_ended(self) -> None:
        """Begin nothing new: the load has ended."""

    def finished(self) -> bool:
        """Whether all steps are done."""


@dataclass
class Instruments:
    """The running network with its samplers, and the record of the activities."""

    network: CometNetwork
    sampler: ResourceSampler
    scraper: Scraper
    incidents: list[Incident] = field(default_factory=list)
    _clients: dict[str, RpcClient] = field(default_factory=dict)
    _height: int = 0

    def note(self, what: str, *, planned: bool = False) -> int:
        """Record what was done just now; returns its time in ns since the epoch."""
        now_ns = time.time_ns()
        self.incidents.append(Incident(time_ns=now_ns, what=f"planned: {what}" if planned else what, planned=planned))
        return now_ns

    def start(self, node: CometNode) -> None:
        """Start or restart a node and sample its process."""
        self.network.start(node)
        if node.pids:
            self.sampler.follow(node.name, node.pids)

    def kill(self, node: CometNode) -> None:
        """End a node that ignored SIGTERM for `STOP_TIMEOUT_S`."""
        node.process.signal(signal.SIGKILL, ends=True)
        self.note(f"{node.name} did not stop on SIGTERM and was killed")

    def state(self, node: CometNode) -> SyncState | None:
        """The height of a node, or None if it does not respond at once."""
        client = self._clients.setdefault(node.name, RpcClient(node.rpc_address, timeout_s=ANSWER_TIMEOUT_S))
        try:
            return client.sync_state()
        except RpcError:
            return None

    def height(self, nodes: list[CometNode]) -> int:
        """The greatest height of these nodes; if none responds at once, the previous one."""
        states = [self.state(node) for node in nodes]
        self._height = max([self._height, *(state.height for state in states if state is not None)])
        return self._height
