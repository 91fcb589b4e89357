"""Every kind of document that shows metrics, made of small runs whose metrics have charts.

As a program it prints, for each of them, the kinds of charts on its page and the titles of charts on a terminal.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import chainmark as cm
from chainmark.api.charting import charted
from chainmark.api.loading import LoadResult
from chainmark.compare import compare
from chainmark.compare.aa import aa_report
from chainmark.compare.charts import deciding
from chainmark.compare.qa import qa_report
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.comparison import Comparison
from chainmark.core.release_page import ReleasePage
from chainmark.core.verdict import Verdict
from chainmark.lab.loading import LoadTest
from chainmark.report.document import Document
from chainmark.report.layouts import document_of

from tests.unit.compare.qa_runs import made_of
from tests.unit.compare.searched_runs import searched
from tests.unit.compare.synthetic_runs import run, sides
from tests.unit.report import load_samples
from tests.unit.serve.stores import filled

_SECONDS = 20
_TOOL = "0.0.0"


def _compared() -> Comparison:
    return compare(*sides({"tx_latency_s": 1.4}, seconds=_SECONDS, drawn=True), tool_version=_TOOL)


def _side_by_side() -> Document:
    versions = ("v1", "v2", "v3")
    runs = [[run(version, seed=number, seconds=_SECONDS, drawn=True)] for number, version in enumerate(versions)]
    return document_of(compare_side_by_side(runs, tool_version=_TOOL))


def _bisected() -> Document:
    comparison = _compared()
    tracked = comparison.model_copy(update={"charts": deciding(comparison)})
    return document_of(searched().model_copy(update={"step_across": tracked}))


def _repeated() -> Document:
    runs = [run("v1", number, seed=number, seconds=_SECONDS, drawn=True) for number in range(1, 5)]
    return charted(document_of(aa_report(runs, [], _TOOL)), {"v1": runs}, in_full=True)


def documents(root: Path) -> Mapping[str, Document]:
    """The documents, by their kind; ``root`` is an empty folder."""
    names = filled(root, releases=6, repetitions=2, profiles=2, charts=True)
    by_workload = cm.compare("v1.0.0", "v1.5.0", store=root)
    runs = [cm.open_run(name, root) for name in names]
    report = load_samples.report(load_samples.target(run_id=runs[0].id))
    load = LoadResult([LoadTest(report, [runs[0].sealed], interrupted=False)], [])
    page = ReleasePage.model_validate({
        "tool_version": _TOOL, "title": "Release", "date": "2026-01-01", "verdict": Verdict.PASS, "sentence": "Good",
        "against": [by_workload.result], "text": [],
    })  # fmt: skip
    return {
        "comparison": document_of(_compared()),
        "side-by-side": _side_by_side(),
        "by-workload": by_workload,
        "release-page": document_of(page),
        "qa": document_of(qa_report(made_of(*sides({"tx_latency_s": 1.4}, seconds=_SECONDS, drawn=True)))),
        "bisect": _bisected(),
        "aa": _repeated(),
        "run": runs[0].document(),
        "history": cm.history(names[-1], store=root)[0],
        "load": load.documents[0],
    }


def shown(document: Document) -> tuple[list[str], str]:
    """The IDs of the charts on its page, and its form for a terminal."""
    return [chart.id for chart in document.seen_on("html").charts()], document.text(120)


def main(kind: str, title: str) -> None:
    """Print which documents show a kind of chart, on pages and on a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        results = {name: shown(document) for name, document in documents(Path(folder)).items()}
    json.dump(
        {name: [any(f"-{kind}" in id_ for id_ in ids), title in text] for name, (ids, text) in results.items()},
        sys.stdout,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
