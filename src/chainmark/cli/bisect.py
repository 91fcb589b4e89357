"""`chainmark bisect`: the commit or version with which the verdict changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Launch, Margins, Output, launches, shows_result


@shows_result
@launches
def bisect(
    profile: Annotated[
        str | None, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.", show_default=False)
    ] = None,
    good: Annotated[str | None, typer.Option(help="The good version or commit, e.g. `v0.38.17`.")] = None,
    bad: Annotated[str | None, typer.Option(help="The bad one, e.g. `v1.0.1`.")] = None,
    repo: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The checkout whose commits are searched.", show_default="published versions"
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="The metric to follow, e.g. `rss_bytes` or `tx_latency_s.p99`.",
            show_default="the gating metric that is worse most clearly",
        ),
    ] = None,
    most_runs: Annotated[
        int | None, typer.Option(min=4, help="Runs after which it ends in any case.", show_default="120")
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Go on with a search.")] = None,
    margin: Margins = None,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Find the first commit, or published version, with which the verdict changes; wrong in 5 % of searches at most.

    Example: `chainmark bisect cometbft/demo --repo ~/cometbft --good v1.0.1 --bad main --html bisect.html`

    Both ends are run in turn until the change is established, then the revision that halves what is possible, beside
    fresh runs of the ends. What cannot be built or started is left out; a range is then the answer. It exits with 0
    if the change was found, and with 3 if there is none to look for or it was not decided.
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
