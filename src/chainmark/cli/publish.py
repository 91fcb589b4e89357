"""`chainmark publish`: a team's page of load tests."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Output, shows_result
from chainmark.cli.console import say


@command(100)
@shows_result
def publish(
    system: Annotated[str, typer.Argument(help="The system whose page it is.")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Runs, versions, experiments, or labels such as `release:v1.2.9,hardware:mid`. Default: all.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Write the load-test page of a system: every release, machine and scenario, measured or published earlier.

    The folder `page-stages` next to the page gets one CSV file per run with every step of its load. Tables of imported
    published pages (`chainmark ingest SYSTEM PAGE`) appear next to the measured ones and are marked.
    """
    page = next((path for path in (output.markdown, output.html, output.pdf) if path is not None), None)
    stages = page.with_name(f"{page.stem}-stages") if page else None
    document = cm.publish(system, runs or [], stages=stages)
    if stages is not None and stages.is_dir():
        say(f"steps   {stages}")
    output.finish(document)
