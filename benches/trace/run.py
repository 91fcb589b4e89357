"""Compare decoding log lines to event Parquet with its peers, in one run, with the same files and number of threads.

``python benches/trace/run.py [--megabytes 600] [--repeat 5] [--folder DIR]`` prints throughput, peak memory, and how
much quicker the project's decoder is than each peer, by the clock and by processor time: on a busy machine only the
latter says much. Half of the lines are analysed. Every reading happens in a separate process, alternately; files lie in
the page cache; a reading ends when its Parquet is written. The peers are in a separate virtual environment in the
cache folder. It asserts nothing: a busy machine is not a regression.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benches.measured import run, warm

from chainmark.core.progress import Silent
from chainmark.lab.synthetic import SyntheticRequest, synthetic
from chainmark.systems.base import load_system

HERE = Path(__file__).resolve().parent
HOSTS = 4
# The approximate size of one host's lines per slot under the default load. It determines the number of slots.
BYTES_PER_SLOT = 16_000
READERS = ("chainmark", "duckdb", "polars", "orjson")
THREADS = (1, 2)


@dataclass(frozen=True)
class Reading:
    """One reading of all files."""

    seconds: float
    cpu_s: float
    rows: int
    peak_mib: float
    version: str


def cache() -> Path:
    """The project's folder for builds outside the checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainmark"


def peers() -> Path:
    """The interpreter of the peers' environment, which is created on first use."""
    folder = cache() / "bench-peers"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    requirements = HERE / "requirements.txt"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True)
    return python


def generate(folder: Path, megabytes: int) -> list[Path]:
    """Logs of four hosts under the default load."""
    slots = max(100, megabytes * 10**6 // (HOSTS * BYTES_PER_SLOT))
    order = SyntheticRequest(folder=folder, options={"slots": slots}, hosts=HOSTS)
    synthetic(load_system("cardano")).synthesise(order, Silent())
    files = sorted(folder.glob("node-*/stdout*"))
    for path in files:
        _drop_noise(path)
    return files


def _drop_noise(path: Path) -> None:
    """Remove the few lines that are not JSON: not every peer can skip them."""
    clean = path.with_name("clean")
    with path.open("rb") as source, clean.open("wb") as target:
        target.writelines(line for line in source if line.startswith(b"{"))
    clean.replace(path)


def read(reader: str, threads: int, python: Path, files: Sequence[Path], scratch: Path) -> Reading:
    """Read all files once with one reader in a separate process."""
    interpreter = sys.executable if reader == "chainmark" else str(python)
    out = scratch / "out"
    out.mkdir()
    command = [interpreter, str(HERE / "readers.py"), reader, str(threads), str(out), *map(str, files)]
    try:
        ran = run(command, {**os.environ, "POLARS_MAX_THREADS": str(threads)}, scratch)
    finally:
        shutil.rmtree(out)
    measured = json.loads(ran.output)
    return Reading(measured["seconds"], measured["cpu_s"], measured["rows"], ran.peak_mib, measured["version"])


def show(name: str, threads: int, readings: Sequence[Reading], text_bytes: int, own: Sequence[Reading]) -> str:
    """Print one line of the table; the ratios are relative to the project's own decoder."""
    seconds = statistics.median(reading.seconds for reading in readings)
    spread = f"{min(reading.seconds for reading in readings):.2f}-{max(reading.seconds for reading in readings):.2f}"
    peak = max(reading.peak_mib for reading in readings)
    label = f"{name} {readings[0].version}"
    speed = f"{text_bytes / seconds / 1e9:>6.2f} {seconds:>8.2f} {spread:>12}"
    cpu_s = statistics.median(reading.cpu_s for reading in readings)
    ratio = seconds / statistics.median(reading.seconds for reading in own)
    cpu_ratio = cpu_s / statistics.median(reading.cpu_s for reading in own)
    ratios = f"{ratio:>7.2f} {cpu_s:>7.2f} {cpu_ratio:>9.2f}"
    return f"{label:<18} {threads:>7} {speed} {readings[0].rows:>12,} {peak:>8.0f} MiB {ratios}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=600, help="size of the logs")
    parser.add_argument("--repeat", type=int, default=5, help="readings of each reader")
    parser.add_argument("--folder", type=Path, default=None, help="where the logs go, and are deleted")
    arguments = parser.parse_args()
    python = peers()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="chainmark-bench-") as scratch:
        files = generate(Path(scratch) / "logs", arguments.megabytes)
        text_bytes = warm(files)
        print(
            f"{text_bytes / 1e9:.2f} GB of {len(files)} hosts; medians of {arguments.repeat} readings each, in turns\n"
        )
        title = f"{'reader':<18} {'threads':>7} {'GB/s':>6} {'seconds':>8} {'from-to':>12} {'events':>12}"
        print(f"{title} {'peak':>12} {'ratio':>7} {'CPU s':>7} {'CPU ratio':>9}")
        for threads in THREADS:
            readings: dict[str, list[Reading]] = defaultdict(list)
            failed: dict[str, str] = {}
            for _ in range(arguments.repeat):
                for reader in READERS:
                    if reader in failed:
                        continue
                    try:
                        readings[reader].append(read(reader, threads, python, files, Path(scratch)))
                    except RuntimeError as error:
                        failed[reader] = str(error)
            for reader in READERS:
                if reader in failed:
                    print(f"{reader:<18} {threads:>7} failed: {failed[reader][:100]}")
                else:
                    print(show(reader, threads, readings[reader], text_bytes, readings["chainmark"]))


if __name__ == "__main__":
    main()
