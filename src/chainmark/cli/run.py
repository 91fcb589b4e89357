"""`chainmark run`: one subject, once or several times."""

from __future__ import annotations

from typing import Annotated

import typer

from chainmark.cli.common import AsJson, KeepHomes, Seed, Settings, open_store, resolve_launchable
from chainmark.cli.console import Expose, err, out, print_json, progress
from chainmark.core.errors import ExitCode
from chainmark.core.manifest import Status
from chainmark.lab.running import ExperimentPlan, Lab
from chainmark.lab.schedules import LONE_SIDE, Arm


def run(
    profile: Annotated[str, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")],
    version: Annotated[str, typer.Option(help="The version to run, e.g. `v1.0.1`.")],
    repeat: Annotated[int, typer.Option(min=1, max=100, help="How many runs.")] = 1,
    settings: Settings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    expose: Expose = None,
    as_json: AsJson = False,
) -> None:
    """Run a profile on a real network of one version, and keep what was measured.

    Example: `chainmark run cometbft/demo --version v1.0.1 --repeat 3 --set load.rate=400`
    """
    system, resolved = resolve_launchable(profile, settings or [])
    with err.status(f"installing {system.title} {version}"):
        system.install(version)
    plan = ExperimentPlan([Arm(LONE_SIDE, version, resolved)], repeat, seed, keep_homes)
    with progress(expose) as listener:
        made = Lab(open_store(), system).experiment(plan, listener)
    if as_json:
        print_json([run.manifest.model_dump(mode="json") for run in made])
    else:
        for run_made in made:
            out.print(run_made.run_id, markup=False)
    if any(run_made.manifest.status is Status.INVALID for run_made in made):
        for run_made in made:
            for gate in run_made.manifest.failed_gates:
                line = f"{run_made.run_id} is invalid: {gate.label}: {gate.measured}, but {gate.limit} is required"
                err.print(line, markup=False)
        err.print("hint: an invalid run is never compared; `chainmark runs show RUN` shows what was measured")
        raise typer.Exit(ExitCode.INVALID)
