"""`chainmark corpus`: requests that a server answers correctly, stored in a file for future load tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

import chainmark as cm
from chainmark.cli.commands import group
from chainmark.cli.common import Connection, Output, Settings, connects, shows_result
from chainmark.cli.following import progress
from chainmark.systems.offered import offers

if TYPE_CHECKING:
    from chainmark.lab.corpora import CorpusRecord

# Those that add to the help of a command of their name.
_SYSTEMS = [offer.system for offer in offers() if f"corpus {offer.system}" in offer.commands]
_FIRST = next(iter(_SYSTEMS), "SYSTEM")

app = group(
    220,
    "Corpora of requests for API load tests: sample, import, check.",
    "Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`",
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

    @shows_result
    @connects
    def sample(
        url: Annotated[str, typer.Argument(metavar="URL", help="Server to sample from.")],
        path: Out,
        network: Network = None,
        settings: Settings = None,
        seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
        http2: Http2 = False,
        *,
        connection: Connection,
        output: Output,
    ) -> None:
        """Sample requests from a server; each is sent once and answered correctly."""
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
        _finish(record, path, output)

    return sample


for _system in _SYSTEMS:
    app.command(_system)(_sampling(_system))


@app.command("import", epilog="Example: `chainmark corpus import data.csv --target http://127.0.0.1:8082 --out c.json`")
@shows_result
@connects
def import_(
    source: Annotated[Path, typer.Argument(metavar="CSV", help="A CSV file, or a folder of them.")],
    target: Server,
    path: Out,
    network: Network = None,
    system: System = _FIRST,
    http2: Http2 = False,
    *,
    connection: Connection,
    output: Output,
) -> None:
    """Import those requests of other load tests that the server answers correctly."""
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
    _finish(record, path, output)


@app.command("check", epilog="Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`")
@shows_result
@connects
def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Corpus file.")],
    target: Server,
    system: System = _FIRST,
    http2: Http2 = False,
    *,
    connection: Connection,
    output: Output,
) -> None:
    """Send every request of a corpus to a server once. Exit code 0: all responses are correct; 1: some are not."""
    from chainmark.api.loading import server_address
    from chainmark.report.corpus_document import CheckedCorpus, corpus_document

    with progress() as listener:
        record, wrong = cm.check_corpus(
            system, path, target, http_version=_version(http2=http2), **connection.arguments(), progress=listener
        )
    counts = {endpoint: sum(kinds.values()) for endpoint, kinds in record.requests.items()}
    checked = CheckedCorpus(
        path=str(path),
        hash=record.hash,
        network=record.network,
        server=server_address(target),
        requests=sum(counts.values()),
        by_endpoint=counts,
        wrong=tuple(wrong),
    )
    output.finish(corpus_document(checked))


def _finish(record: CorpusRecord, path: Path, output: Output) -> NoReturn:
    from chainmark.report.corpus_document import StoredCorpus, corpus_document

    output.finish(corpus_document(StoredCorpus(path=str(path), **vars(record))))
