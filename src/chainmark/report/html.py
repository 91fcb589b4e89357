"""A comparison as one HTML file that opens offline: everything it needs is inside it."""

from __future__ import annotations

import functools
import json
import re
from importlib import resources

import jinja2
import vl_convert
from markupsafe import Markup

from chainmark.core.comparison import Comparison
from chainmark.report.charts import (
    DATA_NAME,
    SIDE_COLOURS,
    SIDE_COLOURS_ON_DARK,
    VEGA_LITE_VERSION,
    chart_drawing,
)
from chainmark.report.document import comparison_json, document

_GLOBALS = "window.vegaEmbed = vegaEmbed;"


def template_text(name: str) -> str:
    """A template of this package, wherever the package is installed."""
    return (resources.files("chainmark.report") / "templates" / name).read_text(encoding="utf-8")


def script_json(text: str) -> Markup:
    """JSON that cannot end, or begin, anything in HTML: no "<", ">" or "&" is left in it."""
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(escaped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 - escaped above


@functools.cache
def _vega_bundle() -> Markup:
    # Only ever inlined as it is: it holds no "</script", which a test keeps true.
    bundle = vl_convert.javascript_bundle(snippet=_GLOBALS, vl_version=VEGA_LITE_VERSION)
    return Markup(bundle)  # noqa: S704 - a library, not input


def _unbroken(text: str) -> str:
    """Keep a figure and its percent sign on one line."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _unbroken
    return environment


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
        "light": list(SIDE_COLOURS),
        "dark": list(SIDE_COLOURS_ON_DARK),
        "charts": drawings,
    }
    return json.dumps(settings, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def render_html(comparison: Comparison) -> str:
    """The report as a single self-contained page; the same comparison gives the same text."""
    return _environment().get_template("report.html.j2").render(
        report=document(comparison),
        css=Markup(template_text("report.css")),  # noqa: S704 - our own file
        script=Markup(template_text("report.js")),  # noqa: S704 - our own file
        vega=_vega_bundle(),
        comparison_json=script_json(comparison_json(comparison)),
        charts_json=script_json(_charts_json(comparison)),
    )  # fmt: skip
