"""Renderings of comparisons, predictions, explanations, records and load tests: terminal, Markdown, HTML and PDF."""

from chainmark.report.published_text import worded
from chainmark.report.render import render_html, render_junit, render_markdown, render_page, render_pdf, render_terminal

__all__ = ["render_html", "render_junit", "render_markdown", "render_page", "render_pdf", "render_terminal", "worded"]
