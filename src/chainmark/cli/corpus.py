"""`chainmark corpus`: requests that a server answers rightly, kept in a file for load tests to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

import chainmark as cm
from chainmark.cli.common import AsJson, CaFile, Insecure, Settings
from chainmark.cli.console import out, print_json, say
from chainmark.cli.following import progress
from chainmark.core import units
from chainmark.core.errors import ExitCode

if TYPE_CHECKING:
    from chainmark.lab.corpora import KeptCorpus, WrongRequest

SYSTEM = "mesh"
_LISTED = 10

app = typer.Typer(
    no_args_is_help=True,
    help="Requests for load tests of a Mesh API: sample, import, check.",
    epilog="Example: `chainmark corpus mesh http://127.0.0.1:8082 --out corpus.json`",
)
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the corpus goes.")]
Server = Annotated[str, typer.Option("--target", metavar="URL", help="The server that is asked.")]
Network = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which network, where the server has several.", show_default="its only"),
]


@app.command("mesh", epilog="Example: `chainmark corpus mesh http://127.0.0.1:8082 --out corpus.json`")
def mesh(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server to sample from.")],
    path: Out,
    network: Network = None,
    settings: Settings = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 1,
    ca_file: CaFile = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Sample blocks, transactions and accounts from a Mesh server, each asked once and answered rightly.

    `--set corpus.blocks=40` looks at fewer blocks; likewise `transactions`, `accounts`, `per_stratum`,
    `settled_blocks`, `recent_blocks` and `newest_index`. The same seed and the same chain give the same file.
    """
    with progress() as listener:
        kept = cm.corpus(
            SYSTEM,
            url,
            path,
            network=network,
            settings=settings,
            seed=seed,
            ca_file=ca_file,
            insecure=insecure,
            progress=listener,
        )
    _show(kept, path, as_json)


@app.command("import", epilog="Example: `chainmark corpus import data.csv --target http://127.0.0.1:8082 --out c.json`")
def import_(
    source: Annotated[Path, typer.Argument(metavar="CSV", help="A CSV file, or a folder of them.")],
    target: Server,
    path: Out,
    network: Network = None,
    ca_file: CaFile = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Take the requests of cardano-rosetta-java's load tests, as far as a server answers them rightly.

    A file of six columns, every row of it, or a folder with `dimensions.json`.
    """
    with progress() as listener:
        kept = cm.corpus(
            SYSTEM, target, path, source=source, network=network, ca_file=ca_file, insecure=insecure, progress=listener
        )
    _show(kept, path, as_json)


@app.command("check", epilog="Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`")
def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A corpus.")],
    target: Server,
    ca_file: CaFile = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Ask a server every request of a corpus once. Exit code 0: all are answered rightly; 1: some are not."""
    with progress() as listener:
        kept, wrong = cm.check_corpus(SYSTEM, path, target, ca_file=ca_file, insecure=insecure, progress=listener)
    total = sum(sum(counts.values()) for counts in kept.requests.values())
    if as_json:
        print_json({"hash": kept.hash, "requests": total, "wrong": [asdict(one) for one in wrong]})
    else:
        out.print(
            f"{units.count(total - len(wrong))} of {units.count(total)} requests are answered rightly", markup=False
        )
        _list(wrong)
    raise typer.Exit(ExitCode.FAIL if wrong else ExitCode.DONE)


def _show(kept: KeptCorpus, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"path": str(path), **asdict(kept)})
        return
    table = Table("endpoint", Column("requests", justify="right"), Column("kinds", overflow="fold"), box=None)
    for endpoint, counts in kept.requests.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if len(counts) > 1)
        table.add_row(endpoint, units.count(sum(counts.values())), kinds)
    for endpoint, reason in kept.skipped.items():
        table.add_row(endpoint, "–", reason)
    out.print(table)
    if kept.refused:
        out.print(f"\n{units.count(len(kept.refused))} were not answered rightly, and are not in it:")
        _list(kept.refused)
    out.print(f"\nnetwork {kept.network}\nhash    {kept.hash}", markup=False)
    say(f"corpus  {path}")


def _list(wrong: Sequence[WrongRequest]) -> None:
    for one in wrong[:_LISTED]:
        out.print(f"  {one.endpoint}: {one.reason}", markup=False)
    if len(wrong) > _LISTED:
        out.print(
            f"  and {units.count(len(wrong) - _LISTED)} more, all of them in the file or with `--json`", markup=False
        )
