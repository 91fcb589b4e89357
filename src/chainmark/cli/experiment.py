"""`chainmark experiment`: two subjects, interleaved, compared."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, LearntMargins, Output, SideSettings, Why, launches, shows_result


@command(20)
@shows_result
@launches
def experiment(
    profile: Annotated[
        str | None, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.", show_default=False)
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The version to compare with, e.g. `v0.38.17`, `git:.@main`.")
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="The version to judge, e.g. `v1.0.1`, `git:.`.")] = None,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Fixed number of runs per side, instead of as many as the verdict needs."),
    ] = None,
    most_runs: Annotated[int, typer.Option(min=2, max=100, help="Maximum number of runs per side.")] = 8,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Continue an experiment.")] = None,
    more: Annotated[
        int, typer.Option(min=0, help="With `--resume`: number of runs per side to add to the planned ones.")
    ] = 0,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    margin: LearntMargins = None,
    profiles: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="KINDS",
            help="Profiles to collect in one extra run per side, which is not judged: any of "
            "`cpu,heap,goroutine,mutex,block`, or `none`.",
            show_default="cpu,heap,goroutine, if the nodes support them",
        ),
    ] = None,
    why: Why = False,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Run two versions alternately (A B B A A B …) until the verdict is decided.

    A configuration change is judged in the same way as a release: give one version for both sides, and the change with
    `--set-candidate`.
    """
    with launch.progress() as listener:
        document = cm.experiment(
            profile,
            baseline=baseline,
            candidate=candidate,
            repeat=repeat,
            most_runs=most_runs,
            resume=resume,
            more=more,
            baseline_settings=set_baseline,
            candidate_settings=set_candidate,
            margins=margin,
            **launch.arguments(),
            profiles=profiles,
            why=why,
            progress=listener,
        )
    output.finish(document)
