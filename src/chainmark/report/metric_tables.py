"""The tables of a comparison's metrics: the deciding ones, all of them, and the evidence for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Comparison, MetricAnswer
from chainmark.core.metric import Metric
from chainmark.core.question import Question
from chainmark.core.wording import margin_of, name_of, worse_beyond
from chainmark.report.blocks import (
    EVERYWHERE,
    IN_FULL,
    ON_PAGES,
    PDF,
    Block,
    Column,
    Definition,
    Definitions,
    Medium,
    Table,
    TableCell,
    TableRow,
    chart_anchor,
    phrased,
    row_of,
    words,
)
from chainmark.report.judged_rows import WIDENED, JudgedRow
from chainmark.report.phrases import Emphasis, Phrase
from chainmark.report.wording import BETTER_WORDS

# The columns of a distribution for which a page is wide enough.
_PAPER_CENTILES = ("mean", "sd", "min", "p1", "p10", "p50", "p90", "p95", "p99", "p99.9", "max")
_JUDGING = 1  # the last column contains the judgement, which a table of costs does not have
_SHORT = {units.NOT_ESTIMABLE: "n/e"}


def definition_anchor(metric_id: str) -> str:
    """The data dictionary's entry for a metric."""
    return f"metric-{metric_id}"


def gating_table(comparison: Comparison, rows: Sequence[JudgedRow]) -> Table:
    """The evidence for the verdict; each row links to its place among all metrics."""
    decisive = [row for row in rows if row.gating]
    table_rows = [row_of(phrased(_named(row)), *_cells(comparison, row)) for row in decisive]
    if comparison.question is Question.COST:
        return Table("gating", "What it costs", _columns(comparison, decisive), table_rows)
    return Table(
        "gating",
        "Gating metrics",
        _columns(comparison, decisive),
        table_rows,
        [*_widened(comparison), *_noise_note(decisive)],
    )


def _noise_note(rows: Sequence[JudgedRow]) -> list[str]:
    """The meaning of "beyond noise", if a metric with a better or worse interval is not beyond it."""
    surprising = [row for row in rows if row.beyond_noise == MetricAnswer.NO and row.emphasis in {"better", "worse"}]
    if not surprising:
        return []
    return [
        "Beyond noise: whether the change is significant when all these metrics are judged together (q ≤ 0.05). An "
        "outcome is by the metric's own interval."
    ]


def _named(row: JudgedRow) -> Phrase:
    return Phrase(f"{row.label_with_unit}{WIDENED if row.is_widened else ''}", target=row.anchor)


def _widened(comparison: Comparison) -> list[str]:
    """The meaning of the mark after a margin, and the further condition of each such metric."""
    messages = [
        f"{name_of(comparison.catalogue, item)} {margin_of(item, metric)} (worse beyond {worse_beyond(item, metric)})"
        for item in comparison.judgements
        if item.gating and item.worse_beyond is not None
        for metric in [comparison.catalogue.metric(item.metric_id)]
    ]
    if not messages:
        return []
    return [
        f"{WIDENED.strip()}: re-runs of one build may change the metric by more than its own margin. Its margin is "
        f"therefore widened to three standard deviations of such a change: {', '.join(messages)}."
    ]


def plain_gating_table(comparison: Comparison, rows: Sequence[JudgedRow], id_: str, title: str) -> Table:
    """The same without links: for a comparison that is a part of another document."""
    decisive = [row for row in rows if row.gating]
    table_rows = [row_of(row.label_with_unit, *_cells(comparison, row)) for row in decisive]
    return Table(id_, title, _columns(comparison, decisive), table_rows)


def moved_table(comparison: Comparison, rows: Sequence[JudgedRow], media: frozenset[Medium]) -> Table:
    """The diagnostics that moved, with all details of the change."""
    moved = [row for row in rows if row.moved and not row.gating]
    table_rows = [row_of(row.label_with_unit, *_cells(comparison, row)) for row in moved]
    return Table("moved-in-full", "", _columns(comparison, moved), table_rows, media=media)


