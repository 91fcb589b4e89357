"""`chainmark aa`: one version against itself."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, Output, launches, shows_result
from chainmark.core.errors import UsageError


@command(40)
@shows_result
@launches
def aa(
    profile: Annotated[str | None, typer.Argument(help="A shipped profile's name, or a TOML file.")] = None,
    version: Annotated[str | None, typer.Option(help="The version to run, e.g. `v1.0.1`.")] = None,
    history: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Use the existing re-runs of this run or version instead of new runs."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=4, max=100, help="Number of runs.")] = 8,
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Run one version repeatedly to measure the noise of its metrics and the false-alarm rate of the verdict.

    Later verdicts on the same workload and hardware use the noise of these runs. The exit code is 1 only if there are
    significantly more false alarms than the nominal 5 %.

    Example: `chainmark aa --history 10.6.2`
    """
    if history is not None:
        if profile is not None or version is not None:
            raise UsageError("`--history` runs nothing", "omit the profile and `--version`")
        output.finish(cm.aa_of_history(history))
        return
    if profile is None or version is None:
        hint = "or use existing runs: `chainmark aa --history VERSION`"
        raise UsageError("a profile and `--version` are required", hint)
    with launch.progress() as listener:
        document = cm.aa(
            profile,
            version,
            repeat=repeat,
            **launch.arguments(),
            progress=listener,
        )
    output.finish(document)
