"""Load tests of servers that require credentials: the right ones are sent, and none is written anywhere."""

from __future__ import annotations

import base64
import gzip
import html
import json
import shutil
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pypdfium2  # type: ignore[import-untyped]  # it has no stubs
import pytest
from typer.testing import Result

import chainmark.api.loading
import chainmark.api.planned_loads
from chainmark.core.errors import EnvironmentFailure, ExitCode, UsageError
from chainmark.lab import loading

from tests.real.load_servers import Asked, Behaviour, Reply, self_signed, serving
from tests.unit.cli.commands import chainmark as command
from tests.unit.report.pages import unfolded
from tests.unit.systems.mesh.scripted_server import chain

PROFILE = """
system = "http"
error_pointers = ["/message"]
sla = { p99_s = 10.0, error_share = 0.5, min_requests = 300 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = ["clients"], clients_first = 2, clients_last = 2, times = 1 }
fixed = { times = 0, duration_s = 1, shares = [0.5] }

[[request]]
endpoint = "work"
path = "/work"
method = "POST"
body = "{\\"ask\\": 1}"
checks = [{ pointer = "/right", is = true }]
"""
TOKEN, KEY, SESSION, PASSWORD = "tok3n/with+odd=signs", "key-0123456789", "session-abcdef", "pa55:word!"
# Errors make the SLA missed or undecided. These tests check the written output.
MEASURED = {ExitCode.DONE, ExitCode.FAIL, ExitCode.INCONCLUSIVE}
MEDIA = ("html", "pdf", "md", "xml", "json")


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile with short steps, and a separate store. Other load on this machine is ignored."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(chainmark.api.loading, "Tester", partial(loading.Tester, watching=None))
    path = tmp_path / "work.toml"
    path.write_text(PROFILE, encoding="utf-8")
    return path


def _load(profile: Path, url: str, *more: str) -> Result:
    folder = profile.parent
    options = {"html": "--html", "pdf": "--pdf", "md": "--md", "xml": "--junit", "json": "--json-file"}
    targets = [text for suffix, option in options.items() for text in (option, str(folder / f"load.{suffix}"))]
    return command("load", str(profile), "--target", url, *targets, *more)


def _echo(headers: dict[str, str]) -> Behaviour:
    """Accepts requests with these headers. Every fourth response is an error that repeats the whole request."""

    def behave(request: Asked) -> Reply:
        if any(request.headers.get(name) != value for name, value in headers.items()):
            return Reply(json.dumps({"message": f"who are you? {dict(request.headers)}"}).encode(), 401)
        if request.number % 4 == 3:
            encoded = base64.b64encode(headers.get("authorization", "").encode()).decode()
            sent = " ".join([*request.headers.values(), quote(TOKEN, safe=""), encoded])
            return Reply(json.dumps({"message": f"tired of {sent}"}).encode(), 500, after_s=0.002)
        return Reply(after_s=0.002)

    return behave


def _everything(folder: Path, result: Result) -> Iterator[tuple[str, str]]:
    """Everything that was written or printed, as text."""
    yield "terminal", result.output
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            yield str(path), str(pl.read_parquet(path).to_dict(as_series=False))
        elif path.suffix == ".pdf":
            document = pypdfium2.PdfDocument(path)
            yield str(path), "".join(page.get_textpage().get_text_range() for page in document)
        elif path.suffix == ".html":
            yield str(path), unfolded(path.read_text(encoding="utf-8"))
        elif path.is_file() and path.name != "key.txt":
            yield str(path), path.read_bytes().decode(errors="replace")


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded}


