"""Single requests to a server under test, as the load engine makes them: no redirects, no unrequested proxy."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from chainmark.capacity.access import Proxy
from chainmark.capacity.model import HTTP_2, Target
from chainmark.core.errors import UsageError

# The engine reads this much of a response that it checks.
LONGEST_BODY_BYTES = 64 << 20
_REDIRECTS = range(300, 400)
_DECODED = frozenset({"identity", "gzip", "deflate"})
_ASKS_WHO = 407
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")


class TooLong(httpx.TransportError):
    """A response that exceeds the limit."""


@dataclass(frozen=True)
class Probed:
    """A complete response."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def text(self) -> str:
        """The body as text, whatever its bytes are."""
        return self.content.decode("utf-8", "replace")

    @property
    def obstacle(self) -> str:
        """Why the body is not usable, in words: "a redirect to /v2, which is not followed"; "" if it may be."""
        location, coding = self.headers.get("location"), self.headers.get("content-encoding", "").lower()
        if location and self.status in _REDIRECTS:
            return f"a redirect to {location}, which is not followed"
        if coding and not set(coding.replace(" ", "").split(",")) <= _DECODED:
            return f"the body is compressed with {coding}, which was not requested"
        return ""


class Prober:
    """Sends requests to one target, one at a time; a context manager. Requests uncompressed responses.

    Args:
        timeout_s: for a whole request: connecting, sending it, and its response to the last byte.

    Raises:
        UsageError: a certificate or a key cannot be used.
    """

    def __init__(self, target: Target, timeout_s: float) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._stream: Any = None
        self._is_late = False
        verify = tls_context(target) if target.url.startswith("https:") else False
        is_http_2 = target.http_version == HTTP_2
        transport = httpx.HTTPTransport(
            verify=verify,
            uds=target.socket_path or None,
            trust_env=False,
            http1=not is_http_2,
            http2=is_http_2,
            proxy=httpx.Proxy(way.url, headers=way.headers) if (way := target.access.way) else None,
        )
        self._client = httpx.Client(
            transport=transport,
            timeout=timeout_s,
            trust_env=False,
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def ask(self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None) -> Probed:
        """Send one request; any HTTP status is a response, a redirect as well.

        Raises:
            httpx.HTTPError: there was no complete response in time, or it is longer than ``LONGEST_BODY_BYTES``.
        """
        name = self._target.tls.server_name
        extensions = {"trace": self._see, **({"sni_hostname": name} if name else {})}
        sent = headers_of(self._target, headers or {})
        # Its own base precedes the path: httpx would omit the base of a path that begins with a slash.
        url = self._target.base_url + path
        with (
            self._bounded(),
            self._client.stream(method, url, content=content, headers=sent, extensions=extensions) as answer,
        ):
            if answer.status_code == _ASKS_WHO and self._target.access.way:
                raise httpx.ProxyError(str(_ASKS_WHO))
            return Probed(answer.status_code, answer.headers, _read(answer))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Httpx limits each wait for bytes; a server that sends one byte per second would never exceed that limit."""
        self._is_late = False
        timer = Timer(self._timeout_s, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except httpx.HTTPError as error:
            self._expect_in_time(error)
            raise
        finally:
            timer.cancel()
        # Otherwise a body that ends with its connection looks complete.
        self._expect_in_time()

    def _expect_in_time(self, error: httpx.HTTPError | None = None) -> None:
        if self._is_late:
            raise httpx.ReadTimeout("the response was not complete within the timeout") from error

    def _see(self, event: str, info: Mapping[str, Any]) -> None:
        """The stream in use."""
        if event.endswith(_CONNECTED):
            self._stream = info["return_value"]

    def _end(self) -> None:
        self._is_late = True
        if self._stream is not None:
            connection: socket.socket = self._stream.get_extra_info("socket")
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


def _read(answer: httpx.Response) -> bytes:
    content = bytearray()
    for piece in answer.iter_bytes():
        content += piece
        if len(content) > LONGEST_BODY_BYTES:
            raise TooLong(f"the response is larger than {LONGEST_BODY_BYTES >> 20} MiB, the limit")
    return bytes(content)


def connected(target: Target, timeout_s: float) -> socket.socket:
    """A connection to a server with TLS before its first byte, through the proxy if there is one.

    Raises:
        OSError: it is refused, by the server or by the proxy.
    """
    parts = urlsplit(target.url)
    place, way = (parts.hostname or "", parts.port or 443), target.access.way
    if way is None:
        return socket.create_connection(place, timeout_s)
    proxy = urlsplit(way.url)
    tunnel = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=timeout_s)
    tunnel.set_tunnel(*place, way.headers)
    try:
        tunnel.connect()
    except http.client.HTTPException as error:
        raise OSError(f"the proxy does not send a valid HTTP response ({error})") from error
    return tunnel.sock


def proxy_fault(way: Proxy, detail: str) -> tuple[str, str]:
    """Why a proxy does not forward the request, as a clause, and a hint.

    Args:
        detail: the symptom: "Connection refused", "407 Proxy Authentication Required".
    """
    if str(_ASKS_WHO) in detail:
        return (
            f"the proxy {way.url} requires authentication (status {_ASKS_WHO})",
            "add a name and a password to its URL: `--proxy 'http://NAME:${PASSWORD}@HOST:PORT'`",
        )
    return (
        f"the proxy {way.url} does not connect to the server ({detail})",
        "is the proxy running, and can it connect to the server?",
    )


def headers_of(target: Target, own: Mapping[str, str]) -> httpx.Headers:
    """A request's own headers, and those of the access whose names it does not have."""
    headers = httpx.Headers(target.access.values())
    headers.pop("accept-encoding", None)
    headers.update(own)
    return headers


def tls_context(target: Target) -> ssl.SSLContext:
    """How the server's certificate is verified, and the client's own certificate.

    Raises:
        UsageError: a certificate or a key cannot be used.
    """
    access, tls = target.access, target.tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not tls.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        # Loading a machine's certificates takes 35 ms.
        try:
            context = ssl.create_default_context(cafile=tls.ca_file)
        except OSError as error:
            raise UsageError(f"{tls.ca_file} contains no certificates ({error})", "give a PEM file") from error
    if access.certificate is not None:
        _identify(context, access.certificate, access.key)
    return context


def _identify(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    try:
        # OpenSSL would ask on the terminal for the passphrase of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise UsageError(
            f"the client certificate {certificate} and its key cannot be used ({error})",
            "give PEM files: the certificate with its chain, and the key without a password",
        ) from error


_ACCESS = "give credentials with `--header`, `--header-command`, `--user` or `--cert`"
_BASE_PATH = "if the API has a base path, add it to the URL: `http://host/base`"
_HINTS = {
    401: _ACCESS,
    403: _ACCESS,
    404: _BASE_PATH,
    405: _BASE_PATH,
    407: _ACCESS,
    429: "the server limits the request rate: measure it without the limit",
}


def hint_of_status(status: int, body: str = "") -> str:
    """The hint for a response with this status instead of a correct one; ``body`` is the beginning of its text."""
    if status == 400 and "certificate" in body.lower():
        return "the server requires a client certificate: `--cert FILE --key FILE`"
    if status in _HINTS:
        return _HINTS[status]
    if 300 <= status < 400:
        return "redirects are not followed: give the URL that it leads to"
    if status >= 500:
        return "check the server's log"
    return "send the request by hand: is this the intended server?"
