"""`chainmark run`: one subject, once or several times."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import (
    Application,
    AsJson,
    Expose,
    KeepHomes,
    NoWait,
    Profile,
    Profiles,
    Seed,
    Settings,
    exit_if_not_valid,
    with_application,
)
from chainmark.cli.console import out, print_json
from chainmark.cli.following import progress


def run(
    profile: Profile,
    version: Annotated[str, typer.Option(help="The version to run, e.g. `v1.0.1`.")],
    repeat: Annotated[int, typer.Option(min=1, max=100, help="How many runs.")] = 1,
    application: Application = None,
    settings: Settings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    profiles: Profiles = "none",
    no_wait: NoWait = False,
    expose: Expose = None,
    as_json: AsJson = False,
) -> None:
    """Run a profile on a real network of one version, and keep what was measured.

    Example: `chainmark run cometbft/demo --version v1.0.1 --repeat 3 --set load.rate=400`
    """
    with progress(expose, no_wait=no_wait) as listener:
        made = cm.run(
            profile,
            version,
            repeat=repeat,
            settings=with_application(application, settings),
            seed=seed,
            keep_homes=keep_homes,
            profiles=profiles,
            progress=listener,
        )
    if as_json:
        print_json([one.manifest.model_dump(mode="json") for one in made])
    else:
        for one in made:
            out.print(one.id, markup=False)
    exit_if_not_valid(made, "`chainmark runs show RUN` shows what was measured")
