"""Values that must not be written anywhere."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.secrets import HIDDEN, SHORTEST, Secrets, is_secret_name

VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST, max_size=30)


@given(VALUES, VALUES)
def test_no_form_of_a_secret_is_left(one: str, other: str) -> None:
    secrets = Secrets([one, other])
    for value in (one, other):
        encoded = base64.b64encode(value.encode()).decode()
        for form in (value, quote(value, safe=""), json.dumps(value)[1:-1], encoded, encoded.rstrip("=")):
            assert form not in secrets.hide(f"« {form} »").replace(HIDDEN, "")


def test_texts_without_secrets_stay_as_they_are() -> None:
    value = {"message": ["right", 1, None, {"deep": True}]}
    assert Secrets().hide_in(value) == value
    assert Secrets(["abc"]).hide("abcabc") == "abcabc"  # too short to be hidden anywhere
    assert Secrets(["secret"]).hide_in({"a secret": ["the secret", 2]}) == {f"a {HIDDEN}": [f"the {HIDDEN}", 2]}


def test_names_that_let_somebody_in() -> None:
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
