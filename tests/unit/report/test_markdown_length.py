"""A comment on a pull request may have 65,536 characters. The website refuses a longer comment completely."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.report.blocks import Column, Remarks, Section, Table, TableCell, TableRow
from chainmark.report.content import Content
from chainmark.report.layouts import document_of
from chainmark.report.markdown import MOST_CHARACTERS, comment_of

from tests.unit.report.samples import sample


def _table(rows: int, worse: int) -> Table:
    cells = [
        TableRow([TableCell(f"cell {row}"), TableCell("x" * 60, emphasis="worse" if row == worse else "plain")])
        for row in range(rows)
    ]
    return Table("cells", "All cells", [Column("cell"), Column("what", "words")], cells)


def _document(*sections: Section) -> Content:
    document = document_of(sample())
    assert isinstance(document, Content)
    return replace(document, sections=[*sections])


@pytest.mark.parametrize("rows", [10, 5_000, 100_000])
def test_the_comment_never_exceeds_the_limit_and_shows_what_is_worse(rows: int) -> None:
    """Among many cells, the failed one must be visible."""
    summary = Section("first", "First", [Remarks("why", "Why", ["the point"])], folded=False)
    text = comment_of(_document(summary, Section("cells", "Cells", [_table(rows, worse=rows - 1)])))
    assert len(text) <= MOST_CHARACTERS
    assert "the point" in text
    assert f"cell {rows - 1} " in text
    assert ("Omitted or shortened for lack of space" in text) == (rows > 1000)
    assert ("Some rows are omitted" in text) == (rows > 1000)
    assert text.rstrip().endswith("</sub>")


def test_a_comment_that_fits_is_unchanged_by_the_limit() -> None:
    document = document_of(sample())
    assert isinstance(document, Content)
    assert comment_of(document) == comment_of(document, 10**9)
