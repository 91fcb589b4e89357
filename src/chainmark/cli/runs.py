"""`chainmark runs`: what the store holds."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from chainmark.cli.common import AsJson, open_store
from chainmark.cli.console import err, out, print_json
from chainmark.core.errors import ExitCode, InvalidRunError, UsageError
from chainmark.core.storage import storage_errors
from chainmark.store.index import Entry, Index
from chainmark.store.paths import data_directory
from chainmark.store.runs import SealedRun, UnfinishedRun

app = typer.Typer(
    no_args_is_help=True, help="Runs: list, show, verify, export, remove.", epilog="Example: `chainmark runs list`"
)
RunReference = Annotated[str, typer.Argument(metavar="RUN", help="A run's id or the beginning of it.")]


@app.command("list", epilog="Example: `chainmark runs list`")
def list_runs(as_json: AsJson = False) -> None:
    """List all runs, oldest first; unfinished ones at the end."""
    found = Index(data_directory()).contents()
    if as_json:
        rows = [{"run_id": entry.run_id, **_summary(entry)} for entry in found.sealed]
        print_json([*rows, *({"run_id": name, "status": "unfinished"} for name in found.unfinished)])
        return
    columns = ("version", "profile", "side", "status")
    lines: list[tuple[str, ...]] = [("run", *columns)]
    lines += [(entry.run_id, *map(_summary(entry).__getitem__, columns)) for entry in found.sealed]
    lines += [(name, "", "", "", "unfinished") for name in found.unfinished]
    # Not a table of rich's: laying out thousands of rows takes it a second.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        sys.stdout.write(" " + "  ".join(map(str.ljust, line, widths)) + " \n")


def _summary(entry: Entry) -> dict[str, str]:
    return {
        "version": entry.version,
        "profile": entry.profile,
        "experiment": entry.experiment,
        "side": f"{entry.side} {entry.repetition}" if entry.experiment else "",
        "started_at": entry.started_at,
        "status": entry.status,
    }


@app.command("show", epilog="Example: `chainmark runs show cometbft-demo-v1.0.1-2026`")
def show(reference: RunReference, as_json: AsJson = False) -> None:
    """Show a run: its gates, its books, and every metric."""
    run = _sealed(reference)
    if as_json:
        summaries = {name: summary.model_dump(mode="json") for name, summary in run.summaries().items()}
        print_json({"manifest": run.manifest.model_dump(mode="json"), "metrics": summaries})
        return
    manifest = run.manifest
    out.print(f"{run.run_id}\n{manifest.subject.name} {manifest.subject.version}, {manifest.status}, in {run.path}\n")
    gates = Table("gate", "status", "measured", "limit", box=None)
    for gate in manifest.gates:
        gates.add_row(gate.label, gate.status.value, gate.measured, gate.limit)
    out.print(gates)
    for account, classes in manifest.counts.items():
        out.print(f"\n{account}: " + " · ".join(f"{name} {count:,}" for name, count in classes.items()))
    for note in [*(incident.what for incident in manifest.incidents), *manifest.warnings]:
        out.print(f"note: {note}", markup=False)
    _print_metrics(run)


def _print_metrics(run: SealedRun) -> None:
    summaries = run.summaries()
    table = Table("metric", "unit", "n", "statistic", "value", "standard error", box=None)
    for column in (2, 4, 5):
        table.columns[column].justify = "right"
    for metric in run.catalogue.ordered():
        summary = summaries[metric.id]
        size = f"{summary.distribution.n:,}" if summary.distribution else "0"
        for name in metric.statistics:
            estimate = summary.estimates[name]
            absent = "not estimable" if summary.distribution else "no data"
            value = absent if estimate.value is None else f"{estimate.value:.6g}"
            error = "" if estimate.standard_error is None else f"{estimate.standard_error:.2g}"
            table.add_row(metric.id, metric.unit, size, name, value, error)
    out.print()
    out.print(table)


@app.command("verify", epilog="Example: `chainmark runs verify cometbft-demo-v1.0.1-2026`")
def verify(reference: RunReference) -> None:
    """Re-hash every file of a run: is it as it was sealed?"""
    run = _sealed(reference)
    problems = run.verify()
    for problem in problems:
        err.print(f"{run.run_id}: {problem}", markup=False)
    if problems:
        raise typer.Exit(ExitCode.INVALID)
    out.print(f"{run.run_id} is as it was sealed")


@app.command("export", epilog="Example: `chainmark runs export cometbft-demo-v1.0.1-2026 --to shared-runs`")
def export(
    reference: RunReference, to: Annotated[Path, typer.Option(help="The folder to put `RUN.tar` into.")] = Path()
) -> None:
    """Pack a sealed run into one file that another store can take."""
    run = _sealed(reference)
    with storage_errors(to):
        to.mkdir(parents=True, exist_ok=True)
        path = shutil.make_archive(str(to / run.run_id), "tar", run.path.parent, run.run_id)
    out.print(path, markup=False)


@app.command("remove", epilog="Example: `chainmark runs remove cometbft-demo-v1.0.1-2026`")
def remove(reference: RunReference) -> None:
    """Delete a run, finished or not."""
    store = open_store()
    run = store.find(reference)
    if isinstance(run, UnfinishedRun) and (pid := _owner(run)):
        raise UsageError(f"run `{run.run_id}` is being made by process {pid}", "stop that process first")
    store.remove(run)
    out.print(f"removed {run.run_id}", markup=False)


def _owner(run: UnfinishedRun) -> int | None:
    """The process that is making an unfinished run, if it lives."""
    try:
        pid = int(json.loads((run.path / "unfinished.json").read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError, KeyError):
        return None
    return pid if Path(f"/proc/{pid}").exists() else None


def _sealed(reference: str) -> SealedRun:
    run = open_store().find(reference)
    if isinstance(run, UnfinishedRun):
        raise InvalidRunError(
            f"run `{run.run_id}` was not finished", f"`chainmark runs remove {run.run_id}` deletes it"
        )
    return run
