"""The plain cells of a table on a page, built directly: a long document has tens of thousands; templates are slower."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from markupsafe import Markup, escape

from chainmark.report.blocks import Column, Table, TableCell, TableRow, padded
from chainmark.report.phrases import in_spans

Parts = list[Markup | int]

WIDEST_TAIL = 60  # characters after a figure
_SHORT = 24  # characters: shorter texts are not wrapped
_PROSE = 40  # characters: longer texts get a line of their own on a narrow screen
_CODE = Markup("<code>{}</code>")


@lru_cache(maxsize=10_000)
def unbroken(text: str) -> Markup:
    """Text in which a figure and its percent sign stay on one line, and what is between two backticks is code."""
    parts = in_spans(re.sub(r"(?<=\d) (?=%)", "\u00a0", text))
    return Markup().join(_CODE.format(part) if index % 2 else escape(part) for index, part in enumerate(parts))


def is_prose(cell: TableCell) -> bool:
    """Whether the words of a cell are as long as a sentence."""
    return len(cell.text) > _PROSE


def text_class(cell: TableCell) -> str:
    """The class of a cell of words, by their length."""
    return " nowrap" if len(cell.text) <= _SHORT else " prose" if is_prose(cell) else ""


def tail_widths() -> str:
    """The widths of the texts after figures as a style sheet: a page allows no inline styles."""
    return "".join(f".w{letters}{{width:{56 * letters + 50}e-2em}}" for letters in range(1, WIDEST_TAIL + 1))


def plain_cells(table: Table) -> list[Parts]:
    """All cells of each row but its name: what is plain, and the columns of cells with a link or a drawing."""
    columns = [
        _plain_column(column, table.column(index), leads=_leads(table.columns, index))
        for index, column in enumerate(table.columns)
        if index
    ]
    return [_joined(cells) for cells in zip(*columns, strict=True)] if columns else [[]] * len(table.rows)


def plain_name(row: TableRow, *, code: bool) -> Markup | None:
    """The name of a row; None if it has a link, a note or a button."""
    name = row.cells[0]
    if row.more or row.tag or row.links or name.phrases or name.notes:
        return None
    classes = f"{name.emphasis}{' code' if code else ''}"
    return Markup(f'<th scope="row" class="{classes}">{unbroken(name.text)}</th>\n')  # noqa: S704 - escaped


def _joined(cells: Sequence[str | None]) -> Parts:
    """The cells of a row, as few parts as possible."""
    parts: Parts = []
    for is_plain, group in groupby(enumerate(cells, start=1), key=lambda item: item[1] is not None):
        if is_plain:
            parts.append(Markup("".join(cell or "" for _, cell in group)))  # noqa: S704 - escaped below
        else:
            parts += [column for column, _ in group]
    return parts


def _leads(columns: Sequence[Column], place: int) -> bool:
    """Whether a group of columns begins here."""
    return bool(columns[place].group) and columns[place - 1].group != columns[place].group


def _plain_column(column: Column, cells: Sequence[TableCell], *, leads: bool) -> list[str | None]:
    label = f'data-label="{escape(column.group or column.heading)}"'
    if column.kind == "words":
        return [_words(cell, label) for cell in cells]
    if column.kind == "code":
        return [
            None if cell.notes else f'<td class="code {cell.emphasis}" {label}>{escape(cell.text)}</td>\n'
            for cell in cells
        ]
    if column.kind == "badge":
        return [f'<td class="badge {cell.emphasis}"><span>{escape(cell.text)}</span></td>\n' for cell in cells]
    if column.kind == "intervals":
        return [f'<td class="n interval {cell.emphasis}" {label}>{escape(cell.whole)}</td>\n' for cell in cells]
    return _figures(cells, label, " leads" if leads else "") if column.kind == "figures" else [None] * len(cells)


def _figures(cells: Sequence[TableCell], label: str, leads: str) -> list[str | None]:
    texts = padded(cells)
    longest = max((len(tail) for _, tail in texts), default=0)
    tail = f'<span class="tail w{min(longest, WIDEST_TAIL)}">{{}}</span>' if longest else ""
    return [
        f'<td class="n {cell.emphasis}{leads}" {label}>{escape(text)}{tail.format(escape(after))}</td>\n'
        for cell, (text, after) in zip(cells, texts, strict=True)
    ]


def _words(cell: TableCell, label: str) -> str | None:
    if cell.phrases or cell.notes:
        return None
    return f'<td class="{cell.emphasis}{text_class(cell)}" {label}>{unbroken(cell.text)}</td>\n'
