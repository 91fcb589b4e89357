"""Every value and change of a report in the published style, in that style's digits."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.systems.cardano.published.digits import Interval, exactly, hidden_value, is_determined, is_possible
from chainmark.systems.cardano.published.results import (
    PublishedChange,
    PublishedReport,
    PublishedRow,
    PublishedValue,
    ReportStyle,
)
from chainmark.systems.cardano.published.values import PrintedChange, org_change, org_value, typst_change, typst_value

_USUAL_WIDTH = 5  # characters, if a catalogue does not state it


def worded(report: PublishedReport) -> PublishedReport:
    """The report with ``shown`` and ``changes`` of every row as its style prints them."""
    result = report.model_copy(deep=True)
    for table in result.tables:
        for row in table.rows:
            row.shown = [shown(value, row, result.style) for value in row.values]
            row.changes = [_change(row, index, result.style) for index in range(1, len(row.values))]
    return result


def shown(value: PublishedValue, row: PublishedRow, style: ReportStyle) -> str:
    """A value as a report printed it, or as this style prints the full average."""
    if value.printed is not None:
        return value.printed
    if value.value is None:
        return units.NO_DATA
    if style is ReportStyle.ORG:
        return org_value(value.value)
    return typst_value(value.value, row.width if row.width is not None else _USUAL_WIDTH)


def _change(row: PublishedRow, index: int, style: ReportStyle) -> PublishedChange:
    """The printed change of a report, or the one that follows from the values; the likeliest of several."""
    base, value = row.values[0], row.values[index]
    published_change = (
        row.reported_changes[index - 1]
        if index <= len(row.reported_changes) and row.reported_changes[index - 1].printed
        else None
    )
    if _is_empty(base) or _is_empty(value):
        return published_change or PublishedChange()
    if style is ReportStyle.ORG:
        return _merged(published_change, org_change(row.shown[0], row.shown[index]))
    change = typst_change(_number(base), _number(value))
    if base.printed is None and value.printed is None:
        return _merged(published_change, change)
    digits = (_digits(base, row), _digits(value, row))
    if published_change is None:
        return _printed(change, decided=is_determined(*digits))
    agrees = is_possible(*digits, PrintedChange(published_change.delta, published_change.percent))
    return published_change.model_copy(update={"decided": is_determined(*digits), "agrees": agrees})


def _merged(published_change: PublishedChange | None, change: PrintedChange) -> PublishedChange:
    if published_change is None:
        return _printed(change)
    agrees = PrintedChange(published_change.delta, published_change.percent) == change
    return published_change.model_copy(update={"agrees": agrees})


def _printed(change: PrintedChange, *, decided: bool = True) -> PublishedChange:
    return PublishedChange(delta=change.delta, percent=change.percent, decided=decided)


def _is_empty(value: PublishedValue) -> bool:
    return value.value is None and value.printed is None


def _number(value: PublishedValue) -> float:
    return float(value.printed or 0.0) if value.value is None else value.value


def _digits(value: PublishedValue, row: PublishedRow) -> Interval:
    if value.printed is not None and value.value is None:
        return hidden_value(value.printed, row.width)
    return exactly(_number(value))


def changes_of(report: PublishedReport) -> Sequence[PublishedChange]:
    """All changes that a worded report shows."""
    return [change for table in report.tables for row in table.rows for change in row.changes if change.delta]
