"""`chainmark saturation`: the highest load that a release sustains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, Output, Profile, launches, shows_result


@command(80)
@shows_result
@launches
def saturation(
    profile: Profile,
    versions: Annotated[
        list[str] | None,
        typer.Option(
            "--version", help="Version to test, e.g. `v1.0.1`. May be repeated; the first one is the baseline."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Number of runs per version and load.")] = 1,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive",
            help="Search for the saturation point by doubling and bisection instead of running the whole grid.",
        ),
    ] = False,
    published: Annotated[
        list[Path] | None,
        typer.Option(
            "--against-published",
            metavar="FILE[@VERSION]",
            help="Published table to show for reference. May be repeated.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="EXPERIMENT", help="Continue an interrupted test, or show a finished one."),
    ] = None,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Raise the load step by step to find the saturation point of a version.

    Every load is a sealed run on a fresh network. The profile's `saturation` section lists the loads.
    """
    with launch.progress() as listener:
        result = cm.saturation(
            profile,
            versions or [],
            repeat=repeat,
            adaptive=adaptive,
            published=published or [],
            resume=resume,
            **launch.arguments(),
            progress=listener,
        )
    output.finish_experiment(result)
