"""`chainmark qa`: a release qualified against the previous one, by a plan of scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from typer import Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.launching import Launch
from chainmark.cli.options import SideOptions
from chainmark.cli.output import Output


class QaOptions(TypedDict, total=False):
    """What to qualify."""

    baseline: Annotated[
        list[str], Option(metavar="V", show_default="for imported runs, the last release with the same workloads")
    ]
    candidate: str
    plan: Annotated[str, Option("standard")]
    most_runs: Annotated[int, Option(min=2, max=100, show_default="the plan's value, or 8")]
    resume: Annotated[str, Option(metavar="EXPERIMENT")]


class PageOptions(TypedDict, total=False):
    """The release page of imported runs."""

    path: Annotated[Path, Option("--page", metavar="FILE")]
    author: str
    statement: Annotated[str, Option(metavar="TEXT")]
    date: Annotated[str, Option(metavar="DAY", show_default="the date when the newest run was sealed")]


@command
def qa(
    system: str, *, options: QaOptions, sides: SideOptions, page: PageOptions, launch: Launch, output: Output
) -> None:
    """Qualify a release: run every scenario of a plan with both versions, judge them, and write the QA report.

    For a system whose nodes chainmark does not run, the command judges the imported runs of all workloads of the
    candidate and writes the release page.

    A gating scenario makes at least two runs per side and continues until it is decided; `--most-runs 12` raises the
    limit. Scenarios whose requirements this machine does not meet are reported as not run. Continue an interrupted
    qualification with `--resume`.

    Args:
        system: The system whose release to judge.
        baseline: The previous release, e.g. `v0.38.17`. May be repeated for imported runs.
        candidate: The release to judge, e.g. `v1.0.1`.
        plan: A plan that the system ships, or a TOML file.
        most_runs: Maximum number of runs per side in a gating scenario, which ends as soon as it is decided.
        resume: Continue an interrupted qualification, or show a finished one.
        path: TOML file with `author`, `statement` and `date` of the release page. Options override it.
        author: Author of the release page (imported runs).
        statement: Statement at the top of the release page.
        date: Date of the analysis, e.g. `2026-02-16`.
    """
    signature = cm.Signature.read(**page) if page else None
    with progress() as listener:
        result = cm.qualify(system, **options, **sides, **launch.arguments, signature=signature, progress=listener)
    output.finish_experiment(result)
