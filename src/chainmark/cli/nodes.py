"""`chainmark nodes`: node binaries."""

from __future__ import annotations

import typer

import chainmark as cm
from chainmark.cli.console import err, out, print_json, print_table
from chainmark.cli.groups import command
from chainmark.cli.options import AsJson

app = typer.Typer(help="Node binaries: install, list.", epilog="Example: `chainmark nodes list`")


@app.command()
@command
def install(system: str, versions: list[str], *, as_json: AsJson = False) -> None:
    """Build or copy node binaries (releases, checkouts, forks) into the cache; each is checked and hashed.

    Args:
        system: The system of the nodes.
        versions: One or more versions, e.g. `v1.0.1`, or `git:PATH@REF`.
    """
    subjects = []
    for version in versions:
        with err().status(f"installing {system} {version} (a first build takes a minute or two)"):
            subjects.append(cm.install(system, version))
        if not as_json:
            subject = subjects[-1]
            out().print(f"{subject.name} {subject.version}  sha256 {subject.binary_sha256}  {subject.build}")
    if as_json:
        print_json([subject.model_dump(mode="json") for subject in subjects])


@app.command("list")
@command
def list_nodes(*, as_json: AsJson = False) -> None:
    """List the cached node binaries.

    Example: `chainmark nodes list`
    """
    result = cm.installed()
    if as_json:
        print_json([{**subject.model_dump(mode="json"), "path": str(path)} for subject, path in result])
        return
    rows = [
        (subject.name, subject.version, subject.build or "", (subject.binary_sha256 or "")[:16], str(path))
        for subject, path in result
    ]
    print_table(["system", "version", "built by", "sha256", "path"], rows, fold="path")
