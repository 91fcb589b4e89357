"""The notebook of the documentation runs from its first cell to its last.

Its code runs in this process instead of a kernel: nbclient and ipykernel install thirty packages, and would only
test Jupyter in addition. The test checks the HTML of the last expression of a cell, which is what a notebook shows.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from chainmark.core.verdict import Verdict

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "notebooks" / "investigation.ipynb"


def _shown(source: str, names: dict[str, Any]) -> str:
    """Execute a cell. Return the HTML of its last expression, or "" if there is none."""
    code = ast.parse(source)
    last = code.body[-1]
    if isinstance(last, ast.Expr):
        code.body.pop()
    exec(compile(code, NOTEBOOK.name, "exec"), names)  # noqa: S102 - our own notebook
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)  # noqa: S307 - our own notebook
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


def test_the_investigation_finds_the_fault() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), "outputs must not be committed"
    names: dict[str, Any] = {}
    shown = [_shown("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    assert names["comparison"].verdict is Verdict.FAIL
    assert names["late"] == "node-2"
    assert "clocks agree" in {gate.label for gate in names["warned"]}
    assert "worse" in shown[3]
    assert "node-2" in shown[6]
