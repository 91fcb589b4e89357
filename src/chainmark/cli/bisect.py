"""`chainmark bisect`: the commit or version with which the verdict changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.launching import Launch
from chainmark.cli.options import Margins, ResumableProfile
from chainmark.cli.output import Output


class BisectOptions(TypedDict, total=False):
    """What to search."""

    good: str
    bad: str
    repo: Annotated[Path, Option(metavar="PATH", show_default="published versions")]
    metric: Annotated[str, Option(metavar="METRIC", show_default="the gating metric with the clearest regression")]
    most_runs: Annotated[int, Option(min=4, show_default="120")]
    resume: Annotated[str, Option(metavar="ID")]
    margins: Margins


@command
def bisect(profile: ResumableProfile = None, *, options: BisectOptions, launch: Launch, output: Output) -> None:
    """Find the first commit or release that changes the verdict, with an error rate of at most 5 %.

    The good and the bad version are run alternately until the change is established. Then the search bisects the
    remaining revisions, with new runs of both ends for comparison. Revisions that cannot be built or started are
    skipped, so the answer may be a range. Exit code 0: the change was found; 3: there is no change to search for, or
    it was not decided.

    Args:
        good: Good version or commit, e.g. `v0.38.17`.
        bad: Bad version or commit, e.g. `v1.0.1`.
        repo: Git checkout whose commits to search.
        metric: Metric to search by, or one of its statistics: `METRIC.p99`. `chainmark metrics` lists the metrics of a
            system.
        most_runs: Maximum number of runs.
        resume: Continue a search.
    """
    with progress() as listener:
        document = cm.bisect(profile, **options, **launch.arguments, progress=listener)
    output.finish(document)
