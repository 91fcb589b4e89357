"""Output of commands: results on stdout, messages on stderr, JSON for machines on request."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from chainmark.core.errors import ChainmarkError

# Completing a word prints nothing with it, and loading it takes a quarter of the time.
if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

# Without a screen, nothing is cut to its width: ids and paths must stay whole in a pipe.
PIPE_WIDTH = 200


@functools.cache
def out() -> Console:
    """Where results go."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(highlight=False, soft_wrap=True, width=width, color_system=_color_system())


@functools.cache
def err() -> Console:
    """Where messages go."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))  # progress is then printed as lines: bars need escape codes
    return Console(
        stderr=True,
        highlight=False,
        soft_wrap=True,
        color_system=_color_system(),
        force_terminal=False if plain else None,
    )


def _color_system() -> Literal["auto"] | None:
    """None with ``NO_COLOR``: Rich alone would still print bold text."""
    return None if os.environ.get("NO_COLOR") else "auto"


def print_json(content: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Write JSON to stdout."""
    plain = content if isinstance(content, dict | list) else content.model_dump(mode="json")
    sys.stdout.write(json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], fold: str = "") -> None:
    """Print a table without lines.

    Args:
        headings: of the columns.
        rows: one text per column.
        fold: the column that is never shortened.
    """
    from rich.table import Table

    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, overflow="fold" if heading == fold else "ellipsis")
    for row in rows:
        table.add_row(*row)
    out().print(table)


def print_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a long table, one line per row: rich would need a second to lay out thousands of rows."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        sys.stdout.write(" " + "  ".join(map(str.ljust, row, widths)) + " \n")


def print_error(error: ChainmarkError) -> None:
    """One sentence, then a hint."""
    from rich.text import Text

    err().print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        err().print(Text.assemble(("hint: ", "bold cyan"), error.hint))


def say(text: str) -> None:
    """A literal message on stderr."""
    err().print(text, markup=False)
