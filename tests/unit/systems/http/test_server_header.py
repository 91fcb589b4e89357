"""The server's own version compared with its label. The version of a proxy is not a contradiction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from chainmark.capacity.model import Target
from chainmark.lab.protocols import ServiceRequest
from chainmark.systems.http import SYSTEM
from chainmark.systems.http.system import contradictions

from tests.unit.systems.cometbft.scripted_sweep import Quiet


class _Answers(BaseHTTPRequestHandler):
    """A handler that responds to every request with a server header."""

    server_version = "Ledger/10.5.4"
    sys_version = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Ignore the message."""


@contextmanager
def _served() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("label", "wrong"), [("10.6.2", True), ("10.5.4", False), ("my-branch", False)])
def test_a_label_that_the_server_contradicts_is_reported(label: str, wrong: bool) -> None:
    """If 10.5.4 was started twice instead of 10.5.4 and 10.6.2, the report must show this before any figure."""
    content = {"system": "http", "name": "api", "title": "Ledger API", "request": [{"endpoint": "a", "path": "/a"}]}
    with _served() as url:
        service = SYSTEM.prepare(SYSTEM.profile(content), ServiceRequest(Target("ledger", url), version=label), Quiet())
    expected = (f"the server reports Ledger 10.5.4, not {label}",)
    assert service.contradictions == (expected if wrong else ())
    assert [fact.value for fact in service.facts] == ["Ledger/10.5.4"]


@pytest.mark.parametrize(
    "header", ["nginx/1.25.3", "nginx", "not stated", "Apache/2.4.57 (Debian) PHP/8.2.7", "", "ledger", "ledger/beta"]
)
def test_the_version_of_a_proxy_is_not_the_version_of_the_api(header: str) -> None:
    assert contradictions(header, "Ledger API", "10.6.2") == ()
    assert contradictions(f"{header} ledger/10.5.4", "Ledger API", "10.6.2") != ()
