"""`chainmark cluster`: other machines, as the workers of a Dask cluster."""

from __future__ import annotations

from typing import Annotated

import chainmark as cm
from chainmark.cli.commands import group
from chainmark.cli.common import Output, cluster_option, shows_result
from chainmark.cli.following import progress

app = group(
    240,
    "Other machines: check the workers that `--on` uses.",
    "Example: `chainmark cluster check --on tcp://10.0.0.1:8786`",
)

# Unlike for logs, it is required here.
On = Annotated[str | None, cluster_option("the Dask cluster")]


@app.command("check", epilog="Example: `chainmark cluster check --on tcp://10.0.0.1:8786 --html cluster.html`")
@shows_result
def check(on: On = None, *, output: Output) -> None:
    """Check a cluster: workers, versions, clock errors, connections between workers, and problems.

    It needs the extra `chainmark[cluster]` here and on every worker.
    """
    with progress() as listener:
        document = cm.cluster_check(on, progress=listener)
    output.finish(document)
