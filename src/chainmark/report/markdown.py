"""A document as Markdown: the summary is open, the rest is folded."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from chainmark.report.blocks import (
    Block,
    Column,
    Definition,
    Definitions,
    Details,
    Listing,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
)
from chainmark.report.chart import Chart
from chainmark.report.content import Content
from chainmark.report.markup import bullets, code, escaped, fenced, folded, plain, table
from chainmark.report.vega import on_paper

_SIGNS = {"pass": "🟢 ", "fail": "🔴 ", "inconclusive": "🟡 ", "invalid": "⚪ ", "neutral": ""}


# GitHub limits the length of a comment, and of the summary of a job's step.
MOST_CHARACTERS = 65_536
_LEFT_OUT_CHARACTERS = 2_000  # reserved for the note about omitted parts
_ROWS_LEFT_OUT = "Some rows are omitted for lack of space."


def comment_of(document: Content, most_characters: int = MOST_CHARACTERS) -> str:
    """The document as GitHub-flavoured Markdown; the same document gives the same text.

    Parts that do not fit are omitted from the end on, and named; of a long table its most important rows remain.
    """
    document = document.seen_on("markdown")
    lines = [
        f"## {plain(document.title)}",
        "",
        _verdict(document),
        "",
        *_caveats(document),
        plain(document.subtitle),
        "",
    ]
    end = [*bullets("Notes", document.notes), _origin(document)]
    room = most_characters - _size(lines) - _size(end) - _LEFT_OUT_CHARACTERS
    left_out: list[str] = []
    for index, section in enumerate(document.sections):
        content, is_complete = _within(section, is_first=index == 0, room=room)
        lines += content
        room -= _size(content)
        left_out += [] if is_complete else [section.title]
    if left_out:
        names = "; ".join(f"*{plain(title)}*" for title in left_out)
        lines += [_cut(f"Omitted or shortened for lack of space: {names}. The HTML report has everything."), ""]
    return "\n".join([*lines, *end]) + "\n"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _cut(text: str) -> str:
    return text if len(text) < _LEFT_OUT_CHARACTERS else f"{text[: _LEFT_OUT_CHARACTERS - 2]}…"


def _within(section: Section, *, is_first: bool, room: int) -> tuple[list[str], bool]:
    """As much of a section as fits, and whether that is the whole."""
    blocks = list(section.blocks)
    lines = _section(section, blocks, is_first=is_first)
    while blocks and _size(lines) > room:
        last = blocks.pop()
        if isinstance(last, Table) and len(last.rows) > 1:
            # A second row is another form of the row above it, and stays below it.
            in_order = any(row.second for row in last.rows)
            rows = last.rows if in_order else sorted(last.rows, key=lambda row: not _is_worse(row))
            notes = list(dict.fromkeys([*last.notes, _ROWS_LEFT_OUT]))
            blocks.append(dataclasses.replace(last, rows=rows[: len(rows) // 2], notes=notes))
        lines = _section(section, blocks, is_first=is_first)
    return (lines if blocks else []), blocks == list(section.blocks)


def _is_worse(row: TableRow) -> bool:
    return "worse" in {row.emphasis, *(cell.emphasis for cell in row.cells)}


def _section(section: Section, blocks: Sequence[Block], *, is_first: bool) -> list[str]:
    content = _blocks(blocks)
    if is_first:
        return content
    if section.folded:
        return folded(escaped(section.title), content)
    return [f"**{plain(section.title)}**", "", *content]


def page_of(document: Content, folder: str) -> tuple[str, dict[str, str]]:
    """The document as a page of a website or a release: nothing folded, with its figures as files.

    Args:
        document: what to lay out.
        folder: the figures' folder, relative to the page.

    Returns:
        The page, and the figures as SVG by their file names in that folder.
    """
    document = document.seen_on("markdown")
    files: dict[str, str] = {}
    lines = [
        f"# {plain(document.title)}",
        "",
        _verdict(document),
        "",
        *_caveats(document),
        plain(document.subtitle),
        "",
        *(f"- [{plain(section.title)}](#{_anchor(section.title)})" for section in document.sections),
        "",
    ]
    for section in document.sections:
        lines += [f"## {plain(section.title)}", ""]
        for block in section.blocks:
            if isinstance(block, Chart):
                lines += _pictures(block, folder, files)
            else:
                lines += _blocks([block])
    lines += bullets("Notes", document.notes)
    lines.append(_origin(document))
    return "\n".join(lines) + "\n", files


def _pictures(chart: Chart, folder: str, files: dict[str, str]) -> list[str]:
    """A chart's files, and the lines that include them."""
    lines = [f"**{plain(chart.title)}**", ""]
    drawn, note = on_paper(chart, background="white")
    for number, svg in enumerate(drawn, start=1):
        name = f"{chart.id}.svg" if len(drawn) == 1 else f"{chart.id}-{number}.svg"
        files[name] = svg
        lines += [f"![{plain(chart.title)}]({folder}/{name})", ""]
    return [*lines, plain(note), ""] if note else lines


