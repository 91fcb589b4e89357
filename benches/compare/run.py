"""Measure a comparison of two runs of a large cluster with its reports: seconds and peak memory, of two versions.

CPU seconds include all child processes: they change the least on a busy machine.

``python benches/compare/run.py [--hosts 52] [--slots 6000] [--times 3] [--earlier CHECKOUT] [--folder DIR]`` writes the
logs of two networks below DIR, imports them, compares the runs in processes of their own, and deletes everything.
With ``--earlier``, the same runs are compared by another checkout as well, in turns, so that a busy machine slows down
both. It fails only if the two write different JSON, which is right only where the schema or a rule has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benches.measured import Ran, run

from chainmark.core.progress import Silent
from chainmark.lab.synthetic import SyntheticRequest, synthetic
from chainmark.systems.base import load_system

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = (0, 1, 3, 4)  # exit codes of a completed comparison
VERSIONS = ("10.5.4", "10.6.2")


def make_runs(folder: Path, hosts: int, slots: int) -> list[str]:
    """Generate the logs of two networks and import them into ``folder / "store"``; return the ids of the runs."""
    identifiers = []
    for seed, version in enumerate(VERSIONS, start=1):
        logs = folder / f"logs-{version}"
        options = {"slots": slots}
        order = SyntheticRequest(folder=logs, options=options, hosts=hosts, seed=seed, compression="zstd")
        synthetic(load_system("cardano")).synthesise(order, Silent())
        ran = _chainmark(ROOT, ["ingest", "cardano", str(logs), "--as", version, "--json"], folder)
        identifiers.append(json.loads(ran.output)["run_id"])
    return identifiers


def compare(checkout: Path, identifiers: Sequence[str], folder: Path) -> tuple[Ran, bytes]:
    """One comparison with HTML, PDF and JSON by a checkout's code; return its cost and the JSON."""
    targets = {kind: folder / f"report.{kind}" for kind in ("html", "pdf", "json")}
    options = ["--html", str(targets["html"]), "--pdf", str(targets["pdf"]), "--json-file", str(targets["json"])]
    ran = _chainmark(checkout, ["compare", *identifiers, *options], folder)
    return ran, targets["json"].read_bytes()


def _chainmark(checkout: Path, arguments: Sequence[str], folder: Path) -> Ran:
    environment = {**os.environ, "CHAINMARK_STORE": str(folder / "store"), "PYTHONPATH": str(checkout / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package also has its bytecode
    return run([sys.executable, "-m", "chainmark.cli", *arguments], environment, folder, accepted=VERDICTS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=52)
    parser.add_argument("--slots", type=int, default=6000, help="of a full-size benchmark: 62000")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--earlier", type=Path, default=None, help="another checkout, with its compiled module")
    parser.add_argument("--folder", type=Path, default=None, help="where logs and runs go, and are deleted")
    arguments = parser.parse_args()
    checkouts = {"now": ROOT} | ({"earlier": arguments.earlier.resolve()} if arguments.earlier else {})
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="chainmark-bench-") as scratch:
        folder = Path(scratch)
        identifiers = make_runs(folder, arguments.hosts, arguments.slots)
        print(f"two runs of {arguments.hosts} hosts and {arguments.slots} slots, with HTML and PDF\n")
        ran: dict[str, list[Ran]] = {name: [] for name in checkouts}
        documents = set()
        for _ in range(arguments.times):
            for name, checkout in checkouts.items():
                process, document = compare(checkout, identifiers, folder)
                ran[name].append(process)
                documents.add(document)
        print(f"{'':>8} {'seconds':>8} {'least':>7} {'cpu s':>7} {'least':>7} {'peak MiB':>9}")
        for name, processes in ran.items():
            seconds, cpu = ([getattr(process, what) for process in processes] for what in ("seconds", "cpu_s"))
            peak = max(process.peak_mib for process in processes)
            times = (
                f"{statistics.median(seconds):8.1f} {min(seconds):7.1f} {statistics.median(cpu):7.1f} {min(cpu):7.1f}"
            )
            print(f"{name:>8} {times} {peak:9.0f}")
        sizes = [
            f"{kind} {(folder / f'report.{kind}').stat().st_size / 1e6:.2f} MB" for kind in ("html", "pdf", "json")
        ]
        print(f"\nthe last one's files: {', '.join(sizes)}")
    if len(documents) > 1:
        sys.exit("the comparisons differ")


if __name__ == "__main__":
    main()
