"""A timeline replayed slowly: its chart as a drawing that the page's script can play."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from chainmark.core import units
from chainmark.report.chart import Chart, Layer, rows_of
from chainmark.serve.rendering import part

SLOWNESS = 10
_ROW, _TEXT, _WIDTH, _EDGE, _HEAD, _LETTER = 15, 150, 960, 12, 26, 6.2
_LONGEST_NAME = 22


@dataclass(frozen=True)
class _Event:
    """A mark of the chart: its time, s; its lane; its series, and its number within it."""

    at_s: float
    lane: str
    series: str
    look: int


def replay(charts: Iterable[Chart]) -> Markup:
    """The first chart that can be replayed, with its controls; empty if there is none."""
    for chart in charts:
        layer = next((item for item in chart.layers if item.mark == "points"), None)
        if chart.unit_s > 0.0 and chart.y.names and layer is not None and (events := _events(chart, layer)):
            first, last = min(events[0].at_s, 0.0), events[-1].at_s
            drawing = _drawn(chart, events, first, last)
            return part("replay", drawing, _rounded(first), _rounded(last), SLOWNESS)
    return Markup()


def _events(chart: Chart, layer: Layer) -> list[_Event]:
    labels = {label: place for place, label in enumerate(chart.series[layer.colour].labels)}
    rows = rows_of(chart.data[layer.data])
    events = [_event(row, layer, labels, chart.unit_s) for row in rows if math.isfinite(row[str(layer.x)])]
    return sorted(events, key=lambda event: (event.at_s, event.lane, event.look))


def _event(row: Mapping[str, Any], layer: Layer, labels: Mapping[str, int], unit_s: float) -> _Event:
    series = str(row[layer.colour])
    return _Event(float(row[str(layer.x)]) * unit_s, str(row[str(layer.y)]), series, labels[series] % 8)


def _rounded(seconds: float) -> str:
    return str(round(seconds, 6))


def _drawn(chart: Chart, events: list[_Event], first: float, last: float) -> Markup:
    lanes = {name: _HEAD + _ROW * place + _ROW / 2 for place, name in enumerate(chart.y.names)}
    begin, end, height = _TEXT + _EDGE, _WIDTH - _EDGE, _HEAD + _ROW * len(lanes) + 6
    scale = (end - begin) / ((last - first) or 1.0)
    parts = [_legend(events)]
    for name, y in lanes.items():
        parts.append(f'<text x="0" y="{y + 4}">{escape(name[:_LONGEST_NAME])}</text><path d="M{_TEXT} {y}H{_WIDTH}"/>')
    for event in events:
        x, series = round(begin + (event.at_s - first) * scale, 1), f"{event.lane}: {event.series}"
        reported = escape(f"{units.duration(event.at_s)} · {series}" if event.at_s >= 0.0 else f"before 0 · {series}")
        parts.append(
            f'<circle class="look-{event.look}" data-at="{_rounded(event.at_s)}" cx="{x}" cy="{lanes[event.lane]}" '
            f'r="4"><title>{reported}</title></circle>'
        )
    parts.append(f'<path class="cursor" d="M{begin} {_HEAD - 4}V{height}"/>')
    label = escape(f"{chart.title}: {units.plural(len(events), 'event')} in {units.plural(len(lanes), 'lane')}")
    return Markup(  # noqa: S704 - figures, and texts that are escaped
        f'<svg class="lanes" viewBox="0 0 {_WIDTH} {height}" data-width="{end - begin}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _legend(events: list[_Event]) -> str:
    """The series, with their styles, in a line above the lanes."""
    parts, x = [], float(_TEXT)
    for look, series in sorted({(event.look, event.series) for event in events}):
        parts.append(f'<circle class="look-{look} lit" cx="{round(x + 6, 1)}" cy="11" r="4"/>')
        parts.append(f'<text x="{round(x + 14, 1)}" y="15">{escape(series)}</text>')
        x += 28 + _LETTER * len(series)
    return "".join(parts)
