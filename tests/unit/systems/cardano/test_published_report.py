"""The published style in every rendering: the same rows in the same order, and a mark on uncertain digits."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from chainmark.report.blocks import Definitions, Table
from chainmark.report.chart import Chart
from chainmark.report.vega import vega_lite
from chainmark.systems.cardano.published.document import published_document
from chainmark.systems.cardano.published.joined import compare_published
from chainmark.systems.cardano.published.results import PublishedReport, PublishedRow, ReportStyle
from chainmark.systems.cardano.published.text import worded

from tests.unit.compare.published_runs import run
from tests.unit.systems.cardano.printed_reports import printed_report, printed_row

TYPST, ORG = ReportStyle.TYPST, ReportStyle.ORG


def _printed(rows: list[PublishedRow], style: ReportStyle = TYPST) -> PublishedReport:
    return printed_report(rows, "10.5.4", "10.6.2", style=style)


@pytest.fixture(scope="module")
def report() -> PublishedReport:
    """Three versions of runs."""
    return compare_published([[run("1.0")], [run("1.1", factor=1.1)], [run("1.2")]], TYPST, tool_version="test")


def _texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def _tables(report: PublishedReport) -> dict[str, Table]:
    return {block.title: block for block in published_document(report).blocks() if isinstance(block, Table)}


def test_rows_and_columns_match_the_published_ones() -> None:
    """The base, then value, change and percentage of each further version, in the digits of the style."""
    rows = [
        printed_row("Process CPU usage", "%", 3, "5.7687", "5.4359"),
        printed_row("RTS live GC dateset", "MiB", 5, "3886.2", "2992.", printed_changes=[("-894.125", "-23")]),
        printed_row("Block size", "Bytes", 9, "88968", "88963", printed_changes=[("-4.886", "-0.0")]),
    ]
    table = _tables(_printed(rows))["Resource Usage"]
    assert [column.heading for column in table.columns] == ["", "10.5.4", "10.6.2", "Δ", "Δ%"]
    assert _texts(table) == [
        ["Process CPU usage, %", "5.7687", "5.4359", "-0.333", "-6"],
        ["RTS live GC dateset, MiB", "3886.2", "2992.", "-894.125", "-23"],
        ["Block size, Bytes", "88968", "88963", "-4.886", "-0.0"],
    ]


def test_a_change_that_the_printed_digits_do_not_determine_is_marked() -> None:
    """An uncertain digit must not be shown as certain."""
    open_, decided = printed_row("RSS", "MiB", 5, "8735.4", "6602.5"), printed_row("CPU", "%", 3, "5.7687", "5.4359")
    report = _printed([open_, decided])
    cells = [[cell.tail for cell in row.cells] for row in _tables(report)["Resource Usage"].rows]
    assert cells == [["", "", "", "≈", "≈"], ["", "", "", "", ""]]
    assert any("1 of 2 changes cannot be derived" in note for note in published_document(report).notes)
    assert not any("cannot be derived" in note for note in published_document(_printed([decided])).notes)


def test_an_impossible_printed_change_is_reported() -> None:
    """A report whose own columns disagree must be checked before it is trusted."""
    wrong = printed_row("CPU", "%", 3, "5.7687", "5.4359", printed_changes=[("-0.433", "-6")])
    assert any("do not match its printed values" in note for note in published_document(_printed([wrong])).notes)
    right = printed_row("CPU", "%", 3, "5.7687", "5.4359", printed_changes=[("-0.333", "-6")])
    assert not any("do not match" in note for note in published_document(_printed([right])).notes)
    org = printed_row("CPU", "%", 3, "0.02543", "0.02391", printed_changes=[("-0.002", "-6")])
    assert any("do not match" in note for note in published_document(_printed([org], ORG)).notes)


def test_a_row_of_unknown_width_is_decided_only_if_every_width_agrees() -> None:
    """A metric that is not in the catalogue may have lost trailing zeros."""
    unknown = worded(_printed([printed_row("Odd", "s", None, "0.5", "0.6")])).tables[0].rows[0].changes[0]
    known = worded(_printed([printed_row("Odd", "s", 3, "0.5", "0.6")])).tables[0].rows[0].changes[0]
    assert (unknown.decided, known.decided) == (False, True)
    assert (unknown.delta, unknown.percent) == ("0.100", "20")


def test_figures_are_numbered_and_the_dictionary_is_complete(report: PublishedReport) -> None:
    """All versions in one plot, with the value on the axis that the style requires."""
    blocks = published_document(report).blocks()
    figures = [block for block in blocks if isinstance(block, Chart)]
    assert [figure.title for figure in figures] == ["Figure 1: Kernel RSS", "Figure 2: Spread"]
    line = next(layer for layer in vega_lite(figures[1], interactive=True)["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["x"]["field"] == "value"
    assert line["encoding"]["color"]["scale"]["domain"] == ["1.0", "1.1", "1.2"]
    assert set(figures[1].column("label")) == {"1.0", "1.1", "1.2"}
    lists = [block for block in blocks if isinstance(block, Definitions)]
    assert [[entry.id for entry in block.entries] for block in lists] == [["cdfDelay", "cdfSpread"], ["RSS"]]


def test_org_style_charts_have_values_on_the_y_axis_and_logarithmic_durations() -> None:
    """The two styles draw the same centiles on swapped axes."""
    report = compare_published([[run("1.0")], [run("1.1")]], ORG, tool_version="test")
    figures = [block for block in published_document(report).blocks() if isinstance(block, Chart)]
    scales = {}
    for figure in figures:
        line = next(layer for layer in vega_lite(figure, interactive=True)["layer"] if layer["mark"]["type"] == "line")
        assert line["encoding"]["y"]["field"] == "value"
        scales[figure.title] = line["encoding"]["y"]["scale"].get("type", "linear")
    assert scales == {"Kernel RSS (RSS)": "linear", "Spread (cdfSpread)": "log", "Delay (cdfDelay)": "linear"}


@pytest.mark.parametrize("style", [TYPST, ORG])
def test_every_format_has_every_row_in_the_same_order(style: ReportStyle) -> None:
    """The report is the same on a terminal, in a browser, in a pull request and on paper."""
    report = compare_published([[run("1.0")], [run("1.1", factor=1.1)], [run("1.2")]], style, tool_version="test")
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as captured:
        published_document(report).print(console)
    texts = [
        captured.get(),
        published_document(report).markdown(),
        re.sub(r"<script.*?</script>", "", published_document(report).html(), flags=re.S),
    ]
    order = [
        "1.1 and 1.2 against 1.0",
        "We compare",
        "Machines",
        "Resource Usage",
        "Kernel RSS",
        "Spread, s",
        "cdfDelay",
    ]
    for text in texts:
        plain = text.replace("\\", "")
        places = [plain.find(wanted) for wanted in order]
        assert -1 not in places
        assert places == sorted(places)
        for shown in (row.shown[1] for table in worded(report).tables for row in table.rows):
            assert shown in plain
    assert published_document(report).pdf().startswith(b"%PDF")
    assert published_document(report).pdf() == published_document(report).pdf()
    assert published_document(report).html() == published_document(report).html()


def test_the_json_contains_the_printed_changes(report: PublishedReport) -> None:
    """A program that reads the report does not need the rules of its digits."""
    row = worded(report).tables[1].rows[0]
    assert len(row.shown) == 3
    assert [change.percent for change in row.changes] == ["10", "0"]
    assert worded(worded(report)) == worded(report)
