"""A prediction as a document: the total first, then its parts, then every stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.metric import Metric, MetricGroup
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import capitalised, enumerated, first_sentence, sentence_of, with_interval
from chainmark.report.blocks import Block, Column, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.report.split_parts import split_table
from chainmark.report.wording import prose
from chainmark.systems.cardano.model import modelled
from chainmark.systems.cardano.model.blocks import Parts, curve_charts, measured_points, parts_chart, parts_tables
from chainmark.systems.cardano.model.results import (
    Contribution,
    Modelled,
    Prediction,
    ScenarioEntry,
    ScenarioFigure,
    ScenarioRow,
)
from chainmark.systems.cardano.split.parts import TITLE

SPLIT_READ = (
    "Network: round trips and further TCP rounds; node: everything else that a block waits for. ±: half the "
    "width of the 90 % interval."
)
SECOND_OPINION = "by formula"
FORMULA_LEGEND = f"“{SECOND_OPINION}”: the same figure from a closed-form formula, as a cross-check."
_SHORT_LABEL = 30  # what every rendering has room for in a heading


def prediction_document(prediction: Prediction) -> Document:
    """Lay out a prediction."""
    base = prediction.scenarios[0]
    names = scenario_names(prediction.scenarios)
    tables = _tables(prediction, names)
    whole = [table for table, ids in tables if set(ids) & set(prediction.contribution_metric_ids)]
    stages = [table for table, _ in tables if table not in whole]
    first = [*_scenarios(prediction, names), *whole]
    curves = curve_charts(prediction.curves, names, _measured(prediction))
    sections = [
        Section("whole", "End-to-end figures", [*first, *curves]),
        Section("contributions", "Contributions of the stages", _contributions(prediction, names)),
        Section("split", TITLE, _splits(prediction, names)),
        Section("stages", "Stages", stages),
    ]
    return Document(
        kind="prediction",
        title=prediction.title,
        subtitle=one_line([prediction.source, network(base), f"seed {prediction.seed}"]),
        verdict=Verdict.INFORMATIONAL,
        sentence=_sentence(prediction),
        suites=[Suite(prediction.title, [_case(prediction, index) for index in range(len(prediction.scenarios))])],
        sections=[section for section in sections if section.blocks],
        notes=[sentence_of(capitalised(prose(note))) for note in prediction.notes],
        result=prediction,
    ).noted_once()


def _case(prediction: Prediction, index: int) -> Case:
    """One scenario with its figures; a prediction is not judged."""
    figures: dict[str, float | str] = {row.metric_id: row.cells[index].modelled.value for row in prediction.rows}
    label = prediction.scenarios[index].label
    return Case(label, label, Verdict.INFORMATIONAL, gates=False, figures=figures)


def network(scenario: ScenarioEntry) -> str:
    """The simulation's parameters."""
    return f"{units.plural(scenario.hosts, 'host')} · {units.plural(scenario.blocks, 'block')} simulated"


