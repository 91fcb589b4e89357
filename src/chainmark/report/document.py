"""The readable form of a result in every medium: terminal, HTML, PDF, Markdown, JUnit, JSON."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
from rich.console import Console

from chainmark.core.errors import UsageError
from chainmark.report import html, junit, markdown, pdf, terminal
from chainmark.report.content import Content
from chainmark.report.table_frames import frames_of
from chainmark.report.typeset import Paper
from chainmark.store.files import json_bytes, write_bytes

FORMATS = (".html", ".pdf", ".md", ".xml", ".json")


@dataclass(frozen=True, repr=False)
class Document(Content):
    """A result that is laid out, with its outputs in every medium. A layout function creates one per kind of result."""

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cases as a table: suite, id, label, verdict, gates, reason, seconds and a column for each figure.

        A document that judges nothing, such as a list of blocks, has only `tables`.
        """
        rows = [
            {
                "suite": suite.name,
                **case.plain(),
                **{name: value for name, value in case.figures.items() if not isinstance(value, str)},
            }
            for suite in self.suites
            for case in suite.cases
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The shown tables by their ids, with the figures as printed; ``result`` has them unrounded."""
        return frames_of(self.blocks())

    def print(self, console: Console) -> None:
        """Print it. The words suffice without colour."""
        terminal.print_document(self, console)

    def text(self, width: int = 120) -> str:
        """The output for a terminal of that width, without colours."""
        file = io.StringIO()
        self.print(Console(file=file, width=width, no_color=True, color_system=None))
        return file.getvalue()

    def html(self) -> str:
        """A single self-contained page that opens offline; the same document gives the same text."""
        return html.page_of(self)

    def markdown(self) -> str:
        """GitHub-flavoured Markdown for a pull request: the deciding parts are open, the rest is folded."""
        return markdown.comment_of(self)

    def markdown_page(self, folder: str) -> tuple[str, dict[str, str]]:
        """A Markdown page of a website, nothing folded, and its charts as SVG by their names in ``folder``."""
        return markdown.page_of(self, folder)

    def pdf(self) -> bytes:
        """A PDF; fonts, template and data come from the package, never from the machine."""
        return pdf.pdf_of(self)

    def paper(self) -> Paper:
        """The input of a PDF, which needs nothing else of the document."""
        return pdf.paper_of(self)

    def junit(self) -> str:
        """JUnit XML for a pipeline."""
        return junit.junit_xml(self.suites, self.kind, self.caveats, self.date)

    def save(self, path: Path | str) -> Path:
        """Write the format that the file's name ends with: .html, .pdf, .md, .xml (JUnit) or .json. Return the path.

        Raises:
            UsageError: the name has another suffix.
            EnvironmentFailure: the file cannot be written.
        """
        target = Path(path)
        if target.suffix not in FORMATS:
            raise UsageError(f"`{target}` has no known format", f"its name must end with one of {', '.join(FORMATS)}")
        return self.write(target, target.suffix)

    def write(self, path: Path, suffix: str) -> Path:
        """Write the format of that suffix, whatever the file's name."""
        contents: dict[str, Callable[[], bytes]] = {
            ".html": lambda: self.html().encode(),
            ".pdf": self.pdf,
            ".md": lambda: self._markdown_at(path).encode(),
            ".xml": lambda: self.junit().encode(),
            ".json": lambda: json_bytes(self.plain()),
        }
        write_bytes(path, contents[suffix]())
        return path

    def write_all(self, paths: Mapping[str, Path]) -> list[Path]:
        """Write several formats, each by its suffix."""
        return [self.write(path, suffix) for suffix, path in paths.items()]

    def _markdown_at(self, path: Path) -> str:
        """The Markdown; a page's charts are written to separate files."""
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
