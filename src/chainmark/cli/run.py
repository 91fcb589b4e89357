"""`chainmark run`: one subject, once or several times."""

from __future__ import annotations

from typing import Annotated

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command, refuse
from chainmark.cli.launching import Launch
from chainmark.cli.options import Profile
from chainmark.cli.output import Output
from chainmark.core.errors import UsageError

NONE = "none"


@command
def run(
    profile: Profile,
    *,
    version: str | None = None,
    attach: Annotated[str | None, Option(metavar="NODE,NODE,…")] = None,
    metrics: Annotated[str | None, Option(metavar="URL,URL,…")] = None,
    repeat: Annotated[int, Option(min=1, max=100)] = 1,
    profiles: Annotated[str, Option("--profile", metavar="KINDS")] = NONE,
    launch: Launch,
    output: Output,
) -> None:
    """Run a profile on a real network of one version and store the measurements.

    The report of a run is that of `chainmark runs show`; several runs have one report each. Exit code 0: every run is
    valid; 1: the subject failed a run; 4: a run is invalid.

    Args:
        version: The version to run, e.g. `v1.0.1`, `git:PATH@REF`, `./binary`.
        attach: Load and observe running nodes at these addresses instead of starting any. `--version` is then their
            label.
        metrics: With `--attach`: the metrics endpoints of the nodes, in the same order.
        repeat: Number of runs.
        profiles: Profiles to collect from the nodes during the measurement window: any of
            `cpu,heap,goroutine,mutex,block`, or `none`. A profiled run helps to find causes and is not judged.
    """
    with progress() as listener:
        if attach is not None:
            nodes, pages = _listed(attach), _listed(metrics or "")
            given = {"keep_homes": launch.keep_homes, "profile": profiles != NONE}
            refuse(given, "cannot be combined with `--attach`", "it needs nodes that chainmark starts")
            how = {key: value for key, value in launch.arguments.items() if key not in {"keep_homes", "on"}}
            runs = cm.attach(profile, nodes, metrics=pages, label=version, repeat=repeat, **how, progress=listener)
        elif version is None or metrics is not None:
            raise UsageError(
                "`--metrics` requires `--attach`" if metrics else "there is no version to run",
                "give a version, `--version v1.0.1`, or running nodes, `--attach HOST:PORT`",
            )
        else:
            runs = cm.run(profile, version, repeat=repeat, profiles=profiles, **launch.arguments, progress=listener)
    output.finish_runs(runs, [entry.manifest.model_dump(mode="json") for entry in runs])


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
