"""Generates the reference part of the documentation: ``python -m chainmark.cli.reference docs/reference``."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import chainmark
from chainmark.cli.app import all_commands
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Metric
from chainmark.systems.base import load_system, system_names

_SECTIONS = ("Args:", "Raises:", "Returns:", "Attributes:", "Example:")


def metrics_page(catalogue: Catalogue) -> str:
    """A system's data dictionary as Markdown."""
    lines = [
        f"# {catalogue.title}: metrics",
        "",
        "Generated from the catalogue by `make docs`. Metrics marked ● are gating: they decide the verdict.",
        "",
    ]
    for table in catalogue.tables:
        lines += [f"## {table.title}", "", "| metric | unit | judged by | better | margin | over | definition | from |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        rows = [metric for metric in catalogue.ordered() if metric.table == table.id]
        lines += [_row(metric, catalogue.population(metric.population).label) for metric in rows]
        lines += [""]
    return "\n".join(lines)


def _row(metric: Metric, population: str) -> str:
    margin = units.plain_percent(metric.margin)
    margin += f", at least {units.tidy(metric.floor)} {metric.unit}" if metric.floor else ""
    name = f"`{metric.id}`" + (" ●" if metric.gating else "")
    cells = [name, metric.unit, ", ".join(metric.judged_by), metric.better, margin, population, metric.description]
    return "| " + " | ".join([*cells, ", ".join(metric.source)]) + " |"


def commands_page() -> str:
    """Every command with its help, as Markdown."""
    lines = ["# Commands", "", "Generated from the help of the commands by `make docs`.", ""]
    for path, command in _walk("chainmark", all_commands()):
        lines += [f"## `{path}`", "", (command.help or "").strip(), ""]
        if command.epilog:
            lines += [command.epilog.strip(), ""]
        options = [parameter for parameter in command.params if parameter.name != "help"]
        if options:
            lines += ["| option | meaning |", "|---|---|"]
            lines += [f"| `{' '.join(one.opts) or one.name}` | {getattr(one, 'help', None) or ''} |" for one in options]
            lines += [""]
    return "\n".join(lines)


def _walk(path: str, command: Any) -> list[tuple[str, Any]]:
    found = [(path, command)]
    for name, child in sorted(getattr(command, "commands", {}).items()):
        found += _walk(f"{path} {name}", child)
    return found


def commands_of() -> list[tuple[str, str]]:
    """Every command's path and the text of its help."""
    found = _walk("chainmark", all_commands())
    return [(path, f"{command.help or ''}\n{command.epilog or ''}") for path, command in found]


def api_page() -> str:
    """Every public name of the library with its description and example, as Markdown."""
    lines = ["# Library", "", "`import chainmark as cm`. Generated from the docstrings by `make docs`.", ""]
    for name in chainmark.__all__:
        found = getattr(chainmark, name)
        shown = _signature(name, found) if inspect.isfunction(found) else f"class {name}"
        lines += [f"## `{name}`", "", "```python", shown, "```", "", *_described(inspect.getdoc(found) or ""), ""]
        if inspect.isclass(found):
            lines += [*_members(found), ""]
    return "\n".join(lines)


def _signature(name: str, function: Any) -> str:
    """How it is called, an argument a line."""
    signature = inspect.signature(function)
    lines: list[str] = []
    starred = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            lines.append("*")
        starred = starred or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        star = "*" if one.kind is one.VAR_POSITIONAL else ""
        default = "" if one.default is one.empty else f" = {one.default!r}"
        lines.append(f"{star}{one.name}: {one.annotation}{default}")
    inside = "".join(f"\n    {line}," for line in lines)
    return f"cm.{name}({inside}{chr(10) if inside else ''}) -> {signature.return_annotation}"


def _described(text: str) -> list[str]:
    """A docstring as Markdown: its sections as lists, its example as code."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        if line in _SECTIONS:
            in_code = line == "Example:"
            lines += [f"**{line.rstrip(':')}**", "", *(["```python"] if in_code else [])]
        elif in_code:
            lines.append(line[4:])
        elif line.startswith("        "):
            lines[-1] += f" {line.strip()}"
        elif line.startswith("    "):
            lines.append(f"- {line.strip()}")
        else:
            lines.append(line)
    return [*lines, "```"] if in_code else lines


def _members(found: type) -> list[str]:
    """What an object of a class offers, a line each."""
    if not found.__module__.startswith(("chainmark.api", "chainmark.report")):
        return []
    public = {name: member for name, member in vars(found).items() if not name.startswith("_")}
    told = {name: (inspect.getdoc(member) or "").partition("\n")[0] for name, member in public.items()}
    return [f"- `{name}`: {line}" for name, line in told.items() if line and not isinstance(public[name], str | bool)]


def pages() -> dict[str, str]:
    """All generated pages by file name."""
    metrics = {f"metrics-{name}.md": metrics_page(load_system(name).catalogue()) for name in system_names()}
    return {**metrics, "commands.md": commands_page(), "api.md": api_page()}


def main(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
