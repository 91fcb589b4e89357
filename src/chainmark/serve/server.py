"""The dashboard on a socket: by default reachable from this machine only."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from chainmark.api.context import store_at
from chainmark.core.errors import EnvironmentFailure
from chainmark.serve.app import application
from chainmark.serve.connections import TimedConnection
from chainmark.serve.rendering import html_of
from chainmark.serve.safety import MOST_HEADER_BYTES, is_loopback, own_names
from chainmark.serve.site import Site
from chainmark.store.runs import Store

_MOST_CONNECTIONS = 500
_BEHIND_ALL_ELSE = 10  # niceness: measurements on this machine have priority
_GRACE_S = 3
_LOOK_S = 0.5  # polars restarts interrupted waits, so that an endless one would not receive Ctrl-C


class Dashboard:
    """A dashboard that is served by a thread until it is closed; as a context manager, until the context ends.

    Attributes:
        url: its address, with the token if that is a random one.
    """

    def __init__(self, config: uvicorn.Config, listener: socket.socket, url: str) -> None:
        self.url = url
        self._listener, self._server = listener, _Server(config)
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)
        self._thread.start()
        self._server.has_begun.wait()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.nice(_BEHIND_ALL_ELSE)  # on Linux of this thread, and of those that it starts
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._server.has_begun.set()

    def wait(self) -> None:
        """Wait until it is closed, or for Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)

    def close(self) -> None:
        """End it; pages that are being made have three seconds."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Dashboard({self.url!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}">{escape(self.url)}</a>'


class _Server(uvicorn.Server):
    """A server that can be asked to end as soon as it has begun, but not before."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_begun = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.has_begun.set()


def serve(
    store: Store | Path | str | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8318,
    names: Sequence[str] = (),
    token: str | None = None,
    write: bool = False,
    logs: Sequence[Path] = (),
) -> Dashboard:
    """Serve a store to browsers: verdicts, runs, comparisons, histories and running measurements.

    Args:
        store: where the runs are.
        host: the address to listen on.
        port: 0 means a free one.
        names: further host names under which browsers may access the server.
        token: required for access if other machines can reach the address; None: a random one.
        write: notes may be edited in the browser.
        logs: the folders that runs were imported from; the pages of blocks show their lines.

    Raises:
        EnvironmentFailure: the address cannot be bound.

    Example:
        >>> from urllib.request import urlopen
        >>> with cm.serve(port=0) as dashboard:
        ...     page = urlopen(dashboard.url).read()
        >>> b"v1.0.1" in page
        True
    """
    listener = _listening(host, port)
    needed = "" if is_loopback(host) else token or secrets.token_urlsafe(24)
    site = Site(store_at(store).root, secrets.token_urlsafe(24) if write else "", logs)
    html_of(site.home({}), "/", [])  # what the first page needs is loaded before the first request
    config = uvicorn.Config(
        application(site, own_names(host, names), needed),
        http=TimedConnection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_graceful_shutdown=_GRACE_S,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    return Dashboard(config, listener, f"{address}?token={needed}" if needed and token is None else address)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise EnvironmentFailure(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "another process may use that port: `--port 0` selects a free one",
        ) from error
    return listener
