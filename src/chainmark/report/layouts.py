"""Which function lays out which result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from chainmark.core.aa_report import AAReport
from chainmark.core.attachment import Attachment
from chainmark.core.bisect_report import BisectReport
from chainmark.core.by_workload import ByWorkload
from chainmark.core.comparison import Comparison
from chainmark.core.false_alarms import HistoryCheck
from chainmark.core.history_report import HistoryReport
from chainmark.core.load_report import LoadReport
from chainmark.core.margin_report import MarginReport
from chainmark.core.qa_report import QaReport
from chainmark.core.release_page import ReleasePage
from chainmark.core.side_by_side import SideBySide
from chainmark.report.aa_document import aa_document
from chainmark.report.bisect_document import bisect_document
from chainmark.report.by_workload_document import by_workload_document
from chainmark.report.comparison_document import comparison_document
from chainmark.report.document import Document
from chainmark.report.history_check_document import history_check_document
from chainmark.report.history_document import history_document
from chainmark.report.load_document import load_document
from chainmark.report.margin_document import margin_document
from chainmark.report.qa_document import qa_document
from chainmark.report.release_document import release_document
from chainmark.report.run_document import RunRecord, run_document
from chainmark.report.side_by_side_document import side_by_side_document

LAYOUTS: dict[type[BaseModel], Callable[[Any], Document]] = {
    Comparison: comparison_document,
    SideBySide: side_by_side_document,
    ByWorkload: by_workload_document,
    LoadReport: load_document,
    QaReport: qa_document,
    ReleasePage: release_document,
    RunRecord: run_document,
    AAReport: aa_document,
    HistoryReport: history_document,
    MarginReport: margin_document,
    HistoryCheck: history_check_document,
    BisectReport: bisect_document,
}


def document_of(result: BaseModel) -> Document:
    """A result laid out as a document."""
    if isinstance(result, Attachment):
        own: Document = result.document()
        return own
    return LAYOUTS[type(result)](result)
