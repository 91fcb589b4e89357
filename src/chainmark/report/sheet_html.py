"""A sheet as one HTML file that opens offline: everything it needs is inside it."""

from __future__ import annotations

from itertools import groupby

from markupsafe import Markup

from chainmark.report.chart import Chart
from chainmark.report.page import charts_payload, environment, packed, template_text, vega_bundle
from chainmark.report.sheet import Column, Definitions, Listing, Remarks, Sheet, Table, padded

STYLES = ("report.css", "table.css", "sheet.css")


def render_sheet_html(sheet: Sheet) -> str:
    """The sheet as a single self-contained page; the same document gives the same text."""
    return environment().get_template("sheet.html.j2").render(
        sheet=sheet,
        is_table=lambda block: isinstance(block, Table),
        is_listing=lambda block: isinstance(block, Listing),
        is_definitions=lambda block: isinstance(block, Definitions),
        is_remarks=lambda block: isinstance(block, Remarks),
        tables=TABLE_HELPERS,
        css=Markup("".join(map(template_text, STYLES))),  # noqa: S704 - our own files
        script=Markup(template_text("common.js")),  # noqa: S704 - our own file
        vega=vega_bundle(),
        source=packed(sheet.source_json),
        charts=charts_payload([block for block in sheet.blocks() if isinstance(block, Chart)]),
    )  # fmt: skip


def _padded_column(table: Table, index: int) -> list[str]:
    cells = table.column(index)
    return padded(cells) if table.columns[index].kind == "figures" else [cell.text for cell in cells]


def _tail_width(table: Table, index: int) -> int:
    """The room for what follows the figures of a column, in widths of a digit."""
    return max((len(cell.tail) for cell in table.column(index)), default=0)


def _heads(table: Table) -> list[tuple[str, Column, int]]:
    """The headings, with how many columns each stands above."""
    heads: list[tuple[str, Column, int]] = []
    for group, members in groupby(table.columns, key=lambda column: column.group):
        columns = list(members)
        if group:
            heads.append((group, columns[0], len(columns)))
        else:
            heads += [(column.heading, column, 1) for column in columns]
    return heads


# What the template of a table needs, on every page that has one.
TABLE_HELPERS = {"padded_column": _padded_column, "heads": _heads, "tail_width": _tail_width}
