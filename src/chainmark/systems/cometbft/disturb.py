"""Perturbations: applied to nodes while the load runs and undone in time, with the recovery measured.

A node has recovered when it has the network's height at the moment of undoing, and reports that it no longer catches
up. Partitioned nodes all have that height at once if the chain halted: they have recovered when each has one block
more.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cometbft.instruments import STOP_TIMEOUT_S, Instruments
from chainmark.systems.cometbft.launch import CometNode
from chainmark.systems.cometbft.profile import Perturbation

NS = 1_000_000_000
LOOK_S = 0.05
IDLE_S = 0.2
# Kinds that end a node's process and start another one.
RESTARTING = ("kill", "restart", "upgrade")
_EVENT_TEXTS = {
    "kill": "killed",
    "pause": "paused",
    "restart": "stopped",
    "upgrade": "stopped",
    "disconnect": "disconnected",
    "partition": "cut off from the others",
}

PERTURBATION_SCHEMA: dict[str, type[pl.DataType]] = {
    "perturbation": pl.Int64,
    "kind": pl.String,
    "host": pl.String,
    "version": pl.String,
    "begun_ns": pl.Int64,
    "undone_ns": pl.Int64,
    "recovered_ns": pl.Int64,
    "height_begun": pl.Int64,
    "height_undone": pl.Int64,
}


class CuttableLinks(Protocol):
    """Links between nodes that can be cut."""

    def disconnect(self, name: str) -> None:
        """Cut a node off from all others."""

    def reconnect(self, name: str) -> None:
        """Undo it."""

    def partition(self, groups: Sequence[Sequence[str]]) -> None:
        """Cut groups off from one another."""

    def heal(self) -> None:
        """Undo it."""


@dataclass
class Disturbance:
    """One perturbation with its outcome."""

    number: int
    plan: Perturbation
    nodes: list[CometNode]
    waiting_for: list[CometNode]
    begin_ns: int
    end_ns: int
    begun_ns: int | None = None
    undone_ns: int | None = None
    height_begun: int = 0
    height_undone: int = 0
    recovered_ns: dict[str, int] = field(default_factory=dict)
    given_up: bool = False

    @property
    def finished(self) -> bool:
        """Whether all of its nodes have recovered, or are no longer waited for."""
        return self.given_up or (self.undone_ns is not None and len(self.recovered_ns) == len(self.waiting_for))

    @property
    def failures(self) -> list[str]:
        """The nodes that did not recover."""
        return [node.name for node in self.waiting_for if node.name not in self.recovered_ns]

    def rows(self) -> list[tuple[object, ...]]:
        """One row per node whose recovery was waited for."""
        return [
            (
                *(self.number, self.plan.kind, node.name, self.plan.version, self.begun_ns, self.undone_ns),
                *(self.recovered_ns.get(node.name), self.height_begun, self.height_undone),
            )
            for node in self.waiting_for
        ]


class Disturber:
    """All perturbations of a run, one step at a time."""

    def __init__(
        self,
        instruments: Instruments,
        plans: Sequence[Perturbation],
        window_start_ns: int,
        recovery_timeout_s: float,
        links: CuttableLinks | None,
    ) -> None:
        self._instruments = instruments
        self._links = links
        self._timeout_ns = round(recovery_timeout_s * NS)
        self.disturbances = [self._planned(index + 1, plan, window_start_ns) for index, plan in enumerate(plans)]

    def _planned(self, number: int, plan: Perturbation, window_start_ns: int) -> Disturbance:
        network = self._instruments.network
        nodes = [network.node(f"node{index}") for index in plan.nodes]
        begin_ns, end_ns = (window_start_ns + round(at_s * NS) for at_s in (plan.at_s, plan.end_s))
        return Disturbance(number, plan, nodes, network.nodes if plan.kind == "partition" else nodes, begin_ns, end_ns)

    def step(self) -> None:
        """Begin what is due, undo what has lasted long enough, check which nodes have recovered."""
        for disturbance in self.disturbances:
            if disturbance.finished:
                continue
            now_ns = time.time_ns()
            if disturbance.begun_ns is None:
                if now_ns >= disturbance.begin_ns:
                    self._begin(disturbance)
            elif disturbance.undone_ns is None:
                if now_ns >= disturbance.end_ns:
                    self._undo(disturbance)
            else:
                self._look(disturbance)

    def rest_s(self) -> float:
        """Until the next step is due, but no longer than the load may be unattended."""
        now_ns = time.time_ns()
        rests = [IDLE_S]
        for disturbance in self.disturbances:
            if disturbance.begun_ns is None:
                rests.append((disturbance.begin_ns - now_ns) / NS)
            elif disturbance.undone_ns is None and now_ns < disturbance.end_ns:
                rests.append((disturbance.end_ns - now_ns) / NS)
            elif not disturbance.finished:
                rests.append(LOOK_S)
        return max(0.0, min(rests))

    def load_ended(self) -> None:
        """All begin within the load, which the profile's validation ensures."""

    def finished(self) -> bool:
        """Whether all of them are over."""
        return all(disturbance.finished for disturbance in self.disturbances)

    def frame(self) -> pl.DataFrame:
        """The outcome of every perturbation on every node."""
        rows = [row for disturbance in self.disturbances for row in disturbance.rows()]
        return pl.DataFrame(rows, schema=PERTURBATION_SCHEMA, orient="row")

    def problems(self) -> list[str]:
        """A sentence for every perturbation from which a node did not recover."""
        return [
            f"{name} did not recover from perturbation {disturbance.number} ({disturbance.plan.kind})"
            for disturbance in self.disturbances
            for name in disturbance.failures
        ]

    def _others(self, disturbance: Disturbance) -> list[CometNode]:
        """The nodes that know the network's height meanwhile: those outside the partition."""
        alive = self._instruments.network.alive()
        return (
            alive if disturbance.plan.kind == "partition" else [node for node in alive if node not in disturbance.nodes]
        )

    def _begin(self, disturbance: Disturbance) -> None:
        for node in disturbance.nodes:
            if disturbance.plan.kind in {"kill", "pause", "restart", "upgrade"}:
                self._instruments.scraper.expect_silence(node.name)
            self._break(disturbance.plan.kind, node)
        if disturbance.plan.kind == "partition":
            side = [node.name for node in disturbance.nodes]
            rest = [node.name for node in self._instruments.network.started if node.name not in side]
            self._require_links().partition([side, rest])
        # Queried earlier, a busy machine would have made blocks in between that no node missed.
        disturbance.height_begun = self._instruments.height(self._others(disturbance))
        names = ", ".join(node.name for node in disturbance.nodes)
        disturbance.begun_ns = self._instruments.note(f"{names} {_EVENT_TEXTS[disturbance.plan.kind]}", planned=True)

    def _break(self, kind: str, node: CometNode) -> None:
        if kind == "kill":
            node.process.signal(signal.SIGKILL, ends=True)
        elif kind in {"restart", "upgrade"}:
            node.process.signal(signal.SIGTERM, ends=True)
        elif kind == "pause":
            node.process.signal(signal.SIGSTOP)
        elif kind == "disconnect":
            self._require_links().disconnect(node.name)

    def _require_links(self) -> CuttableLinks:
        if self._links is None:
            raise EnvironmentFailure(
                "nodes can be disconnected only if there are emulated links between them",
                "add them with `--set network.links=namespaces`",
            )
        return self._links

    def _undo(self, disturbance: Disturbance) -> None:
        if disturbance.plan.kind in RESTARTING and not self._ended(disturbance):
            return
        disturbance.height_undone = self._instruments.height(self._others(disturbance))
        for node in disturbance.nodes:
            self._mend(disturbance, node)
            self._instruments.scraper.expect_answers(node.name)
        if disturbance.plan.kind == "partition":
            self._require_links().heal()
        names = ", ".join(node.name for node in disturbance.nodes)
        with_version = f" with {disturbance.plan.version}" if disturbance.plan.version else ""
        done = "restarted" if disturbance.plan.kind in RESTARTING else "resumed"
        disturbance.undone_ns = self._instruments.note(f"{names} {done}{with_version}", planned=True)

    def _ended(self, disturbance: Disturbance) -> bool:
        """Whether the processes have exited; one that ignores its signal is killed."""
        late = time.time_ns() - (disturbance.begun_ns or 0) > STOP_TIMEOUT_S * NS
        for node in disturbance.nodes:
            if late and not node.process.ended():
                self._instruments.kill(node)
        return all(node.process.ended() for node in disturbance.nodes)

    def _mend(self, disturbance: Disturbance, node: CometNode) -> None:
        if disturbance.plan.kind in RESTARTING:
            if disturbance.plan.version:
                node.binary = self._instruments.network.binaries[disturbance.plan.version]
            self._instruments.start(node)
        elif disturbance.plan.kind == "pause":
            node.process.signal(signal.SIGCONT)
        elif disturbance.plan.kind == "disconnect":
            self._require_links().reconnect(node.name)

    def _look(self, disturbance: Disturbance) -> None:
        beyond = 1 if disturbance.plan.kind == "partition" else 0
        for node in disturbance.waiting_for:
            if node.name in disturbance.recovered_ns:
                continue
            state = self._instruments.state(node)
            if state and state.height >= disturbance.height_undone + beyond and not state.catching_up:
                disturbance.recovered_ns[node.name] = time.time_ns()
        if time.time_ns() - (disturbance.undone_ns or 0) > self._timeout_ns:
            disturbance.given_up = True
            for name in disturbance.failures:
                self._instruments.note(f"{name} has not recovered")


def planned_starts(plans: Sequence[Perturbation]) -> Counter[str]:
    """The planned number of restarts of each node."""
    return Counter(f"node{index}" for plan in plans if plan.kind in RESTARTING for index in plan.nodes)
