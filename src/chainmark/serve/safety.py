"""Access control: host names of this machine, a token if others can reach it, limits of time and size."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "chainmark_token"
MOST_HEADER_BYTES: Final = 32_768
_ANSWER_TIMEOUT_S = 120.0
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str, more: Collection[str]) -> frozenset[str]:
    """The host names, besides addresses, under which a server may be accessed."""
    return frozenset(name.casefold() for name in ("localhost", host, socket.gethostname(), *more))


class Guard:
    """Rejects requests that another site's page could make a browser send, and requests without the token.

    Args:
        app: the protected application.
        names: allowed host names; another site's name that resolves to this machine is not among them, and an address
            needs no name.
        token: required token; "" if only this machine can reach the server.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str], token: str) -> None:
        self._app = app
        self._names = names
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, or forward the request, within a limited time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                await (refused or self._app)(scope, receive, _with_headers(send))
        except TimeoutError:
            return  # the client reads too slowly, or no longer waits

    def _refused(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if sum(len(name) + len(value) for name, value in headers.raw) > MOST_HEADER_BYTES:
            return PlainTextResponse("The request headers are too large.\n", 431)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return PlainTextResponse("The server does not accept this host name. Allow it with `--name`.\n", 421)
        if self._token and (refused := self._without_token(scope, headers)) is not None:
            return refused
        if scope["method"] not in _SAFE_METHODS | {"POST"}:
            return PlainTextResponse("This method is not allowed.\n", 405, {"allow": "GET, HEAD"})
        return None

    def _is_own(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.casefold() in self._names
        return True

    def _without_token(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for key, value in query if key == "token"), None)
        if given is not None and self._is_token(given):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            path = "/" + scope["path"].lstrip("/\\")  # never another host's
            entered = RedirectResponse(f"{path}{f'?{rest}' if rest else ''}", 303)
            entered.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return entered
        if self._is_token(_cookie(headers)) or self._is_token(headers.get("authorization", "").removeprefix("Bearer ")):
            return None
        return PlainTextResponse("A token is required: `?token=…` once, or `Authorization: Bearer …`.\n", 401)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("content-security-policy", _NOTHING)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sent
