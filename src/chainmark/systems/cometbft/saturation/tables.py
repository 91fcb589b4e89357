"""The tables of a saturation test: the results, the tables of the published reports, every cell, every run."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import Judgement, Outcome, Scale
from chainmark.report.blocks import (
    ON_PAGES,
    Column,
    Table,
    TableCell,
    TableRow,
    row_of,
    words,
)
from chainmark.report.phrases import Emphasis
from chainmark.systems.cometbft.saturation import text
from chainmark.systems.cometbft.saturation.results import (
    CellRun,
    LoadCell,
    SaturationResult,
    SaturationVersion,
    VersionComparison,
)

_OUTCOMES: dict[Outcome, Emphasis] = {
    Outcome.WORSE: "worse",
    Outcome.BETTER: "better",
    Outcome.EQUAL: "plain",
    Outcome.INCONCLUSIVE: "caution",
}
_INTERVALS = "In brackets: 90 % intervals. With one run, the noise between runs is assumed (3 %)."


def saturation_table(report: SaturationResult) -> Table:
    """The result: one row per version, and below it the same by the other measure."""
    columns = [*words("version"), Column("sustains"), *words("bounds", "configuration"),
               Column("knee", spare_tail=True), *words("state"), Column("runs")]  # fmt: skip
    rows = []
    for version in report.versions:
        knee = version.knee
        interval = ""
        if knee.low_per_s is not None and knee.high_per_s is not None:
            interval = f"({units.count(knee.low_per_s)} … {units.count(knee.high_per_s)})"
        for place, saturation in enumerate(version.saturations):
            is_second = place > 0
            emphasis: Emphasis = "plain" if saturation.state in {"found", "lower bound"} else "caution"
            cells = [
                TableCell(text.MEASURES[saturation.measure] if is_second else version.label),
                TableCell(text.saturation_text(saturation), emphasis=emphasis),
                TableCell(text.between(saturation)),
                TableCell(text.configuration(saturation)),
                TableCell() if is_second else TableCell(text.per_s(knee.load_per_s), interval),
                TableCell(text.state_text(saturation.state), emphasis=emphasis),
                TableCell("" if is_second else text.runs_of(version)),
            ]
            rows.append(TableRow(cells, second=is_second))
    notes = [text.rule(report), *dict.fromkeys(f"Knee of {item.label}: {item.knee.basis}." for item in report.versions)]
    return Table("found", "Saturation load of each version", columns, rows, notes, tails="intervals")


def processed_tables(report: SaturationResult) -> list[Table]:
    """Rows r, columns c, processed transactions: the table of the published reports, version by version."""
    return [_processed_table(version, number) for number, version in enumerate(report.versions)]


def _processed_table(version: SaturationVersion, number: int) -> Table:
    connections = sorted({cell.connections for cell in version.cells})
    rates = sorted({cell.rate_per_s for cell in version.cells})
    by_place = {(cell.rate_per_s, cell.connections): cell for cell in version.cells}
    chosen = (version.chosen.rate_per_s, version.chosen.connections)
    rows = []
    for rate in rates:
        cells = [TableCell(str(rate))]
        for count in connections:
            cell = by_place.get((rate, count))
            table_cell = text.count_of(cell) if cell else text.QUIET
            if (rate, count) == chosen:
                table_cell = TableCell(table_cell.text, f"{table_cell.tail} ◂", table_cell.emphasis)
            cells.append(table_cell)
        rows.append(TableRow(cells))
    columns = [Column("r", kind="words"), *(Column(f"c={count}") for count in connections)]
    notes = [f"Offered load: {version.expected}.", "Next to each count: its share of the offered load. ◂ chosen."]
    if any(cell.used > 1 for cell in version.cells):
        notes.append("Counts are means over the runs.")
    return Table(f"processed-{number}", f"Processed transactions: {version.label}", columns, rows, notes,
                 tails="shares")  # fmt: skip


def diagonal_table(report: SaturationResult) -> Table:
    """Cells of equal connections × rate side by side, version by version."""
    loads = sorted({cell.load_per_s for version in report.versions for cell in version.cells})
    rows = []
    for load in loads:
        cells = [TableCell(text.per_s(load))]
        for version in report.versions:
            same = [cell for cell in version.cells if cell.load_per_s == load]
            cells.append(_diagonal_cell(same))
        rows.append(TableRow(cells))
    columns = words("load", *(version.label for version in report.versions))
    return Table("diagonals", "Cells of equal load", columns, rows, ["Shares of the offered load, by connections."])


def _diagonal_cell(cells: Sequence[LoadCell]) -> TableCell:
    messages = [
        f"c={cell.connections} {units.plain_percent(cell.efficiency.value, decimals=1)}"
        for cell in sorted(cells, key=lambda item: item.connections)
        if cell.efficiency is not None
    ]
    if not messages:
        return text.QUIET
    standings = {cell.standing for cell in cells if cell.standing != "no data"}
    emphasis: Emphasis = "caution" if len(standings) > 1 else text.STANDINGS[standings.pop()]
    return TableCell(", ".join(messages), emphasis=emphasis)


def cell_tables(report: SaturationResult) -> list[Table]:
    """Every cell: its figures, and below them its accounting."""
    return [
        table
        for number, version in enumerate(report.versions)
        for table in (_cell_table(version, number), _count_table(version, number))
    ]


def _cells(version: SaturationVersion) -> list[LoadCell]:
    """The cells by their loads."""
    return sorted(version.cells, key=lambda cell: (cell.load_per_s, cell.connections))


def _cell_table(version: SaturationVersion, number: int) -> Table:
    columns = [
        *words("cell"), Column("tx/s"), Column("share, %", spare_tail=True), Column("in window, %", spare_tail=True),
        Column("throughput, tx/s", spare_tail=True), Column("latency, s", spare_tail=True),
        Column("p50, s", spare_tail=True), Column("p99, s", spare_tail=True), Column("n"),
    ]  # fmt: skip
    cells = _cells(version)
    places = text.decimals([cell.throughput_per_s for cell in cells])
    rows = [
        row_of(
            cell.name,
            units.count(cell.load_per_s),
            text.figure_cell(cell.efficiency, 100.0, 1, text.STANDINGS[cell.standing]),
            text.figure_cell(cell.pace, 100.0, 1, text.STANDINGS[cell.pace_standing]),
            text.figure_cell(cell.throughput_per_s, 1.0, places),
            *(
                text.figure_cell(figure, 1.0, 2)
                for figure in (cell.latency_mean_s, cell.latency_p50_s, cell.latency_p99_s)
            ),
            _latency_count(cell),
        )
        for cell in cells
    ]
    notes = [
        _INTERVALS,
        f"Throughput: {version.throughput_is}. Latency: {version.latency_is}, mean. n: number of transactions.",
    ]
    return Table(f"cells-{number}", f"Every load: {version.label}", columns, rows, notes, tails="intervals")


def _count_table(version: SaturationVersion, number: int) -> Table:
    names = ("offered", "unsent", "rejected", "accepted", "committed")
    cells = _cells(version)
    rows = [
        row_of(cell.name, units.count(cell.load_per_s), *(text.total(cell, read) for read in names)) for cell in cells
    ]
    several = max((cell.used for cell in cells), default=0) > 1
    notes = ["Sums over the runs."] if several else []
    columns = [*words("cell"), Column("tx/s"), *map(Column, names)]
    return Table(f"counts-{number}", f"Transactions at every load: {version.label}", columns, rows, notes)


def _latency_count(cell: LoadCell) -> str:
    results = [run.latency.n for run in cell.runs if not run.excluded and run.latency is not None]
    return units.count(sum(results)) if results else units.UNSET


def comparison_tables(report: SaturationResult) -> list[Table]:
    """Two versions at equal loads: every change with its interval and outcome."""
    labels = {metric.id: metric.label for metric in report.metrics}
    return [_comparison_table(comparison, number, labels) for number, comparison in enumerate(report.comparisons)]


def _comparison_table(version_comparison: VersionComparison, number: int, labels: dict[str, str]) -> Table:
    questions = list(
        dict.fromkeys(
            (judgement.metric_id, judgement.statistic)
            for cell in version_comparison.cells
            for judgement in cell.judgements
        )
    )  # in the report's order
    columns = words("load")
    for metric_id, statistic in questions:
        name = labels[metric_id] if statistic == "mean" else f"{labels[metric_id]} {statistic}"
        columns += [Column("change", group=name), Column("outcome", group=name, kind="words")]
    rows = []
    for cell in version_comparison.cells:
        by_question = {(judgement.metric_id, judgement.statistic): judgement for judgement in cell.judgements}
        cells = [TableCell(f"{cell.name} ({text.per_s(cell.connections * cell.rate_per_s)})")]
        for question in questions:
            cells += _change_cells(by_question.get(question))
        rows.append(TableRow(cells))
    noise = dict.fromkeys(
        judgement.noise for cell in version_comparison.cells for judgement in cell.judgements if judgement.noise
    )
    notes = ["Changes with their 90 % intervals, judged as by `chainmark compare`.", f"Noise: {'; '.join(noise)}."]
    notes += list(
        dict.fromkeys(
            f"{judgement.note}." for cell in version_comparison.cells for judgement in cell.judgements if judgement.note
        )
    )
    notes += [f"Excluded: {'; '.join(version_comparison.left_out)}."] if version_comparison.left_out else []
    title = f"{version_comparison.candidate} vs. {version_comparison.baseline}, at equal loads"
    return Table(f"comparison-{number}", title, columns, rows, notes, tails="intervals")


def _change_cells(judgement: Judgement | None) -> list[TableCell]:
    if judgement is None:
        return [text.QUIET, TableCell()]
    emphasis = _OUTCOMES.get(judgement.outcome, "quiet")
    if judgement.change is None or judgement.low is None or judgement.high is None:
        return [text.QUIET, TableCell("not judged", emphasis="quiet")]
    absolute = judgement.scale is Scale.ABSOLUTE
    change = units.percent(judgement.change, decimals=1)
    if absolute:
        change = change.removesuffix("%") + "pp"
    interval = units.percent_interval(judgement.low, judgement.high).removesuffix(" %")
    return [TableCell(change, f"({interval})"), TableCell(judgement.outcome.value, emphasis=emphasis)]


def run_table(report: SaturationResult) -> Table | None:
    """Every run in chronological order, with its remarks."""
    runs = sorted(
        ((run, version.label) for version in report.versions for cell in version.cells for run in cell.runs
         if run.position is not None),
        key=lambda pair: pair[0].position or 0,
    )  # fmt: skip
    if not runs:
        return None
    columns = [Column("position", kind="words"), *words("version", "load"), Column("offered"), Column("committed"),
               Column("share, %"), *words("included", "remarks", "run")]  # fmt: skip
    rows = [TableRow(_run_cells(run, label)) for run, label in runs]
    return Table("runs", "Every run", columns, rows, media=ON_PAGES)


def _run_cells(run: CellRun, label: str) -> list[TableCell]:
    known = "; ".join([*([run.excluded] if run.excluded else []), *run.limits])
    return [
        TableCell(str((run.position or 0) + 1)),
        TableCell(label),
        TableCell(f"c={run.connections}, r={run.rate_per_s}"),
        TableCell(units.count(run.offered)),
        TableCell(units.count(run.committed)),
        TableCell(units.number(100.0 * run.efficiency, 1)),
        TableCell("no" if run.excluded else "yes", emphasis="caution" if run.excluded else "plain"),
        TableCell(known),
        TableCell(run.origin),
    ]
