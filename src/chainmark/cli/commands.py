"""Where the commands are: each is marked with `@command` in its module, and is found without loading it.

So a new command needs no entry elsewhere, and `chainmark --help` and completion still load none of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

# From making runs to looking at them; commands that are not named here follow.
_ORDER = [
    "run", "experiment", "bisect", "aa", "qa", "ingest", "load", "saturation", "compare", "publish", "block",
    "transaction", "request", "trail", "host", "predict", "explain", "verify-against", "synth", "metrics",
    "profiles", "corpus", "nodes", "cluster", "history", "runs", "serve",
]  # fmt: skip
_FUNCTION = re.compile(r"\n\n(?:@.*\n)*@command\n(?:@.*\n)*def (?P<name>\w+)\(")
_GROUP = re.compile(r'\napp = typer\.Typer\(\s*help="(?P<line>[^"]*)"')
_QUOTES = '"""'


class FoundCommand(NamedTuple):
    """A command: the module and the name in it of its function or its app, and the first line of its help."""

    module: str
    attribute: str
    line: str


def found_commands() -> dict[str, FoundCommand]:
    """Every command by its name, in the order of the list."""
    found: dict[str, FoundCommand] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if group := _GROUP.search(text):
            found[path.stem] = FoundCommand(path.stem, "app", group["line"])
            continue
        for match in _FUNCTION.finditer(text):
            line = _first_line(text, match.end())
            found[match["name"].replace("_", "-")] = FoundCommand(path.stem, match["name"], line)
    places = {name: place for place, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda item: (places.get(item[0], len(places)), item[0])))


def _first_line(text: str, after: int) -> str:
    """The first paragraph of the docstring that follows a function's name."""
    begin = text.index(f"\n    {_QUOTES}", after)
    _, docstring, _ = text[begin:].split(_QUOTES, 2)
    return " ".join(docstring.partition("\n\n")[0].split())
