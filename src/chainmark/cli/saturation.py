"""`chainmark saturation`: up to which load a release keeps up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Launch, Output, Profile, launches, shows_result


@shows_result
@launches
def saturation(
    profile: Profile,
    versions: Annotated[
        list[str] | None,
        typer.Option("--version", help="A version to test, e.g. `v1.0.1`; may be repeated, the baseline first."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Runs of each version at each load.")] = 1,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Look for the edge by doubling and halving instead of running the grid.")
    ] = False,
    published: Annotated[
        list[Path] | None,
        typer.Option(
            "--against-published",
            metavar="FILE[@VERSION]",
            help="A published table (`*_report_tabbed.txt`) to be shown beside; may be repeated.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="EXPERIMENT", help="Go on with a test that was interrupted, or show it again."),
    ] = None,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Raise the load step by step and find where a version stops keeping up: its saturation load.

    Example: `chainmark saturation cometbft/saturation --version v0.38.17 --version v1.0.1 --repeat 3 --html s.html`

    Every load is a sealed run on a fresh network. The profile's section `saturation` names connections and rates.
    """
    with launch.progress() as listener:
        made = cm.saturation(
            profile,
            versions or [],
            repeat=repeat,
            adaptive=adaptive,
            published=published or [],
            resume=resume,
            **launch.arguments(),
            progress=listener,
        )
    output.finish_experiment(made)
