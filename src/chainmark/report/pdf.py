"""A document as PDF: the same content in the same order as the HTML, set by Typst."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from chainmark.report.blocks import (
    Block,
    Definitions,
    Details,
    Listing,
    Remarks,
    Table,
    TableCell,
    chart_anchor,
    in_groups,
    padded,
)
from chainmark.report.chart import Chart
from chainmark.report.content import Content
from chainmark.report.typeset import typeset
from chainmark.report.vega import on_paper

# A list of contents of more lines than half a page has the sections alone.
_LONGEST_CONTENTS = 40


def pdf_of(document: Content) -> bytes:
    """The document on paper. A document without a date gives a file without one."""
    document = document.seen_on("pdf")
    data: dict[str, Any] = {
        "kind": document.kind,
        "title": document.title,
        "page-title": document.page_title,
        "subtitle": document.subtitle,
        "tone": document.tone,
        "word": document.word,
        "sentence": document.sentence,
        "notes": document.notes,
        "digest": document.digest,
        "author": document.author,
        "dated": document.date != "",
        "contents": document.contents,
        "contents-depth": 1 if sum(len(one.blocks) for one in document.sections) > _LONGEST_CONTENTS else 2,
        "anchors": sorted(_anchors(document.blocks())),
        "sections": [{"title": section.title, "blocks": _blocks(section.blocks)} for section in document.sections],
    }
    return typeset("document.typ", data, _timestamp(document.date) if document.date else None)


def _timestamp(date: str) -> datetime.datetime:
    """The document's date as a time: the clock of the machine must not enter the file."""
    try:
        parsed = datetime.datetime.fromisoformat(date.replace("Z", "+00:00"))
    except ValueError:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return parsed.replace(tzinfo=datetime.UTC) if parsed.tzinfo is None else parsed.astimezone(datetime.UTC)


def _anchors(blocks: Iterable[Block]) -> Iterator[str]:
    """Where links on paper can lead; a link to anything else is set as plain words."""
    for block in blocks:
        if isinstance(block, Table):
            yield from (row.anchor for row in block.rows if row.anchor)
        elif isinstance(block, Definitions):
            yield from (entry.anchor for entry in block.entries if entry.anchor)
        elif isinstance(block, Chart):
            yield chart_anchor(block.id)
        elif isinstance(block, Details):
            yield from _anchors(block.blocks)


def _blocks(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """The blocks; halves that follow each other stand beside each other."""
    made: list[dict[str, Any]] = []
    for are_halves, group in groupby(blocks, key=lambda block: isinstance(block, Chart) and block.half):
        entries = [_block(block) for block in group]
        made += [{"kind": "halves", "title": "", "note": "", "entries": entries}] if are_halves else entries
    return made


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Table):
        return {"kind": "table", **_table(block)}
    if isinstance(block, Listing):
        return {"kind": "listing", "title": block.title, "entries": block.entries, "note": ""}
    if isinstance(block, Definitions):
        entries = [dataclasses.asdict(entry) for entry in block.entries]
        return {"kind": "definitions", "title": block.title, "entries": entries, "note": ""}
    if isinstance(block, Remarks):
        items = [[dataclasses.asdict(part) for part in item.parts] for item in block.remarks()]
        return {"kind": "remarks", "title": block.title, "items": items, "note": ""}
    if isinstance(block, Details):
        return {"kind": "details", "title": block.summary, "blocks": _blocks(block.blocks), "note": ""}
    return {"kind": "figure", **_figure(block)}


def _figure(chart: Chart) -> dict[str, Any]:
    # What stands beside a chart on a screen leads to what paper does not have.
    svgs, note = on_paper(chart)
    return {"title": chart.title, "svgs": svgs, "note": note, "anchor": chart_anchor(chart.id)}


def _table(table: Table) -> dict[str, Any]:
    """A table in groups of columns, so that one that is too wide can go on below."""
    columns: list[dict[str, Any]] = []
    for index, column in enumerate(table.columns):
        cells = table.column(index)
        texts = padded(cells) if column.kind == "figures" else [(cell.text, cell.tail) for cell in cells]
        columns.append(
            {
                "heading": column.heading,
                "group": column.group,
                "kind": column.kind,
                "tails": any(tail for _, tail in texts),
                "cells": [_cell(text, tail, cell) for (text, tail), cell in zip(texts, cells, strict=True)],
            }
        )
    groups = [[columns[place] for place in places] for places in in_groups(table.columns)]
    rows = [
        {
            "second": row.second,
            "emphasis": row.emphasis,
            "anchor": row.anchor,
            "leads-to": row.links[0].target if row.links else "",
            "tag": row.tag,
        }
        for row in table.rows
    ]
    return {
        "title": table.title,
        "names": columns[0],
        "groups": groups,
        "rows": rows,
        "dense": table.dense,
        "note": " ".join(table.notes),
    }


def _cell(text: str, tail: str, cell: TableCell) -> dict[str, Any]:
    return {
        "text": text,
        "tail": tail,
        "emphasis": cell.emphasis,
        "bar": None if cell.bar is None else dataclasses.asdict(cell.bar),
        "phrases": [dataclasses.asdict(part) for part in cell.phrases],
        "notes": list(cell.notes),
    }
