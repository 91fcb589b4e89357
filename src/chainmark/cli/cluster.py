"""`chainmark cluster`: other machines, as the workers of a Dask cluster."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.options import cluster_option
from chainmark.cli.output import Output

app = typer.Typer(
    help="Other machines: check the workers that `--on` uses.",
    epilog="Example: `chainmark cluster check --on tcp://10.0.0.1:8786`",
)

# Unlike for logs, it is required here.
On = Annotated[str | None, cluster_option("the Dask cluster")]


@app.command()
@command
def check(*, on: On = None, output: Output) -> None:
    """Check a cluster: workers, versions, clock errors, connections between workers, and problems.

    Example: `chainmark cluster check --on tcp://10.0.0.1:8786 --html cluster.html`

    It needs the extra `chainmark[cluster]` here and on every worker.
    """
    with progress() as listener:
        document = cm.cluster_check(on, progress=listener)
    output.finish(document)
