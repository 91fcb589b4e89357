"""A saturation test in every rendering: load, uncertainty, published tables, and a source for every figure."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from chainmark.cli.app import app
from chainmark.core.errors import ExitCode
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Table
from chainmark.report.chart import Chart
from chainmark.report.layouts import document_of
from chainmark.report.vega import on_paper, vega_lite
from chainmark.systems.cometbft.saturation.document import SaturationReport, saturation_document
from chainmark.systems.cometbft.saturation.evaluation import saturation_report

from tests.unit.report.browser import page_without_complaints
from tests.unit.systems.cometbft.saturation_samples import METRICS, run, version, whole_test
from tests.unit.systems.cometbft.test_published_tables import _ONE, _TWO, spaced


@pytest.fixture(scope="module")
def report() -> SaturationReport:
    """Two versions, three repetitions, a diagonal of loads, one excluded run, and a published table."""
    runs = {
        name: [
            run(c, r, min(1.0, f * capacity / (c * r)), position=place, latency=1.0 + c * r / 400,
                throughput=f * min(capacity, c * r))
            for place, f in enumerate((1.0, 0.97, 1.02))
            for c, r in ((1, 200), (1, 400), (2, 200), (1, 800), (2, 800), (4, 800))
        ]
        for name, capacity in (("old", 500), ("new", 450))
    }  # fmt: skip
    runs["new"].append(run(1, 800, 0.1, position=40, excluded="no node died: node0 died (all alive)"))
    published = version(
        "theirs (published)", [run(1, 200, 1.0), run(1, 400, 0.876), run(2, 200, 0.972)], published=True
    )
    return saturation_report(
        whole_test(), [version("old", runs["old"]), version("new", runs["new"]), published], METRICS
    )


def _printed(report: SaturationReport, width: int) -> str:
    file = io.StringIO()
    document_of(report).print(Console(file=file, width=width, no_color=True))
    return file.getvalue()


def _tables(report: SaturationReport) -> dict[str, Table]:
    return {block.id: block for block in saturation_document(report).blocks() if isinstance(block, Table)}


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_terminal_shows_the_load_within_the_line_width(report: SaturationReport, width: int) -> None:
    text = _printed(report, width)
    assert all(len(line) <= width for line in text.splitlines())
    text_in_one_line = " ".join(text.split())
    assert "old sustains 400 tx/s (c=1, r=400)" in text_in_one_line
    assert "node0 died" in text_in_one_line


def test_the_table_of_the_report_has_every_count(report: SaturationReport) -> None:
    table = _tables(report)["processed-0"]
    assert [row.cells[0].text for row in table.rows] == ["200", "400", "800"]
    assert [column.heading for column in table.columns] == ["r", "c=1", "c=2", "c=4"]
    assert table.rows[1].cells[1].whole == "400,000 100.0 % ◂"
    assert table.rows[0].cells[3].text == "—"


def test_cells_of_one_load_are_shown_together(report: SaturationReport) -> None:
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in _tables(report)["diagonals"].rows}
    assert rows["400 tx/s"] == ["c=1 100.0 %, c=2 100.0 %"] * 2 + ["c=1 87.6 %, c=2 97.2 %"]


def test_every_change_has_its_interval_and_outcome(report: SaturationReport) -> None:
    tables = _tables(report)
    assert "comparison-1" not in tables, "published and measured values must not be compared"
    for row in tables["comparison-0"].rows:
        for change, outcome in zip(row.cells[1::2], row.cells[2::2], strict=True):
            assert re.fullmatch(r"\(.+ … .+\)", change.tail)
            assert outcome.text in {"equal", "better", "worse", "inconclusive"}


def test_charts_are_drawn_with_error_bars(report: SaturationReport) -> None:
    figures = [block for block in saturation_document(report).blocks() if isinstance(block, Chart)]
    assert [figure.id for figure in figures] == ["processed", "share", "latency"]
    for figure in figures:
        bars = [
            layer
            for layer in vega_lite(figure, interactive=True)["layer"]
            if layer["mark"].get("type") == "rule" and "y2" in layer["encoding"]
        ]
        assert bars
        (svg,), _ = on_paper(figure)
        assert svg.count("<path") > 20
        assert "NaN" not in svg


def test_markdown_pdf_and_json_show_the_result(report: SaturationReport) -> None:
    text = document_of(report).markdown()
    assert "| r | c=1 | c=2 | c=4 |" in text
    assert f"**{document_of(report).word}**: " in text
    assert document_of(report).pdf().startswith(b"%PDF")
    assert document_of(SaturationReport.model_validate_json(report.model_dump_json())).markdown() == text


def test_the_page_opens_offline(report: SaturationReport, tmp_path: Path) -> None:
    page = page_without_complaints(document_of(report).html(), tmp_path)
    assert page.count("<svg") >= 3


def test_an_empty_test_is_reported() -> None:
    nothing = saturation_report(whole_test(), [version("v", [run(1, 200, 0.0, excluded="lost")])], METRICS)
    assert " INVALID   v has no valid run" in _printed(nothing, 100)
    document_of(nothing).pdf()
    document_of(nothing).html()


def test_published_tables_alone_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "v9_report_tabbed.txt"
    path.write_text(spaced(_ONE, _TWO), encoding="utf-8")
    shown = CliRunner().invoke(app, ["saturation", "cometbft/saturation", "--against-published", f"{path}@v9.0"])
    assert shown.exit_code == 0, shown.output
    assert "v9.0 (published)" in shown.output
    named = CliRunner().invoke(app, ["saturation", "cometbft/saturation", "--against-published", str(path)])
    assert "v9 (published)" in named.output


def test_an_interrupted_test_is_partial_even_if_the_load_was_found() -> None:
    """The versions that were not tested yet may saturate earlier: the report, JUnit and the exit code must not pass."""
    test = replace(whole_test(), interrupted=True)
    document = document_of(saturation_report(test, [version("old", [run(1, 200, 1.0), run(1, 400, 0.5)])], METRICS))
    assert document.verdict is Verdict.PARTIAL
    assert document.word == "PARTIAL"
    assert document.verdict.exit_code is ExitCode.INCONCLUSIVE
    assert document.cases[-1].verdict is Verdict.PARTIAL


def test_the_metrics_of_each_version_are_shown_at_its_load(report: SaturationReport) -> None:
    """The runs that count, and only of versions that were measured: a published table has none."""
    old, new = (saturated.chosen for saturated in report.measured)
    sides = report.sides()
    assert list(sides) == [
        f"old at c={old.connections}, r={old.rate_per_s}", f"new at c={new.connections}, r={new.rate_per_s}",
    ]  # fmt: skip
    assert [len(runs) for runs in sides.values()] == [3, 3]
    cells = [cell for version in report.measured for cell in version.cells]
    counted = {run.origin for cell in cells for run in cell.runs if not run.excluded}
    assert {run for runs in sides.values() for run in runs} <= counted
