"""`chainmark serve`: the dashboard."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from chainmark.cli.console import say
from chainmark.store.paths import data_directory

TOKEN = "CHAINMARK_SERVE_TOKEN"  # noqa: S105 - the name of a variable


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8318,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A name by which browsers ask for this machine; may be repeated."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let notes be written in the pages; runs are never changed.")
    ] = False,
) -> None:
    """Show the store in a browser: verdicts, runs, comparisons, histories and what is being measured.

    Example: `chainmark serve`

    Example: `chainmark serve --host 0.0.0.0 --name lab.example.org`

    The pages are read only but for notes with `--write`, work without scripts, and ask nothing of any other server.
    Where others can reach the address, a token is needed: that of `CHAINMARK_SERVE_TOKEN`, or one that is drawn and
    printed.
    """
    from chainmark.serve.server import serve as run_server

    token = os.environ.get(TOKEN) or None
    run_server(data_directory(), host=host, port=port, names=names or [], token=token, may_write=write, say=say)
