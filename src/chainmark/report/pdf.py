"""A document as PDF: the same content in the same order as the HTML, set by Typst."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from chainmark.core.units import FIGURE_SPACE, PUNCTUATION_SPACE
from chainmark.report.blocks import (
    Block,
    Column,
    Definition,
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
from chainmark.report.drawing import Drawing
from chainmark.report.page import template_text
from chainmark.report.phrases import Phrase, in_spans
from chainmark.report.typeset import Paper, typeset
from chainmark.report.vega import paper_drawings

# A table of contents longer than half a page lists only the sections.
_LONGEST_CONTENTS = 40
_BEFORE_CONTENTS = {"verdict", "validity", "main-charts"}  # sections at the start, which need no table of contents
# Words of at least this length may break after their joints; a key, a hash or a listing's line has few spaces.
_LONGEST_WORD, _LONGEST_KEY, _LONGEST_KEY_IN_COLUMN, _LONGEST_IN_LISTING = 14, 28, 44, 12
_LONGEST_MEASURED = 250  # letters: longer texts are wider than the page in any case
_BREAK = "\u200b"

_Drawn = Mapping[str, tuple[list[int], str]]  # by the chart: the indices of its drawings, and their note


def pdf_of(document: Content) -> bytes:
    """The document as PDF. A document without a date gives a file without one."""
    return typeset(paper_of(document))


def paper_of(document: Content) -> Paper:
    """The input of the PDF. Drawing and setting it takes most of the time, and needs nothing else of the document."""
    seen = document.seen_on("pdf")
    drawings: list[Drawing] = []
    drawn: dict[str, tuple[list[int], str]] = {}
    for chart in _charts(seen.blocks()):
        own, note = paper_drawings(chart)
        drawn[chart.id] = (list(range(len(drawings), len(drawings) + len(own))), note)
        drawings += own
    return Paper(
        template=template_text("document.typ"),
        report=json.dumps(_content(seen, drawn), sort_keys=True),
        drawings=drawings,
        time=_timestamp(document.date).isoformat() if document.date else None,
    )


def _content(document: Content, drawn: _Drawn) -> dict[str, Any]:
    """The template's input."""
    return {
        "kind": document.kind,
        "title": document.title,
        "heading": _words(document.title),
        "page-title": document.page_title,
        "subtitle": _words(document.subtitle),
        "tone": document.tone,
        "word": document.word,
        "sentence": _marked(document.sentence),
        "badges": list(document.caveats.badges),
        "caveats": [_marked(text) for text in document.caveats.sentences],
        "notes": [_marked(note) for note in document.notes],
        "digest": document.digest,
        "digest-in-parts": _breakable(document.digest, _LONGEST_KEY),
        "author": document.author,
        "dated": document.date != "",
        "contents": document.contents,
        "contents-depth": 1 if sum(1 + len(section.blocks) for section in document.sections) > _LONGEST_CONTENTS else 2,
        "contents-place": next(
            (index for index, section in enumerate(document.sections) if section.id not in _BEFORE_CONTENTS), 0
        ),
        "anchors": sorted(_anchors(document.blocks())),
        "sections": [
            {"title": section.title, "blocks": _blocks(section.blocks, drawn)} for section in document.sections
        ],
    }


def _timestamp(date: str) -> datetime.datetime:
    """The document's date as a time: the clock of the machine must not enter the file."""
    try:
        parsed = datetime.datetime.fromisoformat(date.replace("Z", "+00:00"))
    except ValueError:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return parsed.replace(tzinfo=datetime.UTC) if parsed.tzinfo is None else parsed.astimezone(datetime.UTC)


def _breakable(text: str, longest: int) -> str:
    """Text whose long words may break after their joints. Shorter ones stay whole, so that they can be searched for."""
    return re.sub(rf"\S{{{longest},}}", lambda match: _with_breaks(match[0]), text)


def _with_breaks(word: str) -> str:
    joints = re.sub(r"([./_\-:,=@])", rf"\1{_BREAK}", word)
    return re.sub(rf"([^\s{_BREAK}]{{18}})", rf"\1{_BREAK}", joints)


def _words(text: str) -> str:
    """Words for the template: a figure stays with its percent sign."""
    return _breakable(re.sub(r"([0-9]) %", "\\1\u00a0%", text), _LONGEST_WORD)


def _marked(text: str) -> str | list[str]:
    """Words for the template; if some of them are code, in parts that are alternately plain and code."""
    parts = in_spans(text)
    if len(parts) == 1:
        return _words(text)
    return [_breakable(part, _LONGEST_KEY) if index % 2 else _words(part) for index, part in enumerate(parts)]


def _phrase(part: Phrase) -> dict[str, Any]:
    text = _breakable(part.text, _LONGEST_KEY) if part.literal else _marked(part.text)
    return {"text": text, "target": part.target, "emphasis": part.emphasis, "literal": part.literal}


def _anchors(blocks: Iterable[Block]) -> Iterator[str]:
    """Targets of links on paper; a link to anything else is set as plain words."""
    for block in blocks:
        if isinstance(block, Table):
            yield from (row.anchor for row in block.rows if row.anchor)
        elif isinstance(block, Definitions):
            yield from (entry.anchor for entry in block.entries if entry.anchor)
        elif isinstance(block, Chart):
            yield chart_anchor(block.id)
        elif isinstance(block, Details):
            yield from _anchors(block.blocks)


