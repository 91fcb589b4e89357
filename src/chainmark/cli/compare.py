"""`chainmark compare`: versions that were already run, or that a published report shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.common import LearntMargins, Output, Why, shows_result
from chainmark.core.asked import BaselineKind, Question


class Style(StrEnum):
    """How a comparison is shown."""

    OWN = "own"
    PUBLISHED = "published"


@shows_result
def compare(
    baseline: Annotated[
        str,
        typer.Argument(
            help="A run, a version, an experiment or one of its sides (EXPERIMENT/baseline), a published report (JSON, "
            "PDF or its text), or one of its versions (FILE@VERSION)."
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
    held_against: Annotated[
        BaselineKind,
        typer.Option(
            "--baseline",
            help="Where single runs are compared: the level of the releases up to the baseline, where there are enough "
            "of them, or its own run.",
        ),
    ] = BaselineKind.HISTORY,
    anchor: Annotated[
        str | None,
        typer.Option(metavar="V", help="A release to hold the candidate against, too.", show_default="the one pinned"),
    ] = None,
    era: Annotated[
        str | None,
        typer.Option("--era", metavar="STYLE", help="Which of the styles that the system's reports have had."),
    ] = None,
    margin: LearntMargins = None,
    question: Annotated[
        Question,
        typer.Option(help="Whether the candidate is worse than is allowed, or what a deliberate change costs."),
    ] = Question.WORSE,
    why: Why = False,
    *,
    output: Output,
) -> None:
    """Compare candidates with a baseline and say: pass, fail, inconclusive or invalid.

    Example: `chainmark compare v0.38.17 v1.0.1 --html report.html --pdf report.pdf`

    Example: `chainmark compare release-10.6.2.value-only.pdf`

    Example: `chainmark compare 10.5.4 10.6.2 --question cost --margin learnt`

    Two versions are compared under every workload and on every machine that both were run under. The versions of a
    published report are read into the store first, unless they are there.

    Of several candidates each is compared with the baseline, and the exit code is that of the worst verdict: fail,
    then invalid, then inconclusive. The published style judges nothing, so it always ends with 0,
    and so does a table of costs unless the sides cannot be compared.
    """
    document = cm.compare(
        baseline,
        *(candidates or []),
        margins=margin,
        style=style.value,
        era=era,
        against=held_against,
        anchor=anchor,
        question=question,
        why=why,
    )
    output.finish(document)
