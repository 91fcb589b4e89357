"""A sheet as PDF: the same content in the same order as the HTML, set by Typst."""

from __future__ import annotations

import dataclasses
from itertools import groupby
from typing import Any

from chainmark.report.model_charts import LINE_COLOURS
from chainmark.report.sheet import Figure, Sheet, Table, padded
from chainmark.report.typeset import typeset
from chainmark.report.vega import svg_of


def render_sheet_pdf(sheet: Sheet) -> bytes:
    """The sheet on paper. A prediction has no date, so the file has none."""
    data: dict[str, Any] = {
        "kind": sheet.kind,
        "title": sheet.title,
        "subtitle": sheet.subtitle,
        "status": sheet.status,
        "word": sheet.word,
        "sentence": sheet.sentence,
        "notes": sheet.notes,
        "digest": sheet.digest,
        "sections": [
            {
                "title": section.title,
                "blocks": [_table(block) if isinstance(block, Table) else _figure(block) for block in section.blocks],
            }
            for section in sheet.sections
        ],
    }
    return typeset("sheet.typ", data)


def _figure(figure: Figure) -> dict[str, Any]:
    svgs = [svg_of(spec, LINE_COLOURS) for spec in figure.paper]
    return {"figure": True, "title": figure.title, "svgs": svgs, "note": figure.note}


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
    groups: list[list[dict[str, Any]]] = []
    for name, members in groupby(columns[1:], key=lambda column: str(column["group"])):
        found = list(members)
        groups += [found] if name else [[column] for column in found]
    return {
        "figure": False,
        "title": table.title,
        "names": columns[0],
        "groups": groups,
        "seconds": [row.second for row in table.rows],
        "note": " ".join(table.notes),
    }
