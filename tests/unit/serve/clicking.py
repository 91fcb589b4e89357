"""A reader who follows links. Pages are read as text with links and forms."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import httpx

_LINK = re.compile(r"<a\b([^>]*)>(.*?)</a>", re.DOTALL)
_FORM = re.compile(r'<form\b[^>]*action="([^"]+)"[^>]*>(.*?)</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


class Reader:
    """A reader of one page, who can open the next one."""

    def __init__(self, client: httpx.Client, address: str) -> None:
        self.client, self.page = client, ""
        self._load(address)

    def _load(self, address: str) -> None:
        answer = self.client.get(address)
        assert answer.status_code == 200, f"{address}: {answer.text[:300]}"
        self.page = answer.text

    @property
    def text(self) -> str:
        """The visible text in one line."""
        seen = re.sub(r"<(script|style|dialog)\b.*?</\1>", " ", self.page, flags=re.DOTALL)
        return _plain(re.sub(r"<[^>]+>", " ", seen))

    def click(self, name: str) -> None:
        """Follow the first link whose name matches."""
        for attributes, shown in _LINK.findall(self.page):
            label = re.search(r'aria-label="([^"]*)"', attributes)
            if re.search(name, _plain(label[1] if label else re.sub(r"<[^>]+>", "", shown))):
                address = re.search(r'href="([^"]*)"', attributes)
                assert address is not None
                self._load(unescape(address[1]))
                return
        raise AssertionError(f"no link is called {name!r}: {[shown for _, shown in _LINK.findall(self.page)][:60]}")

    def send(self, action: str, **fields: str) -> None:
        """Fill in the form with this action and submit it."""
        content = next(content for address, content in _FORM.findall(self.page) if address == action)
        hidden = {name: unescape(value) for name, value in _HIDDEN.findall(content)}
        self._load(f"{action}?{urlencode(hidden | fields)}")


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(text).replace("\u00a0", " ")).strip()
