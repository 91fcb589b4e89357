"""`chainmark profiles`: the shipped profiles."""

from __future__ import annotations

import chainmark as cm
from chainmark.cli.console import print_json, print_table
from chainmark.cli.groups import command
from chainmark.cli.options import AsJson


@command
def profiles(*, as_json: AsJson = False) -> None:
    """List the shipped profiles.

    Example: `chainmark profiles`
    """
    resolved = cm.profiles()
    if as_json:
        print_json(resolved)
    else:
        print_table(
            ["profile", "description"], [(name, content.get("description", "")) for name, content in resolved.items()]
        )
