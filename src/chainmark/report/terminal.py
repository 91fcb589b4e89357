"""A document on the terminal. A table that is too wide continues below, in second lines or in parts, never broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from chainmark.core import units
from chainmark.core.caveats import Caveats, is_empty
from chainmark.report.bars import text_bar, text_scale
from chainmark.report.blocks import (
    ON_PAGES,
    Block,
    Definitions,
    Details,
    Listing,
    Remarks,
    Table,
    TableCell,
    are_units,
    in_groups,
)
from chainmark.report.chart_terminal import print_chart
from chainmark.report.content import Content
from chainmark.report.lines import Printer, shorten, wrapped

_STYLES = {
    "pass": "bold white on green",
    "fail": "bold white on red",
    "inconclusive": "bold black on yellow",
    "invalid": "bold white on magenta",
    "neutral": "bold white on blue",
}
_EMPHASIS_STYLES = {"worse": "red", "better": "green", "caution": "yellow", "plain": "", "quiet": "bright_black"}
_CAVEAT = "bold black on yellow"
_GAP = "  "
_GROUP_GAP = "   "
_INDENT = "  "
_NARROWEST_BAR, _USUAL_BAR, _WIDEST_BAR = 17, 21, 31  # odd: no change is in the middle
_NARROWEST_NAME = 16
_NARROWEST_PROSE = 36
_SHAVED = 8
_ONE_SCREEN = 24  # lines
_WIDEST_NAME = 0.42  # fraction of the terminal, whose main content is the figures
_WIDEST_HEADING = 30
_QUIET = "bright_black"


def print_document(document: Content, console: Console) -> None:
    """Print the document. The words suffice without colour."""
    out = Printer(console)
    out.blank()
    out.paragraph(document.title, "bold")
    out.paragraph(document.subtitle, _QUIET)
    out.blank()
    _print_caveats(document.caveats, out)
    _print_verdict(document, out)
    for block in document.seen_on("terminal").blocks():
        _print(block, out)
    left_out = [
        block
        for section in document.sections
        if "terminal" in section.media
        for block in section.blocks
        if isinstance(block, Table) and block.media == ON_PAGES
    ]
    notes = [*document.notes, *_left_out(left_out)]
    for note in notes:
        out.item(note)
    if notes:
        out.blank()
    if out.lines > _ONE_SCREEN:  # its beginning has scrolled away
        _print_verdict(document, out)


def _print_verdict(document: Content, out: Printer) -> None:
    badge = f" {document.word} " if document.word else ""
    gap = _GAP if document.word else ""
    for index, line in enumerate(wrapped(document.sentence, out.width - len(badge) - len(gap))):
        first = (badge, _STYLES[document.tone]) if index == 0 else " " * len(badge)
        out.line(Text.assemble(first, gap, (line, "bold")))
    out.blank()


def _print_caveats(caveats: Caveats, out: Printer) -> None:
    """Badges, and below them the sentences, before any verdict."""
    if caveats.badges:
        out.line(Text(_GAP).join(Text(f" {badge} ", _CAVEAT) for badge in caveats.badges))
    for sentence in caveats.sentences:
        out.item(sentence, "!", "yellow")
    if not is_empty(caveats):
        out.blank()


def _print(block: Block, out: Printer) -> None:
    if isinstance(block, Table):
        _print_table(block, out)
    elif isinstance(block, Listing):
        _print_listing(block, out)
    elif isinstance(block, Definitions):
        _print_definitions(block, out)
    elif isinstance(block, Remarks):
        _print_remarks(block, out)
    elif isinstance(block, Details):
        _print_title(block.summary, out)
        for part in block.blocks:
            _print(part, out)
    elif block.on_terminal:
        print_chart(block, out)


def _print_title(title: str, out: Printer) -> None:
    if title:
        out.line(Text(shorten(title, out.width), style="bold"))


def _left_out(tables: Sequence[Table]) -> list[str]:
    """References to the tables that are not printed."""
    if not tables:
        return []
    rows = units.plural(sum(len(table.rows) for table in tables), "row")
    return [f"`--html`, `--pdf` and `--md` show {units.plural(len(tables), 'more table')} ({rows})."]


@dataclass(frozen=True)
class _Printed:
    """One column, its heading and every cell padded to the same width."""

    group: str
    heading: str
    cells: list[str]
    styles: list[str]
    words: bool = False

    @property
    def width(self) -> int:
        return cell_len(self.heading)


_Group = list[_Printed]


def _print_table(table: Table, out: Printer) -> None:
    _print_title(table.title, out)
    if not _fits(table, out.width) and (folded := _in_two_lines(table, out.width)):
        _print_in_two_lines(table, folded, out)
        return
    # As few blocks as the width allows, and every standard error if omitting some does not save a block.
    full, lean = (_layout(table, out.width, tails=tails) for tails in (True, False))
    names, blocks = full if len(full[1]) <= len(lean[1]) else lean
    for index, block in enumerate(blocks):
        if index:
            out.blank()
        _print_block(table, names, block, out, first=index == 0)
    notes = list(table.notes)
    if len(full[1]) > len(lean[1]):
        notes.append(f"Some {table.tails} are omitted because the terminal is too narrow.")
    _print_notes(notes, out)
    out.blank()


def _print_notes(notes: Sequence[str], out: Printer) -> None:
    for line in wrapped(" ".join(notes), out.width - len(_INDENT)) if notes else []:
        out.line(Text(_INDENT + line, style=_QUIET))


def _fits(table: Table, width: int) -> bool:
    """Whether a table without second lines, or all of one with them, fits next to its names."""
    if not any(column.below for column in table.columns):
        return True
    names, blocks = _layout(table, width, tails=True)
    return len(blocks) == 1 and all(name.rstrip() == row.cells[0].text.rstrip() for name, row in
                                    zip(names.cells, table.rows, strict=True))  # fmt: skip


def _layout(table: Table, width: int, *, tails: bool) -> tuple[_Printed, list[list[_Group]]]:
    """The names of the rows, and the other columns in blocks below each other; bars as wide as possible.

    Args:
        table: the table.
        width: of the terminal.
        tails: keeps the tails that could be omitted to save width.
    """
    if not any(column.kind == "bar" for column in table.columns):
        return _parted(table, width, _USUAL_BAR, tails=tails)
    for bar in range(_WIDEST_BAR, _NARROWEST_BAR - 1, -2):
        names, blocks = _parted(table, width, bar, tails=tails)
        if len(blocks) == 1:
            return names, blocks
    return _parted(table, width, _USUAL_BAR, tails=tails)


def _parted(table: Table, width: int, bar: int, *, tails: bool) -> tuple[_Printed, list[list[_Group]]]:
    groups = _groups(table, bar, tails=tails)
    room = width - len(_INDENT)
    # Names are shortened before any figure is, unless there is room for all; and a little if that saves a block.
    spare = room - sum(map(_least, groups))
    available = room - max(map(_least, groups), default=0)
    names = _names(table, max(_NARROWEST_NAME, min(available, max(spare, int(width * _WIDEST_NAME)))))
    if spare < names.width <= spare + _SHAVED and spare >= _NARROWEST_NAME:
        names = _names(table, spare)
    blocks: list[list[_Group]] = []
    taken = 0
    for group in groups:
        if not blocks or taken + _least(group) > room - names.width:
            blocks.append([])
            taken = 0
        blocks[-1].append(group)
        # Wrapped text continues below itself, so nothing can be to its right.
        taken += _across(group) if taken + _across(group) <= room - names.width else room
    return names, blocks or [[]]


def _names(table: Table, widest: int) -> _Printed:
    indented = [f"  {row.cells[0].text}" if row.second else row.cells[0].text for row in table.rows]
    texts = [shorten(text, widest) for text in indented]
    heading = shorten(table.columns[0].heading, widest)
    across = max(map(cell_len, [heading, *texts]))
    styles = [_QUIET if row.second else _EMPHASIS_STYLES[row.cells[0].emphasis] for row in table.rows]
    return _Printed("", _left(heading, across), [_left(text, across) for text in texts], styles)


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _gap(group: _Group) -> str:
    """The space before a group: more if it has a name, so that its columns are visibly a group."""
    return _GROUP_GAP if group[0].group else _GAP


def _across(group: _Group) -> int:
    return len(_gap(group)) + sum(printed.width for printed in group) + len(_GAP) * (len(group) - 1)


def _least(group: _Group) -> int:
    """The width below which a group goes into a separate block: sentences can be wrapped, figures cannot."""
    return min(_across(group), len(_gap(group)) + _NARROWEST_PROSE) if _is_prose(group) else _across(group)


def _is_prose(group: _Group) -> bool:
    return len(group) == 1 and group[0].words


def _groups(table: Table, bar: int, *, tails: bool) -> list[_Group]:
    """The columns after the first in groups that are never separated."""
    printed = [_printed(table, index, bar, tails=tails) for index in range(1, len(table.columns))]
    groups: list[_Group] = []
    for indices in in_groups(table.columns):
        members = [printed[place - 1] for place in indices]
        groups.append(_under(members[0].group, members) if members[0].group else members)
    return groups


def _under(name: str, members: _Group) -> _Group:
    """A group at least as wide as a name of usual length."""
    across = sum(member.width for member in members) + len(_GAP) * (len(members) - 1)
    pad = " " * max(0, min(cell_len(name), _WIDEST_HEADING) - across)
    first = members[0]
    return [replace(first, heading=pad + first.heading, cells=[pad + cell for cell in first.cells]), *members[1:]]


def _printed(table: Table, index: int, bar: int, *, tails: bool) -> _Printed:
    column, cells = table.columns[index], table.column(index)
    heading = "" if column.group else column.heading
    if column.kind == "bar":
        heading = _scale(column.heading, bar)
        texts = [text_bar(cell.bar, bar) for cell in cells]
    elif column.kind == "intervals":
        texts = _intervals(cells)
    elif column.kind != "figures":
        texts = ["; ".join([cell.whole, *cell.notes]) for cell in cells]
    else:
        keep = tails or not column.spare_tail
        texts = _figures([(cell.text, cell.tail if keep else "") for cell in cells])
    heading = shorten(heading, max([_WIDEST_HEADING, *map(cell_len, texts)]))
    across = max(map(cell_len, [heading, *texts]))
    pad = _right if column.kind in ("figures", "intervals") else _left
    styles = [_EMPHASIS_STYLES[cell.emphasis] for cell in cells]
    padded = [pad(text, across) for text in texts]
    return _Printed(column.group, pad(heading, across), padded, styles, words=column.kind in ("words", "code"))


def _scale(edge: str, width: int) -> str:
    """The heading over bars: the names of the band's edges, or their first letters if there is no room."""
    name = edge if len(edge) <= width // 4 else edge[:1]
    return text_scale(f"{units.MINUS}{name}", f"+{name}", width)


