"""`chainmark metrics`: the data dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import AsJson
from chainmark.cli.console import out, print_json
from chainmark.core import units

if TYPE_CHECKING:
    from chainmark.core.metric import Metric

NEITHER = "neither"


@command(200)
def metrics(
    system: Annotated[str, typer.Argument(help="The system whose metrics to print.")], as_json: AsJson = False
) -> None:
    """Print every metric of a system: definition, judging rule and source."""
    catalogue = cm.catalogue(system)
    if as_json:
        print_json(catalogue)
        return
    for group in catalogue.tables:
        out().print(f"[bold underline]{group.title}[/]\n")
        for metric in catalogue.ordered():
            if metric.table == group.id:
                _print(metric, catalogue.population(metric.population).label)


def _print(metric: Metric, population: str) -> None:
    margin = units.plain_percent(metric.margin)
    margin += f", at least {units.tidy(metric.floor)} {metric.unit}" if metric.floor else ""
    gating = " · [bold]gating[/]" if metric.gating else ""
    out().print(f"[bold]{metric.id}[/]  {metric.label}, {metric.unit}{gating}")
    better = "no direction" if metric.better == NEITHER else f"{metric.better} is better"
    out().print(
        f"  {better} · judged by {', '.join(metric.judged_by)} · margin {margin} · over {population}", style="dim"
    )
    out().print(Padding(metric.description, (0, 0, 0, 2)), soft_wrap=False)
    out().print(f"  from {', '.join(metric.source)}\n", style="dim")
