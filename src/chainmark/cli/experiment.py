"""`chainmark experiment`: two subjects, interleaved, compared."""

from __future__ import annotations

from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.launching import Launch
from chainmark.cli.options import ResumableProfile, SideOptions, Why
from chainmark.cli.output import Output


class ExperimentOptions(TypedDict, total=False):
    """What to run, and how often."""

    baseline: str
    candidate: str
    repeat: Annotated[int, Option(min=1, max=100)]
    most_runs: Annotated[int, Option(8, min=2, max=100)]
    resume: Annotated[str, Option(metavar="ID")]
    more: Annotated[int, Option(0, min=0)]
    profiles: Annotated[
        str, Option("--profile", metavar="KINDS", show_default="cpu,heap,goroutine, if the nodes support them")
    ]
    why: Why


@command
def experiment(
    profile: ResumableProfile = None, *, options: ExperimentOptions, sides: SideOptions, launch: Launch, output: Output
) -> None:
    """Run two versions alternately (A B B A A B …) until the verdict is decided.

    A configuration change is judged in the same way as a release: give one version for both sides, and the change with
    `--set-candidate`.

    Args:
        baseline: The version to compare with, e.g. `v0.38.17`, `git:.@main`.
        candidate: The version to judge, e.g. `v1.0.1`, `git:.`.
        repeat: Fixed number of runs per side, instead of as many as the verdict needs.
        most_runs: Maximum number of runs per side.
        resume: Continue an experiment.
        more: With `--resume`: number of runs per side to add to the planned ones.
        profiles: Profiles to collect in one extra run per side, which is not judged: any of
            `cpu,heap,goroutine,mutex,block`, or `none`.
    """
    with progress() as listener:
        document = cm.experiment(profile, **options, **sides, **launch.arguments, progress=listener)
    output.finish(document)
