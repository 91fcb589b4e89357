"""`chainmark bisect`: the commit or version with which the verdict changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, Margins, Output, launches, shows_result


@command(30)
@shows_result
@launches
def bisect(
    profile: Annotated[
        str | None, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.", show_default=False)
    ] = None,
    good: Annotated[str | None, typer.Option(help="Good version or commit, e.g. `v0.38.17`.")] = None,
    bad: Annotated[str | None, typer.Option(help="Bad version or commit, e.g. `v1.0.1`.")] = None,
    repo: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Git checkout whose commits to search.", show_default="published versions"),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Metric to search by, e.g. `rss_bytes` or `latency_s.p99`.",
            show_default="the gating metric with the clearest regression",
        ),
    ] = None,
    most_runs: Annotated[int | None, typer.Option(min=4, help="Maximum number of runs.", show_default="120")] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Continue a search.")] = None,
    margin: Margins = None,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Find the first commit or release that changes the verdict, with an error rate of at most 5 %.

    The good and the bad version are run alternately until the change is established. Then the search bisects the
    remaining revisions, with new runs of both ends for comparison. Revisions that cannot be built or started are
    skipped, so the answer may be a range. Exit code 0: the change was found; 3: there is no change to search for, or
    it was not decided.
    """
    with launch.progress() as listener:
        document = cm.bisect(
            profile,
            good=good,
            bad=bad,
            repo=repo,
            metric=metric,
            most_runs=most_runs,
            resume=resume,
            margins=margin,
            **launch.arguments(),
            progress=listener,
        )
    output.finish(document)
