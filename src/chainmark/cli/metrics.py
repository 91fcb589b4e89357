"""`chainmark metrics`: the data dictionary."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from chainmark.cli.common import AsJson
from chainmark.cli.console import out, print_json
from chainmark.systems.base import load_system


def metrics(
    system: Annotated[str, typer.Argument(help="The system, e.g. `cometbft`.")], as_json: AsJson = False
) -> None:
    """Print every metric of a system: what it is, how it is judged, where it comes from.

    Example: `chainmark metrics cometbft`
    """
    catalogue = load_system(system).catalogue()
    if as_json:
        print_json(catalogue)
        return
    for group in catalogue.tables:
        table = Table("metric", "unit", "judged by", "better", "margin", "definition", title=group.title, box=None)
        table.title_justify = "left"
        for metric in catalogue.ordered():
            if metric.table == group.id:
                name = f"[bold]{metric.id}[/]" if metric.gating else metric.id
                margin = f"{metric.margin:.0%}" + (f" or {metric.floor:g} {metric.unit}" if metric.floor else "")
                judged = ", ".join(metric.judged_by)
                table.add_row(name, metric.unit, judged, metric.better, margin, metric.description)
        out.print(table, soft_wrap=False)
        out.print()
    out.print("Metrics in bold are gating: they make the verdict.")
