"""A report as blocks: a sentence, tables, charts, notes. Every rendering lays these out and formats no figure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chainmark.core import units
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.bars import IntervalBar
from chainmark.report.chart import Chart
from chainmark.report.content import Emphasis

Tone = Literal["pass", "fail", "inconclusive", "invalid", "neutral"]
_TONES: dict[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.INVALID: "invalid",
    Verdict.GENERATOR_LIMITED: "invalid",
    Verdict.INFORMATIONAL: "neutral",
}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        heading: what stands above it.
        group: columns that follow each other with the same group stand under its name, and are never parted.
        kind: figures align on their decimal point.
        spare_tail: what follows the figures is left out first where there is not enough width.
        follows: the column is never parted from the one before it.
    """

    heading: str = ""
    group: str = ""
    kind: Literal["words", "figures", "bar"] = "figures"
    spare_tail: bool = False
    follows: bool = False


@dataclass(frozen=True)
class TableCell:
    """A figure or words, and what follows the figure: its standard error and its unit."""

    text: str = ""
    tail: str = ""
    emphasis: Emphasis = "plain"
    bar: IntervalBar | None = None

    @property
    def whole(self) -> str:
        """The cell as one text."""
        return f"{self.text} {self.tail}".strip()


@dataclass(frozen=True)
class TableRow:
    """One row. A second row says the same of the row above it in another way."""

    cells: list[TableCell]
    second: bool = False


@dataclass(frozen=True)
class StackedBar:
    """One bar of parts that add up to ``total``, as it is printed."""

    label: str
    parts: list[float]
    total: str


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows. ``bars`` say the same in characters, its rows numbered from 1.

    ``tails`` is what the tails of its cells are called, where some are left out. A terminal leaves out a table that is
    ``only_on_pages``, and says so.
    """

    id: str
    title: str
    columns: list[Column]
    rows: list[TableRow]
    notes: list[str] = field(default_factory=list)
    sortable: bool = False
    bars: list[StackedBar] = field(default_factory=list)
    tails: str = "standard errors"
    only_on_pages: bool = False

    def column(self, index: int) -> list[TableCell]:
        """One column's cells."""
        return [row.cells[index] for row in self.rows]


@dataclass(frozen=True)
class Listing:
    """Texts to be shown letter by letter, such as lines of a log, each under what it is."""

    id: str
    title: str
    entries: list[tuple[str, str]]


@dataclass(frozen=True)
class Definition:
    """What a name means; ``id`` is the other name under which it is known."""

    term: str
    id: str
    text: str


@dataclass(frozen=True)
class Definitions:
    """A list of names with what they mean."""

    id: str
    title: str
    entries: list[Definition]


@dataclass(frozen=True)
class Remarks:
    """Sentences below each other."""

    id: str
    title: str
    items: list[str]


Block = Table | Chart | Listing | Definitions | Remarks


@dataclass(frozen=True)
class Section:
    """Blocks that belong together."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Sheet:
    """A whole report. ``source_json`` is the document that it was made from, ``kind`` what that is called.

    Without a ``word`` there is no band for the verdict, and the sentence is set as any other. ``contents`` asks for a
    table of contents on paper.
    """

    kind: str
    title: str
    subtitle: str
    verdict: Verdict
    word: str
    sentence: str
    suites: list[Suite]
    sections: list[Section]
    notes: list[str]
    source_json: str
    contents: bool = False

    @property
    def tone(self) -> Tone:
        """How the band of the verdict looks."""
        return _TONES.get(self.verdict, "inconclusive")

    @property
    def cases(self) -> list[Case]:
        """Everything that was judged, in reading order."""
        return [case for suite in self.suites for case in suite.cases]

    @property
    def digest(self) -> str:
        """SHA-256 of the document: ties a printed page to the data it came from."""
        return hashlib.sha256(self.source_json.encode()).hexdigest()

    def noted_once(self) -> Sheet:
        """The same sheet with what a table explains left out of the tables after it."""
        said: set[str] = set()
        sections = []
        for section in self.sections:
            blocks: list[Block] = []
            for block in section.blocks:
                if isinstance(block, Table):
                    fresh = [note for note in block.notes if note not in said]
                    said.update(fresh)
                    blocks.append(replace(block, notes=fresh))
                else:
                    blocks.append(block)
            sections.append(replace(section, blocks=blocks))
        return replace(self, sections=sections)

    def blocks(self) -> list[Block]:
        """All blocks in their order."""
        return [block for section in self.sections for block in section.blocks]


def in_groups(columns: Sequence[Column]) -> list[list[int]]:
    """The columns after the first one by their places, those together that must not be parted."""
    groups: list[list[int]] = []
    for place, column in enumerate(columns[1:], start=1):
        before = columns[place - 1]
        alike = column.group != "" and place > 1 and before.group == column.group
        if groups and (alike or column.follows):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def words(*headings: str) -> list[Column]:
    """Columns of words."""
    return [Column(heading, kind="words") for heading in headings]


def short_labels(labels: Sequence[str]) -> tuple[list[str], str]:
    """Labels without the words that all of them begin or end with, and those words: "0.50", "0.80" and "adoption"."""
    split = [label.split() for label in labels]
    if len(split) < 2:
        return list(labels), ""
    head = _shared(split)
    tail = _shared([list(reversed(parts))[: len(parts) - head] for parts in split])
    shared = [*split[0][:head], *(split[0][-tail:] if tail else [])]
    return [" ".join(parts[head : len(parts) - tail]) for parts in split], " ".join(shared)


def _shared(split: Sequence[Sequence[str]]) -> int:
    """How many words all begin with, leaving at least one word to each."""
    count = 0
    while all(len(parts) > count + 1 for parts in split) and len({parts[count] for parts in split}) == 1:
        count += 1
    return count


def one_line(parts: Iterable[str]) -> str:
    """Facts on one line."""
    return " · ".join(part for part in parts if part)


def padded(cells: Sequence[TableCell]) -> list[str]:
    """A column's figures as they align in a proportional font when set flush right."""
    return units.pad_after_point([cell.text for cell in cells])
