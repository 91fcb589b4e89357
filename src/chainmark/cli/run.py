"""`chainmark run`: one subject, once or several times."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Launch, Output, Profile, Profiles, launches, shows_result
from chainmark.core.errors import UsageError


@command(10)
@shows_result
@launches
def run(
    profile: Profile,
    version: Annotated[
        str | None, typer.Option(help="The version to run, e.g. `v1.0.1`, `git:PATH@REF`, `./binary`.")
    ] = None,
    attach: Annotated[
        str | None,
        typer.Option(
            metavar="NODE,NODE,…",
            help="Load and observe running nodes at these addresses instead of starting any. `--version` is then "
            "their label.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="URL,URL,…", help="With `--attach`: the metrics endpoints of the nodes, in the same order."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Number of runs.")] = 1,
    profiles: Profiles = "none",
    *,
    launch: Launch,
    output: Output,
) -> None:
    """Run a profile on a real network of one version and store the measurements.

    The report of a run is that of `chainmark runs show`; several runs have one report each. Exit code 0: every run is
    valid; 1: the subject failed a run; 4: a run is invalid.
    """
    with launch.progress() as listener:
        common: dict[str, Any] = {**launch.arguments(), "repeat": repeat, "progress": listener}
        if attach is not None:
            _refuse_what_is_not_ours(keep_homes=common.pop("keep_homes"), profiles=profiles)
            del common["on"]  # a variable may name a cluster for other commands
            pages = _listed(metrics or "")
            runs = cm.attach(profile, _listed(attach), metrics=pages, label=version, **common)
        elif version is None or metrics is not None:
            raise UsageError(
                "`--metrics` requires `--attach`" if metrics else "there is no version to run",
                "give a version, `--version v1.0.1`, or running nodes, `--attach HOST:PORT`",
            )
        else:
            runs = cm.run(profile, version, profiles=profiles, **common)
    output.finish_runs(runs, [entry.manifest.model_dump(mode="json") for entry in runs])


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _refuse_what_is_not_ours(*, keep_homes: bool, profiles: str) -> None:
    """Raise UsageError for options that need nodes run by chainmark."""
    if keep_homes or profiles != "none":
        option = "--keep-homes" if keep_homes else "--profile"
        raise UsageError(f"`{option}` cannot be combined with `--attach`", "it needs nodes that chainmark starts")
