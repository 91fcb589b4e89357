"""`chainmark compare`: versions with existing runs, or in a published report."""

from __future__ import annotations

from typing import Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import LearntMargins, Output, Why, shows_result
from chainmark.core.question import BaselineKind, ComparisonStyle, Question


@command(90)
@shows_result
def compare(
    baseline: Annotated[
        str,
        typer.Argument(
            help="A run, version, experiment, side of an experiment (EXPERIMENT/baseline), file of a published "
            "report, or a version of a report (FILE@VERSION)."
        ),
    ],
    candidates: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CANDIDATE]...",
            help="One or more candidates in the same forms. Omit for an experiment with two sides, or for a report.",
        ),
    ] = None,
    style: Annotated[
        ComparisonStyle,
        typer.Option("--style", help="Report style: chainmark's own, or the style of the system's published reports."),
    ] = ComparisonStyle.OWN,
    held_against: Annotated[
        BaselineKind,
        typer.Option(
            "--baseline",
            help="Reference for single runs: the level of the releases up to the baseline, if there are enough of "
            "them, or the baseline run itself.",
        ),
    ] = BaselineKind.HISTORY,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="V",
            help="Anchor: an additional release to compare the candidate with.",
            show_default="the pinned release",
        ),
    ] = None,
    era: Annotated[
        str | None,
        typer.Option("--era", metavar="STYLE", help="Version of the system's published report style."),
    ] = None,
    margin: LearntMargins = None,
    question: Annotated[
        Question,
        typer.Option(
            help="`worse`: is the candidate worse than the margins allow? `cost`: what does a deliberate change cost?"
        ),
    ] = Question.WORSE,
    why: Why = False,
    *,
    output: Output,
) -> None:
    """Compare candidates with a baseline. The verdict is pass, fail, inconclusive or invalid.

    Example: `chainmark compare v0.38.17 v1.0.1 --html report.html --pdf report.pdf`

    Example: `chainmark compare 10.5.4 10.6.2 --question cost --margin learnt`

    Two versions are compared for every combination of workload and machine that both have runs for. The versions of a
    published report are imported into the store first, unless they are already there.

    With several candidates, each is compared with the baseline, and the exit code is that of the worst verdict: fail,
    then invalid, then inconclusive. The published style gives no verdict, so its exit code is always 0. The exit code
    of `--question cost` is 0 unless the sides cannot be compared.
    """
    document = cm.compare(
        baseline,
        *(candidates or []),
        margins=margin,
        style=style,
        era=era,
        against=held_against,
        anchor=anchor,
        question=question,
        why=why,
    )
    output.finish(document)
