"""`chainmark verify-against`: a run's figures compared with those of another analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

import chainmark as cm
from chainmark.cli.groups import command
from chainmark.cli.options import OneRun
from chainmark.cli.output import Output


@command
def verify_against(file: Annotated[Path, Argument(metavar="FILE")], run: OneRun, *, output: Output) -> None:
    """Compare the figures of a run with those of another analysis of the same logs.

    Exit code 0: all figures present in both agree within rounding; 1: some differ. Figures that only one side has are
    listed.

    Args:
        file: Output of the other analysis.
    """
    output.finish(cm.verify_against(file, run))
