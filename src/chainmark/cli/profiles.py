"""`chainmark profiles`: the shipped profiles."""

from __future__ import annotations

from rich.table import Table

from chainmark.cli.common import AsJson, resolve_profile
from chainmark.cli.console import out, print_json
from chainmark.lab.profiles import shipped_profiles


def profiles(as_json: AsJson = False) -> None:
    """List the shipped profiles.

    Example: `chainmark profiles`
    """
    resolved = {name: resolve_profile(name, [])[1].model_dump(mode="json") for name in shipped_profiles()}
    if as_json:
        print_json(resolved)
        return
    table = Table("profile", "description", box=None)
    for name, content in resolved.items():
        table.add_row(name, content["description"])
    out.print(table)
