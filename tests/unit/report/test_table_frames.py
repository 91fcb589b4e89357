"""Printed tables as data frames: numbers where all cells are figures of one unit, texts otherwise."""

from __future__ import annotations

import polars as pl

from chainmark.report.blocks import Column, Details, Table, TableCell, TableRow
from chainmark.report.table_frames import frames_of


def _table(*columns: tuple[Column, list[TableCell]]) -> Table:
    rows = [TableRow(list(cells)) for cells in zip(*(cells for _, cells in columns), strict=True)]
    return Table("shown", "", [column for column, _ in columns], rows)


def test_figures_are_numbers_with_their_unit_in_the_name() -> None:
    """A text such as "−1,234 ms" cannot be sorted or added."""
    table = _table(
        (Column("", kind="words"), [TableCell("a"), TableCell("b")]),
        (Column("change"), [TableCell("−1,234.5", "ms"), TableCell("")]),
        (Column("mixed"), [TableCell("1", "s"), TableCell("1", "ms")]),
        (Column("margin", kind="bar"), [TableCell(""), TableCell("")]),
        (Column("margin", group="new"), [TableCell("5 %"), TableCell("+10 %")]),
        (Column("margin", group="new"), [TableCell("5 %"), TableCell("none")]),
        (Column("margin", group="new"), [TableCell("5 %"), TableCell("7 %")]),
    )
    (frame,) = frames_of([Details("folded", "", [table]), table]).values()
    assert frame.to_dict(as_series=False) == {
        "name": ["a", "b"],
        "change, ms": [-1234.5, None],
        "mixed": ["1 s", "1 ms"],
        "new margin, %": [5.0, 10.0],
        "new margin": ["5 %", "none"],
        "new margin, % (2)": [5.0, 7.0],
    }
    assert frame.dtypes == [pl.String, pl.Float64, pl.String, pl.Float64, pl.String, pl.Float64]


def test_a_table_without_rows_is_a_frame_without_rows() -> None:
    frame = frames_of([_table((Column("a"), []))])["shown"]
    assert frame.shape == (0, 1)
