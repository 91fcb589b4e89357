"""A report as blocks: a sentence, tables, charts, notes. Renderings lay these out and format no figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, overload

from chainmark.core import units
from chainmark.report.bars import IntervalBar
from chainmark.report.chart import Chart
from chainmark.report.phrases import Emphasis, Phrase, Phrases, unphrased

Medium = Literal["terminal", "html", "pdf", "markdown"]
EVERYWHERE: frozenset[Medium] = frozenset({"terminal", "html", "pdf", "markdown"})
ON_PAGES: frozenset[Medium] = EVERYWHERE - {"terminal"}
IN_FULL: frozenset[Medium] = frozenset({"html", "pdf"})
TERMINAL, HTML, PDF, MARKDOWN = (frozenset[Medium]({medium}) for medium in ("terminal", "html", "pdf", "markdown"))


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        heading: its heading; over bars, the name of the band's edges: "margin", "10 %".
        group: adjacent columns of the same group are under its name, and are never separated.
        kind: figures align on their decimal point, intervals on both; a code is a literal key or value; a
            badge is the row's outcome.
        spare_tail: the text after the figures is omitted first if the width is too small.
        follows: the column is never separated from the previous one.
        below: if a terminal is too narrow for the table, the column goes to a second line of every row.
        media: media that show the column.
        if_any: the column is omitted if no row has an entry.
    """

    heading: str = ""
    group: str = ""
    kind: Literal["words", "figures", "intervals", "bar", "code", "badge"] = "figures"
    spare_tail: bool = False
    follows: bool = False
    below: bool = False
    media: frozenset[Medium] = EVERYWHERE
    if_any: bool = False


@dataclass(frozen=True, slots=True)  # a long document has thousands
class TableCell:
    """A figure or words, and the text after the figure: its standard error and its unit.

    ``phrases`` are the words in parts, if some of them are links or emphasised; ``notes`` are below them.
    """

    text: str = ""
    tail: str = ""
    emphasis: Emphasis = "plain"
    bar: IntervalBar | None = None
    phrases: Phrases = ()
    notes: Sequence[str] = ()

    @property
    def whole(self) -> str:
        """The cell as one text."""
        return f"{self.text} {self.tail}".strip()

    @property
    def parts(self) -> Phrases:
        """The words in parts, possibly only one."""
        return self.phrases or (Phrase(self.text),)


def phrased(*phrases: Phrase, notes: Sequence[str] = (), emphasis: Emphasis = "plain") -> TableCell:
    """A cell of several parts."""
    return TableCell(unphrased(phrases), emphasis=emphasis, phrases=phrases, notes=notes)


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row. A second row is another form of the row above it.

    Attributes:
        emphasis: of the whole row, if something is wrong with it.
        anchor: target of links to the row.
        links: targets of its name; on paper only the first.
        tag: one word that marks it.
        more: blocks that it unfolds to on a screen.
        search_text: further words by which a filter finds it.
        is_relevant: a filter for relevant rows keeps it.
    """

    cells: list[TableCell]
    second: bool = False
    emphasis: Emphasis = "plain"
    anchor: str = ""
    links: Phrases = ()
    tag: str = ""
    more: Sequence[Block] = ()
    search_text: str = ""
    is_relevant: bool = False


def row_of(*cells: str | TableCell, emphasis: Emphasis = "plain") -> TableRow:
    """A row of cells, most of which are only words."""
    return TableRow([TableCell(cell) if isinstance(cell, str) else cell for cell in cells], emphasis=emphasis)


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows.

    ``tails`` is the name of its cells' tails, for the note where some are omitted. A terminal that omits a table
    states it. A ``dense`` table is set in small type.
    """

    id: str
    title: str
    columns: list[Column]
    rows: list[TableRow]
    notes: list[str] = field(default_factory=list)
    sortable: bool = False
    tails: str = "standard errors"
    dense: bool = False
    media: frozenset[Medium] = EVERYWHERE

    def column(self, index: int) -> list[TableCell]:
        """One column's cells."""
        return [row.cells[index] for row in self.rows]


@dataclass(frozen=True)
class Listing:
    """Literal texts, such as lines of a log, each under its name."""

    id: str
    title: str
    entries: list[tuple[str, str]]
    media: frozenset[Medium] = EVERYWHERE


@dataclass(frozen=True)
class Definition:
    """The meaning of a name; ``id`` is its key, ``facts`` are further properties."""

    term: str
    id: str
    text: str
    anchor: str = ""
    known_as: str = ""
    tag: str = ""
    facts: str = ""


@dataclass(frozen=True)
class Definitions:
    """A list of names with their meanings."""

    id: str
    title: str
    entries: list[Definition]
    media: frozenset[Medium] = EVERYWHERE


@dataclass(frozen=True)
class Remark:
    """A sentence with a mark before it."""

    text: str
    mark: str = ""
    emphasis: Emphasis = "plain"
    phrases: Phrases = ()

    @property
    def marked(self) -> str:
        """The sentence behind its mark."""
        return f"{self.mark} {self.text}".lstrip()

    @property
    def parts(self) -> Phrases:
        """The marked sentence in parts, possibly only one."""
        return self.phrases or (Phrase(self.marked),)


