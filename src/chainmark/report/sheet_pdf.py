"""A sheet as PDF: the same content in the same order as the HTML, set by Typst."""

from __future__ import annotations

import dataclasses
from typing import Any

from chainmark.report.chart import Chart
from chainmark.report.sheet import Block, Definitions, Listing, Remarks, Sheet, Table, in_groups, padded
from chainmark.report.typeset import typeset
from chainmark.report.vega import on_paper

# A list of contents of more lines than half a page has the sections alone.
_LONGEST_CONTENTS = 40


def render_sheet_pdf(sheet: Sheet) -> bytes:
    """The sheet on paper. A prediction has no date, so the file has none."""
    data: dict[str, Any] = {
        "kind": sheet.kind,
        "title": sheet.title,
        "subtitle": sheet.subtitle,
        "tone": sheet.tone,
        "word": sheet.word,
        "sentence": sheet.sentence,
        "notes": sheet.notes,
        "digest": sheet.digest,
        "contents": sheet.contents,
        "contents-depth": 1 if sum(len(one.blocks) for one in sheet.sections) > _LONGEST_CONTENTS else 2,
        "sections": [
            {
                "title": section.title,
                "blocks": [_block(block) for block in section.blocks],
            }
            for section in sheet.sections
        ],
    }
    return typeset("sheet.typ", data)


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Table):
        return {"kind": "table", **_table(block)}
    if isinstance(block, Listing):
        return {"kind": "listing", "title": block.title, "entries": block.entries, "note": ""}
    if isinstance(block, Definitions):
        entries = [dataclasses.asdict(entry) for entry in block.entries]
        return {"kind": "definitions", "title": block.title, "entries": entries, "note": ""}
    if isinstance(block, Remarks):
        return {"kind": "remarks", "title": block.title, "items": block.items, "note": ""}
    return {"kind": "figure", **_figure(block)}


def _figure(chart: Chart) -> dict[str, Any]:
    svgs, note = on_paper(chart)
    return {"title": chart.title, "svgs": svgs, "note": note}


def _table(table: Table) -> dict[str, Any]:
    """A table in groups of columns, so that one that is too wide can go on below."""
    columns: list[dict[str, Any]] = []
    for index, column in enumerate(table.columns):
        cells = table.column(index)
        texts = padded(cells) if column.kind == "figures" else [cell.text for cell in cells]
        columns.append(
            {
                "heading": column.heading,
                "group": column.group,
                "kind": column.kind,
                "cells": [
                    {"text": text, "tail": cell.tail, "emphasis": cell.emphasis,
                     "bar": None if cell.bar is None else dataclasses.asdict(cell.bar)}
                    for text, cell in zip(texts, cells, strict=True)
                ],
            }
        )  # fmt: skip
    groups = [[columns[place] for place in places] for places in in_groups(table.columns)]
    return {
        "title": table.title,
        "names": columns[0],
        "groups": groups,
        "seconds": [row.second for row in table.rows],
        "note": " ".join(table.notes),
    }
