"""Small drawings that stand in a page itself: a figure over the releases, and a verdict as a badge."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

_WIDTH, _HEIGHT, _EDGE = 160, 32, 3
_LETTER, _MARGIN = 6.6, 8
_TONES = {"pass": "#14713d", "fail": "#b3261e", "inconclusive": "#8a5a00", "invalid": "#6b3fa0", "neutral": "#1f4e79"}


def sparkline(values: Sequence[float | None], changes: Sequence[int], label: str) -> Markup:
    """Values from left to right, a point at the last one, a line where the level changed."""
    said = [value for value in values if value is not None]
    if len(said) < 2:
        return Markup()
    low, span = min(said), (max(said) - min(said)) or 1.0
    step = (_WIDTH - 2 * _EDGE) / (len(values) - 1)

    def place(index: int, value: float) -> str:
        height = _HEIGHT - _EDGE - (value - low) / span * (_HEIGHT - 2 * _EDGE)
        return f"{round(_EDGE + index * step, 1)} {round(height, 1)}"

    points = [place(index, value) for index, value in enumerate(values) if value is not None]
    marks = "".join(f"M{round(_EDGE + (change - 0.5) * step, 1)} 0V{_HEIGHT}" for change in changes)
    x, _, y = points[-1].partition(" ")
    return Markup(  # noqa: S704 - figures, and a label that is escaped
        f'<svg class="sparkline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<path class="changes" d="{marks}"/><path class="values" d="M{" L".join(points)}"/>'
        f'<circle cx="{x}" cy="{y}" r="2.5"/></svg>'
    )


def badge(left: str, right: str, tone: str) -> str:
    """A badge as it stands in a README: what it is of, and the verdict."""
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
