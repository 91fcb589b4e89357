"""A report in the published style as a document: the content that its readers know, in the same order."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.verdict import Verdict, shown
from chainmark.report.blocks import (
    Block,
    Column,
    Definition,
    Definitions,
    Section,
    Table,
    TableCell,
    TableRow,
    one_line,
    row_of,
)
from chainmark.report.chart import Axis, Chart
from chainmark.report.document import Document
from chainmark.report.side_facts import manifest_table
from chainmark.systems.cardano.published.charts import DistributionAxes, VersionLine, distribution_layers
from chainmark.systems.cardano.published.results import (
    PublishedChange,
    PublishedDictionary,
    PublishedFigure,
    PublishedReport,
    PublishedTable,
    ReportStyle,
)
from chainmark.systems.cardano.published.text import changes_of, worded

CENTILE = "Centile, fraction of sample population"
UNDECIDED = "≈"
_NOT_PRINTED = "No charts: a published report has values but no distributions."
_PAPER = (520, 250)
# The axis is cut without the outermost share of each line, if it would otherwise be this many times as long.
_OUTERMOST, _MOST_EMPTY = 0.02, 2.0
_ROOM = 0.05  # of the range, as a margin


def published_document(report: PublishedReport) -> Document:
    """Lay out a report in the published style."""
    report = worded(report)
    dictionary = dictionary_blocks(report)
    tables = table_blocks(report)
    sections = [
        Section("manifest", "Manifest", [manifest_table(report.facts, [column.label for column in report.columns])]),
        Section("analysis", "Analysis", tables),
        Section("charts", "Appendix A: charts", figure_blocks(report)),
        Section("dictionary", "Appendix B: data dictionary", dictionary),
    ]
    return Document(
        kind="published-report",
        title=report.title,
        subtitle=one_line([f"{report.workload} workload" if report.workload else "", report.author, report.date]),
        verdict=Verdict.INFORMATIONAL,
        sentence=report.statement,
        suites=[shown(report.title, [report.statement])],
        sections=[section for section in sections if any(_has_content(block) for block in section.blocks)],
        notes=notes_of(report),
        has_band=False,
        result=report,
        contents=True,
    )


def _has_content(block: Block) -> bool:
    return not isinstance(block, Table) or bool(block.rows)


def table_blocks(report: PublishedReport) -> list[Block]:
    """The tables of a worded report."""
    return [_table(report, table) for table in report.tables]


def figure_blocks(report: PublishedReport) -> list[Block]:
    """The charts that have data; each has the number of its position among all, so that it identifies a figure."""
    numbered = enumerate(report.figures, start=1)
    return [_figure(report, figure, number) for number, figure in numbered if figure.lines]


def dictionary_blocks(report: PublishedReport) -> list[Block]:
    """The lists of the figures' meanings."""
    return [_dictionary(part, index) for index, part in enumerate(report.dictionary)]


def _table(report: PublishedReport, table: PublishedTable) -> Table:
    base, *others = [column.label for column in report.columns]
    columns = [Column(kind="words"), Column(base)]
    for label in others:
        columns += [Column(label), Column("Δ", follows=True), Column("Δ%", follows=True)]
    rows = []
    for row in table.rows:
        cells = [TableCell(f"{row.label}, {row.unit}" if row.unit else row.label), TableCell(row.shown[0])]
        for text, change in zip(row.shown[1:], row.changes, strict=True):
            cells += [TableCell(text), _cell(change, change.delta), _cell(change, change.percent)]
        rows.append(TableRow(cells))
    if any(table.sample_counts):
        first, *more = table.sample_counts
        rest = [cell for text in more for cell in (TableCell(text), TableCell(), TableCell())]
        rows.append(row_of("Sample count", first, *rest))
    return Table(f"table-{table.id}", table.title, columns, rows, tails="marks")


def _cell(change: PublishedChange, text: str) -> TableCell:
    return TableCell(text, tail="" if change.decided or change.printed or not text else UNDECIDED)


def _axes(report: PublishedReport, figure: PublishedFigure) -> DistributionAxes:
    fractions = Axis(CENTILE, domain=(0, 1))
    if report.style is ReportStyle.TYPST:
        return DistributionAxes(Axis(figure.unit, domain=_stretch(figure)), fractions, points=True)
    label = f"{figure.label}, {figure.unit}" if figure.unit else figure.label
    positive = any(value > 0.0 for line in figure.lines for value in line.values)
    values = Axis(label, log_beyond=1.0 if figure.logarithmic and positive else None)
    return DistributionAxes(values, fractions, upwards=True, points=True)


