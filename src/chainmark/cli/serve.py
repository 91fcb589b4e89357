"""`chainmark serve`: the dashboard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from chainmark.cli.commands import command
from chainmark.cli.console import say
from chainmark.store.paths import data_directory

TOKEN = "CHAINMARK_SERVE_TOKEN"  # noqa: S105 - the name of a variable


@command(270)
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 picks a free one.")] = 8318,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="Host name that browsers use for this machine. May be repeated."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Allow notes to be edited in the browser; runs are never changed.")
    ] = False,
    logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--logs",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Folder that runs were imported from: the page of a block then opens its log lines. May be repeated.",
        ),
    ] = None,
) -> None:
    """Show the store in a browser: verdicts, runs, comparisons, histories and running measurements.

    Example: `chainmark serve`

    Example: `chainmark serve --logs /var/log/cluster`

    Example: `chainmark serve --host 0.0.0.0 --name lab.example.org`

    The pages are read-only, except for notes with `--write`. They work without JavaScript and load nothing from other
    servers. An address that other machines can reach requires a token: set `CHAINMARK_SERVE_TOKEN`, or use the random
    token that the command prints.
    """
    from chainmark.serve.server import serve as run_server

    token = os.environ.get(TOKEN) or None
    run_server(
        data_directory(),
        host=host,
        port=port,
        names=names or [],
        token=token,
        may_write=write,
        logs=logs or [],
        say=say,
    )
