"""An explanation as a document: whether the parts explain the whole, and where they do not."""

from __future__ import annotations

from typing import Any

from chainmark.core import units
from chainmark.core.metric import Metric
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import capitalised, sentence_of
from chainmark.report.bars import bar_between
from chainmark.report.blocks import (
    Block,
    Column,
    Section,
    Table,
    TableCell,
    TableRow,
    one_line,
    row_of,
    words,
)
from chainmark.report.chart import Chart
from chainmark.report.document import Document
from chainmark.report.phrases import Emphasis
from chainmark.report.split_parts import split_sections
from chainmark.report.wording import prose
from chainmark.systems.cardano.model import modelled
from chainmark.systems.cardano.model.blocks import curve_charts, matrix_table, measured_points, parts_chart
from chainmark.systems.cardano.model.charts import ErrorPoint, error_chart, link_chart
from chainmark.systems.cardano.model.results import (
    Explanation,
    PartRow,
    RoundTripRow,
    WholeRow,
)

EXPLAINED, NOT_EXPLAINED = "✓", "✗"


def explanation_document(explanation: Explanation) -> Document:
    """Lay out an explanation."""
    sections = [
        Section("whole", "End-to-end figures", _whole(explanation)),
        Section("contributions", "Contributions of the stages", _contributions(explanation)),
        Section("shares", "Network and node", _shares(explanation)),
        *split_sections(explanation.split, explanation.catalogue),
        Section("parts", "Stages", _parts(explanation)),
        Section("round-trips", "Round trips", _round_trips(explanation)),
    ]
    simulated = f"{units.plural(explanation.blocks, 'block')} simulated"
    return Document(
        kind="explanation",
        title=explanation.title,
        subtitle=one_line([explanation.source, simulated, f"seed {explanation.seed}"]),
        verdict=Verdict.PASS if explanation.explained else Verdict.FAIL,
        sentence=prose(explanation.sentence),
        suites=[Suite(explanation.title, [_case(explanation, row) for row in explanation.whole])],
        sections=[section for section in sections if section.blocks],
        notes=[sentence_of(capitalised(prose(note))) for note in explanation.notes],
        result=explanation,
    ).noted_once()


def _case(explanation: Explanation, row: WholeRow) -> Case:
    """One figure of the whole: its error must be consistent with the model's errors for published runs."""
    return Case(
        row.metric_id,
        explanation.catalogue.metric(row.metric_id).label,
        Verdict.FAIL if row.flagged else Verdict.PASS,
        f"error {units.percent(row.error)}, limit ±{units.plain_percent(row.limit)}",
        figures={"measured": row.measured, "modelled": row.modelled.value, "error": row.error, "limit": row.limit},
    )


def _whole(explanation: Explanation) -> list[Block]:
    if not explanation.whole:
        return []
    formula = any(row.formula is not None for row in explanation.whole)
    columns = [*words("metric"), Column("measured"), Column("modelled"), Column("error"), Column("limit"), *words("")]
    columns += [Column("limit", kind="bar"), *([Column("by formula")] if formula else [])]
    values = [value for row in explanation.whole for value in (row.measured, row.modelled.value)]
    rows = [_whole_row(explanation.catalogue.metric(row.metric_id), row, values) for row in explanation.whole]
    notes = [
        modelled.ERRORS_ARE,
        f"Limit: the largest error that is consistent with the model's errors for published runs. {EXPLAINED}: within "
        f"the limit, {NOT_EXPLAINED}: beyond it. Bar: the error ± 2 standard errors; the band is the limit.",
        *(["By formula: the figure from a closed-form formula, as a cross-check, with its error."] * formula),
    ]
    table = Table("whole", "End-to-end figures, measured and modelled", columns, rows, notes)
    points = measured_points([(row.metric_id, row.measured) for row in explanation.whole], explanation.fractions)
    curve = curve_charts([explanation.curve.model_copy(update={"scenario": 0})], ["modelled"], points)
    return [table, _error_figure(explanation), *curve]


def _whole_row(metric: Metric, row: WholeRow, beside: list[float]) -> TableRow:
    values = [row.measured, row.modelled.value, row.formula]
    scale = modelled.row_scale(metric.unit, values, [row.modelled.standard_error], beside)
    state: Emphasis = "worse" if row.flagged else "plain"
    bar = bar_between(row.error, interval=row.modelled_error.interval, margin=(-row.limit, row.limit))
    cells = [
        TableCell(scale.label(metric.label)),
        scale.figure(row.measured),
        scale.modelled(row.modelled),
        modelled.percent_cell(row.modelled_error, state),
        TableCell(f"±{units.plain_percent(row.limit)}", emphasis="quiet"),
        TableCell(NOT_EXPLAINED if row.flagged else EXPLAINED, emphasis="worse" if row.flagged else "better"),
        TableCell(emphasis=state, bar=bar),
    ]
    return TableRow([*cells, _formula(row, scale)] if row.formula is not None else cells)


def _formula(row: WholeRow, scale: modelled.RowScale) -> TableCell:
    cell = scale.figure(row.formula, "quiet")
    if row.formula_error is None:
        return cell
    return TableCell(cell.text, f"({units.number(row.formula_error * 100.0, 1, signed=True)} %)", "quiet")


def _error_figure(explanation: Explanation) -> Chart:
    points = []
    for row in explanation.whole:
        low, high = row.modelled_error.interval
        others = [] if row.formula_error is None else [row.formula_error]
        label = explanation.catalogue.metric(row.metric_id).label
        points.append(ErrorPoint(label, row.error, low, high, row.limit, row.flagged, others))
    return error_chart(points)


