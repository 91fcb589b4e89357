"""The content of a document, independent of the medium: the verdict, the cases, and blocks in reading order."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from chainmark.core.caveats import Caveats
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Details, Medium, Section, Table
from chainmark.report.chart import Chart
from chainmark.report.wording import LOOKS, Tone


@dataclass(frozen=True, repr=False)
class Content:
    """The readable form of a result: a verdict, cases, and blocks in reading order.

    Attributes:
        result: its source, whose JSON is the document's, together with the verdict and the cases.
        kind: name of the kind of result.
        sentence: the particular of this result, in the band next to the verdict's word.
        suites: the judged cases.
        has_band: whether the verdict is shown in a band; without one, the sentence is set like any other.
        contents: whether paper has a table of contents.
        is_page: as a Markdown file it is a page of a website, with its charts as separate files.
        date: when the document was made; ``tool_version``: by which version.
    """

    kind: str
    title: str
    subtitle: str
    verdict: Verdict
    sentence: str
    suites: list[Suite]
    sections: list[Section]
    notes: list[str]
    result: BaseModel
    has_band: bool = True
    contents: bool = False
    is_page: bool = False
    date: str = ""
    tool_version: str = ""

    @property
    def author(self) -> str:
        """The tool that made it."""
        return f"chainmark {self.tool_version}".strip()

    @property
    def caveats(self) -> Caveats:
        """The result's own caveats about its data: on the first screen of every medium."""
        caveats = getattr(self.result, "caveats", None)
        return caveats if isinstance(caveats, Caveats) else Caveats()

    @property
    def page_title(self) -> str:
        """The title, preceded by the verdict and the badges if there are some."""
        word = [] if self.tone == "neutral" else [self.word]
        return ": ".join([*word, *self.caveats.badges, self.title])

    @property
    def tone(self) -> Tone:
        """The look of the verdict's band."""
        return LOOKS[self.verdict].tone

    @property
    def word(self) -> str:
        """The verdict in the band; "" without a band."""
        return self.verdict.capitals if self.has_band else ""

    @property
    def cases(self) -> list[Case]:
        """Everything that was judged, in reading order."""
        return [case for suite in self.suites for case in suite.cases]

    def plain(self) -> dict[str, Any]:
        """The document's JSON as data: the result, with the verdict and the cases of every kind of document."""
        return self.result.model_dump(mode="json", by_alias=True) | self._judged()

    @cached_property
    def json(self) -> str:
        """The same as text, which pages embed and from which the digest is made. Lone surrogates become U+FFFD."""
        judged = self._judged()
        try:
            # Not from `plain`: a result serialises itself two to six times as fast.
            added = to_json(judged, inf_nan_mode="null").decode()
            return f"{self.result.model_dump_json(by_alias=True)[:-1]},{added[1:]}"
        except PydanticSerializationError:
            content = self.result.model_dump(mode="python", by_alias=True) | judged
            text = json.dumps(content, default=to_jsonable_python)
            return re.sub(r"\\\\ud[89a-f][0-9a-f]{2}", "\\\\ufffd", text)

    def _judged(self) -> dict[str, Any]:
        """The keys that the document adds to its result, which may have the verdict already."""
        own = {} if "verdict" in type(self.result).model_fields else {"verdict": self.verdict.value}
        return own | {"suites": [suite.plain() for suite in self.suites]}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON: ties a printed page to the data it came from."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    def noted_once(self) -> Self:
        """The same document, where definitions already in a table are omitted from later tables."""
        noted: set[str] = set()
        sections = []
        for section in self.sections:
            blocks: list[Block] = []
            for block in section.blocks:
                if isinstance(block, Table):
                    fresh = [note for note in block.notes if note not in noted]
                    noted.update(fresh)
                    blocks.append(replace(block, notes=fresh))
                else:
                    blocks.append(block)
            sections.append(replace(section, blocks=blocks))
        return replace(self, sections=sections)

    def blocks(self) -> list[Block]:
        """All blocks in order."""
        return [block for section in self.sections for block in section.blocks]

    def charts(self) -> list[Chart]:
        """All charts, including folded ones."""
        charts = [block for block in _unfolded(self.blocks()) if isinstance(block, Chart)]
        return [item for chart in charts for item in (chart, chart.inset) if item]

    def seen_on(self, medium: Medium) -> Self:
        """The part of it that one medium shows."""
        shown = (section for section in self.sections if medium in section.media)
        sections = (replace(section, blocks=_seen(section.blocks, medium)) for section in shown)
        return replace(self, sections=[section for section in sections if section.blocks])


def _unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from _unfolded(block.blocks)
        elif isinstance(block, Table):
            for row in block.rows:
                yield from _unfolded(row.more)


def _seen(blocks: Iterable[Block], medium: Medium) -> list[Block]:
    """The blocks that a medium shows, reduced to its parts."""
    visible: list[Block] = []
    for block in blocks:
        if isinstance(block, Chart):
            visible.append(block)
        elif medium not in block.media:
            continue
        elif isinstance(block, Details):
            visible.append(replace(block, blocks=_seen(block.blocks, medium)))
        elif isinstance(block, Table):
            visible.append(_columns_seen(block, medium))
        else:
            visible.append(block)
    return visible


def _columns_seen(table: Table, medium: Medium) -> Table:
    entered = {
        index for row in table.rows for index, cell in enumerate(row.cells) if cell.whole or cell.bar or cell.notes
    }
    indices = [
        index
        for index, column in enumerate(table.columns)
        if medium in column.media and (index in entered or not column.if_any)
    ]
    if len(indices) == len(table.columns):
        return table
    rows = [replace(row, cells=[row.cells[index] for index in indices]) for row in table.rows]
    return replace(table, columns=[table.columns[index] for index in indices], rows=rows)
