"""`chainmark host`: the log of one node for its operator, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

import chainmark as cm
from chainmark.cli.groups import command
from chainmark.cli.options import OneRun
from chainmark.cli.output import Output


@command
def host(
    run: OneRun,
    *,
    against: Annotated[Path | None, Option(metavar="FILE")] = None,
    samples: Annotated[Path | None, Option(metavar="FILE")] = None,
    output: Output,
) -> None:
    """Analyse the log of one node: block delays, peers, and resource use.

    Args:
        against: Samples of this host that another tool wrote, to compare with.
        samples: Write the samples. The suffix determines the format.
    """
    output.finish(cm.host(run, against=against, samples=samples))
