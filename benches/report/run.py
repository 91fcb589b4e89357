"""How long a comparison's reports take, and how large they are: seconds of CPU, bytes and peak memory.

``python benches/report/run.py COMPARISON.json [--times 3]`` reads what ``chainmark compare --json-file`` wrote, and
makes each document anew in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from chainmark.core.comparison import Comparison
from chainmark.report.layouts import document_of

KINDS = ("html", "pdf", "markdown", "junit")


def make(source: Path, kind: str) -> dict[str, float]:
    """One document: its size, what it took, and the most memory that the process held, the interpreter's included."""
    document = document_of(Comparison.model_validate_json(source.read_bytes()))
    begin = time.process_time()
    made = getattr(document, kind)()
    seconds = time.process_time() - begin
    size = len(made if isinstance(made, bytes) else made.encode())
    return {"seconds": seconds, "size": size, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, default=None, help="make this one here, and print what it took")
    asked = parser.parse_args()
    if asked.kind:
        print(json.dumps(make(asked.comparison, asked.kind)))
        return
    print(f"{'':>8} {'CPU s':>8} {'least':>7} {'kB':>8} {'peak MiB':>9}")
    for kind in KINDS:
        command = [sys.executable, __file__, str(asked.comparison), "--kind", kind]
        ran = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(asked.times)]
        seconds = [one["seconds"] for one in ran]
        size, peak = ran[0]["size"] / 1000, max(one["peak"] for one in ran)
        print(f"{kind:>8} {statistics.median(seconds):8.2f} {min(seconds):7.2f} {size:8.0f} {peak:9.0f}")


if __name__ == "__main__":
    main()
