"""Versions side by side in every rendering: each version has a verdict, its changes and a place in every chart."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.manifest import Incident
from chainmark.core.side_by_side import SideBySide
from chainmark.report.blocks import Table
from chainmark.report.chart import Chart, paper_charts
from chainmark.report.layouts import document_of
from chainmark.report.side_by_side_document import side_by_side_document

from tests.unit.compare.published_runs import run


@pytest.fixture(scope="module")
def comparison() -> SideBySide:
    """One candidate that equals the baseline, and one that is far slower."""
    sides = [
        [run(version, number, factor=factor, seed=seed + number) for number in (1, 2)]
        for version, factor, seed in (("1.0", 1.0, 10), ("1.1", 1.0, 20), ("1.2", 2.0, 30))
    ]
    sides[2][0].manifest.incidents.append(Incident(time_ns=1_795_168_861_000_000_000, what="a host restarted"))
    return compare_side_by_side(sides, tool_version="test")


def _table(comparison: SideBySide, title: str) -> Table:
    return next(
        block
        for block in side_by_side_document(comparison).blocks()
        if isinstance(block, Table) and block.title == title
    )


def test_the_first_table_has_a_verdict_per_version(comparison: SideBySide) -> None:
    """A reader who reads only this table learns which versions may be released."""
    rows = {row.cells[0].text: row.cells[1] for row in _table(comparison, "Verdict by version").rows}
    assert rows["1.2"].text == "fail"
    assert rows["1.2"].emphasis == "worse"
    document = side_by_side_document(comparison)
    assert (document.word, document.tone) == ("FAIL", "fail")


def test_every_table_of_the_catalogue_has_each_version_with_its_change(comparison: SideBySide) -> None:
    """Value, change, interval and outcome of every candidate are in one row with the baseline's value."""
    spreading = _table(comparison, "Spreading")
    assert [column.group for column in spreading.columns] == ["", "", *["1.1"] * 4, *["1.2"] * 4]
    row = next(row for row in spreading.rows if row.cells[0].text.startswith("Spread"))
    assert row.cells[9].text == "worse"
    assert float(row.cells[7].text.replace("+", "")) == pytest.approx(100.0, abs=8.0)
    assert [block.title for block in side_by_side_document(comparison).blocks() if isinstance(block, Table)].count(
        "Spreading"
    ) == 1
    assert _table(comparison, "Resource Usage").rows


def test_all_values_of_a_row_have_one_unit(comparison: SideBySide) -> None:
    """0.9 s next to 900 ms would look like a change."""
    row = next(row for row in _table(comparison, "Spreading").rows if row.cells[0].text.startswith("Spread"))
    assert row.cells[0].text == "Spread, s"
    assert float(row.cells[6].text) == pytest.approx(2.0 * float(row.cells[1].text), rel=0.1)


def test_charts_contain_all_versions_and_the_manifest_and_incidents_are_shown(comparison: SideBySide) -> None:
    """What happened during a run affects the meaning of its figures."""
    blocks = side_by_side_document(comparison).blocks()
    figure = next(block for block in blocks if isinstance(block, Chart))
    assert set(figure.column("side", "pooled")) == {"1.0", "1.1", "1.2"}
    assert len(paper_charts(figure)) == 1
    assert next(row.cells[0].text for row in _table(comparison, "Overall run parameters").rows) == "Identifier"
    assert "a host restarted" in document_of(comparison).markdown()


def test_every_rendering_shows_the_verdict_and_the_change(comparison: SideBySide) -> None:
    """The terminal, the web page, the pull request comment and the PDF must agree."""
    console = Console(width=100)
    with console.capture() as captured:
        document_of(comparison).print(console)
    texts = [
        captured.get(),
        document_of(comparison).markdown(),
        re.sub(r"<script.*?</script>", "", document_of(comparison).html(), flags=re.S),
    ]
    change = (
        next(row for row in _table(comparison, "Spreading").rows if row.cells[0].text.startswith("Spread"))
        .cells[7]
        .text
    )
    for text in texts:
        assert "1.2 fails; 1.1" in text.replace("\\", "").replace("\xa0", " ")
        assert change in text
    assert document_of(comparison).pdf() == document_of(comparison).pdf()
