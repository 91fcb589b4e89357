"""How latencies and errors of long steps changed from their start to their end."""

from __future__ import annotations

from chainmark.capacity.verdict import drift_text, level_text
from chainmark.core import units
from chainmark.core.load_report import DriftEntry, TargetEntry
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Column, Table, TableCell, TableRow, words
from chainmark.report.wording import verdict_cell


def drift_table(target: TargetEntry, name: str, number: int, *, several: bool) -> Table | None:
    """A row per figure of each long step; None without such a step."""
    rows = [TableRow(_cells(endpoint.label, drift)) for endpoint in target.endpoints for drift in endpoint.drifts]
    if not rows:
        return None
    columns = [
        *words("level"),
        Column("metric", kind="words"),
        Column("at the start"),
        *words("change to the end", "outcome"),
    ]
    notes = [
        "Slope of a line through the medians of sixty stretches of the step (Theil and Sen), with its 95 % interval, "
        "which is wider if neighbouring stretches are correlated. Changes of latencies and memory are relative, those "
        "of errors in percentage points."
    ]
    return Table(f"drift-{number}", f"Over time{f': {name}' if several else ''}", columns, rows, notes)


def _cells(label: str, drift_entry: DriftEntry) -> list[TableCell]:
    return [
        TableCell(
            f"{label}, {level_text(drift_entry.kind, drift_entry.level)}, {units.duration(drift_entry.window_s)}"
        ),
        TableCell(drift_entry.what),
        _begin(drift_entry),
        TableCell(drift_text(drift_entry)),
        TableCell("no limit", emphasis="quiet")
        if drift_entry.limit is None
        else verdict_cell(Verdict(drift_entry.outcome)),
    ]


def _begin(drift_entry: DriftEntry) -> TableCell:
    if drift_entry.begin is None:
        return TableCell(units.NOT_ESTIMABLE, emphasis="quiet")
    if drift_entry.what == "memory":
        return TableCell(units.quantity(drift_entry.begin, "B"))
    return TableCell(
        units.plain_percent(drift_entry.begin) if drift_entry.what == "errors" else units.duration(drift_entry.begin)
    )
