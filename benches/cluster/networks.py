"""What a validator costs as a network grows: processor time, memory, traffic, and the time of a block.

``python -m benches.cluster.networks [--validators 4 8 16 24] [--rate 20] [--version v1.0.1]`` runs networks of that
many validators on this machine, all connected to all, and prints the means of one run each. On an overloaded machine
the processor time per block is still meaningful, and the interval of the blocks is not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import polars as pl

import chainmark as cm


def row(validators: int, rate: int, version: str, scratch: Path) -> str:
    """Run one network, and describe it."""
    settings = {
        "network.validators": validators,
        "network.check_capacity": "false",
        "network.start_timeout_s": 300,
        "load.rate": rate,
        "load.warm_up_s": 5,
        "load.duration_s": 30,
    }
    (run,) = cm.run("cometbft/demo", version, settings=settings, store=scratch / str(validators))
    nodes, seconds, blocks = (run.samples(name) for name in ("host_second", "second", "block"))
    interval_s = _mean(blocks, "block_interval_s")
    cores, rss_bytes = _mean(nodes, "node_cpu_cores"), _mean(nodes, "node_rss_bytes")
    harness = _mean(seconds, "harness_cpu_cores")
    return (
        f"{validators:10} {interval_s:8.2f} s {cores:7.3f} {1e3 * cores * interval_s:8.0f} ms "
        f"{1e6 * cores * interval_s / (validators - 1):8.0f} µs {rss_bytes / 1e6:7.0f} MB {harness:8.3f} "
        f"{1e3 * harness / validators:7.2f} m"
    )


def _mean(frame: pl.DataFrame, column: str) -> float:
    value = frame[column].drop_nulls().mean()
    return float(value) if isinstance(value, int | float) else float("nan")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--validators", type=int, nargs="+", default=[4, 8, 16, 24])
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--version", default="v1.0.1")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; per node, and of the harness")
    print(
        f"{'validators':>10} {'interval':>10} {'cores':>7} {'per block':>11} {'and link':>11} {'memory':>10} "
        f"{'harness':>8} {'per node':>9}"
    )
    with tempfile.TemporaryDirectory(prefix="chainmark-bench-") as scratch:
        for validators in options.validators:
            print(row(validators, options.rate, options.version, Path(scratch)), flush=True)


if __name__ == "__main__":
    main()
