"""`chainmark publish`: a team's page of load tests."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

import chainmark as cm
from chainmark.cli.console import say
from chainmark.cli.groups import command
from chainmark.cli.output import Output


@command
def publish(
    system: str,
    runs: Annotated[list[str] | None, Argument(metavar="RUN", show_default=False)] = None,
    *,
    output: Output,
) -> None:
    """Write the load-test page of a system: every release, machine and scenario, measured or published earlier.

    The folder `page-stages` next to the page gets one CSV file per run with every step of its load. Tables of imported
    published pages (`chainmark ingest SYSTEM PAGE`) appear next to the measured ones and are marked.

    Args:
        system: The system whose page it is.
        runs: Runs, versions, experiments, or labels such as `release:v1.2.9,hardware:mid`. Default: all.
    """
    page = next((path for path in (output.markdown, output.html, output.pdf) if path is not None), None)
    stages = page.with_name(f"{page.stem}-stages") if page else None
    document = cm.publish(system, runs or [], stages=stages)
    if stages is not None and stages.is_dir():
        say(f"steps   {stages}")
    output.finish(document)
