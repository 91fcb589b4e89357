"""`chainmark verify-against`: what another analysis computed, beside the run's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Output, shows_result


@shows_result
def verify_against(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What the other analysis wrote: `blockprop.json`, `clusterperf.json`, `summary.json`, a CDF.",
        ),
    ],
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id or the beginning of it, or a version with one run.")
    ],
    *,
    output: Output,
) -> None:
    """Set what another analysis computed of the same logs beside a run's figures, and say whether they agree.

    Example: `chainmark verify-against analysis/blockprop.json cardano-value-10.6.2-2026 --html verification.html`

    Exit code 0: all figures that both have agree within rounding; 1: some differ. What one side lacks is listed.
    """
    output.finish(cm.verify_against(file, run))
