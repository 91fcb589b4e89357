"""A large cluster's import against the generator's truth, fault by fault, as a table.

``python benches/truth/run.py [--hosts 52] [--slots 400] [--fault KIND] [--folder DIR]`` writes a cluster per kind of
fault, imports it, and prints for every metric, stage, gate and class of lines what was expected and what was found. It
exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.oracle.cluster_faults import FAULTS, Fault, Row, all_rows
from tests.oracle.cluster_runs import generate, ingest
from tests.oracle.cluster_truth import Truth

WIDTHS = (30, 18, 34, 34)


def line(cells: Sequence[str]) -> str:
    """Cells, truncated to their widths."""
    return " ".join(cell[:width].ljust(width) for cell, width in zip(cells, WIDTHS, strict=False)) + f" {cells[-1]}"


def show(fault: Fault, rows: Sequence[Row]) -> None:
    """Print the rows of one fault, and the first differing places of each row that differs."""
    for row in rows:
        print(line((row.what, fault.kind, row.expected, row.got, "equal" if row.equal else "DIFFERENT")))
        for place in row.wrong[:3]:
            print(f"    {place}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=52)
    parser.add_argument("--slots", type=int, default=400)
    parser.add_argument("--fault", action="append", help="only this kind; may be repeated")
    parser.add_argument("--folder", type=Path, default=None, help="where the logs go, and are deleted")
    arguments = parser.parse_args()
    shape = {"hosts": arguments.hosts, "slots": arguments.slots}
    compared = different = 0
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="chainmark-truth-") as scratch:
        plain = ingest(generate(Path(scratch) / "plain", **shape), Path(scratch) / "plain-store")
        print(line(("metric", "fault", "expected", "found", "")))
        for fault in FAULTS:
            if arguments.fault and fault.kind not in arguments.fault:
                continue
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                logs = generate(Path(folder) / "logs", faults=(fault.order,) if fault.order else (), **shape)
                rows = all_rows(Truth(logs), plain, ingest(logs, Path(folder) / "store"), fault)
            show(fault, rows)
            compared += len(rows)
            different += sum(not row.equal for row in rows)
    print(f"\n{compared} comparisons under {len(arguments.fault or FAULTS)} faults, {different} different")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
