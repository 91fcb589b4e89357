"""Run the dashboard as users do: the command in a separate process, queried over real sockets."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests import forked
from tests.support import wait_until

_START = re.compile(r"at http://(?P<host>[^/]+):(?P<port>\d+)/(?:\?token=(?P<token>\S+))?")


@dataclass
class Served:
    """A listening server. ``client`` requests its pages, and ``message`` is the file with its output."""

    process: forked.Forked
    port: int
    token: str
    client: httpx.Client
    message: Path

    def raw(self, request: bytes) -> bytes:
        """The response to raw bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(request)
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
            return b"".join(parts)


@contextmanager
def served(store: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Serve a store until the context ends. The command must then exit when it is asked to."""
    with tempfile.NamedTemporaryFile("w", prefix="chainmark-serve-") as message:
        process = forked.start(
            ["--store", str(store), "serve", "--port", "0", *options],
            os.environ | environment, output=message.fileno(), errors=message.fileno(),
        )  # fmt: skip
        path = Path(message.name)
        try:
            wait_until(
                lambda: process.poll() is not None or _START.search(path.read_text()), "the server's address", 60
            )
            match = _START.search(path.read_text())
            assert match is not None, path.read_text()
            with httpx.Client(base_url=f"http://127.0.0.1:{match['port']}", timeout=60) as client:
                yield Served(process, int(match["port"]), match["token"] or "", client, path)
            process.terminate()
            assert process.wait(20) is not None
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
