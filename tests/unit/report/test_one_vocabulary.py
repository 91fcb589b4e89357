"""An outcome has one word: whoever reads FAIL on a terminal searches for `fail` in the JSON, a table or a badge."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import chainmark
from chainmark.core.verdict import Verdict
from chainmark.report.wording import LOOKS, verdict_cell

PACKAGE = Path(chainmark.__file__).parent
STORED = Path(__file__).parents[2] / "golden" / "stored"
# A band is a word in capitals and a sentence: on a terminal in columns, in Markdown in bold.
BANDS = (re.compile(r"^ ([A-Z][A-Z -]*[A-Z])   \S", re.M), re.compile(r"^(?:\S )?\*\*([A-Z][A-Z -]*[A-Z])\*\*: ", re.M))
DRAWN = {  # how a tone or an outcome is drawn
    "load_charts._OUTCOME_SHAPES",
    "markdown._SIGNS",
    "terminal._STYLES",
    "badge._TONES",
}


def _is_verdict(key: ast.expr | None) -> bool:
    if isinstance(key, ast.Attribute):
        return isinstance(key.value, ast.Name) and key.value.id == "Verdict"
    return isinstance(key, ast.Constant) and key.value in {Verdict.PASS.value, Verdict.FAIL.value}


def _is_text(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return any(map(_is_text, value.elts))
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _texts_by_verdict(path: Path) -> Iterator[str]:
    """The mappings from verdicts to texts in a module, by their names or lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: dict[ast.AST | None, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            names[statement.value] = ast.unparse(target)
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and any(map(_is_verdict, node.keys)) and any(map(_is_text, node.values)):
            yield f"{path.stem}.{names.get(node, node.lineno)}"


def test_every_band_shows_the_verdict_in_its_only_word() -> None:
    """Bands had words of their own: "SLA MISSED", "COSTS", "FOUND", "NOT EXPLAINED"."""
    seen = {
        word
        for path in sorted(STORED.rglob("*.*"))
        if path.suffix in {".txt", ".md"}
        for band in BANDS
        for word in band.findall(path.read_text(encoding="utf-8"))
    }
    assert seen <= {verdict.capitals for verdict in Verdict}
    assert seen >= {"PASS", "FAIL", "INCONCLUSIVE", "INVALID", "INFORMATIONAL"}


def test_no_other_module_has_words_or_colours_for_verdicts() -> None:
    """A second table of words would soon differ from the first one."""
    found = {text for path in sorted(PACKAGE.rglob("*.py")) for text in _texts_by_verdict(path)}
    assert found - DRAWN == {"verdict._PREDICATES"}


def test_a_table_shows_the_word_that_the_json_has() -> None:
    for verdict in Verdict:
        cell = verdict_cell(verdict)
        assert (cell.text, cell.text.upper()) == (verdict.value, verdict.capitals)
    assert set(LOOKS) == set(Verdict)
