"""Draw the pictures of the documentation: the first page of real reports; `make pictures` writes them.

`python -m tests.pictures` draws each picture again from stored runs, so it shows the current output of chainmark.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import typst

import chainmark as cm
from chainmark.report.document import Document
from chainmark.report.drawn import svgs_of

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
# chainmark's own start before and after its library was loaded on first use; measured by `benchmark/chainmark-start`.
OWN_RUNS = ROOT / "docs" / "runs"
DOTS_PER_INCH = 110


def _own_speed() -> Document:
    with tempfile.TemporaryDirectory() as store:
        runs = [cm.import_run(path, store=store) for path in sorted(OWN_RUNS.glob("*.tar.xz"))]
        (experiment,) = {run.manifest.experiment.id for run in runs if run.manifest.experiment}
        return cm.compare(experiment, store=store)


def _shipped_runs() -> Document:
    with tempfile.TemporaryDirectory() as store:
        runs = cm.import_samples(store)
        (experiment,) = {run.manifest.experiment.id for run in runs if run.manifest.experiment}
        return cm.compare(experiment, store=store, margins=["node_cpu_per_transaction_s=25%"])


def _block() -> Document:
    """One block of the made logs that README begins with."""
    with tempfile.TemporaryDirectory() as folder:
        logs, store = Path(folder, "logs"), Path(folder, "store")
        cm.synth("cardano", logs, hosts=12, slots=1200, seed=8)
        (run,) = cm.ingest("cardano", logs, version="10.6.2", store=store)
        return cm.block(run.id, "30", store=store)


def _png(document: Callable[[], Document]) -> bytes:
    """The first page of a document's PDF."""
    paper = document().paper()
    pages = typst.compile(
        paper.template.encode(),
        format="png",
        ppi=DOTS_PER_INCH,
        sys_inputs={"report": paper.report, "drawings": json.dumps(svgs_of(paper.drawings))},
        ignore_system_fonts=True,
    )
    return pages[0] if isinstance(pages, list) else pages


PICTURES: dict[str, Callable[[], bytes]] = {
    "block": partial(_png, _block),
    "own-speed": partial(_png, _own_speed),
    "report": partial(_png, _shipped_runs),
}


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        (IMAGES / f"{name}.png").write_bytes(PICTURES[name]())
