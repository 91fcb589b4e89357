"""`chainmark history`: every figure over the releases, and the notes on runs."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.table import Table

import chainmark as cm
from chainmark.cli.commands import group
from chainmark.cli.common import AsJson, LearntMargins, Output, shows_result
from chainmark.cli.console import out, print_json
from chainmark.core.errors import UsageError

app = group(
    250,
    "History: show a workload over its releases, add notes, pin an anchor release, choose margins.",
    "Example: `chainmark history list`",
)
System = Annotated[str, typer.Argument(help="The system of the runs.")]
Since = Annotated[
    str,
    typer.Argument(metavar="DAY", help="Start date, `2025-08-01` or `2025-08-01T12:00:00Z`; or a run or version."),
]
DAY = re.compile(r"\d{4}-\d{2}-\d{2}(T|$)")


@app.command("show", epilog="Example: `chainmark history show 10.6.2 --html history.html`")
@shows_result
def show(
    reference: Annotated[
        str, typer.Argument(help="A run or version; the history is that of its workload and machine.")
    ],
    *,
    output: Output,
) -> None:
    """Show every metric over the releases of a workload, and the releases at which its level changed."""
    output.present_all(cm.history(reference))


@app.command("note")
def note(
    system: System,
    since: Since,
    text: Annotated[str, typer.Argument(help="Text of the note.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Metric that the change affects. May be repeated.", show_default="any"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="Last day to which the note applies."),
    ] = None,
) -> None:
    """Add a note about a change of the set-up, a run, a version, or a range of days.

    A note with a start DAY marks a change of the set-up: differences across that day do not count as noise, and a
    comparison across it does not judge the given metrics. All other notes change no figures; they are shown wherever
    the runs are listed, shown or compared.
    """
    if until is not None or not DAY.match(since):
        if metrics:
            raise UsageError(
                "`--metric` applies only to a change of the set-up", "give the day on which the change took effect"
            )
        annotation = cm.annotate(since, text, system=system, until=until)
        out().print(f"noted: {annotation.system} {annotation.reach}: {annotation.text}", markup=False)
        return
    epoch = cm.note(system, since, text, metrics=metrics or [])
    out().print(f"noted: {epoch.system} since {epoch.since}: {epoch.text}", markup=False)


@app.command("pin")
def pin(
    system: System,
    version: Annotated[
        str | None, typer.Argument(help="A version or run.", show_default="none: remove the pin")
    ] = None,
) -> None:
    """Pin an anchor: every later version is also compared with it, which reveals slow drift."""
    cm.pin(system, version)
    out().print(f"anchor of {system}: {version or 'none'}", markup=False)


@app.command("margins", epilog="Example: `chainmark history margins 10.6.2 --margin learnt:5%,15%`")
@shows_result
def margins(
    reference: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A version or run. The next release is assumed to be run in the same way."),
    ],
    margin: LearntMargins = None,
    *,
    output: Output,
) -> None:
    """Show the noise of every gating metric, and what each margin could decide, before running anything.

    Next to the current margin, it shows the margin that would be learnt from re-runs: three standard deviations of the
    change between re-runs, within bounds. Margins smaller than the noise are marked.
    """
    output.finish(cm.margins(reference, margin))


@app.command("list", epilog="Example: `chainmark history list`")
def list_notes(as_json: AsJson = False) -> None:
    """List all notes and anchors."""
    notes = cm.notes()
    if as_json:
        print_json(notes.model_dump(mode="json"))
        return
    table = Table("system", "since", "what", "metrics", box=None, padding=(0, 2, 0, 0))
    for epoch in notes.epochs:
        table.add_row(epoch.system, epoch.since, epoch.text, ", ".join(epoch.metrics) or "any")
    for note_ in notes.annotations:
        table.add_row(note_.system, note_.reach, note_.text, "")
    for system, version in notes.anchors.items():
        table.add_row(system, "", f"anchor {version}", "")
    out().print(table)


@app.command("remove")
def remove(system: System, since: Since) -> None:
    """Remove the note of a change."""
    cm.unnote(system, since)
    out().print(f"removed: {system} since {since}", markup=False)
