"""Printed tables as data frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from chainmark.core.units import MINUS
from chainmark.report.blocks import Block, Details, Table

_FIGURE = re.compile(r"([+-]?[\d,]+(?:\.\d+)?)(?: (\D*))?")


def frames_of(blocks: Iterable[Block]) -> dict[str, pl.DataFrame]:
    """The tables by their ids, including folded ones, but not those inside rows; of equal ids the first."""
    frames: dict[str, pl.DataFrame] = {}
    for table in _tables(blocks):
        if table.id not in frames:
            frames[table.id] = frame_of(table)
    return frames


def _tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Details):
            yield from _tables(block.blocks)


def frame_of(table: Table) -> pl.DataFrame:
    """The rows as printed: a column of figures with one unit has numbers, and the unit in its name."""
    columns: dict[str, pl.Series] = {}
    for index, column in enumerate(table.columns):
        if column.kind == "bar":
            continue
        texts = [cell.whole for cell in table.column(index)]
        numbers, unit = _numbers(texts) if column.kind == "figures" else (None, "")
        heading = ", ".join(filter(None, [f"{column.group} {column.heading}".strip() or "name", unit]))
        before = sum(name == heading or name.startswith(f"{heading} (") for name in columns)
        name = f"{heading} ({before + 1})" if before else heading
        columns[name] = pl.Series(name, texts if numbers is None else numbers, pl.String if numbers is None else None)
    return pl.DataFrame(list(columns.values()))


def _numbers(texts: Sequence[str]) -> tuple[list[float | None] | None, str]:
    """The figures with their common unit; None if a text is not a figure, or the units differ."""
    matches = [_FIGURE.fullmatch(text.replace(MINUS, "-")) if text else None for text in texts]
    units = {match[2] or "" for match in matches if match}
    if len(units) != 1 or any(text and match is None for text, match in zip(texts, matches, strict=True)):
        return None, ""
    return [float(match[1].replace(",", "")) if match else None for match in matches], units.pop()
