"""Instruments that record what an activity on the nodes does, in order, on a network without processes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, cast

from chainmark.systems.cometbft.instruments import Instruments
from chainmark.systems.cometbft.launch import CometNode
from chainmark.systems.cometbft.rpc import SyncState
from chainmark.systems.cometbft.shape import Role

from tests.unit.systems.cometbft.scripted_network import Clock, Process, Scripted


class Signalled(Process):
    """A node's process, which ends on SIGKILL, and on SIGTERM unless it ignores that."""

    def __init__(self, name: str, journal: list[str]) -> None:
        super().__init__()
        self.ignores = False
        self._name, self._journal = name, journal

    def signal(self, number: signal.Signals, *, ends: bool = False) -> None:
        """Record it."""
        self._journal.append(f"{self._name} {number.name}{' ends' if ends else ''}")
        ending = {signal.SIGKILL} if self.ignores else {signal.SIGKILL, signal.SIGTERM}
        self.is_over = self.is_over or number in ending


class Recorded:
    """The instruments, and the links between the nodes.

    Attributes:
        journal: everything that was done.
        states: what the nodes report; None: nothing.
        reached: the height of the network.
    """

    def __init__(self, folder: Path, clock: Clock, roles: dict[str, Role]) -> None:
        self.clock = clock
        self.journal: list[str] = []
        self.network = Scripted(folder, clock, len(roles)).network
        self.network.binaries = {"v2": Path("newer")}
        for node, (name, role) in zip(self.network.members, roles.items(), strict=True):
            node.name, node.role = name, role
            node.current = cast(Any, Signalled(name, self.journal))
        self.states: dict[str, SyncState | None] = {}
        self.reached = 0

    kill = cast(Any, Instruments.kill)

    @property
    def scraper(self) -> Recorded:
        """It records in the same journal."""
        return self

    def process(self, name: str) -> Signalled:
        """The process of a node."""
        return cast(Signalled, self.network.node(name).process)

    def done(self) -> list[str]:
        """What was done since the last call."""
        entries = list(self.journal)
        self.journal.clear()
        return entries

    def expect_silence(self, name: str) -> None:
        """Record it."""
        self.journal.append(f"silence of {name}")

    def expect_answers(self, name: str) -> None:
        """Record it."""
        self.journal.append(f"answers of {name}")

    def note(self, what: str, *, planned: bool = False) -> int:
        """Record it, and return the time."""
        self.journal.append(f"{'planned: ' if planned else ''}{what}")
        return self.clock.time_ns()

    def start(self, node: CometNode) -> None:
        """Record it, and replace the process."""
        self.journal.append(f"start {node.name} as {node.binary}")
        node.current = cast(Any, Signalled(node.name, self.journal))

    def state(self, node: CometNode) -> SyncState | None:
        """As the test sets it."""
        return self.states.get(node.name)

    def height(self, nodes: list[CometNode]) -> int:
        """The same for all."""
        self.journal.append(f"height of {' '.join(node.name for node in nodes)}")
        return self.reached

    def disconnect(self, name: str) -> None:
        """Record it."""
        self.journal.append(f"disconnect {name}")

    def reconnect(self, name: str) -> None:
        """Record it."""
        self.journal.append(f"reconnect {name}")

    def partition(self, groups: list[list[str]]) -> None:
        """Record it."""
        self.journal.append(f"partition {' | '.join(' '.join(group) for group in groups)}")

    def heal(self) -> None:
        """Record it."""
        self.journal.append("heal")