@dataclass(frozen=True)
class Remarks:
    """Sentences below each other. On a screen, adjacent ``abreast`` ones are next to each other."""

    id: str
    title: str
    items: Sequence[str | Remark]
    abreast: bool = False
    media: frozenset[Medium] = EVERYWHERE

    def remarks(self) -> list[Remark]:
        """The sentences, including those without a mark."""
        return [Remark(item) if isinstance(item, str) else item for item in self.items]


@dataclass(frozen=True)
class Details:
    """Blocks that are folded behind a summary if the medium supports it."""

    id: str
    summary: str
    blocks: Sequence[Block]
    media: frozenset[Medium] = EVERYWHERE


Block = Table | Chart | Listing | Definitions | Remarks | Details


class LaterBlocks(Sequence[Block]):
    """Blocks that are made when a medium shows them: charts take longer than all of a terminal's document.

    Args:
        make: makes them.
    """

    def __init__(self, make: Callable[[], Sequence[Block]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Sequence[Block]:
        return self._make()

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True)
class Filter:
    """A filter over the tables of a section: an example of its input, and the label for the remaining rows."""

    example: str
    remaining: str


@dataclass(frozen=True)
class Section:
    """A group of blocks.

    Attributes:
        folded: in Markdown, where only the first section and those that are not folded are open.
        closed: on a screen, folded behind its title.
        filter: over the rows of its tables, on a screen.
        hint: how to use it, on a screen.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    folded: bool = True
    closed: bool = False
    filter: Filter | None = None
    hint: str = ""
    media: frozenset[Medium] = EVERYWHERE


def chart_anchor(chart_id: str) -> str:
    """The placement of a chart."""
    return f"chart-{chart_id}"


def in_groups(columns: Sequence[Column]) -> list[list[int]]:
    """The columns after the first one by index, in groups that must not be separated."""
    groups: list[list[int]] = []
    for index, column in enumerate(columns[1:], start=1):
        before = columns[index - 1]
        is_same_group = column.group != "" and index > 1 and before.group == column.group
        if groups and (is_same_group or column.follows):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def words(*headings: str) -> list[Column]:
    """Columns of words."""
    return [Column(heading, kind="words") for heading in headings]


def short_labels(labels: Sequence[str]) -> tuple[list[str], str]:
    """Labels without the words that all of them begin or end with, and those words: "0.50", "0.80" and "delay"."""
    split = [label.split() for label in labels]
    if len(split) < 2:
        return list(labels), ""
    head = _shared(split)
    tail = _shared([list(reversed(parts))[: len(parts) - head] for parts in split])
    shared = [*split[0][:head], *(split[0][-tail:] if tail else [])]
    return [" ".join(parts[head : len(parts) - tail]) for parts in split], " ".join(shared)


def _shared(split: Sequence[Sequence[str]]) -> int:
    """The number of common first words, leaving at least one word to each."""
    count = 0
    while all(len(parts) > count + 1 for parts in split) and len({parts[count] for parts in split}) == 1:
        count += 1
    return count


def one_line(parts: Iterable[str]) -> str:
    """Facts on one line."""
    return " · ".join(part for part in parts if part)


def are_units(tails: Iterable[str]) -> bool:
    """Whether only units follow the figures of a column, and not a figure or a mark."""
    reported = {tail for tail in tails if tail}
    return bool(reported) and all(
        (tail == "%" or any(map(str.isalpha, tail))) and not any(map(str.isdigit, tail)) for tail in reported
    )


def padded(cells: Sequence[TableCell]) -> list[tuple[str, str]]:
    """A column's figures, padded to align in a proportional font when set flush right, and the text after each.

    Figures with the same unit align, and each is followed directly by its unit.
    """
    if not are_units(cell.tail for cell in cells):
        texts = units.pad_after_point([cell.text for cell in cells])
        return [(text, cell.tail) for text, cell in zip(texts, cells, strict=True)]
    cell_texts = [cell.text for cell in cells]
    for unit in dict.fromkeys(cell.tail for cell in cells):
        indices = [index for index, cell in enumerate(cells) if cell.tail == unit]
        for index, text in zip(indices, units.pad_after_point([cell_texts[index] for index in indices]), strict=True):
            cell_texts[index] = f"{text} {unit}".rstrip(" ")
    return [(text, "") for text in cell_texts]


def some_open(charts: Sequence[Chart], most: int = 12) -> list[Block]:
    """The first charts, and the rest behind a summary; paper has only the first ones and a note about it."""
    more = list(charts[most:])
    if not more:
        return list(charts)
    number = units.plural(len(more), "more chart")
    folded = Details("more-charts", f"{number}, less relevant", more, media=HTML)
    return [*charts[:most], folded, Remarks("charts-left-out", "", [f"The HTML report has {number}."], media=PDF)]


def with_chart_note(blocks: Sequence[Block], text: str) -> list[Block]:
    """The blocks with an additional note below each chart; unchanged if the note is empty."""
    if not text:
        return list(blocks)
    return [
        replace(block, note="; ".join(filter(None, [block.note, text]))) if isinstance(block, Chart) else block
        for block in blocks
    ]
