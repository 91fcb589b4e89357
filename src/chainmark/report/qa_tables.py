"""The tables of a qualification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.comparison import Comparison, Judgement, Outcome, Scale
from chainmark.core.manifest import Fact
from chainmark.core.metric import Metric, SharedFact
from chainmark.core.qa_report import QaReport, QaScenario
from chainmark.core.verdict import Verdict
from chainmark.core.wording import judged_name
from chainmark.report.blocks import ON_PAGES, Column, Table, TableCell, TableRow, row_of, words
from chainmark.report.breakdown_parts import breakdown_table
from chainmark.report.judged_rows import JudgedRow, RowMaker
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import GATE_MARKS, verdict_cell

_SHORT_HASH = 16
_UNBROKEN = "\u00a0"


def verdict_table(report: QaReport) -> Table:
    """Scenario, date, version with commit, result: the row at the end of published reports, and the reasons."""
    rows = [
        row_of(
            row.scenario,
            row.date or units.UNSET,
            row.version,
            verdict_cell(row.result),
            row.reason,
        )
        for row in report.rows
    ]
    notes = [f"{Verdict.INFORMATIONAL.value.capitalize()}: measured and not judged. It does not affect the result."]
    informational = any(row.result is Verdict.INFORMATIONAL for row in report.rows)
    return Table(
        "results",
        "Results",
        words("Scenario", "Date", "Version (commit)", "Result", "Reason"),
        rows,
        notes if informational else [],
    )


def subjects_table(report: QaReport) -> Table:
    """The compared versions."""
    sides = (report.baseline, report.candidate)
    facts = [
        ("version", [side.version for side in sides]),
        ("commit", [commit or units.UNSET for commit in report.commits]),
        ("revision", [(side.revision or units.UNSET)[:_SHORT_HASH] for side in sides]),
        ("built by", [side.build or units.UNSET for side in sides]),
        ("binary, SHA-256", [(side.binary_sha256 or units.UNSET)[:_SHORT_HASH] for side in sides]),
    ]
    facts += [(label, [left, right]) for label, left, right, _ in report.condition_rows]
    rows = [row_of(label, *values) for label, values in facts]
    notes = [f"{label}: {' '.join(row.split())}" for label, _, _, row in report.condition_rows if row]
    return Table("subjects", "Compared versions", words("", "baseline", "candidate"), rows, notes)


def facts_table(id_: str, title: str, facts: Sequence[Fact]) -> Table:
    """Facts below each other."""
    rows = [row_of(fact.label, fact.value) for fact in facts]
    return Table(id_, title, words("", ""), rows)


def configuration_table(report: QaReport) -> Table:
    """The differences between the versions' own defaults."""
    rows = [
        row_of(
            f"{difference.file}: {difference.key}",
            _setting(difference.baseline, absent=difference.only_in == "candidate"),
            _setting(difference.candidate, absent=difference.only_in == "baseline"),
        )
        for difference in report.configuration_differences
    ]
    return Table(
        "configuration",
        "Differences between the versions' defaults",
        words("key", report.baseline.version, report.candidate.version),
        rows,
        ["“All defaults” is not the same configuration in both versions. Each difference may affect any metric."],
        media=ON_PAGES,
    )


def _setting(value: object, *, absent: bool) -> str:
    return "no such key" if absent else units.scalar(value)


def comparison_table(scenario: QaScenario, comparison: Comparison) -> list[Table]:
    """The gating metrics, the tables that the plan requests, and the other moved metrics."""
    rows = RowMaker(comparison).rows()
    tables = {metric.id: metric.table for metric in comparison.catalogue.metrics}
    incomparable = {item.metric_id for item in scenario.incomparable}
    gating = [row for row in rows if row.gating]
    table_rows = {
        title: [row for row in rows if not row.gating and tables[row.metric_id] == id_]
        for id_, title in ((table.id, table.title) for table in comparison.catalogue.tables)
        if id_ in scenario.tables
    }
    anchors = {row.anchor for result in [gating, *table_rows.values()] for row in result}
    moved = [row for row in rows if row.anchor not in anchors and (row.moved or row.metric_id in incomparable)]
    parts = [("Gating metrics", gating), *table_rows.items(), ("Other metrics that moved or cannot be compared", moved)]
    return [
        _rows_table(scenario, f"{scenario.id}-metrics-{number}", title, part, comparison)
        for number, (title, part) in enumerate(parts)
        if part
    ]


def places_tables(scenario: QaScenario, comparison: Comparison) -> list[Table]:
    """By host, the metrics for which the reasons name hosts."""
    tables = []
    for item in comparison.breakdowns:
        table = breakdown_table(comparison, item, comparison.catalogue.metric(item.metric_id))
        title = f"{table.title}, {item.key} by {item.key}"
        tables.append(replace(table, id=f"{scenario.id}-{table.id}", title=title))
    return tables


def _rows_table(scenario: QaScenario, id_: str, title: str, rows: Sequence[JudgedRow], comparison: Comparison) -> Table:
    incomparable = {item.metric_id for item in scenario.incomparable}
    columns = [
        *words("metric"),
        Column(comparison.baseline.label),
        Column(comparison.candidate.label),
        Column("change"),
        Column("interval", kind="words"),
        Column("margin", kind="bar"),
        Column("margin", kind="words"),
        Column("outcome", kind="words"),
    ]
    table_rows = []
    for row in rows:
        excused = row.metric_id in incomparable
        cells = [
            TableCell(row.label_with_unit),
            TableCell(row.baseline),
            TableCell(row.candidate),
            TableCell(row.change, row.change_unit, "quiet" if excused else row.emphasis),
            TableCell(row.interval.replace(" ", _UNBROKEN)),
            TableCell(bar=None if excused else row.bar),
            TableCell(row.margin),
            TableCell("not comparable" if excused else row.outcome, emphasis="quiet" if excused else row.emphasis),
        ]
        table_rows.append(TableRow(cells))
    notes = [f"Intervals: {units.plain_percent(comparison.confidence)}."]
    notes += [f"{item.label}: {item.because}." for item in scenario.incomparable
              if any(row.metric_id == item.metric_id for row in rows)]  # fmt: skip
    return Table(id_, title, columns, table_rows, notes)


