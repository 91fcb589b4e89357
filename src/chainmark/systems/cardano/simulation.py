"""Simulated figures: means over batches of blocks, with their Monte Carlo errors.

A batch is a function of the scenario, its number and its size alone. A what-if keeps the numbers and the seed, so that
both sides use the same draws and a difference is computed batch by batch, which cancels most of the noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from chainmark._native import simulate_batches
from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.systems.cardano.model.results import Modelled
from chainmark.systems.cardano.scenario import Scenario

BATCHES = 32
# Two rounds per batch in which each of 52 hosts forges once: the error of an adoption centile is then below 2 ms.
DEFAULT_BLOCKS = 3328
# A block causes about 11 events per host: this many host-blocks are a few seconds' work on one core.
HOST_BLOCKS_MAX = 1_000_000
HOSTS_MANY = 300
BLOCKS_MIN = 64


class Batches(Protocol):
    """The result of a simulator: ``[batch][figure]``, means over ordinary blocks and over the slow stratum."""

    @property
    def figures(self) -> list[str]:
        """Names of the columns."""

    @property
    def normal(self) -> list[list[float]]:
        """Means over the ordinary blocks of each batch."""

    @property
    def slow(self) -> list[list[float]]:
        """Means over the slow blocks of each batch."""


# (scenario as JSON, blocks per batch, first batch, batches, threads) → means; ValueError for an impossible scenario.
Simulate = Callable[[str, int, int, int, int], Batches]
OnProgress = Callable[[float], None]


@dataclass(frozen=True)
class Portion:
    """One batch for a machine to simulate; the scenario is JSON."""

    scenario: str
    blocks: int
    batch: int


@dataclass(frozen=True)
class SimulatedMeans:
    """The results of machines, as `Batches`."""

    figures: list[str]
    normal: list[list[float]]
    slow: list[list[float]]


def simulate_there(portion: Portion) -> SimulatedMeans:
    """One batch, on the machine of a worker, by one thread.

    Raises:
        ValueError: the scenario is invalid.
    """
    batch = simulate_batches(portion.scenario, portion.blocks, portion.batch, 1, 1)
    return SimulatedMeans(batch.figures, batch.normal, batch.slow)


def simulator_on(machines: Machines | None) -> Simulate:
    """The simulator in Rust, on other machines if there are some: each batch runs on any free one."""
    if machines is None:
        return simulate_batches

    def simulate(scenario: str, blocks_per_batch: int, first_batch: int, batches: int, _threads: int) -> SimulatedMeans:
        portions = [Portion(scenario, blocks_per_batch, first_batch + number) for number in range(batches)]
        made: list[SimulatedMeans] = machines.map(simulate_there, portions)
        normal, slow = ([row for means in made for row in rows(means)] for rows in (_normal, _slow))
        return SimulatedMeans(made[0].figures, normal, slow)

    return simulate


@dataclass(frozen=True)
class Simulated:
    """The figures of one scenario.

    Attributes:
        values: array of shape (batches, figures), the two strata already weighted.
        blocks_per_batch: the ordinary blocks of one batch.
    """

    names: dict[str, int]
    values: NDArray[np.float64]
    blocks_per_batch: int

    @property
    def blocks(self) -> int:
        """Simulated ordinary blocks; the slow stratum has a quarter as many."""
        return self.blocks_per_batch * len(self.values)

    def mean(self, name: str) -> float:
        """The mean over all batches, in the figure's unit."""
        return _estimate(self.values[:, self.names[name]]).value

    def modelled(self, name: str) -> Modelled:
        """The same with its Monte Carlo standard error: standard deviation over batches / sqrt(batches)."""
        return _estimate(self.values[:, self.names[name]])

    def fetch_between(self, a: int, b: int) -> Modelled | None:
        """The mean fetch duration between two regions, either way; None if nothing was fetched between them."""
        name = f"fetch_{min(a, b)}_{max(a, b)}_s"
        result = self.modelled(name) if name in self.names else None
        return result if result is not None and math.isfinite(result.value) else None

    def difference(self, other: Simulated, name: str) -> Modelled:
        """This minus the other, batch by batch."""
        return _estimate(self.values[:, self.names[name]] - other.values[:, other.names[name]])

    def block_sd(self, name: str) -> float:
        """Standard deviation from block to block, as far as batches show it."""
        column = self.values[:, self.names[name]]
        return float(np.std(column, ddof=1)) * math.sqrt(self.blocks_per_batch) if len(column) > 1 else 0.0