def explaining_table(comparison: Comparison, rows: Sequence[JudgedRow]) -> Table:
    """The metrics that the catalogue names as explanations of others."""
    explaining = {metric.id for metric in comparison.catalogue.metrics if metric.explains}
    result = [row for row in rows if row.metric_id in explaining]
    table_rows = [row_of(row.label_with_unit, *_cells(comparison, row)) for row in result]
    return Table("explaining", "Inside the nodes", _columns(comparison, result), table_rows, media=ON_PAGES)


def metric_tables(comparison: Comparison, rows: Iterable[JudgedRow]) -> dict[str, Table]:
    """All rows by the catalogue's tables, in its order; tables without a row are omitted."""
    table_of = {metric.id: metric.table for metric in comparison.catalogue.metrics}
    grouped: dict[str, list[JudgedRow]] = {table.id: [] for table in comparison.catalogue.tables}
    for row in rows:
        grouped[table_of[row.metric_id]].append(row)
    titles = {table.id: table.title for table in comparison.catalogue.tables}
    return {
        id_: Table(
            f"table-{id_}",
            titles[id_],
            _columns(comparison, result),
            [_unfolding(comparison, row) for row in result],
            sortable=True,
            media=ON_PAGES,
        )
        for id_, result in grouped.items()
        if result
    }


def _columns(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Column]:
    margins = {row.margin for row in rows if row.margin}
    shared = next(iter(margins)) if len(margins) == 1 else ""
    columns = [
        *words("metric"),
        *map(Column, comparison.labels),
        Column("change"),
        Column(f"{units.plain_percent(comparison.confidence)} interval", kind="intervals", below=True),
        Column(shared[1:] if shared.startswith("±") else "margin", kind="bar", below=True),
        Column("margin", kind="words", media=ON_PAGES),
        # The outcome states whether it is worse than allowed; paper has no room for both.
        Column("beyond noise", kind="words", below=True, media=EVERYWHERE - PDF, if_any=True),
        Column("outcome", kind="badge"),
    ]
    return columns[:-_JUDGING] if comparison.question is Question.COST else columns


def _cells(comparison: Comparison, row: JudgedRow) -> list[TableCell]:
    """Both values are facts; a change without meaning is quiet, and so is its interval."""
    change: Emphasis = "quiet" if row.emphasis == "quiet" else "plain"
    interval = TableCell(f"{row.low} … {row.high}", row.change_unit, change) if row.low else TableCell(row.interval)
    cells = [
        TableCell(row.baseline),
        TableCell(row.candidate),
        TableCell(row.change, row.change_unit, change),
        interval,
        TableCell(bar=row.bar, emphasis=row.emphasis),
        TableCell(row.margin, emphasis="quiet"),
        TableCell(row.beyond_noise, emphasis="plain" if row.beyond_noise == MetricAnswer.YES else "quiet"),
        TableCell(row.outcome, emphasis=row.emphasis),
    ]
    return cells[:-_JUDGING] if comparison.question is Question.COST else cells


def _unfolding(comparison: Comparison, row: JudgedRow) -> TableRow:
    marks = [row.metric_id, row.outcome, *(["moved"] if row.moved else []), *(["gating"] if row.gating else [])]
    return TableRow(
        [TableCell(row.label_with_unit), *_cells(comparison, row)],
        anchor=row.anchor,
        links=(Phrase("chart", chart_anchor(row.chart_ids[0])),) if row.chart_ids else (),
        tag="gating" if row.gating else "",
        more=_behind(comparison, row),
        search_text=" ".join(marks),
        is_relevant=row.gating or row.moved,
    )


