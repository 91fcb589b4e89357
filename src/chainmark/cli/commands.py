"""Where the commands are: each marks itself in its module, and is found without loading it.

So a new command needs no entry elsewhere, and `chainmark --help` and completion still load none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    import typer

_Command = TypeVar("_Command", bound=Callable[..., None])
_FUNCTION = re.compile(r"\n@command\((?P<order>\d+)\)\n(?:@.*\n)*def (?P<name>\w+)\(")
_GROUP = re.compile(r'\napp = group\(\s*(?P<order>\d+),\s*"(?P<line>[^"]*)"')
_QUOTES = '"""'


def command(order: int) -> Callable[[_Command], _Command]:
    """Mark a function as the command of its name.

    Args:
        order: its place in the list of commands.
    """
    del order  # read from the source
    return lambda function: function


def group(order: int, line: str, epilog: str) -> typer.Typer:
    """The commands of a module, whose name is that of the group.

    Args:
        order: its place in the list of commands.
        line: of that list.
        epilog: the end of its help.
    """
    import typer

    del order
    return typer.Typer(no_args_is_help=True, help=line, epilog=epilog)


class FoundCommand(NamedTuple):
    """A command: the module and the name in it of its function or its app, and the first line of its help."""

    module: str
    attribute: str
    line: str


def found_commands() -> dict[str, FoundCommand]:
    """Every command by its name, in the order of the list."""
    results: dict[str, tuple[int, FoundCommand]] = {}
    for path in Path(__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for match in _FUNCTION.finditer(text):
            name, line = match["name"].replace("_", "-"), _first_line(text, match.end())
            results[name] = int(match["order"]), FoundCommand(path.stem, match["name"], line)
        if group_of := _GROUP.search(text):
            results[path.stem] = int(group_of["order"]), FoundCommand(path.stem, "app", group_of["line"])
    return {name: found for name, (_, found) in sorted(results.items(), key=lambda item: (item[1][0], item[0]))}


def _first_line(text: str, after: int) -> str:
    """The first paragraph of the docstring that follows a function's name."""
    begin = text.index(f"\n    {_QUOTES}", after)
    _, docstring, _ = text[begin:].split(_QUOTES, 2)
    return " ".join(docstring.partition("\n\n")[0].split())
