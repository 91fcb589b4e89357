"""A comparison on the terminal: the verdict first, then why, then what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.report.bars import text_bar, text_scale
from chainmark.report.breakdown_parts import capped, outlier_sentences
from chainmark.report.content import Row, moved_text
from chainmark.report.document import Document, GateRow, document
from chainmark.report.lines import Printer, shorten, wrapped

VERDICT_STYLES = {
    "pass": "bold white on green",
    "fail": "bold white on red",
    "inconclusive": "bold black on yellow",
    "invalid": "bold white on magenta",
}
EMPHASIS_STYLES = {"worse": "red", "better": "green", "caution": "yellow", "plain": "", "quiet": "bright_black"}
_WIDEST_BAR = 31
_NARROWEST_BAR = 17
_NARROWEST_LABEL = 16
_MOVED_SHOWN = 12  # the report lists them all
_OUTLIERS_SHOWN = 4
_TAILS_SHOWN = 3
_GAP = 2


@dataclass(frozen=True)
class _Column:
    heading: str
    cells: list[str]
    width: int
    flush_right: bool = True

    def cell(self, index: int) -> str:
        return self._pad(self.cells[index])

    def head(self) -> str:
        return self._pad(self.heading)

    def _pad(self, text: str) -> str:
        blank = " " * (self.width - cell_len(text))
        return blank + text if self.flush_right else text + blank


def _column(heading: str, cells: Sequence[str], *, flush_right: bool = True) -> _Column:
    heading = shorten(heading, max(14, *(cell_len(cell) for cell in cells)) if cells else 14)
    width = max([cell_len(heading), *(cell_len(cell) for cell in cells)])
    return _Column(heading, list(cells), width, flush_right)


def _aligned(figures: Sequence[str], suffixes: Sequence[str] | None = None) -> list[str]:
    """Figures aligned on the decimal point among those of the same unit, each followed at once by its unit."""
    suffixes = suffixes or [""] * len(figures)
    texts = list(figures)
    for suffix in dict.fromkeys(suffixes):
        members = [index for index, other in enumerate(suffixes) if other == suffix]
        aligned = units.align_on_point([figures[index] for index in members])
        joined = [f"{text.rstrip()} {suffix}" if suffix else text for text in aligned]
        width = max(map(cell_len, joined))
        for index, text in zip(members, joined, strict=True):
            texts[index] = text + " " * (width - cell_len(text))
    return texts


def _intervals(rows: Sequence[Row]) -> list[str]:
    unit_of = [row.change_unit if row.low else "-" for row in rows]  # rows without an interval are a group of their own
    lows = [low.rstrip() for low in _aligned([row.low for row in rows], unit_of)]
    lows = [low.removesuffix(f" {unit}") if unit else low for low, unit in zip(lows, unit_of, strict=True)]
    highs = _aligned([row.high for row in rows], [row.change_unit if row.low else "" for row in rows])
    width = max(map(cell_len, highs), default=0)
    return [
        f"{low} … {' ' * (width - cell_len(high))}{high}" if row.low else row.interval
        for row, low, high in zip(rows, lows, highs, strict=True)
    ]


def render_terminal(comparison: Comparison, console: Console) -> None:
    """Print the comparison. Colour only underlines what the words say, so nothing is lost without it."""
    report = document(comparison)
    out = Printer(console)
    out.blank()
    out.paragraph(report.title, "bold")
    out.paragraph(report.subtitle, "bright_black")
    out.blank()
    badge = f" {report.verdict_word} "
    for index, line in enumerate(wrapped(report.sentence, console.width - len(badge) - 2)):
        first = (badge, VERDICT_STYLES[report.verdict]) if index == 0 else " " * len(badge)
        out.line(Text.assemble(first, "  ", (line, "bold")))
    if report.verdict != "pass":  # the reasons of a pass are the table itself
        for reason in report.reasons:
            out.item(reason)
    out.blank()
    _gating_table(report, out)
    _validity(report, out)
    _closing(report, comparison, out)


def _gating_table(report: Document, out: Printer) -> None:
    rows = report.gating
    if not rows:
        out.item("no gating metric was compared", "!", "yellow")
        out.blank()
        return
    left = [
        _column(report.baseline, _aligned([row.baseline for row in rows])),
        _column(report.candidate, _aligned([row.candidate for row in rows])),
        _column("change", _aligned([row.change for row in rows], [row.change_unit for row in rows])),
    ]
    interval = _column(f"{report.confidence} interval", _intervals(rows))
    outcome = _column("outcome", [row.outcome for row in rows], flush_right=False)
    label = _column("gating metric", [row.label_with_unit for row in rows], flush_right=False)
    label = _Column(label.heading, label.cells, max(len(label.heading), *map(cell_len, label.cells)), flush_right=False)
    taken = sum(column.width + _GAP for column in [*left, outcome]) + _GAP
    spare = out.width - taken - interval.width - _GAP - label.width
    if spare - _GAP >= _NARROWEST_BAR:
        _wide_table(rows, [label, *left, interval], outcome, _odd(min(_WIDEST_BAR, spare - _GAP)), out)
    else:
        width = max(_NARROWEST_LABEL, min(label.width, out.width - taken))
        label = _Column(label.heading, [shorten(cell, width) for cell in label.cells], width, flush_right=False)
        _narrow_table(rows, [label, *left], interval, outcome, out)
    out.blank()


def _odd(width: int) -> int:
    return width if width % 2 else width - 1


def _scale(rows: Sequence[Row], width: int) -> str:
    """Name the band's edges if all rows share them; otherwise say that each row has its own."""
    margins = {row.margin for row in rows if row.margin}
    if len(margins) == 1 and (margin := next(iter(margins))).startswith("±"):
        return text_scale(units.MINUS + margin[1:], "+" + margin[1:], width)
    word = "margin" if width >= _WIDEST_BAR - 6 else "m"
    return text_scale(units.MINUS + word, "+" + word, width)


