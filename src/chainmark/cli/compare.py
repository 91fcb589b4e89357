"""`chainmark compare`: versions that were already run, or that a published report shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import Margins, Output, shows_result


class Style(StrEnum):
    """How a comparison is shown."""

    OWN = "own"
    PUBLISHED = "published"


@shows_result
def compare(
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
        str | None,
        typer.Option("--era", metavar="STYLE", help="Which of the styles that the system's reports have had."),
    ] = None,
    margin: Margins = None,
    *,
    output: Output,
) -> None:
    """Compare candidates with a baseline and say: pass, fail, inconclusive or invalid.

    Example: `chainmark compare v0.38.17 v1.0.1 --html report.html --pdf report.pdf`

    Of several candidates each is compared with the baseline, and the exit code is that of the worst verdict: fail,
    then invalid, then inconclusive. The published style judges nothing, so it always ends with 0.
    """
    output.finish(cm.compare(baseline, *(candidates or []), margins=margin, style=style.value, era=era))