def _contributions(explanation: Explanation) -> list[Block]:
    if not explanation.contributions:
        return []
    stages = [item.stage for item in explanation.contributions]
    metrics = [explanation.catalogue.metric(id_) for id_ in explanation.contribution_metric_ids]
    parts = [[item.values[index] for item in explanation.contributions] for index in range(len(metrics))]
    ends = sorted({0, len(metrics) - 1})
    entries = [(metric, {0: values}) for metric, values in zip(metrics, parts, strict=True)]
    errors = {row.metric_id: row.modelled.standard_error for row in explanation.whole}
    figure = parts_chart(["modelled"], stages, entries, ends, errors)
    return [figure, matrix_table(metrics, stages, parts, errors.get(metrics[0].id, 0.0))]


def _shares(explanation: Explanation) -> list[Block]:
    if not explanation.shares:
        return []
    labels = list(dict.fromkeys(row.part for row in explanation.shares))
    columns = words("metric")
    for label in labels:
        columns += [Column("by the logs", group=label), Column("modelled", group=label)]
    rows = []
    for metric_id in dict.fromkeys(row.metric_id for row in explanation.shares):
        metric = explanation.catalogue.metric(metric_id)
        own = [row for row in explanation.shares if row.metric_id == metric_id]
        values = [value for row in own for value in (row.measured, row.modelled.value)]
        scale = modelled.row_scale(metric.unit, values, [row.modelled.standard_error for row in own])
        cells = [cell for row in own for cell in (scale.figure(row.measured), scale.modelled(row.modelled))]
        rows.append(row_of(scale.label(metric.label), *cells))
    notes = [
        modelled.ERRORS_ARE,
        "network by the logs: the additional time of hops between regions over hops within one, on the way to the "
        "host whose adoption is the centile; modelled: round trips and further TCP rounds. Neither was used to fit.",
    ]
    return [Table("shares", "Network and node, by the logs and modelled", columns, rows, notes)]


def _parts(explanation: Explanation) -> list[Block]:
    if not explanation.parts:
        return []
    columns = [*words("metric"), Column("measured"), Column("modelled"), Column("difference"), *words("")]
    rank = {metric.id: index for index, metric in enumerate(explanation.catalogue.ordered())}
    ordered = sorted(explanation.parts, key=lambda row: rank.get(row.metric_id, len(rank)))
    rows = [_part_row(explanation.catalogue.metric(row.metric_id), row) for row in ordered]
    notes = [
        modelled.ERRORS_ARE,
        modelled.NO_DIFFERENCE_IS,
        "fitted: the model was calibrated with this figure; checked: it was not.",
    ]
    return [Table("parts-measured", "Stages, measured and modelled", columns, rows, notes)]


def _part_row(metric: Metric, row: PartRow) -> TableRow:
    scale = modelled.row_scale(metric.unit, [row.measured, row.modelled.value], [row.modelled.standard_error])
    return row_of(
        scale.label(metric.label),
        scale.figure(row.measured),
        scale.modelled(row.modelled),
        modelled.difference_cell(row.measured, row.modelled, metric, scale),
        TableCell("fitted" if row.calibrated else "checked", emphasis="quiet"),
    )


def _round_trips(explanation: Explanation) -> list[Block]:
    trips = explanation.round_trips
    if not trips:
        return []
    columns = [*words("link"), Column("from pings"), Column("from the run"), Column("change"), *words("")]
    rows = [_round_trip_row(row) for row in trips]
    note = (
        "From pings: measured between the hosts of the reference. From the run: inferred from the run's own fetches if "
        "they are sufficient, otherwise from pings."
    )
    table = Table("round-trips", "Round trips between regions", columns, rows, [note])
    pinged = [row for row in trips if row.inferred and row.measured_s is not None]
    return [table, _round_trip_figure(pinged)] if pinged else [table]


def _round_trip_row(row: RoundTripRow) -> TableRow:
    scale = modelled.row_scale("s", [row.measured_s, row.inferred_s], [row.standard_error_s] if row.inferred else [])
    cells = [TableCell(scale.label(row.link)), scale.figure(row.measured_s)]
    if not row.inferred:
        quiet = TableCell("as from pings", emphasis="quiet")
        return row_of(*cells, quiet, "", "")
    if row.measured_s is None:
        return row_of(*cells, scale.modelled(row.trip), "", "")
    none = TableCell(modelled.NO_DIFFERENCE, emphasis="quiet")
    change = none if row.change is None else modelled.percent_cell(row.change)
    state = TableCell("differs", emphasis="caution") if row.differs else TableCell("agrees", emphasis="quiet")
    return row_of(*cells, scale.modelled(row.trip), change, state)


def _round_trip_figure(trips: list[RoundTripRow]) -> Chart:
    unit = units.display_unit("s", [value for row in trips for value in (row.measured_s or 0.0, row.inferred_s)])
    rows: list[dict[str, Any]] = []
    for row in trips:
        low, high = row.trip.interval
        values = {"measured": row.measured_s or 0.0, "inferred": row.inferred_s, "low": low, "high": high}
        scaled = {name: value * unit.factor for name, value in values.items()}
        rows.append({"label": row.link, "state": "differs" if row.differs else "as measured", **scaled})
    return link_chart(rows, unit.symbol)
