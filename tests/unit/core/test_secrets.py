"""Secrets must not appear in any output or file."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.secrets import HIDDEN, SHORTEST, Secrets, is_secret_name, without_password

VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST, max_size=30)


@given(VALUES, VALUES)
def test_every_encoding_of_a_secret_is_hidden(secret: str, other: str) -> None:
    secrets = Secrets([secret, other])
    for value in (secret, other):
        encoded = base64.b64encode(value.encode()).decode()
        for form in (value, quote(value, safe=""), json.dumps(value)[1:-1], encoded, encoded.rstrip("=")):
            assert form not in secrets.hide(f"« {form} »").replace(HIDDEN, "")


def test_texts_without_secrets_are_unchanged() -> None:
    value = {"message": ["right", 1, None, {"deep": True}]}
    assert Secrets().hide_in(value) == value
    assert Secrets(["abc"]).hide("abcabc") == "abcabc"  # too short to be hidden
    assert Secrets(["secret"]).hide_in({"a secret": ["the secret", 2]}) == {f"a {HIDDEN}": [f"the {HIDDEN}", 2]}


def test_names_of_credentials_are_recognised() -> None:
    for name in (
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "X-Api-Key",
        "x-apikey",
        "X-Auth-Token",
        "X-CSRF-Token",
    ):
        assert is_secret_name(name), name
    for name in ("Accept", "X-Network", "User-Agent", "Content-Type"):
        assert not is_secret_name(name), name


@given(VALUES, st.integers(SHORTEST, 29), st.text("äöü ", max_size=9))
def test_a_truncated_secret_is_hidden(value: str, length: int, before: str) -> None:
    assert Secrets([value]).hide(f"{before}{value[:length]}…") == f"{before}{HIDDEN}…"


@given(st.binary(max_size=9), st.binary(max_size=9), VALUES.filter(lambda value: len(value) > 12))
def test_a_secret_in_the_base64_of_a_longer_text_is_hidden(before: bytes, after: bytes, value: str) -> None:
    hidden = Secrets([value]).hide(base64.b64encode(before + value.encode() + after).decode())
    assert HIDDEN in hidden
    rest = "".join(hidden.split(HIDDEN))
    assert len(rest) <= 4 + len(base64.b64encode(before)) + len(base64.b64encode(after))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer some-ones", "Authorization: [hidden]"),
        ('{"authorization":"Basic YTpi","a":"b"}', '{"authorization":"[hidden]","a":"b"}'),
        ("Cookie: a=b; c=d\nX-Network: preprod", "Cookie: [hidden]\nX-Network: preprod"),
        ("set-cookie=abcdef", "set-cookie=[hidden]"),
        ("authorization is needed", "authorization is needed"),
    ],
)
def test_credential_headers_are_hidden_in_any_text(text: str, shown: str) -> None:
    assert Secrets().hide(text) == shown
    assert Secrets().hide_in([{"X-Api-Key": "abc", "said": text}]) == [{"X-Api-Key": HIDDEN, "said": shown}]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://tester:pass@host:81/v1?a=b@c", "https://tester:***@host:81/v1?a=b@c"),
        ("tester:pass@host", "tester:***@host"),
        ("https://tester:pa@ss@host", "https://tester:***@host"),
        ("a=tester:pass@host", "a=tester:***@host"),
        ("ftp://tester:a:b@host", "ftp://tester:***@host"),
        ("http://host:81/a:b@c", "http://host:81/a:b@c"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