def _stretch(figure: PublishedFigure) -> tuple[float, float] | None:
    """The range of all but the outermost fiftieths, if these would use most of the axis; None: the whole range."""
    points = [point for line in figure.lines for point in zip(line.fractions, line.values, strict=True)]
    inner = [value for fraction, value in points if _OUTERMOST <= fraction <= 1.0 - _OUTERMOST]
    if not inner or max(inner) <= min(inner):
        return None
    low, high = min(inner), max(inner)
    values = [value for _, value in points]
    if max(values) - min(values) <= _MOST_EMPTY * (high - low):
        return None
    room = _ROOM * (high - low)
    return max(low - room, min(values)), min(high + room, max(values))


def _left_out(figure: PublishedFigure, stretch: tuple[float, float] | None) -> str:
    """What is beyond the axis, version by version; "" if nothing is."""
    if stretch is None:
        return ""
    ends = [
        f"{line.label} from {units.tidy(min(line.values), 4)} to {units.tidy(max(line.values), 4)}"
        for line in figure.lines
        if min(line.values) < stretch[0] or max(line.values) > stretch[1]
    ]
    return f"The axis excludes outermost values: {'; '.join(ends)} {figure.unit}.".replace(" .", ".") if ends else ""


def _figure(report: PublishedReport, figure: PublishedFigure, number: int) -> Chart:
    axes = _axes(report, figure)
    lines = [VersionLine(line.label, line.values, line.fractions) for line in figure.lines]
    labels = [column.label for column in report.columns]
    notes = []
    if report.style is ReportStyle.ORG:
        title = f"{figure.label} ({figure.published_id})"
        notes.append(figure.description)
    else:
        title = f"Figure {number}: {figure.label}"
    if hidden := sum(axes.hidden(line) for line in lines):
        notes.append(f"{units.plural(hidden, 'point')} at or below zero cannot be shown on a logarithmic axis.")
    if reported := _left_out(figure, axes.values.domain):
        notes.append(reported)
    absent = [label for label in labels if label not in {line.label for line in lines}]
    if absent:
        notes.append(f"No samples of {', '.join(absent)}.")
    return Chart(
        id=f"figure-{figure.metric_id}",
        title=title,
        **distribution_layers(lines, axes, labels),
        caption=figure.published_id if report.style is ReportStyle.TYPST else "",
        note=" ".join(notes),
        paper=_PAPER,
        zoom=axes.values.domain is not None,
    )


def _dictionary(part: PublishedDictionary, index: int) -> Definitions:
    entries = [Definition(entry.label, entry.published_id, entry.description) for entry in part.entries]
    return Definitions(f"dictionary-{index + 1}", part.title, entries)


def notes_of(report: PublishedReport) -> list[str]:
    """How the figures were computed, and which of them are not exact."""
    notes = [*_notes_on_changes(report), *_notes_on_columns(report)]
    if not any(figure.lines for figure in report.figures):
        notes.append(_NOT_PRINTED)
    return [*notes, *report.notes]


def _notes_on_changes(report: PublishedReport) -> list[str]:
    changes = changes_of(report)
    of_all = f"of {units.plural(len(changes), 'change')} cannot be derived exactly from the printed digits"
    reported = [change for change in changes if change.printed]
    guessed = sum(not change.decided and not change.printed for change in changes)
    undecided = sum(not change.decided for change in reported)
    wrong = sum(not change.agrees for change in reported)
    notes = []
    if guessed:
        notes.append(
            f"{UNDECIDED}: {guessed} {of_all}. The table shows the changes of the printed values; those of the exact "
            "averages may differ."
        )
    if undecided:
        notes.append(f"{undecided} {of_all}; they are shown as the report prints them.")
    if wrong:
        notes.append(
            f"{units.plural(wrong, 'change')} in the report do not match its printed values by the rules of its style."
        )
    return notes


def _notes_on_columns(report: PublishedReport) -> list[str]:
    """How the values of each version were computed; versions with the same statement are named together."""
    together: dict[str, list[str]] = {}
    for column in report.columns:
        if column.rules:
            together.setdefault(f"{column.rules}.", []).append(column.label)
        if len(column.runs) > 1:
            text = (
                f"{len(column.runs)} runs; values are the means of the runs' means, manifest figures the runs' medians."
            )
            together.setdefault(text, []).append(column.label)
    return [f"{', '.join(labels)}: {text}" for text, labels in together.items()]
