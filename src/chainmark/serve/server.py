"""The dashboard on a socket: by default reachable from this machine only."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from chainmark.core.errors import EnvironmentFailure
from chainmark.serve.app import application
from chainmark.serve.connections import TimedConnection
from chainmark.serve.rendering import html_of
from chainmark.serve.safety import MOST_HEADER_BYTES, is_loopback, own_names
from chainmark.serve.site import Site

_MOST_CONNECTIONS = 500
_BEHIND_ALL_ELSE = 10  # niceness: measurements on this machine have priority
_GRACE_S = 3
_COLLECTED_AFTER = (50_000, 20, 50)  # new objects: thousands of runs stay, and need no scan at every page


def serve(
    root: Path,
    *,
    host: str,
    port: int,
    names: Sequence[str],
    token: str | None,
    may_write: bool,
    logs: Sequence[Path] = (),
    say: Callable[[str], None],
) -> None:
    """Serve a store until the process is interrupted.

    Args:
        root: the store's folder.
        host: the address to listen on.
        port: 0 means a free one.
        names: further host names under which the server may be accessed.
        token: token that others need to access it; None: a random one.
        may_write: notes may be written in the pages.
        logs: the folders that runs were imported from; the pages of blocks show their lines.
        say: receives the messages for the user: the server's address.

    Raises:
        EnvironmentFailure: the address cannot be bound.
    """
    listener = _listening(host, port)
    needed = "" if is_loopback(host) else token or secrets.token_urlsafe(24)
    with contextlib.suppress(OSError):
        os.nice(_BEHIND_ALL_ELSE)
    gc.set_threshold(*_COLLECTED_AFTER)
    site = Site(root, secrets.token_urlsafe(24) if may_write else "", logs)
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
    say(f"serving {root} at {address}{f'?token={needed}' if needed and token is None else ''}")
    say("press Ctrl-C to stop")
    with listener, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])


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