def _sentence(prediction: Prediction) -> str:
    """The scenario with the largest effect on the total, with its certainty; without scenarios, the network's share."""
    rows = {row.metric_id: row for row in prediction.rows}
    ids = [id_ for id_ in prediction.contribution_metric_ids if id_ in rows]
    base = prediction.scenarios[0].label
    if not ids:
        return first_sentence(f"{base}: the model has no end-to-end figure")
    whole = [rows[id_] for id_ in ids]
    changes = [(index, cell.change) for index, cell in enumerate(whole[-1].cells) if cell.change and cell.changed]
    scales = {row.metric_id: scale_of(row, prediction.catalogue.metric(row.metric_id), whole) for row in whole}
    if not changes:
        ends = dict.fromkeys([ids[0], ids[-1]])
        figures = [_with_interval(prediction, id_, rows[id_].cells[0].modelled, scales[id_]) for id_ in ends]
        none = f"{units.none_of(len(prediction.scenarios) - 1, 'what-if')} changes them visibly"
        others = none if len(prediction.scenarios) > 1 else ""
        step = "simulate a change, such as `--rtt +20%`, or check the model with `chainmark explain`"
        return first_sentence(f"{base}: {enumerated(figures)}", others, next_step="" if others else step)
    index, change = max(changes, key=lambda pair: abs(pair[1].value))
    metric, scale = prediction.catalogue.metric(ids[-1]), scales[ids[-1]]
    unit = scale.unit.symbol
    low, high = (units.number(scale.unit.of(end), scale.decimals, signed=True) for end in change.interval)
    amount = units.number(scale.unit.of(change.value), scale.decimals, signed=True)
    start = whole[-1].cells[0].modelled.value
    share = f", which is {units.percent(change.value / start)}" if start > 0.0 else ""
    moved = with_interval(amount, low, high, unit, level="95 %")
    what_ifs = units.plural(len(prediction.scenarios) - 1, "what-if")
    name = scenario_names(prediction.scenarios)[index]
    unit_word = f" {unit}" if unit else ""
    from_ = f"from {units.number(scale.unit.of(start), scale.decimals)}{unit_word}"
    return first_sentence(
        f"Of {what_ifs}, “{name}” changes {metric.label} most: {moved} {from_}{share}",
        next_step="check how well the model fits this network with `chainmark explain` before relying on it",
    )


def _with_interval(prediction: Prediction, id_: str, figure: Modelled, scale: modelled.RowScale) -> str:
    low, high = (units.number(scale.unit.of(end), scale.decimals) for end in figure.interval)
    value = units.number(scale.unit.of(figure.value), scale.decimals)
    label = prediction.catalogue.metric(id_).label
    return f"{label} {with_interval(value, low, high, scale.unit.symbol, level='95 %')}"


def scenario_names(scenarios: Sequence[ScenarioEntry]) -> list[str]:
    """The names of the scenarios in headings and legends: their labels, or their number of changes.

    All names are unique, so that columns and lines are not confused.
    """
    names: list[str] = []
    for scenario in scenarios:
        long = len(scenario.label) > _SHORT_LABEL and len(scenario.changes) > 1
        name = f"{len(scenario.changes)} changes together" if long else scenario.label
        duplicates = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({duplicates + 1})" if duplicates else name)
    return names


def _scenarios(prediction: Prediction, names: Sequence[str]) -> list[Table]:
    """The changes and the simulation, if the scenarios' names do not contain all of it."""
    scenarios = prediction.scenarios
    facts = {
        "hosts": [units.count(scenario.hosts) for scenario in scenarios],
        "blocks simulated": [units.count(scenario.blocks) for scenario in scenarios],
    }
    differing = [name for name, texts in facts.items() if len(set(texts)) > 1]
    unnamed = [_unnamed_changes(scenario, name) for scenario, name in zip(scenarios, names, strict=True)]
    if not differing and not any(unnamed) and all(len(name) <= _SHORT_LABEL for name in names):
        return []
    rows = []
    for index, name in enumerate(names):
        rows.append(row_of(name, *(facts[fact][index] for fact in differing)))
        rows += [TableRow([TableCell(text), *(TableCell() for _ in differing)], second=True) for text in unnamed[index]]
    return [Table("scenarios", "Scenarios", [*words("scenario"), *map(Column, differing)], rows)]


def _unnamed_changes(scenario: ScenarioEntry, name: str) -> list[str]:
    """The changes that a scenario's name does not contain."""
    reported = (", ".join(scenario.changes), " and ".join(scenario.changes))
    return [] if not scenario.changes or name in reported else scenario.changes


def scale_of(row: ScenarioRow, metric: Metric, beside: Sequence[ScenarioRow] = ()) -> modelled.RowScale:
    """One unit and one number of decimals for all values of a row, in the unit of the rows ``beside`` it."""
    errors = [cell.modelled.standard_error for cell in row.cells]
    return modelled.row_scale(metric.unit, _values(row), errors, [v for other in beside for v in _values(other)])


