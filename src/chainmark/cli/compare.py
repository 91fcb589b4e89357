"""`chainmark compare`: versions with existing runs, or in a published report."""

from __future__ import annotations

from typing import Annotated, TypedDict

from typer import Argument, Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.options import LearntMargins, On, Why
from chainmark.cli.output import Output
from chainmark.core.question import BaselineKind, ComparisonStyle, Question


class CompareOptions(TypedDict, total=False):
    """How to compare."""

    style: Annotated[ComparisonStyle, Option(ComparisonStyle.OWN)]
    against: Annotated[BaselineKind, Option(BaselineKind.HISTORY, "--baseline")]
    anchor: Annotated[str, Option(metavar="V", show_default="the pinned release")]
    era: Annotated[str, Option(metavar="STYLE")]
    margins: LearntMargins
    question: Annotated[Question, Option(Question.WORSE)]
    why: Why
    on: On


@command
def compare(
    baseline: str,
    candidates: Annotated[list[str] | None, Argument(metavar="CANDIDATE")] = None,
    *,
    options: CompareOptions,
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

    Args:
        baseline: A run, version, experiment, side of an experiment (EXPERIMENT/baseline), file of a published report,
            or a version of a report (FILE@VERSION).
        candidates: One or more candidates in the same forms. Omit for an experiment with two sides, or for a report.
        style: Report style: chainmark's own, or the style of the system's published reports.
        against: Reference for single runs: the level of the releases up to the baseline, if there are enough of them,
            or the baseline run itself.
        anchor: Anchor: an additional release to compare the candidate with.
        era: Version of the system's published report style.
        question: `worse`: is the candidate worse than the margins allow? `cost`: what does a deliberate change cost?
    """
    output.prepare()
    with progress() as listener:
        document = cm.compare(baseline, *(candidates or []), **options, progress=listener)
    output.finish(document)
