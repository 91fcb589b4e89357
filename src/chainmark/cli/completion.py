"""Completion for shells from a table of all commands, which is read in half the time that typer takes to answer.

The table is made of typer's answers at the first completion after an installation, and is stored in the cache. A file
of the package, or another installed package, which may add options, makes it invalid. What the table cannot answer is
left to typer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chainmark.core.tool import tool_version
from chainmark.store.paths import cache_directory

_SHELLS = ("bash", "zsh", "fish")
_INSTRUCTION = "complete_"
# Words with these are split and completed by typer's rules.
_SPECIAL = frozenset("\"'\\=")
_UNKNOWN = "unknown"  # values whose completions are left to typer


def complete(instruction: str) -> int | None:
    """Print the possible completions.

    Args:
        instruction: from the shell: "complete_bash".

    Returns:
        The exit code; None: typer must answer.
    """
    shell = instruction.removeprefix(_INSTRUCTION)
    typed = _typed_words(shell) if instruction.startswith(_INSTRUCTION) and shell in _SHELLS else None
    table = typed and _stored_table(shell)
    if not typed or not table:
        return None
    offered = _offered(table, *typed)
    return None if offered is None else _print(shell, offered)


def _typed_words(shell: str) -> tuple[list[str], str] | None:
    """The words before the one to complete, and this one; None: they are not simple."""
    typed = os.environ.get("COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS", "")
    if not typed.isascii() or _SPECIAL.intersection(typed):
        return None
    words = typed.split()
    if shell != "bash":
        place = len(words) if len(words) < 2 or typed.endswith(" ") else len(words) - 1
    elif (position := os.environ.get("COMP_CWORD", "")).isdecimal():
        place = int(position)
    else:
        return None
    return words[1:place], words[place] if place < len(words) else ""


def _offered(table: dict[str, Any], before: list[str], word: str) -> list[str] | None:
    """The lines of the completions of a word; None: unknown."""
    path, node = "", table[""]
    words = iter(before)
    offers = node["words"]
    for each in words:
        if each.startswith("-"):
            if each not in node["options"]:
                return None
            values = node["options"][each]
            awaits_value = values is not None and next(words, None) is None
            offers = values if awaits_value else node["words"]
        elif node["is_group"]:
            path = f"{path} {each}".strip()
            node = table.get(path)
            if node is None:
                return None
            offers = node["words"]
    if word.startswith("-"):
        offers = node["names"]
    return None if offers == _UNKNOWN else [line for value, line in offers if value.startswith(word)]


def _print(shell: str, lines: list[str]) -> int:
    text = "\n".join(lines)
    if shell == "zsh":
        text = f"_arguments '*: :(({text}))'" if lines else "_files"
    if shell == "fish" and os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if lines else 1
    sys.stdout.write(f"{text}\n")
    return 0


def _stored_table(shell: str) -> dict[str, Any] | None:
    """The table of a shell, made now if it is missing or out of date; None: it cannot be stored."""
    path = cache_directory() / f"completion-{shell}.json"
    state = _state_of_installation()
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        stored = None
    if isinstance(stored, dict) and stored.get("state") == state:
        table: dict[str, Any] = stored["table"]
        return table
    return _made_table(path, shell, state)


def _made_table(path: Path, shell: str, state: list[Any]) -> dict[str, Any] | None:
    from chainmark.core.errors import ChainmarkError
    from chainmark.store.files import write_bytes

    try:
        write_bytes(path, b"")  # before the work, which would be repeated at every completion
        table = _table(shell)
        write_bytes(path, json.dumps({"state": state, "table": table}).encode())
    except (OSError, ChainmarkError):  # typer answers without a cache
        return None
    return table


def _state_of_installation() -> list[Any]:
    """It changes with every file of the package, and with the packages that are installed beside it."""
    package = Path(__file__).parents[1]
    folders = [folder for folder in map(Path, sys.path[1:]) if folder.exists()]
    times = [folder.stat().st_mtime_ns for folder in folders]
    return [tool_version(), str(package), times, max(_changes_below(package))]


def _changes_below(folder: Path) -> Iterator[int]:
    """Times of the last changes, ns."""
    yield folder.stat().st_mtime_ns
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__":
                continue
            if entry.is_dir():
                yield from _changes_below(Path(entry.path))
            else:
                yield entry.stat().st_mtime_ns


def _table(shell: str) -> dict[str, Any]:
    """Typer's answers: for each command its options with their values, and the other words that can follow."""
    import typer
    from typer import _completion_classes as classes

    from chainmark.cli.app import all_commands, app

    group = typer.main.get_group(app)
    kinds: dict[str, Any] = {"bash": classes.BashComplete, "zsh": classes.ZshComplete, "fish": classes.FishComplete}
    form = kinds[shell](group, {}, "", "").format_completion
    table = {"": _node(group, form)}
    for name, command in all_commands().commands.items():
        table[name] = _node(command, form)
        for child in getattr(command, "commands", {}).values():
            table[f"{name} {child.name}"] = _node(child, form)
    return table


def _node(command: Any, form: Any) -> dict[str, Any]:
    context = command.make_context(command.name, [], resilient_parsing=True)
    parameters = command.get_params(context)

    def offers(part: Any, start: str = "") -> Any:
        """All values and their lines; those that do not depend on their beginning alone are left to typer."""
        if part is not command and part.shell_complete(context, "\n"):
            return _UNKNOWN
        return [(item.value, form(item)) for item in part.shell_complete(context, start)]

    argument = next((each for each in parameters if each.param_type_name == "argument"), command)
    return {
        "is_group": hasattr(command, "commands"),
        "names": offers(command, "-"),
        "words": offers(argument),
        "options": {
            name: None if option.is_flag else offers(option)
            for option in parameters
            if option.param_type_name == "option"
            for name in [*option.opts, *option.secondary_opts]
        },
    }
