"""A badge for a README: a subject, and its verdict."""

from __future__ import annotations

from html import escape

_LETTER, _MARGIN = 6.6, 8
_TONES = {"pass": "#14713d", "fail": "#b3261e", "inconclusive": "#8a5a00", "invalid": "#6b3fa0", "neutral": "#1f4e79"}


def badge(left: str, right: str, tone: str) -> str:
    """A badge for a README: its subject, and the verdict."""
    widths = [round(len(text) * _LETTER + 2 * _MARGIN) for text in (left, right)]
    whole = sum(widths)
    title = escape(f"{left}: {right}")
    texts = "".join(
        f'<text x="{start + width / 2}" y="14">{escape(text)}</text>'
        for start, width, text in ((0, widths[0], left), (widths[0], widths[1], right))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{title}">'
        f'<title>{title}</title><rect width="{whole}" height="20" rx="3" fill="#444"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" rx="3" fill="{_TONES.get(tone, "#444")}"/>'
        f'<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g>'
        "</svg>"
    )
