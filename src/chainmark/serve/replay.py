"""A timeline replayed slowly: its chart with the time of every event, which the page's script can play."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from chainmark.core import units
from chainmark.report.chart import Chart, Layer, Tooltip, columns_of, rows_of

SLOWNESS = 10
REPLAY = "replay"  # the look of a drawing that the script plays


def replayable(charts: Iterable[Chart]) -> tuple[str, float, float] | None:
    """The id of the first chart that can be replayed, and its first and last time in seconds; None if there is none."""
    for chart in charts:
        if played := replayed(chart):
            moments = next(played.column(layer.key, layer.data) for layer in played.layers if layer.key)
            return chart.id, min(*moments, 0.0), max(moments)
    return None


def replayed(chart: Chart) -> Chart | None:
    """The chart with the time of each of its events as the key of its mark; None if it cannot be replayed."""
    layer = next((item for item in chart.layers if item.mark == "points"), None)
    if chart.unit_s == 0.0 or not chart.y.names or layer is None:
        return None
    rows = [row for row in rows_of(chart.data[layer.data]) if math.isfinite(row[str(layer.x)])]
    timed = columns_of(_timed(row, layer, chart.unit_s) for row in rows)
    keyed = replace(layer, key="at_s", tips=[Tooltip("", "says")])
    layers = [keyed if item is layer else item for item in chart.layers]
    return replace(chart, layers=layers, data={**chart.data, layer.data: timed}) if rows else None


def _timed(row: Mapping[str, Any], layer: Layer, unit_s: float) -> dict[str, Any]:
    at_s = round(float(row[str(layer.x)]) * unit_s, 6)
    when = units.duration(at_s) if at_s >= 0.0 else "before 0"
    return {**row, "at_s": at_s, "says": f"{when} · {row[str(layer.y)]}: {row[layer.colour]}"}
