"""`chainmark qa`: a release qualified against the previous one, by a plan of scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, LearntMargins, Output, SideSettings, launches, shows_result


@command(50)
@shows_result
@launches
def qa(
    system: Annotated[str, typer.Argument(help="The system whose release to judge.")],
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="V",
            help="The previous release, e.g. `v0.38.17`. May be repeated for imported runs.",
            show_default="for imported runs, the last release with the same workloads",
        ),
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="The release to judge, e.g. `v1.0.1`.")] = None,
    plan: Annotated[str, typer.Option(help="A plan that the system ships, or a TOML file.")] = "standard",
    most_runs: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=100,
            help="Maximum number of runs per side in a gating scenario, which ends as soon as it is decided.",
            show_default="the plan's value, or 8",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="EXPERIMENT", help="Continue an interrupted qualification, or show a finished one."),
    ] = None,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    margin: LearntMargins = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with `author`, `statement` and `date` of the release page. Options override it.",
        ),
    ] = None,
    author: Annotated[str, typer.Option(help="Author of the release page (imported runs).", show_default=False)] = "",
    statement: Annotated[
        str, typer.Option(metavar="TEXT", help="Statement at the top of the release page.", show_default=False)
    ] = "",
    date: Annotated[
        str,
        typer.Option(
            metavar="DAY",
            help="Date of the analysis, e.g. `2026-02-16`.",
            show_default="the date when the newest run was sealed",
        ),
    ] = "",
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Qualify a release: run every scenario of a plan with both versions, judge them, and write the QA report.

    For a system whose nodes chainmark does not run, the command judges the imported runs of all workloads of the
    candidate and writes the release page.

    A gating scenario makes at least two runs per side and continues until it is decided; `--most-runs 12` raises the
    limit. Scenarios whose requirements this machine does not meet are reported as not run. Continue an interrupted
    qualification with `--resume`.
    """
    given = {"author": author, "statement": statement, "date": date}
    signature = cm.Signature.read(page) if page else cm.Signature()
    signature = replace(signature, **{name: text for name, text in given.items() if text})
    with launch.progress(scenarios=True) as listener:
        result = cm.qualify(
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
    output.finish_experiment(result)
