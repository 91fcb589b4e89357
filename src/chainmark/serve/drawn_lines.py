"""Small inline drawings: a figure over the releases, and a verdict as a badge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from chainmark.core import units

_WIDTH, _HEIGHT, _EDGE = 160, 32, 3
_LETTER, _MARGIN = 6.6, 8
_TONES = {"pass": "#14713d", "fail": "#b3261e", "inconclusive": "#8a5a00", "invalid": "#6b3fa0", "neutral": "#1f4e79"}


def sparkline(values: Sequence[float | None], changes: Sequence[int], label: str) -> Markup:
    """Values from left to right, a point at the last one, a line where the level changed."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup()
    low, span = min(known), (max(known) - min(known)) or 1.0
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


@dataclass(frozen=True)
class Dot:
    """A value with the key of its item: the same key is marked in every drawing of a page."""

    key: str
    value: float | None


_DOTS_WIDTH, _ROW, _TEXT = 640, 24, 130


def dots(label: str, rows: Sequence[tuple[str, Sequence[Dot]]], unit: str) -> Markup:
    """Values as dots on one axis, a row for each side."""
    known = [dot.value for _, own in rows for dot in own if dot.value is not None]
    if not known:
        return Markup()
    low, high = min(known), max(known)
    span, height = (high - low) or 1.0, _ROW * len(rows) + 18
    parts = []
    for place, (name, own) in enumerate(rows):
        y = _ROW * place + _ROW / 2
        parts.append(f'<text x="0" y="{y + 4}">{escape(name[:18])}</text><path d="M{_TEXT} {y}H{_DOTS_WIDTH - 8}"/>')
        for dot in own:
            if dot.value is not None:
                x = round(_TEXT + 8 + (dot.value - low) / span * (_DOTS_WIDTH - _TEXT - 24), 1)
                tip = escape(f"{dot.key}: {units.quantity(dot.value, unit)}")
                key = escape(dot.key)
                parts.append(f'<circle class="side-{min(place, 7)}" data-key="{key}" cx="{x}" cy="{y}" r="5">')
                parts.append(f"<title>{tip}</title></circle>")
    ends = (escape(units.quantity(end, unit)) for end in (low, high))
    parts.append(f'<text x="{_TEXT}" y="{height - 4}">{next(ends)}</text>')
    parts.append(f'<text x="{_DOTS_WIDTH}" y="{height - 4}" text-anchor="end">{next(ends)}</text>')
    return Markup(  # noqa: S704 - figures, and texts that are escaped
        f'<svg class="dots" viewBox="0 0 {_DOTS_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


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
