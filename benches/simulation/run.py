"""Speed of the simulator compared with its oracle, a plain implementation, in one run.

``python benches/simulation/run.py`` prints a table; it asserts nothing, because a busy machine is not a regression.
The simulator also counts sending and adoption as events, and the oracle does not: compare the time per block.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from chainmark._native import simulate_batches

from tests.oracle.diffusion import Oracle
from tests.oracle.test_diffusion import scenario

SIZES = ((52, 3_000), (198, 3_000), (1_000, 3_000), (10_000, 64))


def main() -> None:
    """Print seconds and events per second for every size, with 1 and 2 threads."""
    print(f"{'hosts':>7} {'blocks':>7} {'threads':>8} {'seconds':>8} {'events/s':>12} {'µs/block':>9} {'peak':>9}")
    for hosts, blocks in SIZES:
        order = json.dumps(scenario(89_000.0, hosts=hosts))
        for threads in (1, 2):
            # Four fifths of the blocks are ordinary, a fifth belongs to the slow stratum.
            per_batch = max(1, blocks * 4 // 5 // 32)
            begin = time.perf_counter()
            done = simulate_batches(order, per_batch, 0, 32, threads)
            _line(str(hosts), done.blocks, str(threads), time.perf_counter() - begin, done.events)
    oracle = Oracle(scenario(89_000.0), seed=1)
    begin = time.perf_counter()
    blocks = sum(1 for _ in oracle.blocks(500))
    _line("52", blocks, "Python", time.perf_counter() - begin, oracle.events)


def _line(hosts: str, blocks: int, threads: str, seconds: float, events: int) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate, each = events / seconds, seconds / blocks * 1e6
    print(f"{hosts:>7} {blocks:>7} {threads:>8} {seconds:>8.3f} {rate:>12,.0f} {each:>9.1f} {peak:>6.0f} MiB")


if __name__ == "__main__":
    main()
