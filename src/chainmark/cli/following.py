"""Listeners for long work; the module that draws the bars is loaded only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainmark.cli.console import err, out

if TYPE_CHECKING:
    from chainmark.cli.bars import TerminalProgress
    from chainmark.report.blocks import Table

# For a followed log: the width of a column, and the number of blocks shown that it contained before.
_WIDTH, _FIRST_SHOWN = 14, 10


@contextmanager
def progress() -> Iterator[TerminalProgress]:
    """A progress listener for the lifetime of the context."""
    from chainmark.cli.bars import shown

    with shown() as listener:
        yield listener


class FollowedRows:
    """The rows of a followed log, each once: as lines, so that they can be piped."""

    def __init__(self, on_stderr: bool) -> None:
        self._console = err() if on_stderr else out()
        self._shown: set[str] | None = None

    def show(self, rows: Table) -> None:
        """Print new rows; of all that a log contained before, only the last few."""
        known = self._shown
        if known is None:
            self._line([column.heading for column in rows.columns])
        fresh = [row for row in rows.rows if known is None or row.anchor not in known]
        for row in fresh if known is not None else fresh[-_FIRST_SHOWN:]:
            self._line([cell.whole for cell in row.cells])
        self._shown = {row.anchor for row in rows.rows}

    def _line(self, cells: Sequence[str]) -> None:
        self._console.print("".join(f"{cell:<{_WIDTH}}" for cell in cells).rstrip(), markup=False)
