"""What must not be written anywhere: values that let somebody in, and their replacement in texts."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
# A shorter text is in every second word: replacing it would hide nothing and spoil the rest.
SHORTEST = 4
_SECRET_NAMES = re.compile(r"auth|cookie|token|secret|password|credential|signature|session|api[-_]?key", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a header of this name lets somebody in, whatever its value is."""
    return _SECRET_NAMES.search(name) is not None


class Secrets:
    """Values to hide, in every form in which a server or a library may repeat them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Hide this from now on."""
        if len(value) < SHORTEST or value in self._values:
            return
        self._values.add(value)
        forms = {form for one in self._values for form in _forms(one)}
        # The longest first: a password is part of what `Authorization` holds.
        self._pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))

    def hide(self, text: str) -> str:
        """The text without them."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def hide_in(self, value: Any) -> Any:
        """The same for every text in a JSON value, keys included."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hide(key) if isinstance(key, str) else key: self.hide_in(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(one) for one in value]
        return value


def _forms(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode()).decode()
    return {
        value,
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        encoded,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    }
