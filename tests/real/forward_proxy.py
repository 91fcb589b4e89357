"""A small HTTP proxy: tunnels (CONNECT), and requests with absolute URLs that it forwards."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import parse_headers
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from urllib.parse import urlsplit

_WHO = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ForwardProxy(ThreadingTCPServer):
    """Resolves every host name to this machine, so a client that bypasses the proxy cannot reach the server.

    Attributes:
        known: the only accepted value of `Proxy-Authorization`; "" accepts every client.
        requested: the method and URL of each received request.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, known: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.known = known
        self.requested: list[tuple[str, str]] = []

    @property
    def place(self) -> str:
        """The host and port of the proxy."""
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(StreamRequestHandler):
    server: ForwardProxy

    def handle(self) -> None:
        """Handle the requests of one connection, which all have the same destination."""
        server: socket.socket | None = None
        while line := self.rfile.readline().decode():
            method, url, _ = line.split()
            self.server.requested.append((method, url))
            headers = parse_headers(self.rfile)
            if self.server.known and headers["Proxy-Authorization"] != self.server.known:
                self.wfile.write(_WHO)
                return
            del headers["Proxy-Authorization"]
            parts = urlsplit(f"//{url}" if method == "CONNECT" else url)
            if server is None:
                server = socket.create_connection(("127.0.0.1", parts.port or 80))
                if method == "CONNECT":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                Thread(target=_copy, args=(server, self.connection), daemon=True).start()
            if method == "CONNECT":
                _copy(self.connection, server)
                return
            body = self.rfile.read(int(headers["Content-Length"] or 0))
            header_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            server.sendall(f"{method} {parts.path} HTTP/1.1\r\n{header_lines}\r\n".encode() + body)


def _copy(begin: socket.socket, end: socket.socket) -> None:
    with suppress(OSError):
        while piece := begin.recv(1 << 16):
            end.sendall(piece)
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def forwarding(known: str = "") -> Iterator[ForwardProxy]:
    """Run a proxy while the context is open."""
    with ForwardProxy(known) as proxy:
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
