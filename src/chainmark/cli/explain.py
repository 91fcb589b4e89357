"""`chainmark explain`: whether the parts of a run explain the whole of it."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Blocks, Column, ModelSeed, Output, Threads, shows_result
from chainmark.cli.following import progress


@shows_result
def explain(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="A published report's path or a run (id or version); or many reports, or a folder of them."
        ),
    ],
    version: Column = None,
    blocks: Blocks = None,
    seed: ModelSeed = 1,
    threads: Threads = 0,
    *,
    output: Output,
) -> None:
    """Say whether the measured stages explain the measured whole; of many reports, how often they do.

    Example: `chainmark explain reports/release-10.6.2.value-only.json --html explanation.html`

    Exit code 0: the parts explain the whole; 1: they do not. A folder or several reports give the model's record
    against them all, method by method: `chainmark explain reports/`.
    """
    with progress() as listener:
        document = cm.explain(*sources, version=version, blocks=blocks, seed=seed, threads=threads, progress=listener)
    output.finish(document)
