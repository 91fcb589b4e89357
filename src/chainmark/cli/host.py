"""`chainmark host`: what one relay's or pool's log tells its operator, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Output, shows_result

Run = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id or the beginning of it, or a version with one run.")
]


@shows_result
def host(
    run: Run,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Samples of blockperf or openblockperf of this host, to be set beside."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the samples: .csv by blockperf's names, .jsonl by openblockperf's."),
    ] = None,
    *,
    output: Output,
) -> None:
    """Show what one relay's or pool's log tells: how late blocks came, from whom, and what the node used.

    Example: `chainmark host cardano-import-10.5.4-2026 --html relay.html --samples relay.csv`
    """
    output.finish(cm.host(run, against=against, samples=samples))
