"""Output about an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Column, Table

import chainmark as cm
from chainmark.cli.console import err, out
from chainmark.core import units
from chainmark.core.accounts import in_short
from chainmark.core.caveats import caveats_of
from chainmark.report.wording import gate_word

if TYPE_CHECKING:  # only a followed log has such rows
    from chainmark.report.blocks import Table as Rows

_NOTES_SHOWN = 12
_FACTS_SHOWN = 3  # of each run in a list; `chainmark runs show` has the others
# For a followed log: a column, and the number of blocks that it contained before.
_WIDTH, _FIRST_SHOWN = 14, 10
_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "unknown": "bright_black"}


class FollowedRows:
    """The rows of a followed log, each once: as lines, so that they can be piped."""

    def __init__(self, on_stderr: bool) -> None:
        self._console = err() if on_stderr else out()
        self._shown: set[str] | None = None

    def show(self, rows: Rows) -> None:
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


def print_imported(made: Sequence[cm.Run]) -> None:
    """The result of an import: one run with the counts of its lines, or a list of several."""
    if len(made) == 1:
        _print_summary(made[0])
    else:
        _print_list(made)


def _print_list(made: Sequence[cm.Run]) -> None:
    """The result of an import of several runs."""
    table = Table("run", "version", "what", box=None, padding=(0, 2, 0, 0))
    for run in made:
        facts = [fact.value for fact in run.manifest.facts[:_FACTS_SHOWN]]
        table.add_row(run.id, run.manifest.subject.version, "; ".join(facts))
    out().print(table)
    fresh = sum(item.is_new for item in made)
    out().print(f"\n{len(made)} runs, {fresh} of them new", markup=False)


def _print_summary(made: cm.Run) -> None:
    """The result of an import."""
    manifest = made.manifest
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("run", made.id + ("" if made.is_new else "  (already imported, unchanged)"))
    table.add_row("version", f"{manifest.subject.name} {manifest.subject.version}")
    for badge in caveats_of([manifest]).badges:
        table.add_row("data", badge)
    table.add_row("time", f"{manifest.started_at} to {manifest.ended_at}")
    table.add_row("sources", f"{len(manifest.sources)}, {_size(manifest)}")
    for account, classes in in_short(manifest.counts).items():
        text = ", ".join(f"{label} {units.count(count)}" for label, count in classes.items() if count)
        table.add_row(account, f"{units.count(sum(classes.values()))}: {text}")
    out().print(table)
    _print_gates(manifest)
    _print_notes(manifest)
    if made.is_valid:
        shown = f"host {made.id} --html host.html" if made.is_of_one_host else f"runs show {made.id}"
        out().print(f"\nnext  chainmark {shown}", markup=False)
        out().print(f"      chainmark compare BASELINE {made.id} --html report.html", markup=False)


def _size(manifest: cm.Manifest) -> str:
    return units.byte_size(sum(source.size_bytes for source in manifest.sources))


def _print_gates(manifest: cm.Manifest) -> None:
    table = Table("gate", "status", "measured", Column("detail", overflow="fold"), box=None)
    for gate in manifest.gates:
        table.add_row(
            gate.label, f"[{_COLOURS[gate.status.value]}]{gate_word(gate.status)}[/]", gate.measured, gate.detail
        )
    out().print()
    out().print(table)


def _print_notes(manifest: cm.Manifest) -> None:
    notes = [*manifest.warnings, *(incident.what for incident in manifest.incidents)]
    if notes:
        out().print()
    for note in notes[:_NOTES_SHOWN]:
        out().print(f"note  {note}", markup=False)
    if len(notes) > _NOTES_SHOWN:
        out().print(f"note  {len(notes) - _NOTES_SHOWN} more in `chainmark runs show`", markup=False)
