"""How long a comparison's reports take, and how large they are: seconds of CPU and by the clock, bytes and peak memory.

``python benches/report/run.py COMPARISON.json [--times 3] [--earlier CHECKOUT]`` reads what
``chainmark compare --json-file`` wrote, and renders each document in a separate process; "html+pdf" are both as
the command writes them. CPU and memory are those of a process with all that it starts, the layout not among the
seconds. With ``--earlier``, another checkout makes them as well, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benches.measured import run

from chainmark.core.comparison import Comparison
from chainmark.report.layouts import document_of

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"html": [".html"], "pdf": [".pdf"], "html+pdf": [".html", ".pdf"], "markdown": [".md"], "junit": [".xml"]}


def cpu_s() -> float:
    """Seconds of CPU of this process and of its ended children."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def make(source: Path, kind: str, folder: Path) -> dict[str, float]:
    """Make the documents of a kind; return their size and cost."""
    content = json.loads(source.read_bytes())
    document = document_of(Comparison.model_validate({name: content[name] for name in content if name != "suites"}))
    paths = {suffix: folder / f"report{suffix}" for suffix in KINDS[kind]}
    begin, cpu = time.perf_counter(), cpu_s()
    if hasattr(document, "write_all"):
        document.write_all(paths)
    else:  # an earlier version
        for suffix, path in paths.items():
            document.write(path, suffix)
    size = sum(path.stat().st_size for path in paths.values())
    return {"cpu": cpu_s() - cpu, "seconds": time.perf_counter() - begin, "size": size}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--earlier", type=Path, default=None, help="another checkout, with its compiled module")
    parser.add_argument("--kind", choices=KINDS, default=None, help="make this one here, and print what it took")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chainmark-bench-") as scratch:
        folder = Path(scratch)
        if arguments.kind:
            print(json.dumps(make(arguments.comparison, arguments.kind, folder)))
            return
        checkouts = {"now": ROOT} | ({"earlier": arguments.earlier.resolve()} if arguments.earlier else {})
        print(f"{'':>16} {'CPU s':>8} {'least':>7} {'wall s':>8} {'kB':>8} {'peak MiB':>9}")
        for kind in KINDS:
            command = [sys.executable, __file__, str(arguments.comparison), "--kind", kind]
            measurements: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
            for _ in range(arguments.times):
                for name, checkout in checkouts.items():
                    ran = run(command, {**os.environ, "PYTHONPATH": str(checkout / "src")}, folder)
                    measurements[name].append({**json.loads(ran.output), "peak": ran.peak_mib})
            for name, repetitions in measurements.items():
                cpu, seconds = (
                    [repetition["cpu"] for repetition in repetitions],
                    statistics.median(repetition["seconds"] for repetition in repetitions),
                )
                size, peak = repetitions[0]["size"] / 1000, max(repetition["peak"] for repetition in repetitions)
                row = f"{statistics.median(cpu):8.2f} {min(cpu):7.2f} {seconds:8.2f} {size:8.0f} {peak:9.0f}"
                print(f"{f'{kind} {name}':>16} {row}", flush=True)


if __name__ == "__main__":
    main()
