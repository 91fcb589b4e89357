"""`chainmark saturation`: up to which load a release keeps up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

import chainmark
from chainmark.cli.common import KeepHomes, Output, Seed, Settings, open_store, resolve_profile, shows_result
from chainmark.cli.console import Expose, err, progress
from chainmark.core.errors import UsageError
from chainmark.core.saturation import SaturationTest, VersionRuns
from chainmark.core.tool import tool_version
from chainmark.lab.hardware import machine_facts
from chainmark.lab.protocols import SweptSystem, swept
from chainmark.lab.sweeping import ADAPTIVE_ORDER, FRESH_NETWORKS, GRID_ORDER, Sweep, Sweeper, SweepOrder
from chainmark.network.host import host_facts

INTERRUPTED = 130
VERSION_MARK = "@"


@shows_result
def saturation(
    profile: Annotated[str, typer.Argument(help="A shipped profile (`chainmark profiles`) or a TOML file.")],
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
    settings: Settings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    expose: Expose = None,
    *,
    output: Output,
) -> None:
    """Raise the load step by step and find where a version stops keeping up: its saturation load.

    Example: `chainmark saturation cometbft/saturation --version v0.38.17 --version v1.0.1 --repeat 3 --html s.html`

    Every load is a sealed run on a fresh network. The profile's section `saturation` names connections and rates.
    """
    system, resolved = resolve_profile(profile, settings or [])
    lab = swept(system)
    told = [_published(lab, text) for text in published or []]
    if not versions and not told:
        raise UsageError("there is nothing to test", "name a version: `--version v1.0.1`")
    plan = lab.sweep_plan(resolved)
    made: Sweep | None = None
    if versions:
        for version in dict.fromkeys(versions):
            with err.status(f"installing {lab.title} {version}"):
                lab.install(version)
        order = SweepOrder(tuple(versions), repeat, seed, adaptive, keep_homes, resume)
        with progress(expose) as listener:
            made = Sweeper(open_store(), lab).make(resolved, order, listener)
    measured = [lab.swept_version(version, runs) for version, runs in (made.runs if made else {}).items() if runs]
    test = _test(lab, resolved, made, plan.tolerance, seed=seed, adaptive=adaptive, measured=measured, told=told)
    report = chainmark.saturation_report(test, [*measured, *told], lab.sweep_metrics())
    output.present(report)
    if made is not None:
        err.print(f"experiment {made.experiment_id}", markup=False)
        if made.interrupted:
            err.print(f"interrupted: the finished runs are kept; go on with `--resume {made.experiment_id}`")
            raise typer.Exit(INTERRUPTED)
    raise typer.Exit(report.verdict.exit_code)


def _published(system: SweptSystem, text: Path) -> VersionRuns:
    """`FILE`, or `FILE@VERSION`; a file whose own name has the mark is that file."""
    name, mark, version = str(text).rpartition(VERSION_MARK)
    path, label = (Path(name), version) if mark and name and not text.exists() else (text, None)
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", "for example `v1_report_tabbed.txt@v1.0.0-alpha.2`")
    return system.published_sweep(path, label)


def _test(
    system: SweptSystem,
    profile: BaseModel,
    made: Sweep | None,
    tolerance: float,
    *,
    seed: int,
    adaptive: bool,
    measured: Sequence[VersionRuns],
    told: Sequence[VersionRuns],
) -> SaturationTest:
    runs = made.all_runs() if made else []
    names = " and ".join(f"{one.subject.name} {one.subject.version}" for one in measured or told)
    return SaturationTest(
        title=f"Saturation of {names}",
        system=system.name,
        profile_name=str(getattr(profile, "name", "profile")) if made else "",
        experiment=made.experiment_id if made else "",
        started_at=min((run.manifest.started_at for run in runs), default=""),
        tool_version=tool_version(),
        seed=seed,
        tolerance=tolerance,
        order=(ADAPTIVE_ORDER if adaptive else GRID_ORDER) if made else "",
        machine=machine_facts(runs[0].manifest.host if runs else host_facts()) if made else [],
        notes=[FRESH_NETWORKS] if made else [],
        interrupted=made.interrupted if made else False,
    )
