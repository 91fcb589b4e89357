"""Text on a page."""

from __future__ import annotations

import pytest

from chainmark.report.cells import unbroken


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
def test_code_between_backticks(text: str, html: str) -> None:
    """A reader of a page wants no marks of Markdown; names from elsewhere may have any character."""
    assert unbroken(text) == html
