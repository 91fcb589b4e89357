"""A client of a Mesh server that sends one request at a time and distinguishes every kind of failure."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx

from chainmark.capacity.access import NOBODY, Access
from chainmark.capacity.model import HTTP_1, UNIX, HttpVersion, Target, Tls
from chainmark.capacity.probing import Probed, Prober, TooLong, proxy_fault
from chainmark.capacity.tls_faults import tls_fault
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.mesh.bodies import HEADERS, canonical

DEFAULT_TIMEOUT_S = 10.0
SHOWN_CHARACTERS = 80
# A server that kept so many consecutive requests waiting is considered dead.
MOST_UNANSWERED = 3


class Unreachable(EnvironmentFailure):
    """Communication with the server is impossible."""


class ServerDown(Unreachable):
    """Connections are refused."""


class NameNotResolved(Unreachable):
    """The host's name has no address."""


class WrongCertificate(Unreachable):
    """The server's TLS certificate is not trusted, or the server does not use TLS."""


class NoAnswer(EnvironmentFailure):
    """The server accepted the request and did not respond in time, closed the connection, or sent invalid HTTP."""


class NotMeshError(UsageError):
    """The server does not respond as a Mesh server does."""


@dataclass(frozen=True)
class MeshErrorBody:
    """An error in the Mesh format."""

    code: int
    message: str
    retriable: bool | None

    def __str__(self) -> str:
        return f"code {self.code} “{self.message}”" + (" (retriable)" if self.retriable else "")


@dataclass(frozen=True)
class MeshResponse:
    """A response; ``document`` is None if the body is not JSON, ``size_bytes`` is the size of the body.

    Attributes:
        obstacle: why the body cannot be used, such as a redirect; "" if it can.
    """

    status: int
    document: Any
    text: str
    content_type: str
    seconds: float
    size_bytes: int
    obstacle: str = ""

    @property
    def body_error(self) -> MeshErrorBody | None:
        """The Mesh error in the body, whatever the HTTP status says."""
        if not isinstance(self.document, Mapping):
            return None
        code, message = self.document.get("code"), self.document.get("message")
        if isinstance(code, bool) or not isinstance(code, int) or not isinstance(message, str):
            return None
        retriable = self.document.get("retriable")
        return MeshErrorBody(code, message, retriable if isinstance(retriable, bool) else None)

    def in_words(self) -> str:
        """A summary of the response: `500 code 12 “invalid hash”`, `404 text/plain “404 page not found”`."""
        if (reported := self.body_error) is not None:
            return f"{self.status} {reported}"
        if self.obstacle:
            return f"{self.status}, {self.obstacle}"
        begin = " ".join(self.text.split())
        shown = begin[:SHOWN_CHARACTERS] + ("…" if len(begin) > SHOWN_CHARACTERS else "")
        return f"{self.status} {self.content_type or 'without a content type'} “{shown}”"


