"""The HTTP version of the requests to a server: chosen before a load, so that all requests use the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from chainmark.capacity.model import HTTP_1, HTTP_2, HttpVersion, Target
from chainmark.capacity.probing import connected, tls_context
from chainmark.core import units
from chainmark.core.errors import UsageError

# A setting's value is a number if it looks like one.
WantedVersion = Annotated[
    Literal["1.1", "2", "auto"],
    BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value),
]
_ALPN = {"h2": HTTP_2, "http/1.1": HTTP_1}


def speaking(target: Target, wanted: WantedVersion, timeout_s: float) -> Target:
    """The same server, with the HTTP version to use.

    Args:
        wanted: "auto" lets the server choose by ALPN; without TLS that is HTTP/1.1.
        timeout_s: how long to wait for its choice.

    Raises:
        UsageError: a certificate or a key cannot be used, or the proxy does not lead there.
    """
    if target.access.way and target.socket_path:
        raise UsageError(f"a proxy cannot connect to the socket {target.socket_path}", "omit `--proxy`")
    if target.access.way and wanted == HTTP_2 and target.url.startswith("http:"):
        raise UsageError(
            "a proxy does not forward HTTP/2 without TLS", "omit `--http2`, or give a target with `https://`"
        )
    return replace(target, http_version=_chosen(target, timeout_s) if wanted == "auto" else wanted)


def _chosen(target: Target, timeout_s: float) -> HttpVersion:
    """The server's choice. An unreachable server is reported by the next request to it."""
    parts = urlsplit(target.url)
    if parts.scheme != "https":
        return HTTP_1
    context = tls_context(target)
    context.set_alpn_protocols(list(_ALPN))
    host = parts.hostname or ""
    try:
        with (
            connected(target, timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=target.tls.server_name or host) as secured,
        ):
            return _ALPN.get(secured.selected_alpn_protocol() or "", HTTP_1)
    except OSError:
        return HTTP_1


def described(version: HttpVersion, streams: int) -> str:
    """For a report: "HTTP/2, up to 10 clients on a connection"."""
    if version == HTTP_1:
        return "HTTP/1.1"
    shared = "a connection for each client" if streams == 1 else f"{units.plural(streams, 'client')} on a connection"
    return f"HTTP/2, {shared}"
