"""`chainmark experiment`: two subjects, interleaved, compared."""

from __future__ import annotations

from typing import Annotated

import typer

from chainmark.cli.common import (
    KeepHomes,
    Output,
    Seed,
    Settings,
    compare_and_report,
    open_store,
    resolve_launchable,
    shows_result,
)
from chainmark.cli.console import Expose, err, progress
from chainmark.core.manifest import Scalar
from chainmark.lab.running import ExperimentPlan, Lab
from chainmark.lab.schedules import Arm

SideSettings = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="`--set` for this side alone.")]


@shows_result
def experiment(
    profile: Annotated[str, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")],
    baseline: Annotated[str, typer.Option(help="The version to compare with, e.g. `v0.38.17`.")],
    candidate: Annotated[str, typer.Option(help="The version that is judged, e.g. `v1.0.1`.")],
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Runs a side.")] = 3,
    settings: Settings = None,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    expose: Expose = None,
    *,
    output: Output,
) -> None:
    """Run two versions in turn (A B B A A B …) and compare them: the whole question in one command.

    Example: `chainmark experiment cometbft/demo --baseline v0.38.17 --candidate v1.0.1 --html report.html`

    A configuration change is judged like a release: `--baseline v1.0.1 --candidate v1.0.1
    --set-candidate node.config.consensus.timeout_commit=1.5s`
    """
    common = settings or []
    system, baseline_profile = resolve_launchable(profile, [*common, *(set_baseline or [])])
    _, candidate_profile = resolve_launchable(profile, [*common, *(set_candidate or [])])
    _warn_of_different_workloads(system.workload(baseline_profile), system.workload(candidate_profile))
    for version in dict.fromkeys((baseline, candidate)):
        with err.status(f"installing {system.title} {version}"):
            system.install(version)
    arms = [Arm("baseline", baseline, baseline_profile), Arm("candidate", candidate, candidate_profile)]
    with progress(expose) as listener:
        runs = Lab(open_store(), system).experiment(ExperimentPlan(arms, repeat, seed, keep_homes), listener)
    sides = [[run for run in runs if (place := run.manifest.experiment) and place.side == arm.side] for arm in arms]
    raise typer.Exit(compare_and_report(sides[0], sides[1], output))


def _warn_of_different_workloads(
    baseline: dict[str, Scalar | list[Scalar]], candidate: dict[str, Scalar | list[Scalar]]
) -> None:
    """Say before the runs what the comparison will say after them."""
    for key in sorted(baseline.keys() | candidate.keys()):
        left, right = baseline.get(key), candidate.get(key)
        if left != right:
            text = f"warning: the workloads differ ({key} is {left} against {right}): the comparison will be invalid"
            err.print(text, markup=False)
