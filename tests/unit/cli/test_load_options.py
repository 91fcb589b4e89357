"""Options of `chainmark load`, as parsed before the first request."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.api.loading import parse_target
from chainmark.capacity.model import Tls
from chainmark.cli.output import numbered
from chainmark.core.errors import UsageError

from tests.unit.cli.commands import chainmark


@pytest.mark.parametrize(
    ("text", "index", "name", "url"),
    [
        ("http://127.0.0.1:8082", 0, "server", "http://127.0.0.1:8082"),
        ("http://127.0.0.1:8082/", 1, "server-2", "http://127.0.0.1:8082"),
        ("old=https://node/rosetta", 0, "old", "https://node/rosetta"),
        # An `=` in a path or query does not separate a name.
        ("http://host/a=b", 0, "server", "http://host/a=b"),
        ("unix:/run/mesh.sock", 0, "server", "unix:/run/mesh.sock"),
        ("unix:///run/mesh.sock", 0, "server", "unix:/run/mesh.sock"),
        ("http+unix://%2Frun%2Fmesh.sock", 0, "server", "unix:/run/mesh.sock"),
        ("new=unix:/run/a@b#c.sock", 1, "new", "unix:/run/a@b#c.sock"),
        ("http://user:pass=%40word@host:80/v1", 0, "server", "http://host:80/v1"),
    ],
)
def test_targets_are_parsed(text: str, index: int, name: str, url: str) -> None:
    target = parse_target(text, index, Tls())
    assert (target.name, target.url) == (name, url)


@pytest.mark.parametrize("text", ["127.0.0.1:8082", "old=node:80", "ftp://host", "="])
def test_an_invalid_target_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid server URL"):
        parse_target(text, 0, Tls())


@pytest.mark.parametrize(
    "text", ["tester:passw0rd@127.0.0.1:8082", "old=ftp://tester:passw0rd@host", "a=tester:passw0rd@b"]
)
def test_an_invalid_target_is_reported_without_its_password(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_target(text, 0, Tls())
    assert "passw0rd" not in refused.value.message
    assert "tester:***@" in refused.value.message


@pytest.mark.parametrize("text", ["http://tester:passw/0rd@host", "a=https://tester:passw?0rd@host:80"])
def test_a_password_that_breaks_its_url_is_not_printed(text: str) -> None:
    """A slash in the password ends the host, and the password is parsed as the port."""
    with pytest.raises(UsageError, match="is not a number") as refused:
        parse_target(text, 0, Tls())
    assert "passw" not in refused.value.message


def test_text_after_the_host_is_not_a_password() -> None:
    """Otherwise requests would be sent to the host named in the query."""
    target = parse_target("http://host?next=me@other", 0, Tls())
    assert target.url == "http://host?next=me@other"
    assert not target.access.values()


def test_two_targets_with_one_name_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path))
    with pytest.raises(UsageError, match="two targets are called `a`"):
        chainmark("load", "http/example", "--target", "a=http://127.0.0.1:1", "--target", "a=http://127.0.0.1:2")


def test_a_system_without_request_load_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path))
    with pytest.raises(UsageError, match="cannot send requests to `cometbft`"):
        chainmark("load", "cometbft/demo", "--target", "http://127.0.0.1:1")


def test_every_repetition_has_its_own_file() -> None:
    assert [str(numbered(Path("out/load.xml"), n)) for n in (1, 2, 12)] == [
        "out/load.xml",
        "out/load-2.xml",
        "out/load-12.xml",
    ]
