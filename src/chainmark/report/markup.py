"""GitHub's Markdown: escaped text, tables, folded parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chainmark.report.phrases import in_spans

# All characters in a version, a key or a note that Markdown or its HTML could interpret.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def plain(text: str) -> str:
    """Text that Markdown shows unchanged, on one line; what is between two backticks is code."""
    parts = in_spans(" ".join(text.split()))
    return "".join(code(part) if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def code(text: str) -> str:
    """A key or a value in code type; a table's bar inside it must be escaped as well."""
    body = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{body}`" if body else ""


def fenced(text: str) -> list[str]:
    """Literal text, in a fence longer than any run of backticks in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return [fence, *text.splitlines(), fence, ""]


def table(headings: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table. ``align`` holds one letter per column: l or r."""
    rules = [{"l": ":--", "r": "--:"}[letter] for letter in align]
    body = [f"| {' | '.join(cells)} |" for cells in rows]
    return [f"| {' | '.join(headings)} |", f"| {' | '.join(rules)} |", *body, ""] if body else []


def folded(summary: str, lines: Sequence[str]) -> list[str]:
    """Lines folded behind a summary."""
    # Without the blank lines GitHub parses the content as HTML, not as Markdown.
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "</details>", ""] if lines else []


def bullets(heading: str, items: Sequence[str]) -> list[str]:
    """A list under a heading; empty without items."""
    return [f"**{heading}**", "", *(f"- {plain(item)}" for item in items), ""] if items else []


def escaped(text: str) -> str:
    """Text inside HTML inside Markdown."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
