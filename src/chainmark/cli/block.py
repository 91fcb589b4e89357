"""`chainmark block`, `transaction`, `request` and `trail`: from a sample to its timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Output, shows_result

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")]
Key = Annotated[
    str | None,
    typer.Argument(
        metavar="[HASH|HEIGHT]", help="Block hash, a prefix of it, or the height. Default: list the slowest."
    ),
]
Slowest = Annotated[
    int, typer.Option("--slowest", min=1, max=1000, metavar="N", help="Number of the slowest ones to list.")
]
Hosts = Annotated[
    list[str] | None, typer.Option("--host", metavar="HOST", help="Show only this host. May be repeated.")
]
Lines = Annotated[
    Path | None,
    typer.Option(
        "--lines", metavar="DIR", help="Print the log lines, read from the folder that the run was imported from."
    ),
]


@command(110)
@shows_result
def block(
    run: Run, key: Key = None, hosts: Hosts = None, lines: Lines = None, slowest: Slowest = 10, *, output: Output
) -> None:
    """Show the timeline of one block: when each host processed it, with the log lines."""
    output.finish(cm.block(run, key, hosts=hosts or [], lines=lines, slowest=slowest))


@command(120)
@shows_result
def transaction(
    run: Run,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY|HASH]", help="Key of the transaction, or a prefix of its hash. Default: list the slowest."
        ),
    ] = None,
    slowest: Slowest = 10,
    *,
    output: Output,
) -> None:
    """Show the timeline of one transaction (due, sent, answered, in a block), or list the slowest ones."""
    output.finish(cm.transaction(run, key, slowest=slowest))


@command(130)
@shows_result
def request(
    run: Run,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[STEP-RANK]", help="Number of the step and rank within it, e.g. `3-1`. Default: list the slowest."
        ),
    ] = None,
    slowest: Slowest = 10,
    *,
    output: Output,
) -> None:
    """Show the timeline of a slow request of a load test (due, sent, first byte, finished), or list them."""
    output.finish(cm.request(run, key, slowest=slowest))


@command(140)
@shows_result
def trail(
    run: Run,
    trail_id: Annotated[
        str, typer.Argument(metavar="TRAIL", help="Type of object to trace, as named in the run's catalogue.")
    ],
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY|NUMBER]", help="Key of the object, a prefix of it, or its number. Default: list the slowest."
        ),
    ] = None,
    hosts: Hosts = None,
    lines: Lines = None,
    slowest: Slowest = 10,
    *,
    output: Output,
) -> None:
    """Show the timeline of any object that the run's catalogue can trace, as `chainmark block` does for blocks."""
    output.finish(cm.block(run, key, trail=trail_id, hosts=hosts or [], lines=lines, slowest=slowest))
