"""Access control, and the response to malformed, slow or too many requests."""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import chainmark as cm

from tests.support import wait_until
from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import filled

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what a token is for


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("safe") / "store"
    filled(root, releases=2)
    (root / "secret.txt").write_text("secret")
    return root


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Served]:
    with served(store) as served_store:
        yield served_store


def _raw(server: Served, target: str, host: str = "localhost", method: str = "GET", more: str = "") -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
    return server.raw(head.encode("latin-1"))


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "target",
    ["/../secret.txt", "/runs/../../secret.txt", "/runs/..%2f..%2fsecret.txt", "/runs/%2e%2e/%2e%2e/secret.txt",
     "/runs/....//secret.txt", "/runs/%00", "/runs//etc/passwd", "/metrics/../../etc/passwd", "/metrics/%2e%2e",
     "/.git/config", "/badge/../../secret.svg", "//evil.example/runs", "/runs/%ff%fe", "/history?run=../secret.txt",
     "/compare?side=../secret.txt&side=/etc/passwd", "/compare?side=%00&side=%ff"],
)  # fmt: skip
def test_no_path_escapes_from_the_store(server: Served, target: str) -> None:
    answer = _raw(server, target)
    assert 400 <= _status(answer) < 500, answer[:200]
    assert b"root:x:" not in answer
    assert b"secret\n" not in answer


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_a_foreign_host_name_that_resolves_to_the_server_is_rejected(server: Served, host: str) -> None:
    assert _status(_raw(server, "/", host)) in {400, 421}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
def test_the_servers_own_host_names_are_accepted(server: Served, host: str) -> None:
    assert _status(_raw(server, "/", host)) == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_the_store_is_not_modified(server: Served, method: str) -> None:
    assert _status(_raw(server, "/runs", method=method)) in {400, 405}


def test_large_headers_long_addresses_and_invalid_http_are_rejected(server: Served) -> None:
    assert _status(_raw(server, "/", more=f"X-Large: {'a' * 100_000}\r\n")) in {400, 431}
    assert _status(_raw(server, f"/runs?q={'a' * 9000}")) == 414
    assert _status(server.raw(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")) == 400
    assert _status(_raw(server, "/runs", more="Accept-Encoding: \xff;q=\xfe\r\nCookie: =;;\xff\r\n")) in {
        200,
        400,
    }


def test_remote_clients_need_the_token_and_no_output_contains_it(store: Path) -> None:
    with served(store, "--host", EVERYWHERE) as server:
        assert len(server.token) >= 24
        assert server.client.get("/").status_code == 401
        assert server.client.get("/", params={"token": "wrong"}).status_code == 401
        assert server.client.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert server.client.get("/", headers={b"cookie": b"chainmark_token=\xff"}).status_code == 401
        right = {"authorization": f"Bearer {server.token}"}
        assert server.client.get("/", headers=right).status_code == 200
        entered = server.client.get("/runs", params={"token": server.token, "q": "v1"})
        assert entered.status_code == 303
        assert entered.headers["location"] == "/runs?q=v1"
        assert "HttpOnly" in entered.headers["set-cookie"]
        page = server.client.get("/runs")
        assert page.status_code == 200  # the client stores the cookie
        assert server.token not in page.text
        assert server.message.read_text().count(server.token) == 1  # the address with the token that the command prints


def test_a_given_token_is_not_printed(store: Path) -> None:
    with served(store, "--host", EVERYWHERE, CHAINMARK_SERVE_TOKEN="of our own") as server:  # noqa: S106 - of this test
        assert server.token == ""
        assert "of our own" not in server.message.read_text()
        assert server.client.get("/", headers={"authorization": "Bearer of our own"}).status_code == 200


def test_only_the_servers_own_form_writes_a_note(tmp_path: Path) -> None:
    (run,) = filled(tmp_path, releases=1)
    with served(tmp_path, "--write") as server:
        page = server.client.get(f"/runs/{run}").text
        (token,) = re.findall(r'name="form" value="([^"]+)"', page)
        own = {"origin": f"http://127.0.0.1:{server.port}"}
        form = {"form": token, "run": run, "reach": "version", "text": "<b>the clock was late</b>"}
        for headers, changes in (({}, {}), ({"origin": "http://evil.example"}, {}), (own, {"form": "x"}),
                                 (own, {"text": ""}), (own, {"reach": "all"}), (own, {"run": "../x"})):  # fmt: skip
            assert server.client.post("/notes", data=form | changes, headers=headers).status_code == 400
        assert cm.notes(tmp_path).annotations == []
        assert server.client.post("/notes", data={"text": "a" * 100_000}, headers=own).status_code == 400
        assert server.client.post("/notes", data=form, headers=own).status_code == 303
        (annotation,) = cm.notes(tmp_path).annotations
        assert (annotation.version, annotation.text) == ("v1.0.0", "<b>the clock was late</b>")
        wait_until(lambda: "&lt;b&gt;the clock was late" in server.client.get(f"/runs/{run}").text, "the note", 20)


def test_slow_and_numerous_clients_do_not_block_others(store: Path) -> None:
    """Two hundred connections send a header slowly while others read. All of them are closed."""
    with served(store) as server:
        process = psutil.Process(server.process.pid)
        server.client.get("/")
        before = process.num_fds()
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        for listener in slow:
            listener.sendall(b"GET / HTTP/1.1\r\nHost: local")
        statuses: list[int] = []
        readers = [
            threading.Thread(target=lambda: statuses.append(server.client.get("/runs").status_code)) for _ in range(20)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(30)
        assert statuses == [200] * 20
        wait_until(lambda: process.num_fds() <= before + 25, "the slow connections' end", 40)
        for listener in slow:
            listener.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_its_drawing_process(tmp_path: Path, number: signal.Signals) -> None:
    names = filled(tmp_path, releases=4)
    with served(tmp_path) as server:
        page = server.client.get("/history", params={"run": names[-1]}).text
        picture = re.findall(r'<img src="([^"]+)"', page)[0].replace("&amp;", "&")
        assert server.client.get(picture).status_code == 200
        others = psutil.Process(server.process.pid).children(recursive=True)
        assert others
        server.client.close()
        server.process.send_signal(number)
        assert server.process.wait(20) == 0
        wait_until(lambda: not any(other.is_running() for other in others), "the end of all processes", 30)
