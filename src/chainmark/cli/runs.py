"""`chainmark runs`: the contents of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import chainmark as cm
from chainmark.cli.console import out, print_json, print_lines, say
from chainmark.cli.groups import command
from chainmark.cli.options import AsJson
from chainmark.cli.output import Output
from chainmark.core.errors import ExitCode, UsageError
from chainmark.store.paths import data_directory

app = typer.Typer(
    help="Runs: list, show, verify, export, import, remove.",
    epilog="Example: `chainmark runs list`",
)
RunReference = Annotated[str, Argument(metavar="RUN", help="A run ID or a prefix of it.")]
RunsReference = Annotated[
    str, Argument(metavar="RUN", help="A run ID or a prefix of it, a version, an experiment, or labels.")
]
_COLUMNS = {
    "run": "run_id", "date": "started_at", "version": "version", "profile": "profile", "side": "place",
    "status": "status", "SLA": "sla", "cell": "cell", "badges": "badges", "notes": "notes",
}  # fmt: skip
_OPTIONAL = {"SLA", "cell", "badges", "notes"}


@app.command("list")
@command
def list_runs(
    selector: Annotated[str | None, Argument(metavar="SELECTOR", show_default=False)] = None,
    *,
    status: str | None = None,
    since: Annotated[str | None, Option(metavar="DATE")] = None,
    as_json: AsJson = False,
) -> None:
    """List runs, oldest first, with unfinished runs at the end.

    Example: `chainmark runs list release:v1.2.9,hardware:mid,endpoint:/block,sla:missed`

    Args:
        selector: List only the runs of a version or experiment, or with labels such as `hardware:mid`.
        status: List only runs with this status: `valid`, `invalid`, `failed`, `damaged` or `unfinished`.
        since: List only runs that began on this day or later.
    """
    from chainmark.store.listing import listed_runs

    runs = listed_runs(data_directory(), selector, status, since)
    if as_json:
        print_json([run.plain() for run in runs])
        return
    texts = {heading: [getattr(run, name) for run in runs] for heading, name in _COLUMNS.items()}
    texts["date"] = [text[:10] for text in texts["date"]]
    shown = {heading: column for heading, column in texts.items() if heading not in _OPTIONAL or any(column)}
    print_lines(list(shown), list(zip(*shown.values(), strict=True)))


@app.command()
@command
def show(reference: RunsReference, *, output: Output) -> None:
    """Show the gates, counts and metrics of a run.

    Example: `chainmark runs show demo-v1.0.1-2026 --html run.html`
    """
    runs = cm.open_runs(reference)
    for run in runs:
        say(f"run     {run.path}")
    output.finish_all([run.document() for run in runs])


@app.command()
@command
def verify(reference: RunReference) -> None:
    """Verify the seal of a run by hashing all its files.

    Example: `chainmark runs verify demo-v1.0.1-2026`
    """
    run = cm.open_run(reference)
    problems = run.verify()
    for problem in problems:
        say(f"{run.id}: {problem}")
    if problems:
        raise typer.Exit(ExitCode.INVALID)
    out().print(f"{run.id} matches its seal")


@app.command()
@command
def export(
    reference: RunsReference,
    *,
    to: Path = Path(),
    figures: Annotated[Path | None, Option(metavar="FILE", show_default=False)] = None,
) -> None:
    """Pack each sealed run into one file that another store can import, or write all figures as a table.

    Example: `chainmark runs export demo-v1.0.1-2026 --to shared-runs`

    Args:
        to: Folder for `RUN.tar`.
        figures: Write all figures of these runs as one table instead: `.csv`, `.json` or `.parquet`.
    """
    if figures is not None:
        out().print(cm.export_figures(reference, figures), markup=False, soft_wrap=True)
        return
    for run in cm.open_runs(reference):
        out().print(run.export(to), markup=False, soft_wrap=True)


@app.command("import")
@command
def import_runs(
    archives: Annotated[list[Path] | None, Argument(metavar="FILE", show_default=False)] = None,
    *,
    samples: bool = False,
) -> None:
    """Import exported runs into the store after verifying their seals.

    Example: `chainmark runs import shared-runs/demo-v1.0.1-2026.tar`

    Args:
        archives: Files written by `runs export`.
        samples: Import the sample runs that ship with chainmark.
    """
    if not archives and not samples:
        raise UsageError(
            "give files written by `runs export`", "`--samples` imports the sample runs that ship with chainmark"
        )
    for archive in archives or []:
        out().print(f"imported {cm.import_run(archive).id}", markup=False, soft_wrap=True)
    for run in cm.import_samples() if samples else []:
        out().print(f"imported {run.id}", markup=False, soft_wrap=True)


@app.command()
@command
def remove(
    reference: Annotated[str | None, Argument(metavar="RUN", show_default=False)] = None, *, unfinished: bool = False
) -> None:
    """Delete a run, finished or not.

    Example: `chainmark runs remove demo-v1.0.1-2026`

    Args:
        reference: A run ID or a prefix of it.
        unfinished: Delete all unfinished runs except those that are still running.
    """
    if (reference is None) != unfinished:
        raise UsageError("give one run, or use `--unfinished`", "`chainmark runs list` shows all runs")
    names = cm.remove_unfinished() if reference is None else [cm.remove_run(reference)]
    for name in names:
        out().print(f"removed {name}", markup=False, soft_wrap=True)
    if not names:
        out().print("there are no unfinished runs to remove")
