"""`chainmark serve`: the dashboard."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import Annotated

from typer import Option

import chainmark as cm
from chainmark.cli.console import say
from chainmark.cli.groups import command
from chainmark.store.paths import data_directory

TOKEN = "CHAINMARK_SERVE_TOKEN"  # noqa: S105 - the name of a variable
_COLLECTED_AFTER = (50_000, 20, 50)  # new objects: thousands of runs stay, and need no scan at every page


@command
def serve(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65_535)] = 8318,
    names: Annotated[list[str] | None, Option("--name", metavar="NAME")] = None,
    write: bool = False,
    logs: Annotated[list[Path] | None, Option(metavar="DIR", exists=True, file_okay=False)] = None,
) -> None:
    """Show the store in a browser: verdicts, runs, comparisons, histories and running measurements.

    Example: `chainmark serve`

    Example: `chainmark serve --logs /var/log/cluster`

    Example: `chainmark serve --host 0.0.0.0 --name lab.example.org`

    The pages are read-only, except for notes with `--write`. They work without JavaScript and load nothing from other
    servers. An address that other machines can reach requires a token: set `CHAINMARK_SERVE_TOKEN`, or use the random
    token that the command prints.

    Args:
        host: Address to listen on.
        port: Port; 0 picks a free one.
        names: Host name that browsers use for this machine. May be repeated.
        write: Allow notes to be edited in the browser; runs are never changed.
        logs: Folder that runs were imported from: the page of a block then opens its log lines. May be repeated.
    """
    root, token = data_directory(), os.environ.get(TOKEN) or None
    gc.set_threshold(*_COLLECTED_AFTER)
    dashboard = cm.serve(root, host=host, port=port, names=names or [], token=token, write=write, logs=logs or [])
    with dashboard, contextlib.suppress(KeyboardInterrupt):
        say(f"serving {root} at {dashboard.url}")
        say("press Ctrl-C to stop")
        dashboard.wait()
