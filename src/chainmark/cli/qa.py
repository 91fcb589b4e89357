"""`chainmark qa`: a release qualified against the one before, by a whole plan of scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Launch, LearntMargins, Output, SideSettings, launches, shows_result


@shows_result
@launches
def qa(
    system: Annotated[str, typer.Argument(help="The system, e.g. `cometbft`.")],
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="V",
            help="The release before, e.g. `v0.38.17`; of imported runs may be repeated.",
            show_default="of imported runs the last release with the same workloads",
        ),
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="The release that is judged, e.g. `v1.0.1`.")] = None,
    plan: Annotated[
        str, typer.Option(help="A shipped plan (`quick`, `standard`, `full`) or a TOML file.")
    ] = "standard",
    most_runs: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=100,
            help="Runs a side at most in a scenario that decides, which ends sooner if it is decided.",
            show_default="as the plan says, or 8",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="EXPERIMENT", help="Go on with what was interrupted, or show it again."),
    ] = None,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    margin: LearntMargins = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A TOML file with `author`, `statement` and `date` of that page; options go before it."
        ),
    ] = None,
    author: Annotated[str, typer.Option(help="Who signs the page of imported runs.", show_default=False)] = "",
    statement: Annotated[
        str, typer.Option(metavar="TEXT", help="What that page says before all figures.", show_default=False)
    ] = "",
    date: Annotated[
        str,
        typer.Option(
            metavar="DAY",
            help="The day of its analysis, e.g. `2026-02-16`.",
            show_default="when the newest run was sealed",
        ),
    ] = "",
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Qualify a release: run every scenario of a plan with both versions, judge it, and write the QA report.

    Example: `chainmark qa cometbft --baseline v0.38.17 --candidate v1.0.1 --html qa.html --pdf qa.pdf`

    Example: `chainmark qa cardano --candidate 10.6.2 --author "Ada Lovelace" --pdf release-10.6.2.pdf`

    Of a system whose nodes others run (`cardano`) it runs nothing: it judges the runs that were imported, under all
    workloads of the candidate, and writes the page of the release.

    A scenario that decides makes at least two runs a side, and goes on until it is decided: `--most-runs 12` lets it
    go on longer. What this machine cannot do is listed as not run, with what it needs. Interrupted, it goes on with
    `--resume`.
    """
    given = {"author": author, "statement": statement, "date": date}
    signature = cm.Signature.read(page) if page else cm.Signature()
    signature = replace(signature, **{name: text for name, text in given.items() if text})
    with launch.progress(scenarios=True) as listener:
        made = cm.qualify(
            system,
            baseline=baseline,
            candidate=candidate,
            plan=plan,
            most_runs=most_runs,
            resume=resume,
            baseline_settings=set_baseline,
            candidate_settings=set_candidate,
            margins=margin,
            **launch.arguments(),
            signature=signature if signature != cm.Signature() else None,
            progress=listener,
        )
    output.finish_experiment(made)
