"""`chainmark compare`: versions that were already run, or that a published report shows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from chainmark.cli.common import (
    Output,
    compare_and_report,
    compare_side_by_side_and_report,
    open_store,
    shows_result,
)
from chainmark.cli.published import is_document, publish, sides_of
from chainmark.core.errors import UsageError
from chainmark.core.published import ReportStyle


class Style(StrEnum):
    """How a comparison is shown."""

    OWN = "own"
    PUBLISHED = "published"


@shows_result
def compare_command(
    baseline: Annotated[
        str,
        typer.Argument(
            help="A run, a version, an experiment or one of its sides (EXPERIMENT/baseline); with `--style published` "
            "also a published report as JSON, or one of its versions (FILE@VERSION)."
        ),
    ],
    candidates: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CANDIDATE]...",
            help="The same for one candidate or more; left out for an experiment with two sides, or for a report.",
        ),
    ] = None,
    style: Annotated[
        Style, typer.Option("--style", help="chainmark's own report, or the one that is published for the system.")
    ] = Style.OWN,
    era: Annotated[
        ReportStyle | None,
        typer.Option("--era", help="Which of the published styles: that of today, or the one before 2026."),
    ] = None,
    *,
    output: Output,
) -> None:
    """Compare candidates with a baseline and say: pass, fail, inconclusive or invalid.

    Example: `chainmark compare v0.38.17 v1.0.1 --html report.html --pdf report.pdf`

    Of several candidates each is compared with the baseline, and the exit code is that of the worst verdict: fail,
    then invalid, then inconclusive. The published style judges nothing, so it always ends with 0.
    """
    references = [baseline, *(candidates or [])]
    if style is Style.PUBLISHED:
        publish(references, era, output)
        raise typer.Exit
    _check_own(references, era)
    store = open_store()
    sides = sides_of(store, references)
    if len(sides) > 2:
        raise typer.Exit(compare_side_by_side_and_report(sides, output))
    raise typer.Exit(compare_and_report(sides[0], sides[1], output))


def _check_own(references: Sequence[str], era: ReportStyle | None) -> None:
    if era is not None:
        raise UsageError("`--era` is one of the published styles", "add `--style published`, or leave `--era` out")
    document = next((reference for reference in references if is_document(reference)), None)
    if document is not None:
        raise UsageError(
            f"`{document}` is a file: its printed values cannot be judged",
            "add `--style published`; to compare two versions with a verdict, name runs (`chainmark runs list`)",
        )
