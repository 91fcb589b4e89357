"""The whole path from a cluster's logs to a sealed run: speed, peak memory, same bytes for any number of threads.

``python benches/ingest/run.py [--gigabytes 1] [--hosts 52] [--threads 1 2 8] [--folder DIR]`` writes that much logs
below DIR, imports them from the page cache, as far as they fit, in processes of their own, and deletes them.
The memory is that of the process and all that it starts. It fails only if two of the runs differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benches.measured import Ran, run, warm

from chainmark.core.progress import Silent
from chainmark.lab.synthetic import SyntheticRequest, synthetic
from chainmark.systems.base import load_system

# The approximate size of one host's lines per slot under the default load.
BYTES_PER_SLOT = 16_000


def write_logs(folder: Path, gigabytes: float, hosts: int, compression: str) -> int:
    """Write logs of about that size; return the bytes of their text."""
    slots = max(60, round(gigabytes * 1e9 / (hosts * BYTES_PER_SLOT)))
    order = SyntheticRequest(folder=folder, options={"slots": slots}, hosts=hosts, compression=compression)
    return synthetic(load_system("cardano")).synthesise(order, Silent()).text_bytes


def take_in(logs: Path, store: Path, threads: int, scratch: Path) -> tuple[Ran, Path]:
    """Import the logs into a separate store; return the run's folder."""
    command = [
        sys.executable,
        "-m",
        "chainmark.cli",
        "ingest",
        "cardano",
        str(logs),
        "--threads",
        str(threads),
        "--json",
    ]
    ran = run(command, {**os.environ, "CHAINMARK_STORE": str(store)}, scratch)
    return ran, store / "runs" / json.loads(ran.output)["run_id"]


def digest(folder: Path) -> str:
    """One hash of all names and bytes below a folder."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(str(path.relative_to(folder)).encode() + b"\0")
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the logs' text")
    parser.add_argument("--hosts", type=int, default=52)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--compression", choices=("none", "gzip", "zstd"), default="none")
    parser.add_argument("--folder", type=Path, default=None, help="where the logs go, and are deleted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="chainmark-bench-") as scratch:
        logs = Path(scratch) / "logs"
        text_bytes = write_logs(logs, arguments.gigabytes, arguments.hosts, arguments.compression)
        stored_bytes = warm(sorted(logs.glob("node-*/*")))
        print(f"{text_bytes / 1e9:.2f} GB of text, {stored_bytes / 1e9:.2f} GB stored, {arguments.hosts} hosts\n")
        print(f"{'threads':>7} {'seconds':>8} {'GB/s':>6} {'peak RSS':>10} {'run MB':>7}  {'hash of the run':<16}")
        hashes = set()
        for threads in arguments.threads:
            store = Path(scratch) / "store"
            ran, folder = take_in(logs, store, threads, Path(scratch))
            run_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            run_digest = digest(folder)
            hashes.add(run_digest)
            speed = f"{ran.seconds:>8.2f} {text_bytes / ran.seconds / 1e9:>6.2f}"
            print(
                f"{threads:>7} {speed} {ran.peak_mib:>6.0f} MiB {run_bytes / 1e6:>7.1f}  {run_digest[:16]}", flush=True
            )
            shutil.rmtree(store)
    if len(hashes) > 1:
        sys.exit("error: the runs differ with the number of threads")


if __name__ == "__main__":
    main()
