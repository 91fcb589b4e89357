"""Generates the reference part of the documentation: ``python -m chainmark.cli.reference docs/reference``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from chainmark.cli.app import app
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Metric
from chainmark.systems.base import load_system, system_names


def metrics_page(catalogue: Catalogue) -> str:
    """A system's data dictionary as Markdown."""
    lines = [
        f"# {catalogue.title}: metrics",
        "",
        "Generated from the catalogue by `make docs`. Metrics marked ● are gating: they make the verdict.",
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
    margin = f"{metric.margin:.0%}" + (f", at least {metric.floor:g} {metric.unit}" if metric.floor else "")
    name = f"`{metric.id}`" + (" ●" if metric.gating else "")
    cells = [name, metric.unit, ", ".join(metric.judged_by), metric.better, margin, population, metric.description]
    return "| " + " | ".join([*cells, ", ".join(metric.source)]) + " |"


def commands_page() -> str:
    """Every command with its help, as Markdown."""
    group = typer.main.get_command(app)
    lines = ["# Commands", "", "Generated from the commands' own help by `make docs`.", ""]
    for path, command in _walk("chainmark", group):
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


def commands_of(group: Any) -> list[tuple[str, str]]:
    """Every command's path and the text of its help."""
    return [(path, f"{command.help or ''}\n{command.epilog or ''}") for path, command in _walk("chainmark", group)]


def pages() -> dict[str, str]:
    """All generated pages by file name."""
    metrics = {f"metrics-{name}.md": metrics_page(load_system(name).catalogue()) for name in system_names()}
    return {**metrics, "commands.md": commands_page()}


def main(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
