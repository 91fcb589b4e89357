"""What a document says, whatever the medium: the verdict, what was judged, and blocks in reading order."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from chainmark.core.caveats import Caveats
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Details, Medium, Section, Table
from chainmark.report.chart import Chart

Tone = Literal["pass", "fail", "inconclusive", "invalid", "neutral"]
_TONES: dict[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.GONE: "invalid",
    Verdict.INVALID: "invalid",
    Verdict.GENERATOR_LIMITED: "invalid",
    Verdict.INFORMATIONAL: "neutral",
}


@dataclass(frozen=True, repr=False)
class Content:
    """What a person or a pipeline reads of a result: a verdict, cases, and blocks in reading order.

    Attributes:
        result: what it was made from; its JSON is the document's.
        kind: what the result is called.
        word: the verdict as the band says it; without one there is no band, and the sentence is set as any other.
        suites: what was judged.
        contents: asks for a table of contents on paper.
        is_page: as a Markdown file it is a page of a website, with its charts as files beside it.
        date: when the document says that it was made; ``tool_version`` by what.
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
    result: BaseModel
    contents: bool = False
    is_page: bool = False
    date: str = ""
    tool_version: str = ""

    @property
    def author(self) -> str:
        """What made it."""
        return f"chainmark {self.tool_version}".strip()

    @property
    def caveats(self) -> Caveats:
        """What the result says against taking its data at their word: on the first screen of every medium."""
        caveats = getattr(self.result, "caveats", None)
        return caveats if isinstance(caveats, Caveats) else Caveats()

    @property
    def page_title(self) -> str:
        """The title, with the verdict and the badges before it where there are some."""
        word = [] if self.tone == "neutral" else [self.word]
        return ": ".join([*word, *self.caveats.badges, self.title])

    @property
    def tone(self) -> Tone:
        """How the band of the verdict looks."""
        return _TONES.get(self.verdict, "inconclusive")

    @property
    def cases(self) -> list[Case]:
        """Everything that was judged, in reading order."""
        return [case for suite in self.suites for case in suite.cases]

    @cached_property
    def json(self) -> str:
        """The result as JSON: what pages embed, and what the digest is of. Lone surrogates become U+FFFD."""
        try:
            return self.result.model_dump_json(by_alias=True)
        except PydanticSerializationError:
            text = json.dumps(self.result.model_dump(mode="python", by_alias=True), default=to_jsonable_python)
            return re.sub(r"\\\\ud[89a-f][0-9a-f]{2}", "\\\\ufffd", text)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON: ties a printed page to the data it came from."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    def noted_once(self) -> Self:
        """The same document with what a table explains left out of the tables after it."""
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

    def charts(self) -> list[Chart]:
        """All charts, also those that are folded away."""
        charts = [block for block in _unfolded(self.blocks()) if isinstance(block, Chart)]
        return [item for chart in charts for item in (chart, chart.inset) if item]

    def seen_on(self, medium: Medium) -> Self:
        """What one medium shows of it."""
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
    """The blocks that a medium shows, and of each what it shows."""
    seen: list[Block] = []
    for block in blocks:
        if isinstance(block, Chart):
            seen.append(block)
        elif medium not in block.media:
            continue
        elif isinstance(block, Details):
            seen.append(replace(block, blocks=_seen(block.blocks, medium)))
        elif isinstance(block, Table):
            seen.append(_columns_seen(block, medium))
        else:
            seen.append(block)
    return seen


def _columns_seen(table: Table, medium: Medium) -> Table:
    retained = [place for place, column in enumerate(table.columns) if medium in column.media]
    if len(retained) == len(table.columns):
        return table
    rows = [replace(row, cells=[row.cells[place] for place in retained]) for row in table.rows]
    return replace(table, columns=[table.columns[place] for place in retained], rows=rows)
