"""What every HTML page of ours is made with: templates, escaping, and the chart library that is inlined."""

from __future__ import annotations

import functools
import re
from importlib import resources

import jinja2
import vl_convert
from markupsafe import Markup

from chainmark.report.vega import VEGA_LITE_VERSION

_GLOBALS = "window.vegaEmbed = vegaEmbed;"


def template_text(name: str) -> str:
    """A template of this package, wherever the package is installed."""
    return (resources.files("chainmark.report") / "templates" / name).read_text(encoding="utf-8")


def script_json(text: str) -> Markup:
    """JSON that cannot end, or begin, anything in HTML: no "<", ">" or "&" is left in it."""
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(escaped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 - escaped above


@functools.cache
def vega_bundle() -> Markup:
    """Vega, Vega-Lite and their embedder as one script."""
    # Only ever inlined as it is: it holds no "</script", which a test keeps true.
    bundle = vl_convert.javascript_bundle(snippet=_GLOBALS, vl_version=VEGA_LITE_VERSION)
    return Markup(bundle)  # noqa: S704 - a library, not input


def _unbroken(text: str) -> str:
    """Keep a figure and its percent sign on one line."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


@functools.cache
def environment() -> jinja2.Environment:
    """The templates, escaping everything that is not marked as safe."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["unbroken"] = _unbroken
    return made
