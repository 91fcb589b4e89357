"""The stored access of a plan is enough to resume it and contains no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm
from chainmark.capacity.stored_access import restored, stored_access
from chainmark.core.errors import UsageError

SET = {"TOKEN": "s3cr3t-token", "PASSWORD": "s3cr3t-word"}


@pytest.mark.parametrize(
    ("headers", "missing"),
    [
        ({"headers": ["X-Network: preprod"]}, []),
        ({"headers": ["Authorization: Bearer ${TOKEN}"]}, []),
        ({"headers": ["Authorization: Bearer s3cr3t-token"]}, ["--header 'Authorization: …'"]),
        # The text next to a variable may be the secret.
        ({"headers": ["X-Any: s3cr3t-word${TOKEN}"]}, ["--header 'X-Any: …'"]),
        ({"commands": ["Authorization: echo s3cr3t-word"]}, ["--header-command 'Authorization: …'"]),
        ({"user": "me:${PASSWORD}"}, []),
        ({"user": "me:s3cr3t-word"}, ["--user 'NAME:…'"]),
        ({"user": "me:s3cr3t-word${PASSWORD}"}, ["--user 'NAME:…'"]),
        ({"proxy": "http://127.0.0.1:3128"}, []),
        ({"proxy": "http://me:${PASSWORD}@127.0.0.1:3128"}, []),
        ({"proxy": "http://me:s3cr3t-word@127.0.0.1:3128"}, ["--proxy 'http://NAME:…'"]),
    ],
)
def test_a_stored_access_authorizes_requests_again_and_contains_no_secret(
    headers: dict[str, str], missing: list[str]
) -> None:
    access = cm.Access(**headers, environment=SET)  # type: ignore[arg-type]
    stored = stored_access(access)
    assert "s3cr3t" not in stored.model_dump_json()
    assert list(stored.missing.values()) == missing
    nobody = cm.Access(environment=SET)
    if missing:
        with pytest.raises(UsageError, match="not stored because it is secret"):
            restored(stored, nobody, "plan-1")
    again = restored(stored, access if missing else nobody, "plan-1")
    assert again.values() == access.values()
    assert again.way == access.way


def test_newly_given_values_override_stored_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are found from any working directory. A newly given token replaces a stored user name and password."""
    monkeypatch.chdir(tmp_path)
    Path("key.txt").write_text("s3cr3t-key", encoding="utf-8")
    stored = stored_access(cm.Access(["X-Key: @key.txt"], user="me:${PASSWORD}", environment=SET))
    monkeypatch.chdir("/")
    again = restored(stored, cm.Access(["Authorization: Bearer other"], environment=SET), "plan-1")
    assert again.values() == [("Authorization", "Bearer other"), ("X-Key", "s3cr3t-key")]
