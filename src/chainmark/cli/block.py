"""`chainmark block` and `chainmark trail`: from a sample to what happened, and to the log lines that say so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Output, shows_result

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")]
Key = Annotated[str, typer.Argument(metavar="HASH|HEIGHT", help="Block hash, a prefix of it, or the height.")]
Hosts = Annotated[
    list[str] | None, typer.Option("--host", metavar="HOST", help="Show only this host. May be repeated.")
]
Lines = Annotated[
    Path | None,
    typer.Option(
        "--lines", metavar="DIR", help="Print the log lines from this folder, which the run was imported from."
    ),
]


@shows_result
def block(run: Run, key: Key, hosts: Hosts = None, lines: Lines = None, *, output: Output) -> None:
    """Show the timeline of one block: when each host processed it, with the log lines.

    Example: `chainmark block cardano-value-10.6.2-2026 1234 --lines logs/ --html block-1234.html`
    """
    output.finish(cm.block(run, key, hosts=hosts or [], lines=lines))


@shows_result
def trail(
    run: Run,
    trail_id: Annotated[
        str, typer.Argument(metavar="TRAIL", help="Type of object to trace, as named in the run's catalogue.")
    ],
    key: Annotated[str, typer.Argument(metavar="KEY|NUMBER", help="Key of the object, a prefix of it, or its number.")],
    hosts: Hosts = None,
    lines: Lines = None,
    *,
    output: Output,
) -> None:
    """Show the timeline of any object that the run's catalogue can trace, as `chainmark block` does for blocks.

    Example: `chainmark trail cardano-value-10.6.2-2026 block 1234`
    """
    output.finish(cm.block(run, key, trail=trail_id, hosts=hosts or [], lines=lines))