def _values(row: ScenarioRow) -> list[float | None]:
    return [row.measured, *(cell.modelled.value for cell in row.cells), *(cell.formula for cell in row.cells)]


def _tables(prediction: Prediction, names: Sequence[str]) -> list[tuple[Table, list[str]]]:
    """The catalogue's tables with their metrics' IDs: those of the total first, then the others, in order."""
    rows = {row.metric_id: row for row in prediction.rows}
    results = []
    for group in prediction.catalogue.tables:
        metrics = [m for m in prediction.catalogue.ordered() if m.table == group.id and m.id in rows]
        if metrics:
            table = _table(prediction, names, group, [(m, rows[m.id]) for m in metrics])
            results.append((table, [metric.id for metric in metrics]))
    whole = set(prediction.contribution_metric_ids)
    return sorted(results, key=lambda pair: not set(pair[1]) & whole)


def _table(
    prediction: Prediction, names: Sequence[str], group: MetricGroup, entries: Sequence[tuple[Metric, ScenarioRow]]
) -> Table:
    measured = any(row.measured is not None for _, row in entries)
    base, *others = names
    columns = [*words("metric"), *([Column("measured")] if measured else []), Column(base)]
    for label in others:
        columns += [Column(label, group=label, spare_tail=True), Column("change", group=label)]
    rows = []
    # The figures of the total are compared with each other, so they share their unit; stages differ widely.
    ids = set(prediction.contribution_metric_ids)
    together = [row for metric, row in entries if metric.id in ids]
    for metric, row in entries:
        scale = scale_of(row, metric, together if metric.id in ids else [])
        rows += _rows(metric, row, scale, measured=measured)
    notes = [modelled.JOINED_ERRORS_ARE, *([modelled.NO_DIFFERENCE_IS] if others else [])]
    if any(row.second for row in rows):
        notes.append(FORMULA_LEGEND)
    return Table(f"table-{group.id}", group.title, columns, rows, notes)


def _rows(metric: Metric, row: ScenarioRow, scale: modelled.RowScale, *, measured: bool) -> list[TableRow]:
    """A metric's row, followed by the formula's if it has one."""
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


def _formula_change(cell: ScenarioFigure, base: ScenarioFigure, metric: Metric) -> TableCell:
    """A formula has no random draws: its change has no standard error, only its printed precision."""
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
    return measured_points([(row.metric_id, row.measured) for row in prediction.rows], prediction.fractions)


def _contributions(prediction: Prediction, names: Sequence[str]) -> list[Block]:
    """The parts of the first and the last figure of the total, and a chart of all of them."""
    if not prediction.contributions:
        return []
    stages = list(dict.fromkeys(item.stage for item in prediction.contributions))
    ids = prediction.contribution_metric_ids
    entries = [
        (prediction.catalogue.metric(id_), _parts(prediction.contributions, stages, index))
        for index, id_ in enumerate(ids)
    ]
    ends = sorted({0, len(ids) - 1})
    errors = {row.metric_id: row.cells[0].modelled.standard_error for row in prediction.rows}
    tables = parts_tables(names, stages, [entries[index] for index in ends], errors)
    return [parts_chart(names, stages, entries, ends, errors), *tables]


def _splits(prediction: Prediction, names: Sequence[str]) -> list[Block]:
    """The network's and the nodes' part of every scenario's changes."""
    tables: list[Block] = []
    for split in prediction.splits:
        if not split.splits:
            continue
        table = split_table(prediction.catalogue, split.splits, f"split-{split.scenario}")
        tables.append(replace(table, title=f"{TITLE}: {names[split.scenario]} vs. {names[0]}", notes=[SPLIT_READ]))
    return tables


def _parts(contributions: Sequence[Contribution], stages: Sequence[str], index: int) -> Parts:
    results: dict[int, dict[str, float]] = {}
    for item in contributions:
        results.setdefault(item.scenario, {})[item.stage] = item.values[index]
    return {scenario: [values.get(stage, 0.0) for stage in stages] for scenario, values in sorted(results.items())}
