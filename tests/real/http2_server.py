"""An HTTP/2 server by another implementation than the load engine's (Python's `h2`). It can refuse streams and go away.

It listens on loopback, in a thread of the test's process, with TLS and ALPN or by prior knowledge.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

START_TIMEOUT_S = 60.0


class Does(StrEnum):
    """The server's reaction to a request."""

    ANSWER = "answer"
    WRONG = "wrong"  # a response that fails the client's check
    LARGE = "large"  # a megabyte
    HANG = "hang"  # no response
    HALF = "half"  # the stream is reset in the middle of the response
    RESET = "reset"  # the stream is reset instead of a response
    REFUSE = "refuse"  # the stream is refused
    GO_AWAY = "go away"  # the connection accepts no further streams; this one was not started
    CALM = "calm"  # the connection is ended with an error
    CLOSE = "close"  # the connection is closed


_RESETS = {Does.HALF: ErrorCodes.INTERNAL_ERROR, Does.RESET: ErrorCodes.CANCEL, Does.REFUSE: ErrorCodes.REFUSED_STREAM}


@dataclass
class Http2Server:
    """Reacts to the requests of a connection with the entries of ``turns`` in order; the last entry repeats.

    Attributes:
        behind: if set, this function responds to the path and body: the server acts as its gateway.
    """

    turns: tuple[Does, ...] = (Does.ANSWER,)
    tls: ssl.SSLContext | None = None
    most_streams: int = 100
    behind: Callable[[str, bytes], tuple[int, bytes]] | None = None
    port: int = 0
    # Requests by reaction, the maximum of concurrently open streams, requests by body size, and connections.
    done: Counter[str] = field(default_factory=Counter)
    most_open: int = 0
    bodies: Counter[int] = field(default_factory=Counter)
    headers: dict[str, str] = field(default_factory=dict)
    connections: int = 0

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"


class _Connection(asyncio.Protocol):
    def __init__(self, server: Http2Server) -> None:
        self.server = server
        self.speech = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.number = 0
        self.bodies: defaultdict[int, bytes] = defaultdict(bytes)
        self.paths: dict[int, str] = {}
        self.open: set[int] = set()
        self.transport: asyncio.Transport | None = None
        self.is_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections += 1
        most = {SettingCodes.MAX_CONCURRENT_STREAMS: self.server.most_streams}
        self.speech.local_settings = Settings(client=False, initial_values=most)
        self.speech.initiate_connection()
        self._send()

    def data_received(self, data: bytes) -> None:
        if self.is_ended:
            return
        try:
            for event in self.speech.receive_data(data):
                self._take(event)
        except ProtocolError:
            self._send()
            self._close()
        self._send()

    def _take(self, event: object) -> None:
        if isinstance(event, RequestReceived):
            self.open.add(event.stream_id)
            self.server.most_open = max(self.server.most_open, len(self.open))
            self.server.headers = {str(name): str(value) for name, value in event.headers}
            self.paths[event.stream_id] = self.server.headers[":path"]
        elif isinstance(event, DataReceived):
            self.bodies[event.stream_id] += event.data
            self.speech.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            # All requests that arrived together are received before the first response.
            asyncio.get_running_loop().call_soon(self._do, event.stream_id)
        elif isinstance(event, StreamReset):
            self.open.discard(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            self._close()

    def _do(self, stream: int) -> None:
        if stream not in self.open or self.is_ended or self.transport is None or self.transport.is_closing():
            return
        what = self.server.turns[min(self.number, len(self.server.turns) - 1)]
        self.number += 1
        self.server.done[what] += 1
        self.server.bodies[len(self.bodies[stream])] += 1
        if self.server.behind is not None:
            self._hand_on(stream, self.server.behind)
            return
        if what is not Does.HANG:
            self.open.discard(stream)
        if what is Does.GO_AWAY:
            self.speech.close_connection(last_stream_id=max(0, stream - 2))
        elif what is Does.CALM:
            self.speech.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
        elif what in {Does.ANSWER, Does.WRONG, Does.LARGE, Does.HALF}:
            self._answer(stream, what)
        if what in _RESETS:
            self.speech.reset_stream(stream, _RESETS[what])
        self._send()
        if what in {Does.GO_AWAY, Does.CALM, Does.CLOSE}:
            self._close()

    def _hand_on(self, stream: int, behind: Callable[[str, bytes], tuple[int, bytes]]) -> None:
        self.open.discard(stream)
        status, body = behind(self.paths[stream], self.bodies[stream])
        self.speech.send_headers(stream, [(":status", str(status)), ("content-type", "application/json")])
        for begin in range(0, len(body), 16_000):
            self.speech.send_data(stream, body[begin : begin + 16_000])
        self.speech.end_stream(stream)
        self._send()

    def _answer(self, stream: int, what: Does) -> None:
        self.speech.send_headers(stream, [(":status", "200"), ("server", "known"), ("content-type", "text/plain")])
        body = b"right" if what is Does.ANSWER else b"wrong"
        if what is Does.LARGE:
            # As much as a client's smallest window accepts at once: the response never waits here.
            body = b"right" + b" " * 60_000
        for begin in range(0, len(body), 16_000):
            self.speech.send_data(stream, body[begin : begin + 16_000])
        if what is not Does.HALF:
            self.speech.end_stream(stream)

    def _send(self) -> None:
        if self.transport is not None and not self.is_ended:
            self.transport.write(self.speech.data_to_send())

    def _close(self) -> None:
        if self.transport is None or self.is_ended:
            return
        self.is_ended = True
        if self.transport.can_write_eof():
            # The client then closes its side and with it the socket. Closing with unread bytes would send a reset
            # instead.
            self.transport.write_eof()
        else:
            self.transport.close()


@contextmanager
def serving_http2(
    *turns: Does, tls: ssl.SSLContext | None = None, most_streams: int = 100, protocols: tuple[str, ...] = ("h2",)
) -> Iterator[Http2Server]:
    """Run a server with these reactions while the context is open.

    Args:
        turns: the reactions on each connection, in order; without any, it responds correctly.
        tls: its certificate; None: HTTP/2 by prior knowledge.
        most_streams: maximum of concurrent streams per connection.
        protocols: the protocols that it accepts by ALPN.
    """
    server = Http2Server(turns or (Does.ANSWER,), tls, most_streams)
    if tls is not None:
        tls.set_alpn_protocols(list(protocols))
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def listen() -> None:
        listening = await loop.create_server(lambda: _Connection(server), "127.0.0.1", 0, ssl=tls, backlog=1024)
        server.port = listening.sockets[0].getsockname()[1]
        started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(listen())  # noqa: RUF006 - the loop runs until the context ends
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(START_TIMEOUT_S)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_TIMEOUT_S)
        loop.close()
