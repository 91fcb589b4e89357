"""`chainmark host`: the log of one node for its operator, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Output, shows_result

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")]


@shows_result
def host(
    run: Run,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="blockperf or openblockperf samples of this host to compare with."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the samples: `.csv` with blockperf's field names, `.jsonl` with openblockperf's.",
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Analyse the log of one node: block delays, peers, and resource use.

    Example: `chainmark host cardano-import-10.5.4-2026 --html relay.html --samples relay.csv`
    """
    output.finish(cm.host(run, against=against, samples=samples))
