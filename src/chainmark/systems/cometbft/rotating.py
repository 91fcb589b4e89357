"""Full nodes that join one after another, without any data, while the load runs, and must catch up with the network.

The network continues while a node catches up: at every check its height is read again, before the joining node's. A
node has caught up when it has at least that height and reports that it no longer catches up.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field

import polars as pl

from chainmark.systems.cometbft.instruments import STOP_TIMEOUT_S, Instruments
from chainmark.systems.cometbft.launch import CometNode
from chainmark.systems.cometbft.profile import Rotating
from chainmark.systems.cometbft.shape import Role

NS = 1_000_000_000
LOOK_S = 0.1
IDLE_S = 0.2

JOINER_SCHEMA: dict[str, type[pl.DataType]] = {
    "host": pl.String,
    "started_ns": pl.Int64,
    "answered_ns": pl.Int64,
    "caught_up_ns": pl.Int64,
    "height": pl.Int64,
    "under_load": pl.Boolean,
}
HEIGHT_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "height": pl.Int64,
    "network_height": pl.Int64,
    "catching_up": pl.Boolean,
}


@dataclass
class Joiner:
    """One joining node with its outcome."""

    node: CometNode
    started_ns: int | None = None
    answered_ns: int | None = None
    caught_up_ns: int | None = None
    height: int | None = None
    under_load: bool = False
    over: bool = False


@dataclass
class Rotation:
    """All joining nodes of a run, one step at a time."""

    instruments: Instruments
    plan: Rotating
    joiners: list[Joiner] = field(init=False)
    _heights: list[tuple[object, ...]] = field(default_factory=list)
    _loaded: bool = True

    def __post_init__(self) -> None:
        members = self.instruments.network.members
        self.joiners = [Joiner(node) for node in members if node.role is Role.JOINER]

    def step(self) -> None:
        """Start the next one, or check the height of the current one."""
        current = next((joiner for joiner in self.joiners if not joiner.over), None)
        if current is None:
            return
        network_height = self.instruments.height(self.instruments.network.alive()[:1])
        if current.started_ns is None:
            if not self._loaded:
                current.over = True
            elif network_height >= self.plan.min_height:
                self._start(current)
            return
        if current.caught_up_ns is None:
            self._look(current, network_height)
        elif current.node.process.ended():
            current.over = True
        elif time.time_ns() - current.caught_up_ns > STOP_TIMEOUT_S * NS:
            self.instruments.kill(current.node)
            current.over = True

    def _start(self, joiner: Joiner) -> None:
        self.instruments.start(joiner.node)
        joiner.started_ns = self.instruments.note(f"{joiner.node.name} joined", planned=True)

    def _look(self, joiner: Joiner, network_height: int) -> None:
        state = self.instruments.state(joiner.node)
        now_ns = time.time_ns()
        if state is not None:
            joiner.answered_ns = joiner.answered_ns or now_ns
            self._heights.append((now_ns, joiner.node.name, state.height, network_height, state.catching_up))
            if state.height >= network_height and not state.catching_up:
                joiner.caught_up_ns, joiner.height, joiner.under_load = now_ns, state.height, self._loaded
                joiner.node.process.signal(signal.SIGTERM, ends=True)
                return
        died = joiner.node.process.ended()
        if died or now_ns - (joiner.started_ns or 0) > self.plan.catch_up_timeout_s * NS:
            joiner.over = True
            self.instruments.note(f"{joiner.node.name} {'died' if died else 'did not catch up'}")
            joiner.node.process.signal(signal.SIGKILL, ends=True)

    def rest_s(self) -> float:
        """Short while one catches up, so that a time can be measured."""
        return IDLE_S if self.finished() else LOOK_S

    def load_ended(self) -> None:
        """A node that has not joined by now does not join under load."""
        self._loaded = False

    def finished(self) -> bool:
        """Whether all have joined and left."""
        return all(joiner.over for joiner in self.joiners)

    def frame(self) -> pl.DataFrame:
        """The outcome of every joining node."""
        rows = [
            (
                joiner.node.name,
                joiner.started_ns,
                joiner.answered_ns,
                joiner.caught_up_ns,
                joiner.height,
                joiner.under_load,
            )
            for joiner in self.joiners
        ]
        return pl.DataFrame(rows, schema=JOINER_SCHEMA, orient="row")

    def heights(self) -> pl.DataFrame:
        """Every check: the joining node's height and that of the network just before."""
        return pl.DataFrame(self._heights, schema=HEIGHT_SCHEMA, orient="row")

    def failed(self) -> bool:
        """Whether a started node did not catch up; if none was started, the load may be the cause."""
        return any(joiner.started_ns is not None and joiner.caught_up_ns is None for joiner in self.joiners)

    def problems(self) -> list[str]:
        """A sentence for every node that did not join under load."""
        return [_problem(joiner) for joiner in self.joiners if not joiner.under_load]


def _problem(joiner: Joiner) -> str:
    if joiner.started_ns is None:
        return f"{joiner.node.name} was not started before the load ended"
    if joiner.caught_up_ns is None:
        return f"{joiner.node.name} did not catch up"
    return f"{joiner.node.name} caught up only after the load"