class MeshClient:
    """A client of one server; use it as a context manager.

    Args:
        url: base of the server's paths: `http://127.0.0.1:8082`, `https://host/rosetta`.
        timeout_s: for a whole request, including the connection.
        ca_file: certificates to trust instead of the machine's.
        verify: False accepts any certificate.
        server_name: name on the certificate, if it is not the URL's host.
        access: authentication of the requests; its secrets are in no response that this returns.
        http_version: HTTP version of the requests.

    Raises:
        UsageError: ``url`` is invalid, or ``ca_file`` holds no certificate.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        ca_file: Path | None = None,
        verify: bool = True,
        server_name: str | None = None,
        access: Access = NOBODY,
        http_version: HttpVersion = HTTP_1,
    ) -> None:
        self.url = _checked_url(url)
        tls = Tls(str(ca_file) if ca_file else None, verify, server_name)
        self._target = Target("server", self.url, tls, access, http_version)
        self._timeout_s = timeout_s
        # The last response to each path and body: every request under load was sent here before.
        self.answer_bytes: dict[tuple[str, str], int] = {}
        self._unanswered = 0
        self._prober = Prober(self._target, timeout_s)

    @classmethod
    def of(cls, target: Target, timeout_s: float = DEFAULT_TIMEOUT_S) -> MeshClient:
        """A client of a load test's target."""
        ca_file = Path(target.tls.ca_file) if target.tls.ca_file else None
        tls = target.tls
        return cls(
            target.url,
            timeout_s=timeout_s,
            ca_file=ca_file,
            verify=tls.verify,
            server_name=tls.server_name,
            access=target.access,
            http_version=target.http_version,
        )

    def __enter__(self) -> MeshClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._prober.__exit__(kind, error, trace)

    def post(self, path: str, body: Mapping[str, Any] | str) -> MeshResponse:
        """Send a request once; a response with any HTTP status is returned.

        Raises:
            ServerDown, NameNotResolved, WrongCertificate: the server cannot be reached.
            NoAnswer: the request was accepted and no response arrived.
        """
        content = body if isinstance(body, str) else canonical(body)
        started = time.perf_counter()
        try:
            probed = self._prober.ask("POST", path, content.encode(), dict(HEADERS))
        except httpx.HTTPError as error:
            # A server that closes the connection on single requests still handles others and costs no waiting time.
            self._unanswered = self._unanswered + 1 if isinstance(error, httpx.TimeoutException) else 0
            raise self._proxy_error(error) or self._error(path, error) from error
        self._unanswered = 0
        self.answer_bytes[path, content] = len(probed.content)
        return _answer(probed, time.perf_counter() - started, self._target.access)

    def _proxy_error(self, error: httpx.HTTPError) -> EnvironmentFailure | None:
        """Why no request gets through the proxy; None if the proxy is not the cause."""
        way = self._target.access.way
        if way is None or not isinstance(error, httpx.ProxyError | httpx.ConnectError) or _is_of_tls(error):
            return None
        why, hint = proxy_fault(way, str(error))
        return ServerDown(f"cannot connect to {self.url}: {why}", hint)

    def _error(self, path: str, error: httpx.HTTPError) -> EnvironmentFailure:
        for cause in _causes(error):
            if isinstance(cause, socket.gaierror):
                host = urlsplit(self.url).hostname
                return NameNotResolved(f"the host name `{host}` of {self.url} does not resolve", "check its spelling")
            if isinstance(cause, ssl.SSLError):
                why, hint = tls_fault(cause, self._target.tls.server_name or urlsplit(self.url).hostname or "")
                return WrongCertificate(f"the TLS connection to {self.url} failed: {why}", hint)
        if isinstance(error, httpx.ConnectTimeout):
            return ServerDown(
                f"{self.url} did not accept a connection within {units.duration(self._timeout_s)}",
                "is the server running?",
            )
        if isinstance(error, httpx.ConnectError):
            return ServerDown(f"cannot connect to {self.url} ({error})", "is the server running?")
        kind = NoAnswer if self._unanswered < MOST_UNANSWERED else ServerDown
        if isinstance(error, httpx.TimeoutException):
            return kind(
                f"{self.url}{path} did not respond within {units.duration(self._timeout_s)}",
                "is the server stuck? `--set steps.timeout_s=SECONDS` raises the timeout",
            )
        why, hint = _broken(error)
        return kind(f"{self.url}{path} did not send a valid response ({why})", hint)


def _checked_url(url: str) -> str:
    hint = "for example `http://127.0.0.1:8082` or `https://host/rosetta`"
    if url.startswith(f"{UNIX}/"):
        return url
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise UsageError(f"`{url}` is not a URL ({error})", hint) from error
    if not usable:
        raise UsageError(f"`{url}` is not a valid server URL", hint)
    if parts.query or parts.fragment:
        raise UsageError(f"`{url}` has a query or fragment, and paths cannot be added to it", hint)
    return url.rstrip("/")


def _broken(error: httpx.HTTPError) -> tuple[str, str]:
    """Why there is no response, and what to do about it."""
    message = str(error)
    if isinstance(error, TooLong):
        return message, "check that this is the intended server"
    if message.startswith("illegal"):
        return f"the response is not HTTP/1.1: {message}", "does the server require TLS (`https://`) or HTTP/2?"
    if isinstance(error, httpx.DecodingError):
        return f"the body does not match its Content-Encoding: {message}", "check the server's log"
    return message, "check the server's log"


def _answer(probed: Probed, seconds: float, access: Access) -> MeshResponse:
    try:
        # NaN and Infinity are Python's, not JSON's; the load engine refuses them as well.
        document = access.hide_in(json.loads(probed.content, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        document = None
    return MeshResponse(
        status=probed.status,
        document=document,
        text=access.hide(probed.text),
        content_type=probed.headers.get("content-type", "").partition(";")[0].strip(),
        seconds=seconds,
        size_bytes=len(probed.content),
        obstacle=access.hide(probed.obstacle),
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_of_tls(error: BaseException) -> bool:
    return any(isinstance(cause, ssl.SSLError) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
