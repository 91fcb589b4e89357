#!/usr/bin/env python3
"""Print what chainmark's load generator costs and how well it keeps its schedule, next to CometBFT's own load tool.

Both send to the same sink, in turn, in one run of this script. Nothing is asserted: read the table, on an idle machine.
Needs cargo and go. The peer and the build are kept under $XDG_CACHE_HOME/chainmark.
"""

import argparse
import contextlib
import csv
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainmark"
PEER_MODULE = "github.com/cometbft/cometbft/test/loadtime/cmd/load"
PEER_VERSION = "v1.0.1"
BATCH_GAP_NS = 300_000_000
COLUMNS = (
    "generator",
    "offered",
    "arrived",
    "accepted",
    "CPU ms per 1000 tx",
    "cores",
    "peak RSS MB",
    "arrival − due p50 ms",
    "p99 ms",
    "max ms",
    "sent − due p50 ms",
    "p99 ms",
    "max ms",
)

NOTES = """
Due: chainmark's schedule, which each payload states. The peer keeps none: a batch counts as due when its first
transaction arrives, which hides any delay before that. Compare burst with the peer, whose load has the same shape: a
whole second's transactions at once, which take a while to be received. Even is another load: a wake-up for each
transaction instead of one a second, which costs more CPU and is what keeps the generator's bursts out of the latencies.
"""


@dataclass(frozen=True)
class Load:
    """The load requested from both generators; the rate is per connection."""

    connections: int
    rate: int
    duration_s: int
    size_bytes: int


@dataclass(frozen=True)
class Usage:
    """The resource use of a generator's process, and its output."""

    cpu_s: float
    peak_rss_mb: float
    output: str


@dataclass(frozen=True)
class Arrival:
    """One transaction at the sink, at a wall-clock time in nanoseconds."""

    connection: int
    arrived_ns: int
    payload_ns: int


def build() -> Path:
    """Build the sink and our generator; return their folder."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "target")
    command = ["cargo", "build", "--release", "--examples", "--package", "chainmark-load"]
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release" / "examples"


def install_peer() -> Path:
    """Build the peer once; return its program."""
    folder = CACHE / "benches" / f"load-{PEER_VERSION}"
    if not (folder / "load").exists():
        environment = os.environ | {"GOBIN": str(folder)}
        subprocess.run(["go", "install", f"{PEER_MODULE}@{PEER_VERSION}"], env=environment, check=True)
    return folder / "load"


@contextlib.contextmanager
def sink(programs: Path, arrivals: Path) -> Iterator[str]:
    """Run the sink; it writes the arrivals when the context ends."""
    process = subprocess.Popen([programs / "sink", arrivals], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield next(process.stdout or iter(())).strip()
    finally:
        process.communicate()


def peak_rss_mb(pid: int) -> float:
    """The peak so far, of the program itself: wait4's figure includes the fork of this interpreter."""
    status = Path(f"/proc/{pid}/status").read_text()
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) / 1024 if peaks else 0.0  # a process that has ended has none


def run_and_measure(command: list[str]) -> Usage:
    """Run a generator to its end. The kernel's own accounting covers the whole process."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        pid, peak_mb = 0, 0.0
        while pid == 0:
            peak_mb = max(peak_mb, peak_rss_mb(process.pid))
            time.sleep(0.05)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {process.returncode}:\n{text}")
    return Usage(usage.ru_utime + usage.ru_stime, peak_mb, text)


def read_arrivals(path: Path) -> list[Arrival]:
    """Read the sink's output, in the order of arrival."""
    with path.open(newline="") as file:
        return [Arrival(*map(int, row)) for row in csv.reader(file)]


def lag_behind_batches(arrivals: list[Arrival]) -> list[int]:
    """The peer states no due times: a batch counts as due when its first transaction arrives."""
    lags: list[int] = []
    batch_ns: dict[int, int] = {}
    previous_ns: dict[int, int] = {}
    for arrival in arrivals:
        connection, now_ns = arrival.connection, arrival.arrived_ns
        if now_ns - previous_ns.get(connection, 0) > BATCH_GAP_NS:
            batch_ns[connection] = now_ns
        previous_ns[connection] = now_ns
        lags.append(now_ns - batch_ns[connection])
    return lags


