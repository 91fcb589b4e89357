"""`chainmark history`: every figure over the releases, and the notes on runs."""

from __future__ import annotations

from typing import Annotated, TypedDict

import typer
from typer import Argument, Option

import chainmark as cm
from chainmark.cli.console import out, print_json, print_table
from chainmark.cli.groups import command
from chainmark.cli.options import AsJson, LearntMargins
from chainmark.cli.output import Output

app = typer.Typer(
    help="History: show a workload over its releases, add notes, pin an anchor release, choose margins.",
    epilog="Example: `chainmark history list`",
)
System = Annotated[str, Argument(help="The system of the runs.")]
Since = Annotated[
    str, Argument(metavar="DAY", help="Start date, `2025-08-01` or `2025-08-01T12:00:00Z`; or a run or version.")
]


@app.command()
@command
def show(reference: str, *, output: Output) -> None:
    """Show every metric over the releases of a workload, and the releases at which its level changed.

    Example: `chainmark history show 10.6.2 --html history.html`

    Args:
        reference: A run or version; the history is that of its workload and machine.
    """
    output.present_all(cm.history(reference))


class NoteOptions(TypedDict, total=False):
    """What a note concerns.

    Attributes:
        metrics: Metric that the change affects. May be repeated.
        until: Last day to which the note applies.
    """

    metrics: Annotated[list[str], Option("--metric", show_default="any")]
    until: Annotated[str, Option(metavar="DAY")]


@app.command()
@command
def note(system: System, since: Since, text: str, *, options: NoteOptions) -> None:
    """Add a note about a change of the set-up, a run, a version, or a range of days.

    A note with a start DAY marks a change of the set-up: differences across that day do not count as noise, and a
    comparison across it does not judge the given metrics. All other notes change no figures; they are shown wherever
    the runs are listed, shown or compared.

    Args:
        text: Text of the note.
    """
    noted = cm.note(system, since, text, **options)
    out().print(f"noted: {noted.system} {noted.reach}: {noted.text}", markup=False)


@app.command()
@command
def pin(system: System, version: Annotated[str | None, Argument(show_default="none: remove the pin")] = None) -> None:
    """Pin an anchor: every later version is also compared with it, which reveals slow drift.

    Args:
        version: A version or run.
    """
    cm.pin(system, version)
    out().print(f"anchor of {system}: {version or 'none'}", markup=False)


@app.command()
@command
def margins(
    reference: Annotated[str, Argument(metavar="RUN")], *, margin: LearntMargins = None, output: Output
) -> None:
    """Show the noise of every gating metric, and what each margin could decide, before running anything.

    Example: `chainmark history margins 10.6.2 --margin learnt:5%,15%`

    Next to the current margin, it shows the margin that would be learnt from re-runs: three standard deviations of the
    change between re-runs, within bounds. Margins smaller than the noise are marked.

    Args:
        reference: A version or run. The next release is assumed to be run in the same way.
    """
    output.finish(cm.margins(reference, margin))


@app.command("list")
@command
def list_notes(*, as_json: AsJson = False) -> None:
    """List all notes and anchors.

    Example: `chainmark history list`
    """
    notes = cm.notes()
    if as_json:
        print_json(notes.model_dump(mode="json"))
        return
    rows = [(epoch.system, epoch.since, epoch.text, ", ".join(epoch.metrics) or "any") for epoch in notes.epochs]
    rows += [(annotation.system, annotation.reach, annotation.text, "") for annotation in notes.annotations]
    rows += [(system, "", f"anchor {version}", "") for system, version in notes.anchors.items()]
    print_table(["system", "since", "what", "metrics"], rows)


@app.command()
@command
def remove(system: System, since: Since) -> None:
    """Remove the note of a change."""
    cm.unnote(system, since)
    out().print(f"removed: {system} since {since}", markup=False)
