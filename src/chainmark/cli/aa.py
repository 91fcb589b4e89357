"""`chainmark aa`: one version against itself."""

from __future__ import annotations

from typing import Annotated

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.launching import Launch
from chainmark.cli.options import ResumableProfile
from chainmark.cli.output import Output
from chainmark.core.errors import UsageError


@command
def aa(
    profile: ResumableProfile = None,
    *,
    version: str | None = None,
    history: Annotated[str | None, Option(metavar="RUN")] = None,
    repeat: Annotated[int, Option(min=4, max=100)] = 8,
    launch: Launch,
    output: Output,
) -> None:
    """Run one version repeatedly to measure the noise of its metrics and the false-alarm rate of the verdict.

    Later verdicts on the same workload and hardware use the noise of these runs. The exit code is 1 only if there are
    significantly more false alarms than the nominal 5 %.

    Example: `chainmark aa --history 10.6.2`

    Args:
        version: The version to run, e.g. `v1.0.1`.
        history: Use the existing re-runs of this run or version instead of new runs.
        repeat: Number of runs.
    """
    if history is not None:
        if profile is not None or version is not None:
            raise UsageError("`--history` runs nothing", "omit the profile and `--version`")
        output.finish(cm.aa_of_history(history))
    if profile is None or version is None:
        hint = "or use existing runs: `chainmark aa --history VERSION`"
        raise UsageError("a profile and `--version` are required", hint)
    with progress() as listener:
        document = cm.aa(profile, version, repeat=repeat, **launch.arguments, progress=listener)
    output.finish(document)
