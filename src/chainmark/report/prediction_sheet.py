"""A prediction as a sheet: the whole first, then what it is made of, then every stage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.metric import Metric
from chainmark.core.prediction import Cell, Contribution, Prediction, Row, ScenarioEntry
from chainmark.report import modelled
from chainmark.report.document import prose
from chainmark.report.model_blocks import Parts, curve_figure, measured_points, parts_figure, parts_tables
from chainmark.report.sheet import Block, Column, Section, Sheet, Table, TableCell, TableRow, one_line, words

SECOND_OPINION = "by formula"
FORMULA_LEGEND = f"“{SECOND_OPINION}”: the same from a closed formula, another method, as a second opinion."
_SHORT_LABEL = 30  # what every rendering has room for in a heading


def prediction_sheet(prediction: Prediction) -> Sheet:
    """Lay out a prediction."""
    base = prediction.scenarios[0]
    tables = _tables(prediction)
    whole = [table for table, ids in tables if set(ids) & set(prediction.contribution_metric_ids)]
    stages = [table for table, _ in tables if table not in whole]
    first = [*_scenarios(prediction), *whole]
    labels = [scenario.label for scenario in prediction.scenarios]
    curves = curve_figure(prediction.curves, labels, _measured(prediction))
    sections = [
        Section("whole", "The whole", [*first, *curves]),
        Section("contributions", "What it is made of", _contributions(prediction)),
        Section("stages", "The stages", stages),
    ]
    return Sheet(
        kind="prediction",
        title=prediction.title,
        subtitle=one_line([prediction.source, network(base), f"seed {prediction.seed}"]),
        status="neutral",
        word="PREDICTION",
        sentence=_sentence(prediction),
        sections=[section for section in sections if section.blocks],
        notes=[prose(note) for note in prediction.notes],
        source_json=prediction.model_dump_json(),
    ).noted_once()


def network(scenario: ScenarioEntry) -> str:
    """What was simulated."""
    return f"{units.plural(scenario.hosts, 'host')} · {units.plural(scenario.blocks, 'block')} simulated"


def _sentence(prediction: Prediction) -> str:
    """The base scenario's figures that the whole is judged by: the first and the last of them."""
    ids = prediction.contribution_metric_ids
    rows = {row.metric_id: row for row in prediction.rows}
    told = []
    together = [rows[id_] for id_ in ids if id_ in rows]
    for id_ in dict.fromkeys([*ids[:1], *ids[-1:]]):
        if row := rows.get(id_):
            metric = prediction.catalogue.metric(id_)
            scale = scale_of(row, metric, together)
            told.append(f"{metric.label} {scale.modelled(row.cells[0].modelled).whole} {scale.unit.symbol}".rstrip())
    base = prediction.scenarios[0].label
    others = len(prediction.scenarios) - 1
    beside = f" Beside it, {units.plural(others, 'scenario')}." if others else ""
    return f"{base}: {', '.join(told) or 'no figure of the whole'}.{beside}"


def _scenarios(prediction: Prediction) -> list[Table]:
    """What was changed and simulated, where the scenarios' names do not say all of it."""
    scenarios = prediction.scenarios
    others = scenarios[1:]
    facts = {
        "what was changed": ["; ".join(scenario.changes) or units.UNSET for scenario in scenarios],
        "hosts": [units.count(scenario.hosts) for scenario in scenarios],
        "blocks simulated": [units.count(scenario.blocks) for scenario in scenarios],
    }
    told = all(scenario.label in (", ".join(scenario.changes), " and ".join(scenario.changes)) for scenario in others)
    short = all(len(scenario.label) <= _SHORT_LABEL for scenario in scenarios)
    shown = [] if told else ["what was changed"]
    shown += [name for name in ("hosts", "blocks simulated") if len(set(facts[name])) > 1]
    if not others or (short and not shown):
        return []
    columns = [*words("scenario"), *(Column(n, kind="words" if n == "what was changed" else "figures") for n in shown)]
    rows = [
        TableRow([TableCell(scenario.label), *(TableCell(facts[name][index]) for name in shown)])
        for index, scenario in enumerate(scenarios)
    ]
    return [Table("scenarios", "Scenarios", columns, rows)]


def scale_of(row: Row, metric: Metric, beside: Sequence[Row] = ()) -> modelled.RowScale:
    """One unit and one number of decimals for all that a row prints, in the unit of the rows ``beside`` it."""
    errors = [cell.modelled.standard_error for cell in row.cells]
    return modelled.row_scale(metric.unit, _values(row), errors, [v for other in beside for v in _values(other)])


def _values(row: Row) -> list[float | None]:
    return [row.measured, *(cell.modelled.value for cell in row.cells), *(cell.formula for cell in row.cells)]


