"""HTTP servers with known behaviour: queues whose capacity theory gives, and servers that fail on purpose.

They listen on loopback, in a thread of the test's process, and keep connections alive. When a request arrives, a
behaviour decides the response and the time at which it is sent. A busy machine can therefore delay single responses,
but it never reduces the capacity of a queue: the times of later responses are already fixed.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
import select
import selectors
import socket
import ssl
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from chainmark.capacity.model import Target
from chainmark.core.progress import Progress, Silent
from chainmark.lab.loading import LoadTest, Tester
from chainmark.lab.protocols import ServedSystem, ServiceRequest
from chainmark.store.runs import Store
from chainmark.systems.http import SYSTEM
from chainmark.systems.http.profile import HttpProfile

RIGHT = b'{"right":true}'
START_TIMEOUT_S = 60.0


class Ends(StrEnum):
    """How a response ends."""

    WHOLE = "whole"
    BEFORE = "before"  # the connection is closed instead of a response
    HALF = "half"  # the connection is closed in the middle of a response
    RESET = "reset"  # the connection is reset instead of a response


@dataclass(frozen=True)
class Reply:
    """The response to a request, and the delay in seconds before it is sent."""

    body: bytes = RIGHT
    status: int = 200
    after_s: float = 0.0
    ends: Ends = Ends.WHOLE
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        """The bytes that are sent."""
        head = f"HTTP/1.1 {self.status} Some\r\nContent-Type: {self.content_type}\r\nContent-Length: {len(self.body)}"
        whole = head.encode() + b"\r\nServer: known\r\n\r\n" + self.body
        return whole[:-1] if self.ends is Ends.HALF else whole


@dataclass(frozen=True)
class Asked:
    """A request: its time in s since the server's start, its number from 0, and its headers in lower case."""

    method: str
    path: str
    body: bytes
    at_s: float
    number: int
    headers: Mapping[str, str] = field(default_factory=dict)


Behaviour = Callable[[Asked], Reply]


@dataclass
class Queue:
    """A queue, first come, first served: ``workers`` need ``service_s`` each, exactly or on average (exponential)."""

    workers: int
    service_s: float
    exponential: bool = False
    source: random.Random = field(default_factory=lambda: random.Random(1))
    free_at_s: list[float] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """The limit of the sustained rate."""
        return self.workers / self.service_s

    def __call__(self, request: Asked) -> Reply:
        """Assign the request to the next free worker."""
        if not self.free_at_s:
            self.free_at_s = [0.0] * self.workers
        begun_s = max(request.at_s, self.free_at_s[0])
        service_s = self.source.expovariate(1.0 / self.service_s) if self.exponential else self.service_s
        heapq.heapreplace(self.free_at_s, begun_s + service_s)
        return Reply(after_s=begun_s + service_s - request.at_s)


@dataclass(frozen=True)
class Stalls:
    """Sends no response for ``for_s`` of every ``every_s``, from ``first_s`` after the first request on."""

    every_s: float
    for_s: float
    first_s: float
    begun: list[float] = field(default_factory=list)

    def __call__(self, request: Asked) -> Reply:
        """Requests that arrive during a stall receive their response when it ends."""
        if not self.begun:
            self.begun.append(request.at_s)
        into_s = (request.at_s - self.begun[0] - self.first_s) % self.every_s
        return Reply(after_s=max(0.0, self.for_s - into_s))


@dataclass
class Crowded:
    """Accepts ``room`` concurrent requests. Others receive, equally late, an error for lack of room."""

    room: int
    service_s: float
    ends_s: list[float] = field(default_factory=list)

    def __call__(self, request: Asked) -> Reply:
        """Requests that have ended since make room."""
        while self.ends_s and self.ends_s[0] <= request.at_s:
            heapq.heappop(self.ends_s)
        if len(self.ends_s) >= self.room:
            return Reply(mesh_error(7, "no room", retriable=True), 503, self.service_s)
        heapq.heappush(self.ends_s, request.at_s + self.service_s)
        return Reply(after_s=self.service_s)


@dataclass
class Exhausted:
    """Fast until two requests overlap, then slow until ``for_s`` after the last overlap."""

    quick_s: float
    slow_s: float
    for_s: float
    ends_s: list[float] = field(default_factory=list)
    slow_until_s: float = 0.0

    def __call__(self, request: Asked) -> Reply:
        """A request that arrives while another is served exhausts the server."""
        self.ends_s = [end_s for end_s in self.ends_s if end_s > request.at_s]
        if self.ends_s:
            self.slow_until_s = request.at_s + self.for_s
        after_s = self.slow_s if request.at_s < self.slow_until_s else self.quick_s
        self.ends_s.append(request.at_s + after_s)
        return Reply(after_s=after_s)


@dataclass
class Then:
    """Responds correctly to the first request of each path, which precedes any load; then behaves differently."""

    behaviour: Behaviour
    seen: set[str] = field(default_factory=set)

    def __call__(self, request: Asked) -> Reply:
        """Decide by the path alone."""
        if request.path in self.seen:
            return self.behaviour(request)
        self.seen.add(request.path)
        return Reply()


def always(reply: Reply) -> Behaviour:
    """The same reply to every request."""
    return lambda request: reply


def every(nth: int, reply: Reply) -> Behaviour:
    """This reply to every nth request, a correct one to the others."""
    return lambda request: reply if request.number % nth == nth - 1 else Reply()