def test_no_secret_is_written_even_if_the_server_echoes_it(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is copied to colleagues and attached to issues. Its readers must not be able to use the API."""
    monkeypatch.setenv("API_TOKEN", TOKEN)
    (profile.parent / "key.txt").write_text(KEY + "\n", encoding="utf-8")
    wanted = {"authorization": f"Bearer {TOKEN}", "x-thing": KEY, "x-session": SESSION, "x-network": "preprod"}
    with serving(_echo(wanted)) as server:
        result = _load(
            profile,
            server.url,
            *("--header", "Authorization: Bearer ${API_TOKEN}", "--header", f"X-Thing: @{profile.parent}/key.txt"),
            *("--header-command", f"X-Session: printf {SESSION}", "--header", "X-Network: preprod"),
        )
    assert result.exit_code in MEASURED, result.output
    texts = dict(_everything(profile.parent, result))
    assert {Path(name).suffix[1:] for name in texts} >= {*MEDIA, "parquet"}
    for secret in (TOKEN, KEY, SESSION):
        for form in _forms(secret):
            holders = [name for name, text in texts.items() if form in text]
            assert not holders, (form, holders)
    report = (profile.parent / "load.json").read_text(encoding="utf-8")
    assert "tired of [hidden]" in report or ("tired of" in report and "[hidden]" in report)
    assert "X-Network: preprod" in report


def test_a_load_plan_stores_no_secret(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its experiment is stored next to its runs and records how each cell ended."""
    monkeypatch.setenv("API_TOKEN", TOKEN)
    monkeypatch.setattr(chainmark.api.planned_loads, "Tester", partial(loading.Tester, watching=None))
    plan = profile.parent / "plan.toml"
    cells = "".join(f'[[scenario]]\nid = "{name}"\n' for name in ("standard", "refused"))
    servers = '[[server]]\nid = "one"\n[[server]]\nid = "two"\n'
    plan.write_text(f'system = "http"\ntitle = "Two"\nprofile = "{profile}"\n{cells}{servers}', encoding="utf-8")
    wanted, url_user = f"Bearer {TOKEN}", f"tester:{quote(PASSWORD, safe='')}"
    encoded = base64.b64encode(f"tester:{PASSWORD}".encode()).decode()
    with (
        serving(_echo({"x-token": wanted})) as server,
        serving(_echo({"authorization": f"Basic {encoded}"})) as two,
    ):
        targets = ("--target", f"one={server.url}", "--target", f"two={two.url.replace('://', f'://{url_user}@')}")
        options = ("--html", str(profile.parent / "plan.html"), "--json-file", str(profile.parent / "plan.json"))
        header = ("--header", "X-Token: Bearer ${API_TOKEN}")
        result = command("load", "--plan", str(plan), *targets, *options, *header)
        assert min(server.requested.total(), two.requested.total()) > 400
    assert result.exit_code in MEASURED, result.output
    texts = dict(_everything(profile.parent, result))
    assert any(name.endswith(".html") for name in texts)
    for name, text in texts.items():
        for form in {*_forms(TOKEN), *_forms(PASSWORD), encoded}:
            assert form not in text, (name, form)


def test_a_password_in_a_url_is_sent_and_never_printed(profile: Path) -> None:
    """Operators paste such URLs. Printing one would leak the password."""
    encoded = base64.b64encode(f"tester:{PASSWORD}".encode()).decode()
    with serving(_echo({"authorization": f"Basic {encoded}"})) as server:
        url = server.url.replace("://", f"://tester:{quote(PASSWORD, safe='')}@")
        result = _load(profile, url)
    assert result.exit_code in MEASURED, result.output
    for name, text in _everything(profile.parent, result):
        for form in {*_forms(PASSWORD), encoded}:
            assert form not in text, (name, form)


def test_truncated_escaped_and_foreign_secrets_are_hidden(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are cut before secrets can be searched for in them, and servers escape text in many ways."""
    token, other = f'Zq8<&>+"/{"0123456789abcdef" * 4}', "somebody-elses"
    monkeypatch.setenv("API_TOKEN", token)
    in_json = json.dumps(token)[1:-1]
    as_go_writes_it = in_json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    around = base64.b64encode(f"Host: here\nAuthorization: Bearer {token}\n".encode()).decode()
    echoes = [
        *("x" * before + " " + token for before in range(0, 76, 5)),
        *(html.escape(token), in_json.replace("/", "\\/"), as_go_writes_it),
        *(
            quote(token, safe="")
            .replace("%3C", "%3c")
            .replace("%3E", "%3e")
            .replace("%2B", "%2b")
            .replace("%2F", "%2f"),
            around[:76],
            around[12:],
            f"Cookie: id={other}; {other}",
        ),
    ]

    def behave(request: Asked) -> Reply:
        number, right = divmod(request.number, 4)
        return Reply(after_s=0.002) if right != 3 else Reply(echoes[number % len(echoes)].encode(), 500, after_s=0.002)

    with serving(behave) as server:
        result = _load(profile, server.url, "--header", "Authorization: Bearer ${API_TOKEN}")
        assert server.requested.total() > 4 * len(echoes)
    assert result.exit_code in MEASURED, result.output
    assert (profile.parent / "load.json").read_text(encoding="utf-8").count("[hidden]") >= len(echoes)
    parts = ["Zq8<", "Zq8&", "Zq8%3c", "Zq8%3C", "Zq8\\", "456789abcd", "NDU2Nzg5", "Q1Njc4O", "0NTY3ODk", other]
    for name, text in _everything(profile.parent, result):
        for part in parts:
            assert part not in text, (name, part)


def test_a_rejected_header_is_computed_again_for_the_next_step(profile: Path, tmp_path: Path) -> None:
    """A token may be withdrawn early. Only the step in which that happens is lost."""
    tokens = tmp_path / "tokens"
    script = tmp_path / "token.sh"
    script.write_text(f'echo made >> {tokens}; echo "Bearer token-$(wc -l < {tokens})"\n', encoding="utf-8")

    def behave(request: Asked) -> Reply:
        wanted = "Bearer token-1" if request.number == 0 else "Bearer token-2"
        right = request.headers["authorization"] == wanted
        return Reply(after_s=0.002) if right else Reply(b"{}", 401, after_s=0.002)

    with serving(behave) as server:
        result = _load(
            profile, server.url, "--header-command", f"Authorization: sh {script}", "--set", "search.times=2"
        )
    assert result.exit_code in MEASURED, result.output
    assert tokens.read_text(encoding="utf-8") == "made\n" * 2
    steps = json.loads((profile.parent / "load.json").read_text(encoding="utf-8"))
    assert steps


def test_denied_access_is_reported_before_any_load(profile: Path) -> None:
    """Otherwise the user would notice it only after an hour of errors."""
    with serving(_echo({"authorization": "Bearer right-one"})) as server:
        with pytest.raises(UsageError, match="status 401") as refused:
            _load(profile, server.url, "--header", "Authorization: Bearer wrong-one")
        assert server.requested.total() == 1
    assert "wrong-one" not in refused.value.message


def test_a_unix_socket_is_loaded(profile: Path) -> None:
    """Deployments behind a proxy on the same machine may listen on nothing else."""
    path = profile.parent / "api.sock"
    with serving(lambda _: Reply(after_s=0.002), socket_path=path) as server:
        result = _load(profile, server.url)
    assert result.exit_code == ExitCode.DONE, result.output
    assert "known" in (profile.parent / "load.json").read_text(encoding="utf-8")
    with pytest.raises(EnvironmentFailure, match=r"` of .* failed: "):
        _load(profile, f"unix:{profile.parent}/nobody.sock")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_client_certificate_is_presented(profile: Path, tmp_path: Path) -> None:
    """The server requires one, and aborts the handshake of clients without it."""
    (tmp_path / "client").mkdir()
    _, identity = self_signed(tmp_path / "client", "tester")
    context, authority = self_signed(tmp_path, "127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(identity)
    with serving(lambda _: Reply(after_s=0.002), context) as server:
        known = ("--cert", str(identity), "--key", str(tmp_path / "client" / "key.pem"), "--insecure")
        assert _load(profile, server.url, *known).exit_code == ExitCode.DONE
        with pytest.raises(EnvironmentFailure, match=r"` of .* failed: "):
            _load(profile, server.url, "--ca-file", str(authority), "--insecure")


def test_request_and_response_bodies_are_compressed_on_demand(profile: Path) -> None:
    """Only with compression does the test measure the real cost of such an API for its server."""
    wrong: list[Asked] = []

    def behave(request: Asked) -> Reply:
        codings = [request.headers.get(name) for name in ("accept-encoding", "content-encoding")]
        if codings != ["gzip", "gzip"] or gzip.decompress(request.body) != b'{"ask": 1}':
            wrong.append(request)
        right = gzip.compress(b'{"right":true}', mtime=0)
        return Reply(right, after_s=0.002, content_type="application/json\r\nContent-Encoding: gzip")

    with serving(behave) as server:
        result = _load(profile, server.url, "--header", "Accept-Encoding: gzip", "--set", "steps.request_coding=gzip")
    assert not wrong
    assert result.exit_code == ExitCode.DONE, result.output


def test_a_redirect_is_reported_and_not_followed(profile: Path) -> None:
    """Otherwise a server other than the named one would be loaded."""
    with serving(lambda _: Reply(b"", 301, content_type="text/plain\r\nLocation: /login?session=of-nobody")) as server:
        with pytest.raises(UsageError, match="a redirect to /login"):
            _load(profile, server.url)
        assert set(server.requested) == {"/work"}


MESH_PROFILE = """
system = "mesh"
sla = { p99_s = 10.0, error_share = 0.5 }
steps = { duration_s = 1, longest_s = 1, warm_up_s = 0.1, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = [] }
fixed = { times = 1, duration_s = 1, clients = { block = [2] } }
corpus = { settled_blocks = 0, blocks = 10, transactions = 10, accounts = 10, per_stratum = 3 }
"""


def _mesh(token: str) -> Behaviour:
    """A Mesh server that requires the token. The token appears in its documents and, under overload, in its errors."""
    script = chain()

    def behave(request: Asked) -> Reply:
        if request.headers.get("authorization") != f"Bearer {token}":
            return Reply(b"who are you?", 401)
        if request.path not in script:
            return Reply(b"404 page not found", 404, content_type="text/plain")
        reply = script[request.path](json.loads(request.body))
        assert not isinstance(reply, str)
        status, _, text = reply
        document = json.loads(text)
        if "block" in document:
            document["block"]["metadata"] = {"asked": dict(request.headers), "by": [token]}
            if request.number > 150 and request.number % 4 == 0:
                status, document = 500, {"code": 1, "message": f"tired of {token}", "retriable": True}
        return Reply(json.dumps(document).encode(), status, 0.002)

    return behave


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_mesh_server_is_sampled_and_loaded_with_credentials(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests before the load are made by a different client than the load and need the same credentials."""
    monkeypatch.setenv("API_TOKEN", TOKEN)
    profile.write_text(MESH_PROFILE, encoding="utf-8")
    (tmp_path / "client").mkdir()
    _, identity = self_signed(tmp_path / "client", "tester")
    context, _ = self_signed(tmp_path, "127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(identity)
    token = ("--header", "Authorization: Bearer ${API_TOKEN}")
    known = (*token, "--cert", str(identity), "--key", str(tmp_path / "client" / "key.pem"), "--insecure")
    with serving(_mesh(TOKEN), context) as server:
        sampled = command("corpus", "mesh", server.url, "--out", str(tmp_path / "corpus.json"), *known)
        result = _load(profile, server.url, *known)
        assert server.requested["/block"] > 100
        with pytest.raises(EnvironmentFailure):
            _load(profile, server.url, *token, "--insecure")
        with pytest.raises(UsageError, match="401"):
            _load(profile, server.url, *known[2:])
    assert result.exit_code in MEASURED, result.output
    assert sampled.exit_code == ExitCode.DONE, sampled.output
    assert "tired of [hidden]" in (profile.parent / "load.json").read_text(encoding="utf-8")
    for name, text in [*_everything(profile.parent, result), ("corpus", sampled.output)]:
        for form in _forms(TOKEN):
            assert form not in text, (name, form)
