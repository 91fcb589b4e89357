"""Servers on loopback with faulty behaviour. Each is a function that handles one accepted connection."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Behaviour = Callable[[socket.socket, threading.Event], None]
_ACCEPT_S = 0.05
_CONTENT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _CONTENT + b"Transfer-Encoding: chunked\r\n\r\n"


def _request(connection: socket.socket) -> bytes:
    """Read the head of a request, without its body."""
    received = b""
    while b"\r\n\r\n" not in received and (more := connection.recv(65_536)):
        received += more
    return received


def says(answer: bytes) -> Behaviour:
    """Send this to every request, and then close the connection."""

    def behave(connection: socket.socket, _: threading.Event) -> None:
        _request(connection)
        connection.sendall(answer)
        # Closing with unread data would send a reset, which may overtake the response.
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass

    return behave


def answers(status: str, body: bytes, *headers: str) -> Behaviour:
    """A complete response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return says("\r\n".join(head).encode() + b"\r\n\r\n" + body)


def goes_on(begin: bytes, piece: bytes, every_s: float = 0.0) -> Behaviour:
    """Send a begin, and then the same piece again and again."""

    def behave(connection: socket.socket, ended: threading.Event) -> None:
        _request(connection)
        connection.sendall(begin)
        while not ended.wait(every_s):
            connection.sendall(piece)

    return behave


def closes(connection: socket.socket, _: threading.Event) -> None:
    """Close the connection at once."""
    connection.shutdown(socket.SHUT_WR)


def resets(connection: socket.socket, _: threading.Event) -> None:
    """Reset the connection after the request."""
    _request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hangs(_: socket.socket, ended: threading.Event) -> None:
    """Accept the connection and send nothing."""
    ended.wait()


def half_a_head(connection: socket.socket, ended: threading.Event) -> None:
    """Send half of a response head, and then nothing."""
    _request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
    ended.wait()


def too_short(connection: socket.socket, ended: threading.Event) -> None:
    """Send less than the stated length and keep the connection open."""
    _request(connection)
    connection.sendall(_CONTENT + b"Content-Length: 1000\r\n\r\n{}")
    ended.wait()


def no_tls(connection: socket.socket, _: threading.Event) -> None:
    """The response of a plain HTTP server to a TLS handshake."""
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def over_tls(context: ssl.SSLContext, behave: Behaviour) -> Behaviour:
    """The same behaviour over TLS."""

    def secured(connection: socket.socket, ended: threading.Event) -> None:
        with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as inner:
            behave(inner, ended)

    return secured


DEEP = b"[" * 100_000 + b"]" * 100_000
# Servers without TLS.
HOSTILE: dict[str, Behaviour] = {
    "closes at once": closes,
    "resets": resets,
    "hangs": hangs,
    "half a head": half_a_head,
    "a head of one huge field": says(b"HTTP/1.1 200 OK\r\nX-Huge: " + b"x" * 1_000_000 + b"\r\n\r\n{}"),
    "a head without end": goes_on(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n" * 1000),
    "a body without end": goes_on(_CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n"),
    "a body without length or end": goes_on(_CONTENT + b"\r\n", b" " * 65_536),
    "an extension of a chunk without end": goes_on(_CHUNKED + b"f;", b"x" * 65_536),
    "trailers without end": goes_on(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-More: 1\r\n" * 1000),
    "chunks that are none": says(_CHUNKED + b"nonsense\r\n{}\r\n0\r\n\r\n"),
    "a length that is none": says(_CONTENT + b"Content-Length: many\r\n\r\n{}"),
    "a length that is too long": too_short,
    "two lengths": says(_CONTENT + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "continue for ever": goes_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "a redirect to itself": answers("301 Moved Permanently", b"", "Location: /"),
    "an empty 200": answers("200 OK", b""),
    "binary": answers("200 OK", bytes(range(256)) * 40, "Content-Type: application/octet-stream"),
    "gzip that nobody asked for": answers("200 OK", gzip.compress(b'{"no": 1}'), "Content-Encoding: gzip"),
    "gzip that is none": answers("200 OK", b"not gzip", "Content-Encoding: gzip"),
    "invalid UTF-8": answers("200 OK", b'{"right": "\xff\xfe"}', "Content-Type: application/json"),
    "deep JSON": answers("200 OK", DEEP, "Content-Type: application/json"),
    "a byte now and then": goes_on(_CONTENT + b"Content-Length: 100000\r\n\r\n", b" ", 0.05),
    "a head, byte by byte": goes_on(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", 0.05),
    "no HTTP at all": says(b"220 mail.example ESMTP\r\n"),
    "HTTP/2 alone": says(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"),
    "TLS, asked without": says(b"\x15\x03\x01\x00\x02\x02\x46"),
    "status 101": says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n"),
    "status 401": answers("401 Unauthorized", b"who are you?", "WWW-Authenticate: Bearer"),
    "status 503": answers("503 Service Unavailable", b"<html>busy</html>", "Content-Type: text/html"),
}  # fmt: skip
# Servers at a URL that requires TLS.
HOSTILE_TLS: dict[str, Behaviour] = {
    "plain HTTP on a TLS port": no_tls,
    "garbage instead of a handshake": lambda connection, _: connection.sendall(b"\x00\xff" * 500),
    "no end of the handshake": hangs,
    "the end instead of a handshake": closes,
}


@contextmanager
def hostile(behave: Behaviour) -> Iterator[str]:
    """Run such a server and return its address `127.0.0.1:port`."""
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def served(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            behave(connection, ended)

    def listen(listener: socket.socket) -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                # A behaviour notices the end of the test after this time at the latest.
                connection.settimeout(1.0)
                threads.append(threading.Thread(target=served, args=(connection,)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_ACCEPT_S)
        accepting = threading.Thread(target=listen, args=(listener,))
        accepting.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            accepting.join()
            for thread in threads:
                thread.join()
