"""A sheet as Markdown: the whole stands open, the rest is folded."""

from __future__ import annotations

from chainmark.report.markup import bullets, code, escaped, fenced, folded, plain, table
from chainmark.report.sheet import Definitions, Listing, Remarks, Section, Sheet, Table, TableCell

_SIGNS = {"pass": "🟢 ", "fail": "🔴 ", "inconclusive": "🟡 ", "invalid": "⚪ ", "neutral": ""}


def render_sheet_markdown(sheet: Sheet) -> str:
    """The sheet as GitHub-flavoured Markdown; the same document gives the same text."""
    lines = [
        f"## {plain(sheet.title)}",
        "",
        f"{_SIGNS[sheet.status]}**{sheet.word}**: {plain(sheet.sentence)}" if sheet.word else plain(sheet.sentence),
        "",
        plain(sheet.subtitle),
        "",
    ]
    for index, section in enumerate(sheet.sections):
        content = _section(section)
        lines += content if index == 0 else folded(escaped(section.title), content)
    lines += bullets("Notes", sheet.notes)
    lines.append(f"<sub>{sheet.kind} SHA-256 <code>{sheet.digest}</code></sub>")
    return "\n".join(lines) + "\n"


def _section(section: Section) -> list[str]:
    lines: list[str] = []
    for block in section.blocks:
        if isinstance(block, Table):
            lines += [f"**{plain(block.title)}**", "", *_table(block)]
            lines += [plain(" ".join(block.notes)), ""] if block.notes else []
        elif isinstance(block, Listing):
            lines += [line for caption, text in block.entries for line in (plain(caption), "", *fenced(text))]
        elif isinstance(block, Definitions):
            named = [f"- **{plain(one.term)}** ({code(one.id)}) – {plain(one.text)}" for one in block.entries]
            lines += [f"**{plain(block.title)}**", "", *named, ""]
        elif isinstance(block, Remarks):
            lines += bullets(plain(block.title), block.items)
    return lines


def _table(block: Table) -> list[str]:
    kept = [index for index, column in enumerate(block.columns) if column.kind != "bar"]
    headings = [plain(block.columns[index].heading) for index in kept]
    align = "".join("r" if block.columns[index].kind == "figures" else "l" for index in kept)
    rows = [[_cell(row.cells[index], second=row.second and index == 0) for index in kept] for row in block.rows]
    return table(headings, align, rows)


def _cell(cell: TableCell, *, second: bool) -> str:
    text = plain(cell.whole)
    if second and text:
        return f"*{text}*"
    return f"**{text}**" if cell.emphasis == "worse" and text else text
