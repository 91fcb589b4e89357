"""`chainmark explain`: whether the model reproduces a run."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import Blocks, Column, ModelSeed, On, Output, Threads, shows_result
from chainmark.cli.following import progress


@command(170)
@shows_result
def explain(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="A published report (path), a run (ID or version), several reports, or a folder of reports."
        ),
    ],
    version: Column = None,
    blocks: Blocks = None,
    seed: ModelSeed = 1,
    threads: Threads = 0,
    on: On = None,
    *,
    output: Output,
) -> None:
    """Check whether the model, fitted to the measured stages, reproduces the end-to-end figures of one or many reports.

    Exit code 0: the model reproduces the measurement; 1: it does not. For a folder or several reports, the command
    shows the accuracy of each method over all of them: `chainmark explain reports/`.
    """
    with progress() as listener:
        document = cm.explain(
            *sources, version=version, blocks=blocks, seed=seed, threads=threads, on=on, progress=listener
        )
    output.finish(document)