def _behind(comparison: Comparison, row: JudgedRow) -> list[Block]:
    """The runs' own values, the judgement's figures and the pooled samples."""
    labels = comparison.labels
    unit = f", {row.unit}" if row.unit else ""
    sides = list(zip(labels, (row.per_run_baseline, row.per_run_candidate), strict=True))
    width = max((len(values) for _, values in sides), default=0)
    runs = [row_of(label, *values, *[TableCell()] * (width - len(values))) for label, values in sides]
    facts = [row_of(name, value) for name, value in row.facts]
    if row.beyond_margin:
        facts.append(row_of("worse than the margin allows", row.beyond_margin))
    facts.append(row_of("definition", _links([(row.metric_id, definition_anchor(row.metric_id))])))
    if row.chart_ids:
        charts = _links([(id_, chart_anchor(id_)) for id_ in row.chart_ids])
        facts.append(row_of("charts", charts))
    blocks: list[Block] = [
        Table(f"{row.anchor}-runs", f"Run by run{unit}", [*words(""), *[Column()] * width], runs),
        Table(f"{row.anchor}-facts", "How it was judged", words("", ""), facts),
    ]
    if row.centiles:
        pooled = [row_of(centile.name, centile.baseline, centile.candidate) for centile in row.centiles]
        columns = [*words(""), *map(Column, labels)]
        blocks.append(Table(f"{row.anchor}-centiles", f"All samples pooled{unit}", columns, pooled))
    return blocks


def _links(places: Sequence[tuple[str, str]]) -> TableCell:
    parts = [[Phrase(", "), Phrase(text, target)] for text, target in places]
    return phrased(*[phrase for pair in parts for phrase in pair][1:])


def run_by_run(comparison: Comparison, rows: Sequence[JudgedRow]) -> Table:
    """The value of each run, on paper, where no row unfolds."""
    table_rows = [
        row_of(row.label_with_unit, " · ".join(row.per_run_baseline), " · ".join(row.per_run_candidate)) for row in rows
    ]
    columns = words("metric", *comparison.labels)
    return Table("run-by-run", "", columns, table_rows, media=PDF)


def how_judged(rows: Sequence[JudgedRow]) -> Table:
    """The evidence for every outcome, on paper."""
    table_rows = [
        row_of(
            f"{row.label} · gating" if row.gating else row.label,
            "; ".join(f"{name}: {value}" for name, value in row.facts),
        )
        for row in rows
    ]
    return Table("how-judged", "", words("metric", ""), table_rows, media=PDF, dense=True)


def distributions(comparison: Comparison, rows: Sequence[JudgedRow]) -> Table:
    """The pooled samples of every metric, on paper."""
    table_rows, reported = [], set()
    for row in rows:
        if not row.centiles or row.metric_id in reported:
            continue
        reported.add(row.metric_id)
        result = {centile.name: (centile.baseline, centile.candidate) for centile in row.centiles}
        samples = row.centiles[0]
        label = f"{row.metric_label}, {row.unit}" if row.unit else row.metric_label
        for index, side in enumerate((comparison.baseline, comparison.candidate)):
            name = label if index == 0 else f"n = {samples.baseline}; {samples.candidate}"
            figures = [result[item][index] if item in result else "" for item in _PAPER_CENTILES]
            cells = [
                TableCell(name),
                TableCell(side.label),
                *(TableCell(_SHORT.get(figure, figure)) for figure in figures),
            ]
            table_rows.append(TableRow(cells, second=index == 1))
    columns = [*words("metric", "side"), *map(Column, _PAPER_CENTILES)]
    note = "All samples of a side are pooled. n/e: not estimable from so few samples."
    return Table("distributions", "", columns, table_rows, [note], dense=True, media=PDF)


def dictionary(catalogue: Catalogue) -> Definitions:
    """The definition of every metric."""
    entries = [_definition(catalogue, metric) for metric in catalogue.ordered()]
    return Definitions("metrics-defined", "", entries, media=IN_FULL)


def _definition(catalogue: Catalogue, metric: Metric) -> Definition:
    floor = units.tidy_quantity(metric.floor, metric.unit) if metric.floor else "none"
    table = next(table.title for table in catalogue.tables if table.id == metric.table)
    return Definition(
        term=f"{metric.label}, {metric.unit}" if metric.unit else metric.label,
        id=metric.id,
        text=metric.description,
        anchor=definition_anchor(metric.id),
        known_as=f"published as {metric.published_id}" if metric.published_id else "",
        tag="gating" if metric.gating else "",
        facts=f"Population: {catalogue.population(metric.population).label}. "
        f"Judged by: {', '.join(metric.judged_by)}; {BETTER_WORDS[metric.better]}. "
        f"Margin: {units.plain_percent(metric.margin)}; floor: {floor}. Table: {table}. "
        f"Source: {', '.join(metric.source) or '—'}.",
    )
