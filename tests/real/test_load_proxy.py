"""Load tests through a proxy. Only the proxy knows the servers' names, so a request that bypasses it fails."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest

from chainmark.capacity.access import Access
from chainmark.core.errors import EnvironmentFailure, ExitCode, UsageError
from chainmark.systems.mesh.client import MeshClient, ServerDown

from tests.real.forward_proxy import forwarding
from tests.real.http2_server import serving_http2
from tests.real.load_servers import RIGHT, Reply, nobody_listens, self_signed, serving
from tests.real.test_load_access import _everything, _forms, _load, profile

__all__ = ["profile"]  # used as a fixture

WORD = "pa55 word/of:mine"
KNOWN = "Basic " + base64.b64encode(f"tester:{WORD}".encode()).decode()
HOST = "server-behind.invalid"
ENVIRONMENT = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", WORD)


def _through(place: str) -> tuple[str, str]:
    return "--proxy", f"http://tester:${{PROXY_PASSWORD}}@{place}"


def test_each_request_is_forwarded_and_the_password_is_written_nowhere(profile: Path) -> None:
    """This includes errors in which the server repeats what it received."""
    encoded = KNOWN.removeprefix("Basic ")
    tired = Reply(json.dumps({"message": f"tired of {encoded} {WORD}"}).encode(), 500, after_s=0.002)
    with (
        forwarding(KNOWN) as proxy,
        serving(lambda request: tired if request.number % 4 == 3 else Reply(after_s=0.002)) as server,
    ):
        port = server.url.rpartition(":")[2]
        result = _load(profile, f"http://{HOST}:{port}/base", *_through(proxy.place))
        assert server.requested["/base/work"] > 100
    assert result.exit_code in {ExitCode.DONE, ExitCode.FAIL, ExitCode.INCONCLUSIVE}, result.output
    assert set(proxy.requested) == {("POST", f"http://{HOST}:{port}/base/work")}
    assert f"http://{proxy.place}" in (profile.parent / "load.json").read_text(encoding="utf-8")
    for name, text in _everything(profile.parent, result):
        assert not [form for form in _forms(WORD) | {encoded} if form in text], name


@needs_openssl
@pytest.mark.parametrize("version", ["auto", "2"])
def test_tls_goes_through_a_tunnel(profile: Path, tmp_path: Path, version: str) -> None:
    """The tunnel ends at the server: its certificate is verified, and its choice of HTTP/2 counts."""
    context, authority = self_signed(tmp_path, HOST)
    with forwarding(KNOWN) as proxy, serving_http2(tls=context) as server:
        server.behind = lambda path, body: (200, RIGHT)
        port = server.url.rpartition(":")[2]
        more = ("--ca-file", str(authority), "--set", f'steps.http_version="{version}"')
        result = _load(profile, f"https://{HOST}:{port}", *_through(proxy.place), *more)
    assert result.exit_code in {ExitCode.DONE, ExitCode.FAIL, ExitCode.INCONCLUSIVE}, result.output
    assert "HTTP/2" in (profile.parent / "load.json").read_text(encoding="utf-8")
    assert set(proxy.requested) == {("CONNECT", f"{HOST}:{port}")}


@needs_openssl
def test_http_1_goes_through_a_tunnel(profile: Path, tmp_path: Path) -> None:
    context, authority = self_signed(tmp_path, HOST)
    with forwarding() as proxy, serving(lambda _: Reply(after_s=0.002), context) as server:
        port = server.url.rpartition(":")[2]
        more = ("--ca-file", str(authority), "--proxy", f"http://{proxy.place}")
        result = _load(profile, f"https://{HOST}:{port}", *more)
        assert server.requested["/work"] > 100
    assert result.exit_code == ExitCode.DONE, result.output


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refusing_proxy_is_reported_before_any_load(profile: Path, scheme: str) -> None:
    """Clients of both kinds of servers report it with a message that names the proxy and not the password."""
    url = f"{scheme}://{HOST}:8082"
    with forwarding("Basic other") as proxy, nobody_listens() as nobody:
        for place, why in ((proxy.place, "status 407"), (nobody.removeprefix("http://"), "refused")):
            with pytest.raises(EnvironmentFailure, match=f"proxy http://{place} .*{why}") as load:
                _load(profile, url, *_through(place))
            access = Access(proxy=_through(place)[1])
            with (
                MeshClient(url, access=access, verify=False) as client,
                pytest.raises(ServerDown, match=f"proxy http://{place} .*{why}") as mesh,
            ):
                client.post("/network/list", {})
            for failure in (load.value, mesh.value):
                assert failure.hint
                assert WORD not in f"{failure.message} {failure.hint}"
                assert "\n" not in failure.message
    assert EnvironmentFailure.exit_code == ExitCode.ENVIRONMENT


def test_proxies_of_the_environment_are_not_used(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds before and during the load: otherwise the proxy would be measured."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with forwarding() as proxy, serving(lambda _: Reply(after_s=0.002)) as server:
        for name in ENVIRONMENT:
            monkeypatch.setenv(name, f"http://{proxy.place}")
        result = _load(profile, server.url)
        with MeshClient(server.url) as client:
            client.post("/work", {})
    assert result.exit_code == ExitCode.DONE, result.output
    assert proxy.requested == []


@pytest.mark.parametrize("text", ["https://host:1", "http://:80", "http://user:pa55word@host:1/path", "host:3128"])
def test_an_invalid_proxy_is_rejected_without_being_repeated(text: str) -> None:
    with pytest.raises(UsageError, match="not the URL of a proxy") as refused:
        Access(proxy=text)
    assert "pa55word" not in refused.value.message
