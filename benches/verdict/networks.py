"""How often the verdict is right on real networks: a version against itself, and against a slower copy of itself.

``python -m benches.verdict.networks [EQUAL SLOWED [STORE]]`` runs the two kinds of experiments in turn, each until it
is decided or has eight runs per side, and prints a table for Markdown; it asserts nothing. All runs are in one store,
so later experiments use the noise of earlier ones, as in a lab. Needs CometBFT and an idle machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, cycle, islice, zip_longest
from pathlib import Path

import polars as pl

import chainmark as cm
from chainmark.core.verdict import Verdict

PROFILE, VERSION = "cometbft/demo", "v1.0.1"
SLOWER = {
    "blocks 20 % further apart": {"node.config.consensus.timeout_commit": "1.2s"},
    "gossip three times as late": {"node.config.consensus.peer_gossip_sleep_duration": "300ms"},
}
HEADER = ("candidate", "verdict", "should be", "worse", "runs a side", "minutes", "load average")


def cases(equal: int, slowed: int) -> Iterator[tuple[str, dict[str, str]]]:
    """The settings of each candidate: unchanged and changed in turn."""
    unchanged = [("unchanged", dict[str, str]())] * equal
    changed = islice(cycle(SLOWER.items()), slowed)
    return (case for case in chain.from_iterable(zip_longest(unchanged, changed)) if case is not None)


def row(name: str, settings: dict[str, str], seed: int, store: Path) -> list[str]:
    """Run one experiment; return its row."""
    begun = time.monotonic()
    document = cm.experiment(
        PROFILE,
        baseline=VERSION,
        candidate=VERSION,
        candidate_settings=settings,
        seed=seed,
        profiles="none",
        store=store,
    )
    gating = document.frame.filter(pl.col("gates"))
    worse = gating.filter(pl.col("verdict") == Verdict.FAIL.value)["label"].to_list()
    runs = len(list(store.glob("runs/*/SEALED"))) / 2
    busy = Path("/proc/loadavg").read_text(encoding="ascii").split()[1]
    right = Verdict.FAIL if settings else Verdict.PASS
    minutes = (time.monotonic() - begun) / 60
    return [name, document.verdict.value, right.value, ", ".join(worse) or "–", f"{runs:g}", f"{minutes:.1f}", busy]


def main() -> None:
    """Print a row for every experiment as soon as it ends."""
    equal, slowed = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (20, 10)
    with tempfile.TemporaryDirectory(prefix="chainmark-bench-") as folder:
        store = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(folder)
        for line in (HEADER, ["---"] * len(HEADER)):
            print("|", " | ".join(line), "|", flush=True)
        probability_so_far = 0.0
        for seed, (name, settings) in enumerate(cases(equal, slowed), 1):
            cells = row(name, settings, 100 * seed, store)
            total = float(cells[4])
            cells[4], probability_so_far = f"{total - probability_so_far:g}", total
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
