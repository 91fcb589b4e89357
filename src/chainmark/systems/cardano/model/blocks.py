"""Blocks that predictions and explanations share: the adoption curves, and the parts of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chainmark.core import units
from chainmark.core.metric import Metric
from chainmark.report.blocks import Column, Table, TableCell, TableRow, short_labels, words
from chainmark.report.chart import Chart
from chainmark.systems.cardano.model import modelled
from chainmark.systems.cardano.model.charts import CurveLine, curve_chart, part_chart, part_rows
from chainmark.systems.cardano.model.results import AdoptionCurve

Parts = dict[int, list[float]]  # scenario → one value per stage


def measured_points(
    entries: Sequence[tuple[str, float | None]], fractions: Mapping[str, float]
) -> list[tuple[float, float]]:
    """Measured figures, by metric ID, as points of the curve: the value and its fraction."""
    return [(value, fractions[name]) for name, value in entries if value is not None and name in fractions]


def curve_charts(
    curves: Sequence[AdoptionCurve], labels: Sequence[str], measured: Sequence[tuple[float, float]]
) -> list[Chart]:
    """The adoption curves; empty if there are none."""
    if not curves:
        return []
    shown = units.display_unit("s", [value for curve in curves for value in curve.values])
    factor = shown.factor
    scaled = []
    for curve in curves:
        low, high = ([end[side] * factor for end in curve.intervals] for side in (0, 1))
        values = [value * factor for value in curve.values]
        scaled.append(CurveLine(labels[curve.scenario], values, curve.fractions, low, high))
    points = [(value * factor, fraction) for value, fraction in measured]
    return [curve_chart(scaled, points, shown.symbol)]


def parts_chart(
    labels: Sequence[str],
    stages: Sequence[str],
    entries: Sequence[tuple[Metric, Parts]],
    ends: Sequence[int],
    errors: Mapping[str, float],
) -> Chart:
    """One bar per scenario for every metric, one metric at a time; for a single scenario, one bar per metric.

    Args:
        labels: the scenarios' names.
        stages: the parts' names.
        entries: metrics with the parts of each scenario.
        ends: the metrics that are shown on paper and on a terminal, which have no selection.
        errors: the standard errors of the totals, by metric.
    """
    unit = units.display_unit(entries[0][0].unit, [sum(values) for _, parts in entries for values in parts.values()])
    names = [f"{index + 1} {stage}" for index, stage in enumerate(stages)]
    alone = all(len(parts) < 2 for _, parts in entries)
    bars = [
        part_rows(
            metric.label if alone else labels[scenario],
            names,
            [value * unit.factor for value in values],
            **({} if alone else {"choice": metric.label}),
        )
        for metric, parts in entries
        for scenario, values in parts.items()
    ]
    rows = [row for bar in bars for row in bar]
    pages = [] if alone else [entries[index][0].label for index in ends]
    chart = part_chart(rows, names, f"time, {unit.symbol}" if unit.symbol else "", pages)
    totals = [sum(values) for _, parts in entries for values in parts.values()]
    beside: dict[Any, str] = {}
    for metric, parts in entries:
        sums = {scenario: sum(values) for scenario, values in parts.items()}
        scale = modelled.row_scale(metric.unit, sums.values(), [errors.get(metric.id, 0.0)], totals)
        beside |= {
            metric.label if alone else (metric.label, labels[scenario]): scale.figure(total).text
            for scenario, total in sums.items()
        }
    return replace(chart, beside=beside)


def parts_tables(
    labels: Sequence[str],
    stages: Sequence[str],
    entries: Sequence[tuple[Metric, Parts]],
    errors: Mapping[str, float],
) -> list[Table]:
    """Stage by stage, scenario by scenario, with the precision of the total (``errors`` by metric)."""
    totals = [sum(values) for _, parts in entries for values in parts.values()]
    tables = []
    for metric, parts in entries:
        columns = {labels[scenario]: values for scenario, values in parts.items()}
        scale = _scale(metric, columns, errors.get(metric.id, 0.0), totals)
        title = scale.label(f"Contributions to {metric.label}")
        tables.append(_matrix(f"parts-{metric.id}", title, stages, columns, scale))
    return tables


def matrix_table(metrics: Sequence[Metric], stages: Sequence[str], parts: Sequence[list[float]], error: float) -> Table:
    """Stage by stage, metric by metric, for a single scenario."""
    shorts, shared = short_labels([metric.label for metric in metrics])
    columns = dict(zip(shorts, parts, strict=True))
    scale = _scale(metrics[0], columns, error)
    return _matrix("parts-all", scale.label(f"Contributions to {shared or 'the total'}"), stages, columns, scale)


Columns = Mapping[str, list[float]]


def _scale(metric: Metric, columns: Columns, error: float, beside: Sequence[float] = ()) -> modelled.RowScale:
    return modelled.row_scale(metric.unit, [sum(values) for values in columns.values()], [error], beside)


def _matrix(id_: str, title: str, stages: Sequence[str], columns: Columns, scale: modelled.RowScale) -> Table:
    rows = [
        TableRow([TableCell(f"{index + 1} {stage}"), *(scale.figure(values[index]) for values in columns.values())])
        for index, stage in enumerate(stages)
    ]
    rows.append(TableRow([TableCell("total"), *(scale.figure(sum(values)) for values in columns.values())]))
    return Table(id_, title, [*words("stage"), *map(Column, columns)], rows)
