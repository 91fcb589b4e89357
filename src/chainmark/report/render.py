"""One function a format for every document: comparisons, predictions, explanations, records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from chainmark.core.comparison import Comparison
from chainmark.core.load_report import LoadReport
from chainmark.core.prediction import Evidence, Explanation, Prediction
from chainmark.core.published import PublishedReport
from chainmark.core.qa_report import QaReport
from chainmark.core.saturation import SaturationReport
from chainmark.core.side_by_side import SideBySide
from chainmark.core.trail import Story
from chainmark.report.comparison_sheet import comparison_sheet
from chainmark.report.evidence_sheet import evidence_sheet
from chainmark.report.explanation_sheet import explanation_sheet
from chainmark.report.junit import junit_xml
from chainmark.report.load_sheet import load_sheet
from chainmark.report.prediction_sheet import prediction_sheet
from chainmark.report.published_sheet import published_sheet
from chainmark.report.qa_sheet import qa_sheet
from chainmark.report.saturation_sheet import saturation_sheet
from chainmark.report.sheet import Sheet
from chainmark.report.sheet_html import render_sheet_html
from chainmark.report.sheet_markdown import render_sheet_markdown, render_sheet_page
from chainmark.report.sheet_pdf import render_sheet_pdf
from chainmark.report.sheet_terminal import render_sheet_terminal
from chainmark.report.side_by_side_sheet import side_by_side_sheet
from chainmark.report.trail_sheet import trail_sheet

Document = (
    Comparison
    | Prediction
    | Explanation
    | Evidence
    | Story
    | PublishedReport
    | SideBySide
    | LoadReport
    | SaturationReport
    | QaReport
)

_SHEETS: dict[type[BaseModel], Callable[[Any], Sheet]] = {
    Comparison: comparison_sheet,
    Prediction: prediction_sheet,
    Explanation: explanation_sheet,
    Evidence: evidence_sheet,
    Story: trail_sheet,
    PublishedReport: published_sheet,
    SideBySide: side_by_side_sheet,
    LoadReport: load_sheet,
    QaReport: qa_sheet,
    SaturationReport: saturation_sheet,
}


def sheet_of(document: Document) -> Sheet:
    """The document laid out as a sheet."""
    return _SHEETS[type(document)](document)


def render_junit(document: Document) -> str:
    """A document as JUnit XML for a pipeline; the same document gives the same text."""
    sheet = sheet_of(document)
    return junit_xml(sheet.suites, sheet.kind)


def render_terminal(document: Document, console: Console) -> None:
    """Print a document. Colour only underlines what the words say, so nothing is lost without it."""
    render_sheet_terminal(sheet_of(document), console)


def render_html(document: Document) -> str:
    """A document as a single self-contained page; the same document gives the same text."""
    return render_sheet_html(sheet_of(document))


def render_markdown(document: Document) -> str:
    """A document as GitHub-flavoured Markdown; the same document gives the same text."""
    return render_sheet_markdown(sheet_of(document))


def render_page(document: QaReport, folder: str) -> tuple[str, dict[str, str]]:
    """A document as a Markdown page with its figures as files, which lie in ``folder``: the page, and SVG by name."""
    return render_sheet_page(sheet_of(document), folder)


def render_pdf(document: Document) -> bytes:
    """A document as PDF. Fonts, template and data come from the package alone, never from the machine."""
    return render_sheet_pdf(sheet_of(document))
