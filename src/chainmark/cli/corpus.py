"""`chainmark corpus`: requests that a server answers correctly, stored in a file for future load tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Column, Table

import chainmark as cm
from chainmark.cli.common import AsJson, Connection, Settings, connects
from chainmark.cli.console import out, print_json, say
from chainmark.cli.following import progress
from chainmark.core import units
from chainmark.core.errors import ExitCode
from chainmark.systems.offered import offers

if TYPE_CHECKING:
    from chainmark.lab.corpora import CorpusRecord, WrongRequest

_LISTED = 10
_OFFERED = {offer.system: offer.corpus for offer in offers() if offer.corpus is not None}
_FIRST = next(iter(_OFFERED), "SYSTEM")

app = typer.Typer(
    no_args_is_help=True,
    help="Corpora of requests for API load tests: sample, import, check.",
    epilog=f"Example: `chainmark corpus {_FIRST} http://127.0.0.1:8082 --out corpus.json`",
)
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Corpus file to write.")]
Server = Annotated[str, typer.Option("--target", metavar="URL", help="Server to send the requests to.")]
Network = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Network, if the server has several.", show_default="the only one"),
]


Http2 = Annotated[bool, typer.Option("--http2", help="Use HTTP/2: negotiated with TLS, otherwise by prior knowledge.")]
System = Annotated[str, typer.Option("--system", metavar="NAME", help="System of the requests.", show_default=True)]


def _version(*, http2: bool) -> Literal["1.1", "2"]:
    return "2" if http2 else "1.1"


def _sampling(system: str) -> Callable[..., None]:
    """The command that samples from servers of one system."""

    @connects
    def sample(
        url: Annotated[str, typer.Argument(metavar="URL", help="Server to sample from.")],
        path: Out,
        network: Network = None,
        settings: Settings = None,
        seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
        http2: Http2 = False,
        as_json: AsJson = False,
        *,
        connection: Connection,
    ) -> None:
        with progress() as listener:
            record = cm.corpus(
                system,
                url,
                path,
                network=network,
                settings=settings,
                seed=seed,
                http_version=_version(http2=http2),
                **connection.arguments(),
                progress=listener,
            )
        _show(record, path, as_json)

    return sample


for _system, _texts in _OFFERED.items():
    app.command(
        _system,
        help=_texts.sample,
        epilog=f"Example: `chainmark corpus {_system} http://127.0.0.1:8082 --out corpus.json`",
    )(_sampling(_system))


@app.command(
    "import",
    help="\n\n".join(
        [
            "Import those requests of other load tests that the server answers correctly.",
            *(texts.importing for texts in _OFFERED.values()),
        ]
    ),
    epilog="Example: `chainmark corpus import data.csv --target http://127.0.0.1:8082 --out c.json`",
)
@connects
def import_(
    source: Annotated[Path, typer.Argument(metavar="CSV", help="A CSV file, or a folder of them.")],
    target: Server,
    path: Out,
    network: Network = None,
    system: System = _FIRST,
    http2: Http2 = False,
    as_json: AsJson = False,
    *,
    connection: Connection,
) -> None:
    """Import the requests of other load tests; the help above lists the supported ones."""
    with progress() as listener:
        record = cm.corpus(
            system,
            target,
            path,
            source=source,
            network=network,
            http_version=_version(http2=http2),
            **connection.arguments(),
            progress=listener,
        )
    _show(record, path, as_json)


@app.command("check", epilog="Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`")
@connects
def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Corpus file.")],
    target: Server,
    system: System = _FIRST,
    http2: Http2 = False,
    as_json: AsJson = False,
    *,
    connection: Connection,
) -> None:
    """Send every request of a corpus to a server once. Exit code 0: all responses are correct; 1: some are not."""
    with progress() as listener:
        record, wrong = cm.check_corpus(
            system, path, target, http_version=_version(http2=http2), **connection.arguments(), progress=listener
        )
    total = sum(sum(counts.values()) for counts in record.requests.values())
    if as_json:
        print_json(
            {"hash": record.hash, "requests": total, "wrong": [asdict(wrong_request) for wrong_request in wrong]}
        )
    else:
        out().print(
            f"{units.count(total - len(wrong))} of {units.count(total)} requests were answered correctly", markup=False
        )
        _list(wrong)
    raise typer.Exit(ExitCode.FAIL if wrong else ExitCode.DONE)


def _show(record: CorpusRecord, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"path": str(path), **asdict(record)})
        return
    table = Table("endpoint", Column("requests", justify="right"), Column("kinds", overflow="fold"), box=None)
    for endpoint, counts in record.requests.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if len(counts) > 1)
        table.add_row(endpoint, units.count(sum(counts.values())), kinds)
    for endpoint, reason in record.skipped.items():
        table.add_row(endpoint, "–", reason)
    out().print(table)
    if record.refused:
        out().print(f"\n{units.count(len(record.refused))} were not answered correctly and are not in the corpus:")
        _list(record.refused)
    out().print(f"\nnetwork {record.network}\nhash    {record.hash}", markup=False)
    say(f"corpus  {path}")


def _list(wrong: Sequence[WrongRequest]) -> None:
    for wrong_request in wrong[:_LISTED]:
        out().print(f"  {wrong_request.endpoint}: {wrong_request.reason}", markup=False)
    if len(wrong) > _LISTED:
        out().print(f"  and {units.count(len(wrong) - _LISTED)} more; `--json` lists all of them", markup=False)
