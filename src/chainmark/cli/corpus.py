"""`chainmark corpus`: requests that a server answers correctly, stored in a file for future load tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import chainmark as cm
from chainmark.cli.following import progress
from chainmark.cli.groups import command
from chainmark.cli.options import Connection, Http2, ModelSeed, On, Settings
from chainmark.cli.output import Output
from chainmark.systems.offered import offers

# Those that add to the help of a command of their name.
_SYSTEMS = [offer.system for offer in offers() if f"corpus {offer.system}" in offer.commands]
_FIRST = next(iter(_SYSTEMS), "SYSTEM")

app = typer.Typer(
    help="Corpora of requests for API load tests: sample, import, check.",
    epilog="Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`",
)
Out = Annotated[Path, Option("--out", metavar="FILE", help="Corpus file to write.")]
Target = Annotated[str, Option("--target", metavar="URL", help="Server to send the requests to.")]
Network = Annotated[
    str | None, Option(metavar="NAME", help="Network, if the server has several.", show_default="the only one")
]
System = Annotated[str, Option(metavar="NAME", help="System of the requests.")]


@dataclass(frozen=True)
class Server(Connection):
    """How to send single requests."""

    http2: Http2 = False

    def arguments(self) -> dict[str, Any]:
        """As arguments of the library's functions."""
        return {**super().arguments(), "http_version": "2" if self.http2 else "1.1"}


def _sampling(system: str) -> Callable[..., None]:
    """The command that samples from servers of one system."""

    @command
    def sample(
        url: Annotated[str, Argument(metavar="URL")],
        *,
        path: Out,
        network: Network = None,
        settings: Settings = None,
        seed: ModelSeed = 1,
        server: Server,
        output: Output,
    ) -> None:
        """Sample requests from a server; each is sent once and answered correctly.

        Args:
            url: Server to sample from.
        """
        how = {"network": network, "settings": settings, "seed": seed, **server.arguments()}
        with progress() as listener:
            document = cm.corpus(system, url, path, **how, progress=listener)
        output.finish(document)

    return sample


for _system in _SYSTEMS:
    app.command(_system)(_sampling(_system))


@app.command("import")
@command
def import_(
    source: Annotated[Path, Argument(metavar="CSV")],
    *,
    target: Target,
    path: Out,
    network: Network = None,
    system: System = _FIRST,
    server: Server,
    output: Output,
) -> None:
    """Import those requests of other load tests that the server answers correctly.

    Example: `chainmark corpus import data.csv --target http://127.0.0.1:8082 --out c.json`

    Args:
        source: A CSV file, or a folder of them.
    """
    with progress() as listener:
        document = cm.corpus(
            system, target, path, source=source, network=network, **server.arguments(), progress=listener
        )
    output.finish(document)


@app.command()
@command
def check(
    path: Annotated[Path, Argument(metavar="FILE")],
    *,
    target: Target,
    system: System = _FIRST,
    server: Server,
    on: On = None,
    output: Output,
) -> None:
    """Send every request of a corpus to a server once. Exit code 0: all responses are correct; 1: some are not.

    Example: `chainmark corpus check corpus.json --target http://127.0.0.1:8083`

    Args:
        path: Corpus file.
    """
    with progress() as listener:
        document = cm.check_corpus(system, path, target, **server.arguments(), on=on, progress=listener)
    output.finish(document)
