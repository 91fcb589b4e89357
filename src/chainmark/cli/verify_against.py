"""`chainmark verify-against`: a run's figures compared with those of another analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Output, shows_result


@command(180)
@shows_result
def verify_against(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Output of the other analysis.",
        ),
    ],
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, or a version that has one run.")
    ],
    *,
    output: Output,
) -> None:
    """Compare the figures of a run with those of another analysis of the same logs.

    Exit code 0: all figures present in both agree within rounding; 1: some differ. Figures that only one side has are
    listed.
    """
    output.finish(cm.verify_against(file, run))
