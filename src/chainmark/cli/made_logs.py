"""Output about generated logs and their faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chainmark.cli.console import out
from chainmark.core import units

if TYPE_CHECKING:
    from chainmark.lab.synthetic import FaultKind, SyntheticLogs


def print_fault_kinds(kinds: Sequence[FaultKind]) -> None:
    """The possible faults, each with an example."""
    from rich.table import Column, Table

    table = Table("kind", Column("meaning", overflow="fold"), Column("example", overflow="fold"), box=None)
    for kind in kinds:
        table.add_row(kind.name, kind.meaning, kind.example)
    out().print(table)


def print_made(made: SyntheticLogs) -> None:
    """The generated logs."""
    from rich.table import Column, Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(justify="left")
    table.add_column(justify="right")
    for label, value in (
        ("hosts", f"{made.hosts}"),
        *made.contents().items(),
        ("lines", f"{made.lines}, {units.number(made.lines_per_host_s, 1)} per second and host"),
        ("text", units.byte_size(made.text_bytes)),
        ("stored", units.byte_size(made.stored_bytes)),
    ):
        table.add_row(label, value)
    out().print(table)
    if made.faults:
        faults = Table("fault", "host", Column("from s", justify="right"), Column("until s", justify="right"), box=None)
        faults.add_column("value", justify="right")
        faults.add_column("lines", justify="right")
        for fault in made.faults:
            times = ["" if time is None else units.number(time, 0) for time in (fault.from_s, fault.until_s)]
            value = fault.name or (f"{units.tidy(fault.value)} {fault.unit}".strip() if fault.value else "")
            faults.add_row(fault.fault, fault.host, *times, value, f"{fault.lines}")
        out().print("")
        out().print(faults)
    out().print(f"\nlogs and truth  {made.folder}", markup=False)
