"""`chainmark saturation`: the highest load that a release sustains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.launching import Launch
from chainmark.cli.options import Profile
from chainmark.cli.output import Output


class SaturationOptions(TypedDict, total=False):
    """What to run."""

    versions: Annotated[list[str], Option("--version")]
    repeat: Annotated[int, Option(1, min=1, max=100)]
    adaptive: bool
    published: Annotated[list[Path], Option("--against-published", metavar="FILE[@VERSION]")]
    resume: Annotated[str, Option(metavar="EXPERIMENT")]


@command
def saturation(profile: Profile, *, options: SaturationOptions, launch: Launch, output: Output) -> None:
    """Raise the load step by step to find the saturation point of a version.

    Every load is a sealed run on a fresh network. The profile's `saturation` section lists the loads.

    Args:
        versions: Version to test, e.g. `v1.0.1`. May be repeated; the first one is the baseline.
        repeat: Number of runs per version and load.
        adaptive: Search for the saturation point by doubling and bisection instead of running the whole grid.
        published: Published table to show for reference. May be repeated.
        resume: Continue an interrupted test, or show a finished one.
    """
    with progress() as listener:
        result = cm.saturation(profile, **options, **launch.arguments, progress=listener)
    output.finish_experiment(result)
