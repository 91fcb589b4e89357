"""How latencies and errors of long steps changed from their begin to their end."""

from __future__ import annotations

from chainmark.capacity.verdict import drift_text, level_text
from chainmark.core import units
from chainmark.core.load_report import DriftEntry, TargetEntry
from chainmark.report.blocks import Column, Table, TableCell, TableRow, words
from chainmark.report.phrases import Emphasis

_EMPHASIS: dict[str, Emphasis] = {"pass": "plain", "fail": "worse"}


def drift_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table | None:
    """A row a figure of each long step; None without such a step."""
    rows = [TableRow(_cells(endpoint.label, one)) for endpoint in target.endpoints for one in endpoint.drifts]
    if not rows:
        return None
    columns = [
        *words("level"),
        Column("figure", kind="words"),
        Column("at its begin"),
        *words("change to its end", "kept"),
    ]
    notes = [
        "A line through the medians of sixty stretches of the step (Theil and Sen), with its 95 % interval, wider "
        "where neighbouring stretches resemble each other. Latencies and memory change by a share of what they were, "
        "errors by points."
    ]
    return Table(f"drift-{number}", f"Over the time{f': {name}' if several else ''}", columns, rows, notes)


def _cells(label: str, one: DriftEntry) -> list[TableCell]:
    kept = {"pass": "yes", "fail": "no"}.get(one.outcome, "not clear") if one.limit is not None else "not asked"
    return [
        TableCell(f"{label}, {level_text(one.kind, one.level)}, {units.duration(one.window_s)}"),
        TableCell(one.what),
        _begin(one),
        TableCell(drift_text(one)),
        TableCell(kept, emphasis=_EMPHASIS.get(one.outcome, "caution") if one.limit is not None else "quiet"),
    ]


def _begin(one: DriftEntry) -> TableCell:
    if one.begin is None:
        return TableCell(units.NOT_ESTIMABLE, emphasis="quiet")
    if one.what == "memory":
        return TableCell(units.quantity(one.begin, "B"))
    return TableCell(units.plain_percent(one.begin) if one.what == "errors" else units.duration(one.begin))