def _tables(prediction: Prediction) -> list[tuple[Table, list[str]]]:
    """The catalogue's tables with their metrics' ids: those of the whole first, then the others, in its order."""
    rows = {row.metric_id: row for row in prediction.rows}
    found = []
    for group in prediction.catalogue.tables:
        metrics = [m for m in prediction.catalogue.ordered() if m.table == group.id and m.id in rows]
        if metrics:
            table = _table(prediction, f"table-{group.id}", group.title, [(m, rows[m.id]) for m in metrics])
            found.append((table, [metric.id for metric in metrics]))
    whole = set(prediction.contribution_metric_ids)
    return sorted(found, key=lambda pair: not set(pair[1]) & whole)


def _table(prediction: Prediction, id_: str, title: str, entries: Sequence[tuple[Metric, Row]]) -> Table:
    measured = any(row.measured is not None for _, row in entries)
    base, *others = (scenario.label for scenario in prediction.scenarios)
    columns = [*words("metric"), *([Column("measured")] if measured else []), Column(base)]
    for label in others:
        columns += [Column(label, group=label, spare_tail=True), Column("change", group=label)]
    rows = []
    # The figures of the whole are compared with each other, so they share their unit; stages differ by far.
    ids = set(prediction.contribution_metric_ids)
    together = [row for metric, row in entries if metric.id in ids]
    for metric, row in entries:
        scale = scale_of(row, metric, together if metric.id in ids else [])
        rows += _rows(metric, row, scale, measured=measured)
    notes = [modelled.ERRORS_ARE, *([modelled.NO_DIFFERENCE_IS] if others else [])]
    if any(row.second for row in rows):
        notes.append(FORMULA_LEGEND)
    return Table(id_, title, columns, rows, notes)


def _rows(metric: Metric, row: Row, scale: modelled.RowScale, *, measured: bool) -> list[TableRow]:
    """A metric's row, and the formula's below it where it has one."""
    base, *others = row.cells
    cells = [TableCell(scale.label(metric.label))]
    if measured:
        cells.append(scale.figure(row.measured))
    cells.append(scale.modelled(base.modelled))
    for cell in others:
        change = modelled.change_cell(cell, base.modelled, metric, scale)
        cells += [scale.modelled(cell.modelled, change.emphasis), change]
    rows = [TableRow(cells)]
    if any(cell.formula is not None for cell in row.cells):
        second = [TableCell(SECOND_OPINION, emphasis="quiet"), *([TableCell()] if measured else [])]
        second.append(scale.figure(base.formula, "quiet"))
        for cell in others:
            second += [scale.figure(cell.formula, "quiet"), _formula_change(cell, base, metric)]
        rows.append(TableRow(second, second=True))
    return rows


def _formula_change(cell: Cell, base: Cell, metric: Metric) -> TableCell:
    """A formula draws nothing at random: its change has no standard error, only the digits that it is printed to."""
    if cell.formula is None or base.formula is None or not modelled.is_relative(metric, base.formula):
        return TableCell()
    change = cell.formula / base.formula - 1.0
    if not math.isfinite(change):
        return TableCell()
    text = units.number(change * 100.0, 1, signed=True)
    if text == units.number(0.0, 1):
        return TableCell(modelled.NO_DIFFERENCE, emphasis="quiet")
    return TableCell(text, "%", "quiet")


def _measured(prediction: Prediction) -> list[tuple[float, float]]:
    whole = set(prediction.contribution_metric_ids)
    known = [(row.metric_id, row.measured) for row in prediction.rows if row.metric_id in whole]
    return measured_points([(prediction.catalogue.metric(id_), value) for id_, value in known])


def _contributions(prediction: Prediction) -> list[Block]:
    """What the first and the last figure of the whole are made of, and a chart of all of them."""
    if not prediction.contributions:
        return []
    stages = list(dict.fromkeys(item.stage for item in prediction.contributions))
    labels = [scenario.label for scenario in prediction.scenarios]
    ids = prediction.contribution_metric_ids
    entries = [
        (prediction.catalogue.metric(id_), _parts(prediction.contributions, stages, index))
        for index, id_ in enumerate(ids)
    ]
    ends = sorted({0, len(ids) - 1})
    errors = {row.metric_id: row.cells[0].modelled.standard_error for row in prediction.rows}
    tables = parts_tables(labels, stages, [entries[index] for index in ends], errors)
    return [parts_figure(labels, stages, entries, ends), *tables]


def _parts(contributions: Sequence[Contribution], stages: Sequence[str], index: int) -> Parts:
    found: dict[int, dict[str, float]] = {}
    for item in contributions:
        found.setdefault(item.scenario, {})[item.stage] = item.values[index]
    return {scenario: [values.get(stage, 0.0) for stage in stages] for scenario, values in sorted(found.items())}
