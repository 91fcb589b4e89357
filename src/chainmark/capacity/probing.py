"""Single requests to a server that is to be loaded, as the load engine will make them: no proxy, no redirect."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import httpx

from chainmark.capacity.model import Target
from chainmark.core.errors import UsageError

# As the load engine: what is longer is checked by neither.
LONGEST_BODY_BYTES = 64 << 20
_REDIRECTS = range(300, 400)
_DECODED = frozenset({"identity", "gzip", "deflate"})


def http_client(target: Target, timeout_s: float) -> httpx.Client:
    """A client of the target; its paths are relative. Answers are asked for uncompressed.

    Args:
        timeout_s: for connecting, and again for each wait for bytes.

    Raises:
        UsageError: a certificate or a key cannot be used.
    """
    transport = httpx.HTTPTransport(verify=_tls(target), uds=target.socket_path or None, trust_env=False)
    return httpx.Client(
        base_url=target.base_url,
        transport=transport,
        timeout=timeout_s,
        trust_env=False,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
    )


def headers_of(target: Target, own: Iterable[tuple[str, str]] = ()) -> httpx.Headers:
    """A request's own headers, and those that let it in where it has none of the name."""
    headers = httpx.Headers(target.access.values())
    headers.pop("accept-encoding", None)
    headers.update(dict(own))
    return headers


class TooMuch(httpx.HTTPError):
    """An answer that does not end where answers of APIs end."""


@dataclass(frozen=True)
class Whole:
    """An answer with its body, which is decompressed as far as its coding is known."""

    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def text(self) -> str:
        """The body as text, whatever it is."""
        return self.body.decode(errors="replace")

    @property
    def obstacle(self) -> str:
        """Why the body says nothing, in words: "a redirect to /v2, which is not followed"; "" where it may."""
        location, coding = self.headers.get("location"), self.headers.get("content-encoding", "").lower()
        if location and self.status in _REDIRECTS:
            return f"a redirect to {location}, which is not followed"
        if coding and not set(coding.replace(" ", "").split(",")) <= _DECODED:
            return f"the body is compressed by {coding}, although that was not asked for"
        return ""


def whole_answer(client: httpx.Client, request: httpx.Request, longest_s: float) -> Whole:
    """One request's answer.

    Args:
        longest_s: until its last byte, from the sending on; a server may send a byte now and then for ever.

    Raises:
        TooMuch: the body has more than `LONGEST_BODY_BYTES`, decompressed.
        httpx.HTTPError: there is no answer.
    """
    begin_s, body = time.monotonic(), bytearray()
    answer = client.send(request, stream=True)
    try:
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > LONGEST_BODY_BYTES:
                raise TooMuch(f"its body has more than {LONGEST_BODY_BYTES >> 20} MiB")
            if time.monotonic() - begin_s > longest_s:
                raise httpx.ReadTimeout("the body does not end", request=request)
    finally:
        answer.close()
    return Whole(answer.status_code, answer.headers, bytes(body))


def server_header(target: Target, timeout_s: float) -> str:
    """What the server says of itself in any answer's head; the body is not waited for."""
    with http_client(target, timeout_s) as client:
        try:
            with client.stream("GET", "/", headers=headers_of(target)) as answer:
                return target.access.hide(str(answer.headers.get("server", "not stated")))
        except httpx.HTTPError:
            return "not stated"


def _tls(target: Target) -> ssl.SSLContext | bool:
    """Loading a machine's certificates takes 35 ms, and on plain HTTP there is nothing to verify."""
    access, tls = target.access, target.tls
    if not target.url.startswith("https:") or (not tls.verify and access.certificate is None):
        return False
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except OSError as error:
        raise UsageError(f"{tls.ca_file} holds no certificates ({error})", "a PEM file is wanted") from error
    if not tls.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if access.certificate is not None:
        _identify(context, access.certificate, access.key)
    return context


def _identify(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    try:
        # An encrypted key would be asked for on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise UsageError(
            f"the client's certificate {certificate} and its key cannot be used ({error})",
            "PEM files: the certificate with its chain, and its key without a password",
        ) from error
