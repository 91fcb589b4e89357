"""A document as Markdown: the whole stands open, the rest is folded."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.report.blocks import (
    Block,
    Column,
    Definition,
    Definitions,
    Details,
    Listing,
    Remarks,
    Table,
    TableCell,
)
from chainmark.report.chart import Chart
from chainmark.report.content import Content
from chainmark.report.markup import bullets, code, escaped, fenced, folded, plain, table
from chainmark.report.vega import on_paper

_SIGNS = {"pass": "🟢 ", "fail": "🔴 ", "inconclusive": "🟡 ", "invalid": "⚪ ", "neutral": ""}


def comment_of(document: Content) -> str:
    """The document as GitHub-flavoured Markdown; the same document gives the same text."""
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
    for index, section in enumerate(document.sections):
        content = _blocks(section.blocks)
        if index == 0:
            lines += content
        elif section.folded:
            lines += folded(escaped(section.title), content)
        else:
            lines += [f"**{plain(section.title)}**", "", *content]
    lines += bullets("Notes", document.notes)
    lines.append(_origin(document))
    return "\n".join(lines) + "\n"


def page_of(document: Content, folder: str) -> tuple[str, dict[str, str]]:
    """The document as a page of a website or a release: nothing folded, with its figures as files.

    Args:
        document: what to lay out.
        folder: where the figures lie, seen from the page.

    Returns:
        The page, and the figures as SVG by their files' names in that folder.
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


def _verdict(document: Content) -> str:
    sentence = plain(document.sentence)
    return f"{_SIGNS[document.tone]}**{document.word}**: {sentence}" if document.word else sentence


def _caveats(document: Content) -> list[str]:
    """Badges and sentences, as a quotation that stands out."""
    badges = " ".join(f"**{plain(badge)}**" for badge in document.caveats.badges)
    lines = [*([badges] if badges else []), *map(plain, document.caveats.sentences)]
    return [*(f"> ⚠️ {line}  " for line in lines), ""] if lines else []


def _origin(document: Content) -> str:
    made = f"{plain(document.author)} · " if document.tool_version else ""
    return f"<sub>{made}{document.kind} SHA-256 <code>{document.digest}</code></sub>"


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
    kept = [index for index, column in enumerate(block.columns) if column.kind != "bar"]
    headings = [plain(block.columns[index].heading) for index in kept]
    align = "".join("r" if block.columns[index].kind in ("figures", "intervals") else "l" for index in kept)
    rows = [
        [_cell(row.cells[index], block.columns[index], second=row.second and index == 0) for index in kept]
        for row in block.rows
    ]
    return table(headings, align, rows)


def _cell(cell: TableCell, column: Column, *, second: bool) -> str:
    if column.kind == "code":
        return " ".join([code(cell.text), *map(plain, cell.notes)])
    text = plain("; ".join([cell.whole, *cell.notes]))
    if second and text:
        return f"*{text}*"
    loud = cell.emphasis == "worse" or (column.kind == "badge" and cell.emphasis == "caution")
    return f"**{text}**" if loud and text else text
