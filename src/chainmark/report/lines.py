"""Lines on a terminal: wrapped, shortened, never broken inside a table."""

from __future__ import annotations

import textwrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text


def shorten(text: str, width: int) -> str:
    """Cut in the middle: the beginning names the subject and the end has the statistic and the unit."""
    if cell_len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most that width; a figure and its percent sign stay together."""
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), max(20, width), break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


class Printer:
    """Paragraphs wrap at the console's width; table lines are never broken."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = console.width
        self.lines = 0

    def line(self, text: Text) -> None:
        """One line, unchanged."""
        text.rstrip()
        self.lines += 1
        self.console.print(text, no_wrap=True, overflow="ignore", crop=False, highlight=False)

    def paragraph(self, text: str, style: str) -> None:
        """Text wrapped at the console's width."""
        for line in wrapped(text, self.width):
            self.line(Text(line, style=style))

    def item(self, text: str, mark: str = "·", style: str = "") -> None:
        """A hanging item: the further lines of a long sentence are indented to its first word."""
        for index, line in enumerate(wrapped(text, self.width - 4)):
            self.line(Text((f"  {mark} " if index == 0 else "    ") + line, style=style))

    def blank(self) -> None:
        """An empty line."""
        self.lines += 1
        self.console.print()