def _anchor(title: str) -> str:
    """The anchor that GitHub derives from a heading."""
    text = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return text.replace(" ", "-")


def _verdict(document: Content) -> str:
    sentence = plain(document.sentence)
    return f"{_SIGNS[document.tone]}**{document.word}**: {sentence}" if document.word else sentence


def _caveats(document: Content) -> list[str]:
    """Badges and sentences as a quotation."""
    badges = " ".join(f"**{plain(badge)}**" for badge in document.caveats.badges)
    lines = [*([badges] if badges else []), *map(plain, document.caveats.sentences)]
    return [*(f"> ⚠️ {line}  " for line in lines), ""] if lines else []


def _origin(document: Content) -> str:
    author = f"{plain(document.author)} · " if document.tool_version else ""
    return f"<sub>{author}{document.kind} SHA-256 <code>{document.digest}</code></sub>"


def _headed(title: str, lines: Sequence[str]) -> list[str]:
    return [f"**{plain(title)}**", "", *lines] if title else list(lines)


def _blocks(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Table):
            lines += _headed(block.title, _table(block))
            lines += [plain(" ".join(block.notes)), ""] if block.notes else []
        elif isinstance(block, Listing):
            lines += [line for caption, text in block.entries for line in (plain(caption), "", *fenced(text))]
        elif isinstance(block, Definitions):
            lines += _headed(block.title, [*map(_definition, block.entries), ""])
        elif isinstance(block, Remarks):
            lines += _headed(block.title, [*(f"- {plain(item.marked)}" for item in block.remarks()), ""])
        elif isinstance(block, Details):
            lines += folded(escaped(block.summary), _blocks(block.blocks))
    return lines


def _definition(entry: Definition) -> str:
    facts = f" {plain(entry.facts)}" if entry.facts else ""
    return f"- **{plain(entry.term)}** ({code(entry.id)}) – {plain(entry.text)}{facts}"


def _table(block: Table) -> list[str]:
    indices = [index for index, column in enumerate(block.columns) if column.kind != "bar"]
    headings = [plain(_heading(block, index)) for index in indices]
    align = "".join("r" if block.columns[index].kind in ("figures", "intervals") else "l" for index in indices)
    rows = [
        [_cell(row.cells[index], block.columns[index], second=row.second and index == 0) for index in indices]
        for row in block.rows
    ]
    return table(headings, align, rows)


def _heading(block: Table, index: int) -> str:
    """The heading of a column, after the name of its group unless another column of the group has that name."""
    column = block.columns[index]
    if not column.group or any(other.heading == column.group for other in block.columns):
        return column.heading
    return f"{column.group}: {column.heading}"


def _cell(cell: TableCell, column: Column, *, second: bool) -> str:
    if column.kind == "code":
        return " ".join([code(cell.text), *map(plain, cell.notes)])
    text = plain("; ".join([cell.whole, *cell.notes]))
    if second and text:
        return f"*{text}*"
    loud = cell.emphasis == "worse" or (column.kind == "badge" and cell.emphasis == "caution")
    return f"**{text}**" if loud and text else text
