"""`chainmark experiment`: two subjects, interleaved, compared."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Launch, LearntMargins, Output, SideSettings, Why, launches, shows_result


@shows_result
@launches
def experiment(
    profile: Annotated[
        str | None, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.", show_default=False)
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The version to compare with, e.g. `v0.38.17`, `git:.@main`.")
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="The version that is judged, e.g. `v1.0.1`, `git:.`.")] = None,
    repeat: Annotated[
        int | None, typer.Option(min=1, max=100, help="Runs a side, instead of as many as it takes.")
    ] = None,
    most_runs: Annotated[int, typer.Option(min=2, max=100, help="Runs a side at most, if not decided before.")] = 8,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Go on with an experiment.")] = None,
    more: Annotated[int, typer.Option(min=0, help="With `--resume`: runs a side to add to those planned.")] = 0,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    margin: LearntMargins = None,
    profiles: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="KINDS",
            help="Profiles to take of the nodes in one further run a side, which is not judged: "
            "`cpu,heap,goroutine,mutex,block`, or some of them, or `none`.",
            show_default="cpu, where the nodes can give it",
        ),
    ] = None,
    why: Why = False,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Run two versions in turn (A B B A A B …) until the verdict is decided: the whole question in one command.

    Example: `chainmark experiment cometbft/demo --baseline v0.38.17 --candidate v1.0.1 --html report.html`

    A configuration change is judged like a release: `--baseline v1.0.1 --candidate v1.0.1
    --set-candidate node.config.consensus.timeout_commit=1.5s`
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
