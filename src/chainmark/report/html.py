"""A document as one HTML file that opens offline: it contains everything it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from chainmark.report.blocks import Block, Column, Remarks, Table
from chainmark.report.cells import is_prose, plain_cells, plain_name
from chainmark.report.chart import Chart
from chainmark.report.content import Content
from chainmark.report.page import (
    charts_payload,
    environment,
    packed,
    source_hash,
    style_text,
    template_text,
    vega_bundle,
)
from chainmark.report.steps import in_steps

_MOST_UNPACKED = 50_000  # characters that are folded
_FEW_COLUMNS = 3  # with fewer or equal, sentences fit next to the others on a narrow screen
_PLACE = re.compile(r'<div data-folded="(\d+)"></div>')


def page_of(document: Content) -> str:
    """The document as a single self-contained page; the same document gives the same text."""
    document = document.seen_on("html")
    folded = _Folded()
    css = style_text()
    script = Markup(template_text("rows.js") + template_text("document.js"))  # noqa: S704 - our own files
    vega = vega_bundle()
    return environment().get_template("document.html.j2").render(
        document=document,
        **{"with": _HELPERS | {"folded": folded.put}},
        folded=folded,
        css=css,
        style_sources=source_hash(css),
        script=script,
        script_sources=Markup(f"{source_hash(script)} {vega.source}"),  # noqa: S704 - hashes
        vega=vega.letters,
        source=packed(in_steps(document.json)),
        charts=charts_payload(document.charts()),
    )  # fmt: skip


def served_page_of(document: Content, package: str, plot: Callable[[Chart], Markup], frame: Mapping[str, Any]) -> str:
    """The document as a page of a server: nothing is packed in it, and it is readable without a script.

    Args:
        document: the document.
        package: its template `site.html.j2` is the page's frame.
        plot: renders a chart.
        frame: further context of that template.
    """
    template = environment(package).get_template("site.html.j2")
    return template.render(document=document.seen_on("html"), **{"with": _HELPERS | {"plot": plot}}, **frame)


def fragment_of(document: Content) -> str:
    """The form for a notebook: the verdict and the first section, without charts and without scripts."""
    seen = document.seen_on("html")
    first = seen.sections[0].blocks if seen.sections else []
    return environment().get_template("fragment.html.j2").render(
        document=seen,
        shown=[block for block in first if not isinstance(block, Chart)],
        **{"with": _HELPERS},
        css=Markup(re.sub(r"(?m)^(:root|body|html)\b", ".chainmark", style_text())),  # noqa: S704
    )  # fmt: skip


class _Folded:
    """The parts that a page shows only when unfolded: most of a long page, and nine tenths of it are repetition."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def put(self, part: Markup) -> Markup:
        """Store a part, and return its placeholder."""
        self.parts.append(part)
        return Markup(f'<div data-folded="{len(self.parts) - 1}"></div>')  # noqa: S704 - a number

    def unpacked_if_short(self, main: Markup) -> Markup:
        """The page with its parts in place if they are short: such a page is readable without a script."""
        if sum(map(len, self.parts)) > _MOST_UNPACKED:
            return main
        parts, self.parts = self.parts, []
        return Markup(_filled(main, parts))  # noqa: S704 - what was taken out of it

    def payload(self) -> Markup:
        """The parts for the page's script, packed."""
        return packed(json.dumps(self.parts, ensure_ascii=False))


def _filled(text: str, parts: Sequence[str]) -> str:
    return _PLACE.sub(lambda place: _filled(parts[int(place[1])], parts), text)


def _heads(table: Table) -> list[tuple[str, Column, int]]:
    """The headings, with the number of columns below each."""
    headings: list[tuple[str, Column, int]] = []
    for group, members in groupby(table.columns, key=lambda column: column.group):
        columns = list(members)
        if group:
            headings.append((group, columns[0], len(columns)))
        else:
            headings += [(column.heading, column, 1) for column in columns]
    return headings


def _are_charts(blocks: Sequence[Block]) -> bool:
    return all(isinstance(block, Chart) for block in blocks)


def _has_heads(table: Table) -> bool:
    return any(column.heading for column in table.columns)


def _has_cards(table: Table) -> bool:
    """Whether each row becomes a card on a narrow screen: it has an outcome, or sentences next to other columns."""
    if any(column.kind == "badge" for column in table.columns):
        return True
    prose = (cell for row in table.rows for cell in row.cells[1:] if is_prose(cell))
    return len(table.columns) > _FEW_COLUMNS and any(prose)


def _abreast(blocks: Sequence[Block]) -> list[tuple[bool, list[Block]]]:
    """Blocks in runs of those that are next to each other and those that are not."""
    runs = groupby(blocks, key=lambda block: isinstance(block, Remarks) and block.abreast)
    return [(abreast, list(group)) for abreast, group in runs]


# Functions that the templates use for blocks; in a fragment everything is in place.
_HELPERS = {
    "kind": lambda block: type(block).__name__,
    "plain_cells": plain_cells,
    "plain_name": lambda row, code: plain_name(row, code=code),
    "heads": _heads,
    "are_charts": _are_charts,
    "has_heads": _has_heads,
    "has_cards": _has_cards,
    "abreast": _abreast,
    "folded": lambda part: part,
    "plot": lambda chart: Markup('<div class="plot" data-chart="{}"></div>').format(chart.id),
}
