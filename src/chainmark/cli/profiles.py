"""`chainmark profiles`: the shipped profiles."""

from __future__ import annotations

from rich.table import Table

import chainmark as cm
from chainmark.cli.commands import command
from chainmark.cli.common import AsJson
from chainmark.cli.console import out, print_json


@command(210)
def profiles(as_json: AsJson = False) -> None:
    """List the shipped profiles.

    Example: `chainmark profiles`
    """
    resolved = cm.profiles()
    if as_json:
        print_json(resolved)
        return
    table = Table("profile", "description", box=None)
    for name, content in resolved.items():
        table.add_row(name, content.get("description", ""))
    out().print(table)
