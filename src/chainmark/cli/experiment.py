"""`chainmark experiment`: two subjects, interleaved, compared."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Expose, KeepHomes, Output, Profile, Seed, Settings, SideSettings, shows_result
from chainmark.cli.following import progress


@shows_result
def experiment(
    profile: Profile,
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
    with progress(expose) as listener:
        document = cm.experiment(
            profile,
            baseline=baseline,
            candidate=candidate,
            repeat=repeat,
            settings=settings,
            baseline_settings=set_baseline,
            candidate_settings=set_candidate,
            seed=seed,
            keep_homes=keep_homes,
            progress=listener,
        )
    output.finish(document)
