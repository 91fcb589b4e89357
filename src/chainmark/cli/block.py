"""`chainmark block` and `chainmark trail`: from a sample to what happened, and to the log lines that say so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Output, shows_result

Run = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id or the beginning of it, or a version with one run.")
]
Key = Annotated[str, typer.Argument(metavar="HASH|HEIGHT", help="The hash, the beginning of it, or the height.")]
Hosts = Annotated[
    list[str] | None, typer.Option("--host", metavar="HOST", help="Show only this host; may be repeated.")
]
Lines = Annotated[
    Path | None,
    typer.Option("--lines", metavar="DIR", help="Print the log lines, from the folder that the run was made from."),
]


@shows_result
def block(run: Run, key: Key, hosts: Hosts = None, lines: Lines = None, *, output: Output) -> None:
    """Show the life of one block: when every host did what with it, and which log lines say so.

    Example: `chainmark block cardano-value-10.6.2-2026 1234 --lines logs/ --html block-1234.html`
    """
    output.finish(cm.block(run, key, hosts=hosts or [], lines=lines))


@shows_result
def trail(
    run: Run,
    trail_id: Annotated[str, typer.Argument(metavar="TRAIL", help="What to follow, as the run's catalogue calls it.")],
    key: Annotated[str, typer.Argument(metavar="KEY|NUMBER", help="Its key, the beginning of it, or its number.")],
    hosts: Hosts = None,
    lines: Lines = None,
    *,
    output: Output,
) -> None:
    """Follow anything that a run's catalogue has a trail of, as `chainmark block` follows blocks.

    Example: `chainmark trail cardano-value-10.6.2-2026 block 1234`
    """
    output.finish(cm.block(run, key, trail=trail_id, hosts=hosts or [], lines=lines))
