"""Hostile servers are reported before the load: each with its own message and hint, within a bounded time."""

from __future__ import annotations

import datetime
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from chainmark.capacity.model import Target, Tls
from chainmark.core.errors import ChainmarkError, ExitCode
from chainmark.core.progress import Silent
from chainmark.lab.protocols import ServedSystem, Service, ServiceRequest
from chainmark.systems.http import SYSTEM as HTTP
from chainmark.systems.mesh import SYSTEM as MESH

from tests.real.hostile_servers import HOSTILE, HOSTILE_TLS, Behaviour, answers, goes_on, hostile, over_tls, says
from tests.real.load_servers import self_signed

TIMEOUT_S = 0.4
# Limit for a whole probe: the first request meets the fault, and some faults need a second request to be identified.
LONGEST_S = 4 * TIMEOUT_S + 2.0
_NEEDS_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")

SYSTEMS: dict[str, tuple[ServedSystem, dict[str, Any]]] = {
    "http": (HTTP, {"request": [{"endpoint": "a", "path": "/a", "checks": [{"pointer": "/right", "is": True}]}]}),
    "mesh": (MESH, {}),
}


def _prepared(system: str, target: Target, **sections: Any) -> Service:
    served, own = SYSTEMS[system]
    content = {"system": system, "name": "probe", "steps": {"timeout_s": TIMEOUT_S}, **own, **sections}
    return served.prepare(served.profile(content), ServiceRequest(target), Silent())


def _refused(system: str, target: Target) -> ChainmarkError:
    begun = time.monotonic()
    with pytest.raises(ChainmarkError) as caught:
        _prepared(system, target)
    assert time.monotonic() - begun < LONGEST_S
    error = caught.value
    assert error.exit_code in {ExitCode.USAGE, ExitCode.ENVIRONMENT}
    assert error.hint
    assert "\n" not in error.message + error.hint
    assert target.url in error.message
    assert len(error.message) < 500
    return error


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_server_is_rejected_in_time(system: str, name: str) -> None:
    with hostile(HOSTILE[name]) as place:
        error = _refused(system, Target("t", f"http://{place}"))
    reported = f"{error.message} {error.hint}"
    for what, expected in {"TLS": "https://", "401": "--header", "HTTP/2": "HTTP/2", "503": "log"}.items():
        assert what not in name or expected in reported


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", HOSTILE_TLS)
def test_a_server_without_tls_is_rejected_in_time(system: str, name: str) -> None:
    with hostile(HOSTILE_TLS[name]) as place:
        error = _refused(system, Target("t", f"https://{place}"))
    if "plain" in name:
        assert "does not respond with TLS" in error.message
        assert "http://" in (error.hint or "")


def _certificate(folder: Path, host: str, days: tuple[int, int]) -> tuple[ssl.SSLContext, Path]:
    """A self-signed certificate of an address or a host, valid between two days relative to now."""
    now = datetime.datetime.now(datetime.UTC)
    begin, end = ((now + datetime.timedelta(days=day)).strftime("%Y%m%d%H%M%SZ") for day in days)
    certificate, key, request = (folder / name for name in ("cert.pem", "key.pem", "request.pem"))
    kind = "IP" if host[0].isdigit() else "DNS"
    own = "[ca]\ndefault_ca=own\n[own]\nnew_certs_dir=.\ndatabase=index\nserial=serial\ndefault_md=sha256\npolicy=any\n"
    extensions = (
        f"[any]\ncommonName=supplied\n[names]\nsubjectAltName={kind}:{host}\n[req]\ndistinguished_name=none\n[none]\n"
    )
    for name, text in {"openssl.cnf": own + extensions, "index": "", "serial": "01"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    arguments = [
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-config",
        "openssl.cnf",
    ]
    signed = ["ca", "-batch", "-notext", "-selfsign", "-config", "openssl.cnf", "-extensions", "names"]
    for command in (
        [*arguments, "-subj", f"/CN={host}", "-keyout", str(key), "-out", str(request)],
        [
            *signed,
            "-startdate",
            begin,
            "-enddate",
            end,
            "-keyfile",
            str(key),
            "-in",
            str(request),
            "-out",
            str(certificate),
        ],
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=60, cwd=folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


@_NEEDS_OPENSSL
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("host", "days", "trusted", "expected"),
    [
        ("127.0.0.1", (-1, 1), False, ("is self-signed", "--ca-file")),
        ("127.0.0.1", (-3, -1), True, ("has expired", "--insecure")),
        ("127.0.0.1", (1, 3), True, ("is not valid yet", "clocks")),
        ("mesh.example", (-1, 1), True, ("is for another host than `127.0.0.1`", "names")),
    ],
)
def test_the_fault_of_a_certificate_is_reported(
    *, system: str, host: str, days: tuple[int, int], trusted: bool, expected: tuple[str, str], tmp_path: Path
) -> None:
    """“certificate verify failed: unable to get local issuer” would make users check their firewall."""
    context, certificate = _certificate(tmp_path, host, days)
    with hostile(over_tls(context, says(b""))) as place:
        tls = Tls(ca_file=str(certificate) if trusted else None)
        error = _refused(system, Target("t", f"https://{place}", tls))
    assert expected[0] in error.message
    assert expected[1] in (error.hint or "")


@_NEEDS_OPENSSL
@pytest.mark.parametrize("system", SYSTEMS)
def test_plain_http_to_a_tls_port_is_reported(system: str, tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path, "127.0.0.1")
    with hostile(_plainly(context)) as place:
        error = _refused(system, Target("t", f"http://{place}"))
    assert "TLS" in f"{error.message} {error.hint}"
    assert "https://" in (error.hint or "")


def _plainly(context: ssl.SSLContext) -> Behaviour:
    """OpenSSL's reaction to an invalid handshake: an alert before the connection ends."""

    def behave(connection: Any, _: Any) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        secured = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(connection.recv(65_536))
        with pytest.raises(ssl.SSLError):
            secured.do_handshake()
        connection.sendall(outgoing.read() or b"\x15\x03\x01\x00\x02\x02\x46")

    return behave


def test_a_server_with_an_endless_stream_on_an_unused_path_is_measured() -> None:
    """Event streams at `/` are common. The server's name comes from a response to a request of the profile."""
    right = answers("200 OK", b'{"right": true}', "Server: streamer/2.0")
    stream = goes_on(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: {}\n\n", 0.001)

    def behave(connection: Any, ended: Any) -> None:
        data = connection.recv(65_536, 2)  # MSG_PEEK
        (right if data.startswith(b"GET /a ") else stream)(connection, ended)

    begun = time.monotonic()
    with hostile(behave) as place:
        service = _prepared("http", Target("t", f"http://{place}"))
    assert time.monotonic() - begun < LONGEST_S
    assert [fact.value for fact in service.facts if fact.label == "Server"] == ["streamer/2.0"]
