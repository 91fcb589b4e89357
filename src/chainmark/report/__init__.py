"""Renderings of comparisons, predictions, explanations, records and load tests: terminal, Markdown, HTML and PDF."""

from chainmark.report.junit import junit_xml
from chainmark.report.published_text import worded
from chainmark.report.render import render_html, render_markdown, render_page, render_pdf, render_terminal

__all__ = ["junit_xml", "render_html", "render_markdown", "render_page", "render_pdf", "render_terminal", "worded"]
