"""A result laid out once for every medium: the terminal, a browser, paper, a pull request, a pipeline."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python
from rich.console import Console

from chainmark.core.errors import UsageError
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report import html, junit, markdown, pdf, terminal
from chainmark.report.blocks import Block, Details, Medium, Section, Table
from chainmark.report.chart import Chart
from chainmark.store.files import json_bytes, write_bytes

FORMATS = (".html", ".pdf", ".md", ".xml", ".json")
Tone = Literal["pass", "fail", "inconclusive", "invalid", "neutral"]
_TONES: dict[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.INVALID: "invalid",
    Verdict.GENERATOR_LIMITED: "invalid",
    Verdict.INFORMATIONAL: "neutral",
}


@dataclass(frozen=True, repr=False)
class Document:
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
    def page_title(self) -> str:
        """The title, with the verdict before it where there is one."""
        return self.title if self.tone == "neutral" else f"{self.word}: {self.title}"

    @property
    def tone(self) -> Tone:
        """How the band of the verdict looks."""
        return _TONES.get(self.verdict, "inconclusive")

    @property
    def cases(self) -> list[Case]:
        """Everything that was judged, in reading order."""
        return [case for suite in self.suites for case in suite.cases]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cases as a table: suite, id, label, verdict, gates, reason, seconds and a column for each figure."""
        rows = [
            {
                "suite": suite.name,
                "id": case.id,
                "label": case.label,
                "verdict": case.verdict.value,
                "gates": case.gates,
                "reason": case.reason,
                "seconds": case.seconds,
                **{name: value for name, value in case.figures.items() if not isinstance(value, str)},
            }
            for suite in self.suites
            for case in suite.cases
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

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

    def print(self, console: Console) -> None:
        """Print it. Colour only underlines what the words say, so nothing is lost without it."""
        terminal.print_document(self, console)

    def text(self, width: int = 120) -> str:
        """What a terminal of that width shows, without colours."""
        file = io.StringIO()
        self.print(Console(file=file, width=width, no_color=True, color_system=None))
        return file.getvalue()

    def html(self) -> str:
        """A single self-contained page that opens offline; the same document gives the same text."""
        return html.page_of(self)

    def markdown(self) -> str:
        """GitHub-flavoured Markdown for a pull request: what decides stands open, the rest is folded."""
        return markdown.comment_of(self)

    def markdown_page(self, folder: str) -> tuple[str, dict[str, str]]:
        """A Markdown page of a website, nothing folded, and its charts as SVG by their names in ``folder``."""
        return markdown.page_of(self, folder)

    def pdf(self) -> bytes:
        """A PDF; fonts, template and data come from the package alone, never from the machine."""
        return pdf.pdf_of(self)

    def junit(self) -> str:
        """JUnit XML for a pipeline."""
        return junit.junit_xml(self.suites, self.kind)

    def save(self, path: Path | str) -> Path:
        """Write the format that the file's name ends with: .html, .pdf, .md, .xml (JUnit) or .json; the path written.

        Raises:
            UsageError: the name ends otherwise.
            EnvironmentFailure: the file cannot be written.
        """
        target = Path(path)
        if target.suffix not in FORMATS:
            raise UsageError(f"`{target}` has no format: its name must end as one", f"known are {', '.join(FORMATS)}")
        return self.write(target, target.suffix)

    def write(self, path: Path, suffix: str) -> Path:
        """Write the format of that suffix, however the file is called."""
        contents: dict[str, Callable[[], bytes]] = {
            ".html": lambda: self.html().encode(),
            ".pdf": self.pdf,
            ".md": lambda: self._markdown_at(path).encode(),
            ".xml": lambda: self.junit().encode(),
            ".json": lambda: json_bytes(self.result),
        }
        write_bytes(path, contents[suffix]())
        return path

    def _markdown_at(self, path: Path) -> str:
        """The Markdown; a page's charts are written beside it."""
        if not self.is_page:
            return self.markdown()
        folder = path.with_name(f"{path.stem}-figures")
        text, charts = self.markdown_page(folder.name)
        for name, svg in charts.items():
            write_bytes(folder / name, svg.encode())
        return text

    def __repr__(self) -> str:
        word = f" {self.word}:" if self.word else ""
        return f"<{self.kind}{word} {self.sentence or self.title}>"

    def _repr_html_(self) -> str:
        return html.fragment_of(self)

    def noted_once(self) -> Document:
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
        return [block for block in _unfolded(self.blocks()) if isinstance(block, Chart)]

    def seen_on(self, medium: Medium) -> Document:
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
    kept = [place for place, column in enumerate(table.columns) if medium in column.media]
    if len(kept) == len(table.columns):
        return table
    rows = [replace(row, cells=[row.cells[place] for place in kept]) for row in table.rows]
    return replace(table, columns=[table.columns[place] for place in kept], rows=rows)
