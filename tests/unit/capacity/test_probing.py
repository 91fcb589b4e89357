"""Single requests before the load, and unusual responses to them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from chainmark.capacity import probing
from chainmark.capacity.access import Access
from chainmark.capacity.model import Target
from chainmark.capacity.probing import Probed, Prober, TooLong, headers_of, hint_of_status


class _Odd(BaseHTTPRequestHandler):
    """Responds with a different fault for each path."""

    def do_GET(self) -> None:
        """Send the response of the path."""
        name = self.path.strip("/")
        if name == "drip":
            self._head(200)
            while not self._ended():
                self.wfile.write(b" ")
        elif name == "bomb":
            self._head(200, ("Content-Encoding", "gzip"))
            self.wfile.write(gzip.compress(bytes(4 << 20)))
        elif name == "moved":
            self._head(302, ("Location", "http://elsewhere.invalid/v2"))
        else:
            self._head(200, ("Content-Encoding", name))
            self.wfile.write(gzip.compress(b"{}") if name == "gzip" else b"{}")

    def _head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _ended(self) -> bool:
        return _stopped.wait(0.02)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


_stopped = threading.Event()


@contextmanager
def _server() -> Iterator[Target]:
    _stopped.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Target("server", f"http://127.0.0.1:{server.server_port}")
        finally:
            _stopped.set()
            server.shutdown()
            thread.join()


def _ask(path: str, longest_s: float = 5.0) -> Probed:
    with _server() as target, Prober(target, longest_s) as prober:
        return prober.ask("GET", path)


def test_an_endless_slow_response_is_ended() -> None:
    """Each byte arrives within the timeout, but the whole response would take forever."""
    with pytest.raises(httpx.ReadTimeout):
        _ask("/drip", 0.3)


def test_a_small_response_that_would_expand_to_fill_the_memory_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "LONGEST_BODY_BYTES", 1 << 20)
    with pytest.raises(TooLong, match="larger than 1 MiB, the limit"):
        _ask("/bomb")


def test_compressed_responses_are_decoded_and_redirects_reported() -> None:
    whole = _ask("/gzip")
    assert (whole.text, whole.obstacle) == ("{}", "")
    assert _ask("/identity").obstacle == ""
    assert _ask("/zip-of-ours").obstacle == "the body is compressed with zip-of-ours, which was not requested"
    moved = _ask("/moved")
    assert (moved.status, moved.obstacle) == (302, "a redirect to http://elsewhere.invalid/v2, which is not followed")


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine uses no proxies, and requests before a load must take the same route."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert _ask("/gzip").status == 200


def test_headers_of_a_request_override_those_of_the_access() -> None:
    access = Access(["accept: text/plain", "X-Api-Key: 123456", "Accept-Encoding: br"])
    headers = headers_of(Target("server", "http://127.0.0.1", access=access), {"Accept": "application/json"})
    assert dict(headers) == {"accept": "application/json", "x-api-key": "123456"}


def test_a_missing_client_certificate_is_reported_with_its_option() -> None:
    """Servers such as nginx complete the handshake and respond with 400, which does not suggest `--cert`."""
    body = "<head><title>400 No required SSL certificate was sent</title></head>"
    assert "--cert" in hint_of_status(400, body)
    assert "--cert" not in hint_of_status(400, "no such block")