def _charts(blocks: Iterable[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Details):
            yield from _charts(block.blocks)


def _blocks(blocks: Sequence[Block], drawn: _Drawn) -> list[dict[str, Any]]:
    """The blocks; adjacent halves are next to each other."""
    results: list[dict[str, Any]] = []
    for are_halves, group in groupby(blocks, key=lambda block: isinstance(block, Chart) and block.half):
        entries = [_block(block, drawn) for block in group]
        results += [{"kind": "halves", "title": "", "note": "", "entries": entries}] if are_halves else entries
    return results


def _block(block: Block, drawn: _Drawn) -> dict[str, Any]:
    if isinstance(block, Table):
        return {"kind": "table", **_table(block)}
    if isinstance(block, Listing):
        listed = [(_words(caption), _breakable(text, _LONGEST_IN_LISTING)) for caption, text in block.entries]
        return {"kind": "listing", "title": _words(block.title), "entries": listed, "note": ""}
    if isinstance(block, Definitions):
        entries = [_definition(entry) for entry in block.entries]
        return {"kind": "definitions", "title": _words(block.title), "entries": entries, "note": ""}
    if isinstance(block, Remarks):
        items = [[_phrase(part) for part in item.parts] for item in block.remarks()]
        return {"kind": "remarks", "title": _words(block.title), "items": items, "note": ""}
    if isinstance(block, Details):
        return {"kind": "details", "title": _words(block.summary), "blocks": _blocks(block.blocks, drawn), "note": ""}
    return {"kind": "figure", **_figure(block, drawn)}


def _figure(chart: Chart, drawn: _Drawn) -> dict[str, Any]:
    # The links next to a chart on a screen have no targets on paper.
    indices, note = drawn[chart.id]
    return {"title": _words(chart.title), "drawings": indices, "note": _marked(note), "anchor": chart_anchor(chart.id)}


def _definition(entry: Definition) -> dict[str, Any]:
    words = {name: _words(text) for name, text in dataclasses.asdict(entry).items()}
    return words | {"text": _marked(entry.text), "anchor": entry.anchor}


def _table(table: Table) -> dict[str, Any]:
    """A table in groups of columns, so that a table that is too wide can continue below."""
    columns = [
        _column(column, table.column(index), _LONGEST_KEY_IN_COLUMN if index else _LONGEST_KEY)
        for index, column in enumerate(table.columns)
    ]
    groups = [[columns[place] for place in indices] for indices in in_groups(table.columns)]
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
        "title": _words(table.title),
        "names": columns[0],
        "groups": groups,
        "rows": rows,
        "dense": table.dense,
        "note": _marked(" ".join(table.notes)),
    }


def _column(column: Column, cells: Sequence[TableCell], longest_key: int) -> dict[str, Any]:
    """One column, with the data to measure its cells.

    The shapes are measured; if that is exact, nothing else makes a cell wider. The cells of a flat column have the
    height of a line unless they are wrapped.
    """
    if column.kind == "figures":
        texts = padded(cells)
    elif column.kind == "intervals":
        texts = [(cell.whole, "") for cell in cells]
    else:
        texts = [(cell.text, cell.tail) for cell in cells]
    has_tails = column.kind == "figures" and any(tail for _, tail in texts)
    is_plain = column.kind == "words" and not any(cell.phrases or cell.notes or "`" in cell.text for cell in cells)
    return {
        "heading": _words(column.heading),
        "group": _words(column.group),
        "kind": column.kind,
        "tails": has_tails,
        "is-exact": is_plain or (column.kind in {"figures", "intervals", "bar"} and not has_tails),
        "is-flat": (is_plain or (column.kind == "figures" and not has_tails))
        and not any("\n" in text for text, _ in texts),
        "shapes": _shapes(text for text, _ in texts),
        "tail-shapes": _shapes(tail for _, tail in texts),
        "cells": [
            _cell(column.kind, text, tail if has_tails else None, cell, longest_key)
            for (text, tail), cell in zip(texts, cells, strict=True)
        ],
    }


def _shapes(texts: Iterable[str]) -> list[str]:
    """One text of each width: all digits have the same width, and so has the padding that replaces them."""
    as_digits = (re.sub(f"[0-9{FIGURE_SPACE}]", "0", text[:_LONGEST_MEASURED]) for text in texts)
    return list(dict.fromkeys(text.replace(PUNCTUATION_SPACE, ".") for text in as_digits))


def _cell(kind: str, text: str, tail: str | None, cell: TableCell, longest_key: int) -> Any:
    """The template's input for a cell: only the text if there is nothing else, as in most, so that they are cheap.

    The tail is None if no cell of the column has one. Tails are set in a separate column, even if they are empty.
    """
    looks = {"emphasis": cell.emphasis}
    if kind == "bar":
        return {"text": "", **looks, "bar": None if cell.bar is None else dataclasses.asdict(cell.bar)}
    if kind == "figures":
        figure = _figure_in_parts(text)
        is_bare = cell.emphasis == "plain" and tail is None
        return figure if is_bare else {"text": figure, **looks, "tail": (tail or "").replace(" ", "\u00a0")}
    if kind in {"badge", "intervals"}:
        return {"text": _words(text) if kind == "intervals" else text, **looks}
    shown = _breakable(text, longest_key) if kind == "code" else _marked(text)
    if cell.emphasis == "plain" and not cell.phrases and not cell.notes:
        return shown if kind == "words" else {"text": shown, **looks, "phrases": [], "notes": []}
    phrases = [_phrase(part) for part in cell.phrases]
    return {"text": shown, **looks, "phrases": phrases, "notes": [_words(note) for note in cell.notes]}


def _figure_in_parts(text: str) -> Any:
    """A figure; with padding: the figure, the number of digits and points that the padding is wide, and the tail."""
    match = re.fullmatch(f"(.*?)([{FIGURE_SPACE}{PUNCTUATION_SPACE}]+)(.*)", text, re.DOTALL)
    if match is None:
        return text
    figure, padding, unit = match.groups()
    return [figure, padding.count(FIGURE_SPACE), padding.count(PUNCTUATION_SPACE), unit]