def _styled(row: Row, text: str) -> tuple[str, str]:
    return (text, EMPHASIS_STYLES[row.emphasis])


def _wide_table(rows: Sequence[Row], columns: list[_Column], outcome: _Column, bar_width: int, out: Printer) -> None:
    gap = " " * _GAP
    heads = gap.join(column.head() for column in columns)
    out.line(Text(f"  {heads}{gap}{_scale(rows, bar_width)}{gap}{outcome.head()}", style="bright_black"))
    for index, row in enumerate(rows):
        line = Text("  ")
        for position, column in enumerate(columns):
            meaningful = (
                position < 3
            )  # the label and both values are facts; the change and its interval may mean nothing
            line.append(column.cell(index), style="" if meaningful else EMPHASIS_STYLES[row.emphasis])
            line.append(gap)
        line.append(text_bar(row.bar, bar_width), style=EMPHASIS_STYLES[row.emphasis])
        line.append(gap)
        line.append(outcome.cell(index), style=EMPHASIS_STYLES[row.emphasis])
        out.line(line)


def _narrow_table(
    rows: Sequence[Row], columns: list[_Column], interval: _Column, outcome: _Column, out: Printer
) -> None:
    """Two lines a metric: where the whole does not fit, the interval and its bar go below the figures."""
    gap = " " * _GAP
    bar_width = _odd(max(_NARROWEST_BAR, min(_WIDEST_BAR, out.width - interval.width - 4 - 2 * _GAP)))
    heads = gap.join(column.head() for column in columns)
    out.line(Text(f"  {heads}{gap}{outcome.head()}", style="bright_black"))
    if any(row.low for row in rows):
        out.line(Text(f"    {interval.head()}{gap}{_scale(rows, bar_width)}", style="bright_black"))
    for index, row in enumerate(rows):
        style = EMPHASIS_STYLES[row.emphasis]
        line = Text("  ")
        for position, column in enumerate(columns):
            line.append(column.cell(index), style="" if position < 3 else style)
            line.append(gap)
        line.append(outcome.cell(index), style=style)
        out.line(line)
        if row.low:
            out.line(Text(f"    {interval.cell(index)}{gap}{text_bar(row.bar, bar_width)}", style=style))


def _validity(report: Document, out: Printer) -> None:
    """Only what a reader must know before believing the table: what failed, what was left out, what differs."""
    printed = False
    for status, mark, style in (("fail", "✗", "red"), ("warn", "!", "yellow")):
        for gate in report.pair_gates + report.run_gates:
            if gate.status == status:
                out.item(_gate_text(gate, report), mark, style)
                printed = True
    for run in report.runs:
        if run.excluded_because:
            out.item(f"run {run.run_id} is excluded: {run.excluded_because}", "✗", "red")
            printed = True
        for incident in run.incidents:
            out.item(f"{run.run_id}: {incident}", "!", "yellow")
            printed = True
    for pair in report.conditions:
        out.item(f"{pair.label}: {pair.baseline} against {pair.candidate}. {pair.detail}", "!", "yellow")
        printed = True
    for pair in report.workload_differences:
        out.item(f"workload {pair.label}: {pair.baseline} against {pair.candidate}", "✗", "red")
        printed = True
    if printed:
        out.blank()


def _gate_text(gate: GateRow, report: Document) -> str:
    """A gate that was not plainly met: what was required, and the runs in which it was not."""
    if not gate.candidate and len(gate.baseline) == 1:
        found = gate.baseline[0][2:]
    else:
        sides = ((report.baseline, gate.baseline), (report.candidate, gate.candidate))
        found = "; ".join(_not_met(name, runs) for name, runs in sides if any(not run.startswith("✓") for run in runs))
    detail = f" ({'; '.join(gate.details)})" if gate.details else ""
    return f"{gate.label}: {found}; required: {gate.limit}{detail}"


def _not_met(name: str, runs: Sequence[str]) -> str:
    missed = [run[2:] for run in runs if not run.startswith("✓")]
    return f"{', '.join(dict.fromkeys(missed))} in {len(missed)} of {units.plural(len(runs), 'run')} of {name}"


def _closing(report: Document, comparison: Comparison, out: Printer) -> None:
    lines: list[str] = []
    if report.diagnostics:
        lines.append(_moved_sentence(report))
    differences = len(report.default_changes) + len(report.made_changes)
    if differences:
        own = "all" if len(report.default_changes) == differences else f"{len(report.default_changes)}"
        lines.append(
            f"configuration differs in {units.plural(differences, 'place')}, "
            f"{own} of them between the versions' own defaults: see the report"
        )
    for line in lines:
        out.item(line, mark=" ")
    for text in capped(outlier_sentences(comparison), _OUTLIERS_SHOWN):
        out.item(text)
    for tail in [tail for tail in report.tails if tail.gating and tail.is_candidate][:_TAILS_SHOWN]:
        first = tail.items[0]
        out.item(f"{tail.metric}, {tail.lead}: {first.text}: {first.command}")
    for advice in report.advice:
        out.item(advice, mark="→")
    out.blank()


def _moved_sentence(report: Document) -> str:
    moved = report.moved
    total = units.plural(report.diagnostics, "diagnostic metric")
    if not moved:
        return f"none of {total} moved (q = 0.05)"
    shown = [moved_text(row) for row in moved[:_MOVED_SHOWN]]
    more = f", and {len(moved) - _MOVED_SHOWN} more" if len(moved) > _MOVED_SHOWN else ""
    return f"{len(moved)} of {total} moved (q = 0.05): {', '.join(shown)}{more}"
