"""A comparison as one HTML file that opens offline: everything it needs is inside it."""

from __future__ import annotations

from markupsafe import Markup

from chainmark.core.comparison import Comparison
from chainmark.report.breakdown_parts import breakdown_charts, breakdown_groups
from chainmark.report.charts import comparison_charts
from chainmark.report.document import comparison_json, document
from chainmark.report.followed import life_charts, life_parts
from chainmark.report.page import charts_payload, environment, packed, template_text, vega_bundle
from chainmark.report.sheet_html import TABLE_HELPERS


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
        source=packed(comparison_json(comparison)),
        charts=charts_payload([
            *comparison_charts(comparison), *life_charts(comparison), *breakdown_charts(comparison)
        ]),
    )  # fmt: skip
