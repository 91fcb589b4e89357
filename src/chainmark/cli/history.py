"""`chainmark history`: every figure over the releases, and what is noted beside the runs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

import chainmark as cm
from chainmark.cli.common import AsJson, Output, shows_result
from chainmark.cli.console import out, print_json

app = typer.Typer(
    no_args_is_help=True,
    help="History: show a workload over its releases, note changes of the set-up, pin an anchor, list, remove.",
    epilog="Example: `chainmark history list`",
)
System = Annotated[str, typer.Argument(help="Whose runs, e.g. `cardano`.")]
Since = Annotated[str, typer.Argument(metavar="DAY", help="From when on: `2025-08-01`, or `2025-08-01T12:00:00Z`.")]


@app.command("show", epilog="Example: `chainmark history show 10.6.2 --html history.html`")
@shows_result
def show(
    reference: Annotated[str, typer.Argument(help="A run or a version: its workload and machine are meant.")],
    *,
    output: Output,
) -> None:
    """Show every figure over the releases of a workload, and at which of them its level changed."""
    output.present_all(cm.history(reference))


@app.command("note", epilog="Example: `chainmark history note cardano 2025-08-01 'new hosts' --metric rss_mib`")
def note(
    system: System,
    since: Since,
    text: Annotated[str, typer.Argument(help="What was changed.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A metric that it changed; may be repeated.", show_default="any"),
    ] = None,
) -> None:
    """Note that the set-up changed: what differs across that day is no noise.

    A comparison across it does not judge the metrics that are named.
    """
    epoch = cm.note(system, since, text, metrics=metrics or [])
    out.print(f"noted: {epoch.system} since {epoch.since}: {epoch.text}", markup=False)


@app.command("pin", epilog="Example: `chainmark history pin cardano 10.1.4`")
def pin(
    system: System,
    version: Annotated[
        str | None, typer.Argument(help="A version or run.", show_default="none: take the pin away")
    ] = None,
) -> None:
    """Pin the version that every later one is also compared with, so that a slow drift is seen."""
    cm.pin(system, version)
    out.print(f"anchor of {system}: {version or 'none'}", markup=False)


@app.command("list", epilog="Example: `chainmark history list`")
def list_notes(as_json: AsJson = False) -> None:
    """List what is noted."""
    found = cm.notes()
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    table = Table("system", "since", "what", "metrics", box=None, padding=(0, 2, 0, 0))
    for one in found.epochs:
        table.add_row(one.system, one.since, one.text, ", ".join(one.metrics) or "any")
    for system, version in found.anchors.items():
        table.add_row(system, "", f"anchor {version}", "")
    out.print(table)


@app.command("remove", epilog="Example: `chainmark history remove cardano 2025-08-01`")
def remove(system: System, since: Since) -> None:
    """Take the note of a change away."""
    cm.unnote(system, since)
    out.print(f"removed: {system} since {since}", markup=False)
