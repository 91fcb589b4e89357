"""A comparison as PDF: the same content in the same order as the HTML, set by Typst, to be signed and archived."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from chainmark.core.comparison import Comparison
from chainmark.report.charts import comparison_charts
from chainmark.report.document import document
from chainmark.report.typeset import typeset
from chainmark.report.vega import on_paper


def render_pdf(comparison: Comparison) -> bytes:
    """The report as PDF. Fonts, template and data come from the package alone; the time is the comparison's date."""
    data: dict[str, Any] = dataclasses.asdict(document(comparison))
    for chart, entry in zip(comparison_charts(comparison), data["charts"], strict=True):
        (entry["svg"],), entry["note"] = on_paper(chart)
    return typeset("report.typ", data, _timestamp(comparison.date))


def _timestamp(date: str) -> datetime.datetime:
    """The comparison's date as a time: the clock of the machine must not enter the file."""
    try:
        parsed = datetime.datetime.fromisoformat(date.replace("Z", "+00:00"))
    except ValueError:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return parsed.replace(tzinfo=datetime.UTC) if parsed.tzinfo is None else parsed.astimezone(datetime.UTC)