class _ExactSelector(selectors.EpollSelector):
    """Waits with microsecond resolution: epoll rounds its timeout up to a millisecond, which delays responses."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0.0:
            # The descriptor of an epoll is readable when one of its registered descriptors is ready.
            select.select([self.fileno()], [], [], timeout)
            timeout = 0.0
        return super().select(timeout)


class _Connection(asyncio.Protocol):
    def __init__(self, server: LoadServer) -> None:
        self.server = server
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        # Small responses are sent at once: asyncio sets TCP_NODELAY itself.
        self.transport = transport
        self.server.transports.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:
            self.server.transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        fields = (line.partition(":") for line in head.decode().split("\r\n")[1:])
        headers = {name.lower(): value.strip() for name, _, value in fields}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        method, path, _ = head.partition(b"\r\n")[0].decode().split(" ")
        reply, due = self.server.taken(method, path, rest[:length], headers)
        asyncio.get_running_loop().call_at(due, self._answer, reply, due)

    def _answer(self, reply: Reply, due: float) -> None:
        self.server.latest_s = max(self.server.latest_s, asyncio.get_running_loop().time() - due)
        if self.transport is None or self.transport.is_closing():
            return
        if reply.ends is Ends.RESET:
            linger = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.transport.abort()
            return
        if reply.ends is not Ends.BEFORE:
            self.transport.write(reply.encoded())
        if reply.ends is not Ends.WHOLE:
            self.transport.close()


class LoadServer:
    """A running server.

    Attributes:
        requested: the number of requests, by path.
        latest_s: the largest delay of a response beyond its due time, caused by a busy machine.
    """

    def __init__(
        self, behaviour: Behaviour, context: ssl.SSLContext | None = None, socket_path: Path | None = None
    ) -> None:
        self.behaviour = behaviour
        self.context = context
        self.socket_path = socket_path
        self.requested: Counter[str] = Counter()
        self.latest_s = 0.0
        self.transports: set[asyncio.Transport] = set()
        self.port = 0
        self._loop = asyncio.SelectorEventLoop(_ExactSelector())
        self._server: asyncio.Server | None = None
        self._begun_s = self._loop.time()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load server")

    def go_down(self) -> None:
        """Stop listening and break every connection; a behaviour may call this."""
        assert self._server is not None
        self._server.close()
        for transport in list(self.transports):
            transport.abort()

    @property
    def url(self) -> str:
        """The URL of the server."""
        if self.socket_path is not None:
            return f"unix:{self.socket_path}"
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    def taken(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[Reply, float]:
        """The reply to a request, and the time of the loop at which it is due."""
        now = self._loop.time()
        reply = self.behaviour(Asked(method, path, body, now - self._begun_s, self.requested.total(), headers))
        self.requested[path] += 1
        return reply, now + reply.after_s

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()
        assert self._listening.wait(START_TIMEOUT_S), "the server did not start"

    def stop(self) -> None:
        """Close everything and wait for the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(self._make())
        if self.socket_path is None:
            self.port = self._server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        self.go_down()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _make(self) -> asyncio.Server:
        if self.socket_path is not None:
            return await self._loop.create_unix_server(lambda: _Connection(self), self.socket_path, backlog=1024)
        return await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=self.context, backlog=1024)


@contextmanager
def serving(
    behaviour: Behaviour, context: ssl.SSLContext | None = None, socket_path: Path | None = None
) -> Iterator[LoadServer]:
    """Run a server while the context is open, on a port or on a Unix socket."""
    server = LoadServer(behaviour, context, socket_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def nobody_listens() -> Iterator[str]:
    """The URL of a port that is in use, but does not accept connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def self_signed(folder: Path, host: str) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context with a self-signed certificate of ``host``, and the certificate's file."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


PROFILE: dict[str, Any] = {
    "system": "http",
    "name": "known",
    "title": "known server",
    "error_pointers": ["/code", "/message", "/retriable"],
    # The limit is high: a stall of the machine must not decide the result.
    "sla": {"p99_s": 1.0},
    "steps": {
        "duration_s": 1,
        "longest_s": 1,
        "warm_up_s": 0.2,
        "drain_s": 2,
        "timeout_s": 5,
        "cool_down_s": 0,
        "recovery_longest_s": 0,
    },
    "search": {"kinds": ["clients"], "times": 1},
    "fixed": {"times": 0},
    "request": [{"endpoint": "work", "path": "/work", "checks": [{"pointer": "/right", "is": True}]}],
}


def known_profile(**sections: Any) -> HttpProfile:
    """A load test of the path `/work` in short steps. Arguments replace single keys of sections, or whole values."""
    changed = {
        name: {**PROFILE[name], **value} if isinstance(PROFILE.get(name), dict) else value
        for name, value in sections.items()
    }
    return SYSTEM.profile({**PROFILE, **changed})


def known_test(store: Store, server: LoadServer, progress: Progress | None = None, **sections: Any) -> LoadTest:
    """Run such a load test of this server."""
    return load_test(store, SYSTEM, known_profile(**sections), ServiceRequest(Target("known", server.url)), progress)


def load_test(
    store: Store, system: ServedSystem, profile: BaseModel, order: ServiceRequest, progress: Progress | None = None
) -> LoadTest:
    """Run a load test of one server, without regard to other load on the machine: the servers' behaviour is known."""
    return Tester(store, system, watching=None).make(profile, [order], 1, progress or Silent())


def mesh_error(code: int, message: str, *, retriable: bool) -> bytes:
    """The body of an error as Mesh servers send it."""
    return json.dumps({"code": code, "message": message, "retriable": retriable}).encode()