def beside_table(scenario: QaScenario, metrics: dict[str, Metric]) -> Table:
    """Sides next to each other: values, and the change relative to the first one."""
    first, *others = [side.label for side in scenario.sides]
    columns = [*words("metric"), Column(first)]
    for label in others:
        columns += [
            Column(label, group=label),
            Column("change", group=label),
            Column("interval", group=label, kind="words"),
        ]
    rows = []
    for beside_row in scenario.beside:
        metric = metrics[beside_row.metric_id]
        values = [item.candidate.value for item in beside_row.judgements] + [beside_row.judgements[0].baseline.value]
        unit = units.display_unit(metric.unit, values)
        decimals = units.decimals_for([unit.of(value) for value in values])
        label = judged_name(metric, beside_row.statistic)
        cells = [
            TableCell(f"{label}, {unit.symbol}" if unit.symbol else label),
            TableCell(units.number(unit.of(beside_row.judgements[0].baseline.value), decimals)
                      if beside_row.judgements[0].baseline.value is not None else units.NO_DATA),
        ]  # fmt: skip
        for item in beside_row.judgements[: len(others)]:
            cells += _beside_cells(item, unit, decimals)
        rows.append(TableRow(cells))
    against = f" Columns of each side: the value, the change against {first}, and its 90 % interval." if others else ""
    note = f"For information only: nothing here is judged.{against}"
    return Table(f"{scenario.id}-beside", "Side by side", columns, rows, [note])


def conditions_table(scenario: QaScenario, conditions: Sequence[SharedFact]) -> Table | None:
    """The conditions of each side; None if no side has any."""
    rows = []
    differing = []
    for condition in conditions:
        values = [side.conditions.get(condition.id, "") for side in scenario.sides]
        if any(values):
            emphasis: Emphasis = "caution" if len(set(values)) > 1 else "plain"
            cells = [TableCell(value or units.UNSET, emphasis=emphasis) for value in values]
            rows.append(row_of(condition.label, *cells))
            differing += [f"{condition.label}: {condition.explanation}"] if emphasis == "caution" else []
    columns = words("condition", *(side.label for side in scenario.sides))
    notes = [" ".join(text.split()) for text in differing]
    return Table(f"{scenario.id}-conditions", "Conditions", columns, rows, notes) if rows else None


def _beside_cells(item: Judgement, unit: units.DisplayUnit, decimals: int) -> list[TableCell]:
    if item.candidate.value is None:
        return [TableCell(units.NO_DATA, emphasis="quiet"), TableCell(), TableCell()]
    value = TableCell(units.number(unit.of(item.candidate.value), decimals))
    if item.change is None:
        is_incomparable = item.outcome is Outcome.NOT_COMPARABLE
        return [
            value,
            TableCell(item.outcome.value if is_incomparable else units.NOT_ESTIMABLE, emphasis="quiet"),
            TableCell(),
        ]
    if item.scale is Scale.RELATIVE:
        return [
            value,
            TableCell(units.percent(item.change)),
            TableCell(units.percent_interval(item.low, item.high).replace(" ", _UNBROKEN)),
        ]
    texts = [units.number(unit.of(part), decimals, signed=True) for part in (item.change, item.low, item.high)]
    symbol = units.symbol_of_change(unit)
    return [
        value,
        TableCell(texts[0], symbol),
        TableCell(f"{texts[1]} … {texts[2]} {symbol}".strip().replace(" ", _UNBROKEN)),
    ]


def runs_table(scenario: QaScenario) -> Table:
    """Every run; the invalid ones with their gates."""
    labels = {side.id: side.label for side in scenario.sides}
    rows = []
    for run in scenario.runs:
        failed = [f"{gate.label}: {gate.measured}, required {gate.limit}" for gate in run.failed_gates]
        state = "valid" if run.valid else f"✗ {'failed: ' if run.failed else ''}{'; '.join(failed)}"
        again = " (run again)" if run.repeats else ""
        rows.append(
            row_of(
                f"{run.position + 1}",
                labels.get(run.side, run.side),
                f"{run.repetition}{again}",
                units.utc(run.started_at),
                TableCell(state, emphasis="plain" if run.valid else "worse"),
                run.run_id,
            )
        )
    columns = words("position", "side", "repetition", "started", "status", "run")
    return Table(f"{scenario.id}-runs", "Runs", columns, rows, media=ON_PAGES)


def gates_table(scenario: QaScenario) -> Table:
    """The requirements of every run, and the measurement of each, in the order of the runs."""
    limits: dict[tuple[str, str], list[str]] = {}
    for run in scenario.runs:
        for gate in run.gates:
            limits.setdefault((gate.label, gate.limit), []).append(f"{GATE_MARKS[gate.status]} {gate.measured}")
    rows = [row_of(label, limit, "; ".join(measured)) for (label, limit), measured in limits.items()]
    columns = words("gate", "required", "measured, run by run")
    return Table(f"{scenario.id}-gates", "Gates of the runs", columns, rows, media=ON_PAGES)


def gating_metrics(report: QaReport) -> list[Metric]:
    """The metrics that a release can fail by, and those that a condition may make incomparable."""
    named = {name for condition in report.catalogue.conditions for name in condition.makes_incomparable}
    return [metric for metric in report.catalogue.ordered() if metric.gating or metric.id in named]