def _intervals(cells: Sequence[TableCell]) -> list[str]:
    """Intervals whose ends are aligned among those of the same unit."""
    split = [cell.text.split(" … ") for cell in cells]
    indices = [index for index, ends in enumerate(split) if len(ends) == 2]
    lows = [low.rstrip() for low in _in_units([(split[index][0], cells[index].tail) for index in indices], show=False)]
    highs = _in_units([(split[index][1], cells[index].tail) for index in indices])
    texts = [cell.whole for cell in cells]
    for low, high, index in zip(lows, highs, indices, strict=True):
        texts[index] = f"{low} … {high}"
    return texts


def _in_units(cells: Sequence[tuple[str, str]], *, show: bool = True) -> list[str]:
    """Figures aligned on their decimal point among those of the same unit, each followed directly by it."""
    texts = [""] * len(cells)
    for unit in dict.fromkeys(unit for _, unit in cells):
        indices = [index for index, (_, other) in enumerate(cells) if other == unit]
        for index, text in zip(indices, units.align_on_point([cells[index][0] for index in indices]), strict=True):
            texts[index] = f"{text.rstrip()} {unit}" if unit and show else text.rstrip()
        across = max(map(cell_len, (texts[index] for index in indices)))
        for index in indices:
            texts[index] = _left(texts[index], across)
    width = max(map(cell_len, texts), default=0)
    return [_right(text, width) for text in texts]


