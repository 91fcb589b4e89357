"""Read the compressed content of a report page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from decimal import Decimal
from itertools import accumulate, islice
from typing import Any


def unpacked(page: str, id_: str) -> str:
    """The text of a compressed script in a page."""
    match = re.search(rf'id="{id_}">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return written_out(gzip.decompress(base64.b85decode(match[1].replace(",", "<"))))


def written_out(content: bytes) -> str:
    """Text whose step lists are expanded to numbers, as the page's script does."""
    text, _, folded = content.partition(b"\0")
    lists = re.compile("\x01(\\d+):(\\d+)")
    count = sum(int(size) for _, size in lists.findall(text.decode()))
    numbers = (int.from_bytes(folded[at::count], "little") for at in range(count))
    steps = (-(number + 1) // 2 if number % 2 else number // 2 for number in numbers)

    def figures(match: re.Match[str]) -> str:
        values = accumulate(islice(steps, int(match[2])))
        return ",".join(_figure(value, int(match[1])) for value in values)

    return lists.sub(figures, text.decode())


def _figure(value: int, places: int) -> str:
    whole, _, decimals = f"{Decimal(value).scaleb(-places):f}".partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"


def drawn_rows(page: str, chart: str, data: str = "points") -> list[dict[str, Any]]:
    """The rows of a chart's data set, as the page's script builds them."""
    columns = json.loads(unpacked(page, "chart-data"))["charts"][chart]["data"][data]
    read = {
        name: column if isinstance(column, list) else [column["labels"][place] for place in column["at"]]
        for name, column in columns.items()
    }
    return [dict(zip(read, values, strict=True)) for values in zip(*read.values(), strict=True)]


def unfolded(page: str) -> str:
    """The page after its script has filled in the folded parts."""
    parts: list[str] = json.loads(unpacked(page, "folded-data"))

    def filled(text: str) -> str:
        place = r'<div data-folded="(\d+)"></div>'
        return re.sub(place, lambda match: filled(parts[int(match[1])]), text)

    return filled(page)