def _estimate(values: NDArray[np.float64]) -> Modelled:
    """Of the batches that have the figure: a batch of few blocks may have nothing to measure."""
    if np.isnan(values).any() and not np.isnan(values).all():
        values = values[~np.isnan(values)]
    n = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Modelled(value=float(np.mean(values)), standard_error=error)


@dataclass(frozen=True)
class Simulator:
    """Simulates scenarios.

    Attributes:
        blocks: approximate number of ordinary blocks to simulate per scenario; None derives it from the number of
            hosts.
        threads: 0 for all cores. The figures do not depend on it.
    """

    blocks: int | None = None
    threads: int = 0
    batches: int = BATCHES
    simulate: Simulate = simulate_batches

    def blocks_per_batch(self, hosts: int, round_blocks: int | None = None) -> int:
        """Whole rounds in which every host forges its share, if that number of blocks was requested.

        The distribution of forgers is the largest source of noise, and whole rounds have none: in each batch, or, if a
        round is longer than a batch, in all of them together.

        Args:
            round_blocks: blocks of a round; None: each host forges one.
        """
        item = hosts if round_blocks is None else round_blocks
        wanted = math.ceil((default_blocks(hosts) if self.blocks is None else self.blocks) / self.batches)
        rounds = round(wanted / max(1, item))
        if rounds >= 1:
            return rounds * item
        whole = round(wanted * self.batches / item)
        return math.ceil(whole * item / self.batches) if round_blocks is not None and whole >= 1 else max(1, wanted)

    def run(self, scenario: Scenario, on_progress: OnProgress | None = None) -> Simulated:
        """Simulate all batches, in portions; progress is reported and interruptions are handled in between.

        Raises:
            UsageError: the scenario is invalid.
        """
        text = scenario.json_text()
        size = self.blocks_per_batch(scenario.cluster.host_count, scenario.cluster.round_blocks)
        portion = max(8, os.cpu_count() or 1)
        parts: list[Batches] = []
        for first in range(0, self.batches, portion):
            number = min(portion, self.batches - first)
            try:
                parts.append(self.simulate(text, size, first, number, self.threads))
            except ValueError as error:
                message, _, hint = str(error).partition("\nhint: ")
                raise UsageError(message, hint or None) from error
            if on_progress is not None:
                on_progress((first + number) / self.batches)
        q = scenario.parameters.slow_block_probability
        normal, slow = (np.array([row for part in parts for row in rows(part)]) for rows in (_normal, _slow))
        names = {name: index for index, name in enumerate(parts[0].figures)}
        # If no slow block has a figure, the others provide it.
        slow = np.where(np.isnan(slow), normal, slow)
        return Simulated(names, (1.0 - q) * normal + q * slow, size)


def _normal(part: Batches) -> list[list[float]]:
    return part.normal


def _slow(part: Batches) -> list[list[float]]:
    return part.slow


def default_blocks(hosts: int) -> int:
    """The number of blocks that takes seconds: at least a round per batch up to 300 hosts, then fewer."""
    if hosts <= HOSTS_MANY:
        return max(DEFAULT_BLOCKS, BATCHES * hosts)
    return max(BLOCKS_MIN, min(DEFAULT_BLOCKS, HOST_BLOCKS_MAX // hosts))