def _figures(cells: Sequence[tuple[str, str]]) -> list[str]:
    """Figures aligned on their decimal point with their tails below each other; words flush right over both."""
    if are_units(tail for _, tail in cells):
        return _in_units(cells)
    is_figure = [units.is_figure(text) for text, _ in cells]
    aligned = units.align_on_point([text if figure else "" for (text, _), figure in zip(cells, is_figure, strict=True)])
    tails = max((cell_len(tail) for _, tail in cells), default=0)
    joined = [
        f"{line} {_left(tail, tails)}" if tails and figure else line if figure else text
        for (text, tail), figure, line in zip(cells, is_figure, aligned, strict=True)
    ]
    width = max(map(cell_len, joined), default=0)
    return [_right(text, width) for text in joined]


def _print_block(table: Table, names: _Printed, groups: Sequence[_Group], out: Printer, *, first: bool) -> None:
    headings = [_gap(group) + _heading(group) for group in groups]
    out.line(Text("".join([_INDENT, names.heading, *headings]).rstrip(), style=_QUIET))
    before = len(_INDENT) + names.width + sum(map(_across, groups[:-1]))
    for index, row in enumerate(table.rows):
        if row.second and not first and not any(printed.cells[index].strip() for group in groups for printed in group):
            continue  # a second opinion without content here
        line = Text(_INDENT)
        line.append(names.cells[index], style=names.styles[index])
        for group in groups[:-1]:
            _append_group(line, group, index)
        if groups and _is_prose(groups[-1]) and before + _across(groups[-1]) > out.width:
            _print_wrapped(line, groups[-1], index, before, out)
            continue
        for group in groups[-1:]:
            _append_group(line, group, index)
        out.line(line)


