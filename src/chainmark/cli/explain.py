"""`chainmark explain`: whether the parts of a run explain the whole of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chainmark.cli.common import Output, shows_result
from chainmark.cli.console import err, progress
from chainmark.cli.modelling import (
    REPORT_SUFFIX,
    SOURCES_HINT,
    Blocks,
    Column,
    ModelSeed,
    Threads,
    find_source,
    recognise,
    system_of,
)
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.prediction import Evidence, Explanation
from chainmark.lab.protocols import ModelledSystem, ModelOrder

_LISTED = 5


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
    order = ModelOrder(blocks=blocks, seed=seed, threads=threads)
    if len(sources) == 1 and not Path(sources[0]).is_dir():
        explanation = _explanation(sources[0], version, order)
        output.present(explanation)
        raise typer.Exit(ExitCode.DONE if explanation.explained else ExitCode.FAIL)
    if version is not None:
        raise UsageError("`--version` goes with one report, and a record is of many", "leave `--version` out")
    output.present(_evidence(sources, order))


def _explanation(reference: str, version: str | None, order: ModelOrder) -> Explanation:
    system, source = find_source(reference, version, [])
    with progress() as listener:
        return system.explain(source, order, listener)


def _evidence(references: Sequence[str], order: ModelOrder) -> Evidence:
    documents: list[Path] = []
    systems: dict[str, ModelledSystem] = {}
    for path, system in _known_reports(references):
        documents.append(path)
        systems[system.name] = system
    if not documents:
        raise UsageError(f"no published report in {_listed(references)}", SOURCES_HINT)
    if len(systems) > 1:
        raise UsageError(f"the reports are of several systems: {', '.join(sorted(systems))}", "give those of one")
    with progress() as listener:
        return next(iter(systems.values())).evidence(documents, order, listener)


def _known_reports(references: Sequence[str]) -> list[tuple[Path, ModelledSystem]]:
    """Every report that was named, and of a folder those that a system knows; the others are told, not dropped."""
    found: list[tuple[Path, ModelledSystem]] = []
    left: list[str] = []
    for reference in references:
        path = Path(reference)
        if not path.is_dir():
            found.append((path, recognise(path)))
            continue
        for file in sorted(path.glob(f"*{REPORT_SUFFIX}")):
            system = system_of(file)
            if system is None:
                left.append(file.name)
            else:
                found.append((file, system))
    if left:
        err.print(f"not published reports: {_listed(left)}", markup=False)
    return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:_LISTED]) + more
