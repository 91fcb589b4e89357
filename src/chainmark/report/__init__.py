"""Renderings of a comparison: terminal, Markdown, HTML and PDF, all from ``comparison.json`` alone."""
