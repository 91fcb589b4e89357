"""A sheet as Markdown: the whole stands open, the rest is folded."""

from __future__ import annotations

from dataclasses import replace

from chainmark.report.chart import Chart
from chainmark.report.markup import bullets, code, escaped, fenced, folded, plain, table
from chainmark.report.sheet import Definitions, Listing, Remarks, Section, Sheet, Table, TableCell
from chainmark.report.vega import on_paper

_SIGNS = {"pass": "🟢 ", "fail": "🔴 ", "inconclusive": "🟡 ", "invalid": "⚪ ", "neutral": ""}


def render_sheet_markdown(sheet: Sheet) -> str:
    """The sheet as GitHub-flavoured Markdown; the same document gives the same text."""
    lines = [
        f"## {plain(sheet.title)}",
        "",
        f"{_SIGNS[sheet.tone]}**{sheet.word}**: {plain(sheet.sentence)}" if sheet.word else plain(sheet.sentence),
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


def render_sheet_page(sheet: Sheet, folder: str) -> tuple[str, dict[str, str]]:
    """The sheet as a page of a website or a release: nothing folded, with its figures as files.

    Args:
        sheet: what to lay out.
        folder: where the figures lie, seen from the page.

    Returns:
        The page, and the figures as SVG by their files' names in that folder.
    """
    files: dict[str, str] = {}
    lines = [
        f"# {plain(sheet.title)}",
        "",
        f"{_SIGNS[sheet.tone]}**{sheet.word}**: {plain(sheet.sentence)}" if sheet.word else plain(sheet.sentence),
        "",
        plain(sheet.subtitle),
        "",
        *(f"- [{plain(section.title)}](#{_anchor(section.title)})" for section in sheet.sections),
        "",
    ]
    for section in sheet.sections:
        lines += [f"## {plain(section.title)}", ""]
        for block in section.blocks:
            if isinstance(block, Chart):
                lines += _pictures(block, folder, files)
            else:
                lines += _section(replace(section, blocks=[block]))
    lines += bullets("Notes", sheet.notes)
    lines.append(f"<sub>{sheet.kind} SHA-256 <code>{sheet.digest}</code></sub>")
    return "\n".join(lines) + "\n", files


def _pictures(chart: Chart, folder: str, files: dict[str, str]) -> list[str]:
    """A chart's files, and the lines that show them."""
    lines = [f"**{plain(chart.title)}**", ""]
    drawn, note = on_paper(chart, background="white")
    for number, svg in enumerate(drawn, start=1):
        name = f"{chart.id}.svg" if len(drawn) == 1 else f"{chart.id}-{number}.svg"
        files[name] = svg
        lines += [f"![{plain(chart.title)}]({folder}/{name})", ""]
    return [*lines, plain(note), ""] if note else lines


def _anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


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
