"""How well a search finds a known capacity: ``python -m benches.search.run [SEEDS]``.

Searches with the default plans on simulated servers whose capacity follows from queueing theory. Prints the table of
docs/concepts/capacity.md. The result does not depend on other load on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.search import SearchResult, search
from chainmark.capacity.service_level import Sla

from tests.unit.capacity.queueing import Server, closed_exponential_slower, highest, md_1_slower, mm_c_slower

SEEDS = 100
# The pause between two steps.
PAUSE_S = 1.0


@dataclass(frozen=True)
class Case:
    """A server, its limit and its true capacity."""

    name: str
    true: float
    workers: int
    service_s: float
    limit_s: float
    service: Literal["constant", "exponential"] = "constant"
    schedule: Literal["even", "poisson"] = "even"
    by_clients: bool = False

    def search(self, seed: int) -> SearchResult:
        """One search, with the noise of a given seed."""
        sla = Sla(p99_s=self.limit_s)
        server = Server(self.workers, self.service_s, self.service, self.schedule, seed=seed, sla=sla)
        return search(server.measure, SearchPlan.of_clients() if self.by_clients else SearchPlan.of_rates())


def _random(workers: int, service_s: float, limit_s: float) -> Case:
    true = highest(lambda rate: mm_c_slower(rate, workers, service_s, limit_s) <= 0.01, 1.0, workers / service_s)
    name = f"M/M/{workers}, {1e3 * service_s:.0f} ms"
    return Case(name, true, workers, service_s, limit_s, "exponential", "poisson")


def _queue(service_s: float, limit_s: float) -> Case:
    true = highest(lambda rate: md_1_slower(rate, service_s, limit_s) <= 0.01, 1.0, 1.0 / service_s)
    return Case(f"M/D/1, {1e3 * service_s:.0f} ms", true, 1, service_s, limit_s, "constant", "poisson")


def _clients(workers: int, service_s: float, limit_s: float) -> Case:
    true = max(n for n in range(1, 1024) if closed_exponential_slower(n, workers, service_s, limit_s) <= 0.01)
    name = f"clients, M, {workers} × {1e3 * service_s:.0f} ms"
    return Case(name, true, workers, service_s, limit_s, "exponential", by_clients=True)


CASES = (
    Case("D/D/4, 5 ms", 800.0, 4, 0.005, 1.0),
    Case("D/D/1, 10 ms", 100.0, 1, 0.01, 1.0),
    _queue(0.01, 0.1),
    _queue(0.002, 0.02),
    _random(1, 0.002, 0.05),
    _random(1, 0.01, 1.0),
    _random(4, 0.01, 0.1),
    _random(8, 0.005, 0.0325),
    Case("clients, D, 4 × 50 ms", 81.0, 4, 0.05, 1.02, by_clients=True),
    Case("clients, D, 2 × 10 ms", 100.0, 2, 0.01, 0.5, by_clients=True),
    _clients(4, 0.05, 1.0),
    _clients(2, 0.01, 0.2),
    _clients(8, 0.02, 1.0),
)


def _row(case: Case, results: Sequence[SearchResult]) -> str:
    capacities = np.array([result.capacity or 0.0 for result in results])
    off = np.abs(capacities / case.true - 1.0)
    holds = np.mean([result.low <= case.true <= (result.high or np.inf) for result in results])
    confirmed = np.mean([result.confirmed for result in results])
    steps = [len(result.steps) for result in results]
    minutes = [
        sum(step.result.warm_up_s + step.result.window_s + PAUSE_S for step in result.steps) / 60 for result in results
    ]
    cells = [
        f"{case.name}, p99 ≤ {_time(case.limit_s)}", f"{case.true:.4g}", f"{np.median(capacities):.4g}",
        f"{np.mean(off <= 0.1):.0%}", f"{np.mean(off <= 0.05):.0%}", f"{holds:.0%}", f"{confirmed:.0%}",
        f"{np.median(steps):.0f} ({max(steps)})", f"{np.median(minutes):.1f} min",
    ]  # fmt: skip
    return " | ".join(cells).replace("%", " %")


def _time(limit_s: float) -> str:
    return f"{limit_s:g} s" if limit_s >= 1.0 else f"{1e3 * limit_s:g} ms"


def main() -> None:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    heads = ["server and limit", "true", "median", "within 10 %", "within 5 %", "interval holds it", "confirmed"]
    print(f"| {' | '.join([*heads, 'steps (most)', 'time'])} |\n|{'---|' * 9}")
    with ProcessPoolExecutor() as pool:
        for case in CASES:
            results = list(pool.map(partial(_search, case), range(seeds)))
            print(f"| {_row(case, results)} |", flush=True)


def _search(case: Case, seed: int) -> SearchResult:
    return case.search(seed)


if __name__ == "__main__":
    main()
