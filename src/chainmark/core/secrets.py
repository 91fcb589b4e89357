"""Values that must not be written anywhere, because they grant access, and their replacement in texts."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
# A shorter text is part of many words: replacing it would hide nothing and spoil the rest.
SHORTEST = 4
# Where a text was truncated for a message; the text before it may be the beginning of a secret.
CUT = "…"
# At the end of a text without a truncation mark, fewer characters match by chance.
_SHORTEST_BEGINNING = 8
# Of the base64 of a longer text around a secret: fewer characters match by chance.
_SHORTEST_INNER = 12
_SECRET_NAMES = re.compile(r"auth|cookie|token|secret|password|credential|signature|session|api[-_]?key", re.IGNORECASE)
# Headers whose value is secret in any text, whatever the sender: `Cookie: a=b; c=d`, `"authorization": "Bearer abc"`.
_HEADER_NAMES = r"(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token"
_HEADER = re.compile(
    rf"\b({_HEADER_NAMES})(\\?[\"']?\s*[:=]\s*\\?[\"']?)((?!\[hidden\])[^\"'\r\n\\]{{4,}})", re.IGNORECASE
)
_HEADER_KEY = re.compile(_HEADER_NAMES, re.IGNORECASE)
_USER = re.compile(r"(?:(?<=//)|(?<==)|^)([^/?#@\s:]*):[^/?#\s]*@")


def is_secret_name(name: str) -> bool:
    """Whether a header of this name is a credential, whatever its value is."""
    return _SECRET_NAMES.search(name) is not None


def without_password(url: str) -> str:
    """An address in printable form, whether or not it is valid: `http://user:***@host`."""
    return _USER.sub(r"\1:***@", url)


class Secrets:
    """Values to hide, in every form in which a server or a library may repeat them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._forms: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._heads: re.Pattern[str] | None = None
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: str) -> None:
        """Hide this from now on."""
        if len(value) < SHORTEST or value in self._values:
            return
        self._values.add(value)
        # The longest first: a password is part of what `Authorization` holds.
        self._forms = sorted(
            {form for item in self._values for form in _forms(item)}, key=lambda form: (-len(form), form)
        )
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))
        # By lookahead, because they may overlap.
        beginnings = sorted({form[:SHORTEST] for form in self._forms})
        self._heads = re.compile(f"(?={'|'.join(map(re.escape, beginnings))})")

    def hide(self, text: str) -> str:
        """The text without them, and without the values of headers that are secret by their names."""
        if self._pattern:
            text = self._hide_cut(self._pattern.sub(HIDDEN, text))
        # Most texts are names and hashes.
        return _HEADER.sub(rf"\1\2{HIDDEN}", text) if ":" in text or "=" in text else text

    def hide_in(self, value: Any) -> Any:
        """The same for every text in a JSON value, keys included."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hide(str(key)): self._hide_member(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(item) for item in value]
        return value

    def _hide_member(self, key: str, value: Any) -> Any:
        return HIDDEN if isinstance(value, str) and _HEADER_KEY.fullmatch(key) else self.hide_in(value)

    def _hide_cut(self, text: str) -> str:
        """Replace the beginning of a secret at a truncation, by chainmark or by the sender."""
        *cut, last = text.split(CUT)
        return CUT.join([*(self._without_beginning(item, SHORTEST) for item in cut), self._without_beginning(last)])

    def _without_beginning(self, text: str, shortest: int = _SHORTEST_BEGINNING) -> str:
        matches = self._heads.finditer(text, max(0, len(text) - len(self._forms[0]))) if self._heads else ()
        for head in matches:
            end = text[head.start() :]
            if len(end) >= shortest and any(form.startswith(end) for form in self._forms):
                return text[: head.start()] + HIDDEN
        return text


def _forms(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode()).decode()
    quoted, in_json = quote(value, safe=""), json.dumps(value)[1:-1]
    return {
        value,
        quoted,
        quote_plus(value),
        quote(value),
        re.sub("%..", lambda match: match[0].lower(), quoted),
        html.escape(value),
        html.escape(value, quote=False),
        html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
        in_json,
        json.dumps(value, ensure_ascii=False)[1:-1],
        # As PHP writes JSON, and as Go does.
        in_json.replace("/", "\\/"),
        in_json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        encoded,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
        *_within_base64(value.encode()),
    }


def _within_base64(value: bytes) -> Iterator[str]:
    """The part of this text's base64 that the base64 of any longer text around it contains, at any offset."""
    for before, first in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + value).decode()
        inner = encoded[first : (before + len(value)) * 8 // 6]
        if len(inner) >= _SHORTEST_INNER:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
