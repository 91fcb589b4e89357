"""`chainmark runs`: the contents of the store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import chainmark as cm
from chainmark.cli.commands import group
from chainmark.cli.common import AsJson, Output, shows_result
from chainmark.cli.console import out, print_json, say
from chainmark.core.errors import ExitCode, UsageError
from chainmark.store.paths import data_directory

if TYPE_CHECKING:
    from chainmark.api.listing import RunRow

app = group(260, "Runs: list, show, verify, export, import, remove.", "Example: `chainmark runs list`")
RunReference = Annotated[str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it.")]
RunsReference = Annotated[
    str, typer.Argument(metavar="RUN", help="A run ID or a prefix of it, a version, an experiment, or labels.")
]


@app.command("list", epilog="Example: `chainmark runs list release:v1.2.9,hardware:mid,endpoint:/block,sla:missed`")
def list_runs(
    selector: Annotated[
        str | None,
        typer.Argument(
            metavar="[SELECTOR]",
            help="List only the runs of a version or experiment, or with labels such as `hardware:mid`.",
            show_default=False,
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(help="List only runs with this status: `valid`, `invalid`, `failed`, `damaged` or `unfinished`."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="List only runs that began on this day or later.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List runs, oldest first, with unfinished runs at the end."""
    from chainmark.api.listing import listed_runs

    runs = listed_runs(data_directory(), selector, status, since)
    if as_json:
        print_json([_as_json(run) for run in runs])
        return
    rows = [
        {
            "run": run.run_id,
            "date": run.started_at[:10],
            "version": run.version,
            "profile": run.profile,
            "side": _side(run),
            "status": run.status,
            "SLA": run.sla,
            "cell": run.cell,
            "badges": run.badges,
            "notes": run.notes,
        }
        for run in runs
    ]
    extra = [name for name in ("SLA", "cell", "badges", "notes") if any(row[name] for row in rows)]
    columns = ("run", "date", "version", "profile", "side", "status", *extra)
    lines = [columns, *(tuple(row[name] for name in columns) for row in rows)]
    # Not a table of rich's: laying out thousands of rows takes it a second.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        sys.stdout.write(" " + "  ".join(map(str.ljust, line, widths)) + " \n")


def _side(run: RunRow) -> str:
    return f"{run.side} {run.repetition}" if run.experiment else ""


def _as_json(run: RunRow) -> dict[str, object]:
    if run.is_unfinished:
        return {"run_id": run.run_id, "status": run.status}
    names = ("run_id", "version", "profile", "experiment", "side", "started_at", "status", "badges", "notes")
    row = {name: getattr(run, name) for name in names} | {"side": _side(run)}
    return row | ({"labels": run.labels} if run.labels else {})


@app.command("show", epilog="Example: `chainmark runs show demo-v1.0.1-2026 --html run.html`")
@shows_result
def show(reference: RunsReference, *, output: Output) -> None:
    """Show the gates, counts and metrics of a run."""
    runs = cm.open_runs(reference)
    for run in runs:
        say(f"run     {run.path}")
    output.finish_all([run.document() for run in runs])


@app.command("verify", epilog="Example: `chainmark runs verify demo-v1.0.1-2026`")
def verify(reference: RunReference) -> None:
    """Verify the seal of a run by hashing all its files."""
    run = cm.open_run(reference)
    problems = run.verify()
    for problem in problems:
        say(f"{run.id}: {problem}")
    if problems:
        raise typer.Exit(ExitCode.INVALID)
    out().print(f"{run.id} matches its seal")


@app.command("export", epilog="Example: `chainmark runs export demo-v1.0.1-2026 --to shared-runs`")
def export(
    reference: RunsReference,
    to: Annotated[Path, typer.Option(help="Folder for `RUN.tar`.")] = Path(),
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all figures of these runs as one table instead: `.csv`, `.json` or `.parquet`.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Pack each sealed run into one file that another store can import, or write all figures as a table."""
    if figures is not None:
        out().print(cm.export_figures(reference, figures), markup=False, soft_wrap=True)
        return
    for run in cm.open_runs(reference):
        out().print(run.export(to), markup=False, soft_wrap=True)


@app.command("import", epilog="Example: `chainmark runs import shared-runs/demo-v1.0.1-2026.tar`")
def import_runs(
    archives: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Files written by `runs export`.", show_default=False),
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Import the sample runs that ship with chainmark.")
    ] = False,
) -> None:
    """Import exported runs into the store after verifying their seals."""
    if not archives and not samples:
        raise UsageError(
            "give files written by `runs export`", "`--samples` imports the sample runs that ship with chainmark"
        )
    for archive in archives or []:
        out().print(f"imported {cm.import_run(archive).id}", markup=False, soft_wrap=True)
    for run in cm.import_samples() if samples else []:
        out().print(f"imported {run.id}", markup=False, soft_wrap=True)


@app.command("remove", epilog="Example: `chainmark runs remove demo-v1.0.1-2026`")
def remove(
    reference: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run ID or a prefix of it.", show_default=False)
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Delete all unfinished runs except those that are still running.")
    ] = False,
) -> None:
    """Delete a run, finished or not."""
    if (reference is None) != unfinished:
        raise UsageError("give one run, or use `--unfinished`", "`chainmark runs list` shows all runs")
    for name in cm.remove_unfinished() if reference is None else [cm.remove_run(reference)]:
        out().print(f"removed {name}", markup=False, soft_wrap=True)
