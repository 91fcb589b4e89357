"""`chainmark nodes`: node binaries."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column, Table

import chainmark as cm
from chainmark.cli.commands import group
from chainmark.cli.common import AsJson
from chainmark.cli.console import err, out, print_json

app = group(230, "Node binaries: install, list.", "Example: `chainmark nodes list`")


@app.command("install")
def install(
    system: Annotated[str, typer.Argument(help="The system of the nodes.")],
    versions: Annotated[list[str], typer.Argument(help="One or more versions, e.g. `v1.0.1`, or `git:PATH@REF`.")],
    as_json: AsJson = False,
) -> None:
    """Build or copy node binaries (releases, checkouts, forks) into the cache; each is checked and hashed."""
    subjects = []
    for version in versions:
        with err().status(f"installing {system} {version} (a first build takes a minute or two)"):
            subjects.append(cm.install(system, version))
        if not as_json:
            subject = subjects[-1]
            out().print(f"{subject.name} {subject.version}  sha256 {subject.binary_sha256}  {subject.build}")
    if as_json:
        print_json([subject.model_dump(mode="json") for subject in subjects])


@app.command("list", epilog="Example: `chainmark nodes list`")
def list_nodes(as_json: AsJson = False) -> None:
    """List the cached node binaries."""
    result = cm.installed()
    if as_json:
        print_json([{**subject.model_dump(mode="json"), "path": str(path)} for subject, path in result])
        return
    table = Table("system", "version", "built by", "sha256", Column("path", overflow="fold"), box=None)
    for subject, path in result:
        table.add_row(subject.name, subject.version, subject.build or "", (subject.binary_sha256 or "")[:16], str(path))
    out().print(table)