def quantiles_ms(values_ns: list[int]) -> list[str]:
    """Return p50, p99 and maximum, by nearest rank."""
    ordered = sorted(values_ns)
    return [f"{ordered[round((len(ordered) - 1) * share)] / 1e6:.3f}" for share in (0.5, 0.99, 1.0)]


def costs(usage: Usage, arrived: int, load: Load) -> list[str]:
    """Return the columns of CPU and memory."""
    return [
        f"{usage.cpu_s / arrived * 1e6:.1f}",
        f"{usage.cpu_s / load.duration_s:.3f}",
        f"{usage.peak_rss_mb:.1f}",
    ]


def run_ours(programs: Path, load: Load, schedule: str, folder: Path) -> list[str]:
    """Run chainmark's generator; return its row."""
    arrivals_path = folder / "arrivals.csv"
    numbers = [load.connections, load.rate, load.duration_s, load.size_bytes]
    with sink(programs, arrivals_path) as url:
        usage = run_and_measure([str(programs / "generate"), url, *map(str, numbers), schedule])
    figures = json.loads(usage.output)
    arrivals = read_arrivals(arrivals_path)
    lag_ms = quantiles_ms([arrival.arrived_ns - arrival.payload_ns for arrival in arrivals])
    sent_lag_ms = [f"{figures[f'lag_{name}_ms']:.3f}" for name in ("p50", "p99", "max")]
    counts = [str(figures["offered"]), str(len(arrivals)), str(figures["accepted"])]
    return [f"chainmark, {schedule}", *counts, *costs(usage, len(arrivals), load), *lag_ms, *sent_lag_ms]


def run_peer(peer: Path, programs: Path, load: Load, folder: Path) -> list[str]:
    """Run the original tool; return its row."""
    arrivals_path = folder / "arrivals.csv"
    # Its first batch is sent after one period, so one more second gives the same number of batches.
    flags = {
        "-c": load.connections,
        "-T": load.duration_s + 1,
        "-r": load.rate,
        "-s": load.size_bytes,
        "--broadcast-tx-method": "sync",
    }
    with sink(programs, arrivals_path) as url:
        arguments = [str(part) for flag in flags.items() for part in flag]
        usage = run_and_measure([str(peer), *arguments, "--endpoints", url])
    arrivals = read_arrivals(arrivals_path)
    lag_ms = quantiles_ms(lag_behind_batches(arrivals))
    offered = load.connections * load.rate * load.duration_s
    # It reads no responses and has no due times.
    counts = [str(offered), str(len(arrivals)), "unknown"]
    return [f"loadtime {PEER_VERSION}", *counts, *costs(usage, len(arrivals), load), *lag_ms, *["unknown"] * 3]


def print_row(values: list[str] | tuple[str, ...]) -> None:
    """Print one row at once, as each takes seconds."""
    print("| " + " | ".join(values) + " |", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--rate", type=int, default=800, help="transactions per second per connection")
    parser.add_argument("--duration-s", type=int, default=10)
    parser.add_argument("--size-bytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    """Print the table."""
    arguments = parse_arguments()
    load = Load(arguments.connections, arguments.rate, arguments.duration_s, arguments.size_bytes)
    programs, peer = build(), install_peer()
    total = load.connections * load.rate
    print(
        f"\n{load.connections} connections, {total} tx/s in all, {load.size_bytes} bytes, {load.duration_s} s, "
        f"{os.cpu_count()} CPUs, load average before {os.getloadavg()[0]:.2f}\n"
    )
    print_row(COLUMNS)
    print_row(["---"] * len(COLUMNS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(arguments.repeats):
            print_row(run_ours(programs, load, "even", folder))
            print_row(run_ours(programs, load, "burst", folder))
            print_row(run_peer(peer, programs, load, folder))
    print(NOTES)


if __name__ == "__main__":
    main()
