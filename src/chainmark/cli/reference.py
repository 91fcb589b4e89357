"""Generates the reference part of the documentation: ``python -m chainmark.cli.reference docs/reference``."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import chainmark
from chainmark.cli.app import all_commands
from chainmark.cli.schema_reference import profiles_page, schemas
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Metric
from chainmark.systems.base import load_system, system_names

STUB = Path(chainmark.__file__).with_suffix(".pyi")
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
            lines += [
                f"| `{' '.join(option.opts) or option.name}` | {getattr(option, 'help', None) or ''} |"
                for option in options
            ]
            lines += [""]
    return "\n".join(lines)


def _walk(path: str, command: Any) -> list[tuple[str, Any]]:
    results = [(path, command)]
    for name, child in sorted(getattr(command, "commands", {}).items()):
        results += _walk(f"{path} {name}", child)
    return results


def commands_of() -> list[tuple[str, str]]:
    """Every command's path and the text of its help."""
    result = _walk("chainmark", all_commands())
    return [(path, f"{command.help or ''}\n{command.epilog or ''}") for path, command in result]


def api_page() -> str:
    """Every public name of the library with its description and example, as Markdown."""
    lines = ["# Library", "", "`import chainmark as cm`. Generated from the docstrings by `make docs`.", ""]
    for name in chainmark.__all__:
        result = getattr(chainmark, name)
        shown = _signature(name, result) if inspect.isfunction(result) else f"class {name}"
        lines += [f"## `{name}`", "", "```python", shown, "```", "", *_described(inspect.getdoc(result) or ""), ""]
        if inspect.isclass(result):
            lines += [*_members(result), ""]
    return "\n".join(lines)


def _signature(name: str, function: Any) -> str:
    """Its signature, one argument per line."""
    signature = inspect.signature(function)
    lines: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
        starred = starred or parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else star
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        lines.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
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


def _members(result: type) -> list[str]:
    """The public members of a class, one per line."""
    if not result.__module__.startswith(("chainmark.api", "chainmark.report", "chainmark.serve")):
        return []
    public = {name: member for name, member in vars(result).items() if not name.startswith("_")}
    reported = {name: (inspect.getdoc(member) or "").partition("\n")[0] for name, member in public.items()}
    return [
        f"- `{name}`: {line}" for name, line in reported.items() if line and not isinstance(public[name], str | bool)
    ]


def pages() -> dict[str, str]:
    """All generated pages by file name."""
    metrics = {f"metrics-{name}.md": metrics_page(load_system(name).catalogue()) for name in system_names()}
    return {
        **metrics,
        "commands.md": commands_page(),
        "api.md": api_page(),
        "profiles.md": profiles_page(),
        **schemas(),
    }


def library_stub() -> str:
    """The names of the library for type checkers, which do not execute the package."""
    homes = sorted((getattr(chainmark, name).__module__, name) for name in chainmark.__all__)
    lines = [f"from {home} import {name} as {name}" for home, name in homes]
    listed = ["__all__ = [", *(f'    "{name}",' for name in chainmark.__all__), "]"]
    return "\n".join(["# Written by `make docs`.", *lines, "", *listed]) + "\n"


def main(folder: Path) -> None:
    """Write all pages, and the stub of the library."""
    for name, text in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    STUB.write_text(library_stub(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
