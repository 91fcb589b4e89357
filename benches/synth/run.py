"""Speed and memory of the log writer compared with copying the same files, in one run.

``python benches/synth/run.py [FOLDER]`` writes up to 4 GB below FOLDER (default: the temporary folder), removes it, and
prints a table. It asserts nothing: a busy machine or a slow disk is not a regression. The last column shows whether
memory grows with the number of slots.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from chainmark._native import ClusterLogs
from chainmark.lab.synthetic import SyntheticRequest
from chainmark.systems.cardano.synth import log_order, resolve


@dataclass(frozen=True)
class Case:
    """One set of logs."""

    hosts: int
    slots: int
    compression: str = "none"
    threads: int = 1


@dataclass(frozen=True)
class Measured:
    """The cost of one set of logs."""

    seconds: float
    lines: int
    text_bytes: int
    stored_bytes: int
    peak_rss_mib: float


CASES = (
    Case(52, 1000),
    Case(52, 1000, threads=2),
    Case(52, 4000),
    Case(52, 1000, "zstd"),
    Case(52, 1000, "gzip"),
    Case(1000, 60),
)


def write(case: Case, folder: Path) -> Measured:
    """Write the logs of one case; run it in a separate process, whose memory is then that of this case."""
    options = {"slots": case.slots}
    order = SyntheticRequest(folder=folder, options=options, hosts=case.hosts, compression=case.compression)
    content = json.dumps(log_order(resolve(order), order))
    begin = time.perf_counter()
    summary = json.loads(ClusterLogs(content, str(folder), case.threads, False).run() or "{}")
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(seconds, summary["lines"], summary["text_bytes"], summary["stored_bytes"], peak)


def copy(source: Path, target: Path) -> float:
    """Seconds to copy the written files: no writer is faster than that."""
    begin = time.perf_counter()
    shutil.copytree(source, target)
    return time.perf_counter() - begin


def main() -> None:
    """Print lines and bytes per second, and peak memory, for each case."""
    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    head = f"{'hosts':>6} {'slots':>6} {'compression':>12} {'threads':>8} {'seconds':>8} {'lines/s':>10} {'MB/s':>6}"
    print(f"{head} {'stored MB':>10} {'copy s':>7} {'peak RSS':>9}")
    for case in CASES:
        with tempfile.TemporaryDirectory(dir=parent, prefix="chainmark-bench-") as scratch:
            folder = Path(scratch) / "logs"
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                measured = pool.apply(write, (case, folder))
            copied = copy(folder, Path(scratch) / "copy")
        cells = (
            f"{case.hosts:>6} {case.slots:>6} {case.compression:>12} {case.threads:>8} {measured.seconds:>8.2f}",
            f"{measured.lines / measured.seconds:>10,.0f} {measured.text_bytes / measured.seconds / 1e6:>6.0f}",
            f"{measured.stored_bytes / 1e6:>10.0f} {copied:>7.2f} {measured.peak_rss_mib:>5.0f} MiB",
        )
        print(" ".join(cells))


if __name__ == "__main__":
    main()
