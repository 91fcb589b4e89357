"""`chainmark history`: every figure over the releases, and what is noted beside the runs."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.table import Table

import chainmark as cm
from chainmark.cli.common import AsJson, LearntMargins, Output, shows_result
from chainmark.cli.console import out, print_json
from chainmark.core.errors import UsageError

app = typer.Typer(
    no_args_is_help=True,
    help="History: show a workload over its releases, note what was known when, pin an anchor, choose margins.",
    epilog="Example: `chainmark history list`",
)
System = Annotated[str, typer.Argument(help="Whose runs, e.g. `cardano`.")]
Since = Annotated[
    str,
    typer.Argument(metavar="DAY", help="From when on: `2025-08-01`, or `2025-08-01T12:00:00Z`; or a run or version."),
]
DAY = re.compile(r"\d{4}-\d{2}-\d{2}(T|$)")


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
    text: Annotated[str, typer.Argument(help="What was changed, or known.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A metric that it changed; may be repeated.", show_default="any"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="Till when: it was known of the runs of these days, and then over."),
    ] = None,
) -> None:
    """Note that the set-up changed, or what was known of a run, of a version, or of some days.

    From a DAY on: what differs across it is no noise, and a comparison across it does not judge the metrics that are
    named. All other notes change no figure: they stand beside the runs wherever these are listed, shown or compared.

    Example: `chainmark history note cardano 10.5.3 'clock of node-3 40 ms late'`

    Example: `chainmark history note cardano 2025-06-01 'links shared with another test' --until 2025-06-03`
    """
    if until is not None or not DAY.match(since):
        if metrics:
            raise UsageError("`--metric` goes with a change of the set-up", "name the day since which it is in force")
        found = cm.annotate(since, text, system=system, until=until)
        out.print(f"noted: {found.system} {found.reach}: {found.text}", markup=False)
        return
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


@app.command("margins", epilog="Example: `chainmark history margins 10.6.2 --margin learnt:5%,15%`")
@shows_result
def margins(
    reference: Annotated[
        str, typer.Argument(metavar="RUN", help="A version or run: the next release is run as it was.")
    ],
    margin: LearntMargins = None,
    *,
    output: Output,
) -> None:
    """Show the noise of every gating figure, and what margins would decide, before anything is run.

    Beside the margin in force stands what would be learnt from re-runs: three standard deviations of the change that
    a re-run makes, within bounds. A margin inside its noise is marked.
    """
    output.finish(cm.margins(reference, margin))


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
    for note_ in found.annotations:
        table.add_row(note_.system, note_.reach, note_.text, "")
    for system, version in found.anchors.items():
        table.add_row(system, "", f"anchor {version}", "")
    out.print(table)


@app.command("remove", epilog="Example: `chainmark history remove cardano 2025-08-01`")
def remove(system: System, since: Since) -> None:
    """Take the note of a change away."""
    cm.unnote(system, since)
    out.print(f"removed: {system} since {since}", markup=False)
