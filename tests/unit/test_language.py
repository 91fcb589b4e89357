"""Help, plans and documentation use the words of STYLE.md, which readers understand without knowing the project."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainmark.cli.reference import commands_page

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "chainmark"
# Maps each rejected form to its replacement in STYLE.md. Only forms that are wrong in any context are listed.
DIALECT = {
    r"\bhungr(y|ier)\b": "uses more resources",
    r"\bthe release before\b(?! it)": "the previous release",
    r"\bruns? a side\b": "runs per side",
    r"\b(transactions|requests|lines|samples|times|bytes) a second\b": "per second",
    r"\bstands? beside\b|\bset beside\b|\bshown beside\b|\blies beside\b": "next to, for comparison",
    r"\bgo(es)? on with\b": "continues",
    r"\brightly\b": "correctly",
    r"\banew\b": "again",
    r"\bunasked\b": "unplanned",
    r"\bto be looked into\b": "for debugging",
    r"\babsent stake\b|\bstake that is not there\b": "offline validators",
    r"\btells the rest\b|\bwhere to read on\b": "covers the rest, further reading",
    r"\b(is|are|was) told\b": "is reported",
    r"\bbooks\b": "counts",
    r"\bparts (do not )?explain the whole\b": "the model reproduces the measurement",
    r"(?<!there )\bis no (?!longer\b|more\b)[a-z]+": "is not a",
    r"\bkeeps? to the agreement\b": "meets the SLA",
}


def _texts(node: Any) -> Iterator[str]:
    """The prose in a parsed TOML value: every string that contains a space."""
    if isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _texts(child)
    elif isinstance(node, str) and " " in node:
        yield node


def _sources() -> dict[str, str]:
    plans = {path: "\n".join(_texts(tomllib.loads(path.read_text("utf-8")))) for path in PACKAGE.rglob("*.toml")}
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"]
    texts = {**plans, **{path: path.read_text("utf-8") for path in pages}}
    return {"help": commands_page()} | {str(path.relative_to(ROOT)): text for path, text in texts.items()}


@pytest.mark.parametrize(("place", "text"), _sources().items(), ids=lambda value: value if len(value) < 99 else "")
def test_no_text_for_users_is_in_a_dialect(place: str, text: str) -> None:
    prose = " ".join(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL).split())
    wrong = [
        f"{prose[max(0, hit.start() - 40) : hit.end() + 20]!r}: write “{better}”"
        for pattern, better in DIALECT.items()
        for hit in re.finditer(pattern, prose, re.IGNORECASE)
    ]
    assert not wrong, f"{place}: {wrong}"
