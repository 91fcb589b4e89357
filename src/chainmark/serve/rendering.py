"""A page as bytes: the document engine's parts in the dashboard's frame, and hashes of all scripts that may run."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from typing import Any

from markupsafe import Markup, escape

from chainmark.report.chart import Chart
from chainmark.report.html import served_page_of
from chainmark.report.page import environment, style_text, template_text
from chainmark.report.vega import colour_variables
from chainmark.serve.charts import Query, plot
from chainmark.serve.pages import Page, addressed, links_document

PACKAGE = "chainmark.serve"
PAGES = {
    "Home": "/", "Runs": "/runs", "Compare": "/compare", "History": "/history", "Capacity": "/capacity",
    "What if": "/what-if", "Live": "/live", "Metrics": "/metrics",
}  # fmt: skip
KEYS = {
    "/": "search", "?": "show keyboard shortcuts", "g h r c t l m": "go to home, runs, compare, history, live, metrics",
    "j k ↓ ↑": "next or previous run in the list", "x": "mark the run", "c": "compare the marked runs",
    "o": "open the run",
}  # fmt: skip
_ID, _ANCHOR = re.compile(r'\bid="([^"]+)"'), re.compile(r'href="#([^"]+)"')
EXPORTS = {"one HTML file": "html", "JSON": "json", "PDF": "pdf", "Markdown": "md", "PR comment": "comment"}


@functools.cache
def _style() -> Markup:
    own = colour_variables() + template_text("site.css", PACKAGE)
    return style_text() + Markup(own)  # noqa: S704 - our own file


@functools.cache
def _script() -> Markup:
    return Markup(template_text("rows.js") + template_text("site.js", PACKAGE))  # noqa: S704 - our own files


@functools.cache
def content_security_policy() -> str:
    """The permissions of a page: to show its own content and this server's, and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (_style(), _script())]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def part(name: str, *arguments: Any) -> Markup:
    """One of the dashboard's own parts of a page."""
    module = environment(PACKAGE).get_template("bits.html.j2").module
    markup: Markup = getattr(module, name)(*arguments)
    return markup


def load_templates() -> None:
    """Compile every template, which takes half a second, once."""
    part("chosen", [])
    html_of(Page(links_document("", "", [], "")), "/", [])


def html_of(page: Page, path: str, query: Query) -> str:
    """The page at an address."""
    parameters: dict[str, list[str]] = {}
    for key, value in query:
        parameters.setdefault(key, []).append(value)

    def drawn(chart: Chart) -> Markup:
        known = page.drawn.get(chart.id)
        return plot(chart, path, query) if known is None else Markup('<div class="plot">{}</div>').format(known)

    frame = {
        "page": page,
        "pages": list(PAGES.items()),
        "keys": list(KEYS.items()),
        "exports": [(name, addressed(path, {**parameters, "as": [suffix]})) for name, suffix in EXPORTS.items()],
        "bare_caveats": part("caveats", page.document),
        "css": _style(),
        "script": _script(),
    }
    text = served_page_of(page.shown or page.document, PACKAGE, drawn, frame)
    return _led_elsewhere(text, page.elsewhere) if page.elsewhere else text


def _led_elsewhere(text: str, address: str) -> str:
    """The page, with links to hidden parts that lead to the page that shows them."""
    ids = set(_ID.findall(text))
    whole = str(escape(address))
    return _ANCHOR.sub(lambda link: link[0] if link[1] in ids else f'href="{whole}#{link[1]}"', text)
