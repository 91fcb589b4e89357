"""The layout function of each kind of result; modules of other kinds are not imported."""

from __future__ import annotations

from importlib import import_module

from pydantic import BaseModel

from chainmark.core.attachment import Attachment
from chainmark.report.document import Document

# By the module and the name of the result's class: the location of its function.
LAYOUTS = {
    "core.comparison.Comparison": "comparison_document",
    "core.side_by_side.SideBySide": "side_by_side_document",
    "core.by_workload.ByWorkload": "by_workload_document",
    "core.load_report.LoadReport": "load_document",
    "core.matrix_report.MatrixReport": "matrix_document",
    "core.qa_report.QaReport": "qa_document",
    "core.release_page.ReleasePage": "release_document",
    "report.run_document.RunRecord": "run_document",
    "core.aa_report.AAReport": "aa_document",
    "core.history_report.HistoryReport": "history_document",
    "core.margin_report.MarginReport": "margin_document",
    "core.false_alarms.HistoryCheck": "history_check_document",
    "core.bisect_report.BisectReport": "bisect_document",
    "core.cluster_report.ClusterReport": "cluster_document",
    "report.corpus_document.StoredCorpus": "corpus_document",
    "report.corpus_document.CheckedCorpus": "corpus_document",
}


def document_of(result: BaseModel) -> Document:
    """A result laid out as a document."""
    if isinstance(result, Attachment):
        own_document: Document = result.document()
        return own_document
    kind = type(result)
    name = LAYOUTS[f"{kind.__module__.removeprefix('chainmark.')}.{kind.__qualname__}"]
    document: Document = getattr(import_module(f"chainmark.report.{name}"), name)(result)
    return document
