"""Text and tables on a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.report.blocks import Column, Section, Table, row_of, words
from chainmark.report.cells import unbroken
from chainmark.report.content import Content
from chainmark.report.layouts import document_of
from chainmark.report.markup import plain

from tests.unit.report.samples import sample

SENTENCE = "the lowest level, 1 client, clearly missed the SLA (p99)"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("pin it: `--write-require FILE`.", "pin it: <code>--write-require FILE</code>."),
        ("`<b>` and <b>", "<code>&lt;b&gt;</code> and &lt;b&gt;"),
        ("a ` alone", "a ` alone"),
        ("12 % of it", "12\u00a0% of it"),
        ("", ""),
    ],
)
def test_code_between_backticks_is_marked_up(text: str, html: str) -> None:
    """Readers of a page expect no Markdown marks, and external names may contain any character."""
    assert unbroken(text) == html


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("run `chainmark bisect --good a_b`", "run `chainmark bisect --good a_b`"),
        ("a ` alone, and *", "a \\` alone, and \\*"),
        ("`a|b` and a|b", "`a\\|b` and a\\|b"),
    ],
)
def test_a_command_can_be_copied_from_a_comment(text: str, markdown: str) -> None:
    assert plain(text) == markdown


def _page(table: Table) -> str:
    document = document_of(sample())
    assert isinstance(document, Content)
    return replace(document, sections=[Section("cells", "Cells", [table])]).html()


@pytest.mark.parametrize(
    ("sentence", "columns", "cards"), [(SENTENCE, 4, True), ("met", 4, False), (SENTENCE, 2, False)]
)
def test_a_sentence_next_to_other_columns_is_readable_on_a_phone(sentence: str, columns: int, cards: bool) -> None:
    """In a separate column it would be two letters wide."""
    headings = ["server", "run", "met", "reason"][-columns:]
    table = Table("servers", "Servers", words(*headings), [row_of(*headings[:-1], sentence)])
    html = _page(table)
    assert ('class="model cards" id="servers"' in html) == cards
    assert ('class="plain prose"' in html) == (sentence == SENTENCE)


def test_only_an_optional_column_is_omitted_without_an_entry() -> None:
    """A version's column is shown even if it is empty: the reader must see that it has no values."""
    columns = [*words("metric", "v1", "v2"), Column("beyond noise", kind="words", if_any=True)]
    empty, entered = (Table("t", "T", columns, [row_of("latency", "1", "", noise)]) for noise in ("", "yes"))
    assert '<th scope="col">v2</th>' in _page(empty)
    assert "beyond noise</th>" not in _page(empty)
    assert "beyond noise</th>" in _page(entered)
