"""The `chainmark` command: its sub-commands, its errors and its exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from chainmark.cli.commands import FoundCommand, found_commands
from chainmark.cli.failures import report_failure
from chainmark.cli.interrupts import handle_interrupts
from chainmark.cli.quick import Quick, QuickGroup

COMMANDS = found_commands()


def _load(name: str, found: FoundCommand) -> Any:
    """A command, which its ``command_class`` parses, or a group of them."""
    result = getattr(import_module(f"chainmark.cli.{found.module}"), found.attribute)
    around = typer.Typer(rich_markup_mode=None)
    around.callback()(lambda: None)
    if isinstance(result, typer.Typer):
        for command in result.registered_commands:
            function: Any = command.callback
            command.cls, command.name = Quick, command.name or function.__name__
        around.add_typer(result, name=name, cls=QuickGroup)
    else:
        kind = getattr(result, "command_class", Quick)
        around.command(name, cls=kind)(result)
    loaded: Any = typer.main.get_group(around).commands[name]
    for part in (loaded, *getattr(loaded, "commands", {}).values()):
        part.words = name if part is loaded else f"{name} {part.name}"
    return loaded


class Commands(QuickGroup):
    """Shows the commands by their lines in the table, and loads the chosen one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=found.line) for name, found in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The chosen command, and the arguments after its name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name, COMMANDS[name]), rest


app = typer.Typer(
    name="chainmark",
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
    help="Measure a release of a blockchain node on a real network and compare it with the previous release.",
    epilog="Example: `chainmark experiment PROFILE --baseline v1.0 --candidate v1.1 --html report.html`\n\n"
    "Exit codes: 0 pass or done · 1 fail · 2 usage or bad input · 3 inconclusive · 4 invalid run · "
    "5 environment or internal failure",
)


def all_commands() -> TyperGroup:
    """The whole command line with every command loaded, for documentation."""
    group = typer.main.get_group(app)
    group.commands = {name: _load(name, found) for name, found in COMMANDS.items()}
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        from chainmark.core.tool import tool_version

        typer.echo(f"chainmark {tool_version()}")
        raise typer.Exit


@app.callback()
def options(
    store: Annotated[
        Path | None,
        typer.Option("--store", help="Directory of the run store.", show_default="~/.local/share/chainmark"),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    if store is not None:
        os.environ["CHAINMARK_STORE"] = str(Path(store).resolve())
    if debug:
        os.environ["CHAINMARK_DEBUG"] = "1"


def main() -> None:
    """Run the command line and exit with its code."""
    from chainmark.cli.last import last_step

    handle_interrupts()
    last_step.is_awaited = True
    try:
        code = int(app(standalone_mode=False) or 0)
    except SystemExit as ended:  # the output's reader has gone
        code = int(ended.code or 0)
    except (KeyboardInterrupt, typer.Abort) as error:
        sys.exit(report_failure(error))
    except Exception as error:
        code = report_failure(error)
    last_step.end_with(code)
