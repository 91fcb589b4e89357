"""Renderings of a comparison: terminal, Markdown, HTML and PDF, all from ``comparison.json`` alone."""

from chainmark.report.html import render_html
from chainmark.report.markdown import render_markdown
from chainmark.report.pdf import render_pdf
from chainmark.report.terminal import render_terminal

__all__ = ["render_html", "render_markdown", "render_pdf", "render_terminal"]
