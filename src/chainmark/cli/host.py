"""`chainmark host`: the log of one node for its operator, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Output, shows_result

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")]


@command(150)
@shows_result
def host(
    run: Run,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Samples of this host that another tool wrote, to compare with."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the samples. The suffix determines the format.",
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Analyse the log of one node: block delays, peers, and resource use."""
    output.finish(cm.host(run, against=against, samples=samples))
