"""How often a bisection of revisions names the wrong one, and how many runs it needs, by simulation with known truth.

``python -m benches.bisect.run [SEARCHES]`` prints a table for Markdown; it asserts nothing.
The product's own functions control every search: which revision is measured next, next to which end, and when the
result is certain. One of forty revisions, with equal probabilities, contains the change, and two do not build.
Seeds are fixed: the same number of searches gives the same table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chainmark.stats.change_place import SearchedRevisions, SearchedRuns, search

REVISIONS, NOT_BUILDING = 40, 2
ROUNDS_FIRST, MOST_RUNS = 3, 300
NOISES, EFFECTS = (0.02, 0.05, 0.10), (0.15, 0.20, 0.30)
DRIFT, PERIOD, KEPT = 0.05, 90.0, 0.7


@dataclass(frozen=True)
class Found:
    """The result of one search: whether it is right (None without a result), its runs, and its builds."""

    is_right: bool | None
    runs: int
    built: int


def machine(draw: np.random.Generator, noise: float, way: str) -> Callable[[], float]:
    """The deviation of each run: independent, drifting along a wave of ±5 %, or correlated with the previous one."""
    state = {"last": float(draw.standard_normal()), "run": 0.0}

    def deviation() -> float:
        state["run"] += 1.0
        fresh = float(draw.standard_normal())
        if way == "drift":
            return noise * fresh + DRIFT * math.sin(2.0 * math.pi * state["run"] / PERIOD)
        state["last"] = KEPT * state["last"] + math.sqrt(1.0 - KEPT**2) * fresh if way == "like before" else fresh
        return noise * state["last"]

    return deviation


def searched(seed: int, noise: float, effect: float, way: str) -> Found:
    """One search."""
    draw = np.random.default_rng([seed, round(1e4 * noise), round(1e4 * effect)])
    change = int(draw.integers(1, REVISIONS + 1))
    skipped = frozenset(int(place) for place in draw.choice(np.arange(1, REVISIONS), NOT_BUILDING, replace=False))
    deviation = machine(draw, noise, way)

    def run(place: int) -> float:
        return (math.log1p(effect) if place >= change else 0.0) + deviation()

    ends = [place for turn in range(ROUNDS_FIRST) for place in ((0, REVISIONS), (REVISIONS, 0))[turn % 2]]
    first = SearchedRuns(np.array(ends), np.zeros(len(ends), dtype=int), np.array([run(place) for place in ends]))
    row = SearchedRevisions(REVISIONS, skipped)
    seen = search(row, first, run, MOST_RUNS)
    answer = row.answer(row.chances(seen))
    is_right = None if answer is None else answer.before < change <= answer.at
    return Found(is_right, len(seen.values), len(set(seen.places.tolist())))


def line(searches: int, noise: float, effect: float, way: str) -> str:
    """A row of the table."""
    results = [searched(seed, noise, effect, way) for seed in range(searches)]
    wrong = 100.0 * np.mean([search.is_right is False for search in results])
    error = math.sqrt(wrong * (100.0 - wrong) / searches)
    runs = np.array([search.runs for search in results])
    cells = [
        way, f"{noise:.0%}", f"+{effect:.0%}", f"{wrong:.1f} ± {error:.1f}",
        f"{100.0 * np.mean([search.is_right is None for search in results]):.1f}",
        f"{runs.mean():.1f}", f"{np.quantile(runs, 0.9):.0f}", f"{np.mean([search.built for search in results]):.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(searches: int) -> None:
    """Print the table."""
    print("| machine | noise | change | wrong, % | open, % | mean runs | 90 % within | built |")
    print("|---|---|---|---|---|---|---|---|")
    for way in ("steady", "drift", "like before"):
        for noise in NOISES:
            for effect in EFFECTS:
                print(line(searches, noise, effect, way), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
