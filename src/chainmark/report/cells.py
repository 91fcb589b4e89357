"""The plain cells of a table on a page, built directly: a long document has tens of thousands; templates are slower."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from chainmark.report.blocks import Column, Table, TableCell

WIDEST_TAIL = 60  # characters after a figure
_SHORT = 24  # characters: shorter texts are not wrapped
_PROSE = 40  # characters: longer texts get a line of their own on a narrow screen
_CODE = Markup("<code>{}</code>")


@lru_cache(maxsize=10_000)
def unbroken(text: str) -> Markup:
    """Text in which a figure and its percent sign stay on one line, and what is between two backticks is code."""
    parts = re.sub(r"(?<=\d) (?=%)", "\u00a0", text).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    return Markup().join(_CODE.format(part) if index % 2 else escape(part) for index, part in enumerate(parts))


def is_prose(cell: TableCell) -> bool:
    """Whether the words of a cell are as long as a sentence."""
    return len(cell.text) > _PROSE


def text_class(cell: TableCell) -> str:
    """The class of a cell of words, by their length."""
    return " nowrap" if len(cell.text) <= _SHORT else " prose" if is_prose(cell) else ""


def tail_class(letters: int) -> str:
    """The class of the text after a figure, with room for this many characters: a page allows no inline styles."""
    return f"tail w{min(letters, WIDEST_TAIL)}"


def tail_widths() -> str:
    """The widths of those classes as a style sheet."""
    return "".join(f".w{letters}{{width:{56 * letters + 50}e-2em}}" for letters in range(1, WIDEST_TAIL + 1))


def plain_rows(table: Table, texts: Sequence[Sequence[tuple[str, str]]], tails: Sequence[int]) -> list[Markup | None]:
    """All cells of each row but its name; None for a row with a link or a drawing.

    Args:
        table: the table.
        texts: by column, then row: the text of a cell, and the text after it.
        tails: by column, the length of the longest text after a figure.
    """
    columns = [
        _plain_column(column, table.column(index), texts[index], tails[index], leads=_leads(table.columns, index))
        for index, column in enumerate(table.columns)
        if index
    ]
    return [_row(cells) for cells in zip(*columns, strict=True)] if columns else [Markup()] * len(table.rows)


def _row(cells: Sequence[str | None]) -> Markup | None:
    complete = [cell for cell in cells if cell is not None]
    return Markup("".join(complete)) if len(complete) == len(cells) else None  # noqa: S704 - escaped below


def _leads(columns: Sequence[Column], place: int) -> bool:
    """Whether a group of columns begins here."""
    return bool(columns[place].group) and columns[place - 1].group != columns[place].group


def _plain_column(
    column: Column, cells: Sequence[TableCell], texts: Sequence[tuple[str, str]], tail: int, *, leads: bool
) -> list[str | None]:
    label = escape(column.group or column.heading)
    if column.kind == "words":
        return [_words(cell, label) for cell in cells]
    if column.kind == "code":
        html = (f'<td class="code {cell.emphasis}" data-label="{label}">{escape(cell.text)}</td>\n' for cell in cells)
        return [None if cell.notes else text for cell, text in zip(cells, html, strict=True)]
    if column.kind != "figures":
        return [None] * len(cells)
    start = " leads" if leads else ""
    width = f'<span class="{tail_class(tail)}">'
    return [
        f'<td class="n {cell.emphasis}{start}" data-label="{label}">{escape(text)}'
        f"{f'{width}{escape(after)}</span>' if tail else ''}</td>\n"
        for cell, (text, after) in zip(cells, texts, strict=True)
    ]


def _words(cell: TableCell, label: Markup) -> str | None:
    if cell.phrases or cell.notes:
        return None
    return f'<td class="{cell.emphasis}{text_class(cell)}" data-label="{label}">{unbroken(cell.text)}</td>\n'
