"""A comparison as one HTML file that opens offline: everything it needs is inside it."""

from __future__ import annotations

import json

from markupsafe import Markup

from chainmark.core.comparison import Comparison
from chainmark.report.breakdown_parts import breakdown_drawings, breakdown_groups
from chainmark.report.charts import (
    DATA_NAME,
    OTHER_COLOURS,
    SIDE_COLOURS,
    SIDE_COLOURS_ON_DARK,
    chart_drawing,
)
from chainmark.report.document import comparison_json, document
from chainmark.report.followed import life_drawings, life_parts
from chainmark.report.model_charts import LINE_COLOURS, LINE_COLOURS_ON_DARK
from chainmark.report.page import environment, script_json, template_text, vega_bundle
from chainmark.report.sheet_html import TABLE_HELPERS


def _charts_json(comparison: Comparison) -> str:
    """How each chart is drawn; its points stay in the embedded comparison, so that no figure is stored twice."""
    drawings = {}
    for index, chart in enumerate(comparison.charts):
        drawing = chart_drawing(chart, comparison, interactive=True)
        drawings[chart.id] = {
            "index": index,
            "spec": drawing.spec,
            "x_factor": drawing.x_factor,
            "y_factor": drawing.y_factor,
        }
    settings = {
        "data_name": DATA_NAME,
        "sides": {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label},
        "light": [*SIDE_COLOURS, *OTHER_COLOURS],
        "dark": [*SIDE_COLOURS_ON_DARK, *OTHER_COLOURS],
        "charts": drawings,
        "line_light": list(LINE_COLOURS),
        "line_dark": list(LINE_COLOURS_ON_DARK),
        "lives": life_drawings(comparison),
        "breakdowns": breakdown_drawings(comparison),
    }
    return json.dumps(settings, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def render_html(comparison: Comparison) -> str:
    """The report as a single self-contained page; the same comparison gives the same text."""
    return environment().get_template("report.html.j2").render(
        report=document(comparison),
        lives=life_parts(comparison),
        breakdowns=breakdown_groups(comparison),
        tables=TABLE_HELPERS,
        css=Markup(template_text("report.css") + template_text("table.css")),  # noqa: S704 - our own files
        common=Markup(template_text("common.js")),  # noqa: S704 - our own file
        script=Markup(template_text("report.js")),  # noqa: S704 - our own file
        vega=vega_bundle(),
        comparison_json=script_json(comparison_json(comparison)),
        charts_json=script_json(_charts_json(comparison)),
    )  # fmt: skip