def _append_group(line: Text, group: _Group, index: int) -> None:
    line.append(_gap(group))
    for position, printed in enumerate(group):
        line.append(_GAP if position else "")
        line.append(printed.cells[index], style=printed.styles[index])


def _print_wrapped(line: Text, group: _Group, index: int, before: int, out: Printer) -> None:
    """A row that ends with a sentence, which continues below itself."""
    (prose,) = group
    room = max(_NARROWEST_NAME, out.width - before - len(_gap(group)))
    for number, part in enumerate(wrapped(prose.cells[index].rstrip(), room) or [""]):
        line = Text(" " * before) if number else line
        line.append(_gap(group))
        line.append(part, style=prose.styles[index])
        out.line(line)


def _heading(group: _Group) -> str:
    if not group[0].group:
        return _GAP.join(printed.heading for printed in group)
    across = _across(group) - len(_gap(group))
    return _right(shorten(group[0].group, across), across)


_Folded = tuple[_Printed, list[_Printed], list[_Printed]]


def _in_two_lines(table: Table, width: int) -> _Folded | None:
    """The names, and the columns of the first and of the second line; None if two lines do not help."""
    indices = range(1, len(table.columns))
    below = [index for index in indices if table.columns[index].below]
    first = [_printed(table, index, _USUAL_BAR, tails=True) for index in indices if index not in below]
    taken = len(_INDENT) + sum(printed.width + len(_GAP) for printed in first)
    if width - taken < _NARROWEST_NAME:
        return None
    fixed = [_printed(table, index, _NARROWEST_BAR, tails=True) for index in below]
    bars = sum(table.columns[index].kind == "bar" for index in below)
    spare = width - 2 * len(_INDENT) - sum(printed.width for printed in fixed) - len(_GAP) * (len(fixed) - 1)
    if spare < 0:
        return None
    bar = min(_WIDEST_BAR, _NARROWEST_BAR + 2 * (spare // (2 * max(bars, 1))))
    second = [_printed(table, index, bar, tails=True) for index in below]
    return _names(table, width - taken), first, second


def _print_in_two_lines(table: Table, folded: _Folded, out: Printer) -> None:
    """Two lines per row, the second one only if it has figures."""
    names, first, second = folded
    indices = [place for place, column in enumerate(table.columns) if column.below]
    out.line(Text(_INDENT + _GAP.join([names.heading, *(printed.heading for printed in first)]), style=_QUIET))
    has_figures = [any(row.cells[place].tail or row.cells[place].bar for place in indices) for row in table.rows]
    if any(has_figures):
        out.line(Text(2 * _INDENT + _GAP.join(printed.heading for printed in second), style=_QUIET))
    for index, filled in enumerate(has_figures):
        for start, columns in ((_INDENT, [names, *first]), (2 * _INDENT, second if filled else [])):
            line = Text(start if columns else "")
            for position, column in enumerate(columns):
                line.append(_GAP if position else "")
                line.append(column.cells[index], style=column.styles[index])
            if columns:
                out.line(line)
    _print_notes(table.notes, out)
    out.blank()


def _print_listing(listing: Listing, out: Printer) -> None:
    """Texts are wrapped at the terminal's edge, never cut: they are the main content."""
    _print_title(listing.title, out)
    room = max(20, out.width - 2 * len(_INDENT))
    for caption, text in listing.entries:
        for row in wrapped(caption, out.width - len(_INDENT)):
            out.line(Text(_INDENT + row, style=_QUIET))
        for start in range(0, len(text), room):
            out.line(Text(2 * _INDENT + text[start : start + room]))
    out.blank()


def _print_definitions(block: Definitions, out: Printer) -> None:
    _print_title(block.title, out)
    for entry in block.entries:
        out.item(f"{entry.term} ({entry.id}) – {entry.text}")
    out.blank()


def _print_remarks(block: Remarks, out: Printer) -> None:
    _print_title(block.title, out)
    for item in block.remarks():
        out.item(item.text, item.mark or "·", _EMPHASIS_STYLES[item.emphasis])
    out.blank()
