"""Every command and every document has a stored text, so that a new one cannot be forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

import chainmark
from chainmark.cli.reference import commands_of

from tests.golden.commands import NARROW, TYPED
from tests.golden.inputs import DOCUMENTS
from tests.golden.outputs import document

SOURCE = Path(chainmark.__file__).parent
# The dashboard's own documents are pages only: its tests compare them.
LAYERS = ("report", "systems")


def test_every_command_has_a_stored_output_besides_its_help() -> None:
    """The words of a changed message or table would otherwise be seen by nobody."""
    paths = [path.split()[1:] for path, _ in commands_of()]
    commands = [path for path in paths if not any(other[: len(path)] == path != other for other in paths)]
    typed = [list(line.arguments) for line in (TYPED | NARROW).values() if line.arguments[-1:] != ["--help"]]
    lacking = [" ".join(path) for path in commands if not any(line[: len(path)] == path for line in typed)]
    assert lacking == [], "add lines to tests/golden/commands.py"


def test_every_layout_of_a_document_has_a_stored_text() -> None:
    """A layout is a function `…_document`; a stored document has its parameter as result."""
    layouts = {
        node.name: ast.unparse(node.args.args[0].annotation)
        for layer in LAYERS
        for path in sorted((SOURCE / layer).rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_document") and node.args.args[0].annotation
        if node.returns is not None and ast.unparse(node.returns) == "Document"
    }
    stored = {kind.__name__ for name in DOCUMENTS for kind in type(document(name).result).__mro__}
    assert len(layouts) > 20
    assert {name: result for name, result in layouts.items() if not set(result.split(" | ")) <= stored} == {}, (
        "add inputs to tests/golden/inputs.py"
    )
